"""Every use of private APIs of asyncio and anyio: futures that resume tasks early, and shields that are respected.

asyncio resumes a task in the next turn of its loop, and a turn costs as much as all that a call does. A `FastFuture`
resumes it at the end of the read callback instead, where no other task runs: asyncio takes it for a future
(`asyncio.isfuture` says what makes one), and `InlineWakeups.run_callback` runs the callbacks. A future that is set
from elsewhere resumes its task in the next turn, as usual. `BECKET_PLAIN_LOOP=1` in the environment turns this off
(`asyncio_loop`).

`Task.cancel` of asyncio reaches into shielded scopes of anyio, which keeps the scopes of a task to itself. They are
looked up where it keeps them, when a task is cancelled; a version that keeps them elsewhere shields nothing.
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
from becket.peer.transport.rate import Account, Charge, Ledger, charge_nothing

__all__ = ["FastFuture", "InlineWakeups", "ShieldAwareCanceller"]


class InlineWakeups:
    """Those of one link who go on when its callback is done."""

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
        """Calls this when those who were woken by now have gone on."""
        if self.is_in_callback:
            self._after.append(function)
        else:
            self._loop.call_soon(function)

    def run_callback(self, callback: Callable[[], object]) -> None:
        """Runs a callback of the loop, and then all that it has woken; the link is charged for both."""
        began = used = 0.0
        if is_shared := self._ledger.is_shared:
            began, used = monotonic(), thread_time()
        self.is_in_callback = True
        try:
            callback()
        except BaseException:  # the program ends, most likely: nobody goes on within that
            self.is_in_callback = False
            self._resume_ready(later=True)
            raise
        self.is_in_callback = False
        woken = self.ready_futures
        if len(woken) == 1 and not self._after:
            woken.pop().run_callbacks()  # one call after another
        elif woken or self._after:
            # Where nest_asyncio has been, one of them may run the loop within itself, and wait there for the others.
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
                for waiter in left:  # as `go_on` does, without a call for each
                    context = waiter.context
                    if context is None or waiter.extra_callbacks:
                        waiter.schedule_callbacks()
                    else:
                        callback, waiter.callback = waiter.callback, None
                        context.run(callback, waiter)
                        if monotonic() > until:
                            break
                if others := list(left):  # they have waited longer than those whom the next callback wakes
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
    """Something that a task waits for: a future of asyncio without a result, whose task is woken as `InlineWakeups`
    says.

    To be told a second time means nothing: whoever waited may have been cancelled before."""

    _loop: asyncio.AbstractEventLoop
    _wakeups: InlineWakeups
    _asyncio_future_blocking: bool = False
    _is_done: bool = False
    callback: Any = None
    context: Context | None = None
    extra_callbacks: tuple[tuple[Any, Context | None], ...] = ()
    _cancelled: tuple[object, ...] | None = None  # what the error says; to keep the error itself would be a cycle
    result: Callable[[], None] = RETURN_NONE

    @property  # type: ignore[misc]
    def __class__(self) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        return asyncio.Future  # for `isinstance`: anyio asks it before it cancels a task that was woken already

    def __repr__(self) -> str:
        state = "pending" if not self._is_done else "done" if self._cancelled is None else "cancelled"
        return f"<FastFuture {state}>"  # without its task, which shows it in its own text

    def __await__(self) -> Any:  # an iterator is enough, and no generator takes its time
        if self._is_done:
            self.result()
            return EXHAUSTED
        self._asyncio_future_blocking = True
        return iter((self,))  # the task asks for `result` itself, and throws what that raises

    def done(self) -> bool:
        return self._is_done

    def cancelled(self) -> bool:
        return self._cancelled is not None

    def _make_cancelled_error(self) -> asyncio.CancelledError:  # `asyncio.gather` asks for it
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
        """Calls those who wait, now."""
        if self.context is None or self.extra_callbacks:
            self.schedule_callbacks()
            return
        callback, self.callback = self.callback, None
        self.context.run(callback, self)

    def schedule_callbacks(self) -> None:
        """Calls those who wait in the loop's next turn."""
        for callback, context in self._pop_callbacks():
            self._loop.call_soon(callback, self, context=context)


def nothing() -> None:
    """Brings nothing: those who were woken before go on."""


def raise_cancelled(said: tuple[object, ...]) -> None:
    raise asyncio.CancelledError(*said)


# -- shields of anyio


class ShieldAwareCanceller:
    """Cancels tasks of one loop, each once for each time it is asked to, where no shield keeps it off."""

    __slots__ = ("_deferred", "_loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._deferred: set[asyncio.Task[None]] = set()  # those that are cancelled when they leave their shield

    def cancel(self, task: asyncio.Task[None]) -> None:
        """Cancels a task now, or as soon as it waits for something that nothing shields."""
        if task not in self._deferred:
            self._cancel_or_defer(task)

    def _cancel_or_defer(self, task: asyncio.Task[None]) -> None:
        if not is_anyio_shielded(task):
            self._deferred.discard(task)
            task.cancel()  # which does nothing to one that is done
            return
        self._deferred.add(task)
        # Whatever wakes the task calls it first and this function then: it is looked at after each of its steps.
        awaited: asyncio.Future[Any] | None = getattr(task, "_fut_waiter", None)
        if awaited is None:
            self._loop.call_soon(self._cancel_or_defer, task)
        else:
            awaited.add_done_callback(lambda _: self._cancel_or_defer(task))


def is_anyio_shielded(task: asyncio.Task[None]) -> bool:
    """Returns whether a task is within a shielded scope of anyio, which it has entered itself."""
    states: Any = getattr(sys.modules.get("anyio._backends._asyncio"), "_task_states", {})
    scope: Any = getattr(states.get(task), "cancel_scope", None)
    while scope is not None and not scope.shield:
        scope = getattr(scope, "_parent_scope", None)
    return scope is not None
