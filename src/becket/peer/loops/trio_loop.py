"""A link on trio: one system task for each link owns all others, catches everything, and can be ended from any task."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from functools import partial
from operator import methodcaller
from time import monotonic, thread_time
from typing import TYPE_CHECKING, Any

import trio

from becket.methods.error_mapping import log_internal_error
from becket.peer.loops.async_base import AsyncLoop
from becket.peer.loops.trio_poller import TrioPoller, find_poller
from becket.peer.transport.fair_share import Account, Charge, Ledger

if TYPE_CHECKING:
    from becket.jsonrpc.call_protocols import FutureLike
    from becket.peer.protocols import LoopFuture, TaskHandle, Timer

__all__ = ["TrioLoop"]

LEDGER: trio.lowlevel.RunVar[Ledger | None] = trio.lowlevel.RunVar("becket ledger")


class TrioLoop(AsyncLoop):
    """trio: one system task for the link, whose nursery runs all of its tasks."""

    def __init__(self) -> None:
        super().__init__()
        self._nursery: trio.Nursery | None = None
        self._is_closed = False
        self._has_run_ended = False  # the whole run was cancelled, not this link
        self._watches: dict[tuple[int, bool], trio.CancelScope] = {}  # where there is no poller
        self._polled: dict[tuple[int, bool], TrioPoller] = {}
        self._run_soon = trio.lowlevel.current_trio_token().run_sync_soon
        self.time = trio.lowlevel.current_clock().current_time  # unlike `trio.current_time` usable in any thread
        self.wake: Callable[[FutureLike], None] = methodcaller("set_result", None)
        self.ledger = trio_ledger()

    async def start(self) -> TrioLoop:
        started = trio.Event()
        trio.lowlevel.spawn_system_task(self._run_nursery, started, name="becket link")
        with trio.CancelScope(shield=True):  # a caller that is cancelled here could not end it
            await started.wait()
        return self

    async def _run_nursery(self, started: trio.Event) -> None:
        # An exception that left a system task would crash the whole program; what runs here logs its own errors.
        try:
            async with trio.open_nursery(strict_exception_groups=True) as nursery:
                self._nursery = nursery
                started.set()
                await trio.sleep_forever()
        except BaseExceptionGroup as group:
            _, others = group.split(trio.Cancelled)
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
        scope = trio.CancelScope()
        self._start(self._sleep, delay, function, scope)
        return scope

    async def _sleep(self, delay: float, function: Callable[[], object], scope: trio.CancelScope) -> None:
        with scope:
            await trio.sleep(max(delay, 0.0))
            log_errors(function)()

    def add_reader(self, fd: int, function: Callable[[], object], /) -> None:
        self._watch(fd, False, trio.lowlevel.wait_readable, partial(self.run_turn, function))

    def add_writer(self, fd: int, function: Callable[[], object], /) -> None:
        self._watch(fd, True, trio.lowlevel.wait_writable, log_errors(function))

    def remove_reader(self, fd: int, /) -> None:
        self._unwatch(fd, False)

    def remove_writer(self, fd: int, /) -> None:
        self._unwatch(fd, True)

    def notify_closing(self, fd: int) -> None:
        trio.lowlevel.notify_closing(fd)

    def _watch(self, fd: int, writes: bool, wait: Callable[[int], Any], function: Callable[[], object]) -> None:
        self._unwatch(fd, writes)
        poller = find_poller()
        if poller is not None:
            poller.watch(fd, writes, self._context, function)
            self._polled[fd, writes] = poller
            return
        scope = self._watches[fd, writes] = trio.CancelScope()
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
                    if not scope.cancel_called:  # closed between its wake-up and now: the number may be another file's
                        function()
            except trio.ClosedResourceError:
                return

    def create_future(self) -> LoopFuture:
        if self._has_run_ended:  # no reader is left: the waiter would wait for ever
            raise RuntimeError("the event loop of this link has ended, and the link was not closed")
        return TrioFuture()

    def spawn(self, coroutine: Coroutine[Any, Any, None]) -> TaskHandle:
        scope = trio.CancelScope()
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

    def is_foreign_cancellation(self, error: BaseException) -> bool:
        return False  # a cancellation never leaves its scope here

    async def wait_shielded(self, waiter: LoopFuture) -> None:
        with trio.CancelScope(shield=True):
            await waiter
        await trio.lowlevel.checkpoint_if_cancelled()

    def close(self) -> None:
        self._is_closed = True
        for fd, writes in [*self._polled]:
            self._unwatch(fd, writes)
        if self._nursery is not None:
            self._nursery.cancel_scope.cancel()


class TrioFuture:
    """A future for one task of trio."""

    __slots__ = ("_is_set", "_task")

    def __init__(self) -> None:
        self._task: Any = None
        self._is_set = False

    def done(self) -> bool:
        return self._is_set

    def set_result(self, result: None, /) -> None:
        self._is_set = True
        if self._task is not None:
            trio.lowlevel.reschedule(self._task)
            self._task = None

    def __await__(self) -> Generator[Any, None, None]:
        return self._wait().__await__()

    async def _wait(self) -> None:
        if self._is_set:
            await trio.lowlevel.checkpoint()
            return
        self._task = trio.lowlevel.current_task()

        def abort(_: Any) -> Any:
            self._task = None
            return trio.lowlevel.Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(abort)


def trio_ledger() -> Ledger:
    """Returns the ledger that all links of this run of trio share."""
    if type(trio.lowlevel.current_clock()).__name__ != "SystemClock":
        return Ledger()  # with a test's clock, a pause might never end
    ledger = LEDGER.get(None)
    if ledger is None:
        ledger = Ledger()
        LEDGER.set(ledger)
    return ledger


def log_errors(function: Callable[[], object]) -> Callable[[], None]:
    def call() -> None:
        try:
            function()
        except Exception as error:
            log_internal_error(error)

    return call
