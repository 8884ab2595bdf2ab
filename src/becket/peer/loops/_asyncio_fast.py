"""Every use of private APIs of asyncio and anyio: futures that resume tasks early, and shields that are respected.

asyncio resumes a task in the next iteration of its loop, which costs as much as all the rest of a call. A `FastFuture`
resumes it at the end of the read callback instead, where no other task runs: asyncio takes it for a future (see
`asyncio.isfuture`), and `InlineWakeups.run_callback` runs its callbacks. A future that is set from elsewhere resumes
its task in the next iteration, as usual. `BECKET_PLAIN_LOOP=1` in the environment turns this off (`asyncio_loop`).

`Task.cancel` of asyncio reaches into shielded scopes of anyio. The scopes of a task are looked up in anyio's private
table when it is cancelled; with a version of anyio that keeps them elsewhere, nothing is shielded.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from contextvars import Context
from functools import partial
from itertools import repeat
from time import monotonic, thread_time
from typing import Any

from msgspec import Struct

from becket.limits import DEFAULT_LIMITS
from becket.peer.transport.fair_share import Account, Charge, Ledger, charge_nothing

__all__ = ["FastFuture", "InlineWakeups", "ShieldAwareCanceller"]


class InlineWakeups:
    """The waiters of one link that resume at the end of its callback."""

    __slots__ = ("_after", "_ledger", "_loop", "account", "charge", "is_in_callback", "ready_futures")

    def __init__(self, loop: asyncio.AbstractEventLoop, ledger: Ledger) -> None:
        self._loop = loop
        self._ledger = ledger
        self.account = Account(ledger, DEFAULT_LIMITS)
        self.charge: Charge = charge_nothing
        self.ready_futures: list[FastFuture] = []
        self._after: list[Callable[[], object]] = []
        self.is_in_callback = False  # a callback runs, and no task

    def call_after_wakeups(self, function: Callable[[], object]) -> None:
        """Calls this when the tasks woken so far have run."""
        if self.is_in_callback:
            self._after.append(function)
        else:
            self._loop.call_soon(function)

    def run_callback(self, callback: Callable[[], object]) -> None:
        """Runs a callback of the loop, then resumes the tasks that it has woken; the link is charged for both."""
        began = used = 0.0
        if is_shared := self._ledger.is_shared:
            began, used = monotonic(), thread_time()
        self.is_in_callback = True
        try:
            callback()
        except BaseException:  # the program ends, most likely: no task resumes within that
            self.is_in_callback = False
            self._resume_ready(later=True)
            raise
        self.is_in_callback = False
        woken = self.ready_futures
        if len(woken) == 1 and not self._after:
            woken.pop().run_callbacks()  # one call after another
        elif woken or self._after:
            # With nest_asyncio one of them may run the loop within itself, and wait there for the others.
            self._resume_ready(later=getattr(self._loop, "_nest_patched", False))
        if is_shared:
            self.charge(thread_time() - used, monotonic() - began)

    def _resume_ready(self, later: bool) -> None:
        woken, self.ready_futures = self.ready_futures, []
        after, self._after = self._after, []
        left = iter(woken)
        until = monotonic() + self.account.turn
        try:
            if not later:
                for waiter in left:  # as `run_callbacks` does, without a call for each
                    context = waiter.context
                    if context is None or waiter.extra_callbacks:
                        waiter.schedule_callbacks()
                    else:
                        callback, waiter.callback = waiter.callback, None
                        context.run(callback, waiter)
                        if monotonic() > until:
                            break
                if others := list(left):  # they have waited longer than the tasks that the next callback wakes
                    self.ready_futures[:0] = others
                    self._ledger.wait(self.account, partial(self.run_callback, nothing), self._loop.call_soon)
        finally:
            for waiter in left:  # if one of them has ended the program, the others wait for their turn
                waiter.schedule_callbacks()
            for function in after:
                function()


RETURN_NONE: Callable[[], None] = repeat(None).__next__  # a function in C that returns None
EXHAUSTED: Iterator[Any] = iter(())


class FastFuture(Struct, eq=False):
    """A future of asyncio without a result, whose task resumes as `InlineWakeups` decides.

    Setting it again has no effect: its task may have been cancelled before."""

    _loop: asyncio.AbstractEventLoop
    _wakeups: InlineWakeups
    _asyncio_future_blocking: bool = False
    _is_done: bool = False
    callback: Any = None
    context: Context | None = None
    extra_callbacks: tuple[tuple[Any, Context | None], ...] = ()
    _cancelled: tuple[object, ...] | None = None  # the message; keeping the error itself would be a cycle
    result: Callable[[], None] = RETURN_NONE

    @property  # type: ignore[misc]
    def __class__(self) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        return asyncio.Future  # for `isinstance`: anyio uses it before it cancels a task that was woken already

    def __repr__(self) -> str:
        state = "pending" if not self._is_done else "done" if self._cancelled is None else "cancelled"
        return f"<FastFuture {state}>"  # without its task, whose repr shows this one

    def __await__(self) -> Any:  # an iterator is enough, and cheaper than a generator
        if self._is_done:
            self.result()
            return EXHAUSTED
        self._asyncio_future_blocking = True
        return iter((self,))  # the task calls `result` itself, and throws what that raises

    def done(self) -> bool:
        return self._is_done

    def cancelled(self) -> bool:
        return self._cancelled is not None

    def _make_cancelled_error(self) -> asyncio.CancelledError:  # `asyncio.gather` calls it
        return asyncio.CancelledError(*self._cancelled or ())

    def exception(self) -> BaseException | None:
        self.result()
        return None

    def get_loop(self) -> asyncio.AbstractEventLoop:
        return self._loop

    def set_result(self, result: None, /) -> None:
        if self._is_done:
            return
        self._is_done = True
        if self.callback is not None:
            wakeups = self._wakeups
            if wakeups.is_in_callback:
                wakeups.ready_futures.append(self)
            else:
                self.schedule_callbacks()

    def cancel(self, msg: object = None) -> bool:
        if self._is_done:
            return False
        self._is_done = True
        self._cancelled = () if msg is None else (msg,)
        self.result = partial(raise_cancelled, self._cancelled)
        if self.callback is not None:
            self.schedule_callbacks()
        return True

    def add_done_callback(self, callback: Any, /, *, context: Context | None = None) -> None:
        if self._is_done:
            self._loop.call_soon(callback, self, context=context)
        elif self.callback is None:
            self.callback, self.context = callback, context
        else:
            self.extra_callbacks += ((callback, context),)

    def remove_done_callback(self, callback: Any, /) -> int:
        waiting = self._pop_callbacks()
        kept = [(one, context) for one, context in waiting if one != callback]
        for one, context in kept:
            self.add_done_callback(one, context=context)
        return len(waiting) - len(kept)

    def _pop_callbacks(self) -> list[tuple[Any, Context | None]]:
        waiting = [] if self.callback is None else [(self.callback, self.context), *self.extra_callbacks]
        self.callback, self.context, self.extra_callbacks = None, None, ()
        return waiting

    def run_callbacks(self) -> None:
        """Calls the callbacks now."""
        if self.context is None or self.extra_callbacks:
            self.schedule_callbacks()
            return
        callback, self.callback = self.callback, None
        self.context.run(callback, self)

    def schedule_callbacks(self) -> None:
        """Calls the callbacks in the loop's next iteration."""
        for callback, context in self._pop_callbacks():
            self._loop.call_soon(callback, self, context=context)


def nothing() -> None:
    """Does nothing, as a callback after which woken tasks resume."""


def raise_cancelled(message: tuple[object, ...]) -> None:
    raise asyncio.CancelledError(*message)


# -- shields of anyio


class ShieldAwareCanceller:
    """Cancels tasks of one loop, once per request, where no shield prevents it."""

    __slots__ = ("_deferred", "_loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._deferred: set[asyncio.Task[None]] = set()  # those to cancel when they leave their shield

    def cancel(self, task: asyncio.Task[None]) -> None:
        """Cancels a task now, or as soon as it waits outside of any shield."""
        if task not in self._deferred:
            self._cancel_or_defer(task)

    def _cancel_or_defer(self, task: asyncio.Task[None]) -> None:
        if not is_anyio_shielded(task):
            self._deferred.discard(task)
            task.cancel()  # a no-op for a task that is done
            return
        self._deferred.add(task)
        # What wakes the task calls it first and this function then: it is checked after each of its steps.
        awaited: asyncio.Future[Any] | None = getattr(task, "_fut_waiter", None)
        if awaited is None:
            self._loop.call_soon(self._cancel_or_defer, task)
        else:
            awaited.add_done_callback(lambda _: self._cancel_or_defer(task))


def is_anyio_shielded(task: asyncio.Task[None]) -> bool:
    """Returns whether a task is within a shielded scope of anyio that it has entered itself."""
    states: Any = getattr(sys.modules.get("anyio._backends._asyncio"), "_task_states", {})
    scope: Any = getattr(states.get(task), "cancel_scope", None)
    while scope is not None and not scope.shield:
        scope = getattr(scope, "_parent_scope", None)
    return scope is not None
