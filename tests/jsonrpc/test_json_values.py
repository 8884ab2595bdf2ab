"""Values become JSON or are refused with a reason, and only those that may have NaN are searched for it."""

from __future__ import annotations

import dataclasses
import math
from pathlib import PurePosixPath
from typing import Any

import pytest
from msgspec import Raw, defstruct
from tests.jsonrpc.call_counts import count_calls

from becket.errors import Unencodable
from becket.jsonrpc.json_values import classify_type, encode_json


def struct_of(annotation: Any) -> Any:
    """Returns a type that was never encoded before: what is known of a type is cached."""
    return defstruct("Fresh", [("value", annotation), ("note", str | None, None)])


# -- pydantic models


def test_a_pydantic_model_is_encoded_as_pydantic_writes_it() -> None:
    """With its aliases, and in the forms that pydantic has for its types: `bytes` are text, not base64."""
    pydantic = pytest.importorskip("pydantic", reason="the extra `pydantic` is not installed")
    shelf = (int, pydantic.Field(alias="shelfNumber"))
    book: Any = pydantic.create_model("Book", path=(PurePosixPath, ...), mark=(bytes, ...), shelf=shelf)
    value = book(path="a/b", mark=b"new", shelfNumber=3)
    text = b'{"path":"a/b","mark":"new","shelfNumber":3}'
    assert encode_json(value) == text
    assert encode_json({"books": [value, None]}) == b'{"books":[%b,null]}' % text


def test_a_pydantic_model_with_nan_is_refused() -> None:
    pydantic = pytest.importorskip("pydantic", reason="the extra `pydantic` is not installed")
    size: Any = pydantic.create_model("Size", metres=(float, ...), of=(Any, None))
    assert encode_json(size(metres=1.5)) == b'{"metres":1.5,"of":null}'
    for value in (size(metres=math.nan), [size(metres=math.inf)], size(metres=1, of=size(metres=-math.inf))):
        with pytest.raises(Unencodable):
            encode_json(value)
    raw = Raw(b"null")
    assert encode_json({"size": size(metres=1.5), "raw": raw}) == b'{"size":{"metres":1.5,"of":null},"raw":null}'


# -- reasons


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (1j, "this complex cannot be encoded as JSON: Encoding objects of type complex is unsupported"),
        ([1j], "this list cannot be encoded as JSON: Encoding objects of type complex is unsupported"),
        (math.nan, "this float cannot be encoded as JSON: nan cannot be encoded as JSON"),
        ({"a": [-math.inf]}, "this dict cannot be encoded as JSON: -inf cannot be encoded as JSON"),
    ],
)
def test_the_error_has_the_value_or_type_without_json(value: object, problem: str) -> None:
    with pytest.raises(Unencodable) as caught:
        encode_json(value)
    assert problem in str(caught.value)


# -- NaN and infinities


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (float, math.nan),
        (float | None, math.inf),
        (int | float, -math.inf),
        (list[float], [1.5, math.nan]),
        (dict[str, list[float]], {"a": [math.nan]}),
        (list, [math.nan]),
        (Any, {"a": math.inf}),
        ("Unresolved", math.nan),  # as under TYPE_CHECKING
    ],
)
def test_nan_in_a_field_is_refused_the_first_time_and_later(annotation: Any, value: object) -> None:
    kind = struct_of(annotation)
    for _ in range(3):
        with pytest.raises(Unencodable):
            encode_json(kind(value))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"raw": Raw(b"[null]"), "n": 3414159360}, b'{"raw":[null],"n":3414159360}'),  # its bytes look like an infinity
        ([2**70, Raw(b'{"a": null}')], b'[1180591620717411303424,{"a": null}]'),
    ],
)
def test_encoded_json_within_a_value_is_left_alone_by_the_search(value: object, text: bytes) -> None:
    assert encode_json(value) == text


# -- types that need no search


@dataclasses.dataclass
class Person:
    name: str


@pytest.mark.parametrize(
    ("annotation", "is_harmless"),
    [
        (str, True),
        (bool, True),
        (None, True),
        (int | None, True),
        (list[str], True),
        (dict[str, list[int | None]], True),
        (float, False),
        (float | None, False),
        (list, False),
        (dict[str, float], False),
        (Person, False),
        (Any, False),
        ("Unresolved", False),
    ],
)
def test_a_struct_without_floats_needs_no_search(annotation: Any, is_harmless: bool) -> None:
    assert classify_type(struct_of(annotation)) is is_harmless


def test_a_struct_of_structs_needs_no_search_if_these_need_none() -> None:
    harmless, checked = struct_of(int), struct_of(float)
    classify_type(harmless)
    classify_type(checked)
    assert classify_type(struct_of(harmless)) is True
    assert classify_type(struct_of(checked)) is False


def test_other_classes_are_searched() -> None:
    assert classify_type(Person) is False


# -- the work of a search


@pytest.mark.parametrize("value", [1.5, [1.5, 2], {"a": "b"}, Person("a")])
def test_json_without_null_is_not_searched(value: object) -> None:
    assert count_calls(encode_json, value) == count_calls(encode_json, "text")


def test_a_type_without_floats_is_never_searched() -> None:
    assert count_calls(encode_json, struct_of(int)(1)) == count_calls(encode_json, "text")


def test_a_type_is_inspected_once() -> None:
    assert count_calls(encode_json, struct_of(float)(1.5)) == count_calls(encode_json, [None])


def test_a_search_that_finds_nothing_makes_as_many_calls_for_any_number_of_values() -> None:
    assert count_calls(encode_json, [None, 1.5]) == count_calls(encode_json, [None, 1.5] * 1_000)
