"""Finds every mismatch between a JSON value and a type, each with its JSON pointer.

msgspec stops at the first problem. Here a value is checked as a whole by msgspec, and only if it does not fit, part
by part. Imported only when something did not fit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from types import GenericAlias
from typing import Annotated, Any, Literal, Union
from uuid import UUID

import msgspec
from msgspec import Meta, inspect

from becket._text import escape_pointer, join_pointer, truncate
from becket.errors import Problem

__all__ = ["MAX_PROBLEMS", "find_problems", "to_problem"]

MAX_PROBLEMS = 50  # enough for a person; a hostile value may have a problem in each of 50,000 places


def find_problems(value: object, annotation: Any) -> list[Problem]:
    """Returns all problems of a JSON value for a type, truncated to `MAX_PROBLEMS`."""
    if find_mismatch(value, annotation) is None:  # inspecting a type costs a hundred times as much as checking a value
        return []
    search = ProblemFinder()
    try:
        search.visit(value, inspect.type_info(annotation), annotation, "")
    except TooManyProblems:
        search.problems.append(("", "there are further problems"))
    return search.problems


def to_problem(error: Exception, pointer: str = "") -> Problem:
    """Converts an error of msgspec, with its path as a JSON pointer below `pointer`."""
    message, _, path = str(error).partition(" - at `")
    if path.startswith("$"):
        pointer += to_pointer(path[1:].rstrip("`"))
    return truncate(pointer), truncate(message[:1].lower() + message[1:])


class TooManyProblems(Exception):
    """The maximum number of problems is reached."""


class ProblemFinder:
    """One traversal of a value and its type."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self._types: dict[int, Any] = {}

    def visit(self, value: Any, info: Any, annotation: Any, pointer: str) -> None:
        if find_mismatch(value, annotation) is not None:
            self._explain(value, info, annotation, pointer)

    def _explain(self, value: Any, info: Any, annotation: Any, pointer: str) -> None:
        found = len(self.problems)
        self._visit_parts(value, info, pointer)
        if len(self.problems) == found and (error := find_mismatch(value, annotation)):  # not in the parts
            self._add(*to_problem(error, pointer))

    def _visit_parts(self, value: Any, info: Any, pointer: str) -> None:
        match info:
            case inspect.Metadata():
                self._visit_parts(value, info.type, pointer)
            case inspect.UnionType():
                member = choose_union_member(value, info.types)
                if member is not None:
                    self._visit_parts(value, member, pointer)
            case inspect.StructType(array_like=True) | inspect.NamedTupleType():
                if is_array(value):
                    self._visit_tuple(value, [field.type for field in info.fields], pointer)
            case inspect.TupleType():
                if is_array(value):
                    self._visit_tuple(value, info.item_types, pointer)
            case inspect.StructType() | inspect.DataclassType() | inspect.TypedDictType():
                if is_object(value):
                    self._visit_fields(value, info, pointer)
            case inspect.DictType():
                if is_object(value):
                    self._visit_mapping(value, info, pointer)
            case inspect.CollectionType():
                if is_array(value):
                    self._visit_sequence(value, info, pointer)
            case _:
                pass

    def _visit_fields(self, value: dict[str, Any], info: Any, pointer: str) -> None:
        known = {getattr(info, "tag_field", None)}
        for field in info.fields:
            name = field.encode_name
            known.add(name)
            if name in value:
                self.visit(value[name], field.type, self.type_of(field.type), join_pointer(pointer, name))
            elif field.required:
                self._add(join_pointer(pointer, name), "is missing")
        if getattr(info, "forbid_unknown_fields", False):
            for name in sorted(value.keys() - known):
                self._add(join_pointer(pointer, name), "is unknown")

    def _visit_mapping(self, value: dict[str, Any], info: Any, pointer: str) -> None:
        self._check_length(value, dict, info, pointer)
        keys = parametrize(dict, self.type_of(info.key_type), Any)
        for name in value if find_mismatch(value, keys) else ():
            if error := find_mismatch({name: None}, keys):
                self._add(join_pointer(pointer, name), f"is no key: {to_problem(error)[1]}")
        names = list(value)
        value_type = self.type_of(info.value_type)
        for index, member in iter_mismatches(list(value.values()), value_type):
            self._explain(member, info.value_type, value_type, join_pointer(pointer, names[index]))

    def _visit_sequence(self, value: list[Any], info: Any, pointer: str) -> None:
        self._check_length(value, list, info, pointer)
        item_type = self.type_of(info.item_type)
        for index, element in iter_mismatches(value, item_type):
            self._explain(element, info.item_type, item_type, join_pointer(pointer, str(index)))

    def _visit_tuple(self, value: list[Any], infos: Sequence[Any], pointer: str) -> None:
        for index, (element, info) in enumerate(zip(value, infos, strict=False)):
            self.visit(element, info, self.type_of(info), join_pointer(pointer, str(index)))

    def _check_length(self, value: Any, kind: Any, info: Any, pointer: str) -> None:
        length = get_constraints(info, "min_length", "max_length")
        if length and (error := find_mismatch(value, Annotated[kind, Meta(**length)])) is not None:
            self._add(*to_problem(error, pointer))

    def _add(self, pointer: str, message: str) -> None:
        if len(self.problems) >= MAX_PROBLEMS:
            raise TooManyProblems
        self.problems.append((truncate(pointer), truncate(message)))

    def type_of(self, info: Any) -> Any:
        """Returns a type expression for msgspec's description of a part; the same object each time."""
        known = self._types.get(id(info))
        if known is None:
            known = self._types[id(info)] = self._build_type(info)
        return known

    def _build_type(self, info: Any) -> Any:
        match info:
            case inspect.Metadata():
                return self.type_of(info.type)
            case inspect.UnionType():
                return Union[tuple(self.type_of(member) for member in info.types)]  # noqa: UP007
            case inspect.LiteralType():
                return Literal[tuple(info.values)]
            case inspect.DictType():
                kind = parametrize(dict, self.type_of(info.key_type), self.type_of(info.value_type))
                return with_constraints(kind, info, "min_length", "max_length")
            case inspect.VarTupleType():
                return with_constraints(
                    parametrize(tuple, self.type_of(info.item_type), ...), info, "min_length", "max_length"
                )
            case inspect.SetType() | inspect.FrozenSetType():
                return with_constraints(
                    parametrize(set, self.type_of(info.item_type)), info, "min_length", "max_length"
                )
            case inspect.CollectionType():
                return with_constraints(
                    parametrize(list, self.type_of(info.item_type)), info, "min_length", "max_length"
                )
            case inspect.TupleType():
                return parametrize(tuple, *(self.type_of(member) for member in info.item_types))
            case inspect.StrType():
                return with_constraints(str, info, "min_length", "max_length", "pattern")
            case inspect.IntType():
                return with_constraints(int, info, "gt", "ge", "lt", "le", "multiple_of")
            case inspect.FloatType():
                return with_constraints(float, info, "gt", "ge", "lt", "le", "multiple_of")
            case inspect.BytesType() | inspect.ByteArrayType() | inspect.MemoryViewType():
                return with_constraints(bytes, info, "min_length", "max_length")
            case inspect.DateTimeType():
                return with_constraints(datetime, info, "tz")
            case inspect.TimeType():
                return with_constraints(time, info, "tz")
            case _:
                return PLAIN_TYPES.get(info.__class__) or getattr(info, "cls", Any)


PLAIN_TYPES: dict[type, Any] = {
    inspect.NoneType: type(None),
    inspect.BoolType: bool,
    inspect.DateType: date,
    inspect.TimeDeltaType: timedelta,
    inspect.UUIDType: UUID,
    inspect.DecimalType: Decimal,
}


def choose_union_member(value: Any, members: Sequence[Any]) -> Any:
    """Returns the member of a union that the value was meant for; None if ambiguous."""
    if is_object(value):
        for member in members:
            tag_field = getattr(member, "tag_field", None)
            if tag_field is not None and value.get(tag_field) == member.tag:
                return member
        kinds: Any = (inspect.StructType, inspect.DataclassType, inspect.TypedDictType, inspect.DictType)
        fitting = [member for member in members if isinstance(member, kinds) and not getattr(member, "tag_field", None)]
    else:
        kinds = (inspect.CollectionType, inspect.TupleType, inspect.NamedTupleType)
        fitting = [member for member in members if isinstance(member, kinds) or getattr(member, "array_like", False)]
    return fitting[0] if len(fitting) == 1 else None


def is_array(value: Any) -> bool:
    return isinstance(value, list)


def is_object(value: Any) -> bool:
    return isinstance(value, dict)


# -- msgspec calls


def find_mismatch(value: object, annotation: Any) -> msgspec.ValidationError | None:
    """Returns why the value is not of this type, or None. Keys are strings, as in JSON."""
    try:
        msgspec.convert(value, annotation, str_keys=True)
    except msgspec.ValidationError as error:
        return error
    return None


def iter_mismatches(values: list[Any], annotation: Any) -> Iterator[tuple[int, Any]]:
    """Yields the values that do not fit, with their index: msgspec reports the first, and is called again for the
    rest."""
    start = 0
    while (error := find_mismatch(values[start:], parametrize(list, annotation))) is not None:
        place = INDEX.search(str(error))
        start += int(place.group(1)) if place else 0
        yield start, values[start]
        start += 1


INDEX = re.compile(r"`\$\[([0-9]+)\]")


def get_constraints(info: Any, *names: str) -> dict[str, Any]:
    return {name: bound for name in names if (bound := getattr(info, name, None)) is not None}


def parametrize(kind: type, *parameters: Any) -> Any:
    return GenericAlias(kind, parameters)


def with_constraints(kind: Any, info: Any, *names: str) -> Any:
    """Returns the type with the constraints from its annotation."""
    meta = get_constraints(info, *names)
    return Annotated[kind, Meta(**meta)] if meta else kind


# -- pointers


def to_pointer(path: str) -> str:
    """Converts a msgspec path such as `.a[0].b` to a JSON pointer, up to a key that msgspec does not report."""
    known = path.partition("[...]")[0]
    return "".join(f"/{escape_pointer(part)}" for part in known.replace("[", ".").replace("]", "").split(".") if part)
