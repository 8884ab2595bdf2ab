"""A store that is opened for one rule of its contract: fills it, reads it, and collects outcomes."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from threading import Event
from typing import Any

from becket.contract.memory import Append, Appended, Query
from becket.errors import BecketError
from becket.limits import Limits
from becket.stores.store import Store, StoreFactory
from becket.testing.checks.assertions import expect, expect_equal
from becket.testing.checks.store_model import ManualClock

__all__ = ["ROOMY", "TIMEOUT", "Outcomes", "contents_of", "fail", "fill", "opened"]

TIMEOUT = 10.0  # seconds for what should return at once
ROOMY = Limits(memory_page=60)


@contextmanager
def opened(factory: StoreFactory, limits: Limits = ROOMY) -> Generator[tuple[Store, ManualClock]]:
    """Opens a new store with a clock of its own, and closes it at the end."""
    time = ManualClock()
    store = factory(limits, time)
    try:
        yield store, time
    finally:
        store.close()


def contents_of(store: Store, **conditions: Any) -> list[str]:
    """Returns the contents of the records that fit, in the order of the store."""
    return [record.content for record in store.query(Query("notes", **conditions))]


def fill(store: Store, *contents: str) -> None:
    """Appends a record for each content."""
    for content in contents:
        store.append(Append("notes", content))


class Outcomes:
    """Collects the outcomes passed to `done`."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._outcomes: list[Appended | BecketError] = []
        self._are_all_here = Event()

    def __call__(self, outcome: Appended | BecketError) -> None:
        self._outcomes.append(outcome)
        if len(self._outcomes) >= self._count:
            self._are_all_here.set()

    @property
    def is_complete(self) -> bool:
        """Whether all outcomes have arrived."""
        return self._are_all_here.is_set()

    def wait(self) -> list[Appended | BecketError]:
        """Returns the outcomes in the order of their arrival, when all are there."""
        expect(self._are_all_here.wait(TIMEOUT), f"append_nowait: `done` was not called {self._count} times")
        expect_equal(len(self._outcomes), self._count, "append_nowait: how often `done` was called")
        return self._outcomes


def fail(_: object) -> None:
    """A callback that raises."""
    raise RuntimeError("on purpose")
