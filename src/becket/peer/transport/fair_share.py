"""Adapts the read size of a link to its share of a turn, and limits its message rate.

Pure: takes times, returns pauses and sizes. Measuring, pausing and reading are done in the link and the loop.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from math import inf
from typing import TYPE_CHECKING

from becket.limits import Limits

if TYPE_CHECKING:
    from typing import Protocol

    class AdjustableReader(Protocol):
        """A source that is read in chunks of adjustable size."""

        read_size: int


__all__ = ["Account", "AdaptiveReadSize", "Charge", "Ledger", "MessageRateLimiter", "charge_nothing"]

CallSoon = Callable[[Callable[[], object]], object]
Charge = Callable[[float, float], object]
"""Takes the processor time of a turn, and how long it took."""

MIN_READ_SIZE = 4 * 1024  # some 40 small messages: less would be mostly reading
LIGHT = 0.00025  # seconds of processor time: a call or two and the tasks they wake; no link waits for so little
BURST = 0.002  # seconds that a link may be ahead of its share: shorter pauses would cost more than they save
LATELY = 0.05  # seconds for which a link counts as busy after its last turn
MAX_PAUSE = 1.0  # seconds, after which even the costliest handler may run again


class Ledger:
    """The processor time that the links of one event loop have used, and the queue of links that wait for a turn.

    An iteration has `seconds` for turns that are not light. When it is used up, links wait in a queue: they are served
    first in the next iteration, in order."""

    __slots__ = ("_accounts", "_busy", "_is_planned", "_light", "_waiting", "is_shared", "preempted", "spent")

    def __init__(self) -> None:
        self.spent = 0.0  # in this iteration
        self.preempted = 0.0  # seconds of turns in which the loop's thread had no core
        self.is_shared = False  # else nothing need be measured
        self._accounts: set[Account] = set()
        self._busy: dict[Account, float] = {}  # until when each counts as busy
        self._light: tuple[Account | None, float] = (None, -inf)  # the last light turn, and when it was
        self._waiting: deque[tuple[Account, Callable[[], object]]] = deque()
        self._is_planned = False

    def join(self, account: Account) -> None:
        """Adds a link of this loop."""
        self._accounts.add(account)
        self.is_shared = len(self._accounts) > 1

    def leave(self, account: Account) -> None:
        """Removes a link that has ended."""
        self._accounts.discard(account)
        self._busy.pop(account, None)
        self.is_shared = len(self._accounts) > 1
        if not self.is_shared:
            for last in self._accounts:
                last.use_share(1.0)

    def wait(self, account: Account, turn: Callable[[], object], call_soon: CallSoon) -> None:
        """Calls `turn` in a later iteration, after the links that wait already."""
        self._waiting.append((account, turn))
        self._plan(call_soon)

    def spend(self, used: float, call_soon: CallSoon) -> None:
        """Counts processor time of this iteration."""
        self.spent += used
        self._plan(call_soon)

    def _plan(self, call_soon: CallSoon) -> None:
        if not self._is_planned:
            self._is_planned = True
            call_soon(partial(self._begin_iteration, call_soon))

    def _begin_iteration(self, call_soon: CallSoon) -> None:
        self._is_planned = False
        self.spent = 0.0
        waiting = self._waiting
        try:
            for _ in range(len(waiting)):
                account, turn = waiting[0]
                if self.spent > account.seconds:
                    break
                waiting.popleft()
                turn()
        finally:
            if waiting:
                self._plan(call_soon)

    def note_light(self, account: Account, now: float) -> None:
        """Records a light turn."""
        self._light = (account, now)

    def note_busy(self, account: Account, until: float) -> None:
        """Records that a link is busy until then: it is paused, or had a turn just now."""
        self._busy[account] = until

    def share_of(self, account: Account, now: float) -> float:
        """Returns the share of the loop's time that a busy link may use.

        Busy links have equal shares, and leave one share to all links that are not busy, if there are any."""
        self._busy = {one: until for one, until in self._busy.items() if until > now}
        lightest, at = self._light
        others = len(self._busy.keys() - {account})
        has_light = lightest is not None and lightest is not account and now - at < LATELY
        return 1.0 / (1 + others + has_light)


class Account:
    """How far one link is ahead of its share of the loop's time: grows with use, and shrinks with time."""

    __slots__ = ("_debt", "_share", "_since", "ledger", "seconds", "turn")

    def __init__(self, ledger: Ledger, limits: Limits) -> None:
        self.ledger = ledger
        self.seconds = limits.turn_seconds
        self.use_share(1.0)
        self._debt = 0.0
        self._since = 0.0

    def use_share(self, share: float) -> None:
        """Sets the link's share of the loop's time, and shortens its turns accordingly."""
        self._share = share
        self.turn = self.seconds * share  # how long a turn may take

    def debt_at(self, now: float) -> float:
        """Returns how many seconds of processor time the link is ahead of its share."""
        return max(0.0, self._debt - (now - self.ledger.preempted - self._since) * self._share)

    def must_wait(self, is_light: bool, now: float) -> bool:
        """Returns whether a turn must wait for the next iteration: this one is used up, and the turn is not light."""
        return self.ledger.spent > self.seconds and not (is_light and self.debt_at(now) < LIGHT)

    def charge(self, used: float, elapsed: float, now: float) -> float:
        """Returns for how many seconds the link is paused after a turn of this processor time and duration."""
        ledger = self.ledger
        debt = self.debt_at(now) + used
        ledger.preempted += max(0.0, elapsed - used)
        self._debt = debt
        self._since = now - ledger.preempted
        if debt < LIGHT:
            ledger.note_light(self, now)
            return 0.0
        share = ledger.share_of(self, now)
        self.use_share(share)
        pause = min(debt / share, MAX_PAUSE) if debt > BURST and share < 1.0 else 0.0
        ledger.note_busy(self, now + max(pause, LATELY))
        return pause


def charge_nothing(used: float, elapsed: float) -> None:
    """Charges nothing: the default without a link, such as for a server that accepts connections."""


class AdaptiveReadSize:
    """The number of bytes read at once, so that a chunk fits into a turn."""

    __slots__ = ("_max_read_size", "_transport")

    def __init__(self, transport: AdjustableReader, limits: Limits) -> None:
        self._transport = transport
        self._max_read_size = transport.read_size = limits.turn_bytes

    def record(self, seconds: float, turn: float) -> None:
        """Lowers the read size if a chunk took more than half of a turn."""
        transport = self._transport
        if 2 * seconds > turn:
            transport.read_size = max(transport.read_size // 2, MIN_READ_SIZE)
        elif transport.read_size < self._max_read_size and 8 * seconds < turn:
            transport.read_size *= 2


class MessageRateLimiter:
    """Limits the rate of inbound messages with a token bucket."""

    __slots__ = ("_burst", "_counted", "_left", "_rate", "_since")

    def __init__(self, limits: Limits, now: float) -> None:
        self._rate = limits.message_rate
        self._burst = float(limits.message_burst)
        self._left = self._burst
        self._since = now
        self._counted = 0

    def consume(self, taken: int, now: float) -> float:
        """Returns for how many seconds to stop reading after so many messages in all; 0 if not at all."""
        self._left = min(self._burst, self._left + (now - self._since) * self._rate) - (taken - self._counted)
        self._since = now
        self._counted = taken
        return max(0.0, -self._left / self._rate)
