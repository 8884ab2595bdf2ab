"""Maps provider events and results to Roder inference events, and back.

Roder's events without a counterpart in the contract are ignored: announced and hosted tool calls, compaction, metadata.
Events of the contract without a counterpart in Roder are sent as metadata.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct, ValidationError

from becket.adapters.roder.messages.inference import (
    INFERENCE_EVENT,
    STREAM_TURN,
    TURN_OPERATION,
    InferenceEvent,
    MessageDelta,
    ReasoningDelta,
    StreamTurnParams,
    TokenUsage,
    ToolCallCompleted,
    TurnCompleted,
    TurnFailed,
    decode_inference_event,
)
from becket.adapters.roder.messages.inference_request import ProviderMetadata
from becket.adapters.roder.messages.operations import MAX_IDLE, OPERATION_FAILED_CODE
from becket.adapters.roder.provider_request_mapping import decode_arguments, to_json
from becket.contract.json_narrowing import is_object
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
from becket.errors import JSON_ERRORS, RpcError
from becket.methods.streams import EventReader, Stream

__all__ = ["PROVIDER_TURN", "TurnDone", "to_final_events", "to_inference_event"]

# -- Roder to the contract


class TurnDone(ProviderDone, frozen=True):
    """End of a turn. Roder sends the stop reason with this event, the contract with the result."""

    stop_reason: str | None = None
    provider_response_id: str | None = None


def decode_provider_event(raw: Raw) -> ProviderEvent:
    """Returns an event of a turn.

    Raises:
        msgspec.ValidationError: it is malformed, or has no counterpart in the contract.
    """
    match decode_inference_event(raw):
        case MessageDelta(text):
            return TextDelta(text)
        case ReasoningDelta(text):
            return ThinkingDelta(text)
        case ToolCallCompleted(id, name, arguments):
            return ToolUse(id, name, decode_arguments(arguments))
        case TokenUsage() as usage:
            return Usage(msgspec.to_builtins(usage))
        case TurnCompleted(stop_reason, response):
            return TurnDone(stop_reason, response)
        case TurnFailed(message):
            return ProviderFailed(message or "it failed without a message")
        case other:
            raise ValidationError(f"no counterpart in the contract: {type(other).__name__}")


class InferenceEventProbe(Struct, rename="camel"):
    stream_id: str
    event: dict[str, Raw]


UNMAPPED_EVENTS: Final = frozenset(
    {
        "ToolCallStarted",
        "ToolCallDelta",
        "HostedToolCallStarted",
        "HostedToolCallCompleted",
        "Compaction",
        "ProviderMetadata",
    }
)


def is_mapped_event_of(raw: Raw, call: StreamTurnParams) -> bool:
    """Returns whether the event is of this turn and has a counterpart in the contract."""
    try:
        peeked = msgspec.json.decode(raw, type=InferenceEventProbe)
    except JSON_ERRORS:
        return False
    return peeked.stream_id == call.stream_id and not (
        len(peeked.event) == 1 and UNMAPPED_EVENTS.issuperset(peeked.event)
    )


class ProviderResultCollector:
    """Builds the result of a turn from its events."""

    def __init__(self, call: StreamTurnParams) -> None:
        self._call = call
        self._blocks: list[dict[str, Any] | tuple[str, list[str]]] = []
        self._usage: dict[str, Any] | None = None
        self._stop_reason: str | None = None
        self._failure: str | None = None

    def on_response(self, response: Raw, /) -> None:
        """Checks the engine's acknowledgement."""
        TURN_OPERATION.check_ack(response, self._call)

    def on_event(self, event: ProviderEvent, /) -> bool:
        """Adds an event; returns whether it is the last one."""
        match event:
            case TextDelta(text):
                self._add("text", text)
            case ThinkingDelta(text):
                self._add("thinking", text)
            case ToolUse(id, name, input):
                self._blocks.append({"type": "tool_use", "id": id, "name": name, "input": input})
            case Usage(values):
                self._usage = values
            case ProviderFailed(message):
                self._failure = message
                return True
            case _:
                self._stop_reason = getattr(event, "stop_reason", None)
                return True
        return False

    def _add(self, kind: str, text: str) -> None:
        last = self._blocks[-1] if self._blocks else None
        if isinstance(last, tuple) and last[0] == kind:
            last[1].append(text)
        else:
            self._blocks.append((kind, [text]))

    def result(self) -> ProviderResult:
        """Returns the result; raises `RpcError` for a failed turn."""
        if self._failure is not None:
            raise RpcError(OPERATION_FAILED_CODE, self._failure)
        blocks = (
            block if isinstance(block, dict) else {"type": block[0], block[0]: "".join(block[1])}
            for block in self._blocks
        )
        return ProviderResult(tuple(blocks), self._stop_reason, self._usage)


PROVIDER_TURN: Final[Stream[StreamTurnParams, ProviderResult, ProviderEvent]] = Stream(
    STREAM_TURN.name,
    StreamTurnParams,
    ProviderResult,
    events={
        INFERENCE_EVENT.name: EventReader(
            decode_provider_event,
            (TextDelta, ThinkingDelta, ToolUse, Usage, ProviderFailed, ProviderDone),
            is_mapped_event_of,
        )
    },
    gather=ProviderResultCollector,
    idle_timeout=MAX_IDLE,
    direction="to-extension",
    summary=STREAM_TURN.summary,
)
"""`STREAM_TURN` with the events and the result of the contract."""


# -- the contract to Roder


def to_inference_event(event: ProviderEvent) -> InferenceEvent | None:
    """Returns the Roder event of an event; None for the last one, which `to_final_events` replaces.

    An error before the end is sent as metadata, because `TurnFailed` would end the turn."""
    match event:
        case TextDelta(text):
            return MessageDelta(text)
        case ThinkingDelta(text):
            return ReasoningDelta(text)
        case ToolUse(id, name, input):
            return ToolCallCompleted(id, name, to_json(input))
        case Usage(values):
            return to_token_usage(values)
        case ProviderFailed(message, code):
            return ProviderMetadata({"error": {"message": message} | ({} if code is None else {"code": code})})
        case _:
            return None


def to_token_usage(values: dict[str, Any]) -> TokenUsage | ProviderMetadata:
    """Returns the token counts of Roder; if they are missing, all values as metadata."""
    prompt = find_count(values, "prompt_tokens", "input_tokens")
    completion = find_count(values, "completion_tokens", "output_tokens")
    if prompt is None or completion is None:
        return ProviderMetadata({"usage": values})
    total = find_count(values, "total_tokens")
    cached = find_count(values, "cached_prompt_tokens", "cache_read_input_tokens")
    return TokenUsage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        total_tokens=prompt + completion if total is None else total,
        cached_prompt_tokens=UNSET if cached is None else cached,
    )


def find_count(values: dict[str, Any], *names: str) -> int | None:
    for name in names:
        value = values.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31:
            return value
    return None


def to_final_events(result: ProviderResult, sent: set[type]) -> Iterator[InferenceEvent]:
    """Yields the content of a result of which no events were `sent`, then the end of the turn."""
    for block in result.content:
        match block:
            case {"type": "text", "text": str(text)} if TextDelta not in sent:
                yield MessageDelta(text)
            case {"type": "thinking", "thinking": str(text)} if ThinkingDelta not in sent:
                yield ReasoningDelta(text)
            case {"type": "tool_use", "id": str(id), "name": str(name)} if ToolUse not in sent:
                yield ToolCallCompleted(id, name, to_json(block.get("input", {})))
            case _:
                pass
    if is_object(result.usage) and Usage not in sent:
        yield to_token_usage(result.usage)
    yield TurnCompleted(result.stop_reason)
