"""Provider requests, results and stream events.

Messages and content blocks are those of the Anthropic API. The contract does not interpret blocks.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias, TypeGuard

import msgspec
from msgspec import Meta, Raw, Struct, ValidationError

from becket._deprecated import keep_renamed
from becket._text import truncate
from becket.contract.json_narrowing import decode_object, is_object, require_object, require_text
from becket.contract.models import Model, Provider
from becket.errors import JSON_ERRORS, BadReply
from becket.methods.descriptors import Method, Notification
from becket.methods.streams import EventReader, Stream

__all__ = [
    "MAX_TOOL_OUTPUT",
    "MAX_TOOL_TURNS",
    "PROVIDER_COMPLETE",
    "PROVIDER_STREAM",
    "PROVIDER_STREAM_EVENT",
    "Message",
    "Model",
    "Provider",
    "ProviderDone",
    "ProviderEvent",
    "ProviderFailed",
    "ProviderRequest",
    "ProviderResult",
    "TextDelta",
    "ThinkingDelta",
    "ToolUse",
    "Usage",
    "assistant",
    "build_event_params",
    "check_complete_result",
    "decode_provider_event",
    "find_tool_uses",
    "is_tool_use",
    "should_stream",
    "tool_result",
    "user",
]

MAX_TOOL_TURNS: Final = 8  # turns of one response in which the model may call tools
MAX_TOOL_OUTPUT: Final = 30_000  # bytes of a tool's output that are returned to the model

UINT32: Final = Meta(ge=0, le=2**32 - 1)
NonEmpty = Annotated[str, Meta(min_length=1)]


# -- requests


class Message(Struct, frozen=True):
    """One turn of a conversation: text, or content blocks."""

    role: str
    content: str | tuple[dict[str, Any], ...]


def user(text: str) -> Message:
    """Returns a message of the user."""
    return Message("user", text)


def assistant(text: str) -> Message:
    """Returns a message of the model."""
    return Message("assistant", text)


class ProviderRequest(Struct, frozen=True):
    """A request to a model. All members are sent, null where they are not set.

    `model` is the runtime id `plugin:provider:model`."""

    provider_id: str
    model_id: str
    model: str
    messages: tuple[Message, ...]
    system_prompt: str | None = None
    tools: tuple[dict[str, Any], ...] = ()
    temperature: float | None = None
    max_tokens: Annotated[int, UINT32] | None = None
    thinking_budget: Annotated[int, UINT32] = 0


class ProviderResult(Struct, frozen=True, omit_defaults=True):
    """The complete response of a model, as content blocks."""

    content: tuple[Any, ...]
    stop_reason: str | None = None
    usage: Any = None

    @classmethod
    def of_text(cls, text: str) -> ProviderResult:
        """Returns a result of one text block."""
        return cls(({"type": "text", "text": text},))

    @property
    def text(self) -> str:
        """The concatenated text blocks; other blocks are skipped."""
        blocks = (block for block in self.content if is_object(block) and block.get("type") == "text")
        texts = (block.get("text") for block in blocks)
        return "".join(text for text in texts if isinstance(text, str))


def should_stream(request: ProviderRequest, model: Model) -> bool:
    """Returns whether the host streams this request: the model streams, and there are no tools."""
    return model.streaming and not (model.tool_use and request.tools)


def check_complete_result(extension: str, result: ProviderResult) -> None:
    """Raises BadReply for a complete result without content. A streamed result may have none: its content was
    events."""
    if not result.content:
        problem = f"Extension '{extension}' {PROVIDER_COMPLETE.name} returned empty content"
        raise BadReply(method=PROVIDER_COMPLETE.name, problem=problem)


# -- tool calls


def find_tool_uses(result: ProviderResult) -> list[ToolUse]:
    """Returns the tool calls in the model's response, in order.

    Raises:
        msgspec.ValidationError: a tool call is malformed.
    """
    return [parse_tool_block(block) for block in result.content if is_tool_use(block)]


def is_tool_use(block: object) -> TypeGuard[dict[str, Any]]:
    """Returns whether a content block is a tool call."""
    return is_object(block) and block.get("type") == "tool_use"


def parse_tool_block(block: dict[str, Any]) -> ToolUse:
    id = require_text(block, "id", "provider tool_use missing id")
    name = require_text(block, "name", "provider tool_use missing name")
    if not id.strip():
        raise ValidationError("provider tool_use id is empty")
    if not name.strip():
        raise ValidationError("provider tool_use name is empty")
    input = require_object(block.get("input", {}), f"provider tool_use '{id}' input must be a JSON object")
    return ToolUse(id, name, input)


def tool_result(tool_use_id: str, content: str, *, is_error: bool = False) -> dict[str, Any]:
    """Returns the content block with the result of a tool call."""
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": tool_use_id, "content": content}
    if is_error:
        block["is_error"] = True
    return block


# -- events
# They forbid unknown members: the fast path accepts exactly what becket sends, `decode_lenient_event` the rest.


class TextDelta(Struct, frozen=True, gc=False, forbid_unknown_fields=True, tag_field="type", tag="text"):
    """A part of the response text."""

    text: str = msgspec.field(name="delta")


class ThinkingDelta(Struct, frozen=True, gc=False, forbid_unknown_fields=True, tag_field="type", tag="thinking"):
    """A part of the model's reasoning."""

    text: str = msgspec.field(name="delta")


class ToolUse(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="tool_use"):
    """The model calls a tool."""

    id: NonEmpty
    name: NonEmpty
    input: dict[str, Any] = {}


class Usage(Struct, frozen=True):
    """Usage so far, under the names of the provider."""

    values: dict[str, Any]


class ProviderFailed(
    Struct, frozen=True, gc=False, forbid_unknown_fields=True, omit_defaults=True, tag_field="type", tag="error"
):
    """The provider has failed; the call may still return a result."""

    message: NonEmpty
    code: int | str | None = None


class ProviderDone(Struct, frozen=True, gc=False, forbid_unknown_fields=True, tag_field="type", tag="done"):
    """The last event; the response ends the call."""


DirectEvent: TypeAlias = TextDelta | ThinkingDelta | ToolUse | ProviderFailed | ProviderDone
ProviderEvent: TypeAlias = TextDelta | ThinkingDelta | ToolUse | Usage | ProviderFailed | ProviderDone


def build_event_params(event: ProviderEvent) -> object:
    """Returns the params of `provider.stream.event`."""
    if isinstance(event, Usage):
        return {"type": "usage", **event.values, "type": "usage"}  # noqa: F601
    return event


@cache
def get_event_decoder() -> msgspec.json.Decoder[DirectEvent]:
    return msgspec.json.Decoder(DirectEvent)  # built at the first event: extensions that only send never need it


def decode_provider_event(raw: Raw) -> ProviderEvent:
    """Decodes an event, nested under `event` or flat, its text in `delta` or in `text`.

    Raises:
        msgspec.ValidationError: it is malformed, or of an unknown type.
    """
    try:
        return get_event_decoder().decode(raw)
    except JSON_ERRORS:
        return decode_lenient_event(raw)


def decode_lenient_event(raw: Raw) -> ProviderEvent:
    params = decode_object(raw, "provider stream event")
    event = require_object(params.get("event", params), "provider stream event must be a JSON object")
    kind = require_text(event, "type", "provider stream event missing type")
    match kind:
        case "text":
            return TextDelta(require_delta(event, kind))
        case "thinking":
            return ThinkingDelta(require_delta(event, kind))
        case "tool_use":
            return parse_tool_use(event)
        case "usage":
            return Usage({name: value for name, value in event.items() if name != "type"})
        case "error":
            message = require_text(event, "message", "provider stream error missing message")
            if not message:
                raise ValidationError("provider stream error message must be non-empty")
            code = event.get("code")
            return ProviderFailed(message, code if is_error_code(code) else None)
        case "done":
            return ProviderDone()
        case _:
            raise ValidationError(f"unknown provider stream event type: {truncate(kind)}")


def require_delta(event: dict[str, Any], kind: str) -> str:
    name = "delta" if "delta" in event else "text"
    return require_text(event, name, f"provider stream {kind} event missing 'delta' or 'text'")


def parse_tool_use(event: dict[str, Any]) -> ToolUse:
    id = require_text(event, "id", "provider stream tool_use missing id")
    if not id:
        raise ValidationError("provider stream tool_use id must be non-empty")
    name = require_text(event, "name", "provider stream tool_use missing name")
    if not name:
        raise ValidationError("provider stream tool_use name must be non-empty")
    input = require_object(event.get("input", {}), "provider stream tool_use input must be a JSON object")
    return ToolUse(id, name, input)


def is_error_code(value: object) -> bool:
    return isinstance(value, int | str) and not isinstance(value, bool)


# -- on the wire

PROVIDER_STREAM_EVENT: Final[Notification[ProviderEvent]] = Notification(
    "provider.stream.event", ProviderEvent, summary="One event of a streamed response."
)
PROVIDER_COMPLETE: Final = Method(
    "provider.complete",
    ProviderRequest,
    ProviderResult,
    timeout=60.0,
    direction="to-extension",
    summary="Requests a complete response from a model of the extension.",
)
PROVIDER_STREAM: Final[Stream[ProviderRequest, ProviderResult, ProviderEvent]] = Stream(
    "provider.stream",
    ProviderRequest,
    ProviderResult,
    events={
        PROVIDER_STREAM_EVENT.name: EventReader(
            decode_provider_event, (TextDelta, ThinkingDelta, ToolUse, Usage, ProviderFailed, ProviderDone)
        )
    },
    idle_timeout=60.0,
    direction="to-extension",
    summary="Requests a streamed response from a model of the extension; its parts arrive as events.",
)


if not TYPE_CHECKING:  # for a type checker, a module with this function has every name
    __getattr__ = keep_renamed(
        __name__,
        {
            "MOST_TOOL_OUTPUT": "MAX_TOOL_OUTPUT",
            "MOST_TOOL_TURNS": "MAX_TOOL_TURNS",
            "check_completed": "check_complete_result",
            "event_params": "build_event_params",
            "read_provider_event": "decode_provider_event",
            "tool_uses": "find_tool_uses",
        },
    )
