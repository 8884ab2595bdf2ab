"""The tools of a host: found by their names, named as each system does, and the same over restarts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from becket.contract.tools import Tool
from becket.errors import NotDeclared
from becket.host.tools import MAX_TOOLS, PREFIXED_NAMING, ToolRegistry, prefixed_tool_name


def tool(name: str, description: str = "Does it.", schema: Any = None) -> Tool:
    return Tool(name, description, {"type": "object"} if schema is None else schema)


def names_of(tools: ToolRegistry) -> dict[str, str]:
    return {one.name: one.runtime_name for one in tools}


def test_a_tool_is_found_by_the_name_that_a_model_sees_and_by_its_runtime_name() -> None:
    tools = ToolRegistry()

    assert tools.add("notes", [tool("count"), tool(" list all ")]) == []

    assert names_of(tools) == {"notes_count": "notes:count", "notes_list_all": "notes:list all"}
    assert tools.find("notes_count") == tools.get("notes:count")
    assert tools.get("notes_count").tool == tool("count")
    assert tools.get("notes_list_all").tool.name == " list all "
    assert len(tools) == 2


def test_the_error_for_an_unknown_tool_lists_the_known_ones() -> None:
    tools = ToolRegistry()
    tools.add("notes", [tool("count")])

    assert tools.find("notes_cuont") is None
    with pytest.raises(NotDeclared) as caught:
        tools.get("notes_cuont")
    assert (caught.value.name, caught.value.known) == ("notes_cuont", ("notes_count",))


def test_tools_are_listed_in_the_same_order_whatever_the_start_order() -> None:
    first, second = ToolRegistry(), ToolRegistry()
    for tools, order in ((first, "ab"), (second, "ba")):
        for extension in order:
            tools.add(extension, [tool("z"), tool("y")])

    assert first.for_model() == second.for_model()
    assert [received["name"] for received in first.for_model()] == ["a_y", "a_z", "b_y", "b_z"]
    assert first.for_model()[0] == {"name": "a_y", "description": "Does it.", "input_schema": {"type": "object"}}


# -- clashes


def host_with(*extensions: str) -> ToolRegistry:
    """Returns the tools of a host that has found these extensions."""
    tools = ToolRegistry()
    for extension in extensions:
        tools.reserve(extension)
    return tools


@pytest.mark.parametrize("order", [["my", "my_notes"], ["my_notes", "my"]])
def test_no_extension_takes_the_name_of_a_tool_of_another(order: list[str]) -> None:
    tools = host_with("my", "my_notes")
    declared = {"my": "notes_keep", "my_notes": "keep"}

    found = [note for extension in order for note in tools.add(extension, [tool(declared[extension])])]

    assert tools.get("my_notes_keep").runtime_name == "my_notes:keep"
    assert tools.get("my:notes_keep").name == "my-d51cdc_notes_keep"
    assert [(note.extension, "my_notes_keep" in note.problem) for note in found] == [("my", True)]


def test_a_name_stays_reserved_for_an_extension_that_does_not_run() -> None:
    tools = host_with("my", "my_notes")

    tools.add("my", [tool("notes_keep")])

    assert tools.find("my_notes_keep") is None


def test_a_tool_that_is_added_later_takes_no_name_of_another() -> None:
    tools = host_with("my", "my.notes")  # an MCP server of `my`
    tools.add("my.notes", [tool("keep")])
    tools.add("my", [tool("count")])

    tools.add("my", [tool("count"), tool("notes_keep")])

    assert tools.get("my_notes_keep").runtime_name == "my.notes:keep"
    assert tools.get("my_count").runtime_name == "my:count"


@pytest.mark.parametrize("order", [["a.b", "a_b"], ["a_b", "a.b"]])
def test_a_name_that_two_extensions_could_have_is_unused_and_both_are_reported(order: list[str]) -> None:
    tools = host_with("a.b", "a_b")

    found = [note for extension in order for note in tools.add(extension, [tool("c")])]

    assert sorted(note.extension or "" for note in found) == ["a.b", "a_b"]
    assert tools.find("a_b_c") is None
    assert len({tools.get("a.b:c").name, tools.get("a_b:c").name}) == 2
    assert all(name.startswith("a_b-") for name in names_of(tools))


def test_a_name_with_a_digest_is_not_reused_either() -> None:
    tools = host_with("my", "my_notes", "my-d51cdc")
    tools.add("my-d51cdc", [tool("notes_keep")])

    tools.add("my", [tool("notes_keep")])

    assert tools.get("my-d51cdc_notes_keep").extension == "my-d51cdc"
    assert tools.get("my:notes_keep").name.startswith("my-d51cdc")


def test_a_tool_whose_name_was_in_use_before_its_extension_was_found_has_another() -> None:
    tools = host_with("my")
    tools.add("my", [tool("notes_keep")])

    (note,) = tools.add("my_notes", [tool("keep")])

    assert tools.get("my_notes_keep").runtime_name == "my:notes_keep"
    name = tools.get("my_notes:keep").name
    assert name.startswith("my_notes-")
    assert name in note.problem


def test_two_tools_of_one_extension_that_look_the_same_have_two_names() -> None:
    tools = ToolRegistry()

    found = tools.add("notes", [tool("list all"), tool("list_all"), tool("list all ")])

    assert [note.problem for note in found][1:] == ["declares the tool `list all` twice"]
    assert tools.get("notes_list_all").runtime_name == "notes:list all"
    assert tools.get("notes:list_all").name.startswith("notes-")


def test_no_extension_takes_a_name_of_the_host() -> None:
    tools = ToolRegistry(reserved=["notes_count"])

    (found,) = tools.add("notes", [tool("count")])

    assert "`notes_count`" in found.problem
    assert tools.find("notes_count") is None
    assert tools.find("notes:count") is not None


def test_a_prefixed_name_that_is_reserved_for_another_is_left_out_and_reported() -> None:
    tools = ToolRegistry(reserved=["ext_c_d"])
    tools.reserve("a_b", PREFIXED_NAMING)

    (found,) = tools.add("a", [tool("b_x")], naming=PREFIXED_NAMING)
    assert tools.add("a_b", [tool("x"), tool("y")], naming=PREFIXED_NAMING) == []
    (other,) = tools.add("c", [tool("d")], naming=PREFIXED_NAMING)

    assert names_of(tools) == {"ext_a_b_x": "a_b:x", "ext_a_b_y": "a_b:y"}
    assert (found.extension, other.extension) == ("a", "c")
    assert "`b_x`" in found.problem


def test_tools_beyond_the_limit_of_a_host_are_reported() -> None:
    tools = ToolRegistry()

    assert tools.add("notes", [tool(str(number)) for number in range(MAX_TOOLS)]) == []
    (found,) = tools.add("notes", [tool(str(number)) for number in range(MAX_TOOLS + 1)])

    assert len(tools) == MAX_TOOLS
    assert str(MAX_TOOLS + 1) in found.problem


# -- restarts


def test_a_tool_retains_its_name_over_a_restart_whatever_started_in_between() -> None:
    tools = ToolRegistry()
    tools.add("a.b", [tool("c")])
    tools.remove("a.b")
    assert tools.find("a_b_c") is None

    tools.add("a_b", [tool("c")])
    tools.add("a.b", [tool("c")])

    assert names_of(tools) == {"a_b-0c1d18_c": "a_b:c", "a_b_c": "a.b:c"}


def test_a_restart_brings_the_tools_that_there_are_then() -> None:
    tools = ToolRegistry()
    tools.add("notes", [tool("old"), tool("kept")])

    tools.add("notes", [tool("kept", "Does more."), tool("new")])

    assert sorted(names_of(tools)) == ["notes_kept", "notes_new"]
    assert tools.get("notes_kept").description == "Does more."
    assert tools.find("notes:old") is None


def test_names_of_a_removed_extension_are_free() -> None:
    tools = ToolRegistry()
    tools.add("a.b", [tool("c")])

    tools.forget("a.b")
    tools.forget("never-there")
    tools.add("a_b", [tool("c")])

    assert names_of(tools) == {"a_b_c": "a_b:c"}


# -- prefixed names

LONG = "long_" * 30


@pytest.mark.parametrize(
    ("extension", "name", "expected"),
    [
        ("weather", "get", "ext_weather_get"),
        ("mybot", LONG, "ext_mybot_long_long_long_long_long_long_long_long_long_lo_4e24a9"),
        ("x" * 60, "t", "ext_" + "x" * 53 + "_7d131c"),
        ("x" * 52, "t" * 20, "ext_" + "x" * 52 + "__052077"),
        ("a", "b" * 58, "ext_a_" + "b" * 58),
    ],
)
def test_a_prefixed_name_longer_than_64_bytes_ends_in_a_digest(extension: str, name: str, expected: str) -> None:
    assert prefixed_tool_name(extension, name) == expected


@given(st.text("abc_é", min_size=1, max_size=80), st.text("xyz_ß", min_size=1, max_size=80))
def test_no_prefixed_name_is_longer_than_64_bytes(extension: str, name: str) -> None:
    found = prefixed_tool_name(extension, name)

    assert len(found.encode()) <= 64
    assert found.startswith("ext_")


def test_two_long_names_with_the_same_beginning_stay_distinct() -> None:
    assert prefixed_tool_name("mybot", LONG + "a") != prefixed_tool_name("mybot", LONG + "b")


def test_the_description_of_a_prefixed_tool_names_its_extension() -> None:
    tools = ToolRegistry()

    tools.add("weather", [tool("get", "Looks it up.")], naming=PREFIXED_NAMING)

    assert tools.get("ext_weather_get").description == "[ext:weather] Looks it up."


# -- inputs

SCHEMA = {
    "type": "object",
    "properties": {"a b": {"type": "string"}, "deep": {"type": "object", "properties": {"x/y": {}}}},
    "required": ["a b"],
}


def test_a_model_sees_names_of_properties_that_it_may_write_and_the_extension_gets_its_own() -> None:
    tools = ToolRegistry()
    tools.add("notes", [tool("count", schema=SCHEMA)])
    found = tools.get("notes_count")

    assert found.input_schema["required"] == ["a_b"]
    assert found.decode_input({"a_b": "milk", "deep": {"x_y": 1}}) == {"a b": "milk", "deep": {"x/y": 1}}
