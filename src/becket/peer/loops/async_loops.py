"""Selects the Loop implementation (asyncio or trio) of the running program.

Everything above is written once, with callbacks for bytes and timers and a waiter for each call. No protocol rule
stands here. Under asyncio the methods are the loop's own, so that the short way stays short; under trio each link has
one system task that owns all others, catches everything, and can be told to end from any task.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context, copy_context
from functools import partial
from time import monotonic, thread_time
from typing import TYPE_CHECKING, Any

from becket.limits import DEFAULT_LIMITS
from becket.methods.dispatch import log_internal_error
from becket.peer.outbound import CURRENT_REQUEST
from becket.peer.transport.rate import Account, Charge, Ledger, charge_nobody

if TYPE_CHECKING:
    import asyncio

    import anyio
    import trio

    from becket.peer.loops.trio_poller import TrioPoller
    from becket.peer.protocols import Loop, LoopFuture, TaskHandle, Timer

__all__ = ["current_loop", "loop_time"]

HAS_EAGER_TASKS = sys.version_info >= (3, 12)

trio_ledgers: trio.lowlevel.RunVar[Ledger | None] | None = None  # made with the first link on trio


async def current_loop() -> Loop:
    """Returns the running event loop, ready for one link."""
    if "trio" in sys.modules:
        import trio

        if trio.lowlevel.in_trio_run():
            return await TrioLoop().start()
    return AsyncioLoop()


def loop_time() -> float:
    """Returns the time of the running event loop. In a callback too, where anyio cannot tell which loop runs."""
    if "trio" in sys.modules:
        import trio

        if trio.lowlevel.in_trio_run():
            return trio.current_time()
    import asyncio

    return asyncio.get_running_loop().time()


class AsyncioLoop:
    """asyncio, or uvloop where the program runs on it."""

    is_reentrant = False
    is_at_nesting_limit = False
    is_in_handler = False
    workers = DEFAULT_LIMITS.workers

    def __init__(self) -> None:
        import asyncio

        from becket.peer.loops._asyncio_fast import FastFuture, InlineWakeups, ledger_of
        from becket.peer.loops._asyncio_shields import ShieldAwareCanceller  # what other loops do not need

        loop = asyncio.get_running_loop()
        self._loop = loop
        self._cancelled = asyncio.CancelledError
        self._current_task = asyncio.current_task
        self._shield = asyncio.shield
        self._tasks: set[asyncio.Task[None]] = set()
        self.cancel: Callable[[Any], None] = ShieldAwareCanceller(loop).cancel
        # The loop's own clock, read without the loop; a program's own loop may have another one.
        has_usual_clock = type(loop).time is asyncio.BaseEventLoop.time
        self.time: Callable[[], float] = monotonic if has_usual_clock else loop.time
        self.call_soon = loop.call_soon
        self.call_later = loop.call_later
        self.remove_reader = loop.remove_reader
        self.add_writer = loop.add_writer
        self.remove_writer = loop.remove_writer
        # Where time is not the usual one, a pause might never end.
        self.ledger = ledger_of(loop) if has_usual_clock or is_uvloop(loop) else Ledger()
        self.charge: Charge = charge_nobody
        self._limiter: anyio.CapacityLimiter | None = None
        self._context = link_context()
        wakeups = self._wakeups = InlineWakeups(loop, self.ledger)
        self.create_future: Callable[[], LoopFuture] = partial(FastFuture, loop, wakeups)
        self.call_after_wakeups = wakeups.call_after_wakeups
        task: Any = asyncio.Task  # the stubs of 3.11 know no `eager_start`
        self.spawn_owned: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]] = loop.create_task
        if loop.get_task_factory() is not None or getattr(loop, "_nest_patched", False):
            pass  # the program's own; or nest_asyncio's, where a first step may wait for what comes after it
        elif HAS_EAGER_TASKS:
            # Without a task switch until its first wait: an `async def` handler at nearly the price of a plain one.
            self.spawn_owned = partial(task, loop=loop, eager_start=True)
        elif type(loop).create_task is asyncio.BaseEventLoop.create_task:
            self._new_task = partial(task, loop=loop, name="becket handler")  # else it gets a number, which takes time
            self._ready: Any = getattr(loop, "_ready", None)
            self.spawn_owned = self._new_task if self._ready is None else self._start_eagerly

    def _start_eagerly(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Starts a task as later versions of Python can, where no other task runs."""
        task: asyncio.Task[None] = self._new_task(coroutine)
        wakeups = self._wakeups
        if wakeups.is_in_callback:
            ready = self._ready
            # Its first step was put last in the queue, and a thread or a signal may have put something behind it. They
            # come in after calls: there is none between this look and `pop`.
            try:
                is_last = ready[-1]._callback.__self__ is task
            except (AttributeError, IndexError):
                is_last = False
            if is_last:
                wakeups.is_in_callback = False
                ready.pop()._run()
                wakeups.is_in_callback = True
        return task

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

    async def run_in_thread(self, function: Callable[..., Any], *arguments: object) -> Any:
        import anyio

        if self._limiter is None:
            self._limiter = anyio.CapacityLimiter(self.workers)  # not anyio's own, which the whole program shares
        return await anyio.to_thread.run_sync(function, *arguments, limiter=self._limiter)

    def wrap_locked(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return function  # nothing nests here

    def is_foreign_cancellation(self, error: BaseException) -> bool:
        task = self._current_task()
        return isinstance(error, self._cancelled) and task is not None and not task.cancelling()

    async def wait_shielded(self, waiter: LoopFuture) -> None:
        if "anyio" in sys.modules:
            import anyio

            # A scope of anyio cancels again in every turn of the loop, for as long as its task lives.
            with anyio.CancelScope(shield=True):
                await self._wait_uncancelled(waiter)
            await anyio.lowlevel.checkpoint_if_cancelled()
        else:
            await self._wait_uncancelled(waiter)

    async def _wait_uncancelled(self, waiter: LoopFuture) -> None:
        cancelled: BaseException | None = None
        while not waiter.done():
            try:
                await self._shield(waiter)
            except self._cancelled as error:
                cancelled = error
        if cancelled is not None:
            raise cancelled

    def close(self) -> None:
        for task in list(self._tasks):
            self.cancel(task)


class TrioLoop:
    """trio: one system task for the link, in whose nursery everything of it runs."""

    is_reentrant = False
    is_at_nesting_limit = False
    is_in_handler = False
    workers = DEFAULT_LIMITS.workers

    def __init__(self) -> None:
        import trio

        from becket.peer.loops.trio_poller import find_poller

        self._trio = trio
        self._find_poller = find_poller
        self._nursery: trio.Nursery | None = None
        self._is_closed = False
        self._has_run_ended = False  # with the whole run, and not because it was told to end
        self._watches: dict[tuple[int, bool], trio.CancelScope] = {}  # where there is no poller
        self._polled: dict[tuple[int, bool], TrioPoller] = {}
        self._run_soon = trio.lowlevel.current_trio_token().run_sync_soon
        self.time = trio.lowlevel.current_clock().current_time  # unlike `trio.current_time` for any thread
        self.ledger = trio_ledger()
        self.charge: Charge = charge_nobody
        self._limiter: anyio.CapacityLimiter | None = None
        self._context = link_context()

    async def start(self) -> TrioLoop:
        started = self._trio.Event()
        self._trio.lowlevel.spawn_system_task(self._run_nursery, started, name="becket link")
        with self._trio.CancelScope(shield=True):  # a caller that is cancelled here could not end it
            await started.wait()
        return self

    async def _run_nursery(self, started: trio.Event) -> None:
        # An exception that left a system task would crash the whole program; what runs here logs its own errors.
        try:
            async with self._trio.open_nursery(strict_exception_groups=True) as nursery:
                self._nursery = nursery
                started.set()
                await self._trio.sleep_forever()
        except BaseExceptionGroup as group:
            _, others = group.split(self._trio.Cancelled)
            if others is not None:
                log_internal_error(others)
        finally:
            self._has_run_ended = not self._is_closed

    def call_soon(self, function: Callable[[], object], /) -> object:
        return self._run_soon(log_errors(function))

    call_after_wakeups = call_soon

    def charge_to(self, account: Account, charge: Charge) -> None:
        self.charge = charge

    def run_turn(self, function: Callable[[], object], /) -> None:
        began, used = monotonic(), thread_time()
        log_errors(function)()
        self.charge(thread_time() - used, monotonic() - began)

    def call_from_thread(self, function: Callable[[], object], /) -> object:
        return self._run_soon(log_errors(function))

    def call_later(self, delay: float, function: Callable[[], object], /) -> Timer:
        scope = self._trio.CancelScope()
        self._start(self._sleep, delay, function, scope)
        return scope

    async def _sleep(self, delay: float, function: Callable[[], object], scope: trio.CancelScope) -> None:
        with scope:
            await self._trio.sleep(max(delay, 0.0))
            log_errors(function)()

    def add_reader(self, fd: int, function: Callable[[], object], /) -> None:
        self._watch(fd, False, self._trio.lowlevel.wait_readable, partial(self.run_turn, function))

    def add_writer(self, fd: int, function: Callable[[], object], /) -> None:
        self._watch(fd, True, self._trio.lowlevel.wait_writable, log_errors(function))

    def remove_reader(self, fd: int, /) -> None:
        self._unwatch(fd, False)

    def remove_writer(self, fd: int, /) -> None:
        self._unwatch(fd, True)

    def notify_closing(self, fd: int) -> None:
        self._trio.lowlevel.notify_closing(fd)

    def _watch(self, fd: int, writes: bool, wait: Callable[[int], Any], function: Callable[[], object]) -> None:
        self._unwatch(fd, writes)
        poller = self._find_poller()
        if poller is not None:
            poller.watch(fd, writes, self._context, function)
            self._polled[fd, writes] = poller
            return
        scope = self._watches[fd, writes] = self._trio.CancelScope()
        self._context.run(self._start, self._watch_fd, fd, wait, function, scope)

    def _unwatch(self, fd: int, writes: bool) -> None:
        scope = self._watches.pop((fd, writes), None)
        if scope is not None:
            scope.cancel()
        poller = self._polled.pop((fd, writes), None)
        if poller is not None:
            poller.unwatch(fd, writes)

    async def _watch_fd(
        self, fd: int, wait: Callable[[int], Any], function: Callable[[], object], scope: trio.CancelScope
    ) -> None:
        with scope:
            try:
                while not scope.cancel_called:  # the function itself may have closed the descriptor
                    await wait(fd)
                    if not scope.cancel_called:  # between its wake-up and now: the number may be another file's
                        function()
            except self._trio.ClosedResourceError:
                return

    def create_future(self) -> LoopFuture:
        if self._has_run_ended:  # nobody reads any more: whoever waited would wait for ever
            raise RuntimeError("the event loop of this link has ended, and the link was not closed")
        return TrioFuture(self._trio)

    def spawn(self, coroutine: Coroutine[Any, Any, None]) -> TaskHandle:
        scope = self._trio.CancelScope()
        self._start(self._run, coroutine, scope)
        return scope

    def spawn_owned(self, coroutine: Coroutine[Any, Any, None], /) -> TaskHandle:
        return self.spawn(coroutine)

    def cancel(self, running: Any, /) -> None:
        running.cancel()

    async def _run(self, coroutine: Coroutine[Any, Any, None], scope: trio.CancelScope) -> None:
        with scope:
            try:
                await coroutine
            except Exception as error:
                log_internal_error(error)

    def _start(self, function: Callable[..., Any], *arguments: object) -> None:
        assert self._nursery is not None
        self._nursery.start_soon(function, *arguments)

    async def run_in_thread(self, function: Callable[..., Any], *arguments: object) -> Any:
        import anyio

        if self._limiter is None:
            self._limiter = anyio.CapacityLimiter(self.workers)  # not anyio's own, which the whole program shares
        return await anyio.to_thread.run_sync(function, *arguments, limiter=self._limiter)

    def wrap_locked(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return function  # nothing nests here

    def is_foreign_cancellation(self, error: BaseException) -> bool:
        return False  # a cancellation never leaves its scope here

    async def wait_shielded(self, waiter: LoopFuture) -> None:
        with self._trio.CancelScope(shield=True):
            await waiter
        await self._trio.lowlevel.checkpoint_if_cancelled()

    def close(self) -> None:
        self._is_closed = True
        for fd, writes in [*self._polled]:
            self._unwatch(fd, writes)
        if self._nursery is not None:
            self._nursery.cancel_scope.cancel()


class TrioFuture:
    """A future for one task of trio."""

    __slots__ = ("_is_set", "_task", "_trio")

    def __init__(self, trio: Any) -> None:
        self._trio = trio
        self._task: Any = None
        self._is_set = False

    def done(self) -> bool:
        return self._is_set

    def set_result(self, result: None, /) -> None:
        self._is_set = True
        if self._task is not None:
            self._trio.lowlevel.reschedule(self._task)
            self._task = None

    def __await__(self) -> Generator[Any, None, None]:
        return self._wait().__await__()

    async def _wait(self) -> None:
        if self._is_set:
            await self._trio.lowlevel.checkpoint()
            return
        self._task = self._trio.lowlevel.current_task()

        def abort(_: Any) -> Any:
            self._task = None
            return self._trio.lowlevel.Abort.SUCCEEDED

        await self._trio.lowlevel.wait_task_rescheduled(abort)


def link_context() -> Context:
    """Returns the context that callbacks of a link run in: that of the task that connects, outside of any request.

    Reading is resumed by many tasks, and their context variables are none of the business of a handler."""
    context = copy_context()
    if context.get(CURRENT_REQUEST) is not None:
        context.run(CURRENT_REQUEST.set, None)
    return context


def is_uvloop(loop: object) -> bool:
    return type(loop).__module__.startswith("uvloop")


def trio_ledger() -> Ledger:
    """Returns the ledger that all links of this run of trio share."""
    import trio

    global trio_ledgers
    if trio_ledgers is None:
        trio_ledgers = trio.lowlevel.RunVar("becket ledger")
    ledger = trio_ledgers.get(None)
    if type(trio.lowlevel.current_clock()).__name__ != "SystemClock":
        return Ledger()  # where time is that of a test, a pause might never end
    if ledger is None:
        ledger = Ledger()
        trio_ledgers.set(ledger)
    return ledger


def log_errors(function: Callable[[], object]) -> Callable[[], None]:
    def call() -> None:
        try:
            function()
        except Exception as error:
            log_internal_error(error)

    return call
