"""Type expressions are inspected, and types that msgspec cannot build are found."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final, Generic, NamedTuple, NewType, TypedDict, TypeVar

import attrs
import msgspec
import pytest
from msgspec import Struct

from becket.conversion.introspect import (
    contains_class,
    get_field_types,
    needs_cattrs,
    unwrap_annotation,
    walk_annotation,
)

T = TypeVar("T")
U = TypeVar("U")


@attrs.define
class Plain:
    text: str
    tags: list[str] = attrs.field(factory=list)
    next: Plain | None = None


@attrs.define(kw_only=True)
class ByKeyword:
    text: str = ""


@attrs.define
class WithPostInit:
    text: str

    def __attrs_pre_init__(self) -> None:
        pass

    def __attrs_post_init__(self) -> None:
        self.text += "!"


@dataclass
class Data:
    text: str
    numbers: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.text += "!"


@attrs.define
class WithConverter:
    text: str = attrs.field(converter=str.upper)


@attrs.define
class WithValidator:
    text: str = attrs.field(validator=attrs.validators.min_len(1))


@attrs.define
class WithAlias:
    text: str = attrs.field(alias="words")


@attrs.define
class Private:
    _text: str


@attrs.define
class WithOwnInit:
    text: str

    def __init__(self, text: str) -> None:
        self.text = text * 2


@attrs.define
class WithInner:
    text: str
    hidden: str = attrs.field(init=False, default="kept")


@attrs.define
class TakesSelf:
    text: str
    more: str = attrs.field(default=attrs.Factory(lambda self: self.text, takes_self=True))


@dataclass(init=False)
class DataWithOwnInit:
    text: str

    def __init__(self, text: str) -> None:
        self.text = text * 2


@dataclass
class DataWithInner:
    text: str
    hidden: str = field(init=False, default="kept")


@dataclass
class WithPath:
    text: Path


@dataclass
class WithUnion:
    text: str
    either: Data | Plain | None = None


class HoldingStruct(Struct):
    inner: WithConverter


class HoldingTuple(NamedTuple):
    inner: WithConverter


class HoldingDict(TypedDict):
    inner: WithConverter


@attrs.define
class Box(Generic[T]):
    content: T
    more: dict[str, list[T]]


@attrs.define
class Pair(Box[U], Generic[T, U]):
    left: T


@attrs.define
class Fixed(Pair[int, str]):
    pass


PLAIN: list[Any] = [Plain, ByKeyword, WithPostInit, Data]
SHAPED: list[Any] = [
    WithConverter,
    WithValidator,
    WithAlias,
    Private,
    WithOwnInit,
    WithInner,
    TakesSelf,
    DataWithOwnInit,
    DataWithInner,
    WithPath,
    WithUnion,
]


@pytest.mark.parametrize("kind", PLAIN)
def test_msgspec_builds_a_class_that_is_not_shaped_as_the_class_does(kind: Any) -> None:
    assert not needs_cattrs(kind)
    assert msgspec.json.decode(b'{"text":"a"}', type=kind) == kind(text="a")


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (WithConverter, '{"text":"a"}'),
        (WithAlias, '{"words":"a"}'),
        (Private, '{"text":"a"}'),
        (WithOwnInit, '{"text":"a"}'),
        (DataWithOwnInit, '{"text":"a"}'),
        (WithInner, '{"text":"a","hidden":"b"}'),
        (TakesSelf, '{"text":"a"}'),
        (WithPath, '{"text":"a"}'),
        (WithUnion, '{"text":"a"}'),
    ],
)
def test_msgspec_does_not_build_a_class_that_is_shaped_as_the_class_does(kind: Any, text: str) -> None:
    by_class = kind(words="a") if kind is WithAlias else kind(text="a")
    try:
        by_msgspec = msgspec.json.decode(text, type=kind)
    except (TypeError, NotImplementedError, msgspec.ValidationError):
        by_msgspec = None
    assert by_msgspec != by_class


def test_msgspec_exposes_attrs_internals_when_a_validator_refuses() -> None:
    with pytest.raises(msgspec.ValidationError, match="Attribute"):
        msgspec.json.decode(
            b'{"text":1}',
            type=attrs.make_class(
                "Refusing", {"text": attrs.field(type=int, validator=attrs.validators.instance_of(str))}
            ),
        )


@pytest.mark.parametrize("kind", SHAPED)
def test_a_shaped_class_is_found_wherever_it_is(kind: Any) -> None:
    holder = attrs.make_class("Holder", {"inner": attrs.field(type=kind)})

    for annotation in (kind, list[kind], dict[str, kind] | None, tuple[int, kind], Annotated[kind, {}], holder):
        assert needs_cattrs(annotation)


HOLDING = [HoldingStruct, HoldingTuple, HoldingDict, Box[WithConverter], list[HoldingStruct]]


@pytest.mark.parametrize("annotation", HOLDING)
def test_a_shaped_class_is_found_inside_other_classes(annotation: Any) -> None:
    assert needs_cattrs(annotation)


@pytest.mark.parametrize("annotation", [int, Any, list[int], Plain | None, dict[str, Data], Box[int], 5, "Plain", None])
def test_types_without_a_shaped_class_need_no_cattrs(annotation: Any) -> None:
    assert not needs_cattrs(annotation)


@pytest.mark.parametrize(
    ("annotation", "expected"), [(list[Plain], True), (Path | None, True), (list[HoldingStruct], False)]
)
def test_the_fields_of_a_struct_are_not_in_the_expression(annotation: Any, expected: bool) -> None:
    assert contains_class(annotation) is expected


def test_aliases_and_annotations_are_unwrapped() -> None:
    alias = type("Alias", (), {})()
    alias.__value__ = NewType("Wrapped", Final[Annotated[Plain, "a remark"]])  # type: ignore[valid-newtype]

    assert unwrap_annotation(alias) is Plain


def test_a_recursive_type_is_walked_through_once() -> None:
    assert list(walk_annotation(list[Plain], into_members=True)).count(Plain) == 1


def test_the_parameters_of_a_generic_class_reach_its_members() -> None:
    assert get_field_types(Box[int]) == {"content": int, "more": dict[str, list[int]]}
    assert get_field_types(Pair[int, str]) == {"content": str, "more": dict[str, list[str]], "left": int}
    assert get_field_types(Fixed) == {"content": str, "more": dict[str, list[str]], "left": int}
    assert get_field_types(Box) == {"content": Any, "more": dict[str, list[Any]]}


def test_a_member_may_be_a_generic_class_without_parameters() -> None:
    holder = attrs.make_class("Holder", {"inner": attrs.field(type=Box)})

    assert get_field_types(holder) == {"inner": Box}
