"""Log of one extension: writes its log notifications and stderr lines to `becket.ext.<id>`.

The log itself (`host.logs`) has all of it; events are told to everybody in turn, and a flood of them would hold up the
rest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from becket.host.events import EventBus, ExtensionLogged

__all__ = ["LogEventPublisher", "LogRateLimit"]

BURST: Final = 500  # lines of one extension: a long traceback or two
LINES_PER_SECOND: Final = 50.0  # in the long run; nobody reads faster


class LogRateLimit:
    """Lets so many pass at once, and so many a second after that; counts the others. Pure: time comes in."""

    __slots__ = ("_at_once", "_dropped", "_left", "_per_second", "_since")

    def __init__(self, at_once: int = BURST, per_second: float = LINES_PER_SECOND) -> None:
        self._at_once = at_once
        self._per_second = per_second
        self._left = float(at_once)
        self._since = 0.0
        self._dropped = 0

    def acquire(self, now: float) -> int | None:
        """Returns how many were left out before this one; None where this one is left out too."""
        self._left = min(self._at_once, self._left + (now - self._since) * self._per_second)
        self._since = now
        if self._left < 1:
            self._dropped += 1
            return None
        self._left -= 1
        left_out, self._dropped = self._dropped, 0
        return left_out


class LogEventPublisher:
    """Publishes what one extension logs. It is false while nobody wants to know: then no line need be made."""

    def __init__(self, extension: str, events: EventBus, clock: Callable[[], float]) -> None:
        self._extension = extension
        self._events = events
        self._clock = clock
        self._throttle = LogRateLimit()

    def __bool__(self) -> bool:
        return self._events.has_subscribers(ExtensionLogged)

    def __call__(self, level: str, line: str) -> None:
        """Tells of a line, if there were not too many."""
        left_out = self._throttle.acquire(self._clock())
        if left_out is None:
            return
        if left_out:
            self._events.publish(ExtensionLogged(self._extension, "warning", f"{left_out} lines were left out here"))
        self._events.publish(ExtensionLogged(self._extension, level, line))
