"""A link on asyncio or uvloop: the loop's own methods, with faster wake-ups unless the environment turns them off.

With `BECKET_PLAIN_LOOP=1` in the environment a task that was woken resumes in the next iteration of the loop, which
costs one iteration for each call."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine
from functools import partial
from time import monotonic, thread_time
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from becket.limits import DEFAULT_LIMITS
from becket.peer.loops._asyncio_fast import InlineWakeups, ShieldAwareCanceller, is_nested_loop
from becket.peer.loops.async_base import AsyncLoop
from becket.peer.transport.fair_share import Account, Charge, Ledger, charge_nothing

if TYPE_CHECKING:
    from becket.jsonrpc.call_protocols import FutureLike
    from becket.peer.protocols import LoopFuture, TaskHandle

__all__ = ["AsyncioLoop"]

PLAIN_SWITCH = "BECKET_PLAIN_LOOP"
HAS_EAGER_TASKS = sys.version_info >= (3, 12)
TaskFactory = Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]

ledgers: WeakKeyDictionary[asyncio.AbstractEventLoop, Ledger] = WeakKeyDictionary()


class AsyncioLoop(AsyncLoop):
    """asyncio, or uvloop where the program runs on it."""

    def __init__(self) -> None:
        super().__init__()
        loop = asyncio.get_running_loop()
        self._loop = loop
        self._tasks: set[asyncio.Task[None]] = set()
        self.cancel: Callable[[Any], None] = ShieldAwareCanceller(loop).cancel
        # The loop's own clock, read without the loop; a custom loop may have another one.
        has_usual_clock = type(loop).time is asyncio.BaseEventLoop.time
        self.time: Callable[[], float] = monotonic if has_usual_clock else loop.time
        self.call_soon = loop.call_soon
        self.call_later = loop.call_later
        self.remove_reader = loop.remove_reader
        self.add_writer = loop.add_writer
        self.remove_writer = loop.remove_writer
        # with a test's clock, a pause might never end
        self.ledger = ledger_of(loop) if has_usual_clock or is_uvloop(loop) else Ledger()
        self.create_future: Callable[[], LoopFuture] = partial(asyncio.Future, loop=loop)
        wakeups = PlainWakeups if os.environ.get(PLAIN_SWITCH) == "1" else InlineWakeups
        self._wakeups: PlainWakeups | InlineWakeups = wakeups(loop, self.ledger)
        self.wake = self._wakeups.wake
        self.call_after_wakeups = self._wakeups.call_after_wakeups
        self.spawn_owned = find_task_factory(loop)

    def charge_to(self, account: Account, charge: Charge) -> None:
        self._wakeups.account, self._wakeups.charge = account, charge
        self.charge = charge

    def run_turn(self, function: Callable[[], object], /) -> None:
        self._wakeups.run_callback(function)

    def call_from_thread(self, function: Callable[[], object], /) -> object:
        return self._loop.call_soon_threadsafe(self._wakeups.run_callback, function)

    def add_reader(self, fd: int, callback: Callable[[], object]) -> object:
        return self._context.run(self._loop.add_reader, fd, self._wakeups.run_callback, callback)

    def notify_closing(self, fd: int) -> None:
        """Nothing to do: removing a reader or writer is final here."""

    def spawn(self, coroutine: Coroutine[Any, Any, None]) -> TaskHandle:
        task = self.spawn_owned(coroutine)
        if not task.done():
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return task

    def is_foreign_cancellation(self, error: BaseException) -> bool:
        task = asyncio.current_task()
        return isinstance(error, asyncio.CancelledError) and task is not None and not task.cancelling()

    async def wait_shielded(self, waiter: LoopFuture) -> None:
        if "anyio" in sys.modules:
            import anyio

            # A scope of anyio cancels again in every iteration of the loop, for as long as its task lives.
            with anyio.CancelScope(shield=True):
                await self._wait_uncancelled(waiter)
            await anyio.lowlevel.checkpoint_if_cancelled()
        else:
            await self._wait_uncancelled(waiter)

    async def _wait_uncancelled(self, waiter: LoopFuture) -> None:
        cancelled: BaseException | None = None
        while not waiter.done():
            try:
                await asyncio.shield(waiter)
            except asyncio.CancelledError as error:
                cancelled = error
        if cancelled is not None:
            raise cancelled

    def close(self) -> None:
        for task in list(self._tasks):
            self.cancel(task)


class PlainWakeups:
    """Runs callbacks of a link; the tasks that they wake resume in the next iteration of the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, ledger: Ledger) -> None:
        self._ledger = ledger
        self.account = Account(ledger, DEFAULT_LIMITS)
        self.charge: Charge = charge_nothing
        self.call_after_wakeups = loop.call_soon

    def wake(self, waiter: FutureLike, /) -> None:
        if not waiter.done():
            waiter.set_result(None)

    def run_callback(self, callback: Callable[[], object]) -> None:
        began, used = monotonic(), thread_time()
        callback()
        if self._ledger.is_shared:
            self.charge(thread_time() - used, monotonic() - began)


def find_task_factory(loop: asyncio.AbstractEventLoop) -> TaskFactory:
    """Returns a function that creates a handler's task, if possible one that runs to its first wait at once."""
    has_own = loop.get_task_factory() is not None  # the program's
    if HAS_EAGER_TASKS and not has_own and not is_nested_loop(loop):
        task: Any = asyncio.Task  # the stubs of 3.11 lack `eager_start`
        return partial(task, loop=loop, eager_start=True)
    return partial(loop.create_task, name="becket handler")  # else it gets a number, which takes time


def ledger_of(loop: asyncio.AbstractEventLoop) -> Ledger:
    """Returns the ledger that all links of this loop share."""
    ledger = ledgers.get(loop)
    if ledger is None:
        ledger = ledgers[loop] = Ledger()
    return ledger


def is_uvloop(loop: object) -> bool:
    return type(loop).__module__.startswith("uvloop")
