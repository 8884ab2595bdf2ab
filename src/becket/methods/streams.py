"""Stream descriptors: a request with events before its response; decoding, collecting them.

Apart from the other descriptors: an extension that has no stream starts without them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar, overload

from msgspec import Raw

from becket._deprecated import keep_renamed
from becket.methods.descriptors import Direction, Method, Notification, check_method_name, format_type

__all__ = ["CancelReason", "Cancellation", "EventReader", "ResultCollector", "Stream"]

P_contra = TypeVar("P_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)
E_co = TypeVar("E_co", covariant=True)
E_contra = TypeVar("E_contra", contravariant=True)


Cancellation: TypeAlias = tuple[Method[Any, Any] | Notification[Any], object]
"""What cancels a stream in the words of its protocol: a request or a notification, and its params."""


class EventReader(Generic[E_co]):
    """How the events of one notification are read: what they become, and which of them are for a call.

    `decode` raises `msgspec.ValidationError` or `msgspec.DecodeError` for an event that cannot be read; the stream
    skips and counts it. `types` are the classes of what it returns. `belongs` gets the raw params of the notification
    and the params object of the call; without it all events are for each call.
    """

    __slots__ = ("belongs", "decode", "types")

    def __init__(
        self,
        decode: Callable[[Raw], E_co],
        types: tuple[type, ...] = (),
        belongs: Callable[[Raw, Any], bool] | None = None,
    ) -> None:
        self.decode = decode
        self.types = types
        self.belongs = belongs

    def __repr__(self) -> str:
        return f"<EventReader of {' | '.join(map(format_type, self.types)) or format_type(self.decode)}>"


class ResultCollector(Protocol[E_contra, R_co]):
    """Makes the result of one call of its events, where the answer to the request only acknowledges it."""

    def on_response(self, answer: Raw, /) -> None:
        """Takes the answer to the request, before or after any event.

        Raises:
            ValueError, msgspec.ValidationError, msgspec.DecodeError: it is not the answer to this one.
        """
        ...

    def on_event(self, event: E_contra, /) -> bool:
        """Takes an event when it arrives, whether or not somebody reads it later; returns True for the last one."""
        ...

    def result(self) -> R_co:
        """Returns the result. Asked once, after the last event.

        Raises:
            RpcError: the other side has told by an event that it failed; the call ends with its `RemoteError`.
            ValueError, msgspec.ValidationError, msgspec.DecodeError: the events make no result.
        """
        ...


class CancelReason(StrEnum):
    """Why this side gives up a stream before its end."""

    LEFT = "left before its end"
    TIMED_OUT = "timed out"
    FAILED = "its events could not be taken"


class Stream(Method[P_contra, R_co], Generic[P_contra, R_co, E_co]):
    """A request with events between it and its answer: `events` tells how the notifications of each name are read.

    `timeout` bounds the whole, and None means that nothing does; `idle_timeout` bounds the time without an event, and
    None stands for the link's own.

    With `gather` the answer to the request only acknowledges it: the stream goes on until its last event, and the
    object that `gather` makes of the params of each call makes the result. Open such a method with `stream`, never with
    `call`. `cancel` returns, of the params and the reason, the request or notification that is sent when this peer
    abandons the stream.
    """

    __slots__ = ("cancel", "events", "gather", "idle_timeout")

    @overload
    def __init__(
        self,
        name: str,
        params: type[P_contra],
        result: type[R_co],
        *,
        events: Mapping[str, EventReader[E_co]],
        gather: Callable[[P_contra], ResultCollector[E_co, R_co]] | None = None,
        cancel: Callable[[P_contra, CancelReason], Cancellation] | None = None,
        requires: str | None = None,
        timeout: float | None = None,
        idle_timeout: float | None = None,
        direction: Direction = "to-extension",
        summary: str = "",
    ) -> None: ...

    @overload
    def __init__(
        self,
        name: str,
        params: Any,
        result: Any,
        *,
        events: Mapping[str, EventReader[E_co]],
        gather: Callable[[P_contra], ResultCollector[E_co, R_co]] | None = None,
        cancel: Callable[[P_contra, CancelReason], Cancellation] | None = None,
        requires: str | None = None,
        timeout: float | None = None,
        idle_timeout: float | None = None,
        direction: Direction = "to-extension",
        summary: str = "",
    ) -> None: ...

    def __init__(
        self,
        name: str,
        params: Any,
        result: Any,
        *,
        events: Mapping[str, EventReader[E_co]],
        gather: Callable[[P_contra], ResultCollector[E_co, R_co]] | None = None,
        cancel: Callable[[P_contra, CancelReason], Cancellation] | None = None,
        requires: str | None = None,
        timeout: float | None = None,
        idle_timeout: float | None = None,
        direction: Direction = "to-extension",
        summary: str = "",
    ) -> None:
        super().__init__(name, params, result, requires=requires, timeout=timeout, direction=direction, summary=summary)
        for event in events:
            check_method_name(event)
        self.events: Mapping[str, EventReader[E_co]] = MappingProxyType(dict(events))
        self.idle_timeout = idle_timeout
        self.gather: Callable[[Any], ResultCollector[Any, Any]] | None = gather
        self.cancel: Callable[[Any, CancelReason], Cancellation] | None = cancel


if not TYPE_CHECKING:  # for a type checker, a module with this function has every name
    __getattr__ = keep_renamed(__name__, {"Gathering": "ResultCollector"})
