"""Serving peers on TCP and unix sockets, many at once."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Callable
from types import TracebackType
from typing import Any

from becket.dialects import PLAIN, Dialect
from becket.limits import DEFAULT_LIMITS, Limits
from becket.methods.registry import Registry
from becket.peer.loops import Loop, current_loop, unexpected
from becket.peer.peer import Peer
from becket.peer.transport import FdTransport
from becket.wire.framing import FramingFactory

__all__ = ["Server", "serve_tcp", "serve_unix"]

BACKLOG = 128
Setup = Registry | Callable[[Peer], object]
"""What a new peer serves: a registry, or a function that is handed the peer before its first byte is read."""


class Server:
    """Accepts connections while its block runs; each becomes a `Peer`. Leaving the block closes them all."""

    def __init__(
        self,
        listen: Callable[[], socket.socket],
        setup: Setup,
        *,
        dialect: Dialect | str,
        framing: FramingFactory | None,
        limits: Limits,
        path: str | None = None,
    ) -> None:
        self.peers: set[Peer] = set()
        self.path = path
        self._listen = listen
        self._setup = setup
        self._options: dict[str, Any] = {"dialect": dialect, "framing": framing, "limits": limits}
        self._socket: socket.socket | None = None
        self._loop: Loop | None = None

    @property
    def port(self) -> int:
        """The port that is listened on."""
        assert self._socket is not None
        port: int = self._socket.getsockname()[1]
        return port

    async def __aenter__(self) -> Server:
        self._loop = await current_loop()
        self._socket = self._listen()
        self._socket.setblocking(False)
        self._loop.add_reader(self._socket.fileno(), self._accept)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._socket is not None
        assert self._loop is not None
        self._loop.remove_reader(self._socket.fileno())
        self._loop.closing(self._socket.fileno())
        self._socket.close()
        if self.path is not None:
            remove_socket(self.path)
        for peer in list(self.peers):
            await peer.aclose()
        self._loop.end()

    def _accept(self) -> None:
        assert self._socket is not None
        assert self._loop is not None
        try:
            sock, address = self._socket.accept()
        except (BlockingIOError, ConnectionError):
            return
        except OSError as error:  # no descriptors left: the next turn tries again
            unexpected(error)
            return
        if sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._loop.spawn(self._open(FdTransport.of_socket(sock), str(address or self.path)))

    async def _open(self, transport: FdTransport, name: str) -> None:
        methods = self._setup if isinstance(self._setup, Registry) else None
        try:
            peer = Peer(await current_loop(), transport, methods=methods, name=name, **self._options)
            self.peers.add(peer)
            if not isinstance(self._setup, Registry):
                self._setup(peer)
            await peer.wait_closed()
            self.peers.discard(peer)
        except Exception as error:
            unexpected(error)
            transport.close()


def serve_tcp(
    setup: Setup,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    dialect: Dialect | str = PLAIN,
    framing: FramingFactory | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Server:
    """Serves peers on a TCP port (a free one by default): `async with serve_tcp(methods) as server: server.port`."""

    def listen() -> socket.socket:
        return socket.create_server((host, port), backlog=BACKLOG)

    return Server(listen, setup, dialect=dialect, framing=framing, limits=limits)


def serve_unix(
    setup: Setup,
    path: str | os.PathLike[str],
    *,
    dialect: Dialect | str = PLAIN,
    framing: FramingFactory | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Server:
    """Serves peers on a unix socket that only this user may open. A socket that nobody listens on is replaced."""
    where = os.fspath(path)

    def listen() -> socket.socket:
        remove_stale(where)
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        before = os.umask(0o177)
        try:
            sock.bind(where)
        finally:
            os.umask(before)
        sock.listen(BACKLOG)
        return sock

    return Server(listen, setup, dialect=dialect, framing=framing, limits=limits, path=where)


def remove_stale(path: str) -> None:
    """Removes a socket whose server is gone; a living one keeps its place, and binding will say so."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            remove_socket(path)
        except OSError:
            return


def remove_socket(path: str) -> None:
    try:
        if stat.S_ISSOCK(os.stat(path).st_mode):
            os.unlink(path)
    except FileNotFoundError:
        pass
