"""Notifies subscribers of config changes and callers of finished appends."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock, local

from becket._loggers import host_logger
from becket.contract.memory import Appended
from becket.errors import BecketError, Busy
from becket.stores.store import AppendCallback

__all__ = ["ChangeNotifier", "complete_append"]

ChangeCallback = Callable[[str], object]


class ChangeNotifier:
    """Calls every subscriber after a change, in the thread that made the change."""

    def __init__(self, depth: int) -> None:
        self._max_depth = depth
        self._lock = Lock()
        self._callbacks: dict[object, ChangeCallback] = {}
        self._depth = local()  # `depth`: nested notifications in this thread

    def subscribe(self, wake: ChangeCallback) -> Callable[[], None]:
        """Subscribes `wake`; returns a function that ends the subscription."""
        key = object()
        with self._lock:
            self._callbacks[key] = wake

        def end() -> None:
            with self._lock:
                self._callbacks.pop(key, None)

        return end

    def check_depth(self) -> None:
        """Raises Busy if this thread is already within `call_depth` nested notifications."""
        if getattr(self._depth, "depth", 0) >= self._max_depth:
            raise Busy("nested changes in change callbacks", self._max_depth)

    def notify(self, extension: str) -> None:
        """Calls every subscriber. An exception is logged and not raised, since the change is already stored."""
        with self._lock:
            wakes = [*self._callbacks.values()]
        before = getattr(self._depth, "depth", 0)
        self._depth.depth = before + 1
        try:
            for wake in wakes:
                call_subscriber(wake, extension)
        finally:
            self._depth.depth = before

    def clear(self) -> None:
        """Removes all subscribers."""
        with self._lock:
            self._callbacks.clear()


def call_subscriber(wake: ChangeCallback, extension: str) -> None:
    try:
        wake(extension)
    except Exception as error:  # the change itself has succeeded
        log_callback_error("a config change callback failed", error)


def complete_append(done: AppendCallback, outcome: Appended | BecketError) -> None:
    """Calls `done`. An exception is logged and not raised, since the append is already decided."""
    try:
        done(outcome)
    except Exception as error:
        log_callback_error("an append callback failed", error)


def log_callback_error(what: str, error: Exception) -> None:
    host_logger().error(what, exc_info=error)
