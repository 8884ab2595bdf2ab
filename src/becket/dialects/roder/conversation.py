"""A request to a model in the words of the contract and in those of Roder, and the events of its answer. Pure.

The contract has messages of content blocks, Roder a transcript of items: one message may be several items, and
neighbouring items of one speaker are one message. Items that are nobody's words (a changed file, an error, what only a
provider understands) are left out of the messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct, ValidationError

from becket.contract.names import model_runtime_id
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
)
from becket.contract.shapes import REFUSED, is_array, is_object
from becket.dialects.roder.inference import (
    FAILED,
    INFERENCE_EVENT,
    LONGEST_WAIT,
    STREAM_TURN,
    AssistantMessage,
    Completed,
    ContextCompaction,
    Failed,
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
    StreamTurnAck,
    TaggedItem,
    TokenUsage,
    ToolCallCompleted,
    ToolCallRecord,
    ToolResultRecord,
    TranscriptItem,
    UserMessage,
    check_acknowledged,
    read_inference_event,
)
from becket.dialects.roder.services import ToolSpec
from becket.errors import RpcError
from becket.methods.descriptors import Direction, EventReader, Stream

__all__ = [
    "PROVIDER_TURN",
    "TurnDone",
    "to_event",
    "to_messages",
    "to_provider_request",
    "to_request",
    "to_result_events",
    "to_transcript",
]

Block = dict[str, Any]
USER: Final = "user"
ASSISTANT: Final = "assistant"
LEAST_THINKING: Final = 1024  # tokens, where Roder says that a model thinks and not how much: the least that APIs take
BUDGET: Final = "thinking_budget"


# -- the contract's request as one of Roder


def to_request(request: ProviderRequest, engine: str, model: str) -> InferenceRequest:
    """Returns the request for a model of an engine."""
    budget = request.thinking_budget
    return InferenceRequest(
        model=ModelSelection(engine, model),
        instructions=Instructions(request.system_prompt),
        transcript=tuple(TaggedItem.of(item) for item in to_transcript(request.messages)),
        tools=tuple(to_tool(tool) for tool in request.tools),
        reasoning=ReasoningConfig(budget > 0),
        output=OutputConfig(request.max_tokens, request.temperature),
        metadata={BUDGET: budget} if budget else {},
    )


def to_tool(tool: Block) -> ToolSpec:
    schema = tool.get("input_schema", {"type": "object"})
    return ToolSpec(str(tool.get("name", "")), str(tool.get("description", "")), schema)


def to_transcript(messages: Iterable[Message]) -> list[TranscriptItem]:
    """Returns the items of a conversation."""
    items: list[TranscriptItem] = []
    names: dict[str, str] = {}  # of the tools that were asked for, by the id of the call
    for message in messages:
        content = message.content
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        items += assistant_items(blocks, names) if message.role == ASSISTANT else user_items(blocks, names)
    return items


def assistant_items(blocks: Iterable[Block], names: dict[str, str]) -> Iterator[TranscriptItem]:
    for block in blocks:
        match block:
            case {"type": "text", "text": str(text)}:
                yield AssistantMessage(text)
            case {"type": "thinking", "thinking": str(text)}:
                yield ReasoningSummary(text)
            case {"type": "tool_use", "id": str(id), "name": str(name)}:
                names[id] = name
                yield ToolCallRecord(id, name, to_json(block.get("input", {})))
            case _:
                yield ProviderMetadata(block)


def user_items(blocks: Iterable[Block], names: dict[str, str]) -> Iterator[TranscriptItem]:
    """Yields what a person says, texts and pictures together, and the results of tools in between."""
    texts: list[str] = []
    images: list[InputImage] = []
    for block in blocks:
        match block:
            case {"type": "text", "text": str(text)}:
                texts.append(text)
            case {"type": "image", "source": {"type": "base64", "media_type": str(kind), "data": str(data)}}:
                images.append(InputImage(f"data:{kind};base64,{data}"))
            case {"type": "image", "source": {"type": "url", "url": str(url)}}:
                images.append(InputImage(url))
            case {"type": "tool_result", "tool_use_id": str(id)}:
                yield from said(texts, images)
                texts, images = [], []
                result, failed = result_text(block.get("content")), block.get("is_error") is True
                yield ToolResultRecord(id=id, name=names.get(id), result=result, is_error=failed)
            case _:
                yield ProviderMetadata(block)
    yield from said(texts, images)


def said(texts: list[str], images: list[InputImage]) -> Iterator[UserMessage]:
    if texts or images:
        yield UserMessage("\n\n".join(texts), tuple(images) if images else UNSET)


def result_text(content: Any) -> str:
    """Returns what a tool has given as text: it may be text, or blocks of it."""
    if content is None or isinstance(content, str):
        return content or ""
    if is_array(content) and all(is_object(block) and isinstance(block.get("text"), str) for block in content):
        return "".join(block["text"] for block in content)
    return to_json(content)


def to_json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


# -- a request of Roder as the contract's


def to_provider_request(request: InferenceRequest, engine: str, extension: str) -> ProviderRequest:
    """Returns the request to an engine of an extension."""
    told = request.instructions
    prompt = "\n\n".join(text for text in (told.system, told.developer, told.developer_context) if text)
    model = request.model.model
    return ProviderRequest(
        provider_id=engine,
        model_id=model,
        model=model_runtime_id(extension, engine, model),
        messages=to_messages(item.value for item in request.transcript),
        system_prompt=prompt or None,
        tools=tuple(
            {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
            for tool in request.tools
        ),
        temperature=request.output.temperature,
        max_tokens=request.output.max_tokens,
        thinking_budget=read_budget(request),
    )


def read_budget(request: InferenceRequest) -> int:
    given = request.metadata.get(BUDGET) if is_object(request.metadata) else None
    if isinstance(given, int) and not isinstance(given, bool) and 0 < given < 2**32:
        return given
    return LEAST_THINKING if request.reasoning.enabled else 0


def to_messages(items: Iterable[TranscriptItem]) -> tuple[Message, ...]:
    """Returns the messages of a transcript."""
    turns: list[tuple[str, list[Block]]] = []
    for item in items:
        role, blocks = to_blocks(item)
        if turns and turns[-1][0] == role:
            turns[-1][1].extend(blocks)
        elif blocks:
            turns.append((role, blocks))
    return tuple(Message(role, content_of(blocks)) for role, blocks in turns)


def content_of(blocks: list[Block]) -> str | tuple[Block, ...]:
    """Returns a text alone as text."""
    if len(blocks) == 1 and blocks[0]["type"] == "text":
        text: str = blocks[0]["text"]
        return text
    return tuple(blocks)


def to_blocks(item: TranscriptItem) -> tuple[str, list[Block]]:
    match item:
        case UserMessage(text, images):
            pictures = [] if images is UNSET else [{"type": "image", "source": to_source(one)} for one in images]
            words = [{"type": "text", "text": text}] if text or not pictures else []
            return USER, [*words, *pictures]
        case AssistantMessage(text):
            return ASSISTANT, [{"type": "text", "text": text}]
        case ReasoningSummary(text):
            return ASSISTANT, [{"type": "thinking", "thinking": text}]
        case ToolCallRecord(id, name, arguments):
            return ASSISTANT, [{"type": "tool_use", "id": id, "name": name, "input": read_arguments(arguments)}]
        case ToolResultRecord():
            block: Block = {"type": "tool_result", "tool_use_id": item.id, "content": item.result}
            return USER, [block | ({"is_error": True} if item.is_error else {})]
        case ContextCompaction(summary):
            return USER, [{"type": "text", "text": summary}]
        case _:
            return "", []


def to_source(image: InputImage) -> Block:
    head, comma, data = image.image_url.partition(";base64,")
    if comma and head.startswith("data:"):
        return {"type": "base64", "media_type": head.removeprefix("data:"), "data": data}
    return {"type": "url", "url": image.image_url}


def read_arguments(text: str) -> Block:
    """Returns the arguments of a tool, which travel as text; what is no object stands under its own name."""
    try:
        value: Any = msgspec.json.decode(text or "{}")
    except (*REFUSED, msgspec.DecodeError):
        value = text
    return value if is_object(value) else {"arguments": value}


# -- the events of an answer, as the contract has them


class TurnDone(ProviderDone, frozen=True):
    """The answer is whole. Why it ended is told by the event itself here, and by the result there."""

    stop_reason: str | None = None
    provider_response_id: str | None = None


def read_provider_event(raw: Raw) -> ProviderEvent:
    """Returns an event of an answer.

    Raises:
        msgspec.ValidationError: it is malformed, or the contract has no word for it.
    """
    match read_inference_event(raw):
        case MessageDelta(text):
            return TextDelta(text)
        case ReasoningDelta(text):
            return ThinkingDelta(text)
        case ToolCallCompleted(id, name, arguments):
            return ToolUse(id, name, read_arguments(arguments))
        case TokenUsage() as usage:
            return Usage(msgspec.to_builtins(usage))
        case Completed(stop_reason, response):
            return TurnDone(stop_reason, response)
        case Failed(message):
            return ProviderFailed(message or "it failed without a word")
        case other:
            raise ValidationError(f"the contract has no word for it: {type(other).__name__}")


class Peeked(Struct, rename="camel"):
    stream_id: str
    event: dict[str, Raw]


UNSAID: Final = frozenset(
    {
        "ToolCallStarted",
        "ToolCallDelta",
        "HostedToolCallStarted",
        "HostedToolCallCompleted",
        "Compaction",
        "ProviderMetadata",
    }
)


def is_said_in_turn(raw: Raw, call: StreamTurn) -> bool:
    """Returns whether the event is of this answer, and one that the contract has a word for."""
    try:
        peeked = msgspec.json.decode(raw, type=Peeked)
    except REFUSED:
        return False
    return peeked.stream_id == call.stream_id and not (len(peeked.event) == 1 and UNSAID.issuperset(peeked.event))


class GatheredAnswer:
    """Puts the pieces of an answer together."""

    def __init__(self, call: StreamTurn) -> None:
        self._stream_id = call.stream_id
        self._blocks: list[Block | tuple[str, list[str]]] = []
        self._usage: Block | None = None
        self._stop_reason: str | None = None
        self._failure: str | None = None

    def acknowledge(self, answer: Raw, /) -> None:
        """Takes the engine's word that it has begun."""
        check_acknowledged("stream", msgspec.json.decode(answer, type=StreamTurnAck).stream_id, self._stream_id)

    def take(self, event: ProviderEvent, /) -> bool:
        """Takes an event, and returns whether it is the last one."""
        match event:
            case TextDelta(text):
                self._add("text", text)
            case ThinkingDelta(text):
                self._add("thinking", text)
            case ToolUse(id, name, given):
                self._blocks.append({"type": "tool_use", "id": id, "name": name, "input": given})
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
        """Returns the whole answer."""
        if self._failure is not None:
            raise RpcError(FAILED, self._failure)
        blocks = (
            block if isinstance(block, dict) else {"type": block[0], block[0]: "".join(block[1])}
            for block in self._blocks
        )
        return ProviderResult(tuple(blocks), self._stop_reason, self._usage)


PROVIDER_TURN: Final[Stream[StreamTurn, ProviderResult, ProviderEvent]] = Stream(
    STREAM_TURN.name,
    StreamTurn,
    ProviderResult,
    events={
        INFERENCE_EVENT.name: EventReader(
            read_provider_event,
            (TextDelta, ThinkingDelta, ToolUse, Usage, ProviderFailed, ProviderDone),
            is_said_in_turn,
        )
    },
    gather=GatheredAnswer,
    idle_timeout=LONGEST_WAIT,
    direction=Direction.TO_EXTENSION,
    summary=STREAM_TURN.summary,
)
"""`STREAM_TURN` with the events and the result of the contract."""


# -- the contract's events as those of Roder


def to_event(event: ProviderEvent) -> InferenceEvent | None:
    """Returns what is told of an event; None of the last one, whose place the end takes.

    An error that the answer goes on after is told as metadata: `Failed` would be the end."""
    match event:
        case TextDelta(text):
            return MessageDelta(text)
        case ThinkingDelta(text):
            return ReasoningDelta(text)
        case ToolUse(id, name, given):
            return ToolCallCompleted(id, name, to_json(given))
        case Usage(values):
            return to_usage(values)
        case ProviderFailed(message, code):
            return ProviderMetadata({"error": {"message": message} | ({} if code is None else {"code": code})})
        case _:
            return None


def to_usage(values: Block) -> TokenUsage | ProviderMetadata:
    """Returns the numbers that Roder has names for; where those are not there, all of them as metadata."""
    asked = find_count(values, "prompt_tokens", "input_tokens")
    answered = find_count(values, "completion_tokens", "output_tokens")
    if asked is None or answered is None:
        return ProviderMetadata({"usage": values})
    total = find_count(values, "total_tokens")
    cached = find_count(values, "cached_prompt_tokens", "cache_read_input_tokens")
    return TokenUsage(
        prompt_tokens=asked,
        completion_tokens=answered,
        total_tokens=asked + answered if total is None else total,
        cached_prompt_tokens=UNSET if cached is None else cached,
    )


def find_count(values: Block, *names: str) -> int | None:
    for name in names:
        value = values.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31:
            return value
    return None


def to_result_events(result: ProviderResult, told: set[type]) -> Iterator[InferenceEvent]:
    """Yields the end of an answer; before it, what came with the result alone and was not told piece by piece."""
    for block in result.content:
        match block:
            case {"type": "text", "text": str(text)} if TextDelta not in told:
                yield MessageDelta(text)
            case {"type": "thinking", "thinking": str(text)} if ThinkingDelta not in told:
                yield ReasoningDelta(text)
            case {"type": "tool_use", "id": str(id), "name": str(name)} if ToolUse not in told:
                yield ToolCallCompleted(id, name, to_json(block.get("input", {})))
            case _:
                pass
    if is_object(result.usage) and Usage not in told:
        yield to_usage(result.usage)
    yield Completed(result.stop_reason)
