"""Virtual time: a manual clock and an asyncio loop that jumps to its next timer.

For trio use `trio.testing.MockClock(autojump_threshold=0)`, which is the same as `VirtualTimeLoop`.
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
    """A monotonic clock that changes only by `advance`: `clock()` reads it, like `time.monotonic()`."""

    def __init__(self, start: float = 0.0) -> None:
        self._now = start

    def __call__(self) -> float:
        return self._now

    def advance(self, seconds: float) -> float:
        """Advances the clock and returns the new time.

        Raises:
            ValueError: `seconds` is negative.
        """
        if not seconds >= 0:
            raise ValueError(f"a monotonic clock cannot advance by {seconds}")
        self._now += seconds
        return self._now

    def advance_to(self, time: float) -> float:
        """Advances the clock to `time`, which may be now."""
        return self.advance(time - self._now)


class JumpingSelector(selectors.DefaultSelector):
    """Advances the clock to the next timer instead of waiting for it. Ready descriptors come first."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__()
        self.at_work = 0
        self._clock = clock

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if timeout is None or self.at_work:
            return super().select(None)  # no timer, or a running executor function comes first
        self._clock.advance(max(timeout, 0.0))
        return ready


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An asyncio loop in virtual time: when nothing is ready, its clock jumps to the next timer.

    The clock stands still while a function runs in the executor. For peers in memory only: child processes run in
    real time, and the loop would jump past a timeout while it waits for one."""

    def __init__(self, clock: VirtualClock | None = None) -> None:
        self.clock = clock or VirtualClock()
        self._jumping = JumpingSelector(self.clock)
        super().__init__(self._jumping)

    def time(self) -> float:
        """Returns the virtual time."""
        return self.clock()

    def run_in_executor(self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts) -> asyncio.Future[T]:
        """Runs a function in a thread; the clock stands still until it returns."""
        future = super().run_in_executor(executor, func, *args)
        self._jumping.at_work += 1
        future.add_done_callback(self._stop_work)
        return future

    def _stop_work(self, _: asyncio.Future[Any]) -> None:
        self._jumping.at_work -= 1

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """Waits for the threads of the executor, for as long as they take."""
        self._jumping.at_work += 1  # otherwise the timeout that Python sets here would expire at once
        try:
            await super().shutdown_default_executor()
        finally:
            self._jumping.at_work -= 1


def run_in_virtual_time(main: Callable[[], Coroutine[Any, Any, T]], clock: VirtualClock | None = None) -> T:
    """Runs an async function on a `VirtualTimeLoop` and returns its result."""
    with asyncio.Runner(loop_factory=lambda: VirtualTimeLoop(clock)) as runner:
        return runner.run(main())
