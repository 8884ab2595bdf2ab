"""MCP initialize and ping messages, protocol versions and capabilities."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct, field

from becket.adapters.mcp.messages.base import EmptyMessage, Icon, McpMessage
from becket.methods.descriptors import Method, Notification

__all__ = [
    "INITIALIZE",
    "INITIALIZED",
    "LATEST_VERSION",
    "PING",
    "PROTOCOL_VERSIONS",
    "ClientCapabilities",
    "ElicitationCapability",
    "Implementation",
    "ListCapability",
    "McpInitializeParams",
    "McpInitializeResult",
    "ResourcesCapability",
    "SamplingCapability",
    "ServerCapabilities",
    "choose_version",
]

PROTOCOL_VERSIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Protocol versions that begin with `initialize`, oldest first; all are supported."""

LATEST_VERSION: Final = PROTOCOL_VERSIONS[-1]


def choose_version(requested: str) -> str:
    """Returns the version that a server chooses: the requested one if it is supported, else its newest."""
    return requested if requested in PROTOCOL_VERSIONS else LATEST_VERSION


class Implementation(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Name and version of a program."""

    name: str
    version: str = field(default_factory=str)
    title: str | None = None
    description: str | None = None
    website_url: str | None = None
    icons: tuple[Icon, ...] | None = None


class ListCapability(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A list is available; with `list_changed`, changes are notified."""

    list_changed: bool | None = None


class ResourcesCapability(ListCapability, frozen=True):
    """Resources are available; with `subscribe`, changes of a resource are notified."""

    subscribe: bool | None = None


class SamplingCapability(Struct, frozen=True, omit_defaults=True):
    """A server may sample; with `tools`, also with tools."""

    context: dict[str, Any] | None = None
    tools: dict[str, Any] | None = None


class ElicitationCapability(Struct, frozen=True, omit_defaults=True):
    """A server may prompt the user with a form or a URL; with a form if neither is set."""

    form: dict[str, Any] | None = None
    url: dict[str, Any] | None = None


class ClientCapabilities(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Features of a client; None: not supported."""

    roots: ListCapability | None = None
    sampling: SamplingCapability | None = None
    elicitation: ElicitationCapability | None = None
    experimental: dict[str, Any] | None = None


class ServerCapabilities(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Features of a server; None: not supported."""

    tools: ListCapability | None = None
    resources: ResourcesCapability | None = None
    prompts: ListCapability | None = None
    completions: dict[str, Any] | None = None
    logging: dict[str, Any] | None = None
    experimental: dict[str, Any] | None = None


class McpInitializeParams(McpMessage, frozen=True):
    """Params of `initialize`."""

    protocol_version: str
    capabilities: ClientCapabilities = field(default_factory=ClientCapabilities)
    client_info: Implementation = field(default_factory=lambda: Implementation(""))


class McpInitializeResult(McpMessage, frozen=True):
    """Result of `initialize`: the negotiated version and the server's capabilities.

    `instructions` are for models that are to use the server."""

    protocol_version: str
    capabilities: ServerCapabilities = field(default_factory=ServerCapabilities)
    server_info: Implementation = field(default_factory=lambda: Implementation(""))
    instructions: str | None = None


INITIALIZE: Final = Method(
    "initialize",
    McpInitializeParams,
    McpInitializeResult,
    direction="to-extension",
    summary="Begins a session with a server.",
)
INITIALIZED: Final = Notification(
    "notifications/initialized", None, direction="to-extension", summary="The client is ready, too."
)
PING: Final[Method[EmptyMessage | None, Any]] = Method(
    "ping", EmptyMessage | None, Any, timeout=5.0, summary="Checks that the other peer responds."
)
