"""Models, requests, transcripts and events of Roder as they are sent, and how a turn is gathered."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import Raw

from becket.adapters.roder import (
    STREAM_TURN,
    AssistantMessage,
    CompactionProgress,
    ContextCompaction,
    ErrorRecord,
    FileChange,
    HostedToolCallCompleted,
    HostedToolCallStarted,
    InferenceEvent,
    InferenceRequest,
    InputImage,
    ListModelsParams,
    MessageDelta,
    ModelDescriptor,
    ModelSelection,
    ProviderMetadata,
    ReasoningDelta,
    ReasoningEffort,
    ReasoningSummary,
    SpecificTool,
    StreamTurnParams,
    TaggedTranscriptItem,
    TokenUsage,
    ToolCallCompleted,
    ToolCallDelta,
    ToolCallRecord,
    ToolCallStarted,
    ToolResultRecord,
    TranscriptItem,
    TurnCompleted,
    TurnFailed,
    UserMessage,
)
from becket.adapters.roder.messages.inference import TURN_OPERATION as ADDRESS, TaggedEvent, decode_inference_event
from becket.errors import RpcError

TURN = StreamTurnParams(
    engine_id="e",
    stream_id="s-1",
    thread_id="t",
    turn_id="u",
    request=InferenceRequest(model=ModelSelection("e", "m")),
)
EVENTS: list[tuple[InferenceEvent, str]] = [
    (MessageDelta("x"), '{"MessageDelta":{"text":"x"}}'),
    (MessageDelta("x", "final"), '{"MessageDelta":{"text":"x","phase":"final"}}'),
    (ReasoningDelta(""), '{"ReasoningDelta":{"text":""}}'),
    (ToolCallStarted("1", "n"), '{"ToolCallStarted":{"id":"1","name":"n"}}'),
    (ToolCallDelta("1", "{"), '{"ToolCallDelta":{"id":"1","arguments_delta":"{"}}'),
    (ToolCallCompleted("1", "n", "{}"), '{"ToolCallCompleted":{"id":"1","name":"n","arguments":"{}"}}'),
    (HostedToolCallStarted("1", "n"), '{"HostedToolCallStarted":{"id":"1","name":"n"}}'),
    (HostedToolCallCompleted("1", "n", "{}"), '{"HostedToolCallCompleted":{"id":"1","name":"n","arguments":"{}"}}'),
    (CompactionProgress(status="begun"), '{"Compaction":{"status":"begun"}}'),
    (
        CompactionProgress(status="done", item_id="i", tokens_before=9, tokens_after=3, duration_ms=5, item={"a": 1}),
        '{"Compaction":{"status":"done","item_id":"i","tokens_before":9,"tokens_after":3,"duration_ms":5,'
        '"item":{"a":1}}}',
    ),
    (
        TokenUsage(prompt_tokens=7, completion_tokens=4, total_tokens=11),
        '{"Usage":{"prompt_tokens":7,"completion_tokens":4,"total_tokens":11}}',
    ),
    (TurnCompleted("stop", "r"), '{"Completed":{"stop_reason":"stop","provider_response_id":"r"}}'),
    (TurnCompleted(), '{"Completed":{"stop_reason":null,"provider_response_id":null}}'),
    (TurnFailed("m"), '{"Failed":{"message":"m"}}'),
    (ProviderMetadata({"any": [1]}), '{"ProviderMetadata":{"any":[1]}}'),
    (ProviderMetadata(None), '{"ProviderMetadata":null}'),
]
ITEMS: list[tuple[TranscriptItem, str]] = [
    (UserMessage("hi"), '{"UserMessage":{"text":"hi"}}'),
    (
        UserMessage("hi", (InputImage("data:x"),)),
        '{"UserMessage":{"text":"hi","images":[{"image_url":"data:x"}]}}',
    ),
    (AssistantMessage("ho"), '{"AssistantMessage":{"text":"ho"}}'),
    (ReasoningSummary("hm"), '{"ReasoningSummary":{"text":"hm"}}'),
    (ToolCallRecord("1", "n", "{}"), '{"ToolCall":{"id":"1","name":"n","arguments":"{}"}}'),
    (
        ToolResultRecord(id="1", result="r", is_error=False),
        '{"ToolResult":{"id":"1","name":null,"result":"r","is_error":false}}',
    ),
    (FileChange("a", "edit"), '{"FileChange":{"path":"a","change_type":"edit"}}'),
    (ContextCompaction("s"), '{"ContextCompaction":{"summary":"s"}}'),
    (ErrorRecord("m"), '{"Error":{"message":"m"}}'),
    (ProviderMetadata([1]), '{"ProviderMetadata":[1]}'),
]


def build_event(event: str, stream: str = "s-1") -> Raw:
    return Raw(f'{{"streamId":"{stream}","event":{event}}}'.encode())


# -- events and items


@pytest.mark.parametrize(("event", "text"), EVENTS, ids=[text for _, text in EVENTS])
def test_an_event_is_sent_under_the_name_of_its_class(event: InferenceEvent, text: str) -> None:
    assert msgspec.json.encode(TaggedEvent.wrap(event)).decode() == text
    assert decode_inference_event(build_event(text)) == event


@pytest.mark.parametrize(("item", "text"), ITEMS, ids=[text for _, text in ITEMS])
def test_an_item_of_a_transcript_is_sent_under_the_name_of_its_class(item: TranscriptItem, text: str) -> None:
    assert msgspec.json.encode(TaggedTranscriptItem.wrap(item)).decode() == text
    assert msgspec.json.decode(text, type=TaggedTranscriptItem).value == item


@pytest.mark.parametrize(
    "event",
    [
        "{}",
        '{"MessageDelta":{"text":"a"},"ReasoningDelta":{"text":"b"}}',
        '{"Surprise":{}}',
        '{"MessageDelta":{}}',
        '{"MessageDelta":"x"}',
        '"Completed"',
        '{"Usage":{"prompt_tokens":-1,"completion_tokens":0,"total_tokens":0}}',
    ],
)
def test_an_invalid_event_cannot_be_decoded(event: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        decode_inference_event(build_event(event))


def test_unknown_members_of_an_event_are_ignored() -> None:
    assert decode_inference_event(build_event('{"Failed":{"message":"m","code":7}}')) == TurnFailed("m")


@pytest.mark.parametrize(
    ("raw", "is_ours"),
    [
        (build_event('{"Failed":{"message":"m"}}'), True),
        (build_event('{"Failed":{"message":"m"}}', "s-2"), False),
        (Raw(b'{"event":{}}'), False),
        (Raw(b"[]"), False),
    ],
)
def test_an_event_belongs_to_the_turn_whose_stream_it_names(raw: Raw, is_ours: bool) -> None:
    assert ADDRESS.is_event_of(raw, TURN) is is_ours


# -- models and requests


def test_the_members_of_an_envelope_are_camel_case_and_nested_ones_are_not() -> None:
    assert msgspec.json.encode(ListModelsParams("e")) == b'{"engineId":"e"}'
    encoded = msgspec.json.encode(TURN).decode()
    assert encoded.startswith('{"engineId":"e","streamId":"s-1","threadId":"t","turnId":"u","request":{"model":{')
    assert '"tool_choice":"Auto"' in encoded


def test_a_model_is_sent_without_absent_members() -> None:
    full = ModelDescriptor(
        id="m",
        name="M",
        context_window=5,
        default_reasoning="low",
        supported_reasoning=(ReasoningEffort("low", "d"),),
    )

    assert msgspec.json.encode(ModelDescriptor(id="m", name="M")) == b'{"id":"m","name":"M","context_window":null}'
    assert msgspec.json.decode(msgspec.json.encode(full), type=ModelDescriptor) == full


@pytest.mark.parametrize("choice", ["Auto", "Any", "None", SpecificTool("n")])
def test_the_tool_choice_is_a_mode_or_a_name(choice: Any) -> None:
    request = InferenceRequest(model=ModelSelection("e", "m"), tool_choice=choice)

    assert msgspec.json.decode(msgspec.json.encode(request), type=InferenceRequest) == request


def test_unknown_members_of_a_newer_host_are_ignored() -> None:
    encoded = msgspec.to_builtins(TURN.request)
    encoded["runtime"]["surprise"] = 1
    encoded["runtime"]["speed_policy"] = {"phase": "execution"}

    assert msgspec.convert(encoded, InferenceRequest).runtime.speed_policy == {"phase": "execution"}


# -- gathering


def gathered() -> Any:
    assert STREAM_TURN.gather is not None
    return STREAM_TURN.gather(TURN)


def test_a_turn_ends_with_its_last_event_and_returns_it() -> None:
    turn = gathered()
    turn.on_response(Raw(b'{"streamId":"s-1"}'))

    assert [turn.on_event(event) for event in (MessageDelta("x"), TurnCompleted("stop"))] == [False, True]
    assert turn.result() == TurnCompleted("stop")


def test_a_turn_that_failed_raises_its_message() -> None:
    turn = gathered()

    assert turn.on_event(TurnFailed("asleep"))
    with pytest.raises(RpcError) as caught:
        turn.result()
    assert caught.value.message == "asleep"


def test_the_acknowledgement_of_another_stream_is_refused_with_both_names() -> None:
    with pytest.raises(ValueError, match='acknowledged stream "s-2" but "s-1" was requested'):
        gathered().on_response(Raw(b'{"streamId":"s-2"}'))


@pytest.mark.parametrize("response", [b"{}", b"null", b'{"streamId":1}'])
def test_an_acknowledgement_without_a_stream_is_refused(response: bytes) -> None:
    with pytest.raises(msgspec.ValidationError):
        gathered().on_response(Raw(response))
