"""Connects an McpClient: options, client handshake and server notifications."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from typing import Any, Final, Generic, Protocol, TypedDict, TypeVar

from msgspec import Raw

from becket.adapters.mcp.client.callbacks import ClientCallbacks, ElicitationCallback, RootLike, SamplingCallback
from becket.adapters.mcp.client_handshake import initialize_server
from becket.adapters.mcp.dialect import MCP
from becket.adapters.mcp.messages.client_features import ELICITATION_COMPLETE, ElicitationCompleted
from becket.adapters.mcp.messages.lifecycle import Implementation, McpInitializeResult
from becket.adapters.mcp.messages.notifications import LOG_MESSAGE, LogMessage
from becket.adapters.mcp.messages.prompts import PROMPTS_CHANGED, PromptsChanged
from becket.adapters.mcp.messages.resources import (
    RESOURCE_UPDATED,
    RESOURCES_CHANGED,
    ResourcesChanged,
    ResourceUpdated,
)
from becket.adapters.mcp.messages.tools import TOOLS_CHANGED, ToolsChanged
from becket.dialects.mapping import WireNotification
from becket.errors import HandshakeFailed, RemoteError
from becket.limits import Limits
from becket.methods.descriptors import Notification
from becket.methods.registry import Registry
from becket.peer.peer import Peer, PeerConnector

__all__ = ["SERVER_NOTIFICATIONS", "ClientOptions", "McpConnector"]

SERVER_NOTIFICATIONS: Final[Mapping[type[Any], Notification[Any]]] = {
    ElicitationCompleted: ELICITATION_COMPLETE,
    LogMessage: LOG_MESSAGE,
    PromptsChanged: PROMPTS_CHANGED,
    ResourceUpdated: RESOURCE_UPDATED,
    ResourcesChanged: RESOURCES_CHANGED,
    ToolsChanged: TOOLS_CHANGED,
}
"""What a server tells outside of the calls that run, by its class."""


class ClientOptions(TypedDict, total=False):
    """Keyword arguments of a client, however it is connected.

    `roots` are the folders that it is about. `sample` asks a model for the server, `elicit` a person: the server is
    told that it may ask only where there is one. `info` says which program the client is. `handshake` is in seconds."""

    roots: Sequence[RootLike] | None
    sample: SamplingCallback | None
    elicit: ElicitationCallback | None
    samples_tools: bool
    elicits_urls: bool
    info: Implementation
    limits: Limits
    handshake: float


class ConnectedClient(Protocol):
    """What a connector needs of the client that it makes."""

    async def aclose(self) -> None: ...
    async def dispatch_event(self, event: Any) -> None: ...


C = TypeVar("C", bound=ConnectedClient)


class McpConnector(Generic[C]):
    """A client that is about to be: `async with` it, or `await` it and close it yourself."""

    def __init__(
        self,
        kind: Callable[[Peer, ClientCallbacks, McpInitializeResult], C],
        connect: Callable[[Registry, Limits], PeerConnector],
        options: ClientOptions,
    ) -> None:
        self._kind = kind
        self._connect = connect
        self._options = options
        self._client: C | None = None

    def __await__(self) -> Generator[Any, Any, C]:
        return self._open().__await__()

    async def __aenter__(self) -> C:
        self._client = await self._open()
        return self._client

    async def __aexit__(self, *_: object) -> None:
        if self._client is not None:
            await self._client.aclose()

    async def _open(self) -> C:
        options = self._options
        duties = ClientCallbacks(
            roots=options.get("roots"),
            sample=options.get("sample"),
            elicit=options.get("elicit"),
            samples_tools=options.get("samples_tools", False),
            elicits_urls=options.get("elicits_urls", False),
        )
        early = ServerEventForwarder()
        peer = await self._connect(
            duties.methods().including(early.methods()),
            options.get("limits") or MCP.limits,
        )
        try:
            server = await perform_handshake(peer, duties, options)
        except BaseException:
            await peer.aclose()
            raise
        client = self._kind(peer, duties, server)
        early.client = client
        return client


class ServerEventForwarder:
    """Takes what a server tells. What comes before the handshake is over has nobody to hear it."""

    def __init__(self) -> None:
        self.client: ConnectedClient | None = None

    def methods(self) -> Registry:
        methods = Registry()
        for kind, notification in SERVER_NOTIFICATIONS.items():
            methods.on(notification)(self._build_handler(kind))
        return methods

    def _build_handler(self, kind: type[Any]) -> Callable[[Any], Awaitable[None]]:
        async def take(params: Any) -> None:
            if self.client is not None:
                await self.client.dispatch_event(kind() if params is None else params)

        return take


def own_implementation() -> Implementation:
    own = sys.modules["becket"]  # it is there; importing it from here would be in a circle
    return Implementation(own.__name__, own.__version__)


async def perform_handshake(peer: Peer, duties: ClientCallbacks, options: ClientOptions) -> McpInitializeResult:
    """Drives the first exchange and returns the server's answer."""
    steps = initialize_server(peer.name, options.get("info") or own_implementation(), duties.capabilities())
    timeout = options.get("handshake", MCP.host_defaults.host_limits["handshake"])
    answer: Any = None  # what a generator is begun with
    try:
        step = next(steps)
        while True:
            try:
                if isinstance(step, WireNotification):
                    await peer.notify(step.method, step.params)
                    answer = None
                else:
                    answer = await peer.call(step.method.name, step.params, returns=Raw, timeout=timeout)
            except RemoteError as error:
                step = steps.throw(error)
            else:
                step = steps.send(answer)
    except StopIteration as stop:
        server: McpInitializeResult = stop.value
        return server
    except RemoteError as error:
        raise HandshakeFailed(peer.name, f"it refused: {error.message} ({error.code})") from error
