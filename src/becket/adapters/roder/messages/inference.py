"""Roder inference messages: the stream-turn request and the events of its response.

A turn is acknowledged with its stream id; the response is a series of events that ends with `TurnCompleted` or
`TurnFailed`. A turn cannot be cancelled."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, ClassVar, Final, TypeAlias

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from becket.adapters.roder.messages.inference_request import InferenceRequest, ProviderMetadata
from becket.adapters.roder.messages.operations import MAX_IDLE, OperationKind
from becket.adapters.roder.messages.tagged_union import TaggedUnion
from becket.methods.descriptors import Notification
from becket.methods.streams import EventReader, Stream

__all__ = [
    "INFERENCE_EVENT",
    "STREAM_TURN",
    "TURN_OPERATION",
    "CompactionProgress",
    "HostedToolCallCompleted",
    "HostedToolCallStarted",
    "InferenceEvent",
    "InferenceEventParams",
    "MessageDelta",
    "ReasoningDelta",
    "StreamTurnAck",
    "StreamTurnParams",
    "TaggedEvent",
    "TokenUsage",
    "ToolCallCompleted",
    "ToolCallDelta",
    "ToolCallStarted",
    "TurnCompleted",
    "TurnFailed",
    "decode_inference_event",
]

UInt32 = Annotated[int, Meta(ge=0, le=2**32 - 1)]


# -- a turn


class StreamTurnParams(Struct, frozen=True, kw_only=True, rename="camel"):
    """Params of a turn, whose events have the stream id."""

    engine_id: str
    stream_id: str
    thread_id: str
    turn_id: str
    request: InferenceRequest


class StreamTurnAck(Struct, frozen=True, rename="camel"):
    """Acknowledgement of a turn, with the given id."""

    stream_id: str


# -- events


class MessageDelta(Struct, frozen=True, gc=False):
    """A part of the response."""

    text: str
    phase: str | UnsetType | None = UNSET


class ReasoningDelta(Struct, frozen=True, gc=False):
    """A part of the model's reasoning."""

    text: str


class ToolCallStarted(Struct, frozen=True, gc=False):
    """The model begins a tool call."""

    id: str
    name: str


class ToolCallDelta(Struct, frozen=True, gc=False):
    """A part of the arguments of a tool call."""

    id: str
    arguments_delta: str


class ToolCallCompleted(Struct, frozen=True, gc=False):
    """The model calls a tool; `arguments` is JSON text."""

    id: str
    name: str
    arguments: str


class HostedToolCallStarted(Struct, frozen=True, gc=False):
    """The provider has started a tool of its own."""

    id: str
    name: str


class HostedToolCallCompleted(Struct, frozen=True, gc=False):
    """The provider has run a tool of its own."""

    id: str
    name: str
    arguments: str


class CompactionProgress(Struct, frozen=True, kw_only=True):
    """Earlier items are being replaced by a summary."""

    status: str
    item_id: str | UnsetType | None = UNSET
    tokens_before: int | UnsetType | None = UNSET
    tokens_after: int | UnsetType | None = UNSET
    duration_ms: int | UnsetType | None = UNSET
    item: Any = UNSET


class TokenUsage(Struct, frozen=True, kw_only=True):
    """Token usage so far."""

    prompt_tokens: UInt32
    completion_tokens: UInt32
    total_tokens: UInt32
    cached_prompt_tokens: UInt32 | UnsetType = UNSET
    cache_creation_prompt_tokens: UInt32 | UnsetType = UNSET
    cache_hit_rate: float | UnsetType | None = UNSET


class TurnCompleted(Struct, frozen=True):
    """The last event of a successful turn."""

    stop_reason: str | None = None
    provider_response_id: str | None = None


class TurnFailed(Struct, frozen=True):
    """The last event of a failed turn."""

    message: str


InferenceEvent: TypeAlias = (
    MessageDelta
    | ReasoningDelta
    | ToolCallStarted
    | ToolCallDelta
    | ToolCallCompleted
    | HostedToolCallStarted
    | HostedToolCallCompleted
    | CompactionProgress
    | TokenUsage
    | TurnCompleted
    | TurnFailed
    | ProviderMetadata
)


class TaggedEvent(TaggedUnion, frozen=True):
    """An event of a turn in its wire form."""

    message_delta: MessageDelta | UnsetType = UNSET
    reasoning_delta: ReasoningDelta | UnsetType = UNSET
    tool_call_started: ToolCallStarted | UnsetType = UNSET
    tool_call_delta: ToolCallDelta | UnsetType = UNSET
    tool_call_completed: ToolCallCompleted | UnsetType = UNSET
    hosted_tool_call_started: HostedToolCallStarted | UnsetType = UNSET
    hosted_tool_call_completed: HostedToolCallCompleted | UnsetType = UNSET
    compaction: CompactionProgress | UnsetType = UNSET
    usage: TokenUsage | UnsetType = UNSET
    completed: TurnCompleted | UnsetType = UNSET
    failed: TurnFailed | UnsetType = UNSET
    provider_metadata: Any = UNSET

    variants: ClassVar[dict[type[Any], str]] = {
        MessageDelta: "message_delta",
        ReasoningDelta: "reasoning_delta",
        ToolCallStarted: "tool_call_started",
        ToolCallDelta: "tool_call_delta",
        ToolCallCompleted: "tool_call_completed",
        HostedToolCallStarted: "hosted_tool_call_started",
        HostedToolCallCompleted: "hosted_tool_call_completed",
        CompactionProgress: "compaction",
        TokenUsage: "usage",
        TurnCompleted: "completed",
        TurnFailed: "failed",
        ProviderMetadata: "provider_metadata",
    }
    bare_variant: ClassVar[type[Any] | None] = ProviderMetadata


class InferenceEventParams(Struct, frozen=True, rename="camel"):
    """Params of an event notification: the event and the id of its turn."""

    stream_id: str
    event: TaggedEvent


INFERENCE_EVENT: Final = Notification(
    "inference/event", InferenceEventParams, direction="to-host", summary="An event of a response."
)


TURN_OPERATION: Final = OperationKind(
    name="stream",
    ack_type=StreamTurnAck,
    get_id=lambda params: params.stream_id,
    event=INFERENCE_EVENT,
    completed=TurnCompleted,
    failed=TurnFailed,
    explain=lambda _, event: event.message,
    wrap=TaggedEvent.wrap,
)


@cache
def event_decoder() -> msgspec.json.Decoder[InferenceEventParams]:
    return msgspec.json.Decoder(InferenceEventParams)  # built at the first event, because it takes a millisecond


def decode_inference_event(raw: Raw) -> InferenceEvent:
    """Returns the event.

    Raises:
        msgspec.ValidationError: it is malformed, or of an unknown class.
    """
    event: InferenceEvent = event_decoder().decode(raw).event.value
    return event


STREAM_TURN: Final[Stream[StreamTurnParams, TurnCompleted, InferenceEvent]] = Stream(
    "inference/streamTurn",
    StreamTurnParams,
    TurnCompleted,
    events={
        INFERENCE_EVENT.name: EventReader(
            decode_inference_event, tuple(TaggedEvent.variants), TURN_OPERATION.is_event_of
        )
    },
    gather=TURN_OPERATION.collect,
    idle_timeout=MAX_IDLE,
    direction="to-extension",
    summary="Calls an engine for a completion, which comes as events.",
)
