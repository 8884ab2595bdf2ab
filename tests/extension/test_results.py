"""The result of a tool has the schema of its annotation; a result that does not match is an error."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

import attrs
import pytest
from msgspec import Raw, Struct

from becket import Meaning, RemoteError
from becket.adapters.mcp import ImageContent, TextContent, ToolResult
from becket.extension import ExtensionServer, tool
from becket.extension.results import read_tool_output
from becket.testing import connected

if TYPE_CHECKING:
    from decimal import Decimal as OnlyForTypeCheckers

pytestmark = pytest.mark.loops


class Place(Struct):
    name: str
    rows: list[int] = []


@dataclass
class Weather:
    degrees: float
    place: Place


@attrs.define
class Aliased:
    name: str = attrs.field(alias="called")


class Found(TypedDict):
    count: int


def schema_of(function: Any) -> Any:
    output = read_tool_output(function)
    return None if output is None else output.schema


class Returns:
    """Functions with an annotation each."""

    def text(self) -> str: ...  # type: ignore[empty-body]
    def numbers(self) -> list[int]: ...  # type: ignore[empty-body]
    def counts(self) -> dict[str, int]: ...  # type: ignore[empty-body]
    def place(self) -> Place: ...  # type: ignore[empty-body]
    def weather(self) -> Weather: ...  # type: ignore[empty-body]
    def found(self) -> Found: ...  # type: ignore[empty-body]
    def aliased(self) -> Aliased: ...  # type: ignore[empty-body]
    def maybe(self) -> Place | None: ...
    def anything(self) -> Any: ...
    def nothing(self) -> None: ...
    def not_annotated(self): ...  # type: ignore[no-untyped-def]
    def content(self) -> list[TextContent | ImageContent]: ...  # type: ignore[empty-body]
    def result(self) -> ToolResult: ...  # type: ignore[empty-body]
    def raw(self) -> Raw: ...  # type: ignore[empty-body]
    def unknown(self) -> OnlyForTypeCheckers: ...  # type: ignore[empty-body]
    def without_json(self) -> logging.Logger: ...  # type: ignore[empty-body]


def test_the_schema_of_a_result_is_that_of_its_annotation() -> None:
    assert schema_of(Returns.text) == {"type": "string"}
    assert schema_of(Returns.numbers) == {"type": "array", "items": {"type": "integer"}}
    assert schema_of(Returns.counts) == {"type": "object", "additionalProperties": {"type": "integer"}}
    place = schema_of(Returns.place)
    assert (place["type"], place["required"], place["additionalProperties"]) == ("object", ["name"], False)
    weather = schema_of(Returns.weather)
    assert weather["properties"]["place"] == {"$ref": "#/$defs/Place"}
    assert weather["$defs"].keys() == {"Place"}
    assert schema_of(Returns.found)["properties"] == {"count": {"type": "integer"}}
    assert schema_of(Returns.aliased)["required"] == ["called"]
    assert schema_of(Returns.maybe)["anyOf"] == [{"$ref": "#/$defs/Place"}, {"type": "null"}]


@pytest.mark.parametrize(
    "name", ["anything", "nothing", "not_annotated", "content", "result", "raw", "unknown", "without_json"]
)
def test_a_result_without_an_annotation_has_no_schema(name: str) -> None:
    assert schema_of(getattr(Returns, name)) is None


class Mixed(ExtensionServer):
    """Returns what its caller names."""

    id, version = "mixed", "1.0.0"

    def __init__(self, returned: Any) -> None:
        self.returned = returned

    @tool("Returns a text.")
    def text(self) -> str:
        return self.returned  # type: ignore[no-any-return]

    @tool("Returns numbers.")
    async def numbers(self) -> list[float]:
        return self.returned  # type: ignore[no-any-return]

    @tool("Returns an object.")
    async def weather(self) -> Weather:
        return self.returned  # type: ignore[no-any-return]

    @tool("Returns an object.")
    async def found(self) -> Found:
        return self.returned  # type: ignore[no-any-return]

    @tool("Returns an object by its aliases.")
    async def aliased(self) -> Aliased:
        return self.returned  # type: ignore[no-any-return]

    @tool("Returns nothing.")
    async def nothing(self) -> None:
        return self.returned  # type: ignore[no-any-return]

    @tool("Returns what it likes.")
    async def anything(self) -> Any:
        return self.returned


GRANTS = ["tools.register"]
FITTING = [
    ("text", "milk", "milk"),
    ("numbers", (1, 2.5), [1, 2.5]),
    ("weather", Weather(20.5, Place("Bonn", [1])), {"degrees": 20.5, "place": {"name": "Bonn", "rows": [1]}}),
    ("weather", {"degrees": 20, "place": Raw(b'{"name":"Bonn"}')}, {"degrees": 20, "place": {"name": "Bonn"}}),
    ("found", {"count": 1}, {"count": 1}),
    ("aliased", Aliased("x"), {"called": "x"}),
    ("nothing", None, None),
    ("anything", [1, "a"], [1, "a"]),
]
MISFITS = [
    ("text", 5, "/: expected `str`, got `int`"),
    ("text", None, "got `null`"),
    ("numbers", [1, "2", None], "/1: expected `float`, got `str`; /2: expected `float`, got `null`"),
    ("weather", Weather("hot", Place("Bonn", ["1"])), "/degrees: "),  # type: ignore[arg-type, list-item]
    ("weather", {"degrees": 1.0}, "/place: is missing"),
    ("weather", {"degrees": 1.0, "place": {"name": "Bonn", "hue": 1}}, "/place/hue: is unknown"),
    ("found", {"count": 1, "more": 2}, "/more: is unknown"),
    ("nothing", 0, "got `int`"),
]


@pytest.mark.parametrize(("name", "returned", "received"), FITTING)
async def test_a_result_that_fits_its_annotation_is_returned(name: str, returned: Any, received: Any) -> None:
    async with connected(Mixed(returned), grants=GRANTS) as (host, _):
        assert await host.call_tool_json(name, {}) == received


@pytest.mark.parametrize(("name", "returned", "problem"), MISFITS)
async def test_a_result_that_does_not_fit_its_annotation_is_an_error_in_the_extension(
    name: str, returned: Any, problem: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with connected(Mixed(returned), grants=GRANTS) as (host, _):
        with pytest.raises(RemoteError) as caught:
            await host.call_tool_json(name, {})
    assert caught.value.meaning is Meaning.INTERNAL
    assert "annotation" not in caught.value.message  # it is for the author of the extension, not for the host
    assert f"the tool {name!r} returned what does not fit its annotation" in caplog.text
    assert problem in caplog.text


async def test_the_schema_of_a_result_is_declared_to_the_host() -> None:
    async with connected(Mixed(None), grants=GRANTS) as (host, _):
        tools = {each.name: each for each in host.tools}
        assert tools["text"].output_schema == {"type": "string"}
        assert tools["anything"].output_schema is None
