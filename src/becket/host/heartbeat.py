"""Heartbeat decisions: when to ping an extension, when it is slow, when it is dead, and when the host itself was late.

Pure: time comes in with each question. A ping is answered by the reader of the other side, never by a handler, so one
that works for long is not dead. Only links on which `ping` was agreed have a heartbeat.
"""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

__all__ = ["Beat", "Heartbeat", "HeartbeatPolicy", "Pulse"]


class HeartbeatPolicy(Struct, frozen=True, kw_only=True):
    """A ping goes out after `every` seconds of silence. No answer for `slow_after` is slow, for `dead_after` dead.

    With the defaults a child that hangs is found three seconds after its last word. A look that comes more than
    `stalled_after` seconds late tells that the host was busy: it may have an answer that it has not read yet."""

    every: float = 1.0
    slow_after: float = 0.5
    dead_after: float = 2.0
    stalled_after: float = 0.25


class Pulse(Enum):
    """How the other side does."""

    ALIVE = "alive"
    SLOW = "slow"
    DEAD = "dead"


class Beat(Struct, frozen=True):
    """What to do now, and when to look again. `stalled` is how late the host itself was, 0 if it was not."""

    pulse: Pulse
    sends_ping: bool
    next_look: float
    stalled: float = 0.0


class Heartbeat:
    """The heartbeat of one link: `hear` of whatever arrives, and `look` when it is time."""

    def __init__(self, now: float, policy: HeartbeatPolicy | None = None) -> None:
        self._policy = policy or HeartbeatPolicy()
        self._heard_at = now
        self._asked_at: float | None = None  # when the ping went out that is not answered yet
        self._is_slow = False
        self._next_look = now + self._policy.every

    @property
    def next_look(self) -> float:
        """When to look next. What arrives puts it off."""
        return self._next_look

    def hear(self, now: float) -> float | None:
        """Takes in that something arrived: it is alive. Returns how long a ping had been open, None if none was."""
        waited = None if self._asked_at is None else now - self._asked_at
        if waited is not None and waited <= self._policy.slow_after:
            self._is_slow = False
        self._heard_at = now
        self._asked_at = None
        self._next_look = now + self._policy.every
        return waited

    def look(self, now: float) -> Beat:
        """Returns how the other side does. A look that comes too early changes nothing, a late one blames nobody."""
        late = now - self._next_look
        stalled = late if late > self._policy.stalled_after else 0.0
        if self._asked_at is None:
            return self._look_after_silence(now, stalled)
        if stalled:
            self._asked_at = self._forgive(self._asked_at, stalled, now)
        return self._look_for_answer(self._asked_at, now, stalled)

    def _look_after_silence(self, now: float, stalled: float) -> Beat:
        is_due = now >= self._heard_at + self._policy.every
        if is_due:
            self._asked_at = now
            self._next_look = now + self._policy.slow_after
        return Beat(Pulse.SLOW if self._is_slow else Pulse.ALIVE, is_due, self._next_look, stalled)

    def _forgive(self, asked_at: float, stalled: float, now: float) -> float:
        """Takes the time of the stall off, and leaves enough for an answer that waits to be read."""
        policy = self._policy
        return max(asked_at + stalled, now - policy.dead_after + min(policy.every, policy.dead_after))

    def _look_for_answer(self, asked_at: float, now: float, stalled: float) -> Beat:
        slow_at = asked_at + self._policy.slow_after
        dead_at = asked_at + self._policy.dead_after
        if now >= dead_at:
            return Beat(Pulse.DEAD, False, now)
        if now >= slow_at and not stalled:
            self._is_slow = True
        self._next_look = dead_at if now >= slow_at else slow_at
        return Beat(Pulse.SLOW if self._is_slow else Pulse.ALIVE, False, self._next_look, stalled)
