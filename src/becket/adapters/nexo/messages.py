"""nexo methods and message types: initialize, tools, hooks and shutdown.

Most members are optional, and unknown ones are ignored, as in nexo. `mapping` and `hook_mapping` convert them to the
contract; pollers and admin methods have their own modules.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct, field

from becket.contract.hooks import HookKind
from becket.contract.tools import Tool
from becket.methods.descriptors import Method

__all__ = [
    "HOOK_METHODS",
    "INITIALIZE",
    "SHUTDOWN",
    "TOOLS_CALL",
    "TOOLS_LIST",
    "AfterMessage",
    "AfterToolCall",
    "BeforeMessage",
    "BeforeToolCall",
    "NexoHookResult",
    "NexoInitializeParams",
    "NexoInitializeResult",
    "NexoShutdownParams",
    "NexoTool",
    "NexoToolCallParams",
    "NexoToolList",
    "to_tools",
]

# -- the handshake


class NexoInitializeParams(Struct, frozen=True):
    """Params of `initialize`."""

    agent_version: str = ""
    extension_id: str = ""


class NexoTool(Struct, frozen=True):
    """A tool in the list of an extension."""

    name: str
    description: str = ""
    input_schema: Any = field(default_factory=dict[str, Any])


class NexoInitializeResult(Struct, frozen=True):
    """Result of `initialize`; all members are optional."""

    server_version: str | None = None
    tools: tuple[NexoTool, ...] = ()
    hooks: tuple[str, ...] = ()


INITIALIZE: Final = Method(
    "initialize",
    NexoInitializeParams,
    NexoInitializeResult,
    timeout=10.0,
    direction="to-extension",
    summary="Performs the handshake: the caller, and the tools and hooks of the extension.",
)

# -- tools


class NexoToolList(Struct, frozen=True):
    """The tools of an extension."""

    tools: tuple[NexoTool, ...] = ()


class NexoToolCallParams(Struct, frozen=True):
    """Params of `tools/call`."""

    name: str
    arguments: Any = None


TOOLS_LIST: Final[Method[dict[str, Any], NexoToolList | tuple[NexoTool, ...]]] = Method(
    "tools/list",
    dict[str, Any],
    NexoToolList | tuple[NexoTool, ...],
    direction="to-extension",
    summary="Returns the tools again; `tools_of` decodes either form of the response.",
)
TOOLS_CALL: Final[Method[NexoToolCallParams, Any]] = Method(
    "tools/call", NexoToolCallParams, Any, direction="to-extension", summary="Runs a tool of the extension."
)


def to_tools(listed: NexoToolList | tuple[NexoTool, ...]) -> tuple[Tool, ...]:
    """Returns the tools of a list as `Tool` objects."""
    tools = listed.tools if isinstance(listed, NexoToolList) else listed
    return tuple(Tool(tool.name, tool.description, tool.input_schema) for tool in tools)


# -- hooks


class BeforeMessage(Struct, frozen=True):
    """A message has come in and is about to be answered."""

    agent_id: str = ""
    session_id: str | None = None
    text: str = ""
    source: Any = None


class AfterMessage(Struct, frozen=True):
    """A message has been answered."""

    agent_id: str = ""
    session_id: str | None = None
    text_in: str = ""
    text_out: str = ""


class BeforeToolCall(Struct, frozen=True):
    """A tool is about to run."""

    agent_id: str = ""
    session_id: str | None = None
    tool_name: str = ""
    arguments: Any = None


class AfterToolCall(Struct, frozen=True):
    """A tool has run."""

    agent_id: str = ""
    session_id: str | None = None
    tool_name: str = ""
    duration_ms: int | float | None = None
    result: Any = None
    error: Any = None


class NexoHookResult(Struct, frozen=True, omit_defaults=True):
    """Result of a hook; null and an empty object continue."""

    abort: bool = False
    reason: str | None = None
    override: Any = None
    decision: str | None = None
    transformed_body: str | None = None
    do_not_reply_again: bool = False


def build_hook_method(name: str, event: type[Struct], summary: str) -> Method[Any, NexoHookResult | None]:
    return Method(f"hooks/{name}", event, NexoHookResult | None, direction="to-extension", summary=summary)


HOOK_METHODS: Final[Mapping[HookKind, Method[Any, NexoHookResult | None]]] = MappingProxyType(
    {
        HookKind.BEFORE_MESSAGE: build_hook_method(
            "before_message", BeforeMessage, "A message is about to be answered."
        ),
        HookKind.ON_MESSAGE_COMPLETE: build_hook_method("after_message", AfterMessage, "A message has been answered."),
        HookKind.BEFORE_TOOL_CALL: build_hook_method("before_tool_call", BeforeToolCall, "A tool is about to run."),
        HookKind.AFTER_TOOL_CALL: build_hook_method("after_tool_call", AfterToolCall, "A tool has run."),
    }
)
"""By the contract's kind; nexo has no other hooks."""

# -- shutdown


class NexoShutdownParams(Struct, frozen=True):
    """Reason of the shutdown, for the extension's log."""

    reason: str = ""


SHUTDOWN: Final[Method[NexoShutdownParams, Any]] = Method(
    "shutdown", NexoShutdownParams, Any, direction="to-extension", summary="Requests the extension to end."
)
