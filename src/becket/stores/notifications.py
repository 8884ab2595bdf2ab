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
    """Calls each of them after a change, in the thread that made it."""

    def __init__(self, depth: int) -> None:
        self._max_depth = depth
        self._lock = Lock()
        self._callbacks: dict[object, ChangeCallback] = {}
        self._depth = local()  # `depth`: how many changes this thread is telling of, one within the other

    def subscribe(self, wake: ChangeCallback) -> Callable[[], None]:
        """Has `wake` called from now on, and returns what ends that."""
        key = object()
        with self._lock:
            self._callbacks[key] = wake

        def end() -> None:
            with self._lock:
                self._callbacks.pop(key, None)

        return end

    def check_depth(self) -> None:
        """Raises Busy where this thread may make no further change within those that it is telling of."""
        if getattr(self._depth, "depth", 0) >= self._max_depth:
            raise Busy("changes made by those who are told of changes", self._max_depth)

    def notify(self, extension: str) -> None:
        """Calls everybody; one that fails is logged, since the change stands."""
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
        """Has nobody called any more."""
        with self._lock:
            self._callbacks.clear()


def call_subscriber(wake: ChangeCallback, extension: str) -> None:
    try:
        wake(extension)
    except Exception as error:  # whoever made the change must not hear that it failed
        log_callback_error("a watcher of the store failed", error)


def complete_append(done: AppendCallback, outcome: Appended | BecketError) -> None:
    """Calls `done`; one that fails is logged, since the record stands."""
    try:
        done(outcome)
    except Exception as error:
        log_callback_error("whoever waited for an append failed", error)


def log_callback_error(what: str, error: Exception) -> None:
    host_logger().error(what, exc_info=error)
