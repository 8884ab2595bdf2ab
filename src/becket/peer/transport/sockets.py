"""Connects to TCP and unix sockets and returns transports."""

from __future__ import annotations

import os
import socket
from typing import Any

from becket.peer.transport.fd import FdTransport

__all__ = ["connect_tcp", "connect_unix"]

CONNECT_RETRY_DELAY = 0.005  # seconds, before connecting again to a unix socket whose queue was full


async def connect_tcp(host: str, port: int) -> FdTransport:
    """Connects to the first address of this name that accepts.

    Raises:
        OSError: none does.
    """
    import anyio

    failure: OSError | None = None
    for family, kind, protocol, _, address in await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        try:
            sock = await connect_socket(family, kind, protocol, address)
        except OSError as error:
            failure = error
        else:
            # Calls are small and wait for their responses: Nagle's algorithm would only add delay.
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return FdTransport.from_socket(sock)
    raise failure or OSError(f"no address for {host}")


async def connect_unix(path: str | os.PathLike[str]) -> FdTransport:
    """Connects to a listening unix socket.

    Raises:
        OSError: nothing listens there.
    """
    return FdTransport.from_socket(await connect_socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, os.fspath(path)))


async def connect_socket(family: int, kind: int, protocol: int, address: Any) -> socket.socket:
    import anyio

    sock = socket.socket(family, kind, protocol)
    try:
        sock.setblocking(False)
        while True:
            try:
                sock.connect(address)
            except BlockingIOError:
                if family == socket.AF_UNIX:  # many connect at once, and nothing reports when there is room
                    await anyio.sleep(CONNECT_RETRY_DELAY)
                    continue
                await anyio.wait_writable(sock)
                if code := sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                    raise OSError(code, os.strerror(code)) from None
            break
    except BaseException:
        sock.close()
        raise
    return sock
