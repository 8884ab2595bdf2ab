"""The `Framing` protocol: chunks to frames, and one body to the bytes of a frame.

A framing does not parse JSON. An object of it belongs to one link and holds that link's unfinished input; it is
created by calling its class with the link's `Limits`. It never raises into the reader: it records in `error` why it
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
"""The body of one frame. The framing never touches a bytearray again after it was returned."""


class SkippedFrame(Struct, frozen=True):
    """Takes the place of a dropped frame on a link that goes on, with the reason."""

    error: BadFrame
    outline: Outline | None = None


class Outline(Struct, frozen=True):
    """The result of scanning a frame above the limit: its id as JSON text, None if it has none."""

    id: bytes | None
    is_response: bool


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


class Framing(Protocol):
    """Splits one link's input into frames and wraps its output. Fed by one reader, in order."""

    error: BadFrame | None
    """Why reading stopped for good; None while it goes on. Once set, further input is ignored."""

    frames: int
    """How many frames (and skipped ones) have ended so far: distinguishes one unfinished frame from the next."""

    @property
    def pending(self) -> int:
        """Bytes received of an unfinished frame; 0 between frames."""
        ...

    def feed(self, chunk: bytes) -> list[Frame | SkippedFrame]:
        """Returns the frames that this chunk completes, in order."""
        ...

    def end(self) -> BadFrame | None:
        """Returns the error of an input that ends here: None between frames, else a truncated frame."""
        ...

    def prefix(self, size: int) -> bytes | None:
        """Returns the bytes before a body of this size, if a frame is a prefix and its body; None if it must be encoded
        by `encode`. The result is cached.

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
    """A framing that can skip a frame above the limit, which a scanner of the link reads meanwhile."""

    def scan_oversize(self, scanner: OpenScanner) -> None:
        """Skips responses of up to `limits.longest_skipped` bytes from now on, each replaced by a `SkippedFrame` with
        its outline. A frame in which the scanner finds no response ends the link."""
        ...


FramingFactory = Callable[[Limits], Framing]
"""Creates the framing of a new link: usually the class itself, or `functools.partial(ContentLength, strict=False)`."""
