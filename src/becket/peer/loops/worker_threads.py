"""Runs functions in daemon threads that are kept for the next function while they are idle.

There is no bound on functions that run at once: one may wait for another, and a bound could make both wait for ever.
Only idle threads are bounded, and each ends by itself after a while.
"""

from __future__ import annotations

from _thread import LockType, allocate_lock
from collections.abc import Callable
from threading import Thread

__all__ = ["WorkerThreads"]

MAX_IDLE = 16
IDLE_SECONDS = 10.0


class WorkerThreads:
    """The worker threads of one loop."""

    def __init__(self) -> None:
        self._idle: list[IdleWorker] = []  # the one used last is used next
        self._is_closed = False

    def run(self, function: Callable[[], object]) -> None:
        """Runs a function, which must not raise, in an idle thread or in a new one."""
        try:
            worker = self._idle.pop()
        except IndexError:
            Thread(target=self._work, args=(function,), name="becket worker", daemon=True).start()
        else:
            worker.assign(function)

    def _work(self, function: Callable[[], object] | None) -> None:
        worker = IdleWorker()
        while function is not None:
            function()
            function = None  # an idle thread keeps nothing of it alive
            if len(self._idle) < MAX_IDLE:
                self._idle.append(worker)
                if self._is_closed:  # before this one was in the list
                    self.close()
                function = worker.wait(self._idle)

    def close(self) -> None:
        """Ends the idle threads now, and the others after their function."""
        self._is_closed = True
        while self._idle:
            try:
                worker = self._idle.pop()
            except IndexError:
                return  # another thread was faster
            worker.assign(None)


class IdleWorker:
    """Waits for the next function of a thread."""

    __slots__ = ("_function", "_is_assigned")

    def __init__(self) -> None:
        self._function: Callable[[], object] | None = None
        self._is_assigned: LockType = allocate_lock()
        self._is_assigned.acquire()

    def assign(self, function: Callable[[], object] | None) -> None:
        """Hands a function over, or None to end the thread. Called once after the worker was taken from the list."""
        self._function = function
        self._is_assigned.release()

    def wait(self, idle: list[IdleWorker]) -> Callable[[], object] | None:
        """Returns the function that was assigned; None at the end, and after `IDLE_SECONDS` without one."""
        if not self._is_assigned.acquire(timeout=IDLE_SECONDS):
            try:
                idle.remove(self)
            except ValueError:
                self._is_assigned.acquire()  # it was taken from the list at this very moment
            else:
                return None
        function, self._function = self._function, None
        return function
