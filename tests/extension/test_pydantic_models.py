"""pydantic models as inputs and results of tools: read strictly, described by pydantic, wrong with JSON pointers."""

from __future__ import annotations

import subprocess
import sys
from datetime import date
from typing import Annotated, Any, Literal

import pytest
from msgspec import Struct

from becket import Meaning, RemoteError
from becket.adapters.mcp.dialect import MCP
from becket.errors import BadValue, InvalidParams
from becket.extension import ExtensionServer, tool
from becket.extension.results import read_tool_output
from becket.extension.tool_input.signature import read_tool_input
from becket.testing import connected

pydantic = pytest.importorskip("pydantic", reason="the extra `pydantic` is not installed")
from pydantic import BaseModel, ConfigDict, Field, RootModel, computed_field, field_validator  # noqa: E402
from pydantic.dataclasses import dataclass  # noqa: E402

pytestmark = pytest.mark.loops


class Author(BaseModel):
    name: str
    born: date | None = None


class Book(BaseModel):
    """A book on the shelf."""

    title: str = Field(min_length=1, description="As it is printed.")
    year: int = 1966
    authors: list[Author] = []
    shelf: Annotated[int, Field(ge=1)] = Field(default=1, alias="shelfNumber")

    @field_validator("title")
    @classmethod
    def check_title(cls, title: str) -> str:
        if title == "secret":
            raise ValueError("this book is not lent")
        return title


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    name: str


class Node(BaseModel):
    name: str
    inner: list[Node] = []


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    name: str


class Numbers(RootModel[list[int]]):
    """Numbers."""


@dataclass
class Point:
    x: int
    y: int = 0


ORIGIN = Point(1)


class Area(BaseModel):
    width: int
    height: int = Field(serialization_alias="tall")

    @computed_field  # type: ignore[prop-decorator]
    @property
    def size(self) -> int:
        return self.width * self.height


class Shelf(ExtensionServer):
    id, version = "shelf", "1.0.0"

    def __init__(self) -> None:
        self.returned: Any = None

    @tool("Adds a book, which is the whole input.")
    async def add(self, book: Book) -> Book:
        return book

    @tool("Adds books to a shelf.")
    def add_all(self, books: list[Book], first: Author | None = None, point: Point = ORIGIN) -> list[str]:
        return [f"{book.title} {book.year} {first} {point.x}" for book in books]

    @tool("Feeds one.")
    async def feed(self, animal: Cat | Dog) -> str:
        return type(animal).__name__

    @tool("Adds numbers.")
    async def total(self, numbers: Numbers) -> int:
        return sum(numbers.root)

    @tool("Takes more than it knows.")
    async def take(self, thing: Open) -> dict[str, Any]:
        return thing.model_extra or {}

    @tool("Counts what is nested.")
    async def depth(self, node: Node) -> int:
        return 1 + max((len(one.inner) + 1 for one in node.inner), default=0)

    @tool("Measures.")
    async def area(self) -> Area:
        return Area(width=2, height=3)

    @tool("Returns some of them.")
    async def some(self) -> list[Author]:
        return self.returned  # type: ignore[no-any-return]

    @tool("Returns one of them, and does not say so.")
    async def silent(self) -> Any:
        return Author(name="Ada", born=date(1815, 12, 10))


GRANTS = ["tools.register"]


@pytest.mark.parametrize("dialect", ["native", MCP])
async def test_a_model_is_the_input_and_the_result_of_a_tool(dialect: Any) -> None:
    given = {"title": "Eliza", "authors": [{"name": "Joe", "born": "1923-01-08"}], "shelfNumber": 3}
    async with connected(Shelf(), grants=GRANTS, dialect=dialect) as (host, _):
        result = await host.call_tool_json("add", given)
        received = result if dialect == "native" else result["structured_content"]
        assert received == {**given, "year": 1966}


async def test_models_stand_beside_other_parameters_and_in_containers() -> None:
    async with connected(Shelf(), grants=GRANTS) as (host, _):
        books = [{"title": "a"}, {"title": "b", "year": 3.0}]  # in JSON Schema 3.0 is an integer
        assert await host.call_tool_json("add_all", {"books": books}) == ["a 1966 None 1", "b 3 None 1"]
        given = {"books": [{"title": "a"}], "first": {"name": "Ada"}, "point": {"x": 2}}
        assert await host.call_tool_json("add_all", given) == ["a 1966 name='Ada' born=None 2"]
        assert await host.call_tool_json("feed", {"animal": {"kind": "dog", "name": "Rex"}}) == "Dog"
        assert await host.call_tool_json("total", {"numbers": [1, 2]}) == 3
        assert await host.call_tool_json("take", {"name": "a", "more": 1}) == {"more": 1}
        assert await host.call_tool_json("depth", {"name": "a", "inner": [{"name": "b"}]}) == 2


def problems_of(name: str, given: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(InvalidParams) as caught:
        read_tool_input(getattr(Shelf, name)).decode(given)
    return dict(caught.value.problems)


def test_all_problems_of_an_input_are_reported_with_pointers() -> None:
    given = {"year": "1966", "authors": [{"name": "a"}, {"born": "soon", "hue": 1}], "shelfNumber": 0, "colour": 1}
    problems = problems_of("add", given)
    assert problems.keys() == {
        "/input/title",
        "/input/year",
        "/input/authors/1/name",
        "/input/authors/1/born",
        "/input/authors/1/hue",
        "/input/shelfNumber",
        "/input/colour",
    }
    assert problems["/input/title"] == problems["/input/authors/1/name"] == "is missing"
    assert problems["/input/colour"] == problems["/input/authors/1/hue"] == "is unknown"
    assert "integer" in problems["/input/year"]


def test_the_message_of_a_validator_of_a_model_is_reported() -> None:
    assert "not lent" in problems_of("add", {"title": "secret"})["/input/title"]
    assert "integer" in problems_of("feed", {"animal": {"kind": "cat", "lives": "9"}})["/input/animal/lives"]
    assert problems_of("total", {"numbers": [1, "2"]}).keys() == {"/input/numbers/1"}
    assert problems_of("add_all", {"books": [], "point": {"x": "1"}}).keys() == {"/input/point/x"}


async def test_a_host_checks_the_schema_that_pydantic_makes() -> None:
    async with connected(Shelf(), grants=GRANTS) as (host, _):
        schemas = {each.name: each.input_schema for each in host.tools}
        assert schemas["add"]["properties"]["title"]["description"] == "As it is printed."
        assert schemas["add"]["required"] == ["title"]
        assert schemas["add"]["additionalProperties"] is False
        assert schemas["take"]["additionalProperties"] is True
        with pytest.raises(BadValue) as caught:
            await host.call_tool_json("add", {"title": "", "year": "1"})
        assert {pointer for pointer, _ in caught.value.problems} == {"/title", "/year"}


async def test_a_result_has_the_schema_and_the_names_that_a_model_writes() -> None:
    async with connected(Shelf(), grants=GRANTS) as (host, shelf):
        schema = next(each.output_schema for each in host.tools if each.name == "area")
        assert schema["required"] == ["width", "tall", "size"]
        assert await host.call_tool_json("area", {}) == {"width": 2, "tall": 3, "size": 6}
        shelf.returned = [Author(name="Ada", born=date(1815, 12, 10))]
        assert await host.call_tool_json("some", {}) == [{"name": "Ada", "born": "1815-12-10"}]
        assert await host.call_tool_json("silent", {}) == {"name": "Ada", "born": "1815-12-10"}


@pytest.mark.parametrize(
    ("returned", "pointer"),
    [([Author.model_construct(name=5)], "/0/name: "), ("Ada", "/: "), ([{"name": "Ada"}], "Author")],
)
async def test_a_result_of_another_type_is_an_error_in_the_extension(
    returned: Any, pointer: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with connected(Shelf(), grants=GRANTS) as (host, shelf):
        shelf.returned = returned
        with pytest.raises(RemoteError) as caught:
            await host.call_tool_json("some", {})
    assert caught.value.meaning is Meaning.INTERNAL
    assert "the tool 'some' returned what does not fit its annotation `list[" in caplog.text
    assert pointer in caplog.text.partition("does not fit its annotation")[2]


def test_a_model_that_has_no_schema_is_refused_with_the_reason_of_pydantic() -> None:
    class Odd(BaseModel):
        model_config = ConfigDict(arbitrary_types_allowed=True)
        stream: type[sys.__class__] | Any = None
        handle: subprocess.Popen[bytes]

    def take(self: Any, odd: Odd) -> Odd:
        return odd

    take.__annotations__ = {"odd": Odd, "return": Odd}
    with pytest.raises(TypeError, match="pydantic refuses"):
        read_tool_input(take)
    assert read_tool_output(take) is None


class Holder(Struct):
    author: Author


def test_a_model_in_a_struct_is_refused_with_a_hint() -> None:
    def take(self: Any, holder: Holder) -> None: ...

    with pytest.raises(TypeError, match="use an attrs class there"):
        read_tool_input(take)


@pytest.mark.process
def test_pydantic_is_imported_only_by_the_user() -> None:
    program = """
import sys
from becket.extension import ExtensionServer, tool
from becket.extension.results import read_tool_output
from becket.extension.tool_input.signature import read_tool_input
from dataclasses import dataclass
import attrs, msgspec

@attrs.define
class A: x: int = attrs.field(alias="y")
@dataclass
class D: a: A

class E(ExtensionServer):
    id, version = "e", "1"
    @tool("x")
    def f(self, d: D, a: list[A]) -> dict[str, A]: ...

read_tool_input(E.f), read_tool_output(E.f)
assert not [name for name in sys.modules if name.startswith("pydantic")]
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=100)
