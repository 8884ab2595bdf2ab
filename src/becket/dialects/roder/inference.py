"""Asking the models of an extension of Roder: its models, a request, and the events of an answer.

A turn is acknowledged with its stream's id; the answer comes as events, the last of which is `Completed` or `Failed`.
There is no word for giving up.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from becket.contract.shapes import REFUSED
from becket.dialects.roder.services import ToolSpec
from becket.dialects.roder.tagged import Tagged
from becket.errors import RpcError
from becket.methods.descriptors import Direction, EventReader, Method, Notification, Stream

__all__ = [
    "FAILED",
    "INFERENCE_EVENT",
    "LIST_MODELS",
    "LONGEST_WAIT",
    "STREAM_TURN",
    "AssistantMessage",
    "CompactionProgress",
    "Completed",
    "ContextCompaction",
    "ErrorRecord",
    "Failed",
    "FileChange",
    "HostedToolCallCompleted",
    "HostedToolCallStarted",
    "InferenceEvent",
    "InferenceEventParams",
    "InferenceRequest",
    "InputImage",
    "Instructions",
    "ListModels",
    "MessageDelta",
    "ModelDescriptor",
    "ModelList",
    "ModelSelection",
    "OutputConfig",
    "ProviderMetadata",
    "ReasoningConfig",
    "ReasoningDelta",
    "ReasoningEffort",
    "ReasoningSummary",
    "RuntimeHints",
    "SpecificTool",
    "StreamTurn",
    "StreamTurnAck",
    "TaggedEvent",
    "TaggedItem",
    "TokenUsage",
    "ToolCallCompleted",
    "ToolCallDelta",
    "ToolCallRecord",
    "ToolCallStarted",
    "ToolResultRecord",
    "TranscriptItem",
    "UserMessage",
    "check_acknowledged",
    "is_for_turn",
    "read_inference_event",
]

FAILED: Final = -32000  # the number of what failed by an event, which has none
LONGEST_WAIT: Final = 1800.0  # seconds without an event; Roder itself waits for ever, and for no agent longer than this

UInt32 = Annotated[int, Meta(ge=0, le=2**32 - 1)]


# -- models


class ListModels(Struct, frozen=True, rename="camel"):
    """Asks an engine for its models."""

    engine_id: str


class ReasoningEffort(Struct, frozen=True):
    """How much a model may think."""

    effort: str
    description: str


class ModelDescriptor(Struct, frozen=True, kw_only=True):
    """A model of an engine."""

    id: str
    name: str
    context_window: UInt32 | None = None
    default_reasoning: str | UnsetType | None = UNSET
    supported_reasoning: tuple[ReasoningEffort, ...] | UnsetType = UNSET


class ModelList(Struct, frozen=True):
    """The models of an engine."""

    models: tuple[ModelDescriptor, ...]


LIST_MODELS: Final = Method(
    "inference/listModels",
    ListModels,
    ModelList,
    timeout=30.0,
    direction=Direction.TO_EXTENSION,
    summary="Asks an engine for its models.",
)


# -- what was said so far


class InputImage(Struct, frozen=True):
    """A picture, most often as a `data:` URL."""

    image_url: str


class UserMessage(Struct, frozen=True):
    """What a person says."""

    text: str
    images: tuple[InputImage, ...] | UnsetType = UNSET


class AssistantMessage(Struct, frozen=True):
    """What the model has said."""

    text: str
    phase: str | UnsetType | None = UNSET


class ReasoningSummary(Struct, frozen=True):
    """What the model has thought."""

    text: str


class ToolCallRecord(Struct, frozen=True):
    """The model has asked for a tool; `arguments` is JSON as text."""

    id: str
    name: str
    arguments: str


class ToolResultRecord(Struct, frozen=True, kw_only=True):
    """What a tool has given."""

    id: str
    name: str | None = None
    result: str
    display_payload: Any = UNSET
    is_error: bool


class FileChange(Struct, frozen=True):
    """A file was changed."""

    path: str
    change_type: str


class ContextCompaction(Struct, frozen=True):
    """What came before was replaced by a summary."""

    summary: str


class ErrorRecord(Struct, frozen=True):
    """Something went wrong."""

    message: str


class ProviderMetadata(Struct, frozen=True):
    """What a provider has to say beyond all that; only it understands it."""

    value: Any


TranscriptItem: TypeAlias = (
    UserMessage
    | AssistantMessage
    | ReasoningSummary
    | ToolCallRecord
    | ToolResultRecord
    | FileChange
    | ContextCompaction
    | ErrorRecord
    | ProviderMetadata
)


class TaggedItem(Tagged, frozen=True):
    """An item of a transcript as it travels."""

    user_message: UserMessage | UnsetType = UNSET
    assistant_message: AssistantMessage | UnsetType = UNSET
    reasoning_summary: ReasoningSummary | UnsetType = UNSET
    tool_call: ToolCallRecord | UnsetType = UNSET
    tool_result: ToolResultRecord | UnsetType = UNSET
    file_change: FileChange | UnsetType = UNSET
    context_compaction: ContextCompaction | UnsetType = UNSET
    error: ErrorRecord | UnsetType = UNSET
    provider_metadata: Any = UNSET

    members: ClassVar[dict[type[Any], str]] = {
        UserMessage: "user_message",
        AssistantMessage: "assistant_message",
        ReasoningSummary: "reasoning_summary",
        ToolCallRecord: "tool_call",
        ToolResultRecord: "tool_result",
        FileChange: "file_change",
        ContextCompaction: "context_compaction",
        ErrorRecord: "error",
        ProviderMetadata: "provider_metadata",
    }
    bare: ClassVar[type[Any] | None] = ProviderMetadata


# -- a request


class ModelSelection(Struct, frozen=True):
    """Which model of which engine is asked."""

    provider: str
    model: str


class Instructions(Struct, frozen=True):
    """What the model is told before all else."""

    system: str | None = None
    developer: str | None = None
    developer_context: str | None = None


class SpecificTool(Struct, frozen=True, rename="pascal"):
    """The model must use this tool."""

    specific: str


class ReasoningConfig(Struct, frozen=True):
    """Whether the model thinks, and how much."""

    enabled: bool
    level: str | None = None


class OutputConfig(Struct, frozen=True):
    """What the answer is to be like."""

    max_tokens: UInt32 | None = None
    temperature: float | None = None
    top_p: float | None = None
    response_format: Any = None


class HostedWebSearch(Struct, frozen=True):
    mode: str = "disabled"


class RuntimeHints(Struct, frozen=True, kw_only=True):
    """What the host knows besides, which an engine may use."""

    trace_id: str | None = None
    prompt_cache_key: str | None = None
    auto_compact_token_limit: UInt32 | None = None
    profile: str = "interactive"
    parallel_tool_calls: bool | UnsetType | None = UNSET
    hosted_web_search: HostedWebSearch = HostedWebSearch()
    speed_policy: Any = UNSET
    deadline_remaining_seconds: int | UnsetType | None = UNSET
    reliability: Any = UNSET


class InferenceRequest(Struct, frozen=True, kw_only=True):
    """All that a model is asked with."""

    model: ModelSelection
    instructions: Instructions = Instructions()
    transcript: tuple[TaggedItem, ...] = ()
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: Literal["Auto", "Any", "None"] | SpecificTool = "Auto"
    reasoning: ReasoningConfig = ReasoningConfig(False)
    output: OutputConfig = OutputConfig()
    runtime: RuntimeHints = RuntimeHints()
    metadata: Any = {}


class StreamTurn(Struct, frozen=True, kw_only=True, rename="camel"):
    """Asks an engine for an answer, whose events bear the stream's id."""

    engine_id: str
    stream_id: str
    thread_id: str
    turn_id: str
    request: InferenceRequest


class StreamTurnAck(Struct, frozen=True, rename="camel"):
    """The engine has begun; the id is the one that it was given."""

    stream_id: str


# -- the events of an answer


class MessageDelta(Struct, frozen=True, gc=False):
    """A further piece of the answer."""

    text: str
    phase: str | UnsetType | None = UNSET


class ReasoningDelta(Struct, frozen=True, gc=False):
    """A further piece of what the model thinks."""

    text: str


class ToolCallStarted(Struct, frozen=True, gc=False):
    """The model begins to ask for a tool."""

    id: str
    name: str


class ToolCallDelta(Struct, frozen=True, gc=False):
    """A further piece of the arguments of a tool."""

    id: str
    arguments_delta: str


class ToolCallCompleted(Struct, frozen=True, gc=False):
    """The model asks for a tool; `arguments` is JSON as text."""

    id: str
    name: str
    arguments: str


class HostedToolCallStarted(Struct, frozen=True, gc=False):
    """The provider has begun to run a tool of its own."""

    id: str
    name: str


class HostedToolCallCompleted(Struct, frozen=True, gc=False):
    """The provider has run a tool of its own."""

    id: str
    name: str
    arguments: str


class CompactionProgress(Struct, frozen=True, kw_only=True):
    """What came before is being replaced by a summary."""

    status: str
    item_id: str | UnsetType | None = UNSET
    tokens_before: int | UnsetType | None = UNSET
    tokens_after: int | UnsetType | None = UNSET
    duration_ms: int | UnsetType | None = UNSET
    item: Any = UNSET


class TokenUsage(Struct, frozen=True, kw_only=True):
    """What the answer has cost so far."""

    prompt_tokens: UInt32
    completion_tokens: UInt32
    total_tokens: UInt32
    cached_prompt_tokens: UInt32 | UnsetType = UNSET
    cache_creation_prompt_tokens: UInt32 | UnsetType = UNSET
    cache_hit_rate: float | UnsetType | None = UNSET


class Completed(Struct, frozen=True):
    """The answer is whole: the last event."""

    stop_reason: str | None = None
    provider_response_id: str | None = None


class Failed(Struct, frozen=True):
    """There will be no answer: the last event."""

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
    | Completed
    | Failed
    | ProviderMetadata
)


class TaggedEvent(Tagged, frozen=True):
    """An event of an answer as it travels."""

    message_delta: MessageDelta | UnsetType = UNSET
    reasoning_delta: ReasoningDelta | UnsetType = UNSET
    tool_call_started: ToolCallStarted | UnsetType = UNSET
    tool_call_delta: ToolCallDelta | UnsetType = UNSET
    tool_call_completed: ToolCallCompleted | UnsetType = UNSET
    hosted_tool_call_started: HostedToolCallStarted | UnsetType = UNSET
    hosted_tool_call_completed: HostedToolCallCompleted | UnsetType = UNSET
    compaction: CompactionProgress | UnsetType = UNSET
    usage: TokenUsage | UnsetType = UNSET
    completed: Completed | UnsetType = UNSET
    failed: Failed | UnsetType = UNSET
    provider_metadata: Any = UNSET

    members: ClassVar[dict[type[Any], str]] = {
        MessageDelta: "message_delta",
        ReasoningDelta: "reasoning_delta",
        ToolCallStarted: "tool_call_started",
        ToolCallDelta: "tool_call_delta",
        ToolCallCompleted: "tool_call_completed",
        HostedToolCallStarted: "hosted_tool_call_started",
        HostedToolCallCompleted: "hosted_tool_call_completed",
        CompactionProgress: "compaction",
        TokenUsage: "usage",
        Completed: "completed",
        Failed: "failed",
        ProviderMetadata: "provider_metadata",
    }
    bare: ClassVar[type[Any] | None] = ProviderMetadata


class InferenceEventParams(Struct, frozen=True, rename="camel"):
    """An event, and of which answer it is: what travels."""

    stream_id: str
    event: TaggedEvent


INFERENCE_EVENT: Final = Notification(
    "inference/event", InferenceEventParams, direction=Direction.TO_HOST, summary="An event of an answer."
)


@cache
def events() -> msgspec.json.Decoder[InferenceEventParams]:
    return msgspec.json.Decoder(InferenceEventParams)  # at the first event: it takes a millisecond to make


def read_inference_event(raw: Raw) -> InferenceEvent:
    """Returns the event.

    Raises:
        msgspec.ValidationError: it is malformed, or of an unknown class.
    """
    event: InferenceEvent = events().decode(raw).event.value
    return event


class Addressed(Struct, rename="camel"):
    stream_id: str


def is_for_turn(raw: Raw, call: StreamTurn) -> bool:
    """Returns whether the event is of this answer."""
    try:
        return msgspec.json.decode(raw, type=Addressed).stream_id == call.stream_id
    except REFUSED:
        return False


# -- a turn


def check_acknowledged(what: str, given: str, wanted: str) -> None:
    """Raises ValueError for an acknowledgement of something else."""
    from becket.dialects.roder.shown import show_text

    if given != wanted:
        raise ValueError(f"acknowledged {what} {show_text(given)} but {show_text(wanted)} was requested")


class GatheredTurn:
    """Waits for the end of an answer: how it was completed, or why it failed."""

    def __init__(self, call: StreamTurn) -> None:
        self._stream_id = call.stream_id
        self._last: Completed | Failed = Completed()

    def acknowledge(self, answer: Raw, /) -> None:
        """Takes the engine's word that it has begun."""
        check_acknowledged("stream", msgspec.json.decode(answer, type=StreamTurnAck).stream_id, self._stream_id)

    def take(self, event: InferenceEvent, /) -> bool:
        """Takes an event, and returns whether it is the last one."""
        if isinstance(event, Completed | Failed):
            self._last = event
            return True
        return False

    def result(self) -> Completed:
        """Returns how the answer was completed."""
        if isinstance(self._last, Failed):
            raise RpcError(FAILED, self._last.message)
        return self._last


STREAM_TURN: Final[Stream[StreamTurn, Completed, InferenceEvent]] = Stream(
    "inference/streamTurn",
    StreamTurn,
    Completed,
    events={INFERENCE_EVENT.name: EventReader(read_inference_event, tuple(TaggedEvent.members), is_for_turn)},
    gather=GatheredTurn,
    idle_timeout=LONGEST_WAIT,
    direction=Direction.TO_EXTENSION,
    summary="Asks an engine for an answer, which comes as events.",
)
