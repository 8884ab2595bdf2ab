"""Stream descriptors: a request with events before its response; decoding, collecting them.

A module of its own, so that an extension without streams does not import it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar, overload

from msgspec import Raw

from becket._deprecated import keep_renamed
from becket.methods.descriptors import Direction, Method, Notification, check_method_name, format_type

if TYPE_CHECKING:
    from typing import Unpack

    from becket.methods.descriptors import MethodOptions

__all__ = ["CancelReason", "Cancellation", "EventReader", "ResultCollector", "Stream"]

P_contra = TypeVar("P_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)
E_co = TypeVar("E_co", covariant=True)
E_contra = TypeVar("E_contra", contravariant=True)


Cancellation: TypeAlias = tuple[Method[Any, Any] | Notification[Any], object]
"""The request or notification that cancels a stream, and its params."""


class EventReader(Generic[E_co]):
    """Decodes the events of one notification, and selects those of a call.

    `decode` raises `msgspec.ValidationError` or `msgspec.DecodeError` for an invalid event; the stream skips and counts
    it. `types` are the classes that it returns. `belongs` gets the raw params of the notification and the params object
    of the call; without it every call receives all events.
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
    """Builds the result of one call from its events, where the response only acknowledges the request."""

    def on_response(self, response: Raw, /) -> None:
        """Handles the response, before or after any event.

        Raises:
            ValueError, msgspec.ValidationError, msgspec.DecodeError: it is no acknowledgement of this call.
        """
        ...

    def on_event(self, event: E_contra, /) -> bool:
        """Handles an event on arrival, before it is read; returns True for the last one."""
        ...

    def result(self) -> R_co:
        """Returns the result. Called once, after the last event.

        Raises:
            RpcError: an event reported a failure; the call raises it as `RemoteError`.
            ValueError, msgspec.ValidationError, msgspec.DecodeError: the events give no result.
        """
        ...


class CancelReason(StrEnum):
    """Why this peer abandons a stream before its end."""

    LEFT = "left before its end"
    TIMED_OUT = "timed out"
    FAILED = "its events could not be taken"


class Stream(Method[P_contra, R_co], Generic[P_contra, R_co, E_co]):
    """A request with events before its response; `events` maps the names of notifications to their readers.

    `timeout` bounds the whole stream (None: no bound); `idle_timeout` bounds the time without an event (None: that of
    the link).

    With `gather` the response only acknowledges the request: the stream goes on until its last event, and the collector
    that `gather` returns for the params of the call builds the result. Open such a method with `stream`, not with
    `call`. `cancel` returns, for the params and the reason, the request or notification that is sent when this peer
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
        idle_timeout: float | None = None,
        **options: Unpack[MethodOptions],
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
        idle_timeout: float | None = None,
        **options: Unpack[MethodOptions],
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
