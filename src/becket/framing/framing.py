"""The `Framing` protocol: chunks to frames, and one body to the bytes of a frame.

A framing knows nothing of JSON. An object of it belongs to one link and holds that link's unfinished input; it is
made by calling its class with the link's `Limits`. It never raises into the reader: it records in `error` why it
stopped, and the frames that were complete before are still delivered.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from becket.errors import BadFrame
from becket.limits import Limits

__all__ = ["Frame", "Framing", "FramingFactory", "OpenScanner", "Outline", "Scanner", "ScansOversize", "SkippedFrame"]

Frame = bytes | bytearray
"""The body of one frame. A bytearray is handed over for good: the framing never touches it again."""


class SkippedFrame(Struct, frozen=True):
    """Stands where a frame was dropped although the link lives on, and says why."""

    error: BadFrame
    outline: Outline | None = None


class Outline(Struct, frozen=True):
    """What a scanner has found in a frame above the limit: its id as JSON text, None where it has none."""

    id: bytes | None
    is_response: bool


class Scanner(Protocol):
    """Reads a frame above the limit piece by piece, and keeps next to nothing of it."""

    is_readable: bool
    """False once the frame is no single message, whatever follows."""

    is_response: bool
    """False once the frame is a request or a notification."""

    def feed(self, piece: Frame) -> None:
        """Reads the next bytes of the body."""
        ...

    def end(self) -> Outline | None:
        """Returns what the frame is, now that all of it was read; None where it is no message."""
        ...


OpenScanner = Callable[[], Scanner]


class Framing(Protocol):
    """Cuts one link's input into frames and wraps its output. Fed by one reader, in order."""

    error: BadFrame | None
    """Why reading stopped for good; None while it goes on. Once set, further input is ignored."""

    frames: int
    """How many frames (and skipped ones) have ended so far: tells one unfinished frame from the next."""

    @property
    def pending(self) -> int:
        """Bytes taken of a frame that has begun and not ended; 0 between frames."""
        ...

    def feed(self, chunk: bytes) -> list[Frame | SkippedFrame]:
        """Returns the frames that this chunk completes, in order."""
        ...

    def end(self) -> BadFrame | None:
        """Returns what is wrong when the input ends here: None between frames, else a truncated frame."""
        ...

    def prefix(self, size: int) -> bytes | None:
        """Returns the bytes before a body of this size, where a frame is a prefix and its body; None where only
        `encode` can tell. What it returns is cached.

        Raises:
            LocalProtocolError: a body may not be that large.
        """
        ...

    def encode(self, body: bytes) -> bytes:
        """Returns the bytes of one frame around `body`.

        Raises:
            LocalProtocolError: this framing cannot carry such a body.
        """
        ...


class ScansOversize(Protocol):
    """A framing that can pass over a frame above the limit. What a link gives it reads such a frame meanwhile."""

    def scan_oversize(self, scanner: OpenScanner) -> None:
        """From now on skips responses of up to `limits.longest_skipped` bytes, each of which stands as `SkippedFrame`
        in its place, with its outline. A frame in which the scanner finds no response ends the link."""
        ...


FramingFactory = Callable[[Limits], Framing]
"""Makes the framing of a new link: usually the class itself, or `functools.partial(ContentLength, strict=False)`."""
