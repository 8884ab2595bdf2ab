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
from becket.dialects.link_state import WireNotification
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
"""Notifications that a server sends outside of calls, by class."""


class ClientOptions(TypedDict, total=False):
    """Keyword arguments of all `connect_*` methods.

    `roots` are folders of the client. `sample` calls a model for the server, `elicit` prompts the user; each capability
    is announced only with its callback. `info` names the client's program. `handshake` is a timeout in seconds."""

    roots: Sequence[RootLike] | None
    sample: SamplingCallback | None
    elicit: ElicitationCallback | None
    samples_tools: bool
    elicits_urls: bool
    info: Implementation
    limits: Limits
    handshake: float


class ConnectedClient(Protocol):
    """The methods of a client that a connector calls."""

    async def aclose(self) -> None: ...
    async def dispatch_event(self, event: Any) -> None: ...


C = TypeVar("C", bound=ConnectedClient)


class McpConnector(Generic[C]):
    """Opens a client: either `async with` it, or `await` it and close the client yourself."""

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
        callbacks = ClientCallbacks(
            roots=options.get("roots"),
            sample=options.get("sample"),
            elicit=options.get("elicit"),
            samples_tools=options.get("samples_tools", False),
            elicits_urls=options.get("elicits_urls", False),
        )
        early = ServerEventForwarder()
        peer = await self._connect(
            callbacks.methods().including(early.methods()),
            options.get("limits") or MCP.limits,
        )
        try:
            server = await perform_handshake(peer, callbacks, options)
        except BaseException:
            await peer.aclose()
            raise
        client = self._kind(peer, callbacks, server)
        early.client = client
        return client


class ServerEventForwarder:
    """Forwards a server's notifications to the client; drops those that arrive before the handshake is done."""

    def __init__(self) -> None:
        self.client: ConnectedClient | None = None

    def methods(self) -> Registry:
        methods = Registry()
        for kind, notification in SERVER_NOTIFICATIONS.items():
            methods.on(notification)(self._build_handler(kind))
        return methods

    def _build_handler(self, kind: type[Any]) -> Callable[[Any], Awaitable[None]]:
        async def forward(params: Any) -> None:
            if self.client is not None:
                await self.client.dispatch_event(kind() if params is None else params)

        return forward


def own_implementation() -> Implementation:
    own = sys.modules["becket"]  # always loaded; importing it here would be circular
    return Implementation(own.__name__, own.__version__)


async def perform_handshake(peer: Peer, callbacks: ClientCallbacks, options: ClientOptions) -> McpInitializeResult:
    """Runs the client handshake and returns the server's result."""
    steps = initialize_server(peer.name, options.get("info") or own_implementation(), callbacks.capabilities())
    timeout = options.get("handshake", MCP.host_defaults.host_limits["handshake"])
    response: Any = None  # starts the generator
    try:
        step = next(steps)
        while True:
            try:
                if isinstance(step, WireNotification):
                    await peer.notify(step.method, step.params)
                    response = None
                else:
                    response = await peer.call(step.method.name, step.params, returns=Raw, timeout=timeout)
            except RemoteError as error:
                step = steps.throw(error)
            else:
                step = steps.send(response)
    except StopIteration as stop:
        server: McpInitializeResult = stop.value
        return server
    except RemoteError as error:
        raise HandshakeFailed(peer.name, f"it refused: {error.message} ({error.code})") from error
