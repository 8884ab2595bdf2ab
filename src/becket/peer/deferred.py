"""Deferred results: a plain handler returns one, and its settlement sends the response. No task waits for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

__all__ = ["Deferred"]


class Deferred(Struct, eq=False, gc=False):
    """A result that is settled later, once, in the thread of the link's loop, with a value or an exception.

    An outcome that comes after the request was cancelled or the link has ended is dropped."""

    respond: Callable[[Any, Any], object] | None = None  # gets the request and the outcome
    request: Any = None
    _translate: Callable[[Any], Any] | None = None

    def translated(self, translate: Callable[[Any], Any]) -> Deferred:
        """Replaces each outcome by what `translate` returns or raises for it; returns this object."""
        self._translate = translate
        return self

    def settle(self, outcome: Any) -> None:
        """Sends the response."""
        respond, request = self.respond, self.request
        if respond is None:
            return
        self.forget()
        if self._translate is not None:
            try:
                outcome = self._translate(outcome)
            except Exception as error:
                outcome = error
        respond(request, outcome)

    def forget(self) -> None:
        """Drops the request: it holds this result, and neither is seen by the garbage collector."""
        self.respond = self.request = None
