"""Skips frames above the limit: the protocols of scanners, and the body of a frame whose size is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from becket.errors import BadFrame, FrameTooLarge
from becket.framing.framing import Frame, Outline, SkippedFrame

__all__ = ["OpenScanner", "OversizeBody", "Scanner", "ScansOversize"]


class Scanner(Protocol):
    """Scans a frame above the limit chunk by chunk, and keeps next to nothing of it."""

    is_readable: bool
    """False once the frame cannot be a single message."""

    is_response: bool
    """False once the frame is a request or a notification."""

    def feed(self, chunk: Frame) -> None:
        """Scans the next bytes of the body."""
        ...

    def end(self) -> Outline | None:
        """Returns the outline of the frame after its last byte; None if it is no message."""
        ...


OpenScanner = Callable[[], Scanner]


class ScansOversize(Protocol):
    """A framing that can skip a frame above the limit, which a scanner of the link reads meanwhile."""

    def scan_oversize(self, scanner: OpenScanner) -> None:
        """Skips responses of up to `limits.longest_skipped` bytes from now on, each replaced by a `SkippedFrame` with
        its outline. A frame in which the scanner finds no response ends the link."""
        ...


class OversizeBody:
    """Skips one body, scanned and never kept. `error` is set once it cannot be a response; `missing` is the number of
    bytes still to come."""

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
