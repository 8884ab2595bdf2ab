"""An extension may validate the inputs of its tools against their schemas itself, before they run."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from tests.extension.raw_host import RUNTIMES, hosted, use_tool

from becket import ExtensionServer, Meaning, RemoteError
from becket.errors import BadValue
from becket.extension import tool
from becket.extension.tool_input import validation
from becket.json_schema import SchemaMode
from becket.json_schema.validator import compile_schema
from becket.testing import connected

pytestmark = pytest.mark.loops
both_runtimes = pytest.mark.parametrize("runtime", RUNTIMES)

EVEN = {
    "type": "object",
    "properties": {"numbers": {"type": "array", "items": {"multipleOf": 2}, "minItems": 2}},
    "required": ["numbers"],
}


class Even(ExtensionServer):
    id, version = "even", "1"

    def __init__(self) -> None:
        self.runs = 0

    @tool("Counts.", input_schema=EVEN)
    def count(self, numbers: list[int]) -> int:
        self.runs += 1
        return len(numbers)

    @tool("Has a schema that is none.", input_schema={"type": "no such type"})
    def broken(self) -> str:
        return "ran"


class Enforcing(Even):
    schemas = SchemaMode.ENFORCE


class Warning(Even):
    schemas = "warn"  # the value of a mode will do


class Indifferent(Even):
    schemas = SchemaMode.OFF


async def refused(host: Any, name: str, **input: Any) -> RemoteError:
    with pytest.raises(RemoteError) as error:
        await use_tool(host, name, **input)
    return error.value


@both_runtimes
async def test_an_input_that_does_not_fit_is_refused_with_all_pointers_and_the_tool_does_not_run(runtime: str) -> None:
    extension = Enforcing()
    async with hosted(extension, runtime) as host:
        error = await refused(host, "count", numbers=[1, 2, 3])

        assert (error.meaning, error.code) == (Meaning.INVALID_PARAMS, -32602)
        assert [it["pointer"] for it in error.data["problems"]] == ["/input/numbers/0", "/input/numbers/2"]
        assert extension.runs == 0
        assert await use_tool(host, "count", numbers=[2, 4]) == 2


@both_runtimes
async def test_with_the_mode_off_an_input_is_only_converted(runtime: str, caplog: pytest.LogCaptureFixture) -> None:
    async with hosted(Indifferent(), runtime) as host:
        assert await use_tool(host, "count", numbers=[1]) == 1

    assert not [record for record in caplog.records if record.name == "becket.ext.even"]


@both_runtimes
async def test_an_invalid_input_is_logged_and_accepted_if_configured(
    runtime: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with hosted(Warning(), runtime) as host:
        assert await use_tool(host, "count", numbers=[1]) == 1

    (received,) = [record for record in caplog.records if record.name == "becket.ext.even"]
    assert received.levelno == logging.WARNING
    assert "'count'" in received.getMessage()
    assert "/input/numbers/0" in received.getMessage()


async def test_schemas_are_not_checked_unless_configured(caplog: pytest.LogCaptureFixture) -> None:
    async with hosted(Even()) as host:
        assert await use_tool(host, "count", numbers=[1]) == 1
        assert await use_tool(host, "broken") == "ran"

    assert [record for record in caplog.records if record.name == "becket.ext.even"] == []


async def test_an_invalid_schema_fails_the_call_or_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async with hosted(Enforcing()) as host:
        assert (await refused(host, "broken")).meaning is Meaning.INTERNAL
    caplog.clear()
    async with hosted(Warning()) as host:
        assert await use_tool(host, "broken") == "ran"

    assert "inputs of the tool 'broken' cannot be checked" in caplog.text


async def test_a_schema_is_compiled_once_when_its_tool_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[Any] = []

    def compile_and_note(schema: Any, **options: Any) -> Any:
        compiled.append(schema)
        return compile_schema(schema, **options)

    monkeypatch.setattr(validation, "compile_schema", compile_and_note)
    async with hosted(Enforcing()) as host:
        assert compiled == []
        await use_tool(host, "count", numbers=[2, 4])
        await use_tool(host, "count", numbers=[2, 4, 6])

    assert compiled == [EVEN]


class Doubling(ExtensionServer):
    id, version = "doubling", "1"

    @tool("Doubles.")
    def double(self, number: int) -> str:
        return repr(number * 2)


@pytest.mark.parametrize("mode", SchemaMode)
async def test_host_and_extension_accept_a_whole_number_as_an_integer_however_it_is_written(
    mode: SchemaMode,
) -> None:
    async with connected(Doubling(), grants=["tools.register"], schemas=mode) as (host, _):
        assert await host.call_tool("double", {"number": 2.0}) == "4"
        with pytest.raises((BadValue, RemoteError)) as error:
            await host.call_tool("double", {"number": 2.5})

    assert isinstance(error.value, BadValue) is (mode is SchemaMode.ENFORCE)
