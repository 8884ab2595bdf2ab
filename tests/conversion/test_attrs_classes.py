"""JSON values are converted to users' classes exactly or not at all, and round-trip."""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping, Sequence, Set as AbstractSet
from dataclasses import InitVar, dataclass
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Final, Generic, Literal, NamedTuple, NewType, TypedDict, TypeVar

import attrs
import pytest
from hypothesis import given, strategies as st
from msgspec import Meta, Struct

from becket.conversion.attrs_classes import check_type, convert, unstructure
from becket.conversion.problems import MAX_PROBLEMS
from becket.errors import BadValue, Problem

T = TypeVar("T")
Port = NewType("Port", int)


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1


class Word(str, enum.Enum):  # noqa: UP042
    YES = "yes"


class Inner(Struct):
    n: int


class Chain(Struct):
    next: Chain | None = None


class Options(TypedDict, total=False):
    depth: int


class Spot(NamedTuple):
    x: int
    y: int


@dataclass
class Point:
    x: int
    y: float = 0.0


@attrs.define
class Line:
    points: list[Point]
    label: str | None = None
    width: Annotated[float, Meta(gt=0)] = 1.0
    tags: list[str] = attrs.field(factory=list)


@attrs.frozen
class Key:
    name: str


@attrs.define
class Tree:
    name: str
    children: list[Tree] = attrs.field(factory=list)


@dataclass
class Measured:
    size: Annotated[int, Meta(ge=0)]
    unit: Annotated[str, {"unhashable": "remark"}] = "ms"


@attrs.define
class Renamed:
    _secret: str
    kind: str = attrs.field(alias="type", default="plain")


def split(text: str) -> list[str]:
    return text.split(",")


@attrs.define
class Converted:
    tags: list[str] = attrs.field(converter=split)
    doubled: int = attrs.field(default=0, converter=lambda number: number * 2)
    exact: int = attrs.field(default=0, converter=int)
    word: complex = attrs.field(default=0j, converter=complex)
    count: int | None = attrs.field(default=None, converter=attrs.converters.optional(int))
    wrapped: str = attrs.field(default="", converter=attrs.Converter(str.strip))


@attrs.define
class Checked:
    number: int = attrs.field(validator=attrs.validators.ge(0))
    choice: str = attrs.field(default="a", validator=attrs.validators.in_(["a", "b"]), alias="pick")

    def __attrs_post_init__(self) -> None:
        for _field in attrs.fields(Checked):
            if self.number == 13:
                raise ValueError
        if self.number == 14:
            raise LookupError("a bug")


@attrs.frozen(init=False)
class ByHand:
    _secret: int = attrs.field(alias="secret", validator=attrs.validators.gt(0))
    odd: int = attrs.field()

    @odd.validator
    def look(self, attribute: Any, value: int) -> None:
        if value % 2 == 0:
            raise ValueError(f"{value} is even")

    def __init__(self, secret: int, odd: int) -> None:
        if secret + odd == 10:
            raise ValueError("too much")
        self.__attrs_init__(secret, odd)  # type: ignore[attr-defined]


@dataclass
class Range:
    last: int
    first: int = 2

    def __post_init__(self) -> None:
        if self.last < self.first:
            raise ValueError("it ends before it begins")


@attrs.define
class Late:
    first: int
    second: int = attrs.field(default=attrs.Factory(lambda self: self.first + 1, takes_self=True))
    third: int = attrs.field(init=False, default=3)


@attrs.define
class Circle:
    kind: Literal["circle"]
    radius: float
    inner: Circle | Square | None = None


@attrs.define
class Square:
    kind: Literal["square"]
    side: float
    inner: Circle | Square | None = None


@attrs.define
class ByNumber:
    x: int


@attrs.define
class ByText:
    x: str


@attrs.define
class Box(Generic[T]):
    content: T
    more: list[T] = attrs.field(factory=list)


@attrs.define
class PointBox(Box[Point]):
    pass


@attrs.define
class Opaque:
    at: complex


@dataclass
class WithInitVar:
    a: int
    b: InitVar[int]


@attrs.define
class Everything:
    text: str
    number: int
    ratio: float
    flag: bool
    nothing: None
    anything: Any
    colour: Colour
    level: Level
    word: Word
    choice: Literal["a", 1]
    port: Port
    when: datetime
    day: date
    price: Decimal
    where: Path
    inner: Inner
    options: Options
    spot: Spot
    numbers: set[int]
    keys: frozenset[Key]
    by_name: dict[str, Point]
    by_number: dict[int, Point]
    pair: tuple[Point, str]
    some: tuple[Point, ...]
    maybe: Final[Point | None]


EVERYTHING = {
    "text": "a",
    "number": 1,
    "ratio": 1.5,
    "flag": True,
    "nothing": None,
    "anything": {"a": [1]},
    "colour": "red",
    "level": 1,
    "word": "yes",
    "choice": 1,
    "port": 80,
    "when": "2020-01-01T00:00:00Z",
    "day": "2020-01-01",
    "price": "1.50",
    "where": "/tmp",
    "inner": {"n": 1},
    "options": {"depth": 1},
    "spot": [1, 2],
    "numbers": [1],
    "keys": [{"name": "a"}],
    "by_name": {"a": {"x": 1, "y": 2.0}},
    "by_number": {"7": {"x": 1, "y": 2.0}},
    "pair": [{"x": 1, "y": 2.0}, "b"],
    "some": [{"x": 1, "y": 2.0}],
    "maybe": None,
}


def problems(value: object, type: Any, **options: bool) -> list[Problem]:
    with pytest.raises(BadValue) as caught:
        convert(value, type, **options)
    return list(caught.value.problems)


def pointers(value: object, type: Any, **options: bool) -> list[str]:
    return [pointer for pointer, _ in problems(value, type, **options)]


# -- what fits


@pytest.mark.parametrize(
    ("value", "type", "expected"),
    [
        ({"x": 1}, Point, Point(1)),
        ({"x": 1, "y": 2}, Point, Point(1, 2.0)),
        ({"points": [{"x": 1}], "label": None}, Line, Line([Point(1)])),
        ({"name": "a", "children": [{"name": "b"}]}, Tree, Tree("a", [Tree("b")])),
        ({"size": 1, "unit": "s"}, Measured, Measured(1, "s")),
        ({"secret": "a", "type": "b"}, Renamed, Renamed("a", "b")),
        ({"first": 1}, Late, Late(1, 2)),
        ([{"x": 1}], list[Point], [Point(1)]),
        ([{"x": 1}], Sequence[Point], [Point(1)]),
        ([{"name": "a"}], AbstractSet[Key], {Key("a")}),
        ([{"x": 1}, 2], tuple[Point, int], (Point(1), 2)),
        ({"a": {"x": 1}}, Mapping[str, Point], {"a": Point(1)}),
        ({"red": {"x": 1}}, dict[Colour, Point], {Colour.RED: Point(1)}),
        ({"x": 1}, Annotated[Point, {"a": "remark"}], Point(1)),
        (None, Point | None, None),
        ({"x": 1}, Point | None, Point(1)),
        (5, Point | int | list[Point], 5),
        ([{"x": 1}], Point | int | list[Point], [Point(1)]),
        ({"kind": "square", "side": 1}, Circle | Square, Square("square", 1.0)),
        ({"x": "a"}, ByNumber | ByText, ByText("a")),
        ({"x": 1}, ByText | ByNumber | None, ByNumber(1)),
        ({"x": 1}, Point | ByNumber, Point(1)),
        ({"content": 1, "more": [2]}, Box[int], Box(1, [2])),
        ({"content": {"x": 1}}, PointBox, PointBox(Point(1))),
        ({"content": "a"}, Box, Box("a")),
        ("a", Path, Path("a")),
        (["a"], list[PurePosixPath], [PurePosixPath("a")]),
        ("a", Path | None, Path("a")),
        ([1, "a"], list[int | str], [1, "a"]),
        (5, int, 5),
        ({"n": 1}, Inner, Inner(1)),
        ({"a": 1}, Any, {"a": 1}),
        ([], object, []),
    ],
)
def test_a_value_becomes_an_object_of_the_type(value: object, type: Any, expected: object) -> None:
    assert convert(value, type) == expected


def test_every_kind_of_member_is_encoded_and_decoded() -> None:
    built = convert(EVERYTHING, Everything)

    assert built.colour is Colour.RED
    assert built.level is Level.LOW
    assert built.word is Word.YES
    assert built.where == Path("/tmp")
    assert built.keys == frozenset({Key("a")})
    assert built.by_number == {7: Point(1, 2.0)}
    assert unstructure(built) == EVERYTHING


def test_a_generic_class_that_holds_classes_reads_them() -> None:
    assert convert({"content": {"x": 1}, "more": [{"x": 2}]}, Box[Point]) == Box(Point(1), [Point(2)])
    assert pointers({"content": {"x": "1"}, "more": [{}]}, Box[Point]) == ["/content/x", "/more/0/x"]


# -- nothing is coerced


@pytest.mark.parametrize(
    ("value", "type"),
    [
        ("5", int),
        (5.0, int),
        (True, int),
        (None, int),
        (None, str),
        (5, str),
        (b"a", str),
        ("true", bool),
        (1, bool),
        ("1.5", float),
        (True, float),
        (10**400, float),
        ("abc", list[str]),
        ({"a": 1}, list[str]),
        ([["a", 1]], dict[str, int]),
        ("abc", list[Key]),
        ("abc", tuple[Key, ...]),
        ("ab", tuple[Key, str]),
        ([{"x": 1}], tuple[Point, int]),
        ("abc", set[Key]),
        ([["a", {}]], dict[str, Point]),
        ({"a": {"x": 1}}, dict[int, Point]),
        (5, Path),
        (None, Path),
        ("RED", Colour),
        ("1", Level),
        (True, Level),
        (True, Literal[1]),
        (1, Literal[True]),
        ("5", Point | int),
        (5, Point | str | None),
        ([["x", 1]], Point),
        ("x", Point),
        (None, Point),
        (1577836800, datetime),
    ],
)
def test_a_value_of_another_type_is_refused(value: object, type: Any) -> None:
    assert problems(value, type)


@pytest.mark.parametrize("member", ["x", "y"])
@pytest.mark.parametrize("wrong", ["1", None, True, [], {}])
def test_members_are_as_strict_as_values(member: str, wrong: object) -> None:
    assert pointers({"x": 1, "y": 1.0, member: wrong}, Point) == [f"/{member}"]


def test_an_integer_for_a_float_becomes_one() -> None:
    assert isinstance(convert({"x": 1, "y": 2}, Point).y, float)


def test_enums_that_are_also_numbers_or_texts_are_read_from_their_values_alone() -> None:
    assert pointers({**EVERYTHING, "level": 2, "word": "no"}, Everything) == ["/level", "/word"]


# -- all problems, with pointers


@pytest.mark.parametrize(
    ("value", "type", "expected"),
    [
        ({}, Point, ["/x"]),
        ({"y": "a", "z": 1, "a/b": 1}, Point, ["/x", "/y", "/a~1b", "/z"]),
        (
            {"points": [{"x": 1}, {"x": "1"}, {}, 7], "label": 5, "width": 0, "tags": ["a", 1]},
            Line,
            ["/points/1/x", "/points/2/x", "/points/3", "/label", "/width", "/tags/1"],
        ),
        ({"name": 1, "children": [{"name": "a", "children": [{}]}]}, Tree, ["/name", "/children/0/children/0/name"]),
        ({"size": -1, "unit": 1}, Measured, ["/size", "/unit"]),
        ({"type": 1}, Renamed, ["/secret", "/type"]),
        ({"_secret": "a", "kind": "b"}, Renamed, ["/secret", "/_secret", "/kind"]),
        ({"first": 1, "third": 1}, Late, ["/third"]),
        ([{"x": 1}, {}], list[Point], ["/1/x"]),
        ({"a": {"x": 1}, "b/c": {}}, dict[str, Point], ["/b~1c/x"]),
        ({"1": {"x": 1}, "two": {"x": 1}}, dict[int, Point], ["/two"]),
        ([{}, 2], tuple[Point, str], ["/0/x", "/1"]),
        ({"kind": "circle"}, Circle | Square, ["/radius"]),
        ({"kind": "circle", "radius": 1, "extra": 1}, Circle | Square, ["/extra"]),
        ({"kind": "square", "side": 1, "inner": {"kind": "circle", "radius": "1"}}, Circle | Square, ["/inner/radius"]),
        ({"kind": "triangle"}, Circle | Square, [""]),
        ({"side": 1}, Circle | Square, [""]),
        ({"x": None}, ByNumber | ByText, [""]),
        ([{"x": 1}, {"x": []}], list[ByNumber | ByText], ["/1"]),
        ({"inner": {"n": "1"}, "spot": [1, "2"]}, dict[str, Inner] | None, ["/inner/n", "/spot"]),
    ],
)  # fmt: skip
def test_every_problem_has_its_pointer(value: object, type: Any, expected: list[str]) -> None:
    assert pointers(value, type) == expected


def test_a_problem_names_the_expected_and_the_actual_type() -> None:
    assert problems({"y": "a", "z": 1}, Point) == [
        ("/x", "is missing"),
        ("/y", "expected `float`, got `str`"),
        ("/z", "is unknown"),
    ]
    assert problems(5, Point) == [("", "expected `object`, got `int`")]
    assert problems(5, list[Point]) == [("", "expected `array`, got `int`")]
    assert problems("a", Point | int | None) == [("", "expected `int | object | null`, got `str`")]
    assert problems({}, Circle | Square) == [("", "fits none of `Circle`, `Square`")]


def test_the_error_names_the_class_and_has_its_cause() -> None:
    with pytest.raises(BadValue) as caught:
        convert({}, Point)
    assert caught.value.what == "Point"
    assert caught.value.__cause__ is not None


# -- unknown members


def test_unknown_members_are_dropped_if_requested() -> None:
    assert convert({"x": 1, "z": 1}, Point, forbid_unknown=False) == Point(1)
    assert convert({"points": [{"x": 1, "z": 1}]}, Line, forbid_unknown=False) == Line([Point(1)])
    assert convert({"kind": "square", "side": 1, "z": 1}, Circle | Square, forbid_unknown=False) == Square("square", 1)


# -- converters, validators, defaults


def test_a_converter_gets_the_annotated_type() -> None:
    built = convert({"tags": "a,b", "doubled": 2, "word": "1j", "count": 3, "wrapped": " a "}, Converted)

    assert built == Converted("a,b", 2, 0, "1j", 3, " a ")
    assert built.tags == ["a", "b"]
    assert built.doubled == 4
    assert built.word == 1j
    assert built.wrapped == "a"


def test_a_converter_makes_nothing_less_strict() -> None:
    assert pointers({"tags": ["a"], "doubled": "2", "exact": "5", "count": "1"}, Converted) == [
        "/tags",
        "/doubled",
        "/exact",
        "/count",
    ]


def test_a_refusal_of_a_converter_or_validator_is_a_problem_of_its_member() -> None:
    assert pointers({"tags": "a", "word": "no number"}, Converted) == ["/word"]
    assert pointers({"tags": "a", "count": 1, "wrapped": 5}, Converted) == ["/wrapped"]
    assert problems({"number": -1}, Checked) == [("/number", "'number' must be >= 0: -1")]
    assert pointers({"number": 1, "pick": "c"}, Checked) == ["/pick"]
    assert "Attribute" not in problems({"number": 1, "pick": "c"}, Checked)[0][1]
    assert problems([{"number": 1}, {"number": -1}], list[Checked])[0][0] == "/1/number"
    assert problems({"secret": 5, "odd": 2}, ByHand) == [("/odd", "2 is even")]
    assert pointers({"secret": 0, "odd": 1}, ByHand) == ["/secret"]


def test_a_refusal_of_a_class_is_a_problem_of_the_whole() -> None:
    assert problems([{"number": 13}], list[Checked]) == [("/0", "ValueError")]
    assert problems({"last": 1}, Range) == [("", "it ends before it begins")]
    assert problems({"secret": 9, "odd": 1}, ByHand) == [("", "too much")]


def test_an_error_that_is_not_about_the_value_is_not_a_problem_of_the_value() -> None:
    with pytest.raises(LookupError, match="a bug"):
        convert({"number": 14}, Checked)


def test_a_default_may_depend_on_other_members() -> None:
    assert convert({"first": 5}, Late).second == 6


# -- types that cannot be converted


@pytest.mark.parametrize(
    "type",
    [
        complex,
        list[complex],
        Opaque,
        list[Opaque],
        Opaque | None,
        WithInitVar,
        set[Point],
        dict[str, Point] | Point,
        list[Point] | tuple[Point, ...],
        dict[complex, Point],
        Point | dict[str, int],
        TypedDict("Holder", {"inner": Renamed}),
        Struct.__class__("Sealed", (Struct,), {"__annotations__": {"inner": Checked}}),
        type[Point],
        5,
        "Point",
    ],
)
def test_a_type_that_json_cannot_become_is_a_type_error_each_time(type: Any) -> None:
    for _ in range(2):
        with pytest.raises(TypeError):
            check_type(type)
        with pytest.raises(TypeError):
            convert({}, type)


def test_a_type_that_json_can_become_passes_the_check() -> None:
    check_type(Everything)


# -- encoding


def test_members_are_written_under_their_aliases() -> None:
    assert unstructure(Renamed("a", "b")) == {"secret": "a", "type": "b"}


def test_an_unread_member_is_not_written() -> None:
    assert unstructure(Late(1, 2)) == {"first": 1, "second": 2}


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        ({Key("a")}, [{"name": "a"}]),
        ((Point(1), Colour.RED), [{"x": 1, "y": 0.0}, "red"]),
        ({7: Path("a")}, {"7": "a"}),
        (Box(Point(1)), {"content": {"x": 1, "y": 0.0}, "more": []}),
        (Inner(1), {"n": 1}),
        (None, None),
    ],
)
def test_values_of_any_kind_become_plain_json(value: object, plain: object) -> None:
    assert unstructure(value) == plain


@pytest.mark.parametrize("value", [Opaque(1j), Point(1, math.nan), [math.inf], {"a": (-math.inf,)}])
def test_a_value_that_json_lacks_is_a_type_error(value: object) -> None:
    with pytest.raises(TypeError):
        unstructure(value)


# -- hostile values


def test_thousands_of_problems_are_cut_to_a_page() -> None:
    found = problems([{}] * 10_000, list[Point])

    assert len(found) == MAX_PROBLEMS + 1
    assert found[0] == ("/0/x", "is missing")
    assert found[-1] == ("", "there are further problems")


def test_as_many_problems_as_fit_on_a_page_are_all_reported() -> None:
    assert len(problems([{}] * MAX_PROBLEMS, list[Point])) == MAX_PROBLEMS


def test_the_quote_in_a_problem_is_truncated() -> None:
    ((pointer, message),) = problems(
        {"x" * 10_000: {"x": 1}, "x": {"x": 1}}, dict[Annotated[str, Meta(max_length=5)], Point]
    )
    assert len(pointer) < 300
    assert len(message) < 300
    assert len(problems({"x": 1, "y" * 10_000: 1}, Point)[0][0]) < 300


def nested(depth: int, leaf: dict[str, Any]) -> dict[str, Any]:
    for _ in range(depth):
        leaf = {"name": "a", "children": [leaf]}
    return leaf


def test_a_value_that_is_nested_too_deeply_is_refused() -> None:
    assert [message for _, message in problems(nested(5_000, {"name": "a"}), Tree)] == ["is nested too deeply"]
    chain: dict[str, Any] = {}
    for _ in range(50_000):
        chain = {"next": chain}
    assert problems(chain, Chain) == [("", "is nested too deeply")]


def test_a_union_of_classes_takes_no_time_that_is_exponential_in_the_depth() -> None:
    value: dict[str, Any] = {"kind": "circle", "radius": "wrong"}
    for kind in ["circle", "square"] * 30:
        value = {"kind": kind, {"circle": "radius", "square": "side"}[kind]: 1, "inner": value}

    ((pointer, message),) = problems(value, Circle | Square)
    assert pointer.startswith("/inner/inner/inner")
    assert message == "expected `float`, got `str`"


# -- properties

NUMBERS = st.integers(-5, 5) | st.floats(allow_nan=False, allow_infinity=False)
NAMES = st.sampled_from(["x", "y", "name", "children"])
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
POINTS = st.fixed_dictionaries({"x": st.integers(), "y": st.floats(allow_nan=False, allow_infinity=False)})
LINES = st.fixed_dictionaries(
    {
        "points": st.lists(POINTS, max_size=3),
        "label": st.none() | st.text(),
        "width": st.floats(min_value=0.5, allow_infinity=False),
        "tags": st.lists(st.text(), max_size=3),
    }
)
SHAPES: st.SearchStrategy[Any] = st.deferred(
    lambda: (
        st.fixed_dictionaries({"kind": st.just("circle"), "radius": st.floats(0, 9), "inner": st.none() | SHAPES})
        | st.fixed_dictionaries({"kind": st.just("square"), "side": st.floats(0, 9), "inner": st.none() | SHAPES})
    )
)
FITTING = [
    (POINTS, Point),
    (LINES, Line),
    (SHAPES, Circle | Square),
    (st.dictionaries(st.text(), POINTS), dict[str, Point]),
]


@pytest.mark.parametrize(("values", "type"), FITTING)
def test_a_valid_value_is_accepted_and_encodes_to_the_same(values: st.SearchStrategy[Any], type: Any) -> None:
    @given(value=values)
    def check(value: object) -> None:
        assert unstructure(convert(value, type)) == value

    check()


def same(one: object, other: object) -> bool:
    """Returns whether a value has kept its types; defaults may be added, and an int may have become a float."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() <= other.keys() and all(same(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other and (type(one) is type(other) or {type(one), type(other)} == {int, float})


def is_int(value: object) -> bool:
    return type(value) is int


def is_number(value: object) -> bool:
    return type(value) in (int, float)


def is_tree(value: object) -> bool:
    if not isinstance(value, dict) or not value.keys() <= {"name", "children"} or type(value.get("name")) is not str:
        return False
    children = value.get("children", [])
    return isinstance(children, list) and all(map(is_tree, children))


def is_point(value: object) -> bool:
    return (
        isinstance(value, dict)
        and value.keys() <= {"x", "y"}
        and is_int(value.get("x"))
        and is_number(value.get("y", 0.0))
    )


ORACLES: list[tuple[Any, Any]] = [
    (int, is_int),
    (float, is_number),
    (str, lambda value: type(value) is str),
    (bool, lambda value: type(value) is bool),
    (None, lambda value: value is None),
    (list[int], lambda value: type(value) is list and all(map(is_int, value))),
    (Point, is_point),
    (Point | None, lambda value: value is None or is_point(value)),
    (list[Point], lambda value: type(value) is list and all(map(is_point, value))),
    (dict[str, Point], lambda value: type(value) is dict and all(map(is_point, value.values()))),
    (Tree, is_tree),
]


@pytest.mark.parametrize(("type", "is_fitting"), ORACLES)
def test_a_value_is_accepted_exactly_when_it_is_of_the_type(type: Any, is_fitting: Any) -> None:
    @given(value=JSON)
    def check(value: Any) -> None:
        try:
            built = convert(value, type)
        except BadValue:
            assert not is_fitting(value)
        else:
            assert is_fitting(value)
            assert same(value, unstructure(built))

    check()
