"""Byte framings, sans I/O: Content-Length, JSON Lines, length prefix, and detection.

Names are loaded at first use: most links need one of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from becket._lazy import lazy_exports

if TYPE_CHECKING:
    from becket.framing.content_length import ContentLength
    from becket.framing.detect import AutoDetect, detect_framing
    from becket.framing.framing import Frame, Framing, FramingFactory, SkippedFrame
    from becket.framing.json_lines import JsonLines
    from becket.framing.length_prefixed import LengthPrefixed

__all__ = [
    "AutoDetect",
    "ContentLength",
    "Frame",
    "Framing",
    "FramingFactory",
    "JsonLines",
    "LengthPrefixed",
    "SkippedFrame",
    "detect_framing",
]

EXPORTS = {
    "ContentLength": "becket.framing.content_length",
    "Frame": "becket.framing.framing",
    "Framing": "becket.framing.framing",
    "FramingFactory": "becket.framing.framing",
    "JsonLines": "becket.framing.json_lines",
    "LengthPrefixed": "becket.framing.length_prefixed",
    "SkippedFrame": "becket.framing.framing",
    "AutoDetect": "becket.framing.detect",
    "detect_framing": "becket.framing.detect",
}

__getattr__, __dir__ = lazy_exports(__name__, globals(), EXPORTS)
