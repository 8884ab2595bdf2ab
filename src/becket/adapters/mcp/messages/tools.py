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
    """What a server says of a tool's effects. Nobody has to believe it."""

    title: str | None = None
    read_only_hint: bool | None = None
    destructive_hint: bool | None = None
    idempotent_hint: bool | None = None
    open_world_hint: bool | None = None


class McpTool(McpMessage, frozen=True):
    """A tool. Its schemas are JSON Schemas of objects: of its arguments, and of the `structured_content` it gives."""

    name: str
    input_schema: Any = None
    title: str | None = None
    description: str | None = None
    output_schema: Any = None
    annotations: ToolAnnotations | None = None
    icons: tuple[Icon, ...] | None = None


def annotate(tool: DeclaredTool) -> ToolAnnotations | None:
    """Returns what is said of the effects of a tool of an extension, None where nothing is."""
    return ToolAnnotations(read_only_hint=True) if tool.read_only else None


def output_schema_of(tool: DeclaredTool) -> dict[str, Any] | None:
    """Returns the schema of the structured content of a tool of an extension: that of an object, as MCP wants it."""
    schema = tool.output_schema
    if not is_object(schema) or is_object_schema(schema):
        return schema if is_object(schema) else None
    inner = {name: value for name, value in schema.items() if name != DEFINITIONS}
    outer: dict[str, Any] = {"type": "object", "properties": {RESULT: inner}, "required": [RESULT]}
    return {**outer, DEFINITIONS: schema[DEFINITIONS]} if DEFINITIONS in schema else outer


def structure(result: ToolResult, tool: DeclaredTool, given: Any) -> ToolResult:
    """Returns a result with the structured content that its tool promises; `given` is what that returned, as JSON.

    Where an object is promised it is there already."""
    schema = tool.output_schema
    if not is_object(schema) or is_object_schema(schema):
        return result
    return replace(result, structured_content={RESULT: given})


def replace_text(text: str, tool: DeclaredTool) -> ToolResult:
    """Returns a text in place of what a tool returned. Where its schema promises something else than a text that cannot
    be kept, and clients would refuse the result: it is an error then, which a model reads all the same."""
    schema = tool.output_schema
    result = ToolResult((TextContent(text),))
    if not is_object(schema):
        return result
    return structure(result, tool, text) if schema.get("type") == "string" else replace(result, is_error=True)


def is_object_schema(schema: dict[str, Any]) -> bool:
    return schema.get("type") == "object"


RESULT: Final = "result"  # the member under which a result that is no object stands
DEFINITIONS: Final = "$defs"


class ListToolsResult(McpMessage, frozen=True):
    """Some of a server's tools, and where the others are."""

    tools: tuple[McpTool, ...]
    next_cursor: str | None = None


class CallToolParams(McpMessage, frozen=True):
    """Asks for one run of a tool."""

    name: str
    arguments: dict[str, Any] | None = None


class ToolResult(McpMessage, frozen=True):
    """What came of a tool. Where `is_error` is set it has failed, and the content says how, for a model to read."""

    content: tuple[Content, ...] = field(default_factory=empty_tuple)
    structured_content: Any = None
    is_error: bool | None = None

    @property
    def text(self) -> str:
        """What a model that takes only text reads of it."""
        return join_text(self.content)


class ToolsChanged(McpMessage, frozen=True):
    """The server has other tools now."""


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
