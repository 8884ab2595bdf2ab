"""Virtual time: a manual clock and an asyncio loop that jumps to its next timer.

For trio there is `trio.testing.MockClock(autojump_threshold=0)`, which does what `VirtualTimeLoop` does.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from typing import Any, TypeVar, TypeVarTuple

__all__ = ["VirtualClock", "VirtualTimeLoop", "run_in_virtual_time"]

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class VirtualClock:
    """A monotonic clock that stands still until it is told to go on: `clock()` reads it, like `time.monotonic()`."""

    def __init__(self, start: float = 0.0) -> None:
        self._now = start

    def __call__(self) -> float:
        return self._now

    def advance(self, seconds: float) -> float:
        """Lets this much time pass and returns the time that it is then.

        Raises:
            ValueError: time does not go backwards.
        """
        if not seconds >= 0:
            raise ValueError(f"a monotonic clock cannot advance by {seconds}")
        self._now += seconds
        return self._now

    def advance_to(self, time: float) -> float:
        """Lets time pass until `time`, which may be now."""
        return self.advance(time - self._now)


class JumpingSelector(selectors.DefaultSelector):
    """Whoever would wait for a timer finds that it is time already. What is ready to be read comes first."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__()
        self.at_work = 0
        self._clock = clock

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if timeout is None or self.at_work:
            return super().select(None)  # no timer, or a thread that is to come before it
        self._clock.advance(max(timeout, 0.0))
        return ready


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An asyncio loop whose hours take milliseconds: when nothing is ready, its clock jumps to the next timer.

    It stands still while a function runs in its executor. For peers in memory: a process outside lives in real time,
    and a loop that waits for one would jump past it."""

    def __init__(self, clock: VirtualClock | None = None) -> None:
        self.clock = clock or VirtualClock()
        self._jumping = JumpingSelector(self.clock)
        super().__init__(self._jumping)

    def time(self) -> float:
        """Returns the virtual time."""
        return self.clock()

    def run_in_executor(self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts) -> asyncio.Future[T]:
        """Runs a function in a thread; time stands still until it has ended."""
        future = super().run_in_executor(executor, func, *args)
        self._jumping.at_work += 1
        future.add_done_callback(self._stop_work)
        return future

    def _stop_work(self, _: asyncio.Future[Any]) -> None:
        self._jumping.at_work -= 1

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """Waits for the threads of its executor, for as long as they take."""
        self._jumping.at_work += 1  # else the timeout that Python sets here would be over at once
        try:
            await super().shutdown_default_executor()
        finally:
            self._jumping.at_work -= 1


def run_in_virtual_time(main: Callable[[], Coroutine[Any, Any, T]], clock: VirtualClock | None = None) -> T:
    """Runs an async function on a `VirtualTimeLoop` and returns its result."""
    with asyncio.Runner(loop_factory=lambda: VirtualTimeLoop(clock)) as runner:
        return runner.run(main())
