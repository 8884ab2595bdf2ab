"""MCP tool messages: list, call and the changed notification."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from becket.adapters.mcp.messages.base import Icon, McpMessage, PaginatedParams, empty_tuple
from becket.adapters.mcp.messages.content import Content, TextContent, join_text
from becket.contract.json_narrowing import is_object
from becket.contract.tools import Tool as DeclaredTool
from becket.methods.descriptors import Method, Notification

__all__ = [
    "TOOLS_CALL",
    "TOOLS_CHANGED",
    "TOOLS_LIST",
    "CallToolParams",
    "ListToolsResult",
    "McpTool",
    "ToolAnnotations",
    "ToolResult",
    "ToolsChanged",
    "annotate",
    "is_object_schema",
    "output_schema_of",
    "replace_text",
    "structure",
]


class ToolAnnotations(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Hints about a tool's effects, which are not to be trusted."""

    title: str | None = None
    read_only_hint: bool | None = None
    destructive_hint: bool | None = None
    idempotent_hint: bool | None = None
    open_world_hint: bool | None = None


class McpTool(McpMessage, frozen=True):
    """A tool, with JSON Schemas of its arguments and of its `structured_content`, both objects."""

    name: str
    input_schema: Any = None
    title: str | None = None
    description: str | None = None
    output_schema: Any = None
    annotations: ToolAnnotations | None = None
    icons: tuple[Icon, ...] | None = None


def annotate(tool: DeclaredTool) -> ToolAnnotations | None:
    """Returns the annotations of an extension's tool, or None."""
    return ToolAnnotations(read_only_hint=True) if tool.read_only else None


def output_schema_of(tool: DeclaredTool) -> dict[str, Any] | None:
    """Returns the output schema of an extension's tool: that of an object, as MCP requires."""
    schema = tool.output_schema
    if not is_object(schema) or is_object_schema(schema):
        return schema if is_object(schema) else None
    inner = {name: value for name, value in schema.items() if name != DEFINITIONS}
    outer: dict[str, Any] = {"type": "object", "properties": {RESULT: inner}, "required": [RESULT]}
    return {**outer, DEFINITIONS: schema[DEFINITIONS]} if DEFINITIONS in schema else outer


def structure(result: ToolResult, tool: DeclaredTool, value: Any) -> ToolResult:
    """Returns a result with the structured content of the tool's output schema; `value` is its raw result.

    If the schema is that of an object, the result already has it."""
    schema = tool.output_schema
    if not is_object(schema) or is_object_schema(schema):
        return result
    return replace(result, structured_content={RESULT: value})


def replace_text(text: str, tool: DeclaredTool) -> ToolResult:
    """Returns a text as the result of a tool. If the output schema is not that of a string, the result is an error:
    clients would reject it otherwise, and a model reads it in either case."""
    schema = tool.output_schema
    result = ToolResult((TextContent(text),))
    if not is_object(schema):
        return result
    return structure(result, tool, text) if schema.get("type") == "string" else replace(result, is_error=True)


def is_object_schema(schema: dict[str, Any]) -> bool:
    return schema.get("type") == "object"


RESULT: Final = "result"  # member for a result that is not an object
DEFINITIONS: Final = "$defs"


class ListToolsResult(McpMessage, frozen=True):
    """A page of a server's tools."""

    tools: tuple[McpTool, ...]
    next_cursor: str | None = None


class CallToolParams(McpMessage, frozen=True):
    """Params of `tools/call`."""

    name: str
    arguments: dict[str, Any] | None = None


class ToolResult(McpMessage, frozen=True):
    """Result of a tool. With `is_error` the tool has failed, and the content is the reason for the model."""

    content: tuple[Content, ...] = field(default_factory=empty_tuple)
    structured_content: Any = None
    is_error: bool | None = None

    @property
    def text(self) -> str:
        """The content as text for a model."""
        return join_text(self.content)


class ToolsChanged(McpMessage, frozen=True):
    """The server's tools have changed."""


TOOLS_LIST: Final[Method[PaginatedParams | None, ListToolsResult]] = Method(
    "tools/list",
    PaginatedParams | None,
    ListToolsResult,
    direction="to-extension",
    summary="Lists the tools of a server.",
)
TOOLS_CALL: Final = Method(
    "tools/call",
    CallToolParams,
    ToolResult,
    timeout=120.0,
    direction="to-extension",
    summary="Runs a tool of a server.",
)
TOOLS_CHANGED: Final[Notification[ToolsChanged | None]] = Notification(
    "notifications/tools/list_changed", ToolsChanged | None, summary="The server has other tools now."
)
