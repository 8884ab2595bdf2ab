"""Length-prefixed framing: a four-byte big-endian length, then the body."""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING

from becket.errors import BadFrame, FrameTooLarge, LocalProtocolError
from becket.framing.framing import Frame, SkippedFrame
from becket.limits import DEFAULT_LIMITS, Limits

if TYPE_CHECKING:
    from becket.framing.oversize import OpenScanner, OversizeBody

__all__ = ["LengthPrefixed"]

PREFIX = Struct(">I")
PREFIX_SIZE = PREFIX.size
MAX_LENGTH = 2**32 - 1  # the maximum of four bytes


class LengthPrefixed:
    """Reads and writes bodies after a length of four bytes."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self.error: BadFrame | None = None
        self.frames = 0
        self._limit = min(limits.frame, MAX_LENGTH)
        self._prefix = b""  # an unfinished one
        self._body: bytearray | None = None
        self._missing = 0
        self._longest_skipped = min(limits.longest_skipped, MAX_LENGTH)
        self._scanner: OpenScanner | None = None
        self._oversize: OversizeBody | None = None

    @property
    def pending(self) -> int:
        if self._oversize is not None:
            return PREFIX_SIZE + self._oversize.taken
        return len(self._prefix) if self._body is None else PREFIX_SIZE + len(self._body)

    def scan_oversize(self, scanner: OpenScanner) -> None:
        """Skips responses above the limit from now on."""
        self._scanner = scanner

    def feed(self, chunk: bytes) -> list[Frame | SkippedFrame]:
        if self.error is not None:
            return []
        found: list[Frame | SkippedFrame] = []
        size = len(chunk)
        position = 0
        if self._prefix:
            position = PREFIX_SIZE - len(self._prefix)
            prefix = self._prefix + chunk[:position]
            if len(prefix) < PREFIX_SIZE:
                self._prefix = prefix
                return found
            self._prefix = b""
            (length,) = PREFIX.unpack(prefix)
            if length > self._limit:
                position = self._begin_skipping(length, prefix, chunk, position, found)
            else:
                self._body = bytearray()
                self._missing = length
        elif self._oversize is not None:
            position = self._skip(self._oversize, chunk, position, found)
        if self._body is not None:
            position = self._append_body(self._body, chunk, position, found)
        limit = self._limit
        unpack_from = PREFIX.unpack_from
        last = size - PREFIX_SIZE  # no whole prefix begins after it
        while position <= last:
            (length,) = unpack_from(chunk, position)
            start = position + PREFIX_SIZE
            if length > limit:
                position = self._begin_skipping(length, chunk[position:start], chunk, start, found)
                continue
            position = start + length
            if position > size:
                self._body = bytearray(memoryview(chunk)[start:])
                self._missing = position - size
                break
            found.append(chunk[start:position])
        else:
            self._prefix = chunk[position:]
        self.frames += len(found)
        return found

    def end(self) -> BadFrame | None:
        if self.error is not None:
            return self.error
        if self._body is not None:
            size = len(self._body) + self._missing
            return BadFrame(f"truncated body: {self._missing} of {size} bytes are missing")
        if self._oversize is not None:
            return self._oversize.end()
        if self._prefix:
            return BadFrame(f"truncated length: {PREFIX_SIZE - len(self._prefix)} of {PREFIX_SIZE} bytes are missing")
        return None

    def prefix(self, size: int) -> bytes:
        if size > self._limit:
            raise LocalProtocolError(f"frame too large: {size} bytes, the limit is {self._limit}")
        return PREFIX.pack(size)

    def encode(self, body: bytes) -> bytes:
        return self.prefix(len(body)) + body

    def _append_body(self, body: bytearray, chunk: bytes, position: int, found: list[Frame | SkippedFrame]) -> int:
        """Appends to an unfinished body; returns the position after it."""
        part = memoryview(chunk)[position : position + self._missing]
        body += part
        self._missing -= len(part)
        if self._missing == 0:
            found.append(body)
            self._body = None
        return position + len(part)

    def _begin_skipping(
        self, length: int, prefix: bytes, chunk: bytes, start: int, found: list[Frame | SkippedFrame]
    ) -> int:
        """Skips the body of this prefix, or rejects it; returns the position after it."""
        if self._scanner is None or length > self._longest_skipped:
            self.error = self._diagnose_length(length, prefix)
            return len(chunk)
        from becket.framing.oversize import OversizeBody  # most links never meet one

        self._oversize = OversizeBody(self._scanner, length, self._limit)
        return self._skip(self._oversize, chunk, start, found)

    def _skip(self, oversize: OversizeBody, chunk: bytes, position: int, found: list[Frame | SkippedFrame]) -> int:
        """Skips the next part of such a body; returns the position after it."""
        position = oversize.read(chunk, position, found)
        self.error = oversize.error
        if not oversize.missing:
            self._oversize = None
        return position

    def _diagnose_length(self, length: int, prefix: bytes) -> BadFrame:
        # Four letters are a length of half a gigabyte or more; the text is more useful than the number.
        if prefix.isascii() and prefix.decode().isprintable():
            return BadFrame("text where a length belongs", found=prefix, hint="is this another framing, or a print()?")
        return FrameTooLarge(size=length, limit=self._limit)
