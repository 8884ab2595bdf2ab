"""Protocols of the decorators of an extension, for type checkers only; never imported at run time."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Literal, Protocol, TypeVar, overload

from becket.contract.hooks import HookEvent, HookResult
from becket.contract.providers import ProviderRequest, ProviderResult
from becket.extension.outputs import BlockingCommandOutput, BlockingProviderStream, CommandOutput, ProviderStream

__all__ = [
    "CommandDecorator",
    "HookDecorator",
    "HookName",
    "MethodDecorator",
    "NotificationDecorator",
    "ProviderDecorator",
]

HookName = Literal[
    "before_tool_call",
    "after_tool_call",
    "before_message",
    "on_message_complete",
    "on_compaction",
    "on_session_start",
    "on_session_end",
]
P = TypeVar("P")
R = TypeVar("R")
S = TypeVar("S")
X = TypeVar("X")
AsyncResult = Coroutine[Any, Any, X]
Args = list[str]


class CommandDecorator(Protocol):
    """Takes the function of a command and returns it."""

    @overload
    def __call__(
        self, function: Callable[[S, Args, CommandOutput], AsyncResult[X]], /
    ) -> Callable[[S, Args, CommandOutput], AsyncResult[X]]: ...
    @overload
    def __call__(
        self, function: Callable[[S, Args, BlockingCommandOutput], X], /
    ) -> Callable[[S, Args, BlockingCommandOutput], X]: ...
    @overload
    def __call__(self, function: Callable[[S, Args], X], /) -> Callable[[S, Args], X]: ...
    @overload
    def __call__(self, function: Callable[[S], X], /) -> Callable[[S], X]: ...


class ProviderDecorator(Protocol):
    """Takes the function of a provider and returns it."""

    @overload
    def __call__(
        self, function: Callable[[S, ProviderRequest, ProviderStream], AsyncResult[ProviderResult]], /
    ) -> Callable[[S, ProviderRequest, ProviderStream], AsyncResult[ProviderResult]]: ...
    @overload
    def __call__(
        self, function: Callable[[S, ProviderRequest, BlockingProviderStream], ProviderResult], /
    ) -> Callable[[S, ProviderRequest, BlockingProviderStream], ProviderResult]: ...
    @overload
    def __call__(
        self, function: Callable[[S, ProviderRequest], AsyncResult[ProviderResult]], /
    ) -> Callable[[S, ProviderRequest], AsyncResult[ProviderResult]]: ...
    @overload
    def __call__(
        self, function: Callable[[S, ProviderRequest], ProviderResult], /
    ) -> Callable[[S, ProviderRequest], ProviderResult]: ...


class HookDecorator(Protocol):
    """Takes the function of a hook and returns it."""

    @overload
    def __call__(
        self, function: Callable[[S, HookEvent], AsyncResult[HookResult | None]], /
    ) -> Callable[[S, HookEvent], AsyncResult[HookResult | None]]: ...
    @overload
    def __call__(
        self, function: Callable[[S, HookEvent], HookResult | None], /
    ) -> Callable[[S, HookEvent], HookResult | None]: ...


class MethodDecorator(Protocol[P, R]):
    """Takes the function of a method of the author's own and returns it."""

    @overload
    def __call__(self, function: Callable[[S, P, Any], AsyncResult[R]], /) -> Callable[[S, P, Any], AsyncResult[R]]: ...
    @overload
    def __call__(self, function: Callable[[S, P, Any], R], /) -> Callable[[S, P, Any], R]: ...
    @overload
    def __call__(self, function: Callable[[S, P], AsyncResult[R]], /) -> Callable[[S, P], AsyncResult[R]]: ...
    @overload
    def __call__(self, function: Callable[[S, P], R], /) -> Callable[[S, P], R]: ...
    @overload
    def __call__(self, function: Callable[[S], AsyncResult[R]], /) -> Callable[[S], AsyncResult[R]]: ...
    @overload
    def __call__(self, function: Callable[[S], R], /) -> Callable[[S], R]: ...


class NotificationDecorator(Protocol[P]):
    """Takes the function of a notification of the author's own and returns it."""

    @overload
    def __call__(self, function: Callable[[S, P, Any], X], /) -> Callable[[S, P, Any], X]: ...
    @overload
    def __call__(self, function: Callable[[S, P], X], /) -> Callable[[S, P], X]: ...
    @overload
    def __call__(self, function: Callable[[S], X], /) -> Callable[[S], X]: ...
