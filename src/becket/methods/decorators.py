"""Protocols of the handler decorators, for type checkers only; never imported at run time.

A handler of `Method[P, R]` takes nothing, the params, or the params and the context, and returns `R`; it may be
`async def`. The type of the context is defined above this layer.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVar, overload

__all__ = ["HandlerDecorator", "NotificationHandlerDecorator", "SyncHandlerDecorator"]

P = TypeVar("P")
R = TypeVar("R")
X = TypeVar("X")


class HandlerDecorator(Protocol[P, R]):
    """Registers a function for a method and returns it."""

    @overload
    def __call__(
        self, function: Callable[[P, Any], Coroutine[Any, Any, R]], /
    ) -> Callable[[P, Any], Coroutine[Any, Any, R]]: ...
    @overload
    def __call__(self, function: Callable[[P, Any], R], /) -> Callable[[P, Any], R]: ...
    @overload
    def __call__(self, function: Callable[[P], Coroutine[Any, Any, R]], /) -> Callable[[P], Coroutine[Any, Any, R]]: ...
    @overload
    def __call__(self, function: Callable[[P], R], /) -> Callable[[P], R]: ...
    @overload
    def __call__(self, function: Callable[[], Coroutine[Any, Any, R]], /) -> Callable[[], Coroutine[Any, Any, R]]: ...
    @overload
    def __call__(self, function: Callable[[], R], /) -> Callable[[], R]: ...


class SyncHandlerDecorator(Protocol[P, R]):
    """Registers a plain function for a method and returns it, for the blocking runtime."""

    @overload
    def __call__(self, function: Callable[[P, Any], R], /) -> Callable[[P, Any], R]: ...
    @overload
    def __call__(self, function: Callable[[P], R], /) -> Callable[[P], R]: ...
    @overload
    def __call__(self, function: Callable[[], R], /) -> Callable[[], R]: ...


class NotificationHandlerDecorator(Protocol[P]):
    """Registers a function for a notification and returns it. The function's result is ignored."""

    @overload
    def __call__(self, function: Callable[[P, Any], X], /) -> Callable[[P, Any], X]: ...
    @overload
    def __call__(self, function: Callable[[P], X], /) -> Callable[[P], X]: ...
    @overload
    def __call__(self, function: Callable[[], X], /) -> Callable[[], X]: ...
