"""Inspects type expressions: their parts, fields, and whether cattrs must build them.

`walk_type_info` uses msgspec's view of a type; `walk_annotation` finds in the expression what msgspec rejects or
ignores. Nothing here handles values. Extensions import this module at start: whatever only some types need is
imported when such a type occurs.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Generic,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from msgspec import Struct

__all__ = [
    "UNIONS",
    "InitField",
    "contains_class",
    "get_field_types",
    "get_init_fields",
    "get_type_name",
    "is_attrs_or_dataclass",
    "is_model",
    "is_path",
    "is_subclass",
    "is_typed_dict",
    "needs_cattrs",
    "unwrap_annotation",
    "walk_annotation",
    "walk_type_info",
]

UNIONS = (Union, UnionType)


def get_type_name(annotation: Any) -> str:
    return getattr(annotation, "__name__", None) or str(annotation)


# -- msgspec's view


def walk_type_info(info: Any) -> Iterator[Any]:
    """Yields msgspec's description of a type and of all its parts, each once: types may be recursive."""
    seen: set[int] = set()
    waiting = [info]
    while waiting:
        info = waiting.pop()
        if id(info) in seen:
            continue
        seen.add(id(info))
        yield info
        for name in ("type", "types", "item_type", "item_types", "key_type", "value_type"):
            part: Any = getattr(info, name, ())
            waiting += part if isinstance(part, tuple) else [part]
        waiting.extend(field.type for field in getattr(info, "fields", ()))


# -- parts of an expression


def unwrap_annotation(annotation: Any) -> Any:
    """Returns a type without wrappers: `Annotated`, `Final`, `NewType`, a `type` statement."""
    while True:
        if get_origin(annotation) in (Annotated, Final):
            annotation = get_args(annotation)[0]
        elif isinstance(annotation, type):
            return annotation
        elif hasattr(annotation, "__supertype__"):
            annotation = annotation.__supertype__
        elif hasattr(annotation, "__value__"):
            annotation = annotation.__value__
        else:
            return annotation


def walk_annotation(annotation: Any, *, into_members: bool) -> Iterator[Any]:
    """Yields a type and all its parts, each once: types may be recursive."""
    seen: list[Any] = []
    waiting = [annotation]
    while waiting:
        part = unwrap_annotation(waiting.pop())
        if part in seen:
            continue
        seen.append(part)
        yield part
        waiting += get_args(part)
        if into_members and has_fields(part):
            waiting += get_field_types(part).values()


def contains_class(annotation: Any) -> bool:
    """Returns whether a user's class, or a path, is in this expression; inside a Struct does not count."""
    return any(
        is_attrs_or_dataclass(part) or is_path(part) or is_model(part)
        for part in walk_annotation(annotation, into_members=False)
    )


def needs_cattrs(annotation: Any) -> bool:
    """Returns whether this type contains something that msgspec does not build correctly.

    msgspec decodes attrs classes and dataclasses strictly, and faster than cattrs. But it does not call `__init__`:
    it ignores converters and aliases, and sets `init=False` members. Its errors quote internals of attrs when a
    validator fails. And it supports neither unions of classes nor paths."""
    return any(is_cattrs_class(part) for part in walk_annotation(annotation, into_members=True))


def is_cattrs_class(part: Any) -> bool:
    if get_origin(part) in UNIONS:
        return (
            sum(
                is_attrs_or_dataclass(unwrap_annotation(member)) or is_model(unwrap_annotation(member))
                for member in get_args(part)
            )
            > 1
        )
    if not is_attrs_or_dataclass(part):
        return is_path(part) or is_model(part)
    kind = get_origin(part) or part
    if is_attrs_class(kind):
        return hasattr(kind, "__attrs_init__") or any(map(is_cattrs_field, kind.__attrs_attrs__))
    return not kind.__dataclass_params__.init or not all(field.init for field in kind.__dataclass_fields__.values())


def is_cattrs_field(field: Any) -> bool:
    takes_self = getattr(field.default, "takes_self", False)
    return bool(field.converter or field.validator or field.alias != field.name or takes_self or not field.init)


# -- classes and their members


def is_attrs_or_dataclass(annotation: Any) -> bool:
    """Returns whether this is an attrs class or a dataclass."""
    kind = get_origin(annotation) or annotation
    if not isinstance(kind, type) or is_model(kind):
        return False
    return is_attrs_class(kind) or hasattr(kind, "__dataclass_fields__")


def is_model(annotation: Any) -> bool:
    """Returns whether this is a pydantic model or dataclass. Does not import pydantic."""
    kind = get_origin(annotation) or annotation
    return "pydantic" in sys.modules and isinstance(kind, type) and hasattr(kind, "__pydantic_validator__")


def is_attrs_class(kind: Any) -> bool:
    return hasattr(kind, "__attrs_attrs__")


def is_path(annotation: Any) -> bool:
    return "pathlib" in sys.modules and is_subclass(annotation, sys.modules["pathlib"].PurePath)


def has_fields(annotation: Any) -> bool:
    kind: Any = get_origin(annotation) or annotation
    return (
        is_attrs_or_dataclass(kind)
        or is_typed_dict(kind)
        or is_subclass(kind, Struct)
        or (is_subclass(kind, tuple) and hasattr(kind, "_fields"))
    )


def is_typed_dict(annotation: Any) -> bool:
    """Returns whether this is a `TypedDict`, including that of `typing_extensions`."""
    return is_subclass(annotation, dict) and hasattr(annotation, "__total__")


def is_subclass(annotation: Any, base: type) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, base)


class InitField(Struct, frozen=True):
    """A member that a class's `__init__` takes. A default factory does not count as a default."""

    name: str
    alias: str
    is_required: bool
    converter: Any
    default: Any = ...


def get_init_fields(annotation: Any) -> list[InitField]:
    """Returns the members that a class's `__init__` takes."""
    kind: Any = get_origin(annotation) or annotation
    if is_attrs_class(kind):
        from attrs import NOTHING

        def read(field: Any) -> InitField:
            is_required = field.default is NOTHING
            is_made = hasattr(field.default, "takes_self")  # an `attrs.Factory`
            default = ... if is_required or is_made else field.default
            return InitField(field.name, field.alias, is_required, field.converter, default)

        return [read(field) for field in kind.__attrs_attrs__ if field.init]
    from dataclasses import MISSING, fields

    def read_plain(field: Any) -> InitField:
        has_default = field.default is not MISSING
        is_required = not has_default and field.default_factory is MISSING
        return InitField(field.name, field.name, is_required, None, field.default if has_default else ...)

    return [read_plain(field) for field in fields(kind) if field.init]


def get_field_types(annotation: Any) -> dict[str, Any]:
    """Returns the member types by name, with the type variables of a generic class substituted."""
    kind: Any = get_origin(annotation) or annotation
    variables = get_type_variables(annotation)
    owners = {name: owner for owner in reversed(kind.__mro__) for name in getattr(owner, "__annotations__", ())}
    hints = get_type_hints(kind, include_extras=True)
    return {name: substitute_type_variables(hint, variables.get(owners.get(name), {})) for name, hint in hints.items()}


def get_type_variables(annotation: Any) -> dict[Any, dict[Any, Any]]:
    """Returns the values of the type variables of a class and of each of its bases."""
    kind: Any = get_origin(annotation) or annotation
    own: dict[Any, Any] = dict(zip(getattr(kind, "__parameters__", ()), get_args(annotation), strict=False))
    found = {kind: own}
    for base in getattr(kind, "__orig_bases__", ()):
        if get_origin(base) is not Generic:
            found |= get_type_variables(substitute_type_variables(base, own))
    return found


def substitute_type_variables(hint: Any, variables: dict[Any, Any]) -> Any:
    if isinstance(hint, TypeVar):
        return variables.get(hint, Any)
    parameters: Any = getattr(hint, "__parameters__", ())
    if not parameters or is_subclass(hint, object):  # a generic class without parameters stays generic
        return hint
    return hint[tuple(variables.get(parameter, Any) for parameter in parameters)]
