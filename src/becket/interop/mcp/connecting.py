"""How a client of MCP comes to be: its options, the first exchange, and what the server tells from then on."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypedDict

from msgspec import Raw

from becket.dialects.mcp import MCP
from becket.dialects.mcp.asking import ELICITATION_COMPLETE, ElicitationCompleted
from becket.dialects.mcp.greeting import introduce
from becket.dialects.mcp.lifecycle import Implementation, Initialized
from becket.dialects.mcp.notices import LOG_MESSAGE, LogMessage
from becket.dialects.mcp.prompts import PROMPTS_CHANGED, PromptsChanged
from becket.dialects.mcp.resources import RESOURCE_UPDATED, RESOURCES_CHANGED, ResourcesChanged, ResourceUpdated
from becket.dialects.mcp.tools import TOOLS_CHANGED, ToolsChanged
from becket.dialects.phrases import Tale
from becket.errors import HandshakeFailed, RemoteError
from becket.interop.mcp.duties import AskModel, AskPerson, Duties, RootLike
from becket.limits import Limits
from becket.methods.descriptors import Notification
from becket.methods.registry import Registry
from becket.peer.peer import Connecting, Peer

if TYPE_CHECKING:
    from becket.interop.mcp.client import McpClient

__all__ = ["TOLD", "ClientOptions", "ConnectingClient"]

TOLD: Final[Mapping[type[Any], Notification[Any]]] = {
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
    sample: AskModel | None
    elicit: AskPerson | None
    samples_tools: bool
    elicits_urls: bool
    info: Implementation
    limits: Limits
    handshake: float


class ConnectingClient:
    """A client that is about to be: `async with` it, or `await` it and close it yourself."""

    def __init__(
        self, kind: type[McpClient], connect: Callable[[Registry, Limits], Connecting], options: ClientOptions
    ) -> None:
        self._kind = kind
        self._connect = connect
        self._options = options
        self._client: McpClient | None = None

    def __await__(self) -> Generator[Any, Any, McpClient]:
        return self._open().__await__()

    async def __aenter__(self) -> McpClient:
        self._client = await self._open()
        return self._client

    async def __aexit__(self, *_: object) -> None:
        if self._client is not None:
            await self._client.aclose()

    async def _open(self) -> McpClient:
        options = self._options
        duties = Duties(
            roots=options.get("roots"),
            sample=options.get("sample"),
            elicit=options.get("elicit"),
            samples_tools=options.get("samples_tools", False),
            elicits_urls=options.get("elicits_urls", False),
        )
        early = EarlyEvents()
        peer = await self._connect(
            duties.methods().including(early.methods()),
            options.get("limits") or MCP.limits,
        )
        try:
            server = await shake_hands(peer, duties, options)
        except BaseException:
            await peer.aclose()
            raise
        client = self._kind(peer, duties, server)
        early.client = client
        return client


class EarlyEvents:
    """Takes what a server tells. What comes before the handshake is over has nobody to hear it."""

    def __init__(self) -> None:
        self.client: McpClient | None = None

    def methods(self) -> Registry:
        methods = Registry()
        for kind, notification in TOLD.items():
            methods.on(notification)(self._taker(kind))
        return methods

    def _taker(self, kind: type[Any]) -> Callable[[Any], Awaitable[None]]:
        async def take(params: Any) -> None:
            if self.client is not None:
                await self.client.hear(kind() if params is None else params)

        return take


def ourselves() -> Implementation:
    own = sys.modules["becket"]  # it is there; importing it from here would be in a circle
    return Implementation(own.__name__, own.__version__)


async def shake_hands(peer: Peer, duties: Duties, options: ClientOptions) -> Initialized:
    """Drives the first exchange and returns the server's answer."""
    steps = introduce(peer.name, options.get("info") or ourselves(), duties.capabilities())
    timeout = options.get("handshake", MCP.habits.host_limits["handshake"])
    answer: Any = None  # what a generator is begun with
    try:
        step = next(steps)
        while True:
            try:
                if isinstance(step, Tale):
                    await peer.notify(step.method, step.params)
                    answer = None
                else:
                    answer = await peer.call(step.method.name, step.params, returns=Raw, timeout=timeout)
            except RemoteError as error:
                step = steps.throw(error)
            else:
                step = steps.send(answer)
    except StopIteration as stop:
        server: Initialized = stop.value
        return server
    except RemoteError as error:
        raise HandshakeFailed(peer.name, f"it refused: {error.message} ({error.code})") from error
