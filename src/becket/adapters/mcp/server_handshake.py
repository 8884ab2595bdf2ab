"""MCP server handshake of a becket extension, and its lists of tools and prompts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct

from becket.adapters.mcp.messages.base import EmptyMessage
from becket.adapters.mcp.messages.client_features import ELICITATION_CREATE, ROOTS_LIST, SAMPLING_CREATE_MESSAGE
from becket.adapters.mcp.messages.lifecycle import (
    INITIALIZE,
    PING,
    ClientCapabilities,
    Implementation,
    ListCapability,
    McpInitializeParams,
    McpInitializeResult,
    ResourcesCapability,
    ServerCapabilities,
    choose_version,
)
from becket.adapters.mcp.messages.notifications import LOGGING_SET_LEVEL, LoggingLevel, SetLevelParams
from becket.adapters.mcp.messages.prompts import (
    COMPLETION_COMPLETE,
    PROMPTS_GET,
    PROMPTS_LIST,
    ListPromptsResult,
    Prompt,
    PromptArgument,
)
from becket.adapters.mcp.messages.resources import RESOURCES_READ, RESOURCES_SUBSCRIBE
from becket.adapters.mcp.messages.tools import TOOLS_LIST, ListToolsResult, McpTool, annotate, output_schema_of
from becket.contract.handshake import (
    PROTOCOL_VERSION,
    HostInfo,
    Initialize as ContractInitialize,
    Initialized as ContractInitialized,
)
from becket.dialects.handshake import ServerHandshake
from becket.dialects.link_state import LinkState
from becket.errors import InvalidParams, NotSupported

__all__ = ["ARGS_ARGUMENT", "SERVER_HANDSHAKE", "McpClientInfo", "check_call"]

W = TypeVar("W", bound=Struct)

ARGS_ARGUMENT: Final = "args"
"""The only argument of a command listed as a prompt: its arguments as a command line."""


class McpClientInfo(Struct):
    """What is known of a client: its handshake and its minimum log level."""

    version: str
    info: Implementation
    capabilities: ClientCapabilities
    log_level: LoggingLevel = LoggingLevel.DEBUG


# -- handshake


def decode_initialize(wire_params: Any, state: LinkState) -> ContractInitialize:
    params = decode_params(wire_params, McpInitializeParams)
    state.extra = McpClientInfo(choose_version(params.protocol_version), params.client_info, params.capabilities)
    return ContractInitialize(
        extension_protocol_version=PROTOCOL_VERSION,
        plugin_id=state.extension,
        plugin_root=None,
        config={},
        host=HostInfo(params.client_info.name, params.client_info.version),
    )


def encode_initialize_result(initialized: ContractInitialized, state: LinkState) -> McpInitializeResult:
    client: McpClientInfo = state.extra
    return McpInitializeResult(
        client.version, build_server_capabilities(state), Implementation(state.extension, state.version)
    )


def build_server_capabilities(state: LinkState) -> ServerCapabilities:
    """Returns the extension's capabilities: tools, commands, and those of MCP methods that it handles itself."""
    own = state.own_methods
    has_prompts = bool(state.commands) or PROMPTS_GET.name in own
    watches = True if RESOURCES_SUBSCRIBE.name in own else None
    return ServerCapabilities(
        tools=ListCapability() if state.capabilities.tools else None,
        prompts=ListCapability() if has_prompts else None,
        resources=ResourcesCapability(subscribe=watches) if RESOURCES_READ.name in own else None,
        completions={} if COMPLETION_COMPLETE.name in own else None,
        logging={},
    )


# -- requests to the client

NEEDS: Final = {
    SAMPLING_CREATE_MESSAGE.name: "sampling",
    ELICITATION_CREATE.name: "elicitation",
    ROOTS_LIST.name: "roots",
}


def check_call(method: str, state: LinkState) -> None:
    """Raises NotSupported for a request that needs a capability which the client has not announced."""
    client, capability = state.extra, NEEDS.get(method)
    if (
        capability is not None
        and isinstance(client, McpClientInfo)
        and getattr(client.capabilities, capability) is None
    ):
        raise NotSupported(f"`{method}`", f"the client has not announced `{capability}`")


# -- lists


def build_tools_result(params: Any, state: LinkState) -> ListToolsResult:
    return ListToolsResult(
        tuple(
            McpTool(
                tool.name,
                tool.input_schema,
                description=tool.description,
                output_schema=output_schema_of(tool),
                annotations=annotate(tool),
            )
            for tool in state.capabilities.tools
        )
    )


def build_prompts_result(params: Any, state: LinkState) -> ListPromptsResult:
    argument = PromptArgument(ARGS_ARGUMENT, "What follows the command, as one would type it.")
    return ListPromptsResult(tuple(Prompt(name, text or None, (argument,)) for name, text in state.commands))


def handle_ping(params: Any, state: LinkState) -> EmptyMessage:
    return EmptyMessage()


def handle_set_level(params: Any, state: LinkState) -> EmptyMessage:
    client: McpClientInfo = state.extra
    client.log_level = decode_params(params, SetLevelParams).level
    return EmptyMessage()


def decode_params(params: Any, kind: type[W]) -> W:
    try:
        return msgspec.convert(params, kind)
    except msgspec.ValidationError as error:
        from becket.conversion.problems import find_problems

        raise InvalidParams(find_problems(params, kind)) from error


HANDLERS: Final[Mapping[str, Any]] = {
    TOOLS_LIST.name: build_tools_result,
    PROMPTS_LIST.name: build_prompts_result,
    LOGGING_SET_LEVEL.name: handle_set_level,
    PING.name: handle_ping,
}

SERVER_HANDSHAKE: Final = ServerHandshake(
    initialize_method=INITIALIZE,
    decode_params=decode_initialize,
    encode_result=encode_initialize_result,
    handlers=HANDLERS,
    allowed_before_initialize=frozenset({PING.name}),
)
