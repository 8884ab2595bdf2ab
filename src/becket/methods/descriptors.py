"""Methods, notifications and streams as typed values: one names the wire's word once, and all that is known about it.

A descriptor takes params of its type or a narrower one (it is contravariant there) and gives results and events of its
type or a wider one (covariant). What a type checker cannot read from a value, such as a union, is told to it by an
annotation: `FIND: Method[Query, Found | None] = Method("find", Query, Found | None)`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum, StrEnum
from types import MappingProxyType, NoneType, UnionType
from typing import Any, Generic, Protocol, TypeVar, overload

from msgspec import Raw

from becket.typed.converted import writer_of

__all__ = [
    "CancelReason",
    "Direction",
    "EventReader",
    "Gathering",
    "Method",
    "Notification",
    "Stream",
    "check_method_name",
]

P_contra = TypeVar("P_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)
E_co = TypeVar("E_co", covariant=True)
E_contra = TypeVar("E_contra", contravariant=True)
P = TypeVar("P")
R = TypeVar("R")

RESERVED = "rpc."  # by JSON-RPC 2.0, for the protocol itself


class Direction(Enum):
    """Which side serves a method, or is told by a notification."""

    TO_EXTENSION = "to the extension"
    TO_HOST = "to the host"


class Method(Generic[P_contra, R_co]):
    """A request: its name, the type of its params (None: it takes none), the type of its result.

    `requires` names the permission that the caller must hold. `timeout` is in seconds; None stands for the link's own.
    Where the params are of a `Converted` type, `write` is what makes JSON values of them.

    Raises:
        ValueError: the name is reserved, or it or the permission is empty.
    """

    __slots__ = ("direction", "name", "params", "requires", "result", "summary", "timeout", "write")

    @overload
    def __init__(
        self: Method[None, None],
        name: str,
        params: None,
        result: None,
        *,
        requires: str | None = None,
        timeout: float | None = None,
        direction: Direction = Direction.TO_HOST,
        summary: str = "",
    ) -> None: ...

    @overload
    def __init__(
        self: Method[None, R],
        name: str,
        params: None,
        result: type[R],
        *,
        requires: str | None = None,
        timeout: float | None = None,
        direction: Direction = Direction.TO_HOST,
        summary: str = "",
    ) -> None: ...

    @overload
    def __init__(
        self: Method[P, None],
        name: str,
        params: type[P],
        result: None,
        *,
        requires: str | None = None,
        timeout: float | None = None,
        direction: Direction = Direction.TO_HOST,
        summary: str = "",
    ) -> None: ...

    @overload
    def __init__(
        self,
        name: str,
        params: type[P_contra],
        result: type[R_co],
        *,
        requires: str | None = None,
        timeout: float | None = None,
        direction: Direction = Direction.TO_HOST,
        summary: str = "",
    ) -> None: ...

    @overload
    def __init__(
        self,
        name: str,
        params: Any,
        result: Any,
        *,
        requires: str | None = None,
        timeout: float | None = None,
        direction: Direction = Direction.TO_HOST,
        summary: str = "",
    ) -> None: ...

    def __init__(
        self,
        name: str,
        params: Any,
        result: Any,
        *,
        requires: str | None = None,
        timeout: float | None = None,
        direction: Direction = Direction.TO_HOST,
        summary: str = "",
    ) -> None:
        check_method_name(name)
        check_requirement(name, requires)
        self.name = name
        self.params: Any = None if params is NoneType else params
        self.write = writer_of(params)
        self.result: Any = None if result is NoneType else result
        self.requires = requires
        self.timeout = timeout
        self.direction = direction
        self.summary = summary

    def __repr__(self) -> str:
        taken = "" if self.params is None else name_of(self.params)
        return f"<{type(self).__name__} {self.name}({taken}) -> {name_of(self.result)}{needs(self.requires)}>"


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
        return f"<EventReader of {' | '.join(map(name_of, self.types)) or name_of(self.decode)}>"


class Gathering(Protocol[E_contra, R_co]):
    """Makes the result of one call of its events, where the answer to the request only acknowledges it."""

    def acknowledge(self, answer: Raw, /) -> None:
        """Takes the answer to the request, before or after any event.

        Raises:
            ValueError, msgspec.ValidationError, msgspec.DecodeError: it is not the answer to this one.
        """
        ...

    def take(self, event: E_contra, /) -> bool:
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
    `call`. `cancel` names what to ask, of the params and the reason, when this side gives the stream up.
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
        gather: Callable[[P_contra], Gathering[E_co, R_co]] | None = None,
        cancel: Callable[[P_contra, CancelReason], tuple[Method[Any, Any], object]] | None = None,
        requires: str | None = None,
        timeout: float | None = None,
        idle_timeout: float | None = None,
        direction: Direction = Direction.TO_EXTENSION,
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
        gather: Callable[[P_contra], Gathering[E_co, R_co]] | None = None,
        cancel: Callable[[P_contra, CancelReason], tuple[Method[Any, Any], object]] | None = None,
        requires: str | None = None,
        timeout: float | None = None,
        idle_timeout: float | None = None,
        direction: Direction = Direction.TO_EXTENSION,
        summary: str = "",
    ) -> None: ...

    def __init__(
        self,
        name: str,
        params: Any,
        result: Any,
        *,
        events: Mapping[str, EventReader[E_co]],
        gather: Callable[[P_contra], Gathering[E_co, R_co]] | None = None,
        cancel: Callable[[P_contra, CancelReason], tuple[Method[Any, Any], object]] | None = None,
        requires: str | None = None,
        timeout: float | None = None,
        idle_timeout: float | None = None,
        direction: Direction = Direction.TO_EXTENSION,
        summary: str = "",
    ) -> None:
        super().__init__(name, params, result, requires=requires, timeout=timeout, direction=direction, summary=summary)
        for event in events:
            check_method_name(event)
        self.events: Mapping[str, EventReader[E_co]] = MappingProxyType(dict(events))
        self.idle_timeout = idle_timeout
        self.gather: Callable[[Any], Gathering[Any, Any]] | None = gather
        self.cancel: Callable[[Any, CancelReason], tuple[Method[Any, Any], object]] | None = cancel


class Notification(Generic[P_contra]):
    """What one side tells the other without an answer: its name and the type of its params (None: it takes none).

    Raises:
        ValueError: the name is reserved, or it or the permission is empty.
    """

    __slots__ = ("direction", "name", "params", "requires", "summary", "write")

    @overload
    def __init__(
        self: Notification[None],
        name: str,
        params: None,
        *,
        requires: str | None = None,
        direction: Direction = Direction.TO_HOST,
        summary: str = "",
    ) -> None: ...

    @overload
    def __init__(
        self,
        name: str,
        params: type[P_contra],
        *,
        requires: str | None = None,
        direction: Direction = Direction.TO_HOST,
        summary: str = "",
    ) -> None: ...

    @overload
    def __init__(
        self,
        name: str,
        params: Any,
        *,
        requires: str | None = None,
        direction: Direction = Direction.TO_HOST,
        summary: str = "",
    ) -> None: ...

    def __init__(
        self,
        name: str,
        params: Any,
        *,
        requires: str | None = None,
        direction: Direction = Direction.TO_HOST,
        summary: str = "",
    ) -> None:
        check_method_name(name)
        check_requirement(name, requires)
        self.name = name
        self.params: Any = None if params is NoneType else params
        self.write = writer_of(params)
        self.requires = requires
        self.direction = direction
        self.summary = summary

    def __repr__(self) -> str:
        taken = "" if self.params is None else name_of(self.params)
        return f"<Notification {self.name}({taken}){needs(self.requires)}>"


def check_method_name(name: str) -> None:
    """Raises ValueError for what JSON-RPC keeps for itself."""
    if not name or name.startswith(RESERVED):
        raise ValueError(f"{name!r} cannot be a method: empty names and `{RESERVED}*` are reserved by JSON-RPC")


def check_requirement(name: str, requires: str | None) -> None:
    # A host may have permissions of its own, so any other name is one.
    if requires == "":
        raise ValueError(f"{name!r} cannot require a permission without a name: leave `requires` out, or name one")


def name_of(kind: Any) -> str:
    if isinstance(kind, UnionType):
        return " | ".join("None" if one is NoneType else name_of(one) for one in kind.__args__)
    # `list[int]` has the name of its origin, which says too little.
    return str(kind) if hasattr(kind, "__origin__") else getattr(kind, "__name__", None) or str(kind)


def needs(requires: str | None) -> str:
    return "" if requires is None else f", needs {requires}"
