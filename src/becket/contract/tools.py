"""Tools: the declaration, the call, and the text of a result for a model."""

# Annotations are evaluated here, for the reason given in `jsonrpc.messages`.

from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct

from becket._deprecated import keep_renamed
from becket.contract.json_narrowing import is_object
from becket.methods.descriptors import Method

__all__ = ["TOOL_CALL", "Tool", "ToolCall", "format_tool_result"]

TOOLS_PERMISSION: Final = "tools.register"


class Tool(Struct, frozen=True, omit_defaults=True):
    """A tool that an extension offers. `input_schema` is the JSON Schema of its input, an object.

    A schema that is not an object is decoded all the same: the handshake check rejects it. `read_only` is the
    author's statement that the tool changes nothing outside its process: a hint, not a permission. `output_schema`
    is the JSON Schema of its result, or of the structured content of an MCP tool; None where it is unknown."""

    name: str
    description: str
    input_schema: Any
    read_only: bool = False
    output_schema: Any = None


class ToolCall(Struct, frozen=True):
    """Runs a tool once, by the name under which its extension declared it."""

    name: str
    input: dict[str, Any]


TOOL_CALL: Final[Method[ToolCall, Any]] = Method(
    "tool.call",
    ToolCall,
    Any,
    timeout=120.0,
    direction="to-extension",
    summary="Runs a tool of the extension.",
)


def format_tool_result(result: object) -> str:
    """Returns the text for a model: the text itself, that of a `content` member, or the result as JSON."""
    if isinstance(result, str):
        return result
    if is_object(result) and isinstance(content := result.get("content"), str):
        return content
    return msgspec.json.encode(result).decode()


if not TYPE_CHECKING:  # for a type checker, a module with this function has every name
    __getattr__ = keep_renamed(__name__, {"tool_text": "format_tool_result"})
