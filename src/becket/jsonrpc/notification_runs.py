"""Fast path for consecutive notifications of one method that share a prefix.

Where a frame begins with the same bytes as the others, it says the same as they do up to its params, and is not parsed
for that once more. Its params are parsed to their last byte, so no frame passes here that would not pass elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from msgspec import Raw, Struct

__all__ = ["BulkHandler", "NotificationRun"]

# What is no frame, what is no JSON or none of its type, and what is no text. The usual way tells them apart.
FALLBACK_ERRORS = (AttributeError, msgspec.DecodeError, UnicodeDecodeError, RecursionError)
CLOSING = b"}"[0]


class BulkHandler(Struct, frozen=True, eq=False):
    """Who takes the notifications of one method where they are read: `handle` gets what `decode` makes of the params,
    and `on_error` what has gone wrong with it."""

    decode: Callable[[Raw | bytes], Any]
    handle: Callable[[Any], object]
    on_error: Callable[[Raw, Exception], object]


class NotificationRun:
    """The frames of one method that begin with `start`; those above `longest` bytes go the usual way."""

    __slots__ = ("_longest", "_start", "count", "method")

    def __init__(self, method: str, start: bytes, longest: int) -> None:
        self.method = method
        self._start = start
        self._longest = longest
        self.count = 0

    def dispatch(self, frames: Iterator[Any], listening: BulkHandler) -> Any:
        """Hands out events until the frames end, or one is another; returns that one, and None where there is none."""
        start, longest = self._start, self._longest
        decode, take = listening.decode, listening.handle
        width = len(start)
        taken = 0
        frame: Any = None
        try:
            for frame in frames:
                try:
                    if not frame.startswith(start) or frame[-1] != CLOSING or len(frame) > longest:
                        return frame
                    event = decode(frame[width:-1])
                except FALLBACK_ERRORS:
                    return frame
                if event is None:  # null, which stands for no params
                    return frame
                taken += 1
                take(event)
        except Exception as error:
            listening.on_error(Raw(bytes(frame[width:-1])), error)
        finally:
            self.count = taken
        return None
