"""Roder inference request types: transcript items, model selection and output settings."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType

from becket.adapters.roder.messages.services import ToolSpec
from becket.adapters.roder.messages.tagged_union import TaggedUnion

__all__ = [
    "AssistantMessage",
    "ContextCompaction",
    "ErrorRecord",
    "FileChange",
    "InferenceRequest",
    "InputImage",
    "Instructions",
    "ModelSelection",
    "OutputConfig",
    "ProviderMetadata",
    "ReasoningConfig",
    "ReasoningSummary",
    "RuntimeHints",
    "SpecificTool",
    "TaggedTranscriptItem",
    "ToolCallRecord",
    "ToolResultRecord",
    "TranscriptItem",
    "UserMessage",
]

UInt32 = Annotated[int, Meta(ge=0, le=2**32 - 1)]


# -- transcript


class InputImage(Struct, frozen=True):
    """An image, usually as a `data:` URL."""

    image_url: str


class UserMessage(Struct, frozen=True):
    """A message of the user."""

    text: str
    images: tuple[InputImage, ...] | UnsetType = UNSET


class AssistantMessage(Struct, frozen=True):
    """A message of the model."""

    text: str
    phase: str | UnsetType | None = UNSET


class ReasoningSummary(Struct, frozen=True):
    """Reasoning of the model."""

    text: str


class ToolCallRecord(Struct, frozen=True):
    """A tool call of the model; `arguments` is JSON text."""

    id: str
    name: str
    arguments: str


class ToolResultRecord(Struct, frozen=True, kw_only=True):
    """The result of a tool call."""

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
    """A summary that replaces earlier items."""

    summary: str


class ErrorRecord(Struct, frozen=True):
    """An error."""

    message: str


class ProviderMetadata(Struct, frozen=True):
    """Data that only the provider understands."""

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


class TaggedTranscriptItem(TaggedUnion, frozen=True):
    """An item of a transcript in its wire form."""

    user_message: UserMessage | UnsetType = UNSET
    assistant_message: AssistantMessage | UnsetType = UNSET
    reasoning_summary: ReasoningSummary | UnsetType = UNSET
    tool_call: ToolCallRecord | UnsetType = UNSET
    tool_result: ToolResultRecord | UnsetType = UNSET
    file_change: FileChange | UnsetType = UNSET
    context_compaction: ContextCompaction | UnsetType = UNSET
    error: ErrorRecord | UnsetType = UNSET
    provider_metadata: Any = UNSET

    variants: ClassVar[dict[type[Any], str]] = {
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
    bare_variant: ClassVar[type[Any] | None] = ProviderMetadata


# -- a request


class ModelSelection(Struct, frozen=True):
    """The model and its engine."""

    provider: str
    model: str


class Instructions(Struct, frozen=True):
    """System and developer instructions."""

    system: str | None = None
    developer: str | None = None
    developer_context: str | None = None


class SpecificTool(Struct, frozen=True, rename="pascal"):
    """The model must use this tool."""

    specific: str


class ReasoningConfig(Struct, frozen=True):
    """Whether and how much the model reasons."""

    enabled: bool
    level: str | None = None


class OutputConfig(Struct, frozen=True):
    """Settings of the output."""

    max_tokens: UInt32 | None = None
    temperature: float | None = None
    top_p: float | None = None
    response_format: Any = None


class HostedWebSearch(Struct, frozen=True):
    mode: str = "disabled"


class RuntimeHints(Struct, frozen=True, kw_only=True):
    """Hints of the host that an engine may use."""

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
    """A complete request to a model."""

    model: ModelSelection
    instructions: Instructions = Instructions()
    transcript: tuple[TaggedTranscriptItem, ...] = ()
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: Literal["Auto", "Any", "None"] | SpecificTool = "Auto"
    reasoning: ReasoningConfig = ReasoningConfig(False)
    output: OutputConfig = OutputConfig()
    runtime: RuntimeHints = RuntimeHints()
    metadata: Any = {}
