"""Length-prefixed framing: four bytes, big endian, say how many bytes of body follow. Bodies may be anything."""

from __future__ import annotations

from struct import Struct

from becket.errors import BadFrame, FrameTooLarge, LocalProtocolError
from becket.limits import DEFAULT_LIMITS, Limits
from becket.wire.framing import Frame, Skipped

__all__ = ["LengthPrefixed"]

PREFIX = Struct(">I")
SIZE = PREFIX.size
HIGHEST = 2**32 - 1  # what four bytes can say


class LengthPrefixed:
    """Reads and writes bodies behind a length of four bytes."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self.error: BadFrame | None = None
        self.frames = 0
        self._limit = min(limits.frame, HIGHEST)
        self._prefix = b""  # an unfinished one
        self._body: bytearray | None = None
        self._missing = 0

    @property
    def pending(self) -> int:
        return len(self._prefix) if self._body is None else SIZE + len(self._body)

    def feed(self, chunk: bytes) -> list[Frame | Skipped]:
        if self.error is not None:
            return []
        found: list[Frame | Skipped] = []
        size = len(chunk)
        position = 0
        if self._prefix:
            position = SIZE - len(self._prefix)
            prefix = self._prefix + chunk[:position]
            if len(prefix) < SIZE:
                self._prefix = prefix
                return found
            self._prefix = b""
            (length,) = PREFIX.unpack(prefix)
            if length > self._limit:
                self.error = self._refuse(length, prefix)
                return found
            self._body = bytearray()
            self._missing = length
        if self._body is not None:
            position = self._fill(self._body, chunk, position, found)
        limit = self._limit
        unpack_from = PREFIX.unpack_from
        last = size - SIZE  # no whole prefix begins after it
        while position <= last:
            (length,) = unpack_from(chunk, position)
            if length > limit:
                self.error = self._refuse(length, chunk[position : position + SIZE])
                break
            start = position + SIZE
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
        if self._prefix:
            return BadFrame(f"truncated length: {SIZE - len(self._prefix)} of {SIZE} bytes are missing")
        return None

    def encode(self, body: bytes) -> bytes:
        size = len(body)
        if size > self._limit:
            raise LocalProtocolError(f"frame too large: {size} bytes, the limit is {self._limit}")
        return PREFIX.pack(size) + body

    def _fill(self, body: bytearray, chunk: bytes, position: int, found: list[Frame | Skipped]) -> int:
        """Adds to an unfinished body; returns where the chunk goes on behind it."""
        piece = memoryview(chunk)[position : position + self._missing]
        body += piece
        self._missing -= len(piece)
        if self._missing == 0:
            found.append(body)
            self._body = None
        return position + len(piece)

    def _refuse(self, length: int, prefix: bytes) -> BadFrame:
        # Four letters announce half a gigabyte or more; what they say is more use than the number.
        if prefix.isascii() and prefix.decode().isprintable():
            return BadFrame("text where a length belongs", found=prefix, hint="is this another framing, or a print()?")
        return FrameTooLarge(size=length, limit=self._limit)
