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

__all__ = ["Frame", "Framing", "FramingFactory", "Outline", "SkippedFrame"]

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


FramingFactory = Callable[[Limits], Framing]
"""Creates the framing of a new link: usually the class itself, or `functools.partial(ContentLength, strict=False)`."""
