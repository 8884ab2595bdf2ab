"""Inputs are held against the schemas of tools before anything is sent."""

from __future__ import annotations

import threading
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from msgspec.structs import replace

from becket.contract import Tool
from becket.errors import BadValue
from becket.host.serving.tool_inputs import compile_inputs
from becket.host.time_slices import Slices
from becket.json_schema import SchemaMode
from becket.json_schema.validator import Validator

pytestmark = pytest.mark.loops

WORDS = Tool("words", "Takes words.", {"type": "object", "properties": {"words": {"items": {"type": "string"}}}})
NO_SCHEMA = Tool("none", "Has none.", {"type": "nothing"})


async def test_a_slow_validation_runs_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[threading.Thread] = []
    look = Validator.find_problems

    def find_problems(self: Validator, value: object) -> Any:
        threads.append(threading.current_thread())
        return look(self, value)

    monkeypatch.setattr(Validator, "find_problems", find_problems)
    inputs = await compile_inputs("notes", [WORDS], SchemaMode.ENFORCE, Slices())
    await inputs.check("words", {"words": ["a"]})
    assert threads == []
    with pytest.raises(BadValue, match="/words/20000"):
        await inputs.check("words", {"words": [*["a"] * 20_000, 1]})
    assert threads != [threading.current_thread()]


async def test_a_schema_that_cannot_be_applied_disables_its_tool_or_is_ignored(
    caplog: pytest.LogCaptureFixture,
) -> None:
    strict = await compile_inputs("notes", [NO_SCHEMA, WORDS], SchemaMode.ENFORCE, Slices())
    assert strict.disabled.keys() == {"none"}
    inputs = await compile_inputs("notes", [NO_SCHEMA, WORDS], SchemaMode.ENFORCE, Slices(), is_tolerant=True)
    await inputs.check("none", {"anything": 1})
    with pytest.raises(BadValue):
        await inputs.check("words", {"words": [1]})
    assert inputs.disabled == {}
    assert "'none' is called without a check of its input" in caplog.text


async def test_schemas_that_have_not_changed_are_not_compiled_again() -> None:
    other = replace(WORDS, name="other")
    before = await compile_inputs("notes", [WORDS, other], SchemaMode.ENFORCE, Slices())
    changed = replace(other, input_schema={"type": "object", "maxProperties": 1})
    after = await compile_inputs("notes", [WORDS, changed], SchemaMode.ENFORCE, Slices(), before=before)
    assert after.compiled["words"] is before.compiled["words"]
    assert after.compiled["other"] is not before.compiled["other"]
    with pytest.raises(BadValue):
        await after.check("other", {"a": 1, "b": 2})


async def test_thousands_of_schemas_are_compiled_in_many_iterations_of_the_loop() -> None:
    tools = [replace(WORDS, name=f"tool{number}") for number in range(2_000)]
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(count)
        slices = Slices()
        async with slices:
            await compile_inputs("notes", tools, SchemaMode.ENFORCE, slices)
        tasks.cancel_scope.cancel()
    assert turns > 5
