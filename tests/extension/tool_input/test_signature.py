"""The input of a tool follows its signature: a JSON schema, and strict validation."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from enum import Enum, IntEnum
from pathlib import Path
from typing import Annotated, Any, Generic, List, Literal, Optional, TypedDict, TypeVar  # noqa: UP035

import attrs
import jsonschema
import msgspec
import pytest
import typing_extensions
from hypothesis import given, strategies as st
from msgspec import Meta, Raw, Struct, field as struct_field

from becket import Context, InvalidParams
from becket.blocking import BlockingContext
from becket.conversion.problems import MAX_PROBLEMS
from becket.extension.decorators import docstring_summary
from becket.extension.tool_input.signature import ToolInput, parse_parameter_docs, read_tool_input, simple_schema

T = TypeVar("T")


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Point(Struct):
    x: int
    y: int = 0


class Renamed(Struct, rename="camel", forbid_unknown_fields=True):
    long_name: str


@dataclass
class Page:
    number: int
    tags: list[str] = field(default_factory=list)


@attrs.define
class Note:
    text: str
    size: int = 3


@attrs.define
class Shaped:
    _secret: str = attrs.field(alias="secret")
    size: int = attrs.field(default=1, validator=attrs.validators.gt(0))
    upper: str = attrs.field(default="", converter=str.upper)
    inner: list[Note] = attrs.field(factory=list)


@attrs.define
class Tree:
    name: str = attrs.field(validator=attrs.validators.min_len(1))
    below: list[Tree] = attrs.field(factory=list)


class Options(TypedDict, total=False):
    deep: bool


@attrs.define
class Box(Generic[T]):
    held: T = attrs.field(validator=attrs.validators.instance_of(int))


def input_of(function: Any) -> ToolInput:
    return read_tool_input(function)


def schema_of_one(kind: Any, default: Any = ...) -> Any:
    """Returns the schema of one parameter of this type."""

    def function(self: Any, it: Any, also: int = 1) -> None: ...

    function.__annotations__["it"] = kind
    if default is not ...:
        function.__defaults__ = (default, 1)
    return input_of(function).schema["properties"]["it"]


def problems_of(function: Any, given: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(InvalidParams) as refused:
        input_of(function).decode(given)
    return dict(refused.value.problems)


# -- schemas


def test_a_signature_becomes_a_schema() -> None:
    def count(self: Any, text: str, limit: int = 10, *, deep: bool = False) -> int: ...

    assert input_of(count).schema == {
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "limit": {"type": "integer", "default": 10},
            "deep": {"type": "boolean", "default": False},
        },
        "required": ["text"],
        "additionalProperties": False,
    }


def test_a_tool_without_parameters_takes_an_empty_object() -> None:
    def ping(self: Any) -> None: ...

    assert input_of(ping).schema == {"type": "object", "properties": {}, "additionalProperties": False}
    assert input_of(ping).decode({}) == {}


@pytest.mark.parametrize(
    ("kind", "schema"),
    [
        (str, {"type": "string"}),
        (float, {"type": "number"}),
        (Any, {}),
        (object, {}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (dict[str, bool], {"type": "object", "additionalProperties": {"type": "boolean"}}),
        (Optional[int], {"anyOf": [{"type": "integer"}, {"type": "null"}]}),  # noqa: UP045
        (str | None, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        (Literal["a", "b"], {"enum": ["a", "b"]}),
        (date, {"type": "string", "format": "date"}),
        (Annotated[int, Meta(ge=1, description="D")], {"type": "integer", "minimum": 1, "description": "D"}),
        (Path, {"type": "string"}),
        (list, {"type": "array"}),
        (List, {"type": "array"}),  # noqa: UP006
        (List[int], {"type": "array", "items": {"type": "integer"}}),  # noqa: UP006
    ],
)  # fmt: skip
def test_types_become_schemas(kind: Any, schema: dict[str, Any]) -> None:
    assert schema_of_one(kind) == schema


@pytest.mark.parametrize(
    "kind",
    [str, int, float, bool, list[str], list[list[int]], str | None, list[float | None], list[str] | None],
)  # fmt: skip
def test_the_schema_of_a_simple_type_is_that_of_msgspec(kind: Any) -> None:
    assert simple_schema(kind) == msgspec.json.schema_components((kind,))[0][0]


@pytest.mark.parametrize("kind", [list, dict, None, int | str, None | str, Any, Annotated[int, Meta(ge=1)], object])
def test_complex_types_are_left_to_msgspec(kind: Any) -> None:
    assert simple_schema(kind) is None


def test_enums_and_classes_are_defined_once() -> None:
    def paint(self: Any, first: Colour, second: Colour, at: Point, on: list[Page]) -> None: ...

    schema = input_of(paint).schema

    assert schema["properties"]["first"] == schema["properties"]["second"] == {"$ref": "#/$defs/Colour"}
    assert schema["properties"]["on"] == {"type": "array", "items": {"$ref": "#/$defs/Page"}}
    assert schema["$defs"]["Colour"] == {"title": "Colour", "enum": ["blue", "red"]}
    assert schema["$defs"]["Point"]["required"] == ["x"]
    assert set(schema["$defs"]) == {"Colour", "Point", "Page"}


def test_a_default_that_json_has_no_form_for_is_left_out() -> None:
    assert schema_of_one(Any, object()) == {}
    assert schema_of_one(Colour, Colour.RED)["default"] == "red"
    assert schema_of_one(Point, Point(1))["default"] == {"x": 1, "y": 0}
    assert schema_of_one(int | None, None)["default"] is None


@pytest.mark.parametrize("default", [math.inf, -math.inf, math.nan, [1.0, math.inf], {"a": math.nan}])
def test_a_default_that_json_lacks_is_omitted_from_the_schema(default: Any) -> None:
    assert schema_of_one(Any, default) == {}


def test_a_single_class_is_the_whole_input() -> None:
    def by_struct(self: Any, it: Point) -> None: ...
    def by_dataclass(self: Any, it: Page) -> None: ...
    def by_attrs(self: Any, it: Note) -> None: ...
    def by_dict(self: Any, it: Options) -> None: ...
    def renamed(self: Any, it: Renamed) -> None: ...

    assert input_of(by_struct).schema == {
        "type": "object",
        "properties": {"x": {"type": "integer"}, "y": {"type": "integer", "default": 0}},
        "required": ["x"],
        "additionalProperties": False,
    }
    assert input_of(by_struct).decode({"x": 1}) == {"it": Point(1)}
    assert input_of(by_dataclass).decode({"number": 1, "tags": ["a"]}) == {"it": Page(1, ["a"])}
    assert input_of(by_attrs).decode({"text": "a"}) == {"it": Note("a")}
    assert input_of(by_dict).decode({"deep": True}) == {"it": {"deep": True}}
    assert input_of(renamed).decode({"longName": "a"}) == {"it": Renamed("a")}


def test_a_single_class_with_a_default_is_a_parameter_like_others() -> None:
    def at(self: Any, it: Point = Point(0)) -> None: ...  # noqa: B008

    assert input_of(at).decode({"it": {"x": 3}}) == {"it": Point(3)}
    assert input_of(at).decode({}) == {}


def test_an_attrs_class_has_its_aliases_and_what_its_converters_take() -> None:
    def keep(self: Any, it: Shaped) -> None: ...

    schema = input_of(keep).schema

    assert schema["properties"]["secret"] == {"type": "string"}
    assert schema["properties"]["inner"] == {"type": "array", "items": {"$ref": "#/$defs/Note"}}
    assert schema["required"] == ["secret"]
    assert schema["additionalProperties"] is False
    assert "Shaped" not in schema["$defs"]
    assert input_of(keep).decode({"secret": "s", "upper": "a"})["it"] == Shaped(secret="s", upper="a")


@attrs.define
class Documented:
    """A box.

    Of any size.
    """

    width: int = attrs.field(default=3, validator=attrs.validators.gt(0))
    colour: Colour = Colour.RED
    name: str = attrs.field(default="a", converter=str.upper)
    tags: list[str] = attrs.field(factory=list)
    made: object = attrs.field(default=object, converter=lambda it: it)


@dataclass
class Undocumented:
    """Is built by cattrs, since it has a member that callers do not send."""

    width: int = 3
    area: int = field(init=False, default=9)
    tags: list[str] = field(default_factory=list)


Undocumented.__doc__ = "Undocumented(width: int = 3, tags: list[str] = <factory>)"  # as dataclasses write it


def test_a_class_with_its_own_rules_preserves_its_documentation_and_its_defaults() -> None:
    def keep(self: Any, box: Documented, other: Undocumented) -> None: ...

    definitions = input_of(keep).schema["$defs"]
    box, other = definitions["Documented"], definitions["Undocumented"]

    assert box["description"] == "A box.\n\nOf any size."
    assert box["properties"] == {
        "width": {"type": "integer", "default": 3},
        "colour": {"$ref": "#/$defs/Colour", "default": "red"},
        "name": {"type": "string", "default": "a"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "made": {},
    }
    assert "description" not in other
    assert other["properties"] == {
        "width": {"type": "integer", "default": 3},
        "tags": {"type": "array", "items": {"type": "string"}},
    }
    assert "required" not in box | other


def test_a_class_that_holds_itself_stays_defined() -> None:
    def plant(self: Any, tree: Tree) -> None: ...

    schema = input_of(plant).schema

    assert schema["properties"]["below"]["items"] == {"$ref": "#/$defs/Tree"}
    assert "Tree" in schema["$defs"]
    assert input_of(plant).decode({"name": "a", "below": [{"name": "b"}]})["tree"] == Tree("a", [Tree("b")])
    jsonschema.Draft202012Validator(schema).validate({"name": "a", "below": [{"name": "b", "below": []}]})


def test_shaped_classes_are_found_in_containers() -> None:
    def sort(
        self: Any,
        maybe: Tree | None,
        several: dict[str, Tree],
        pair: tuple[int, Tree],
        many: tuple[Tree, ...],
        held: Box[int],
        where: Annotated[Path, "a path"],
    ) -> None: ...

    properties = input_of(sort).schema["properties"]
    tree = {"$ref": "#/$defs/Tree"}

    assert properties["maybe"] == {"anyOf": [tree, {"type": "null"}]}
    assert properties["several"] == {"type": "object", "additionalProperties": tree}
    assert properties["pair"]["prefixItems"] == [{"type": "integer"}, tree]
    assert (properties["pair"]["minItems"], properties["pair"]["maxItems"]) == (2, 2)
    assert properties["many"] == {"type": "array", "items": tree}
    assert properties["where"] == {"type": "string"}


def test_two_classes_of_one_name_in_one_input_are_refused() -> None:
    other = attrs.make_class("Tree", {"height": attrs.field(validator=attrs.validators.gt(0))})

    def compare(self: Any, first: Tree, second: other) -> None: ...  # type: ignore[valid-type]

    compare.__annotations__["second"] = other
    with pytest.raises(TypeError, match="are named `Tree`"):
        input_of(compare)


def test_a_converter_may_take_what_only_it_understands() -> None:
    @attrs.define
    class Odd:
        made: Any = attrs.field(converter=lambda it: it)
        built: Callable[[], None] = attrs.field(converter=lambda it: it)

    def keep(self: Any, it: Odd) -> None: ...

    keep.__annotations__["it"] = Odd
    assert input_of(keep).schema["properties"] == {"made": {}, "built": {}}


def test_a_given_schema_replaces_the_generated_one() -> None:
    def count(self: Any, text: str) -> None: ...

    given = {"type": "object", "properties": {"text": {"type": "string", "maxLength": 3}}}
    described = read_tool_input(count, given)

    assert described.schema is given
    assert described.decode({"text": "a", "more": 1}) == {"text": "a"}


@pytest.mark.parametrize(
    ("beside", "refused"),
    [
        ({}, []),
        ({"additionalProperties": {"type": "string"}}, []),
        ({"additionalProperties": False}, ["/input/x-more", "/input/limit"]),
        ({"additionalProperties": False, "properties": {"text": {}, "x-more": {}}}, ["/input/limit"]),
        ({"additionalProperties": False, "patternProperties": {"^x-|limit": {}}}, []),
    ],
)
def test_a_given_schema_defines_the_names_beside_the_parameters(beside: dict[str, Any], refused: list[str]) -> None:
    def count(self: Any, text: str, limit: int = 1) -> None: ...

    described = read_tool_input(count, {"type": "object", "properties": {"text": {}}, **beside})
    found: list[str] = []
    try:
        described.decode({"text": "a", "x-more": 1, "limit": 2})
    except InvalidParams as error:
        found = [pointer for pointer, _ in error.problems]
    assert found == refused


class Leaf(Struct, tag="leaf"):
    size: int


class Branch(Struct, tag="branch"):
    below: list[Leaf | Branch]


class First(Struct, tag=1):
    size: int


class Second(Struct, tag=2):
    size: float


class Pair(Struct, array_like=True):
    left: Point
    right: Point


@attrs.define
class Holder:
    """Is built by cattrs, and holds a class that is not."""

    at: Point = attrs.field(validator=attrs.validators.instance_of(Point))


POINT = {"x": 1, "why": 2}
SHAPED = {"secret": "s", "why": 2}


@pytest.mark.parametrize(
    ("kind", "value", "pointer"),
    [
        (Point, POINT, "/why"),
        (Page, {"number": 1, "why": 2}, "/why"),
        (Note, {"text": "", "why": 2}, "/why"),
        (Options, {"deep": True, "why": 2}, "/why"),
        (Shaped, SHAPED, "/why"),
        (Holder, {"at": POINT}, "/at/why"),
        (Point | None, POINT, "/why"),
        (Annotated[Point, Meta(description="D")], POINT, "/why"),
        (list[Point], [{"x": 1}, POINT], "/1/why"),
        (list[Shaped], [SHAPED], "/0/why"),
        (dict[str, list[Point]], {"a/b": [POINT]}, "/a~1b/0/why"),
        (tuple[int, Point], [1, POINT], "/1/why"),
        (Pair, [{"x": 1}, POINT], "/1/why"),
        (list[Point] | Point | int, [POINT], "/0/why"),
        (list[Point] | Point | int, POINT, "/why"),
        (Leaf | Branch | None, {"type": "branch", "below": [{"type": "leaf", "size": 1, "why": 2}]}, "/below/0/why"),
        (First | Second, {"type": 2, "size": 1, "why": 2}, "/why"),
        (First | Second, {"type": 2.0, "size": 1, "why": 2}, "/why"),
        (Tree, {"name": "a", "below": [{"name": "b", "why": 2}]}, "/below/0/why"),
    ],
)
def test_a_member_that_no_class_knows_is_refused_at_any_depth_and_by_the_schema_too(
    kind: Any, value: Any, pointer: str
) -> None:
    def function(self: Any, it: Any, also: int = 1) -> None: ...

    function.__annotations__["it"] = kind

    assert problems_of(function, {"it": value}) == {f"/input/it{pointer}": "is unknown"}
    assert not jsonschema.Draft202012Validator(input_of(function).schema).is_valid({"it": value})
    with pytest.raises(InvalidParams) as refused:  # a schema that is given makes no class less strict
        read_tool_input(function, {"type": "object"}).decode({"it": value, "more": 1})
    assert refused.value.problems == ((f"/input/it{pointer}", "is unknown"),)


@pytest.mark.parametrize("kind", [Any, dict[str, Any], dict[str, Any] | list[Any], Colour | dict[str, Any]])
def test_a_value_without_a_class_may_have_any_members(kind: Any) -> None:
    def function(self: Any, it: Any, at: Point) -> None: ...

    function.__annotations__["it"] = kind

    assert input_of(function).decode({"it": {"why": {"x": 1}}, "at": {"x": 1}})["it"] == {"why": {"x": 1}}


def test_invalid_and_unknown_members_are_reported_together() -> None:
    def function(self: Any, it: list[Point], leaf: Leaf | Branch) -> None: ...

    unknown = {"/input/it/0/x", "/input/it/0/why", "/input/leaf/type", "/input/more"}
    for tag in ("no such", ["no such"]):
        given = {"it": [{"x": "a", "why": 2}], "leaf": {"type": tag, "why": 2}, "more": 1}
        assert set(problems_of(function, given)) == unknown


def test_the_number_of_reported_unknown_members_is_bounded() -> None:
    def function(self: Any, it: list[Point]) -> None: ...

    assert len(problems_of(function, {"it": [POINT] * 1000})) == MAX_PROBLEMS


def test_a_schema_that_allows_everything_is_given_as_well() -> None:
    def function(self: Any, text: str) -> None: ...
    def whole(self: Any, point: Point) -> None: ...

    assert read_tool_input(function, {}).schema == {}
    assert read_tool_input(whole, {}).schema == {}


# -- parameters that are no input


def test_the_context_is_not_an_input() -> None:
    def on_a_loop(self: Any, text: str, ctx: Context) -> None: ...
    def without(self: Any, ctx: BlockingContext, point: Point) -> None: ...

    assert (input_of(on_a_loop).context, list(input_of(on_a_loop).schema["properties"])) == ("ctx", ["text"])
    assert (input_of(without).context, list(input_of(without).schema["properties"])) == ("ctx", ["x", "y"])


def test_the_signature_of_the_wrapped_function_counts() -> None:
    def written(self: Any, text: str) -> None: ...
    def wrapper(*args: Any) -> None: ...

    wrapper.__wrapped__ = written  # type: ignore[attr-defined]
    assert list(input_of(wrapper).schema["properties"]) == ["text"]


# -- what JSON cannot become


class Opaque: ...


@pytest.mark.parametrize("kind", [Opaque, list[Opaque], Callable[[], None], Path | Opaque])
def test_a_type_that_json_cannot_become_is_named(kind: Any) -> None:
    with pytest.raises(TypeError, match=r"as in .*function"):
        schema_of_one(kind)


def test_the_reason_why_a_type_cannot_be_an_input_is_one_line_without_the_options_of_msgspec() -> None:
    with pytest.raises(TypeError) as caught:
        schema_of_one(complex)
    assert "complex" in str(caught.value)
    assert "hook" not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", [Raw, list[Raw], dict[str, Raw]])
def test_raw_json_is_not_an_input_type(kind: Any) -> None:
    with pytest.raises(TypeError, match="use `Any`"):
        schema_of_one(kind)


def test_a_typed_dict_of_typing_extensions_is_a_whole_input_as_another_is() -> None:
    class One(TypedDict):
        x: int

    class Other(typing_extensions.TypedDict):
        x: int

    def by_one(self: Any, it: One) -> None: ...
    def by_other(self: Any, it: Other) -> None: ...

    by_one.__annotations__["it"], by_other.__annotations__["it"] = One, Other
    assert input_of(by_one).schema == input_of(by_other).schema
    assert input_of(by_other).decode({"x": 1}) == {"it": {"x": 1}}


@pytest.mark.parametrize(
    "docstring",
    [
        "Keeps a note.\n\n    Args:\n        text: What.",
        "Keeps a note.\n    \n    Args:\n        text: What.",
        "Keeps\n    a note.\n    Args:\n        text: What.",
        "Keeps a note.",
    ],
)
def test_the_first_paragraph_of_a_docstring_is_the_description(docstring: str) -> None:
    def keep(text: str) -> None: ...

    keep.__doc__ = docstring
    assert docstring_summary(keep) == "Keeps a note."


def test_an_annotation_that_names_nothing_is_named() -> None:
    def count(self: Any, text: Missing) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(TypeError, match=r"`Missing` of .*count names nothing"):
        input_of(count)


# -- docstrings


def test_the_docstring_describes_the_parameters() -> None:
    def count(self: Any, text: str, limit: int = 1, tags: Annotated[str, Meta(description="Mine.")] = "") -> int:
        """Counts.

        Args:
            text: What to look for,
                in any note.
            limit (int): How many at most.
            tags: Not written here.

        Returns:
            Something: else.
        """

    properties = input_of(count).schema["properties"]

    assert properties["text"]["description"] == "What to look for, in any note."
    assert properties["limit"] == {"type": "integer", "description": "How many at most.", "default": 1}
    assert properties["tags"]["description"] == "Mine."


@pytest.mark.parametrize(
    ("docstring", "found"),
    [
        ("", {}),
        ("Args:", {}),
        ("Says: nothing of it.", {}),
        ("Counts.\n\nArguments:\n    a: One.\n\n    b: Two.\n", {"a": "One.", "b": "Two."}),
        ("Args:\n  a:\n    One.\n  see: http://x: y\nRest: of it", {"a": "One.", "see": "http://x: y"}),
        ("Parameters:\n\t*a: One.\n\tnot a name: lost\n", {"a": "One. not a name: lost"}),
    ],
)
def test_common_docstring_sections_are_parsed(docstring: str, found: dict[str, str]) -> None:
    assert parse_parameter_docs(docstring) == found


# -- reading


def test_arguments_are_read_and_defaults_left_to_the_function() -> None:
    def paint(
        self: Any, colour: Colour, at: Point, when: date, sizes: dict[int, float], deep: bool = False
    ) -> None: ...

    given = {"colour": "red", "at": {"x": 1}, "when": "2026-01-31", "sizes": {"3": 1}}

    assert input_of(paint).decode(given) == {
        "colour": Colour.RED,
        "at": Point(1),
        "when": date(2026, 1, 31),
        "sizes": {3: 1.0},
    }


def test_all_problems_are_reported_at_once_with_pointers() -> None:
    def paint(self: Any, colour: Colour, points: list[Point], note: Note, tree: Tree, limit: int = 1) -> None: ...

    given = {
        "colour": "green",
        "points": [{"x": 1}, {"x": "1", "y": None}],
        "tree": {"name": 5},
        "limit": "5",
        "more/or~less": 1,
    }

    assert set(problems_of(paint, given)) == {
        "/input/colour",
        "/input/points/1/x",
        "/input/points/1/y",
        "/input/note",
        "/input/tree/name",
        "/input/limit",
        "/input/more~1or~0less",
    }


@pytest.mark.parametrize("value", ["5", 5.5, True, None, [], {}])
def test_nothing_is_coerced(value: Any) -> None:
    def count(self: Any, limit: int) -> None: ...

    assert list(problems_of(count, {"limit": value})) == ["/input/limit"]


@pytest.mark.parametrize("given_schema", [None, {"type": "object"}])
@pytest.mark.parametrize("kind", [Point, Page, Note, Shaped, Options, Renamed])
def test_a_whole_input_is_closed_too(kind: Any, given_schema: dict[str, Any] | None) -> None:
    def keep(self: Any, it: Any) -> None: ...

    keep.__annotations__["it"] = kind
    members = {"x": 1, "number": 1, "text": "a", "secret": "s", "longName": "", "unheard": 1}
    with pytest.raises(InvalidParams) as refused:
        read_tool_input(keep, given_schema).decode(members)
    problems = dict(refused.value.problems)

    assert problems["/input/unheard"] == "is unknown"
    assert "/input/it" not in problems


def test_a_class_that_is_an_array_is_a_parameter_like_others() -> None:
    def between(self: Any, points: Pair) -> None: ...

    read = input_of(between).decode({"points": [{"x": 1}, {"x": 2}]})
    assert read == {"points": Pair(Point(1), Point(2))}


# -- whole numbers


class Level(IntEnum):
    LOW = 1


@attrs.define
class Square:
    kind: Literal["square"]
    side: int


@attrs.define
class Circle:
    kind: Literal["circle"]
    radius: int
    side: float = 0.0


@attrs.define
class Sized:
    """Is built by cattrs."""

    size: int = attrs.field(validator=attrs.validators.ge(0))
    inner: list[Sized | None] = attrs.field(factory=list)


@pytest.mark.parametrize(
    ("kind", "value", "read"),
    [
        (int, 3.0, 3),
        (int, -0.0, 0),
        (int, 1e300, int(1e300)),
        (int | str, 3.0, 3),
        (Annotated[int, Meta(le=3)], 3.0, 3),
        (Level, 1.0, Level.LOW),
        (Literal[1, 2], 2.0, 2),
        (list[int], [1, 2.0], [1, 2]),
        (tuple[str, int], ["a", 2.0], ("a", 2)),
        (dict[str, int], {"a": 2.0}, {"a": 2}),
        (Point, {"x": 1.0}, Point(1)),
        (Pair, [{"x": 1.0}, {"x": 2}], Pair(Point(1), Point(2))),
        (First | Second, {"type": 1.0, "size": 2.0}, First(2)),
        (First | Second, {"type": 2.0, "size": 2.0}, Second(2.0)),
        (Leaf | Branch, {"type": "branch", "below": [{"type": "leaf", "size": 2.0}]}, Branch([Leaf(2)])),
        (Square | Circle, {"kind": "square", "side": 2.0}, Square("square", 2)),
        (Square | Circle, {"kind": "circle", "radius": 2.0, "side": 2.0}, Circle("circle", 2, 2.0)),
        (Sized, {"size": 2.0, "inner": [None, {"size": 3.0}]}, Sized(2, [None, Sized(3)])),
    ],
)
def test_a_whole_number_is_an_integer_however_it_is_written(kind: Any, value: Any, read: Any) -> None:
    def function(self: Any, it: Any, also: int = 1) -> None: ...

    function.__annotations__["it"] = kind
    given = {"it": value, "also": 2.0}
    before = copy.deepcopy(given)

    assert repr(input_of(function).decode(given)) == repr({"it": read, "also": 2})
    assert repr(given) == repr(before)
    assert jsonschema.Draft202012Validator(input_of(function).schema).is_valid(given)


def test_a_whole_number_is_unchanged_where_no_integer_is_expected() -> None:
    def function(self: Any, it: Any, size: float, of: dict[str, Any], at: Point) -> None: ...

    given = {"it": 2.0, "size": 2.0, "of": {"x": 2.0}, "at": {"x": 2.0}}
    assert repr(input_of(function).decode(given)) == repr({"it": 2.0, "size": 2.0, "of": {"x": 2.0}, "at": Point(2)})


@pytest.mark.parametrize("value", [2.5, float("inf"), float("nan"), {"x": 2.5}, [2.0]])
def test_a_number_that_is_not_whole_is_refused(value: Any) -> None:
    def function(self: Any, it: int | Point) -> None: ...

    (pointer,) = problems_of(function, {"it": value})
    assert pointer in ("/input/it", "/input/it/x")


def test_a_whole_number_is_not_reported_beside_other_problems() -> None:
    def function(self: Any, it: Point) -> None: ...

    assert list(problems_of(function, {"x": 2.0, "y": "a"})) == ["/input/y"]


@attrs.define
class Left:
    kind: Literal["left"]
    size: int
    below: list[Left | Right] = attrs.field(factory=list)


@attrs.define
class Right:
    kind: Literal["right"]
    size: int
    below: list[Left | Right] = attrs.field(factory=list)


def test_whole_numbers_in_a_union_take_no_time_that_is_exponential_in_the_depth() -> None:
    def function(self: Any, it: Left | Right, also: int = 1) -> None: ...

    tree: dict[str, Any] = {"kind": "left", "size": 2.0}
    for _ in range(40):
        tree = {"kind": "right", "size": 2.0, "below": [tree]}

    assert repr(input_of(function).decode({"it": tree})["it"]).count("size=2,") == 41


def test_a_value_with_very_many_problems_gets_a_page_of_them() -> None:
    def count(self: Any, numbers: list[int], other: int) -> None: ...

    assert len(problems_of(count, {"numbers": ["x"] * 1000, "other": "x"})) <= MAX_PROBLEMS + 2


def test_an_error_of_the_class_itself_is_reported_with_its_message() -> None:
    def keep(self: Any, it: Shaped) -> None: ...

    assert "'size' must be > 0" in problems_of(keep, {"secret": "s", "size": 0})["/input/size"]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "red", "2026-01-31", 1.0, 1.5]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["x", "y", "text"]), inner, max_size=2),
    max_leaves=4,
)


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(["colour", "at", "note", "sizes", "limit", "odd"], VALUES)))
def test_the_schema_matches_the_signature(given: dict[str, Any]) -> None:
    def paint(
        self: Any,
        colour: Literal["red", "a"],
        at: Point | None = None,
        note: str | Literal[1, 2] = 1,
        sizes: Annotated[list[int], Meta(max_length=1)] = [],  # noqa: B006
        limit: Annotated[int, Meta(ge=0)] = 1,
    ) -> None: ...

    described = input_of(paint)
    fits = jsonschema.Draft202012Validator(described.schema).is_valid(given)
    try:
        described.decode(given)
    except InvalidParams:
        assert not fits
    else:
        assert fits


def test_a_field_of_a_struct_may_have_a_name_of_its_own() -> None:
    class Named(Struct):
        kind: str = struct_field(name="type")

    def keep(self: Any, it: Named) -> None: ...

    keep.__annotations__["it"] = Named
    assert list(input_of(keep).schema["properties"]) == ["type"]
    assert input_of(keep).decode({"type": "a"})["it"] == Named("a")
