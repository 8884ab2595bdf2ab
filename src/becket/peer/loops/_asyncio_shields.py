"""Holds every private API of asyncio and anyio: inline wake-ups, eager tasks, shielded cancellation.

asyncio itself has no shields, and `Task.cancel` reaches into one. anyio keeps the scopes of a task to itself, so they
are looked up where it keeps them, and only when something is cancelled: whatever runs pays nothing for it. Should a
version of anyio keep them elsewhere, no task counts as shielded.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio

__all__ = ["ShieldAwareCanceller"]


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
