"""Parses Content-Length header blocks, strict or lenient, and explains malformed ones.

Lines end with LF, with or without CR; the last of several lengths holds; lines without a colon and unknown headers are
passed over. One line has a limit, their number has none: a block that never ends takes no memory, and the time that
one frame may take is the driver's business.
"""

from __future__ import annotations

import re

from becket.errors import BadFrame, FrameTooLarge
from becket.limits import Limits

__all__ = ["LenientHeaderParser"]

MAX_LENIENT_LINE = 1024  # bytes of one header line with its line end, as in the synaps host
# What Rust parses as an unsigned 64-bit number; it allows a plus sign and any number of leading zeros.
LENIENT_LENGTH = re.compile(r"\+?([0-9]+)", re.ASCII)
MAX_LENIENT_LENGTH = 2**64 - 1


class LenientHeaderParser:
    """Reads one header block after another; `length` is what the last one announced, `error` why reading stopped."""

    def __init__(self, limits: Limits, *, most: int) -> None:
        self.error: BadFrame | None = None
        self.length = 0
        self.size = 0  # of the last complete block, in bytes
        self.pending_bytes = 0  # bytes of an unfinished block
        self._limit = limits.frame
        self._most = most  # the longest body that may be announced
        self._line: bytearray = bytearray()
        self._announced: int | None = None

    def feed(self, chunk: bytes, position: int, frames: int) -> int:
        """Returns where the body starts, or -1: the chunk ended inside the header, or `error` is set."""
        size = len(chunk)
        while position < size:
            room = MAX_LENIENT_LINE - len(self._line)
            end = chunk.find(b"\n", position, position + room) + 1
            piece = chunk[position : end or position + room]
            self._line += piece
            self.pending_bytes += len(piece)
            position += len(piece)
            if end:
                if self._end_line():
                    return position if self._end_block() else -1
                if self.error is not None:
                    return -1
            elif position < size:
                self.error = FrameTooLarge(size=None, limit=MAX_LENIENT_LINE, what="header line")
                return -1
        return -1

    def _end_line(self) -> bool:
        """Takes what the line says; returns True for the blank line that ends the block."""
        raw = bytes(self._line)
        self._line.clear()
        try:
            line = raw.decode().strip()
        except UnicodeDecodeError as cause:
            self.error = BadFrame("header line that is not UTF-8", found=raw)
            self.error.__cause__ = cause
            return False
        name, _, value = line.partition(":")
        if name.strip().lower() == "content-length" and ":" in line:
            self._parse_length(value.strip())
        return not line

    def _parse_length(self, value: str) -> None:
        number = LENIENT_LENGTH.fullmatch(value)
        if number is None:
            self.error = BadFrame("Content-Length is no number", found=value.encode())
        elif int(number[1]) > MAX_LENIENT_LENGTH:
            self.error = FrameTooLarge(size=int(number[1]), limit=self._limit)
        else:
            self._announced = int(number[1])

    def _end_block(self) -> bool:
        if self._announced is None:
            self.error = BadFrame("missing Content-Length")
        elif self._announced > self._most:
            self.error = FrameTooLarge(size=self._announced, limit=self._limit)
        else:
            self.length = self._announced
            self.size = self.pending_bytes
            self.pending_bytes = 0
            self._announced = None
            return True
        return False
