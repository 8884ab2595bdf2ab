"""Raw JSON becomes the requested type or a list of all problems, each with its pointer."""

from __future__ import annotations

import dataclasses
import enum
import pathlib
import sys
import uuid
from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

import attrs
import msgspec
import pytest
from hypothesis import given, strategies as st
from msgspec import Meta, Raw, Struct

from becket.conversion import decode as decode_module
from becket.conversion.decode import get_msgspec_decoder, get_params_decoder, get_result_decoder
from becket.conversion.problems import MAX_PROBLEMS, find_problems
from becket.errors import ERROR_CODES, InvalidParams, Meaning, Problem, RpcError


class Point(Struct):
    x: int
    y: int = 0


class Line(Struct):
    points: list[Point]
    label: str | None = None
    width: Annotated[float, Meta(gt=0)] = 1.0


class Closed(Struct, forbid_unknown_fields=True):
    a: int = 0


class Circle(Struct, tag="circle", forbid_unknown_fields=True):
    radius: Annotated[int, Meta(ge=0)]


class Square(Struct, tag="square"):
    side: int
    corners: list[Point] = []


class Pair(Struct, array_like=True):
    left: int
    right: str = ""


class Even(Struct):
    n: int

    def __post_init__(self) -> None:
        if self.n % 2:
            raise ValueError("n is odd")


class Tree(Struct):
    name: str
    children: list[Tree] = []


class Colour(enum.Enum):
    RED = "red"


class Settings(TypedDict, total=False):
    path: str
    depth: int


class Spot(NamedTuple):
    x: int
    y: int


@dataclasses.dataclass
class Person:
    name: str
    age: int = 0


@attrs.define
class Note:
    text: str
    tags: list[str] = attrs.field(factory=list)


@attrs.define
class Shaped:
    """A class that msgspec would not build by its converters."""

    words: list[str] = attrs.field(alias="text", converter=sorted)
    at: int = attrs.field(default=0, validator=attrs.validators.ge(0))


@attrs.define
class Named:
    name: str


class Opaque:
    """A class that JSON cannot become."""


def decode(text: str | bytes, annotation: Any) -> Any:
    return get_params_decoder(annotation)(Raw(text.encode() if isinstance(text, str) else text))


def problems(text: str, annotation: Any) -> list[Problem]:
    with pytest.raises(InvalidParams) as caught:
        decode(text, annotation)
    return list(caught.value.problems)


# -- what fits


@pytest.mark.parametrize(
    ("text", "annotation", "value"),
    [
        ('{"x":1}', Point, Point(1)),
        ('{"name":"a"}', Person, Person("a")),
        ('{"text":"a","tags":["b"]}', Note, Note("a", ["b"])),
        ('{"depth":1}', Settings, {"depth": 1}),
        ("[1,2]", Spot, Spot(1, 2)),
        ('[1,"a"]', Pair, Pair(1, "a")),
        ('{"a":1}', dict[str, int], {"a": 1}),
        ('{"1":"a"}', dict[int, str], {1: "a"}),
        ("[1,2]", list[int], [1, 2]),
        ("[1,2]", tuple[int, int], (1, 2)),
        ("[1,1]", set[int], {1}),
        ('{"type":"square","side":1}', Circle | Square, Square(1)),
        ('{"x":1}', Point | None, Point(1)),
        ('{"x":1}', Annotated[Point, Meta(description="where")], Point(1)),
        ("{}", Any, {}),
        ("[null]", Any, [None]),
        ('{"a":[1.5,"b",true]}', object, {"a": [1.5, "b", True]}),
    ],
)
def test_params_become_the_annotated_type(text: str, annotation: Any, value: object) -> None:
    assert decode(text, annotation) == value


def test_raw_params_stay_as_they_were_written() -> None:
    assert bytes(decode('{"a": 1e2}', Raw)) == b'{"a": 1e2}'


@pytest.mark.parametrize("text", [b'{"a": [1, null]}', b"[1]"])
def test_raw_parts_preserve_their_bytes_however_often_they_are_decoded(text: bytes) -> None:
    decoder = get_params_decoder(Raw)
    assert [bytes(decoder(Raw(text))) for _ in range(2)] == [text, text]
    parts = get_params_decoder(list[Raw])
    assert [[bytes(part) for part in parts(Raw(b"[1, {}, null]"))] for _ in range(2)] == [[b"1", b"{}", b"null"]] * 2


# -- one member twice


class Labelled(Struct):
    label: str
    x: int


class Holder(Struct, array_like=True):
    """As many required fields as its text has colons."""

    inner: dict[str, int]
    text: str


class Keyed(Struct, kw_only=True):
    a: int
    b: int = 0
    c: int


class Forwarded(Struct):
    name: str
    input: Raw = Raw(b"{}")


@pytest.mark.parametrize(
    ("text", "annotation", "pointer"),
    [
        ('{"x":1,"x":1}', Point, "/x"),
        ('{"x":1,"x":2,"y":3}', Point, "/x"),
        ('{"x":1,"y":2,"y":3}', Point, "/y"),
        ('{"label":"a","x":1,"x":2}', Labelled, "/x"),
        ('{ "x" : 1 , "x"\n:\t2 }', Point, "/x"),
        ('{"x":1,"\\u0078":2}', Point, "/x"),
        ('{"x":1,"unknown":1,"unknown":2}', Point, "/unknown"),
        ('{"x":1,"a/b~c":1,"a/b~c":2}', Point, "/a~1b~0c"),
        ('{"points":[{"x":1},{"x":1,"x":2}]}', Line, "/points/1/x"),
        ('{"points":[],"label":"a","label":"b"}', Line, "/label"),
        ('{"x":1,"unknown":{"deep":[{"a":1,"a":2}]}}', Point, "/unknown/deep/0/a"),
        ('{"label":"\\u003a","x":1,"x":2}', Labelled, "/x"),  # an escaped colon, where one pair is lost
        ('{"label":"\\u003A","x":1,"x":2}', Labelled, "/x"),
        ('{"a":1,"a":1}', dict[str, int], "/a"),
        ('[{"x":1,"x":2},{"x":3}]', list[Point], "/0/x"),
        ('[{"x":1,"x":2},3]', tuple[Point, int], "/0/x"),
        ('[1,{"x":1,"x":2}]', tuple[int, dict[str, int]], "/1/x"),
        ('{"path":"a","path":"b"}', Settings, "/path"),
        ('{"name":"a","name":"b"}', Person, "/name"),
        ('{"name":"a","name":"b"}', Named, "/name"),
        ('{"type":"square","type":"square","side":1}', Circle | Square, "/type"),
        ('{"name":"a","name":"b"}', Forwarded, "/name"),
        ('{"name":"a","input":{"b":1,"b":2}}', Forwarded, "/input/b"),
        ('{"x":1,"x":2}', Point | None, "/x"),
        ('{"a":1,"c":1,"c":2}', Keyed, "/c"),
        ('{"a":1,"b":1,"b":1,"c":2}', Keyed, "/b"),
        ('[{"n":1,"n":2},""]', Holder, "/0/n"),
    ],
)
def test_a_duplicate_member_is_refused_wherever_it_is(text: str, annotation: Any, pointer: str) -> None:
    assert problems(text, annotation) == [(pointer, "occurs twice")]
    bare = get_msgspec_decoder(annotation)
    if bare is not None:
        with pytest.raises(InvalidParams):
            bare(Raw(text.encode()))


@pytest.mark.parametrize(
    ("text", "annotation", "value"),
    [
        ('{"points":[{"x":1},{"x":1}],"label":"x"}', Line, Line([Point(1), Point(1)], "x")),
        ('{"label":"\\"x\\":1, \\"x\\":2","x":1}', Labelled, Labelled('"x":1, "x":2', 1)),
        ('{"label":"a:b:c","x":1}', Labelled, Labelled("a:b:c", 1)),
        ('{"label":"\\u003a","x":1}', Labelled, Labelled(":", 1)),
        ('{"label":"\\\\u003a","x":1}', Labelled, Labelled("\\u003a", 1)),
        ('{"label":"a","x":1,"unknown":{"label":"a","x":1}}', Labelled, Labelled("a", 1)),
        ('{"label":"a","x":1,"unknown":123456789012345678901234567890}', Labelled, Labelled("a", 1)),
        ('{"X":1,"x":2}', Point, Point(2)),
        ('{"a":1,"c":2}', Keyed, Keyed(a=1, c=2)),
    ],
)
def test_equal_names_in_other_objects_and_in_strings_are_not_duplicates(
    text: str, annotation: Any, value: object
) -> None:
    assert decode(text, annotation) == value


@pytest.mark.parametrize("annotation", [Any, object, dict, dict[str, Any]])
def test_the_last_value_of_a_member_counts_in_untyped_params(annotation: Any) -> None:
    assert decode('{"x":1,"x":2}', annotation) == {"x": 2}


def test_raw_params_preserve_both_values_of_a_member() -> None:
    assert bytes(decode('{"x":1,"x":2}', Raw)) == b'{"x":1,"x":2}'


@pytest.mark.parametrize(("pad", "is_refused"), [('"x":2', True), ('"y":2', False)])
def test_a_large_text_is_checked_as_well(pad: str, is_refused: bool) -> None:
    text = f'{{"label":"{"a" * 100_000}","x":1,{pad}}}'
    if is_refused:
        assert problems(text, Labelled) == [("/x", "occurs twice")]
    else:
        assert decode(text, Labelled).x == 1


def test_a_large_text_with_one_member_is_decoded() -> None:
    assert decode(f'{{"name":"{"a" * 100_000}"}}', Tree).name == "a" * 100_000
    assert decode(f"[{'1,' * 50_000}1]", list[int]) == [1] * 50_001


@given(
    st.recursive(st.none() | st.integers() | st.text(), lambda part: st.lists(part) | st.dictionaries(st.text(), part))
)
def test_values_without_duplicate_members_are_decoded_as_without_the_check(value: object) -> None:
    text = msgspec.json.encode({"label": "a", "x": 1, "rest": value})
    assert decode(text, Labelled) == Labelled("a", 1)


# -- absent params


def test_absent_params_are_none_where_no_type_is_given() -> None:
    assert get_params_decoder(Any)(None) is None
    assert get_params_decoder(None)(None) is None


def test_absent_params_are_an_object_where_all_fields_have_defaults() -> None:
    assert get_params_decoder(Closed)(None) == Closed()


def test_absent_params_are_none_where_the_type_allows_it() -> None:
    assert get_params_decoder(Point | None)(None) is None


def test_absent_params_lack_each_required_field() -> None:
    with pytest.raises(InvalidParams) as caught:
        get_params_decoder(Point)(None)
    assert caught.value.problems == (("/x", "is missing"),)


@pytest.mark.parametrize("annotation", [list[int], Spot, Pair, Circle | Square])
def test_absent_params_are_required_where_no_field_can_be_named(annotation: Any) -> None:
    with pytest.raises(InvalidParams) as caught:
        get_params_decoder(annotation)(None)
    assert caught.value.problems == (("", "params are required"),)


# -- types that params cannot have


@pytest.mark.parametrize("annotation", [int, str, float, bool, bytes, int | None, Literal["a"], Colour, datetime])
def test_a_scalar_is_never_the_type_of_params(annotation: Any) -> None:
    with pytest.raises(TypeError, match="an object or an array"):
        get_params_decoder(annotation)


@pytest.mark.parametrize("annotation", [Opaque, list[Opaque], Opaque | None, complex])
def test_a_class_that_json_cannot_become_is_refused_at_once(annotation: Any) -> None:
    with pytest.raises(TypeError, match="JSON cannot become"):
        get_params_decoder(annotation)


@pytest.mark.parametrize("annotation", [5, "Point", Point | Closed, list[str] | tuple[int, int]])
def test_a_type_that_msgspec_does_not_know_is_refused_at_once(annotation: Any) -> None:
    with pytest.raises(TypeError):
        get_params_decoder(annotation)


@pytest.mark.parametrize("text", ["1", '"a"', "true", "null", "1.5"])
@pytest.mark.parametrize("annotation", [Any, Raw, Point, int | Point | None, dict[str, Any], Literal["a"] | list[int]])
def test_scalar_params_are_refused_whatever_the_type(text: str, annotation: Any) -> None:
    assert [pointer for pointer, _ in problems(text, annotation)] == [""]


# -- strictness


@pytest.mark.parametrize(
    ("text", "annotation"),
    [
        ('{"x":"5"}', Point),
        ('{"x":1.0}', Point),
        ('{"x":true}', Point),
        ('{"x":null}', Point),
        ('{"points":"abc"}', Line),
        ('{"points":[],"label":5}', Line),
        ('"abc"', list[str]),
        ("[1]", list[str]),
        ('["1"]', list[int]),
        ("[0,1]", list[bool]),
    ],
)
def test_nothing_is_coerced(text: str, annotation: Any) -> None:
    assert len(problems(text, annotation)) == 1 or annotation == list[bool]


# -- all problems, with pointers


@pytest.mark.parametrize(
    ("text", "annotation", "pointers"),
    [
        ('{"y":"a"}', Point, ["/x", "/y"]),
        ('{"points":[{"x":1},{"x":"a"},{},7],"width":0}', Line, ["/points/1/x", "/points/2/x", "/points/3", "/width"]),
        ('{"points":[{"x":null,"y":[]}],"label":1}', Line, ["/points/0/x", "/points/0/y", "/label"]),
        ('{"a":"x","c":1,"b":2}', Closed, ["/a", "/b", "/c"]),
        ('{"type":"circle","radius":-1,"extra":1}', Circle | Square, ["/radius", "/extra"]),
        ('{"type":"circle","radius":1,"extra":1}', Circle, ["/extra"]),
        ('{"type":"square","corners":[{"x":1},{}]}', Circle | Square, ["/side", "/corners/1/x"]),
        ('{"type":"triangle"}', Circle | Square, ["/type"]),
        ('{"radius":1}', Circle | Square, [""]),
        ('{"type":"square","radius":1}', Circle, ["/type"]),
        ('["a",1]', Pair, ["/0", "/1"]),
        ("[]", Pair, [""]),
        ("{}", Pair, [""]),
        ('["a","b"]', Spot, ["/0", "/1"]),
        ('["a",1]', tuple[int, int], ["/0"]),
        ("[1]", tuple[int, int], [""]),
        ("{}", tuple[int, int], [""]),
        ('[1,"a",null,2]', tuple[int, ...], ["/1", "/2"]),
        ('["a",1,"b"]', set[int], ["/0", "/2"]),
        ('["a"]', frozenset[int], ["/0"]),
        ('{"a":1,"b":"x","c":[]}', dict[str, int], ["/b", "/c"]),
        ('{"1":"a","two":"b","3":3}', dict[int, str], ["/two", "/3"]),
        ("[]", dict[str, int], [""]),
        ('{"a":{"b":[1,"c"]}}', dict[str, dict[str, list[int]]], ["/a/b/1"]),
        ('{"n":3}', Even, [""]),
        ('[{"n":2},{"n":3},{"n":"x"}]', list[Even], ["/1", "/2/n"]),
        ('{"name":"a","children":[{"name":"b","children":[{}]}]}', Tree, ["/children/0/children/0/name"]),
        ('{"name":1,"age":"x"}', Person, ["/name", "/age"]),
        ('{"tags":[1]}', Note, ["/text", "/tags/0"]),
        ('{"path":1,"depth":"x"}', Settings, ["/depth", "/path"]),
        ('{"a/b":1,"c~d":2}', dict[str, str], ["/a~1b", "/c~0d"]),
        ('{"a.b[0]":"x"}', dict[str, int], ["/a.b[0]"]),
        ('[[1],"a",{}]', list[list[int] | None], ["/1", "/2"]),
        ('[{"x":1},{"x":"a"},[1]]', list[Point | str], ["/1/x", "/2"]),
        ('[[1,"a"],{"x":"b"}]', list[Point | list[int]], ["/0/1", "/1/x"]),
        ('[[1],{"type":"circle","radius":""}]', list[Circle | Square | list[int]], ["/1/radius"]),
        ('[{"type":"x"},1]', list[Circle | Square | list[int]], ["/0/type", "/1"]),
    ],
)  # fmt: skip
def test_every_problem_has_its_pointer(text: str, annotation: Any, pointers: list[str]) -> None:
    assert [pointer for pointer, _ in problems(text, annotation)] == pointers


@pytest.mark.parametrize(
    ("text", "annotation", "pointers"),
    [
        ('["",1]', list[Annotated[str, Meta(min_length=1)]], ["/0", "/1"]),
        ('["a","b1"]', list[Annotated[str, Meta(pattern="^[a-z]$")]], ["/1"]),
        ("[5,10,11]", list[Annotated[int, Meta(ge=10, multiple_of=5)]], ["/0", "/2"]),
        ("[5,10.5,1]", list[Annotated[float, Meta(gt=4, le=10)]], ["/1", "/2"]),
        ('[1,2,"a"]', Annotated[list[int], Meta(max_length=2)], ["", "/2"]),
        ('{"a":1,"b":"x"}', Annotated[dict[str, int], Meta(max_length=1)], ["", "/b"]),
        ("[[1],[]]", list[Annotated[set[int], Meta(min_length=1)]], ["/1"]),
        ("[[1],[]]", list[Annotated[tuple[int, ...], Meta(min_length=1)]], ["/1"]),
        ("[[1],[]]", list[Annotated[list[int], Meta(min_length=1)]], ["/1"]),
        ('[{"a":1},{}]', list[Annotated[dict[str, int], Meta(min_length=1)]], ["/1"]),
        ('["YQ==","YWI=","!"]', list[Annotated[bytes, Meta(max_length=1)]], ["/1", "/2"]),
        ('["YQ==","!"]', list[bytearray], ["/1"]),
        ('["2020-01-01T00:00:00Z","2020-01-01T00:00:00","x"]', list[Annotated[datetime, Meta(tz=True)]], ["/1", "/2"]),
        ('["10:00:00","x"]', list[Annotated[time, Meta(tz=False)]], ["/1"]),
        ('["2020-01-01","x"]', list[date], ["/1"]),
        ('["P1D","x"]', list[timedelta], ["/1"]),
        ('["x"]', list[uuid.UUID], ["/0"]),
        ('["1.5","x"]', list[Decimal], ["/1"]),
        ('["red","blue"]', list[Colour], ["/1"]),
        ('["a","b",1,2]', list[Literal["a", 1]], ["/1", "/3"]),
        ('[1,"a",null,[]]', list[int | str | None], ["/3"]),
        ("[true,1]", list[bool], ["/1"]),
        ("[null,1]", list[None], ["/1"]),
        ('[1,"x"]', list[Annotated[int, "a remark", Meta(extra={"unit": "ms"})]], ["/1"]),
        ('[{"a":"x"},1]', Annotated[list[Annotated[dict[str, int], Meta(extra={})]], Meta(extra={})], ["/0/a", "/1"]),
        ("[1,[2]]", list[Sequence[int]], ["/0"]),
        ('[[1,"a"],["b","c"]]', list[tuple[int, str]], ["/1/0"]),
    ],
)
def test_constraints_and_rarer_types_are_checked_too(text: str, annotation: Any, pointers: list[str]) -> None:
    assert [pointer for pointer, _ in problems(text, annotation)] == pointers


def test_raw_or_untyped_members_do_not_affect_the_problems_of_their_neighbours() -> None:
    mixed = msgspec.defstruct("Mixed", [("a", int), ("b", Any), ("c", Raw)])
    assert problems('{"a":"x","b":{},"c":[]}', mixed) == [("/a", "expected `int`, got `str`")]


def test_a_problem_names_the_expected_and_the_actual_type() -> None:
    assert problems('{"x":"5"}', Point) == [("/x", "expected `int`, got `str`")]
    assert problems('{"1":"a","two":"b"}', dict[int, str]) == [("/two", "is no key: expected `int`, got `str`")]
    assert problems('{"n":3}', Even) == [("", "n is odd")]


def test_a_key_may_be_refused_for_its_length() -> None:
    annotation = dict[Annotated[str, Meta(max_length=2)], int]
    assert [pointer for pointer, _ in problems('{"ab":1,"abc":2}', annotation)] == ["/abc"]


def test_a_value_without_problems_has_none() -> None:
    assert find_problems({"x": 1}, Point) == []


# -- hostile values


def test_thousands_of_problems_are_cut_to_a_page() -> None:
    found = problems("[" + ",".join(["{}"] * 10_000) + "]", list[Point])
    assert len(found) == MAX_PROBLEMS + 1
    assert found[0] == ("/0/x", "is missing")
    assert found[-1] == ("", "there are further problems")


def test_one_problem_among_thousands_is_found() -> None:
    text = "[" + ",".join(["1"] * 9_999) + ',"a"]'
    assert [pointer for pointer, _ in problems(text, list[int])] == ["/9999"]
    members = ",".join(f'"{n}":{n}' for n in range(5_000))
    assert [pointer for pointer, _ in problems('{"z":"a",' + members + "}", dict[str, int])] == ["/z"]


def test_the_quote_in_a_problem_is_truncated() -> None:
    found = problems('["' + "x" * 10_000 + '"]', list[Colour])
    assert len(found[0][1]) < 300
    found = problems('{"' + "x" * 10_000 + '":1}', Closed)
    assert len(found[0][0]) < 300


@pytest.mark.parametrize("annotation", [Any, list[Any], list[float], Raw, list[Raw]])
def test_a_number_that_no_double_holds_is_refused_with_its_pointer(annotation: Any) -> None:
    assert [pointer for pointer, _ in problems("[1,1e400]", annotation)] == ["/1"]


@pytest.mark.parametrize("text", [b'["\xff"]', b'["\xc3"]', b'{"a":"\xed\xa0\x80"}', b'{"\xff":1}'])
@pytest.mark.parametrize("annotation", [Any, Raw, dict[str, Raw] | list[Raw], dict[str, str] | list[str]])
def test_text_that_is_not_utf_8_is_not_json(text: bytes, annotation: Any) -> None:
    with pytest.raises(RpcError) as caught:
        decode(text, annotation)
    assert caught.value.meaning is Meaning.PARSE_ERROR
    assert ERROR_CODES[caught.value.meaning] == -32700


def test_raw_members_inside_a_type_are_still_valid_json() -> None:
    forwarded = msgspec.defstruct("Forwarded", [("body", Raw)])
    assert bytes(decode('{"body":[1]}', forwarded).body) == b"[1]"
    with pytest.raises(RpcError) as caught:
        decode(b'{"body":"\xff"}', forwarded)
    assert caught.value.meaning is Meaning.PARSE_ERROR


def test_the_cause_of_a_refusal_is_preserved() -> None:
    with pytest.raises(InvalidParams) as caught:
        decode('{"x":"5"}', Point)
    assert isinstance(caught.value.__cause__, msgspec.ValidationError)


# -- the decoder alone


@pytest.mark.parametrize("annotation", [Point, Line, dict, list[int], dict[str, Point], Circle | Square, Raw])
def test_a_type_that_msgspec_builds_has_a_decoder_of_its_own_that_decides_the_same(annotation: Any) -> None:
    bare = get_msgspec_decoder(annotation)
    assert bare is not None
    for text in (b'{"x":1}', b'{"x":"1"}', b"[1]", b'{"type":"circle","radius":1}', b"5", b"null", b'{"x":"\xff"}'):
        try:
            expected = get_params_decoder(annotation)(Raw(text))
        except RpcError:
            with pytest.raises((msgspec.DecodeError, UnicodeDecodeError)):
                bare(Raw(text))
        else:
            assert bare(Raw(text)) == expected


@pytest.mark.parametrize("annotation", [Any, object, Shaped, list[Shaped], Person | Named])
def test_a_type_that_msgspec_cannot_build_has_no_decoder(annotation: Any) -> None:
    assert get_msgspec_decoder(annotation) is None


def test_a_type_that_msgspec_refuses_has_no_decoder_where_attrs_was_never_imported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(sys.modules, "attr")
    assert get_msgspec_decoder(dict[str, pathlib.Path]) is None


# -- results


def test_a_result_becomes_the_requested_type() -> None:
    assert get_result_decoder(Point)(Raw(b'{"x":1}')) == Point(1)
    assert get_result_decoder(Any)(Raw(b"[1]")) == [1]
    assert get_result_decoder(int)(Raw(b"5")) == 5
    assert get_result_decoder(None)(Raw(b"null")) is None


def test_the_decoder_of_a_type_is_made_once() -> None:
    assert get_result_decoder(list[int]) is get_result_decoder(list[int])


def test_a_type_expression_without_a_hash_has_a_decoder_too() -> None:
    unhashable = Annotated[int, {"unit": "ms"}]
    with pytest.raises(TypeError):
        hash(unhashable)
    assert get_result_decoder(unhashable)(Raw(b"5")) == 5


@pytest.mark.parametrize("text", [b'"\xff"', b'["\xff"]', b"1e400"])
def test_a_raw_result_is_json_all_the_same(text: bytes) -> None:
    with pytest.raises((msgspec.DecodeError, UnicodeDecodeError)):
        get_result_decoder(Raw)(Raw(text))


# -- attrs classes with converters


def test_converters_and_aliases_of_attrs_are_at_work_in_params() -> None:
    assert decode('{"text":["b","a"],"unknown":1}', Shaped) == Shaped(["a", "b"])
    assert decode('[{"text":["b","a"]}]', list[Shaped]) == [Shaped(["a", "b"])]
    assert decode('{"name":"a"}', Person | Named) == Person("a")
    assert decode('{"a":"b"}', dict[str, pathlib.Path]) == {"a": pathlib.Path("b")}


def test_params_of_an_attrs_class_are_checked_as_strictly() -> None:
    assert problems('{"text":"ab","at":"1"}', Shaped) == [
        ("/text", "expected `array`, got `str`"),
        ("/at", "expected `int`, got `str`"),
    ]
    assert problems('{"text":[],"at":-1}', Shaped) == [("/at", "'at' must be >= 0: -1")]
    assert problems("5", Shaped) == [("", "params are an object or an array")]
    assert problems("5", Shaped | int) == [("", "params are an object or an array")]
    assert problems("[1e400]", list[Shaped])[0][0] == "/0"


def test_absent_params_of_an_attrs_class_are_refused_or_have_defaults() -> None:
    assert get_params_decoder(Shaped | None)(None) is None
    assert get_params_decoder(attrs.make_class("Open", {"x": attrs.field(default=1, converter=int)}))(None).x == 1
    with pytest.raises(InvalidParams) as caught:
        get_params_decoder(Shaped)(None)
    assert caught.value.problems == (("/text", "is missing"),)
    with pytest.raises(InvalidParams) as caught:
        get_params_decoder(list[Shaped])(None)
    assert caught.value.problems == (("", "params are required"),)


def test_text_that_is_not_utf_8_is_not_json_for_an_attrs_class_either() -> None:
    with pytest.raises(RpcError) as caught:
        decode(b'{"text":["\xff"]}', Shaped)
    assert caught.value.meaning is Meaning.PARSE_ERROR


def test_an_attrs_class_in_a_struct_is_refused_at_once() -> None:
    holder = msgspec.defstruct("Holder", [("inner", Shaped)])
    with pytest.raises(TypeError, match="Holder"):
        get_params_decoder(holder)


def test_a_result_may_be_of_an_attrs_class() -> None:
    assert get_result_decoder(Shaped)(Raw(b'{"text":["b","a"]}')) == Shaped(["a", "b"])
    assert get_result_decoder(Person | Named)(Raw(b'{"name":"a"}')) == Person("a")
    with pytest.raises(msgspec.ValidationError, match="/text"):
        get_result_decoder(Shaped)(Raw(b"{}"))


@pytest.mark.parametrize("annotation", [Opaque | Named, 5])
def test_a_result_type_that_cannot_be_built_is_refused_at_once(annotation: Any) -> None:
    with pytest.raises(TypeError):
        get_result_decoder(annotation)


def test_where_attrs_was_never_imported_only_types_that_msgspec_refuses_are_inspected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(sys.modules, "attr")

    assert decode('{"name":"a"}', Person) == Person("a")
    assert decode('{"a":"b"}', dict[str, pathlib.Path]) == {"a": pathlib.Path("b")}
    with pytest.raises(TypeError):
        get_params_decoder(Opaque)
    assert get_result_decoder(Annotated[Person | Named, "once more"])(Raw(b'{"name":"a"}')) == Person("a")
    with pytest.raises(TypeError):
        get_result_decoder(7)


# -- same verdict as msgspec

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abxy"), inner, max_size=3),
    max_leaves=8,
)
TYPES: list[Any] = [Point, Line, Closed, Circle | Square, Pair, Tree, dict[str, Point], list[Point | None], Person]


@given(value=JSON, annotation=st.sampled_from(TYPES))
def test_there_are_problems_exactly_where_msgspec_refuses(value: object, annotation: Any) -> None:
    try:
        msgspec.json.decode(msgspec.json.encode(value), type=annotation)
    except msgspec.ValidationError:
        assert find_problems(value, annotation)
    else:
        assert find_problems(value, annotation) == []


@given(value=JSON, annotation=st.sampled_from(TYPES))
def test_every_pointer_leads_to_a_value_or_to_a_missing_member(value: object, annotation: Any) -> None:
    for pointer, _ in find_problems(value, annotation):
        at: Any = value
        *parents, last = [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]] or [""]
        for part in parents:
            at = at[int(part)] if isinstance(at, list) else at[part]
        assert pointer == "" or isinstance(at, dict) or int(last) < len(at)


def test_a_type_is_inspected_once_however_many_handlers_use_it() -> None:
    assert get_params_decoder(dict[str, Raw]) is get_params_decoder(dict[str, Raw])
    assert get_result_decoder(list[Raw]) is get_result_decoder(list[Raw])


def test_a_program_that_makes_types_all_the_time_does_not_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode_module, "MAX_CACHED_DECODERS", 4)
    monkeypatch.setattr(decode_module, "PARAMS_DECODERS", {})
    monkeypatch.setattr(decode_module, "RESULT_DECODERS", {})
    for number in range(10):
        made = msgspec.defstruct(f"Made{number}", [("x", int)])
        assert get_params_decoder(made)(Raw(b'{"x":7}')).x == 7
        assert get_result_decoder(made)(Raw(b'{"x":7}')).x == 7
    assert len(decode_module.PARAMS_DECODERS) <= 4
    assert len(decode_module.RESULT_DECODERS) <= 4
