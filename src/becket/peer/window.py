"""How many calls of one link may be in flight, and who waits for a slot: in order, each within its own time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sized
from math import inf
from typing import TYPE_CHECKING

from becket.peer.transport import wake

if TYPE_CHECKING:
    from becket.peer.roles import Waiter

__all__ = ["Window"]


class Place:
    """One that waits for a slot."""

    __slots__ = ("deadline", "has_slot", "waiter")

    def __init__(self, waiter: Waiter, deadline: float) -> None:
        self.waiter = waiter
        self.deadline = deadline
        self.has_slot = False


class Window:
    """The slots of one link. A call takes its slot by entering the table of calls; `free` says that one has left it."""

    __slots__ = ("_calls", "_create_waiter", "places", "room")

    def __init__(self, calls: Sized, limit: int, create_waiter: Callable[[], Waiter]) -> None:
        self.places: deque[Place] = deque()
        self.room = limit  # less the slots of those that were woken and have not gone on yet: nobody else may take them
        self._calls = calls
        self._create_waiter = create_waiter

    @property
    def is_full(self) -> bool:
        return len(self._calls) >= self.room

    async def wait(self, deadline: float) -> None:
        """Waits for a slot. Whoever returns from it has one if `is_full` is not true, and must take it at once."""
        place = Place(self._create_waiter(), deadline)
        self.places.append(place)
        try:
            await place.waiter
        except BaseException:
            if place.has_slot:
                self.room += 1
                self.free()
            elif place in self.places:
                self.places.remove(place)
            raise
        if place.has_slot:
            self.room += 1

    def free(self) -> None:
        """Hands the slots that are free to those that have waited longest."""
        while self.places and not self.is_full:
            place = self.places.popleft()
            if not place.waiter.done():  # else it was cancelled, and is about to leave
                place.has_slot = True
                self.room -= 1
                place.waiter.set_result(None)

    def expire(self, now: float) -> float:
        """Wakes those whose time is over without a slot, and returns when the next one's is."""
        for place in [place for place in self.places if place.deadline <= now]:
            self.places.remove(place)
            wake(place.waiter)
        return min((place.deadline for place in self.places), default=inf)

    def end(self) -> None:
        """Wakes all: the link has ended."""
        while self.places:
            wake(self.places.popleft().waiter)
