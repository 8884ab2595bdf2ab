"""What a type expression is made of: its parts, and the classes of users among them.

msgspec tells what it would read (`walk_types`); what it refuses or would pass by is found in the expression itself
(`walk`). Nothing here looks at values. An extension imports this at start: what only some types need comes when one is
met.
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
    "Field",
    "bare",
    "fields_of",
    "holds_class",
    "is_a",
    "is_class",
    "is_model",
    "is_path",
    "is_shaped",
    "is_typed_dict",
    "member_types",
    "name_of",
    "walk",
    "walk_types",
]

UNIONS = (Union, UnionType)


def name_of(annotation: Any) -> str:
    return getattr(annotation, "__name__", None) or str(annotation)


# -- what msgspec says of a type


def walk_types(info: Any) -> Iterator[Any]:
    """Yields what `msgspec.inspect` says of a type and all that it is made of, each once: types may be recursive."""
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


# -- the parts of an expression


def bare(annotation: Any) -> Any:
    """Returns a type without what only adds to it or names it: `Annotated`, `Final`, `NewType`, a `type` statement."""
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


def walk(annotation: Any, *, into_members: bool) -> Iterator[Any]:
    """Yields a type and all that it is made of, each once: types may be recursive."""
    seen: list[Any] = []
    waiting = [annotation]
    while waiting:
        part = bare(waiting.pop())
        if part in seen:
            continue
        seen.append(part)
        yield part
        waiting += get_args(part)
        if into_members and has_members(part):
            waiting += member_types(part).values()


def holds_class(annotation: Any) -> bool:
    """Returns whether a class of a user, or a path, is in this expression; inside a Struct is not in it."""
    return any(is_class(part) or is_path(part) or is_model(part) for part in walk(annotation, into_members=False))


def is_shaped(annotation: Any) -> bool:
    """Returns whether there is something in this type that msgspec does not build as it asks for it.

    msgspec reads attrs classes and dataclasses strictly, and faster than cattrs can. But it calls no `__init__`: it
    leaves out converters, knows no aliases, and sets what has `init=False`. Where a validator refuses, it quotes the
    insides of attrs. And it has no unions of classes, and no paths.
    """
    return any(is_shaped_itself(part) for part in walk(annotation, into_members=True))


def is_shaped_itself(part: Any) -> bool:
    if get_origin(part) in UNIONS:
        return sum(is_class(bare(member)) or is_model(bare(member)) for member in get_args(part)) > 1
    if not is_class(part):
        return is_path(part) or is_model(part)
    kind = get_origin(part) or part
    if is_attrs(kind):
        return hasattr(kind, "__attrs_init__") or any(map(is_shaped_attribute, kind.__attrs_attrs__))
    return not kind.__dataclass_params__.init or not all(field.init for field in kind.__dataclass_fields__.values())


def is_shaped_attribute(field: Any) -> bool:
    takes_self = getattr(field.default, "takes_self", False)
    return bool(field.converter or field.validator or field.alias != field.name or takes_self or not field.init)


# -- classes and their members


def is_class(annotation: Any) -> bool:
    """Returns whether this is an attrs class or a dataclass."""
    kind = get_origin(annotation) or annotation
    if not isinstance(kind, type) or is_model(kind):
        return False
    return is_attrs(kind) or hasattr(kind, "__dataclass_fields__")


def is_model(annotation: Any) -> bool:
    """Returns whether this is a model or a dataclass of pydantic, which is imported by those who have one."""
    kind = get_origin(annotation) or annotation
    return "pydantic" in sys.modules and isinstance(kind, type) and hasattr(kind, "__pydantic_validator__")


def is_attrs(kind: Any) -> bool:
    return hasattr(kind, "__attrs_attrs__")


def is_path(annotation: Any) -> bool:
    return "pathlib" in sys.modules and is_a(annotation, sys.modules["pathlib"].PurePath)


def has_members(annotation: Any) -> bool:
    kind: Any = get_origin(annotation) or annotation
    return (
        is_class(kind) or is_typed_dict(kind) or is_a(kind, Struct) or (is_a(kind, tuple) and hasattr(kind, "_fields"))
    )


def is_typed_dict(annotation: Any) -> bool:
    """Returns whether this is a `TypedDict`, also one of `typing_extensions`."""
    return is_a(annotation, dict) and hasattr(annotation, "__total__")


def is_a(annotation: Any, base: type) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, base)


class Field(Struct, frozen=True):
    """One member of a class that its `__init__` takes. What a function would make each time is no default."""

    name: str
    alias: str
    is_required: bool
    converter: Any
    default: Any = ...


def fields_of(annotation: Any) -> list[Field]:
    """Returns the members of a class of a user that its `__init__` takes."""
    kind: Any = get_origin(annotation) or annotation
    if is_attrs(kind):
        from attrs import NOTHING

        def read(field: Any) -> Field:
            is_required = field.default is NOTHING
            is_made = hasattr(field.default, "takes_self")  # an `attrs.Factory`
            default = ... if is_required or is_made else field.default
            return Field(field.name, field.alias, is_required, field.converter, default)

        return [read(field) for field in kind.__attrs_attrs__ if field.init]
    from dataclasses import MISSING, fields

    def read_plain(field: Any) -> Field:
        has_default = field.default is not MISSING
        is_required = not has_default and field.default_factory is MISSING
        return Field(field.name, field.name, is_required, None, field.default if has_default else ...)

    return [read_plain(field) for field in fields(kind) if field.init]


def member_types(annotation: Any) -> dict[str, Any]:
    """Returns the types of the members by name, with the parameters of a generic class in their places."""
    kind: Any = get_origin(annotation) or annotation
    variables = type_variables(annotation)
    owners = {name: owner for owner in reversed(kind.__mro__) for name in getattr(owner, "__annotations__", ())}
    hints = get_type_hints(kind, include_extras=True)
    return {name: put_in(hint, variables.get(owners.get(name), {})) for name, hint in hints.items()}


def type_variables(annotation: Any) -> dict[Any, dict[Any, Any]]:
    """Returns what the type variables of a class and of each of its bases stand for: in each one they are others."""
    kind: Any = get_origin(annotation) or annotation
    own: dict[Any, Any] = dict(zip(getattr(kind, "__parameters__", ()), get_args(annotation), strict=False))
    found = {kind: own}
    for base in getattr(kind, "__orig_bases__", ()):
        if get_origin(base) is not Generic:
            found |= type_variables(put_in(base, own))
    return found


def put_in(hint: Any, variables: dict[Any, Any]) -> Any:
    if isinstance(hint, TypeVar):
        return variables.get(hint, Any)
    parameters: Any = getattr(hint, "__parameters__", ())
    if not parameters or is_a(hint, object):  # a generic class without parameters stays one
        return hint
    return hint[tuple(variables.get(parameter, Any) for parameter in parameters)]
