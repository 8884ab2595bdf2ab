"""Provider events mapped between the contract and Roder."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import Raw

from becket.adapters.roder import (
    InferenceEvent,
    InferenceRequest,
    MessageDelta,
    ModelSelection,
    ProviderMetadata,
    ReasoningDelta,
    StreamTurnParams,
    TokenUsage,
    ToolCallCompleted,
    TurnCompleted,
)
from becket.adapters.roder.provider_event_mapping import (
    PROVIDER_TURN,
    TurnDone,
    decode_provider_event,
    is_mapped_event_of,
    to_final_events,
    to_inference_event,
)
from becket.contract.providers import (
    ProviderDone,
    ProviderEvent,
    ProviderFailed,
    ProviderResult,
    TextDelta,
    ThinkingDelta,
    ToolUse,
    Usage,
)
from becket.errors import RpcError

TOOL_USE = {"type": "tool_use", "id": "1", "name": "count", "input": {"text": "a"}}
TURN = StreamTurnParams(
    engine_id="e",
    stream_id="s-1",
    thread_id="t",
    turn_id="u",
    request=InferenceRequest(model=ModelSelection("e", "m")),
)


def text_block(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


# -- events of Roder in the contract


def build_event(event: str, stream: str = "s-1") -> Raw:
    return Raw(f'{{"streamId":"{stream}","event":{event}}}'.encode())


@pytest.mark.parametrize(
    ("event", "received"),
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
        ('{"Failed":{"message":""}}', ProviderFailed("it failed without a message")),
    ],
)
def test_an_event_becomes_one_of_the_contract(event: str, received: ProviderEvent) -> None:
    assert is_mapped_event_of(build_event(event), TURN)
    assert decode_provider_event(build_event(event)) == received


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
def test_events_that_the_contract_lacks_are_ignored(event: str) -> None:
    assert not is_mapped_event_of(build_event(event), TURN)
    with pytest.raises(msgspec.ValidationError):
        decode_provider_event(build_event(event))


@pytest.mark.parametrize(
    ("raw", "is_ours"),
    [
        (build_event('{"Surprise":{}}'), True),  # to be counted as malformed
        (build_event("{}"), True),
        (build_event('{"MessageDelta":{"text":"x"}}', "s-2"), False),
        (Raw(b"[]"), False),
    ],
)
def test_events_of_other_turns_are_ignored(raw: Raw, is_ours: bool) -> None:
    assert is_mapped_event_of(raw, TURN) is is_ours


# -- joining a response


def gathered(*events: ProviderEvent) -> Any:
    assert PROVIDER_TURN.gather is not None
    response = PROVIDER_TURN.gather(TURN)
    response.on_response(Raw(b'{"streamId":"s-1"}'))
    assert [response.on_event(event) for event in events] == [False] * (len(events) - 1) + [True]
    return response


def test_the_deltas_of_a_response_are_joined_in_order() -> None:
    response = gathered(
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

    assert response.result() == ProviderResult(
        (
            {"type": "thinking", "thinking": "hm"},
            text_block("hello"),
            {"type": "tool_use", "id": "1", "name": "n", "input": {"a": 1}},
            text_block("!"),
        ),
        "stop",
        {"total_tokens": 2},
    )


def test_a_response_that_failed_raises_its_message() -> None:
    with pytest.raises(RpcError, match="asleep"):
        gathered(TextDelta("a"), ProviderFailed("asleep")).result()


def test_a_response_of_another_stream_is_refused() -> None:
    assert PROVIDER_TURN.gather is not None
    with pytest.raises(ValueError, match="s-2"):
        PROVIDER_TURN.gather(TURN).on_response(Raw(b'{"streamId":"s-2"}'))


# -- events of the contract in Roder


@pytest.mark.parametrize(
    ("event", "expected"),
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
def test_an_event_of_the_contract_is_sent_as_one_of_roder(
    event: ProviderEvent, expected: InferenceEvent | None
) -> None:
    assert to_inference_event(event) == expected


WHOLE = ProviderResult(
    ({"type": "thinking", "thinking": "hm"}, text_block("hello"), TOOL_USE, {"type": "document"}, "odd"),
    "stop",
    {"input_tokens": 1, "output_tokens": 2},
)


def test_a_complete_response_is_sent_before_its_end() -> None:
    assert [*to_final_events(WHOLE, set())] == [
        ReasoningDelta("hm"),
        MessageDelta("hello"),
        ToolCallCompleted("1", "count", '{"text":"a"}'),
        TokenUsage(prompt_tokens=1, completion_tokens=2, total_tokens=3),
        TurnCompleted("stop"),
    ]


def test_streamed_deltas_are_not_sent_again() -> None:
    received_before: set[type] = {TextDelta, ThinkingDelta, ToolUse, Usage}

    assert [*to_final_events(WHOLE, received_before)] == [TurnCompleted("stop")]


def test_a_result_without_usage_sends_none() -> None:
    assert [*to_final_events(ProviderResult.of_text("a"), {TextDelta})] == [TurnCompleted(None)]
