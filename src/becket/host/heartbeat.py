"""Heartbeat decisions: when to ping, and whether the peer is alive, slow or dead.

Pure: time is an argument. The other peer's reader responds to a ping, never a handler, so a busy handler is not dead.
Only links that have negotiated `ping` have a heartbeat.
"""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

__all__ = ["Heartbeat", "HeartbeatDecision", "HeartbeatPolicy", "Liveness"]


class HeartbeatPolicy(Struct, frozen=True, kw_only=True):
    """A ping is sent after `every` seconds of silence. No response for `slow_after` is slow, for `dead_after` dead.

    With the defaults a child that hangs is found three seconds after its last message. A check that is more than
    `stalled_after` seconds late means that the host was busy: it may have a response that it has not read yet."""

    every: float = 1.0
    slow_after: float = 0.5
    dead_after: float = 2.0
    stalled_after: float = 0.25


class Liveness(Enum):
    """The state of the other peer."""

    ALIVE = "alive"
    SLOW = "slow"
    DEAD = "dead"


class HeartbeatDecision(Struct, frozen=True):
    """What to do now, and when to check again. `stalled` is how late the host itself was, 0 if it was not."""

    liveness: Liveness
    sends_ping: bool
    next_check: float
    stalled: float = 0.0


class Heartbeat:
    """The heartbeat of one link: call `on_receive` for everything that arrives, and `check` when it is due."""

    def __init__(self, now: float, policy: HeartbeatPolicy | None = None) -> None:
        self._policy = policy or HeartbeatPolicy()
        self._received_at = now
        self._ping_sent_at: float | None = None  # when the pending ping was sent
        self._is_slow = False
        self._next_check = now + self._policy.every

    @property
    def next_check(self) -> float:
        """When to check next. Received data postpones it."""
        return self._next_check

    def on_receive(self, now: float) -> float | None:
        """Records that something arrived: the peer is alive. Returns how long a ping had been pending, None if none
        was."""
        waited = None if self._ping_sent_at is None else now - self._ping_sent_at
        if waited is not None and waited <= self._policy.slow_after:
            self._is_slow = False
        self._received_at = now
        self._ping_sent_at = None
        self._next_check = now + self._policy.every
        return waited

    def check(self, now: float) -> HeartbeatDecision:
        """Returns the state of the other peer. An early check changes nothing, and a late one never declares it
        dead."""
        late = now - self._next_check
        stalled = late if late > self._policy.stalled_after else 0.0
        if self._ping_sent_at is None:
            return self._check_silence(now, stalled)
        if stalled:
            self._ping_sent_at = self._discount_stall(self._ping_sent_at, stalled, now)
        return self._check_reply(self._ping_sent_at, now, stalled)

    def _check_silence(self, now: float, stalled: float) -> HeartbeatDecision:
        is_due = now >= self._received_at + self._policy.every
        if is_due:
            self._ping_sent_at = now
            self._next_check = now + self._policy.slow_after
        return HeartbeatDecision(Liveness.SLOW if self._is_slow else Liveness.ALIVE, is_due, self._next_check, stalled)

    def _discount_stall(self, pinged_at: float, stalled: float, now: float) -> float:
        """Discounts the time of the stall, and leaves enough for a response that waits to be read."""
        policy = self._policy
        return max(pinged_at + stalled, now - policy.dead_after + min(policy.every, policy.dead_after))

    def _check_reply(self, pinged_at: float, now: float, stalled: float) -> HeartbeatDecision:
        slow_at = pinged_at + self._policy.slow_after
        dead_at = pinged_at + self._policy.dead_after
        if now >= dead_at:
            return HeartbeatDecision(Liveness.DEAD, False, now)
        if now >= slow_at and not stalled:
            self._is_slow = True
        self._next_check = dead_at if now >= slow_at else slow_at
        return HeartbeatDecision(Liveness.SLOW if self._is_slow else Liveness.ALIVE, False, self._next_check, stalled)
