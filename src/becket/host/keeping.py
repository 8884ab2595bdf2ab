"""Records on their way from an event loop to the store, and its answers on their way back.

No thread waits for the disk with each record: all answers that come together reach the loop with one call.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct

from becket.contract.memory import Append, Appended
from becket.errors import BecketError
from becket.peer.transport import wake
from becket.stores.store import Store

if TYPE_CHECKING:
    from becket.peer.roles import Loop, Waiter

__all__ = ["Keeping"]


class Receipt(Struct, eq=False):
    """Somebody waits for what becomes of a record."""

    waiter: Waiter
    outcome: Appended | BecketError | None = None


class Keeping:
    """Keeps records in a store for those who wait on one loop."""

    __slots__ = ("_come", "_is_delivering", "_loop", "_store")

    def __init__(self, store: Store, loop: Loop) -> None:
        self._store = store
        self._loop = loop
        self._come: deque[tuple[Receipt, Appended | BecketError]] = deque()
        self._is_delivering = False

    async def keep(self, append: Append) -> Appended:
        """Returns when a record is safe. One whose caller has left is kept all the same.

        Raises:
            BecketError: why it is not kept.
        """
        receipt = Receipt(self._loop.create_waiter())
        self._store.append_nowait(append, partial(self._take, receipt))
        await receipt.waiter
        if isinstance(receipt.outcome, Appended):
            return receipt.outcome
        assert receipt.outcome is not None
        raise receipt.outcome

    def _take(self, receipt: Receipt, outcome: Appended | BecketError) -> None:
        """Takes an answer, in whatever thread."""
        self._come.append((receipt, outcome))
        if not self._is_delivering:
            self._is_delivering = True
            try:
                self._loop.call_from_thread(self._deliver)
            except RuntimeError:
                pass  # the loop has ended, and nobody waits there any more

    def _deliver(self) -> None:
        self._is_delivering = False  # first: what comes from now on is delivered here, or by another call
        while self._come:
            receipt, outcome = self._come.popleft()
            receipt.outcome = outcome
            wake(receipt.waiter)
