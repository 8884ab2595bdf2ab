"""What the loops of asyncio and trio have in common: worker threads, and the context that callbacks run in."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context, copy_context
from typing import TYPE_CHECKING, Any

from becket.limits import DEFAULT_LIMITS
from becket.peer.nested_calls import CURRENT_REQUEST
from becket.peer.transport.fair_share import Charge, charge_nothing

if TYPE_CHECKING:
    import anyio

__all__ = ["AsyncLoop"]


class AsyncLoop:
    """A loop without nesting: a plain function cannot wait for the link."""

    is_reentrant = False
    is_at_nesting_limit = False
    is_in_handler = False
    workers = DEFAULT_LIMITS.workers

    def __init__(self) -> None:
        self.charge: Charge = charge_nothing
        self._context = copy_reader_context()
        self._limiter: anyio.CapacityLimiter | None = None

    async def run_in_thread(self, function: Callable[..., Any], *arguments: object) -> Any:
        import anyio

        if self._limiter is None:
            self._limiter = anyio.CapacityLimiter(self.workers)  # not anyio's own, which the whole program shares
        return await anyio.to_thread.run_sync(function, *arguments, limiter=self._limiter)

    def wrap_locked(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return function  # nothing nests here


def copy_reader_context() -> Context:
    """Returns the context that callbacks of a link run in: that of the task that connects, outside of any request.

    Reading is resumed by many tasks, and a handler must not see their context variables."""
    context = copy_context()
    if context.get(CURRENT_REQUEST) is not None:
        context.run(CURRENT_REQUEST.set, None)
    return context
