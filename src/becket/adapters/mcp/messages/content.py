"""MCP content blocks: text, image, audio, resources, tool use and tool results."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias, assert_never

from becket.adapters.mcp.messages.base import Annotations, Icon, McpMessage

__all__ = [
    "AudioContent",
    "Content",
    "EmbeddedResource",
    "ImageContent",
    "ResourceContents",
    "ResourceLink",
    "SamplingContent",
    "TextContent",
    "ToolResultContent",
    "ToolUseContent",
    "join_text",
]


class TextContent(McpMessage, frozen=True, tag="text", tag_field="type"):
    """A text."""

    text: str
    annotations: Annotations | None = None


class ImageContent(McpMessage, frozen=True, tag="image", tag_field="type"):
    """An image in base64."""

    data: str
    mime_type: str
    annotations: Annotations | None = None


class AudioContent(McpMessage, frozen=True, tag="audio", tag_field="type"):
    """Audio in base64."""

    data: str
    mime_type: str
    annotations: Annotations | None = None


class ResourceContents(McpMessage, frozen=True):
    """Contents of a resource: `text`, or `blob` in base64."""

    uri: str
    mime_type: str | None = None
    text: str | None = None
    blob: str | None = None


class ResourceLink(McpMessage, frozen=True, tag="resource_link", tag_field="type"):
    """A link to a resource."""

    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None
    annotations: Annotations | None = None
    icons: tuple[Icon, ...] | None = None


class EmbeddedResource(McpMessage, frozen=True, tag="resource", tag_field="type"):
    """A resource with its contents."""

    resource: ResourceContents
    annotations: Annotations | None = None


Content: TypeAlias = TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource
"""Content of tool results and prompts."""


class ToolUseContent(McpMessage, frozen=True, tag="tool_use", tag_field="type"):
    """A tool call of a model."""

    id: str
    name: str
    input: dict[str, Any]


class ToolResultContent(McpMessage, frozen=True, tag="tool_result", tag_field="type"):
    """A tool result for a model."""

    tool_use_id: str
    content: tuple[Content, ...] = ()
    structured_content: dict[str, Any] | None = None
    is_error: bool | None = None


SamplingContent: TypeAlias = TextContent | ImageContent | AudioContent | ToolUseContent | ToolResultContent
"""Content of messages to and from models."""


def join_text(content: Iterable[Content]) -> str:
    """Returns content as text for a model; other content is replaced by a description."""
    return "\n".join(map(block_text, content))


def block_text(block: Content) -> str:
    match block:
        case TextContent(text=text):
            return text
        case ImageContent(mime_type=kind) | AudioContent(mime_type=kind):
            return f"[{kind}]"
        case ResourceLink(uri=uri):
            return f"[{uri}]"
        case EmbeddedResource(resource=resource):
            return f"[{resource.uri}]" if resource.text is None else resource.text
        case _:
            assert_never(block)
