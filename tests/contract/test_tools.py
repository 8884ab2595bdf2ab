"""Tools: the wire form, and the text of a result for a model."""

from __future__ import annotations

import msgspec
import pytest

from becket.contract.tools import TOOL_CALL, Tool, ToolCall, format_tool_result


def test_a_call_is_sent_as_name_and_input() -> None:
    assert msgspec.json.encode(ToolCall("echo", {"text": "milk"})) == b'{"name":"echo","input":{"text":"milk"}}'


def test_a_tool_is_sent_as_it_was_declared() -> None:
    tool = Tool("echo", "d", {"type": "object"})

    assert msgspec.json.encode(tool) == b'{"name":"echo","description":"d","input_schema":{"type":"object"}}'


def test_a_read_only_tool_is_marked() -> None:
    tool = Tool("echo", "d", {}, read_only=True)

    encoded = msgspec.json.encode(tool)
    assert encoded == b'{"name":"echo","description":"d","input_schema":{},"read_only":true}'
    assert msgspec.json.decode(encoded, type=Tool) == tool


def test_tools_may_take_two_minutes() -> None:
    assert (TOOL_CALL.name, TOOL_CALL.timeout, TOOL_CALL.direction) == ("tool.call", 120.0, "to-extension")


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ("milk", "milk"),
        ("", ""),
        ({"content": "milk", "other": 1}, "milk"),
        ({"content": ""}, ""),
        ({"content": 7}, '{"content":7}'),
        ({"rows": [["ä", 1.5]]}, '{"rows":[["ä",1.5]]}'),
        ({}, "{}"),
        (None, "null"),
        (True, "true"),
        (3, "3"),
        (["a"], '["a"]'),
    ],
)
def test_a_model_reads_the_text_or_else_the_json_of_a_result(result: object, text: str) -> None:
    assert format_tool_result(result) == text
