"""Those who want to hear of changes or of records that are safe: how they are told, and how little harm they can do."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock, local

from becket.contract.memory import Appended
from becket.errors import BecketError, Busy
from becket.stores.store import Done

__all__ = ["Watchers", "settle"]

Wake = Callable[[str], object]


class Watchers:
    """Calls each of them after a change, in the thread that made it."""

    def __init__(self, depth: int) -> None:
        self._most = depth
        self._lock = Lock()
        self._wakes: dict[object, Wake] = {}
        self._here = local()  # `depth`: how many changes this thread is telling of, one within the other

    def add(self, wake: Wake) -> Callable[[], None]:
        """Has `wake` called from now on, and returns what ends that."""
        key = object()
        with self._lock:
            self._wakes[key] = wake

        def end() -> None:
            with self._lock:
                self._wakes.pop(key, None)

        return end

    def check_depth(self) -> None:
        """Raises Busy where this thread may make no further change within those that it is telling of."""
        if getattr(self._here, "depth", 0) >= self._most:
            raise Busy("changes made by those who are told of changes", self._most)

    def tell(self, extension: str) -> None:
        """Calls everybody; one that fails is logged, since the change stands."""
        with self._lock:
            wakes = [*self._wakes.values()]
        before = getattr(self._here, "depth", 0)
        self._here.depth = before + 1
        try:
            for wake in wakes:
                call(wake, extension)
        finally:
            self._here.depth = before

    def clear(self) -> None:
        """Has nobody called any more."""
        with self._lock:
            self._wakes.clear()


def call(wake: Wake, extension: str) -> None:
    try:
        wake(extension)
    except Exception as error:  # whoever made the change must not hear that it failed
        log("a watcher of the store failed", error)


def settle(done: Done, outcome: Appended | BecketError) -> None:
    """Calls `done`; one that fails is logged, since the record stands."""
    try:
        done(outcome)
    except Exception as error:
        log("whoever waited for an append failed", error)


def log(what: str, error: Exception) -> None:
    import logging

    logging.getLogger("becket.host").error(what, exc_info=error)
