"""Byte framings, sans I/O: Content-Length, JSON Lines, length prefix, and detection.

Names are imported at first use: most links need one framing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from becket._lazy import lazy_exports

if TYPE_CHECKING:
    from becket.framing.content_length import ContentLength as ContentLength
    from becket.framing.detect import AutoDetect as AutoDetect, detect_framing as detect_framing
    from becket.framing.framing import (
        Frame as Frame,
        Framing as Framing,
        FramingFactory as FramingFactory,
        SkippedFrame as SkippedFrame,
    )
    from becket.framing.json_lines import JsonLines as JsonLines
    from becket.framing.length_prefixed import LengthPrefixed as LengthPrefixed

EXPORTS = {
    "becket.framing.content_length": "ContentLength",
    "becket.framing.detect": "AutoDetect detect_framing",
    "becket.framing.framing": "Frame Framing FramingFactory SkippedFrame",
    "becket.framing.json_lines": "JsonLines",
    "becket.framing.length_prefixed": "LengthPrefixed",
}

__getattr__, __dir__ = lazy_exports(globals(), EXPORTS)
