"""Every use of private APIs of asyncio and anyio: tasks that resume early, and shields that are respected.

asyncio resumes a task in the next iteration of its loop, which costs as much as all the rest of a call.
`InlineWakeups` resumes it at the end of the read callback instead, where no other task runs: it takes the task's
callback out of the future that was set (`Future._callbacks`), and calls it there. A future that is set from elsewhere
resumes its task in the next iteration, as usual. `BECKET_PLAIN_LOOP=1` in the environment turns this off
(`asyncio_loop`).

`Task.cancel` of asyncio reaches into shielded scopes of anyio. The scopes of a task are looked up in anyio's private
table when it is cancelled; with a version of anyio that keeps them elsewhere, nothing is shielded.
"""

from __future__ import annotations

import asyncio
import sys
from asyncio import Future
from collections.abc import Callable
from contextvars import Context
from functools import partial
from time import monotonic, thread_time
from typing import Any

from becket.limits import DEFAULT_LIMITS
from becket.peer.transport.fair_share import Account, Charge, Ledger, charge_nothing

__all__ = ["InlineWakeups", "ShieldAwareCanceller", "is_nested_loop"]


class InlineWakeups:
    """The tasks of one link that resume at the end of its callback."""

    __slots__ = ("_after", "_ledger", "_loop", "_ready", "account", "charge", "is_in_callback")

    def __init__(self, loop: asyncio.AbstractEventLoop, ledger: Ledger) -> None:
        self._loop = loop
        self._ledger = ledger
        self.account = Account(ledger, DEFAULT_LIMITS)
        self.charge: Charge = charge_nothing
        self._ready: list[tuple[Context, Callable[[Any], object], object]] = []  # callbacks of futures that are set
        self._after: list[Callable[[], object]] = []
        self.is_in_callback = False  # a callback runs, and no task

    def wake(self, future: Any, /) -> None:
        """Sets a future. Within a callback its task resumes at the end of that."""
        if self.is_in_callback and future.__class__ is Future and (callbacks := future._callbacks):
            for callback, context in callbacks:
                future.remove_done_callback(callback)
                self._ready.append((context, callback, future))
            future.set_result(None)
        elif not future.done():
            future.set_result(None)

    def call_after_wakeups(self, function: Callable[[], object]) -> None:
        """Calls this when the tasks woken so far have run."""
        if self.is_in_callback:
            self._after.append(function)
        else:
            self._loop.call_soon(function)

    def run_callback(self, callback: Callable[[], object]) -> None:
        """Runs a callback of the loop, then resumes the tasks that it has woken; the link is charged for both."""
        began = (monotonic(), thread_time()) if self._ledger.is_shared else None
        self.is_in_callback = True
        try:
            callback()
        except BaseException:  # the program ends, most likely: no task resumes within that
            self.is_in_callback = False
            self._resume_ready(later=True)
            raise
        self.is_in_callback = False
        if self._ready or self._after:
            if len(self._ready) == 1 and not self._after:  # one call after another
                context, resume, future = self._ready.pop()
                context.run(resume, future)
            else:
                self._resume_ready(later=is_nested_loop(self._loop))
        if began is not None:
            self.charge(thread_time() - began[1], monotonic() - began[0])

    def _resume_ready(self, later: bool) -> None:
        ready, self._ready = self._ready, []
        after, self._after = self._after, []
        left = iter(ready)
        until = monotonic() + self.account.turn
        try:
            if not later:
                for context, callback, future in left:
                    context.run(callback, future)
                    if monotonic() > until:
                        break
                if others := list(left):  # they have waited longer than the tasks that the next callback wakes
                    self._ready[:0] = others
                    self._ledger.wait(self.account, partial(self.run_callback, nothing), self._loop.call_soon)
        finally:
            for context, callback, future in left:  # if one of them has ended the program, the others wait for a turn
                self._loop.call_soon(callback, future, context=context)
            for function in after:
                function()


def is_nested_loop(loop: asyncio.AbstractEventLoop) -> bool:
    """Returns whether nest_asyncio has marked a loop: a task may run it within itself, and wait there for others."""
    return bool(getattr(loop, "_nest_patched", False))


def nothing() -> None:
    """Does nothing, as a callback after which woken tasks resume."""


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
