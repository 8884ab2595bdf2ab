"""Inputs are held against the schemas of tools before anything is sent."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from becket.contract import Tool
from becket.errors import BadCapabilities, BadValue
from becket.host.tool_inputs import ToolInputs
from becket.typed.schema import SchemaMode, Validator

pytestmark = pytest.mark.loops

WORDS = Tool("words", "Takes words.", {"type": "object", "properties": {"words": {"items": {"type": "string"}}}})
NO_SCHEMA = Tool("none", "Has none.", {"type": "nothing"})


async def test_what_takes_long_to_look_at_is_looked_at_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[threading.Thread] = []
    look = Validator.find_problems

    def find_problems(self: Validator, value: object) -> Any:
        threads.append(threading.current_thread())
        return look(self, value)

    monkeypatch.setattr(Validator, "find_problems", find_problems)
    inputs = ToolInputs("notes", [WORDS], SchemaMode.ENFORCE)
    await inputs.check("words", {"words": ["a"]})
    assert threads == []
    with pytest.raises(BadValue, match="/words/20000"):
        await inputs.check("words", {"words": [*["a"] * 20_000, 1]})
    assert threads != [threading.current_thread()]


async def test_a_schema_that_is_of_no_use_refuses_the_extension_or_is_passed_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with pytest.raises(BadCapabilities):
        ToolInputs("notes", [NO_SCHEMA], SchemaMode.ENFORCE)
    inputs = ToolInputs("notes", [NO_SCHEMA, WORDS], SchemaMode.ENFORCE, is_tolerant=True)
    await inputs.check("none", {"anything": 1})
    with pytest.raises(BadValue):
        await inputs.check("words", {"words": [1]})
    assert "cannot be checked" in caplog.text
