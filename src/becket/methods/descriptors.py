"""Methods and notifications as typed values: wire name, params and result types, permission.

Descriptors are contravariant in their params and covariant in results and events. For types that a type checker cannot
infer from a value, such as a union, annotate:
`FIND: Method[Query, Found | None] = Method("find", Query, Found | None)`.
"""

from __future__ import annotations

from collections.abc import Callable
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, overload

from msgspec import Raw

from becket.conversion.custom_type import get_to_json

__all__ = [
    "Direction",
    "Method",
    "Notification",
    "check_method_name",
]

P_contra = TypeVar("P_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)
P = TypeVar("P")
R = TypeVar("R")

ParamsDecoder = Callable[[Raw | None], Any]

RESERVED_PREFIX = "rpc."  # by JSON-RPC 2.0, for the protocol itself


Direction = Literal["to-extension", "to-host"]
"""Which peer receives a method or notification."""

if TYPE_CHECKING:
    from typing import TypedDict, Unpack

    class NotificationOptions(TypedDict, total=False):
        """Keyword arguments of every form of `Notification`."""

        requires: str | None
        direction: Direction
        summary: str

    class MethodOptions(NotificationOptions, total=False):
        """Keyword arguments of every form of `Method`."""

        timeout: float | None


class Method(Generic[P_contra, R_co]):
    """A request: its name, the type of its params (None: no params), the type of its result.

    `requires` names the permission that the caller needs. `timeout` is in seconds; None means that of the link.
    `params_to_json` converts params of a `CustomType` to JSON values.

    Raises:
        ValueError: the name is reserved, or it or the permission is empty.
    """

    __slots__ = (
        "decode_params",
        "direction",
        "name",
        "params",
        "params_to_json",
        "requires",
        "result",
        "summary",
        "timeout",
    )

    @overload
    def __init__(
        self: Method[None, None], name: str, params: None, result: None, **options: Unpack[MethodOptions]
    ) -> None: ...

    @overload
    def __init__(
        self: Method[None, R], name: str, params: None, result: type[R], **options: Unpack[MethodOptions]
    ) -> None: ...

    @overload
    def __init__(
        self: Method[P, None], name: str, params: type[P], result: None, **options: Unpack[MethodOptions]
    ) -> None: ...

    @overload
    def __init__(
        self, name: str, params: type[P_contra], result: type[R_co], **options: Unpack[MethodOptions]
    ) -> None: ...

    @overload
    def __init__(self, name: str, params: Any, result: Any, **options: Unpack[MethodOptions]) -> None: ...

    def __init__(
        self,
        name: str,
        params: Any,
        result: Any,
        *,
        requires: str | None = None,
        timeout: float | None = None,
        direction: Direction = "to-host",
        summary: str = "",
    ) -> None:
        check_method_name(name)
        check_requirement(name, requires)
        self.name = name
        self.params: Any = None if params is NoneType else params
        self.params_to_json = get_to_json(params)
        self.decode_params: ParamsDecoder | None = None  # built when the first handler is registered
        self.result: Any = None if result is NoneType else result
        self.requires = requires
        self.timeout = timeout
        self.direction: Direction = direction
        self.summary = summary

    def __repr__(self) -> str:
        taken = "" if self.params is None else format_type(self.params)
        needed = format_requirement(self.requires)
        return f"<{type(self).__name__} {self.name}({taken}) -> {format_type(self.result)}{needed}>"


class Notification(Generic[P_contra]):
    """A notification: its name and the type of its params (None: no params).

    Raises:
        ValueError: the name is reserved, or it or the permission is empty.
    """

    __slots__ = ("decode_params", "direction", "name", "params", "params_to_json", "requires", "summary")

    @overload
    def __init__(self: Notification[None], name: str, params: None, **options: Unpack[NotificationOptions]) -> None: ...

    @overload
    def __init__(self, name: str, params: type[P_contra], **options: Unpack[NotificationOptions]) -> None: ...

    @overload
    def __init__(self, name: str, params: Any, **options: Unpack[NotificationOptions]) -> None: ...

    def __init__(
        self,
        name: str,
        params: Any,
        *,
        requires: str | None = None,
        direction: Direction = "to-host",
        summary: str = "",
    ) -> None:
        check_method_name(name)
        check_requirement(name, requires)
        self.name = name
        self.params: Any = None if params is NoneType else params
        self.params_to_json = get_to_json(params)
        self.decode_params: ParamsDecoder | None = None  # built when the first handler is registered
        self.requires = requires
        self.direction: Direction = direction
        self.summary = summary

    def __repr__(self) -> str:
        taken = "" if self.params is None else format_type(self.params)
        return f"<Notification {self.name}({taken}){format_requirement(self.requires)}>"


def check_method_name(name: str) -> None:
    """Raises ValueError for names that JSON-RPC reserves."""
    if not name or name.startswith(RESERVED_PREFIX):
        raise ValueError(f"{name!r} cannot be a method: empty names and `{RESERVED_PREFIX}*` are reserved by JSON-RPC")


def check_requirement(name: str, requires: str | None) -> None:
    # Any other name may be a permission that the host defines.
    if requires == "":
        raise ValueError(f"{name!r} cannot require a permission without a name: leave `requires` out, or name one")


def format_type(kind: Any) -> str:
    if isinstance(kind, UnionType):
        return " | ".join("None" if one is NoneType else format_type(one) for one in kind.__args__)
    # `list[int]` has the name of its origin, which says too little.
    return str(kind) if hasattr(kind, "__origin__") else getattr(kind, "__name__", None) or str(kind)


def format_requirement(requires: str | None) -> str:
    return "" if requires is None else f", needs {requires}"
