"""Limits the calls in flight on a link and queues callers for free slots."""

from __future__ import annotations

from collections import deque
from collections.abc import Sized
from math import inf
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from becket.jsonrpc.calls import OutboundCall
    from becket.peer.protocols import Loop, LoopFuture

__all__ = ["CallSlots"]


class SlotWaiter:
    """A caller that waits for a slot."""

    __slots__ = ("call", "future", "has_slot")

    def __init__(self, future: LoopFuture, call: OutboundCall) -> None:
        self.future = future
        self.call = call
        self.has_slot = False


class CallSlots:
    """The slots of one link. A call takes one by entering the table of calls; `grant_free_slots` runs when one
    leaves it."""

    __slots__ = ("_calls", "_create_future", "_wake_future", "limit", "waiters")

    def __init__(self, calls: Sized, limit: int, loop: Loop) -> None:
        self.waiters: deque[SlotWaiter] = deque()
        self.limit = limit  # less the slots of woken waiters that have not run yet: no other caller may take those
        self._calls = calls
        self._create_future = loop.create_future
        self._wake_future = loop.wake

    @property
    def is_full(self) -> bool:
        return len(self._calls) >= self.limit

    async def wait(self, call: OutboundCall) -> None:
        """Waits for a slot. On return the caller has one unless `is_full`, and must take it at once."""
        waiter = SlotWaiter(self._create_future(), call)
        self.waiters.append(waiter)
        try:
            await waiter.future
        except BaseException:
            if waiter.has_slot:
                self.limit += 1
                self.grant_free_slots()
            elif waiter in self.waiters:
                self.waiters.remove(waiter)
            raise
        if waiter.has_slot:
            self.limit += 1

    def grant_free_slots(self) -> None:
        """Gives free slots to the callers that have waited longest."""
        while self.waiters and not self.is_full:
            waiter = self.waiters.popleft()
            if not waiter.future.done():  # else it was cancelled, and is about to leave
                waiter.has_slot = True
                self.limit -= 1
                self._wake_future(waiter.future)

    def expire(self, now: float) -> float:
        """Wakes the waiters whose deadline has passed, without a slot, and returns the next deadline."""
        self._wake([waiter for waiter in self.waiters if waiter.call.deadline <= now])
        return min((waiter.call.deadline for waiter in self.waiters), default=inf)

    def wake_failed(self) -> None:
        """Wakes the waiters whose call has an error already, without a slot."""
        self._wake([waiter for waiter in self.waiters if waiter.call.error is not None])

    def _wake(self, waiters: list[SlotWaiter]) -> None:
        for waiter in waiters:
            self.waiters.remove(waiter)
            self._wake_future(waiter.future)

    def close(self) -> None:
        """Wakes all waiters: the link has ended."""
        while self.waiters:
            self._wake_future(self.waiters.popleft().future)
