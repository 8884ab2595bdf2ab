"""Runs the heartbeats of many extensions with one timer, so that idle ones cost next to nothing.

`heartbeat` decides when to ping and what silence means; this module does it for all that are due at once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from becket.errors import BecketError
from becket.host.heartbeat import Heartbeat, HeartbeatDecision, HeartbeatPolicy, Liveness

if TYPE_CHECKING:
    from becket.peer.peer import Peer
    from becket.peer.protocols import Loop, Timer

__all__ = ["Heartbeats"]

GRAIN: Final = 0.05  # seconds by which a check may be late so that others join it: far below `stalled_after`
MAX_AT_ONCE: Final = 100  # checks in one iteration, with their pings: some 5 ms


class Heartbeats:
    """The heartbeats of all extensions on one loop."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._tracked: dict[int, TrackedHeartbeat] = {}
        self._timer: Timer | None = None
        self._wakes_at = inf

    async def keep(self, peer: Peer, policy: HeartbeatPolicy, take: Callable[[HeartbeatDecision], None]) -> None:
        """Pings a peer after silence and passes each decision on; returns when it is dead."""
        waiter = self._loop.create_future()
        remove = self.add(peer, policy, take, partial(self._loop.wake, waiter))
        try:
            await waiter
        finally:
            remove()

    def add(
        self,
        peer: Peer,
        policy: HeartbeatPolicy,
        take: Callable[[HeartbeatDecision], None],
        on_dead: Callable[[], object],
    ) -> Callable[[], object]:
        """Does the same without a task, and calls `on_dead` once; returns a function that stops it."""
        heart = Heartbeat(self._loop.time(), policy)
        tracked = TrackedHeartbeat(peer, heart, take, on_dead, policy.every, peer.last_received_at, heart.next_check)
        self._tracked[id(tracked)] = tracked
        self._plan(tracked.next_look)
        return partial(self._tracked.pop, id(tracked))

    def _plan(self, look: float) -> None:
        """Schedules a check: on time for a single heartbeat, else together with others."""
        at = look + GRAIN if len(self._tracked) > 1 else look
        if at < self._wakes_at:
            if self._timer is not None:
                self._timer.cancel()
            self._wakes_at = at
            self._timer = self._loop.call_later(max(0.0, at - self._loop.time()), self._tick)

    def _tick(self) -> None:
        self._timer = None
        self._wakes_at = inf
        now = self._loop.time()
        due = [tracked for tracked in self._tracked.values() if tracked.next_look <= now and not tracked.is_dead]
        for tracked in due[:MAX_AT_ONCE]:
            tracked.look(now)
        looks = [tracked.next_look for tracked in self._tracked.values() if not tracked.is_dead]
        if looks:
            self._plan(min(looks) if len(due) <= MAX_AT_ONCE else -inf)


class TrackedHeartbeat(Struct, eq=False):
    """A heartbeat with its peer, and the callbacks for its decisions and for a dead peer."""

    peer: Peer
    heart: Heartbeat
    take: Callable[[HeartbeatDecision], None]
    on_dead: Callable[[], object]
    every: float
    received_at: float
    next_look: float
    is_dead: bool = False

    def look(self, now: float) -> None:
        received_at = self.peer.last_received_at
        if received_at > self.received_at:
            self.received_at = received_at
            self.heart.on_receive(received_at)
        beat = self.heart.check(now)
        self.next_look = min(beat.next_check, now + self.every)  # a response may arrive before the next check
        self.take(beat)
        if beat.liveness is Liveness.DEAD:
            self.is_dead = True
            self.on_dead()
        elif beat.sends_ping:
            try:
                self.peer.ping_nowait()
            except BecketError:
                pass  # the link has ended, which its supervisor detects by itself
