"""`CaseConversation`: what a case sent and received, in order, for its verdict and for the reports."""

from __future__ import annotations

from collections import deque
from enum import StrEnum
from time import monotonic
from typing import Final

from msgspec import Struct

from becket._text import truncate_counted

__all__ = ["CaseConversation", "Entry", "Sender"]

MAX_FIRST: Final = 40  # entries that are kept from the beginning
MAX_LAST: Final = 20  # and from the end, where a verdict is decided
MAX_TEXT: Final = 1_000  # characters of one entry


class Sender(StrEnum):
    """Who sent an entry; a note is a remark of the suite."""

    SUITE = "suite"
    PROGRAM = "program"
    NOTE = "note"


class Entry(Struct, frozen=True):
    """One message, or one remark, with its time in seconds since the start of the case."""

    at: float
    sender: Sender
    text: str


class CaseConversation:
    """Records the entries of one case, bounded in number and size: the first and the last of them."""

    def __init__(self) -> None:
        self.dropped = 0
        self._first: list[Entry] = []
        self._last: deque[Entry] = deque(maxlen=MAX_LAST)
        self._start = monotonic()

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The entries, with a remark in place of those that were left out."""
        if not self.dropped:
            return (*self._first, *self._last)
        gap = Entry(self._last[0].at, Sender.NOTE, f"{self.dropped} entries are left out")
        return (*self._first, gap, *self._last)

    def add(self, sender: Sender, text: str) -> None:
        """Adds an entry; long texts are truncated, and entries that are left out are counted."""
        entry = Entry(round(monotonic() - self._start, 4), sender, truncate_counted(text, MAX_TEXT))
        if len(self._first) < MAX_FIRST:
            self._first.append(entry)
            return
        self.dropped += len(self._last) == MAX_LAST
        self._last.append(entry)

    def note(self, text: str) -> None:
        """Adds a remark of the suite."""
        self.add(Sender.NOTE, text)
