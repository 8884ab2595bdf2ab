"""Types whose values somebody else converts, and what a descriptor says of them.

msgspec and `convert` build what becket knows. Classes of another library, with names on the wire that only its own
converter knows, stand in a descriptor as `Converted`: the type, and the two functions between it and plain JSON values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeGuard, TypeVar

from becket.typed.type_parts import name_of

__all__ = ["Converted", "type_of", "writer_of"]

T = TypeVar("T")


class Converted(Generic[T]):
    """A type with a conversion of its own: `Method("draw", Converted(Shape, read=..., write=...), None)`.

    `read` makes a value of plain JSON values, and raises `BadValue` for what does not fit. `write` makes plain JSON
    values of a value. Both are called when a message is read or written, and never before."""

    __slots__ = ("read", "type", "write")

    def __init__(self, type: Any, *, read: Callable[[Any], T], write: Callable[[T], object]) -> None:
        self.type = type
        self.read = read
        self.write = write

    def __repr__(self) -> str:
        # The name of `Optional[int]` is that of its origin, which says too little.
        return name_of(self.type) if isinstance(self.type, type) else str(self.type).replace("typing.", "")


def type_of(annotation: Any) -> Any:
    """Returns the type that a descriptor means, however its values are converted."""
    return annotation.type if is_converted(annotation) else annotation


def writer_of(annotation: Any) -> Callable[[Any], object] | None:
    """Returns what must be done with a value before it is encoded; None where nothing must."""
    return annotation.write if is_converted(annotation) else None


def is_converted(annotation: Any) -> TypeGuard[Converted[Any]]:
    return isinstance(annotation, Converted)
