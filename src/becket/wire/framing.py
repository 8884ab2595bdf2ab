"""What a framing is: bytes of any chunking into frames, and one body into the bytes of a frame.

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

__all__ = ["Frame", "Framing", "FramingFactory", "Skipped"]

Frame = bytes | bytearray
"""The body of one frame. A bytearray is handed over for good: the framing never touches it again."""


class Skipped(Struct, frozen=True):
    """Stands where a frame was dropped although the link lives on, and says why."""

    error: BadFrame


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

    def feed(self, chunk: bytes) -> list[Frame | Skipped]:
        """Returns the frames that this chunk completes, in order."""
        ...

    def end(self) -> BadFrame | None:
        """Returns what is wrong when the input ends here: None between frames, else a truncated frame."""
        ...

    def encode(self, body: bytes) -> bytes:
        """Returns the bytes of one frame around `body`.

        Raises:
            LocalProtocolError: this framing cannot carry such a body.
        """
        ...


FramingFactory = Callable[[Limits], Framing]
"""Makes the framing of a new link: usually the class itself, or `functools.partial(ContentLength, strict=False)`."""
