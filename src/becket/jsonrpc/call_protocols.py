"""Protocols that the record of a call needs: its waiter, and what controls its events.

Types only: imported for type checking alone, at no cost at run time.
"""

from __future__ import annotations

from typing import Protocol

from becket.errors import BecketError

__all__ = ["FutureLike", "StreamControl"]


class StreamControl(Protocol):
    """Controls the events of a call."""

    def renew_deadline(self) -> float:
        """Returns the call's deadline, renewed by the last event."""
        ...

    def return_credit(self) -> None:
        """Returns the credit of one event."""
        ...

    def close_with(self, error: BecketError, /) -> None:
        """Ends it with this error, and cancels the call at the other peer."""
        ...


class FutureLike(Protocol):
    """The waiter of a call: set when its response has arrived or never will."""

    def done(self) -> bool: ...

    def set_result(self, result: None, /) -> None: ...
