"""The body of one frame above the limit, where its size is announced: read by a scanner, and never kept."""

from __future__ import annotations

from becket.errors import BadFrame, FrameTooLarge
from becket.framing.framing import Frame, OpenScanner, SkippedFrame

__all__ = ["OversizeBody"]


class OversizeBody:
    """Skips one body. `error` is set once it cannot be a response; `missing` says how much of it is still to come."""

    __slots__ = ("_excess", "_scanner", "error", "missing", "taken")

    def __init__(self, scanner: OpenScanner, size: int, limit: int) -> None:
        self.error: FrameTooLarge | None = None
        self.missing = size
        self.taken = 0
        self._excess = FrameTooLarge(size=size, limit=limit)
        self._scanner = scanner()

    def read(self, chunk: bytes, position: int, found: list[Frame | SkippedFrame]) -> int:
        """Takes what the chunk has of the body; returns where the chunk goes on behind it."""
        piece = chunk[position : position + self.missing]
        scanner = self._scanner
        scanner.feed(piece)
        self.missing -= len(piece)
        self.taken += len(piece)
        outline = None if self.missing else scanner.end()
        if not (scanner.is_readable and scanner.is_response) or (outline is None and not self.missing):
            self.error = self._excess
            return len(chunk)
        if not self.missing:
            found.append(SkippedFrame(self._excess, outline))
        return position + len(piece)

    def end(self) -> BadFrame:
        """Returns what is wrong when the input ends within this body."""
        return BadFrame(f"truncated body: {self.missing} of {self.taken + self.missing} bytes are missing")
