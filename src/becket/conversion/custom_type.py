"""Types that another library converts, for use in a descriptor.

msgspec and `convert` build what becket knows. Classes of another library, with names on the wire that only its own
converter knows, stand in a descriptor as `CustomType`: the type, and the two functions between it and plain JSON
values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeGuard, TypeVar

from becket.conversion.introspect import format_type

__all__ = ["CustomType", "get_to_json", "unwrap_type"]

T = TypeVar("T")


class CustomType(Generic[T]):
    """A type with a conversion of its own: `Method("draw", Converted(Shape, read=..., write=...), None)`.

    `from_json` makes a value of plain JSON values, and raises `BadValue` for what does not fit. `to_json` makes plain
    JSON values of a value. Both are called when a message is read or written, and never before."""

    __slots__ = ("from_json", "to_json", "type")

    def __init__(self, type: Any, *, from_json: Callable[[Any], T], to_json: Callable[[T], object]) -> None:
        self.type = type
        self.from_json = from_json
        self.to_json = to_json

    def __repr__(self) -> str:
        # The name of `Optional[int]` is that of its origin, which says too little.
        return format_type(self.type) if isinstance(self.type, type) else str(self.type).replace("typing.", "")


def unwrap_type(annotation: Any) -> Any:
    """Returns the type that a descriptor means, however its values are converted."""
    return annotation.type if is_custom_type(annotation) else annotation


def get_to_json(annotation: Any) -> Callable[[Any], object] | None:
    """Returns what must be done with a value before it is encoded; None where nothing must."""
    return annotation.to_json if is_custom_type(annotation) else None


def is_custom_type(annotation: Any) -> TypeGuard[CustomType[Any]]:
    return isinstance(annotation, CustomType)
