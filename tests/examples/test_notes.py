"""The notes extension stores, finds and counts, in memory and as a process."""

from __future__ import annotations

import pytest
from examples.extensions.notes.notes import Notes
from tests.examples.example_programs import manifest_of, started

from becket import RemoteError
from becket.contract.memory import Query
from becket.errors import BadCapabilities, BadValue
from becket.stores.in_memory import InMemoryStore
from becket.testing import connected

GRANTS = manifest_of("notes").permissions


@pytest.mark.loops
async def test_a_stored_note_is_found_and_counted() -> None:
    async with connected(Notes(), grants=GRANTS) as (host, _):
        assert await host.call_tool("keep", {"text": "buy milk", "tags": ["shop"]}) == "kept: buy milk"
        await host.call_tool("keep", {"text": "call Ada"})
        assert await host.call_tool("find") == "- call Ada\n- buy milk"
        assert await host.call_tool("find", {"text": "MILK"}) == "- buy milk"
        assert await host.call_tool("find", {"tag": "sh"}) == "- buy milk"
        assert await host.call_tool("find", {"limit": 1}) == "- call Ada"
        assert await host.call_tool("find", {"text": "bread"}) == "There is no such note."
        assert await host.call_tool_json("count") == 2


async def test_the_input_schema_describes_each_field() -> None:
    async with connected(Notes(), grants=GRANTS) as (host, _):
        schemas = {tool.name: tool.input_schema for tool in host.tools}
    assert schemas["keep"]["required"] == ["text"]
    assert schemas["keep"]["properties"]["text"]["description"] == "What to remember."
    assert schemas["find"]["properties"]["limit"] == {
        "type": "integer",
        "default": 10,
        "description": "How many to show.",
    }


async def test_an_invalid_input_does_not_reach_the_tool() -> None:
    async with connected(Notes(), grants=GRANTS) as (host, _):
        with pytest.raises(BadValue) as caught:
            await host.call_tool("keep", {"text": 7, "colour": "red"})
        assert [pointer for pointer, _ in caught.value.problems] == ["/text", "/colour"]


async def test_without_its_permissions_nothing_is_stored() -> None:
    store = InMemoryStore()
    with pytest.raises(BadCapabilities):
        async with connected(Notes(), store=store):
            pass
    async with connected(Notes(), grants=["tools.register"], store=store) as (host, _):
        with pytest.raises(RemoteError):
            await host.call_tool("keep", {"text": "buy milk"})
    assert store.query(Query("notes")) == []


@pytest.mark.process
async def test_notes_outlive_the_process() -> None:
    store = InMemoryStore()
    async with started("notes", store=store) as notes:
        await notes.call_tool("keep", {"text": "buy milk"})
    async with started("notes", store=store) as notes:
        assert await notes.call_tool("find", {"text": "milk"}) == "- buy milk"
