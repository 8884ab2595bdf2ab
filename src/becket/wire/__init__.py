"""Bytes to frames and back, without I/O: three framings, and one that finds out which of them it is."""

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
