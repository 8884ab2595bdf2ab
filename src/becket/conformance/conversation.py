"""`CaseConversation`: what a case sent and received, in order, for its verdict and for the reports."""

from __future__ import annotations

from enum import StrEnum
from time import monotonic
from typing import Final

from msgspec import Struct

__all__ = ["CaseConversation", "Entry", "Sender"]

MOST_ENTRIES: Final = 60
MOST_TEXT: Final = 1_000  # characters of one entry


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
    """Records the entries of one case, bounded in number and size."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.dropped = 0
        self._start = monotonic()

    def add(self, sender: Sender, text: str) -> None:
        """Adds an entry; long texts are truncated, and entries beyond the limit are counted."""
        if len(self.entries) >= MOST_ENTRIES and sender is not Sender.NOTE:
            self.dropped += 1
            return
        if len(text) > MOST_TEXT:
            text = f"{text[:MOST_TEXT]}... ({len(text)} characters)"
        self.entries.append(Entry(round(monotonic() - self._start, 4), sender, text))

    def note(self, text: str) -> None:
        """Adds a remark of the suite."""
        self.add(Sender.NOTE, text)
