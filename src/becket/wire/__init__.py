"""Bytes to frames and back, without I/O: three framings, and one that finds out which of them it is.

Names are loaded at first use: most links need one of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from becket.loading import lazy_names

if TYPE_CHECKING:
    from becket.wire.content_length import ContentLength
    from becket.wire.framing import Frame, Framing, FramingFactory, Skipped
    from becket.wire.json_lines import JsonLines
    from becket.wire.length_prefixed import LengthPrefixed
    from becket.wire.sniffing import Sniffing, sniff

__all__ = [
    "ContentLength",
    "Frame",
    "Framing",
    "FramingFactory",
    "JsonLines",
    "LengthPrefixed",
    "Skipped",
    "Sniffing",
    "sniff",
]

HOMES = {
    "ContentLength": "becket.wire.content_length",
    "Frame": "becket.wire.framing",
    "Framing": "becket.wire.framing",
    "FramingFactory": "becket.wire.framing",
    "JsonLines": "becket.wire.json_lines",
    "LengthPrefixed": "becket.wire.length_prefixed",
    "Skipped": "becket.wire.framing",
    "Sniffing": "becket.wire.sniffing",
    "sniff": "becket.wire.sniffing",
}

__getattr__, __dir__ = lazy_names(__name__, globals(), HOMES)
