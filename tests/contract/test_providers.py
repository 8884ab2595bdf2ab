"""Providers: the wire form, lenient decoding of events, and the tool calls of a response."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import msgspec
import pytest
from msgspec import Raw, ValidationError

from becket.contract.providers import (
    MAX_TOOL_OUTPUT,
    MAX_TOOL_TURNS,
    PROVIDER_COMPLETE,
    PROVIDER_STREAM,
    Message,
    Model,
    Provider,
    ProviderDone,
    ProviderEvent,
    ProviderFailed,
    ProviderRequest,
    ProviderResult,
    TextDelta,
    ThinkingDelta,
    ToolUse,
    Usage,
    assistant,
    build_event_params,
    check_complete_result,
    decode_provider_event,
    find_tool_uses,
    should_stream,
    tool_result,
    user,
)
from becket.errors import BadReply


def raw(value: Any) -> Raw:
    return Raw(value if isinstance(value, bytes) else msgspec.json.encode(value))


# -- declaring


def test_a_provider_is_encoded_as_in_the_contract() -> None:
    model = Model("small", "S", context_window=4096, streaming=True)
    provider = Provider(
        id="local",
        display_name="Local",
        description="d",
        models=(model,),
        config_schema={"type": "object", "required": ["endpoint"]},
    )
    wire = (
        b'{"id":"local","display_name":"Local","description":"d",'
        b'"config_schema":{"type":"object","required":["endpoint"]},'
        b'"models":[{"id":"small","display_name":"S","capabilities":{"streaming":true,"tool_use":false},'
        b'"context_window":4096}]}'
    )

    assert msgspec.json.encode(provider) == wire
    assert msgspec.json.decode(wire, type=Provider) == provider


def test_absent_members_of_a_model_are_not_sent() -> None:
    assert msgspec.json.encode(Model("m")) == b'{"id":"m","capabilities":{"streaming":false,"tool_use":false}}'
    assert msgspec.json.decode(b'{"id":"m"}', type=Model).capabilities is None


@pytest.mark.parametrize(
    ("capabilities", "streaming", "tool_use"),
    [
        ({"streaming": True, "tool_use": False}, True, False),
        ({"tool_use": True, "vision": True}, False, True),
        ({"streaming": "yes", "tool_use": 1}, False, False),
        ({}, False, False),
        (None, False, False),
        (["streaming"], False, False),
        ("streaming", False, False),
    ],
)
def test_a_model_can_do_what_it_declares_as_true(capabilities: Any, streaming: bool, tool_use: bool) -> None:
    model = msgspec.convert({"id": "m", "capabilities": capabilities}, Model)

    assert (model.streaming, model.tool_use) == (streaming, tool_use)
    assert model.capabilities == capabilities


def test_a_model_can_be_copied_and_pickled() -> None:
    model = Model("small", "S", 4096, True, True)

    assert copy.copy(model) == copy.deepcopy(model) == pickle.loads(pickle.dumps(model)) == model


# -- requests


def test_a_request_sends_all_members() -> None:
    request = ProviderRequest("local", "small", "demo:local:small", (user("hi"), assistant("ho")))

    assert msgspec.json.encode(request) == (
        b'{"provider_id":"local","model_id":"small","model":"demo:local:small",'
        b'"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"ho"}],"system_prompt":null,'
        b'"tools":[],"temperature":null,"max_tokens":null,"thinking_budget":0}'
    )
    assert msgspec.json.decode(msgspec.json.encode(request), type=ProviderRequest) == request


def test_a_message_may_hold_blocks() -> None:
    message = Message("user", ({"type": "text", "text": "hi"},))

    assert msgspec.json.decode(msgspec.json.encode(message), type=Message) == message


def test_a_result_of_text_reads_as_that_text() -> None:
    result = ProviderResult.of_text("hello")

    assert msgspec.json.encode(result) == b'{"content":[{"type":"text","text":"hello"}]}'
    assert result.text == "hello"


def test_the_text_of_a_result_is_that_of_its_text_blocks() -> None:
    blocks = (
        {"type": "text", "text": "good "},
        {"type": "tool_use"},
        "x",
        {"type": "text"},
        {"type": "text", "text": "morning"},
    )

    assert ProviderResult(blocks, "end_turn", {"output_tokens": 2}).text == "good morning"
    assert ProviderResult(()).text == ""


def test_a_complete_response_has_content() -> None:
    check_complete_result("demo", ProviderResult.of_text(""))
    with pytest.raises(BadReply) as caught:
        check_complete_result("demo", ProviderResult(()))

    assert caught.value.method == "provider.complete"
    assert caught.value.problem == "Extension 'demo' provider.complete returned empty content"


@pytest.mark.parametrize(
    ("streaming", "tool_use", "tools", "streams"),
    [
        (True, False, (), True),
        (True, False, ({"name": "t"},), True),
        (True, True, (), True),
        (True, True, ({"name": "t"},), False),
        (False, False, (), False),
        (False, True, (), False),
    ],
)
def test_only_what_needs_no_tools_is_streamed(
    streaming: bool, tool_use: bool, tools: tuple[dict[str, Any], ...], streams: bool
) -> None:
    request = ProviderRequest("p", "m", "x:p:m", (), tools=tools)

    assert should_stream(request, Model("m", streaming=streaming, tool_use=tool_use)) is streams


def test_the_limits_are_the_limits_of_the_contract() -> None:
    assert (MAX_TOOL_TURNS, MAX_TOOL_OUTPUT) == (8, 30_000)
    assert (PROVIDER_COMPLETE.timeout, PROVIDER_STREAM.timeout, PROVIDER_STREAM.idle_timeout) == (60.0, None, 60.0)


# -- the tool calls of a response


def test_the_tool_calls_of_a_response_come_in_order() -> None:
    requested = (
        {"type": "text", "text": "let me see"},
        {"type": "tool_use", "id": "a", "name": "count", "input": {"text": "milk"}},
        "x",
        {"type": "tool_use", "id": "b", "name": "list", "other": 1},
    )

    assert find_tool_uses(ProviderResult(requested)) == [
        ToolUse("a", "count", {"text": "milk"}),
        ToolUse("b", "list", {}),
    ]


@pytest.mark.parametrize(
    ("block", "problem"),
    [
        ({}, "provider tool_use missing id"),
        ({"id": 7, "name": "n"}, "provider tool_use missing id"),
        ({"id": "a"}, "provider tool_use missing name"),
        ({"id": " ", "name": "n"}, "provider tool_use id is empty"),
        ({"id": "a", "name": ""}, "provider tool_use name is empty"),
        ({"id": "a", "name": "n", "input": []}, "provider tool_use 'a' input must be a JSON object"),
        ({"id": "a", "name": "n", "input": None}, "provider tool_use 'a' input must be a JSON object"),
    ],
)
def test_a_malformed_tool_call_is_refused(block: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError) as caught:
        find_tool_uses(ProviderResult(({"type": "tool_use", **block},)))

    assert str(caught.value) == problem


def test_a_tool_result_is_sent_to_the_model() -> None:
    assert tool_result("a", "3") == {"type": "tool_result", "tool_use_id": "a", "content": "3"}
    assert tool_result("a", "no", is_error=True)["is_error"] is True


# -- events

EVENTS: list[tuple[ProviderEvent, bytes]] = [
    (TextDelta("x"), b'{"type":"text","delta":"x"}'),
    (ThinkingDelta("hm"), b'{"type":"thinking","delta":"hm"}'),
    (ToolUse("a", "n"), b'{"type":"tool_use","id":"a","name":"n","input":{}}'),
    (ToolUse("a", "n", {"x": 1}), b'{"type":"tool_use","id":"a","name":"n","input":{"x":1}}'),
    (Usage({"input_tokens": 5, "output_tokens": 7}), b'{"type":"usage","input_tokens":5,"output_tokens":7}'),
    (ProviderFailed("boom"), b'{"type":"error","message":"boom"}'),
    (ProviderFailed("boom", 429), b'{"type":"error","message":"boom","code":429}'),
    (ProviderFailed("boom", "late"), b'{"type":"error","message":"boom","code":"late"}'),
    (ProviderDone(), b'{"type":"done"}'),
]


@pytest.mark.parametrize(("event", "wire"), EVENTS)
def test_encoded_messages_decode_to_the_same(event: ProviderEvent, wire: bytes) -> None:
    assert msgspec.json.encode(build_event_params(event)) == wire
    assert decode_provider_event(Raw(wire)) == event


@pytest.mark.parametrize(("event", "wire"), EVENTS)
def test_an_event_may_be_nested_and_have_more_members(event: ProviderEvent, wire: bytes) -> None:
    assert decode_provider_event(Raw(b'{"event":' + wire + b"}")) == event
    assert decode_provider_event(Raw(b'{"type":"wat","event":' + wire + b',"more":1}')) == event
    if not isinstance(event, Usage):
        assert decode_provider_event(Raw(wire[:-1] + b',"more":1}')) == event


@pytest.mark.parametrize(("kind", "event"), [("text", TextDelta("x")), ("thinking", ThinkingDelta("x"))])
def test_a_delta_may_be_called_text(kind: str, event: ProviderEvent) -> None:
    assert decode_provider_event(raw({"type": kind, "text": "x"})) == event
    assert decode_provider_event(raw({"type": kind, "delta": "x", "text": "y"})) == event


def test_the_input_of_a_tool_may_be_left_out() -> None:
    assert decode_provider_event(raw({"type": "tool_use", "id": "a", "name": "n"})) == ToolUse("a", "n", {})


def test_usage_preserves_everything_but_its_type() -> None:
    assert decode_provider_event(raw({"event": {"type": "usage", "event": 1}})) == Usage({"event": 1})
    assert msgspec.json.encode(build_event_params(Usage({"type": "x", "n": 1}))) == b'{"type":"usage","n":1}'


@pytest.mark.parametrize("code", [None, True, 1.5, [], {}])
def test_a_code_that_is_neither_number_nor_name_is_ignored(code: Any) -> None:
    assert decode_provider_event(raw({"type": "error", "message": "m", "code": code})) == ProviderFailed("m")


@pytest.mark.parametrize(
    ("params", "problem"),
    [
        ([], "provider stream event must be a JSON object"),
        ({"event": None, "type": "done"}, "provider stream event must be a JSON object"),
        ({"type": "text", "delta": "x", "event": 1}, "provider stream event must be a JSON object"),
        ({"delta": "hi"}, "provider stream event missing type"),
        ({"type": 7}, "provider stream event missing type"),
        ({"type": "wat"}, "unknown provider stream event type: wat"),
        ({"type": "text"}, "provider stream text event missing 'delta' or 'text'"),
        ({"type": "text", "delta": None, "text": "x"}, "provider stream text event missing 'delta' or 'text'"),
        ({"event": {"type": "thinking", "text": 1}}, "provider stream thinking event missing 'delta' or 'text'"),
        ({"type": "tool_use", "name": "n"}, "provider stream tool_use missing id"),
        ({"type": "tool_use", "id": "", "name": "n"}, "provider stream tool_use id must be non-empty"),
        ({"type": "tool_use", "id": "a"}, "provider stream tool_use missing name"),
        ({"type": "tool_use", "id": "a", "name": ""}, "provider stream tool_use name must be non-empty"),
        (
            {"type": "tool_use", "id": "a", "name": "n", "input": "nope"},
            "provider stream tool_use input must be a JSON object",
        ),
        (
            {"type": "tool_use", "id": "a", "name": "n", "input": None},
            "provider stream tool_use input must be a JSON object",
        ),
        ({"type": "error"}, "provider stream error missing message"),
        ({"type": "error", "message": ""}, "provider stream error message must be non-empty"),
    ],
)
def test_malformed_messages_are_refused_with_the_reason(params: Any, problem: str) -> None:
    with pytest.raises(ValidationError) as caught:
        decode_provider_event(raw(params))

    assert str(caught.value) == problem


@pytest.mark.parametrize(
    "params", [b'{"type":"text","delta":"\xff"}', b'{"type":"usage","x":' + b"[" * 5000 + b"]" * 5000 + b"}"]
)
def test_invalid_text_and_endless_json_are_refused(params: bytes) -> None:
    with pytest.raises(ValidationError, match="cannot be read"):
        decode_provider_event(Raw(params))
