"""How fast a link reads: as little at once as leaves the others their time, and no more messages than it may."""

from __future__ import annotations

from itertools import count
from math import inf
from typing import TYPE_CHECKING

from becket.limits import Limits

if TYPE_CHECKING:
    from becket.peer.roles import Reads

__all__ = ["Meter", "Pace"]

LEAST_READ = 4 * 1024  # some 40 small messages: less would be mostly reading
MOST_RIVALS = 16  # where more have something to say, each reads the least anyway
AT_ONCE = 0.05  # seconds: more than a turn of the loop should ever take

next_piece = count(1).__next__  # of all links of this program: whatever their loops and threads, they share its time


class Pace:
    """How much of a descriptor is read at once. Those who always have more to say share a turn."""

    __slots__ = ("_last", "_most", "_piece", "_transport", "_turn")

    def __init__(self, transport: Reads, limits: Limits) -> None:
        self._transport = transport
        self._turn = limits.turn_seconds
        self._most = transport.read_size = limits.turn_bytes
        self._piece = 0
        self._last = -inf

    def took(self, seconds: float, now: float) -> None:
        """A piece took so long: where that is more than half of this link's share, less is read at once from now on."""
        piece = next_piece()
        # Pieces that others read since this link did last, and its own. It must have had more to say all the time.
        rivals = min(piece - self._piece, MOST_RIVALS) if now - self._last < AT_ONCE else 1
        self._piece = piece
        self._last = now
        share = self._turn / rivals
        transport = self._transport
        if 2 * seconds > share:
            transport.read_size = max(transport.read_size // 2, LEAST_READ)
        elif transport.read_size < self._most and 8 * seconds < share:
            transport.read_size *= 2


class Meter:
    """How fast messages are taken from the other side, where that is limited: a bucket that fills with time."""

    __slots__ = ("_burst", "_left", "_rate", "_since", "_taken")

    def __init__(self, limits: Limits, now: float) -> None:
        self._rate = limits.message_rate
        self._burst = float(limits.message_burst)
        self._left = self._burst
        self._since = now
        self._taken = 0

    def spend(self, taken: int, now: float) -> float:
        """Returns for how many seconds to stop reading when so many messages were taken in all; 0 if not at all."""
        self._left = min(self._burst, self._left + (now - self._since) * self._rate) - (taken - self._taken)
        self._since = now
        self._taken = taken
        return max(0.0, -self._left / self._rate)
