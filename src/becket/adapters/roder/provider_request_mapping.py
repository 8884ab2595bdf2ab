"""Maps provider requests to Roder inference requests, and back.

The contract has messages of content blocks, Roder a transcript of items: one message can become several items, and
consecutive items of one role become one message. Items without a role (a changed file, an error, provider metadata) are
left out of the messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec
from msgspec import UNSET

from becket.adapters.roder.messages.inference_request import (
    AssistantMessage,
    ContextCompaction,
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
    TranscriptItem,
    UserMessage,
)
from becket.adapters.roder.messages.services import ToolSpec
from becket.contract.json_narrowing import is_array, is_object
from becket.contract.names import model_runtime_id
from becket.contract.providers import Message, ProviderRequest
from becket.errors import JSON_ERRORS

__all__ = ["decode_arguments", "to_inference_request", "to_json", "to_messages", "to_provider_request", "to_transcript"]

ContentBlock = dict[str, Any]
USER: Final = "user"
ASSISTANT: Final = "assistant"
MIN_THINKING_BUDGET: Final = 1024  # tokens if Roder enables reasoning without a budget: the minimum of common APIs
BUDGET_KEY: Final = "thinking_budget"


# -- the contract to Roder


def to_inference_request(request: ProviderRequest, engine: str, model: str) -> InferenceRequest:
    """Returns the request for a model of an engine."""
    budget = request.thinking_budget
    return InferenceRequest(
        model=ModelSelection(engine, model),
        instructions=Instructions(request.system_prompt),
        transcript=tuple(TaggedTranscriptItem.wrap(item) for item in to_transcript(request.messages)),
        tools=tuple(to_tool_spec(tool) for tool in request.tools),
        reasoning=ReasoningConfig(budget > 0),
        output=OutputConfig(request.max_tokens, request.temperature),
        metadata={BUDGET_KEY: budget} if budget else {},
    )


def to_tool_spec(tool: dict[str, Any]) -> ToolSpec:
    schema = tool.get("input_schema", {"type": "object"})
    return ToolSpec(str(tool.get("name", "")), str(tool.get("description", "")), schema)


def to_transcript(messages: Iterable[Message]) -> list[TranscriptItem]:
    """Returns the transcript of messages."""
    items: list[TranscriptItem] = []
    names: dict[str, str] = {}  # tool names by call id
    for message in messages:
        content = message.content
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        items += to_assistant_items(blocks, names) if message.role == ASSISTANT else to_user_items(blocks, names)
    return items


def to_assistant_items(blocks: Iterable[ContentBlock], names: dict[str, str]) -> Iterator[TranscriptItem]:
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


def to_user_items(blocks: Iterable[ContentBlock], names: dict[str, str]) -> Iterator[TranscriptItem]:
    """Yields user messages, with texts and images joined, and the tool results between them."""
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
                yield from build_user_message(texts, images)
                texts, images = [], []
                result, failed = to_result_text(block.get("content")), block.get("is_error") is True
                yield ToolResultRecord(id=id, name=names.get(id), result=result, is_error=failed)
            case _:
                yield ProviderMetadata(block)
    yield from build_user_message(texts, images)


def build_user_message(texts: list[str], images: list[InputImage]) -> Iterator[UserMessage]:
    if texts or images:
        yield UserMessage("\n\n".join(texts), tuple(images) if images else UNSET)


def to_result_text(content: Any) -> str:
    """Returns the content of a tool result, a string or blocks, as text."""
    if content is None or isinstance(content, str):
        return content or ""
    if is_array(content) and all(is_object(block) and isinstance(block.get("text"), str) for block in content):
        return "".join(block["text"] for block in content)
    return to_json(content)


def to_json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


# -- Roder to the contract


def to_provider_request(request: InferenceRequest, engine: str, extension: str) -> ProviderRequest:
    """Returns the request to an engine of an extension."""
    instructions = request.instructions
    prompt = "\n\n".join(
        text for text in (instructions.system, instructions.developer, instructions.developer_context) if text
    )
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
        thinking_budget=find_thinking_budget(request),
    )


def find_thinking_budget(request: InferenceRequest) -> int:
    budget = request.metadata.get(BUDGET_KEY) if is_object(request.metadata) else None
    if isinstance(budget, int) and not isinstance(budget, bool) and 0 < budget < 2**32:
        return budget
    return MIN_THINKING_BUDGET if request.reasoning.enabled else 0


def to_messages(items: Iterable[TranscriptItem]) -> tuple[Message, ...]:
    """Returns the messages of a transcript."""
    turns: list[tuple[str, list[ContentBlock]]] = []
    for item in items:
        role, blocks = to_blocks(item)
        if turns and turns[-1][0] == role:
            turns[-1][1].extend(blocks)
        elif blocks:
            turns.append((role, blocks))
    return tuple(Message(role, to_content(blocks)) for role, blocks in turns)


def to_content(blocks: list[ContentBlock]) -> str | tuple[ContentBlock, ...]:
    """Returns a single text block as a string, otherwise the blocks."""
    if len(blocks) == 1 and blocks[0]["type"] == "text":
        text: str = blocks[0]["text"]
        return text
    return tuple(blocks)


def to_blocks(item: TranscriptItem) -> tuple[str, list[ContentBlock]]:
    match item:
        case UserMessage(text, images):
            pictures = [] if images is UNSET else [{"type": "image", "source": to_image_source(one)} for one in images]
            words = [{"type": "text", "text": text}] if text or not pictures else []
            return USER, [*words, *pictures]
        case AssistantMessage(text):
            return ASSISTANT, [{"type": "text", "text": text}]
        case ReasoningSummary(text):
            return ASSISTANT, [{"type": "thinking", "thinking": text}]
        case ToolCallRecord(id, name, arguments):
            return ASSISTANT, [{"type": "tool_use", "id": id, "name": name, "input": decode_arguments(arguments)}]
        case ToolResultRecord():
            block: ContentBlock = {"type": "tool_result", "tool_use_id": item.id, "content": item.result}
            return USER, [block | ({"is_error": True} if item.is_error else {})]
        case ContextCompaction(summary):
            return USER, [{"type": "text", "text": summary}]
        case _:
            return "", []


def to_image_source(image: InputImage) -> dict[str, Any]:
    head, comma, data = image.image_url.partition(";base64,")
    if comma and head.startswith("data:"):
        return {"type": "base64", "media_type": head.removeprefix("data:"), "data": data}
    return {"type": "url", "url": image.image_url}


def decode_arguments(text: str) -> dict[str, Any]:
    """Returns the arguments of a tool from JSON text; wraps any other value as `{"arguments": ...}`."""
    try:
        value: Any = msgspec.json.decode(text or "{}")
    except JSON_ERRORS:
        value = text
    return value if is_object(value) else {"arguments": value}
