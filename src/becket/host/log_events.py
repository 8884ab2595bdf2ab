"""What extensions log, as events: where somebody wants to know, and no more of it than can be looked at.

The log itself (`host.logs`) has all of it; events are told to everybody in turn, and a flood of them would hold up the
rest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from becket.host.events import Events, ExtensionLogged

__all__ = ["LogEvents", "Throttle"]

MOST_AT_ONCE: Final = 500  # lines of one extension: a long traceback or two
MOST_A_SECOND: Final = 50.0  # in the long run; nobody reads faster


class Throttle:
    """Lets so many pass at once, and so many a second after that; counts the others. Pure: time comes in."""

    __slots__ = ("_at_once", "_left", "_left_out", "_per_second", "_since")

    def __init__(self, at_once: int = MOST_AT_ONCE, per_second: float = MOST_A_SECOND) -> None:
        self._at_once = at_once
        self._per_second = per_second
        self._left = float(at_once)
        self._since = 0.0
        self._left_out = 0

    def take(self, now: float) -> int | None:
        """Returns how many were left out before this one; None where this one is left out too."""
        self._left = min(self._at_once, self._left + (now - self._since) * self._per_second)
        self._since = now
        if self._left < 1:
            self._left_out += 1
            return None
        self._left -= 1
        left_out, self._left_out = self._left_out, 0
        return left_out


class LogEvents:
    """Publishes what one extension logs. It is false while nobody wants to know: then no line need be made."""

    def __init__(self, extension: str, events: Events, clock: Callable[[], float]) -> None:
        self._extension = extension
        self._events = events
        self._clock = clock
        self._throttle = Throttle()

    def __bool__(self) -> bool:
        return self._events.has_subscribers(ExtensionLogged)

    def __call__(self, level: str, line: str) -> None:
        """Tells of a line, if there were not too many."""
        left_out = self._throttle.take(self._clock())
        if left_out is None:
            return
        if left_out:
            self._events.publish(ExtensionLogged(self._extension, "warning", f"{left_out} lines were left out here"))
        self._events.publish(ExtensionLogged(self._extension, level, line))
