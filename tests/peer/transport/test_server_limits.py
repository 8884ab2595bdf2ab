"""The limits of a socket server: connections, and the time to the first message."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.peer.scripted import settled

from becket import DisconnectReason, Limits, Peer, Registry, serve_tcp, serve_unix
from becket.peer.transport.server import PeerServer

pytestmark = pytest.mark.loops

Serve = Callable[..., PeerServer]
Connect = Callable[..., AbstractAsyncContextManager[Peer]]
SHORT = 0.05  # seconds: waited for, never measured
LONG_ENOUGH = 2.0  # for a response in time, also on a busy machine


@pytest.fixture(params=["tcp", "unix"])
def family(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Serve, Connect]:
    """Returns how to serve and how to connect, over either kind of socket."""
    path = tmp_path / "socket"

    def serve(setup: Any, **limits: Any) -> PeerServer:
        options: dict[str, Any] = {"limits": Limits(**limits)}
        return serve_tcp(setup, **options) if request.param == "tcp" else serve_unix(setup, path, **options)

    def connect(server: PeerServer) -> AbstractAsyncContextManager[Peer]:
        return Peer.connect_tcp("127.0.0.1", server.port) if request.param == "tcp" else Peer.connect_unix(path)

    return serve, connect


def echo_methods() -> Registry:
    methods = Registry()
    methods.handle("echo")(lambda params: params)
    return methods


async def test_a_connection_beyond_the_limit_is_closed_at_once_and_the_open_ones_continue(
    family: tuple[Serve, Connect], caplog: pytest.LogCaptureFixture
) -> None:
    serve, connect = family
    caplog.set_level(logging.WARNING, "becket.peer")
    with anyio.fail_after(60):
        async with serve(echo_methods(), connections=2) as server, connect(server) as one, connect(server) as other:
            assert await one.call("echo", [1]) == [1]
            assert await other.call("echo", [2]) == [2]
            for _ in range(3):
                async with connect(server) as refused:
                    assert (await refused.wait_closed()).reason is not DisconnectReason.LOCAL_CLOSE
            assert len(server.peers) == 2
            assert await one.call("echo", [3]) == [3]

    assert ["connections" in record.getMessage() for record in caplog.records] == [True]


async def test_a_connection_that_ends_makes_room_for_the_next(family: tuple[Serve, Connect]) -> None:
    serve, connect = family
    with anyio.fail_after(60):
        async with serve(echo_methods(), connections=1) as server:
            for number in range(3):
                async with connect(server) as client:
                    assert await client.call("echo", [number]) == [number]
                while server.peers:
                    await settled()


@pytest.mark.parametrize("sent", [b"", b"Content-Length: 40\r\n\r\n{", b"Content-"])
async def test_a_client_without_a_whole_message_in_time_is_disconnected(
    family: tuple[Serve, Connect], sent: bytes
) -> None:
    serve, _ = family
    prepared: list[Peer] = []
    with anyio.fail_after(60):
        async with serve(prepared.append, first_message=SHORT) as server:
            with socket.socket(socket.AF_UNIX if server.path else socket.AF_INET) as silent:
                silent.connect(server.path or ("127.0.0.1", server.port))
                silent.sendall(sent)
                while not prepared:
                    await settled()
                lost = await prepared[0].wait_closed()
                while server.peers:
                    await settled()

    assert lost.reason is DisconnectReason.LOCAL_CLOSE
    assert "first_message" in lost.detail


async def test_a_client_that_has_sent_a_message_may_stay_idle(
    family: tuple[Serve, Connect],
) -> None:
    serve, connect = family
    with anyio.fail_after(60):
        async with serve(echo_methods(), first_message=LONG_ENOUGH) as server, connect(server) as client:
            assert await client.call("echo", [1]) == [1]
            async with connect(server) as silent:  # closed after the time that the first one has been silent for
                await silent.wait_closed()
            assert await client.call("echo", [2]) == [2]


async def test_a_first_message_may_be_the_response_to_a_call_of_the_server(family: tuple[Serve, Connect]) -> None:
    serve, connect = family

    with anyio.fail_after(60):
        async with serve(Registry(), first_message=LONG_ENOUGH) as server, connect(server) as client:
            client.handle("name")(lambda: "Ada")
            while not server.peers:
                await settled()
            assert await next(iter(server.peers)).call("name") == "Ada"
            async with connect(server) as silent:
                await silent.wait_closed()
            assert not client.is_closed


async def test_without_a_limit_on_the_first_message_a_client_may_only_receive(family: tuple[Serve, Connect]) -> None:
    serve, connect = family
    with anyio.fail_after(60):
        async with (
            serve(Registry(), first_message=0) as server,
            connect(server) as client,
            serve_tcp(Registry(), limits=Limits(first_message=SHORT)) as strict,
        ):
            received = anyio.Event()
            client.on("news")(lambda: received.set())
            async with Peer.connect_tcp("127.0.0.1", strict.port) as silent:
                await silent.wait_closed()
            for peer in server.peers:
                await peer.notify("news")
            await received.wait()


async def test_where_silence_is_limited_an_idle_client_is_disconnected(family: tuple[Serve, Connect]) -> None:
    serve, connect = family
    prepared: list[Peer] = []

    def prepare(peer: Peer) -> None:
        prepared.append(peer)
        peer.handle("echo")(lambda params: params)

    with anyio.fail_after(60):
        async with serve(prepare, silence=LONG_ENOUGH, first_message=LONG_ENOUGH) as server, connect(server) as client:
            assert await client.call("echo", [1]) == [1]
            assert (await client.wait_closed()).reason is DisconnectReason.REMOTE_CLOSE

    assert "silence" in (await prepared[0].wait_closed()).detail


async def test_a_client_that_waits_for_a_response_is_not_idle(family: tuple[Serve, Connect]) -> None:
    serve, connect = family
    release = anyio.Event()
    methods = echo_methods()

    @methods.handle("wait")
    async def wait() -> str:
        await release.wait()
        return "done"

    async def outlast_another(server: PeerServer) -> None:
        async with connect(server) as idle:
            assert await idle.call("echo", [1]) == [1]
            await idle.wait_closed()
        release.set()

    with anyio.fail_after(60):
        async with (
            serve(methods, silence=LONG_ENOUGH) as server,
            connect(server) as client,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(outlast_another, server)
            assert await client.call("wait") == "done"
