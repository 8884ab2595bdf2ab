"""Runs servers written with pygls on stdio, a transport, TCP or unix sockets.

`pygls_bridge` connects a server to a peer. pygls needs asyncio, and a server object can serve one client only.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from signal import SIGINT, SIGTERM
from threading import Timer
from typing import TYPE_CHECKING, Any, NoReturn

from becket.adapters.lsp.dialect import LSP, LSP_LIMITS
from becket.adapters.lsp.pygls_bridge import EXIT_NOT_SHUT_DOWN, EXIT_SHUT_DOWN, STOP_GRACE, PyglsBridge
from becket.errors import LocalProtocolError, NotSupported
from becket.limits import Limits
from becket.peer.peer import Peer, PeerConnector
from becket.peer.transport import server as sockets

if TYPE_CHECKING:
    from pygls.lsp.server import LanguageServer

    from becket.peer.protocols import ByteStream, Transport

__all__ = ["EXIT_NOT_SHUT_DOWN", "EXIT_SHUT_DOWN", "run", "serve", "serve_tcp", "serve_unix"]

EXIT_USAGE = 2  # started in a terminal
EXIT_STOP_TIMEOUT = 4  # a function in a thread did not return in time
STDIN = 0


def run(server: LanguageServer, *, limits: Limits = LSP_LIMITS) -> NoReturn:
    """Serves the client that started this program over stdin and stdout, then exits.

    Replaces `server.start_io()`. Prints go to stderr. It ends on `exit`, at the end of stdin, when the process that
    `initialize` names as the client exits, and on SIGTERM or SIGINT. The exit code is 0 after `shutdown`, else 1.
    """
    if sys.stdin is not None and os.isatty(STDIN):
        print(f"{server.name} {server.version} is a language server: an editor starts it.", file=sys.stderr)
        raise SystemExit(EXIT_USAGE)

    async def serve_stdio() -> int:
        async with connect(None, limits) as peer:
            bridge = PyglsBridge(server, peer)
            for number in (SIGTERM, SIGINT):
                asyncio.get_running_loop().add_signal_handler(number, bridge.close_soon)
            await peer.wait_closed()
        start_exit_watchdog()
        await bridge.aclose()
        return bridge.exit_code

    check_unused(server)
    with asyncio.Runner() as runner:
        code = runner.run(serve_stdio())
    raise SystemExit(code)


async def serve(
    server: LanguageServer, transport: Transport | ByteStream | None = None, *, limits: Limits = LSP_LIMITS
) -> int:
    """Serves one client over a transport or a byte stream, or over stdin and stdout, and returns the exit code.

    Cancelling it closes the connection.

    Raises:
        NotSupported: the event loop is not asyncio.
        LocalProtocolError: the server has, or had, a client.
    """
    check_asyncio()
    check_unused(server)
    async with connect(transport, limits) as peer:
        bridge = PyglsBridge(server, peer)
        try:
            await peer.wait_closed()
        finally:
            await peer.aclose()
            await bridge.aclose()
    return bridge.exit_code


def connect(transport: Transport | ByteStream | None, limits: Limits) -> PeerConnector:
    if transport is None:
        return Peer.connect_stdio(name="client", dialect=LSP, limits=limits)
    return Peer.over(transport, name="client", dialect=LSP, limits=limits)


def serve_tcp(
    build: Callable[[], LanguageServer], host: str = "127.0.0.1", port: int = 0, *, limits: Limits = LSP_LIMITS
) -> PyglsSocketServer:
    """Serves clients on a TCP port, each with its own server: `async with serve_tcp(build) as there: there.port`.

    Raises:
        NotSupported: when entered, if the event loop is not asyncio.
    """
    return PyglsSocketServer(build, lambda setup: sockets.serve_tcp(setup, host, port, dialect=LSP, limits=limits))


def serve_unix(
    build: Callable[[], LanguageServer], path: str | os.PathLike[str], *, limits: Limits = LSP_LIMITS
) -> PyglsSocketServer:
    """Serves clients on a unix socket, each with its own server; otherwise like `serve_tcp`."""
    return PyglsSocketServer(build, lambda setup: sockets.serve_unix(setup, path, dialect=LSP, limits=limits))


class PyglsSocketServer:
    """Serves clients during its block. Leaving it closes their connections and stops their servers."""

    def __init__(
        self, build: Callable[[], LanguageServer], listen: Callable[[Callable[[Peer], None]], sockets.PeerServer]
    ) -> None:
        self._build = build
        self._sockets = listen(self._on_connected)
        self._connections: set[asyncio.Task[None]] = set()

    @property
    def port(self) -> int:
        """The TCP port."""
        return self._sockets.port

    async def __aenter__(self) -> PyglsSocketServer:
        check_asyncio()
        await self._sockets.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        try:
            await self._sockets.__aexit__(*error)
        finally:
            await asyncio.gather(*self._connections)

    def _on_connected(self, peer: Peer) -> None:
        server = self._build()
        check_unused(server)
        task = asyncio.ensure_future(close_after_link(PyglsBridge(server, peer), peer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)


async def close_after_link(bridge: PyglsBridge, peer: Peer) -> None:
    await peer.wait_closed()
    await bridge.aclose()


def check_asyncio() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        because = "pygls needs asyncio, and this program runs on another loop"
        raise NotSupported("serving a language server of pygls", because) from None


def check_unused(server: LanguageServer) -> None:
    if server.protocol.writer is not None:
        raise LocalProtocolError(f"{server.name} has, or had, a client: make another server for the next")


def start_exit_watchdog() -> None:
    """Ends this program even if functions in threads do not return: Python would wait for them forever."""
    timer = Timer(STOP_GRACE, lambda: os._exit(EXIT_STOP_TIMEOUT))
    timer.daemon = True
    timer.start()
