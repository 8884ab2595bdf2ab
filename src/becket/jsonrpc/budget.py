"""Byte budgets: how many received bytes are held at once, by one link and by all links of a host.

A budget counts and refuses. What counts, and what happens to a message that does not fit, is decided in `connection`.
"""

from __future__ import annotations

from _thread import allocate_lock

from becket.jsonrpc.limit_checks import strip_escapes

__all__ = ["Budget", "SharedBudget", "measure_params", "small_enough"]

DENSEST = 2  # bytes of a value and its comma
FEW = 512  # values, or marks of values: with so few, those in strings need not be excluded
VALUE = 64  # bytes that a decoded JSON value takes beside its text: an empty dict or list
WIDE = (b"\xf0", b"\xf1", b"\xf2", b"\xf3", b"\xf4", b"\\ud", b"\\uD")  # first bytes of characters beyond 16 bits


class Budget:
    """The bytes that the messages of one link may hold, also taken from a shared budget, if there is one.

    One message always fits an empty budget, so that every allowed message can be served."""

    __slots__ = ("_shared", "limit", "used", "what")

    def __init__(self, limit: int, what: str = "bytes held for you", *, shared: SharedBudget | None = None) -> None:
        self.limit = limit
        self.what = what
        self.used = 0
        self._shared = shared

    def take(self, size: int) -> Budget | None:
        """Takes so many bytes; returns the budget that is exceeded, None if they were taken."""
        used = self.used
        if used and used + size > self.limit:
            return self
        if self._shared is not None and (full := self._shared.take(size)) is not None:
            return full
        self.used = used + size
        return None

    def give_back(self, size: int) -> None:
        """Returns bytes that were taken."""
        if size > self.used:  # after `close` there are none left
            size = self.used
        self.used -= size
        if self._shared is not None:
            self._shared.give_back(size)

    def close(self) -> None:
        """Returns all bytes: its link has ended."""
        self.give_back(self.used)


class SharedBudget(Budget):
    """The bytes of several links, each of which may be used in a thread of its own."""

    __slots__ = ("_lock",)

    def __init__(self, limit: int, what: str = "bytes held for you and others") -> None:
        super().__init__(limit, what)
        self._lock = allocate_lock()

    def take(self, size: int) -> Budget | None:
        with self._lock:
            return super().take(size)

    def give_back(self, size: int) -> None:
        with self._lock:
            super().give_back(size)


def small_enough(limit: int, requests: int) -> int:
    """Returns the size of params up to which so many requests take half of a budget at most, whatever they contain.

    Such params are not counted, since counting costs time."""
    return limit // 2 * DENSEST // ((VALUE + DENSEST) * max(requests, 1))


def measure_params(text: bytes) -> int:
    """Returns how many bytes params take once decoded: those of their strings, and 64 for each JSON value."""
    return len(text) * width_of(text) + VALUE * count_values(text)


def width_of(text: bytes) -> int:
    """Returns how many bytes a character of these strings takes at most: one wide character makes a string wide."""
    if text.isascii() and b"\\" not in text:
        return 1
    if any(start in text for start in WIDE):
        return 4
    return 1 if text.isascii() and b"\\u" not in text else 2


def count_values(text: bytes) -> int:
    """Returns how many values this JSON has at most."""
    marks = count_marks(text)
    if marks <= FEW:
        return marks
    outside = b'"'.join(strip_escapes(text).split(b'"')[::2])  # with a quote in the place of each string
    return count_marks(outside) - outside.count(b"{}") - outside.count(b"[]")  # each has a bracket, and no value


def count_marks(text: bytes) -> int:
    """Returns how many values there are if no container is empty: one in each, and one after each comma."""
    return 1 + text.count(b",") + text.count(b"{") + text.count(b"[")
