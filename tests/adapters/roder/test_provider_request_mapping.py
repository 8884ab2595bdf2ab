"""A request to a model, between the contract and Roder."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from becket.adapters.roder import (
    AssistantMessage,
    ContextCompaction,
    ErrorRecord,
    FileChange,
    InferenceRequest,
    InputImage,
    Instructions,
    ModelSelection,
    OutputConfig,
    ProviderMetadata,
    ReasoningConfig,
    ReasoningSummary,
    TaggedTranscriptItem,
    ToolCallRecord,
    ToolResultRecord,
    ToolSpec,
    TranscriptItem,
    UserMessage,
)
from becket.adapters.roder.provider_request_mapping import (
    to_inference_request,
    to_messages,
    to_provider_request,
    to_transcript,
)
from becket.contract.providers import (
    Message,
    ProviderRequest,
    assistant,
    user,
)

PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
LINKED = {"type": "image", "source": {"type": "url", "url": "https://host.example/a.png"}}
TOOL_USE = {"type": "tool_use", "id": "1", "name": "count", "input": {"text": "a"}}
REQUEST = ProviderRequest(
    "local",
    "small",
    "demo:local:small",
    (user("hi"), assistant("ho")),
    "be brief",
    ({"name": "count", "description": "Counts.", "input_schema": {"type": "object"}},),
    0.5,
    64,
    2048,
)


def text_block(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


# -- requests


def test_a_request_preserves_everything_that_both_protocols_have() -> None:
    requested = to_inference_request(REQUEST, "engine", "model:7b")

    assert requested == InferenceRequest(
        model=ModelSelection("engine", "model:7b"),
        instructions=Instructions("be brief"),
        transcript=(TaggedTranscriptItem.wrap(UserMessage("hi")), TaggedTranscriptItem.wrap(AssistantMessage("ho"))),
        tools=(ToolSpec("count", "Counts.", {"type": "object"}),),
        reasoning=ReasoningConfig(True),
        output=OutputConfig(64, 0.5),
        metadata={"thinking_budget": 2048},
    )
    assert to_provider_request(requested, "local", "demo") == replace(
        REQUEST, model_id="model:7b", model="demo:local:model:7b"
    )


def test_a_request_without_reasoning_and_tools_disables_them() -> None:
    plain = ProviderRequest("local", "small", "demo:local:small", (user("hi"),))

    requested = to_inference_request(plain, "local", "small")

    assert (requested.reasoning.enabled, requested.metadata, requested.tools) == (False, {}, ())
    assert to_provider_request(requested, "local", "demo") == plain


def test_a_tool_without_members_is_passed_on() -> None:
    requested = to_inference_request(replace(REQUEST, tools=({},)), "e", "m")

    assert requested.tools == (ToolSpec("", "", {"type": "object"}),)


def test_all_instructions_become_one_prompt() -> None:
    received = Instructions("one", "two", "three")

    messages = to_provider_request(InferenceRequest(model=ModelSelection("e", "m"), instructions=received), "e", "demo")

    assert messages.system_prompt == "one\n\ntwo\n\nthree"


@pytest.mark.parametrize(
    ("metadata", "enabled", "budget"),
    [
        ({}, False, 0),
        ({}, True, 1024),
        (None, True, 1024),
        ({"thinking_budget": 7}, True, 7),
        ({"thinking_budget": True}, False, 0),
        ({"thinking_budget": -1}, True, 1024),
        ({"thinking_budget": 2**32}, False, 0),
        ({"thinking_budget": "much"}, False, 0),
    ],
)
def test_the_reasoning_effort_is_found_in_either_position(metadata: Any, enabled: bool, budget: int) -> None:
    request = InferenceRequest(model=ModelSelection("e", "m"), reasoning=ReasoningConfig(enabled), metadata=metadata)

    assert to_provider_request(request, "e", "demo").thinking_budget == budget


# -- messages and items


@pytest.mark.parametrize(
    ("message", "items"),
    [
        (user("hi"), [UserMessage("hi")]),
        (Message("system", "hush"), [UserMessage("hush")]),
        (Message("user", (text_block("a"), PICTURE)), [UserMessage("a", (InputImage("data:image/png;base64,AAAA"),))]),
        (Message("user", (LINKED,)), [UserMessage("", (InputImage("https://host.example/a.png"),))]),
        (
            Message("assistant", ({"type": "thinking", "thinking": "hm"}, text_block("ho"), TOOL_USE)),
            [ReasoningSummary("hm"), AssistantMessage("ho"), ToolCallRecord("1", "count", '{"text":"a"}')],
        ),
        (
            Message("user", ({"type": "tool_result", "tool_use_id": "1", "content": "3"}, text_block("go on"))),
            [ToolResultRecord(id="1", result="3", is_error=False), UserMessage("go on")],
        ),
    ],
)
def test_messages_become_items_and_messages_again(message: Message, items: list[TranscriptItem]) -> None:
    assert to_transcript([message]) == items
    again = to_messages(items)
    assert again == ((message,) if message.role != "system" else (user("hush"),))


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ([text_block("a"), text_block("b")], "ab"),
        ([text_block("a"), PICTURE], '[{"type":"text","text":"a"},' + msgspec.json.encode(PICTURE).decode() + "]"),
        ({"n": 1}, '{"n":1}'),
        (None, ""),
    ],
)
def test_the_output_of_a_tool_becomes_text(content: Any, text: str) -> None:
    block = {"type": "tool_result", "tool_use_id": "1", "content": content, "is_error": True}

    assert to_transcript([Message("user", (block,))]) == [ToolResultRecord(id="1", result=text, is_error=True)]


def test_the_result_of_a_tool_has_the_name_of_the_called_tool() -> None:
    result = {"type": "tool_result", "tool_use_id": "1"}

    items = to_transcript([Message("assistant", (TOOL_USE,)), Message("user", (result,))])

    assert items[1] == ToolResultRecord(id="1", name="count", result="", is_error=False)


@pytest.mark.parametrize("role", ["user", "assistant"])
def test_an_unknown_block_is_sent_as_metadata_and_removed_again(role: str) -> None:
    items = to_transcript([Message(role, ({"type": "document", "id": 7},))])

    assert items == [ProviderMetadata({"type": "document", "id": 7})]
    assert to_messages(items) == ()


def test_a_failed_tool_stays_failed() -> None:
    [message] = to_messages([ToolResultRecord(id="1", result="no", is_error=True)])

    block = {"type": "tool_result", "tool_use_id": "1", "content": "no", "is_error": True}
    assert message == Message("user", (block,))


def test_adjacent_messages_of_one_role_are_merged_and_empty_ones_dropped() -> None:
    items: list[TranscriptItem] = [
        ContextCompaction("so far"),
        UserMessage("hi"),
        FileChange("a", "edit"),
        ErrorRecord("oops"),
        AssistantMessage("ho"),
        AssistantMessage("hum"),
    ]

    assert to_messages(items) == (
        Message("user", (text_block("so far"), text_block("hi"))),
        Message("assistant", (text_block("ho"), text_block("hum"))),
    )


@pytest.mark.parametrize(
    ("arguments", "given"),
    [("", {}), ('{"a":1}', {"a": 1}), ("[1]", {"arguments": [1]}), ("{broken", {"arguments": "{broken"})],
)
def test_the_arguments_of_a_tool_are_always_an_object(arguments: str, given: dict[str, Any]) -> None:
    [message] = to_messages([ToolCallRecord("1", "n", arguments)])

    assert message.content == ({"type": "tool_use", "id": "1", "name": "n", "input": given},)
