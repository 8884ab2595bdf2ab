"""A request to a model and the events of its answer, between the contract and Roder."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import Raw
from msgspec.structs import replace

from becket.contract.providers import (
    Message,
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
    user,
)
from becket.dialects.roder import (
    AssistantMessage,
    Completed,
    ContextCompaction,
    ErrorRecord,
    FileChange,
    InferenceEvent,
    InferenceRequest,
    InputImage,
    Instructions,
    MessageDelta,
    ModelSelection,
    OutputConfig,
    ProviderMetadata,
    ReasoningConfig,
    ReasoningDelta,
    ReasoningSummary,
    StreamTurn,
    TaggedItem,
    TokenUsage,
    ToolCallCompleted,
    ToolCallRecord,
    ToolResultRecord,
    ToolSpec,
    TranscriptItem,
    UserMessage,
)
from becket.dialects.roder.conversation import (
    PROVIDER_TURN,
    TurnDone,
    is_said_in_turn,
    read_provider_event,
    to_event,
    to_messages,
    to_provider_request,
    to_request,
    to_result_events,
    to_transcript,
)
from becket.errors import RpcError

PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
LINKED = {"type": "image", "source": {"type": "url", "url": "https://host.example/a.png"}}
ASKED = {"type": "tool_use", "id": "1", "name": "count", "input": {"text": "a"}}
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
TURN = StreamTurn(
    engine_id="e",
    stream_id="s-1",
    thread_id="t",
    turn_id="u",
    request=InferenceRequest(model=ModelSelection("e", "m")),
)


def said(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


# -- requests


def test_a_request_keeps_all_that_both_have_words_for() -> None:
    asked = to_request(REQUEST, "engine", "model:7b")

    assert asked == InferenceRequest(
        model=ModelSelection("engine", "model:7b"),
        instructions=Instructions("be brief"),
        transcript=(TaggedItem.of(UserMessage("hi")), TaggedItem.of(AssistantMessage("ho"))),
        tools=(ToolSpec("count", "Counts.", {"type": "object"}),),
        reasoning=ReasoningConfig(True),
        output=OutputConfig(64, 0.5),
        metadata={"thinking_budget": 2048},
    )
    assert to_provider_request(asked, "local", "demo") == replace(
        REQUEST, model_id="model:7b", model="demo:local:model:7b"
    )


def test_a_request_without_thought_or_tools_says_so() -> None:
    plain = ProviderRequest("local", "small", "demo:local:small", (user("hi"),))

    asked = to_request(plain, "local", "small")

    assert (asked.reasoning.enabled, asked.metadata, asked.tools) == (False, {}, ())
    assert to_provider_request(asked, "local", "demo") == plain


def test_a_tool_that_says_little_of_itself_is_passed_on_all_the_same() -> None:
    asked = to_request(replace(REQUEST, tools=({},)), "e", "m")

    assert asked.tools == (ToolSpec("", "", {"type": "object"}),)


def test_all_instructions_become_one_prompt() -> None:
    told = Instructions("one", "two", "three")

    heard = to_provider_request(InferenceRequest(model=ModelSelection("e", "m"), instructions=told), "e", "demo")

    assert heard.system_prompt == "one\n\ntwo\n\nthree"


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
def test_how_much_a_model_may_think_is_found_where_it_stands(metadata: Any, enabled: bool, budget: int) -> None:
    request = InferenceRequest(model=ModelSelection("e", "m"), reasoning=ReasoningConfig(enabled), metadata=metadata)

    assert to_provider_request(request, "e", "demo").thinking_budget == budget


# -- messages and items


@pytest.mark.parametrize(
    ("message", "items"),
    [
        (user("hi"), [UserMessage("hi")]),
        (Message("system", "hush"), [UserMessage("hush")]),
        (Message("user", (said("a"), PICTURE)), [UserMessage("a", (InputImage("data:image/png;base64,AAAA"),))]),
        (Message("user", (LINKED,)), [UserMessage("", (InputImage("https://host.example/a.png"),))]),
        (
            Message("assistant", ({"type": "thinking", "thinking": "hm"}, said("ho"), ASKED)),
            [ReasoningSummary("hm"), AssistantMessage("ho"), ToolCallRecord("1", "count", '{"text":"a"}')],
        ),
        (
            Message("user", ({"type": "tool_result", "tool_use_id": "1", "content": "3"}, said("go on"))),
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
        ([said("a"), said("b")], "ab"),
        ([said("a"), PICTURE], '[{"type":"text","text":"a"},' + msgspec.json.encode(PICTURE).decode() + "]"),
        ({"n": 1}, '{"n":1}'),
        (None, ""),
    ],
)
def test_what_a_tool_has_given_becomes_text(content: Any, text: str) -> None:
    block = {"type": "tool_result", "tool_use_id": "1", "content": content, "is_error": True}

    assert to_transcript([Message("user", (block,))]) == [ToolResultRecord(id="1", result=text, is_error=True)]


def test_the_result_of_a_tool_bears_the_name_of_the_tool_that_was_asked_for() -> None:
    result = {"type": "tool_result", "tool_use_id": "1"}

    items = to_transcript([Message("assistant", (ASKED,)), Message("user", (result,))])

    assert items[1] == ToolResultRecord(id="1", name="count", result="", is_error=False)


@pytest.mark.parametrize("role", ["user", "assistant"])
def test_a_block_that_nobody_knows_travels_as_metadata_and_is_left_out_again(role: str) -> None:
    items = to_transcript([Message(role, ({"type": "document", "id": 7},))])

    assert items == [ProviderMetadata({"type": "document", "id": 7})]
    assert to_messages(items) == ()


def test_a_failed_tool_stays_failed() -> None:
    [message] = to_messages([ToolResultRecord(id="1", result="no", is_error=True)])

    block = {"type": "tool_result", "tool_use_id": "1", "content": "no", "is_error": True}
    assert message == Message("user", (block,))


def test_neighbours_of_one_speaker_are_one_message_and_what_nobody_said_is_left_out() -> None:
    items: list[TranscriptItem] = [
        ContextCompaction("so far"),
        UserMessage("hi"),
        FileChange("a", "edit"),
        ErrorRecord("oops"),
        AssistantMessage("ho"),
        AssistantMessage("hum"),
    ]

    assert to_messages(items) == (
        Message("user", (said("so far"), said("hi"))),
        Message("assistant", (said("ho"), said("hum"))),
    )


@pytest.mark.parametrize(
    ("arguments", "given"),
    [("", {}), ('{"a":1}', {"a": 1}), ("[1]", {"arguments": [1]}), ("{broken", {"arguments": "{broken"})],
)
def test_the_arguments_of_a_tool_are_an_object_whatever_came(arguments: str, given: dict[str, Any]) -> None:
    [message] = to_messages([ToolCallRecord("1", "n", arguments)])

    assert message.content == ({"type": "tool_use", "id": "1", "name": "n", "input": given},)


# -- events of Roder in the contract


def told(event: str, stream: str = "s-1") -> Raw:
    return Raw(f'{{"streamId":"{stream}","event":{event}}}'.encode())


@pytest.mark.parametrize(
    ("event", "heard"),
    [
        ('{"MessageDelta":{"text":"x"}}', TextDelta("x")),
        ('{"ReasoningDelta":{"text":"x"}}', ThinkingDelta("x")),
        ('{"ToolCallCompleted":{"id":"1","name":"n","arguments":"{\\"a\\":1}"}}', ToolUse("1", "n", {"a": 1})),
        (
            '{"Usage":{"prompt_tokens":7,"completion_tokens":4,"total_tokens":11,"cache_hit_rate":0.5}}',
            Usage({"prompt_tokens": 7, "completion_tokens": 4, "total_tokens": 11, "cache_hit_rate": 0.5}),
        ),
        ('{"Completed":{"stop_reason":"stop","provider_response_id":"r"}}', TurnDone("stop", "r")),
        ('{"Failed":{"message":"m"}}', ProviderFailed("m")),
        ('{"Failed":{"message":""}}', ProviderFailed("it failed without a word")),
    ],
)
def test_an_event_becomes_one_of_the_contract(event: str, heard: ProviderEvent) -> None:
    assert is_said_in_turn(told(event), TURN)
    assert read_provider_event(told(event)) == heard


@pytest.mark.parametrize(
    "event",
    [
        '{"ToolCallStarted":{"id":"1","name":"n"}}',
        '{"ToolCallDelta":{"id":"1","arguments_delta":"{"}}',
        '{"HostedToolCallStarted":{"id":"1","name":"n"}}',
        '{"HostedToolCallCompleted":{"id":"1","name":"n","arguments":""}}',
        '{"Compaction":{"status":"s"}}',
        '{"ProviderMetadata":1}',
    ],
)
def test_what_the_contract_has_no_word_for_is_passed_over(event: str) -> None:
    assert not is_said_in_turn(told(event), TURN)
    with pytest.raises(msgspec.ValidationError):
        read_provider_event(told(event))


@pytest.mark.parametrize(
    ("raw", "is_ours"),
    [
        (told('{"Surprise":{}}'), True),  # to be counted as malformed
        (told("{}"), True),
        (told('{"MessageDelta":{"text":"x"}}', "s-2"), False),
        (Raw(b"[]"), False),
    ],
)
def test_events_of_other_turns_are_not_ours(raw: Raw, is_ours: bool) -> None:
    assert is_said_in_turn(raw, TURN) is is_ours


# -- putting an answer together


def gathered(*events: ProviderEvent) -> Any:
    assert PROVIDER_TURN.gather is not None
    answer = PROVIDER_TURN.gather(TURN)
    answer.acknowledge(Raw(b'{"streamId":"s-1"}'))
    assert [answer.take(event) for event in events] == [False] * (len(events) - 1) + [True]
    return answer


def test_the_pieces_of_an_answer_are_put_together_in_order() -> None:
    answer = gathered(
        ThinkingDelta("h"),
        ThinkingDelta("m"),
        TextDelta("he"),
        TextDelta("llo"),
        ToolUse("1", "n", {"a": 1}),
        TextDelta("!"),
        Usage({"total_tokens": 1}),
        Usage({"total_tokens": 2}),
        TurnDone("stop"),
    )

    assert answer.result() == ProviderResult(
        (
            {"type": "thinking", "thinking": "hm"},
            said("hello"),
            {"type": "tool_use", "id": "1", "name": "n", "input": {"a": 1}},
            said("!"),
        ),
        "stop",
        {"total_tokens": 2},
    )


def test_an_answer_that_failed_raises_what_it_said() -> None:
    with pytest.raises(RpcError, match="asleep"):
        gathered(TextDelta("a"), ProviderFailed("asleep")).result()


def test_an_answer_of_another_stream_is_refused() -> None:
    assert PROVIDER_TURN.gather is not None
    with pytest.raises(ValueError, match="s-2"):
        PROVIDER_TURN.gather(TURN).acknowledge(Raw(b'{"streamId":"s-2"}'))


# -- events of the contract in Roder


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (TextDelta("x"), MessageDelta("x")),
        (ThinkingDelta("x"), ReasoningDelta("x")),
        (ToolUse("1", "n", {"a": 1}), ToolCallCompleted("1", "n", '{"a":1}')),
        (ProviderFailed("m"), ProviderMetadata({"error": {"message": "m"}})),
        (ProviderFailed("m", 7), ProviderMetadata({"error": {"message": "m", "code": 7}})),
        (ProviderDone(), None),
        (
            Usage({"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 9}),
            TokenUsage(prompt_tokens=1, completion_tokens=2, total_tokens=9),
        ),
        (
            Usage({"input_tokens": 1, "output_tokens": 2, "cache_read_input_tokens": 1}),
            TokenUsage(prompt_tokens=1, completion_tokens=2, total_tokens=3, cached_prompt_tokens=1),
        ),
        (Usage({"cost": 3}), ProviderMetadata({"usage": {"cost": 3}})),
        (
            Usage({"input_tokens": 1, "output_tokens": True}),
            ProviderMetadata({"usage": {"input_tokens": 1, "output_tokens": True}}),
        ),
    ],
)
def test_an_event_of_the_contract_is_told_in_roders_words(event: ProviderEvent, said: InferenceEvent | None) -> None:
    assert to_event(event) == said


WHOLE = ProviderResult(
    ({"type": "thinking", "thinking": "hm"}, said("hello"), ASKED, {"type": "document"}, "odd"),
    "stop",
    {"input_tokens": 1, "output_tokens": 2},
)


def test_an_answer_that_came_whole_is_told_before_its_end() -> None:
    assert [*to_result_events(WHOLE, set())] == [
        ReasoningDelta("hm"),
        MessageDelta("hello"),
        ToolCallCompleted("1", "count", '{"text":"a"}'),
        TokenUsage(prompt_tokens=1, completion_tokens=2, total_tokens=3),
        Completed("stop"),
    ]


def test_what_was_told_piece_by_piece_is_not_told_again() -> None:
    told_before: set[type] = {TextDelta, ThinkingDelta, ToolUse, Usage}

    assert [*to_result_events(WHOLE, told_before)] == [Completed("stop")]


def test_a_result_without_usage_tells_none() -> None:
    assert [*to_result_events(ProviderResult.of_text("a"), {TextDelta})] == [Completed(None)]
