"""Types that another library converts, for use in a descriptor.

msgspec and `attrs_classes` build the types that becket supports. Classes of another library, whose wire names only its
own converter knows, are wrapped in a `CustomType`: the type, and the two functions between it and plain JSON values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeGuard, TypeVar

from becket.conversion.introspect import get_type_name

__all__ = ["CustomType", "get_to_json", "unwrap_type"]

T = TypeVar("T")


class CustomType(Generic[T]):
    """A type with its own conversion: `Method("draw", CustomType(Shape, from_json=..., to_json=...), None)`.

    `from_json` converts plain JSON values, and raises `BadValue` for values that do not fit. `to_json` returns plain
    JSON values. Both are called only when a message is decoded or encoded."""

    __slots__ = ("from_json", "to_json", "type")

    def __init__(self, type: Any, *, from_json: Callable[[Any], T], to_json: Callable[[T], object]) -> None:
        self.type = type
        self.from_json = from_json
        self.to_json = to_json

    def __repr__(self) -> str:
        # The name of `Optional[int]` is that of its origin only.
        return get_type_name(self.type) if isinstance(self.type, type) else str(self.type).replace("typing.", "")


def unwrap_type(annotation: Any) -> Any:
    """Returns the type of a descriptor, without its `CustomType`."""
    return annotation.type if is_custom_type(annotation) else annotation


def get_to_json(annotation: Any) -> Callable[[Any], object] | None:
    """Returns the function to apply before a value is encoded, or None."""
    return annotation.to_json if is_custom_type(annotation) else None


def is_custom_type(annotation: Any) -> TypeGuard[CustomType[Any]]:
    return isinstance(annotation, CustomType)
