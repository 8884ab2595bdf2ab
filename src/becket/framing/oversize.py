"""Skips the body of one frame above the limit, if its size is known: scanned, and never kept."""

from __future__ import annotations

from becket.errors import BadFrame, FrameTooLarge
from becket.framing.framing import Frame, OpenScanner, SkippedFrame

__all__ = ["OversizeBody"]


class OversizeBody:
    """Skips one body. `error` is set once it cannot be a response; `missing` is the number of bytes still to come."""

    __slots__ = ("_excess", "_scanner", "error", "missing", "taken")

    def __init__(self, scanner: OpenScanner, size: int, limit: int) -> None:
        self.error: FrameTooLarge | None = None
        self.missing = size
        self.taken = 0
        self._excess = FrameTooLarge(size=size, limit=limit)
        self._scanner = scanner()

    def read(self, chunk: bytes, position: int, found: list[Frame | SkippedFrame]) -> int:
        """Scans the body's part of the chunk; returns the position after it."""
        part = chunk[position : position + self.missing]
        scanner = self._scanner
        scanner.feed(part)
        self.missing -= len(part)
        self.taken += len(part)
        outline = None if self.missing else scanner.end()
        if not (scanner.is_readable and scanner.is_response) or (outline is None and not self.missing):
            self.error = self._excess
            return len(chunk)
        if not self.missing:
            found.append(SkippedFrame(self._excess, outline))
        return position + len(part)

    def end(self) -> BadFrame:
        """Returns the error of an input that ends within this body."""
        return BadFrame(f"truncated body: {self.missing} of {self.taken + self.missing} bytes are missing")
