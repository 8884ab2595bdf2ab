"""Restart decisions: takes a policy, a history and a time, returns a delay or gives up. Pure.

An extension is healthy when it has stayed up, not when it was started. Times are those of one monotonic clock.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from math import inf
from typing import Annotated, Final, TypeAlias

from msgspec import Meta, Struct
from msgspec.structs import replace

__all__ = [
    "GiveUp",
    "Restart",
    "RestartDecision",
    "RestartHistory",
    "RestartPolicy",
    "RestartStrategy",
    "Stagger",
    "decide_restart",
]

MAX_DOUBLINGS: Final = 60  # beyond it a float would overflow; no delay is that long
Seconds = Annotated[float, Meta(ge=0)]


class RestartStrategy(StrEnum):
    """What happens when the process of an extension ends by itself."""

    NEVER = "never"
    IMMEDIATE = "immediate"
    EXPONENTIAL = "exponential"


class RestartPolicy(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When an extension is restarted, and when no more.

    There are at most `most` restarts within `window`. The first is immediate, the second waits for `delay`, and each
    further one twice as long, up to `longest_delay`. A process that was ready for `healthy_after` clears the history;
    with 0, being ready is enough. `jitter` is the random part of a delay, so that processes which ended together do not
    start together. If `first_is_immediate` is false, the first waits for `delay` too.
    """

    strategy: RestartStrategy = RestartStrategy.EXPONENTIAL
    most: Annotated[int, Meta(ge=0, le=1000)] = 5
    window: Seconds = 60.0
    delay: Seconds = 0.1
    longest_delay: Seconds = 30.0
    healthy_after: Seconds = 60.0
    jitter: Annotated[float, Meta(ge=0, le=0.5)] = 0.25
    first_is_immediate: bool = True


class RestartHistory(Struct, frozen=True):
    """The history of an extension: when it was ready, and its restarts since it was healthy.

    `recent` are the planned times of those still within the window, `consecutive` counts all since the last healthy
    process, `total` all of them."""

    ready_at: float | None = None
    recent: tuple[float, ...] = ()
    consecutive: int = 0
    total: int = 0

    def became_ready(self, now: float) -> RestartHistory:
        """Returns the history after a handshake."""
        return replace(self, ready_at=now)

    def cleared(self) -> RestartHistory:
        """Returns the history after a manual start: nothing counts against it."""
        return RestartHistory(total=self.total)


class Restart(Struct, frozen=True):
    """Restart it in `delay` seconds; `attempt` counts since the extension was healthy."""

    delay: float
    attempt: int
    history: RestartHistory


class GiveUp(Struct, frozen=True):
    """Do not restart it."""

    because: str
    history: RestartHistory


RestartDecision: TypeAlias = Restart | GiveUp


def decide_restart(
    policy: RestartPolicy, history: RestartHistory, *, now: float, random: Callable[[], float]
) -> RestartDecision:
    """Returns what to do about a process that has ended by itself, and the new history.

    `random` returns numbers from 0 up to, but not including, 1. A clock that went backwards is taken to stand still."""
    known = [at for at in (history.ready_at, *history.recent[-1:]) if at is not None]
    now = max([now, *known])
    stayed_up = -inf if history.ready_at is None else now - history.ready_at
    if stayed_up >= policy.healthy_after:
        history = history.cleared()
    history = replace(history, ready_at=None)
    if policy.strategy is RestartStrategy.NEVER:
        return GiveUp("it is never restarted", history)
    delay = compute_delay(policy, history.consecutive, random)
    due = now + delay
    recent = tuple(at for at in history.recent if due - at < policy.window)
    if len(recent) >= policy.most:
        return GiveUp(describe_budget(policy), replace(history, recent=recent))
    after = RestartHistory(None, (*recent, due), history.consecutive + 1, history.total + 1)
    return Restart(delay, after.consecutive, after)


def compute_delay(policy: RestartPolicy, in_a_row: int, random: Callable[[], float]) -> float:
    if policy.strategy is RestartStrategy.IMMEDIATE:
        return 0.0
    doublings = in_a_row - policy.first_is_immediate
    if doublings < 0:
        return 0.0
    delay = min(policy.longest_delay, policy.delay * 2.0 ** min(doublings, MAX_DOUBLINGS))
    return delay * (1.0 - policy.jitter * random())


def describe_budget(policy: RestartPolicy) -> str:
    if policy.window == inf:
        return f"exceeded restart limit ({policy.most})"
    return f"exceeded restart limit ({policy.most} within {policy.window:g} s)"


# -- many at once


class Stagger:
    """Spreads starts of many extensions, so that those which ended together do not all start in one moment.

    `at_once` start without waiting, then one every `gap` seconds. Call it when a restart is due, not before."""

    def __init__(self, at_once: int = 4, gap: float = 0.05) -> None:
        self._lead = (at_once - 1) * gap
        self._gap = gap
        self._free_at = -inf  # when the next start would be due, with one in each gap

    def reserve(self, now: float) -> float:
        """Returns how many seconds this start has to wait, and counts it."""
        at = max(now, self._free_at - self._lead)
        self._free_at = max(now, self._free_at) + self._gap
        return at - now
