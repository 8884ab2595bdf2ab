"""Deferred results: a plain handler returns one, and its settlement sends the response. No task waits for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

__all__ = ["Deferred"]


class Deferred(Struct, eq=False, gc=False):
    """A result that is settled later, once, in the thread of the link's loop, with a value or an exception.

    An outcome that comes after the request was cancelled or the link has ended is dropped."""

    _respond: Callable[[Any, Any], object] | None = None  # gets the request and the outcome
    _request: Any = None
    _translate: Callable[[Any], Any] | None = None
    _outcome: tuple[Any] | None = None  # settled before the handler returned this result
    _is_over: bool = False  # settled, or not wanted any more

    def translated(self, translate: Callable[[Any], Any]) -> Deferred:
        """Replaces each outcome by what `translate` returns or raises for it; returns this object."""
        self._translate = translate
        return self

    def attach(self, request: Any, respond: Callable[[Any, Any], object]) -> None:
        """Sends the outcome as the response to this request: now, if it is settled, or when it is."""
        self._request, self._respond = request, respond
        if self._outcome is not None:
            self._send(*self._outcome)

    def settle(self, outcome: Any) -> None:
        """Sends the response."""
        if self._is_over:
            return
        self._is_over = True
        if self._respond is None:
            self._outcome = (outcome,)
        else:
            self._send(outcome)

    def _send(self, outcome: Any) -> None:
        respond, request = self._respond, self._request
        assert respond is not None
        self.forget()
        if self._translate is not None:
            try:
                outcome = self._translate(outcome)
            except Exception as error:
                outcome = error
        respond(request, outcome)

    def forget(self) -> None:
        """Drops the request: it holds this result, and neither is seen by the garbage collector."""
        self._respond = self._request = self._outcome = None
        self._is_over = True
