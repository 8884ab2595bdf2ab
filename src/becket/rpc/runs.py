"""Runs of events: many notifications of one kind, one after the other, which differ in their params alone.

Where a frame begins with the same bytes as the others, it says the same as they do up to its params, and is not parsed
for that once more. Its params are parsed to their last byte, so no frame passes here that would not pass elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from msgspec import Raw, Struct

__all__ = ["Listening", "Run"]

# What is no frame, what is no JSON or none of its type, and what is no text. The usual way tells them apart.
OTHERS = (AttributeError, msgspec.DecodeError, UnicodeDecodeError, RecursionError)
CLOSING = b"}"[0]


class Listening(Struct, frozen=True, eq=False):
    """Who takes the notifications of one method where they are read: `take` gets what `decode` makes of the params, and
    `fail` what has gone wrong with it."""

    decode: Callable[[Raw | bytes], Any]
    take: Callable[[Any], object]
    fail: Callable[[Raw, Exception], object]


class Run:
    """The frames of one method that begin with `start`; those above `longest` bytes go the usual way."""

    __slots__ = ("_longest", "_start", "method", "taken")

    def __init__(self, method: str, start: bytes, longest: int) -> None:
        self.method = method
        self._start = start
        self._longest = longest
        self.taken = 0

    def hand_out(self, frames: Iterator[Any], listening: Listening) -> Any:
        """Hands out events until the frames end, or one is another; returns that one, and None where there is none."""
        start, longest = self._start, self._longest
        decode, take = listening.decode, listening.take
        width = len(start)
        taken = 0
        frame: Any = None
        try:
            for frame in frames:
                try:
                    if not frame.startswith(start) or frame[-1] != CLOSING or len(frame) > longest:
                        return frame
                    event = decode(frame[width:-1])
                except OTHERS:
                    return frame
                if event is None:  # null, which stands for no params
                    return frame
                taken += 1
                take(event)
        except Exception as error:
            listening.fail(Raw(bytes(frame[width:-1])), error)
        finally:
            self.taken = taken
        return None
