"""A server's side of the first exchange, for an extension of becket's own kind, and what it lists of itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct

from becket.contract.handshake import PROTOCOL_VERSION, HostInfo
from becket.contract.handshake import Initialize as ContractInitialize
from becket.contract.handshake import Initialized as ContractInitialized
from becket.dialects.handshakes import Welcome
from becket.dialects.mcp.asking import ELICITATION_CREATE, ROOTS_LIST, SAMPLING_CREATE_MESSAGE
from becket.dialects.mcp.lifecycle import (
    INITIALIZE,
    PING,
    ClientCapabilities,
    Implementation,
    Initialize,
    Initialized,
    ListCapability,
    ResourcesCapability,
    ServerCapabilities,
    choose_version,
)
from becket.dialects.mcp.notices import LOGGING_SET_LEVEL, LoggingLevel, SetLevel
from becket.dialects.mcp.prompts import (
    COMPLETION_COMPLETE,
    PROMPTS_GET,
    PROMPTS_LIST,
    Prompt,
    PromptArgument,
    PromptsPage,
)
from becket.dialects.mcp.resources import RESOURCES_READ, RESOURCES_SUBSCRIBE
from becket.dialects.mcp.tools import TOOLS_LIST, Tool, ToolsPage, annotate, output_schema_of
from becket.dialects.mcp.words import Empty
from becket.dialects.phrases import Scene
from becket.errors import InvalidParams, NotSupported

__all__ = ["ARGUMENTS", "WELCOME", "Client", "check_call"]

W = TypeVar("W", bound=Struct)

ARGUMENTS: Final = "args"
"""The one argument of a command that is listed as a prompt: its words, as one would type them."""


class Client(Struct):
    """What a client has told of itself, and from which level on it wants to be told what is for the log."""

    version: str
    info: Implementation
    capabilities: ClientCapabilities
    level: LoggingLevel = LoggingLevel.DEBUG


# -- the first exchange


def read(given: Any, scene: Scene) -> ContractInitialize:
    params = convert(given, Initialize)
    scene.particulars = Client(choose_version(params.protocol_version), params.client_info, params.capabilities)
    return ContractInitialize(
        extension_protocol_version=PROTOCOL_VERSION,
        plugin_id=scene.extension,
        plugin_root=None,
        config={},
        host=HostInfo(params.client_info.name, params.client_info.version),
    )


def reply(initialized: ContractInitialized, scene: Scene) -> Initialized:
    client: Client = scene.particulars
    return Initialized(client.version, describe_offer(scene), Implementation(scene.extension, scene.version))


def describe_offer(scene: Scene) -> ServerCapabilities:
    """Returns what the extension offers: its tools and commands, and what it has methods of its own for."""
    own = scene.own
    has_prompts = bool(scene.commands) or PROMPTS_GET.name in own
    watches = True if RESOURCES_SUBSCRIBE.name in own else None
    return ServerCapabilities(
        tools=ListCapability() if scene.declared.tools else None,
        prompts=ListCapability() if has_prompts else None,
        resources=ResourcesCapability(subscribe=watches) if RESOURCES_READ.name in own else None,
        completions={} if COMPLETION_COMPLETE.name in own else None,
        logging={},
    )


# -- what it may request of its client

NEEDS: Final = {
    SAMPLING_CREATE_MESSAGE.name: "sampling",
    ELICITATION_CREATE.name: "elicitation",
    ROOTS_LIST.name: "roots",
}


def check_call(method: str, scene: Scene) -> None:
    """Raises NotSupported for a request that needs a capability which the client has not announced."""
    client, capability = scene.particulars, NEEDS.get(method)
    if capability is not None and isinstance(client, Client) and getattr(client.capabilities, capability) is None:
        raise NotSupported(f"`{method}`", f"the client has not announced `{capability}`")


# -- what it lists


def list_tools(params: Any, scene: Scene) -> ToolsPage:
    return ToolsPage(
        tuple(
            Tool(
                tool.name,
                tool.input_schema,
                description=tool.description,
                output_schema=output_schema_of(tool),
                annotations=annotate(tool),
            )
            for tool in scene.declared.tools
        )
    )


def list_prompts(params: Any, scene: Scene) -> PromptsPage:
    argument = PromptArgument(ARGUMENTS, "What follows the command, as one would type it.")
    return PromptsPage(tuple(Prompt(name, text or None, (argument,)) for name, text in scene.commands))


def ping(params: Any, scene: Scene) -> Empty:
    return Empty()


def set_level(params: Any, scene: Scene) -> Empty:
    client: Client = scene.particulars
    client.level = convert(params, SetLevel).level
    return Empty()


def convert(params: Any, kind: type[W]) -> W:
    try:
        return msgspec.convert(params, kind)
    except msgspec.ValidationError as error:
        from becket.typed.problems import find_problems

        raise InvalidParams(find_problems(params, kind)) from error


QUERIES: Final[Mapping[str, Any]] = {
    TOOLS_LIST.name: list_tools,
    PROMPTS_LIST.name: list_prompts,
    LOGGING_SET_LEVEL.name: set_level,
    PING.name: ping,
}

WELCOME: Final = Welcome(opening=INITIALIZE, read=read, reply=reply, queries=QUERIES, always=frozenset({PING.name}))
