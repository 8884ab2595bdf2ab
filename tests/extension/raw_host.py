"""A host for the tests of this folder: a raw peer that calls an extension in this program, on either runtime."""

from __future__ import annotations

import socket
from collections.abc import AsyncGenerator, Sequence
from contextlib import ExitStack, asynccontextmanager
from typing import Any

import anyio

from becket import ExtensionServer, Peer
from becket.contract.handshake import FEATURES, INITIALIZE, Initialize, Initialized
from becket.contract.tools import TOOL_CALL, ToolCall
from becket.peer.transport.fd import FdTransport
from becket.testing import memory_transports

RUNTIMES = ["loop", "blocking"]
"""Where an extension whose methods are all plain can run."""


def build_initialize(features: Sequence[str] = FEATURES, **changes: Any) -> Initialize:
    """Returns the first request of a host."""
    output: dict[str, Any] = {"plugin_id": "notes", "plugin_root": "/extensions/notes", "config": {"endpoint": "here"}}
    return Initialize(extension_protocol_version=1, **{**output, **changes}, features=tuple(features))


@asynccontextmanager
async def linked(extension: ExtensionServer, runtime: str = "loop") -> AsyncGenerator[Peer, None]:
    """Yields a host that has sent nothing yet; then closes the link."""
    with anyio.fail_after(60), ExitStack() as stack:
        if runtime == "loop":
            ours, theirs = memory_transports()
            async with Peer.over(ours, dialect="native") as host, extension.over(theirs):
                host.limit_features(())
                yield host
        else:
            one, other = socket.socketpair()
            stack.callback(one.close)
            stack.callback(other.close)
            peer = stack.enter_context(extension.blocking_over(FdTransport.from_socket(other)))
            peer.listen()
            async with Peer.over(FdTransport.from_socket(one), dialect="native") as host:
                host.limit_features(())
                yield host


async def initialize(peer: Peer, features: Sequence[str] = FEATURES, **changes: Any) -> Initialized:
    """Does the handshake and returns the response of the extension."""
    response = await peer.call(INITIALIZE, build_initialize(features, **changes))
    peer.limit_features(response.features)
    return response


@asynccontextmanager
async def hosted(
    extension: ExtensionServer, runtime: str = "loop", *, features: Sequence[str] = FEATURES, **changes: Any
) -> AsyncGenerator[Peer, None]:
    """Yields a host after the handshake."""
    async with linked(extension, runtime) as host:
        await initialize(host, features, **changes)
        yield host


async def use_tool(host: Peer, name: str, **input: Any) -> Any:
    """Calls a tool of the extension and returns its result."""
    return await host.call(TOOL_CALL, ToolCall(name, input))
