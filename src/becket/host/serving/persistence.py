"""Memory and configuration handlers that a host serves to one extension.

No thread waits for the disk with each record: all answers that come together reach the loop with one call.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING

from becket.contract.memory import Append, Appended
from becket.errors import BecketError
from becket.peer.deferred import Deferred
from becket.stores.store import Store

if TYPE_CHECKING:
    from becket.peer.protocols import Loop

__all__ = ["AsyncStore"]


class AsyncStore:
    """Keeps records in a store for those who wait on one loop."""

    __slots__ = ("_completed", "_is_delivering", "_loop", "_store")

    def __init__(self, store: Store, loop: Loop) -> None:
        self._store = store
        self._loop = loop
        self._completed: deque[tuple[Deferred, Appended | BecketError]] = deque()
        self._is_delivering = False

    def append(self, append: Append) -> Deferred:
        """Hands over a record. What it returns is settled when that is safe; one whose caller has left is kept too.

        Raises:
            BecketError: why it is not taken.
        """
        deferred = Deferred()
        self._store.append_nowait(append, partial(self._on_done, deferred))
        return deferred

    def _on_done(self, deferred: Deferred, outcome: Appended | BecketError) -> None:
        """Takes an answer, in whatever thread."""
        self._completed.append((deferred, outcome))
        if not self._is_delivering:
            self._is_delivering = True
            try:
                self._loop.call_from_thread(self._deliver)
            except RuntimeError:
                pass  # the loop has ended, and nobody waits there any more

    def _deliver(self) -> None:
        self._is_delivering = False  # first: what comes from now on is delivered here, or by another call
        while self._completed:
            deferred, outcome = self._completed.popleft()
            deferred.settle(outcome)
