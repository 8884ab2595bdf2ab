"""Serves peers on TCP and unix sockets (serve_tcp, serve_unix)."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Callable
from math import inf
from types import TracebackType
from typing import TYPE_CHECKING, Any

from becket._loggers import peer_logger
from becket.dialects import PLAIN, Dialect, find_dialect
from becket.framing.framing import FramingFactory
from becket.limits import Limits
from becket.methods.error_mapping import log_internal_error
from becket.methods.registry import Registry
from becket.peer.loops.async_loops import current_loop
from becket.peer.peer import Peer
from becket.peer.transport.fd import FdTransport

if TYPE_CHECKING:
    from becket.peer.protocols import Loop

__all__ = ["PeerServer", "serve_tcp", "serve_unix"]

BACKLOG = 1024  # a TCP client beyond it waits a second before it tries again
ACCEPT_PAUSE = 0.1  # seconds, after a connection could not be accepted
PeerSetup = Registry | Callable[[Peer], object]
"""The handlers of a new peer: a registry, or a function that gets the peer before its first byte is read."""


class PeerServer:
    """Accepts connections while its block runs; each becomes a `Peer`. Leaving the block closes them all.

    At most `limits.connections` are open at once. Each must send its first message within `limits.first_message`
    seconds, and is closed after `limits.silence` seconds without another one."""

    def __init__(
        self,
        listen: Callable[[], socket.socket],
        setup: PeerSetup,
        *,
        dialect: Dialect | str,
        framing: FramingFactory | None,
        limits: Limits | None,
        path: str | None = None,
    ) -> None:
        self.peers: set[Peer] = set()
        self.path = path
        self._listen = listen
        self._setup = setup
        # Resolved now: an unknown name is the server's mistake, not the first client's.
        resolved = find_dialect(dialect)
        self._limits = limits or resolved.limits
        self._options: dict[str, Any] = {"dialect": resolved, "framing": framing, "limits": self._limits}
        self._is_full = False
        self._accepted: set[FdTransport] = set()  # accepted, and without a peer yet
        self._is_closing = False
        self._file: tuple[int, int] | None = None
        self._socket: socket.socket
        self._loop: Loop

    @property
    def port(self) -> int:
        """The port that is listened on."""
        port: int = self._socket.getsockname()[1]
        return port

    async def __aenter__(self) -> PeerServer:
        self._loop = await current_loop()
        try:
            self._socket = self._listen()
        except BaseException:
            self._loop.close()
            raise
        if self.path is not None:
            self._file = file_identity(self.path)
        self._socket.setblocking(False)
        self._loop.add_reader(self._socket.fileno(), self._accept)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_closing = True
        self._loop.remove_reader(self._socket.fileno())
        self._loop.notify_closing(self._socket.fileno())
        self._socket.close()
        if self.path is not None and file_identity(self.path) == self._file:  # another server may have taken the path
            remove_socket(self.path)
        peers = list(self.peers)
        for peer in peers:  # all at once: each may have something left to send
            self._loop.spawn(peer.aclose())
        cancelled: BaseException | None = None
        for peer in peers:
            try:
                await peer.aclose()
            except BaseException as interruption:
                cancelled = interruption
        for transport in self._accepted:
            transport.close()
        self._loop.close()
        if cancelled is not None:
            raise cancelled

    def _accept(self) -> None:
        try:
            sock, address = self._socket.accept()
        except (BlockingIOError, ConnectionError):
            return
        except OSError as error:  # no descriptors left; the socket stays ready, and trying again at once would fail
            log_internal_error(error)
            self._loop.remove_reader(self._socket.fileno())
            self._loop.call_later(ACCEPT_PAUSE, self._resume_accepting)
            return
        if len(self.peers) + len(self._accepted) >= self._limits.connections:
            sock.close()
            self._note_full()
            return
        self._is_full = False
        if sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        transport = FdTransport.from_socket(sock)
        self._accepted.add(transport)
        self._loop.spawn(self._serve_connection(transport, str(address or self.path)))

    def _note_full(self) -> None:
        """Logs that connections are refused: once until one is accepted again."""
        if not self._is_full:
            self._is_full = True
            peer_logger().warning(
                "%s: connections are refused: %d are open, the limit is `Limits.connections`",
                self.path or f"port {self.port}",
                self._limits.connections,
            )

    def _resume_accepting(self) -> None:
        if not self._is_closing:
            self._loop.add_reader(self._socket.fileno(), self._accept)

    async def _serve_connection(self, transport: FdTransport, name: str) -> None:
        loop = await current_loop()
        self._accepted.discard(transport)
        if self._is_closing:
            transport.close()
            loop.close()
            return
        try:
            methods = self._setup if isinstance(self._setup, Registry) else None
            peer = Peer(loop, transport, methods=methods, name=name, **self._options)
        except Exception as error:
            log_internal_error(error)
            return
        self.peers.add(peer)
        try:
            if not isinstance(self._setup, Registry):
                self._setup(peer)
            await self._attend(peer)
        except Exception as error:
            log_internal_error(error)
            await peer.aclose()
        finally:
            self.peers.discard(peer)

    async def _attend(self, peer: Peer) -> None:
        """Waits for the end of a connection, and closes one whose client is silent for too long."""
        import anyio

        limits = self._limits
        connected_at = anyio.current_time()
        while not peer.is_closed:
            now = anyio.current_time()
            last_message_at = now if peer.in_flight else max(peer.last_received_at, connected_at)
            silent_until = last_message_at + (limits.silence or inf)
            first_until = inf if peer.received else connected_at + (limits.first_message or inf)
            if now >= first_until:
                await self._dismiss(peer, f"no message came within {limits.first_message:g} s (`first_message`)")
            elif now >= silent_until:
                await self._dismiss(peer, f"no message came for {limits.silence:g} s (`silence`)")
            else:
                with anyio.move_on_at(min(first_until, silent_until)):
                    await peer.wait_closed()

    async def _dismiss(self, peer: Peer, because: str) -> None:
        peer_logger().info("%s: closed: %s", peer.name, because)
        await peer.aclose(because)


def serve_tcp(
    setup: PeerSetup,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    dialect: Dialect | str = PLAIN,
    framing: FramingFactory | None = None,
    limits: Limits | None = None,
) -> PeerServer:
    """Serves peers on a TCP port (a free one by default): `async with serve_tcp(methods) as server: server.port`."""

    def listen() -> socket.socket:
        return socket.create_server((host, port), backlog=BACKLOG)

    return PeerServer(listen, setup, dialect=dialect, framing=framing, limits=limits)


def serve_unix(
    setup: PeerSetup,
    path: str | os.PathLike[str],
    *,
    dialect: Dialect | str = PLAIN,
    framing: FramingFactory | None = None,
    limits: Limits | None = None,
) -> PeerServer:
    """Serves peers on a unix socket that only this user may open. A stale socket is replaced."""
    where = os.fspath(path)

    def listen() -> socket.socket:
        remove_stale_socket(where)
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        before = os.umask(0o177)
        try:
            sock.bind(where)
            sock.listen(BACKLOG)
        except BaseException:
            sock.close()
            raise
        finally:
            os.umask(before)
        return sock

    return PeerServer(listen, setup, dialect=dialect, framing=framing, limits=limits, path=where)


def remove_stale_socket(path: str) -> None:
    """Removes a socket whose server is gone; binding then fails if a server still listens there."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            remove_socket(path)
        except OSError:
            return


def file_identity(path: str) -> tuple[int, int] | None:
    """Returns what identifies a file, even if another one gets its name later."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def remove_socket(path: str) -> None:
    try:
        if stat.S_ISSOCK(os.stat(path).st_mode):
            os.unlink(path)
    except FileNotFoundError:
        pass
