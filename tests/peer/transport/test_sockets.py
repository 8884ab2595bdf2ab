"""Peers over TCP and unix sockets: connecting, serving many clients, and closing."""

from __future__ import annotations

import os
import resource
import socket
import stat
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, ExitStack
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from tests.peer.scripted import settled

from becket import (
    ConnectionLost,
    Context,
    DisconnectReason,
    Limits,
    Peer,
    Registry,
    RemoteError,
    serve_tcp,
    serve_unix,
)
from becket.peer.transport.server import PeerServer

pytestmark = pytest.mark.loops

Serve = Callable[..., PeerServer]
Connect = Callable[..., AbstractAsyncContextManager[Peer]]


@pytest.fixture(params=["tcp", "unix"])
def family(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Serve, Connect]:
    """Returns how to serve and how to connect, over either kind of socket."""
    path = tmp_path / "socket"

    def serve(setup: Any, **options: Any) -> PeerServer:
        return serve_tcp(setup, **options) if request.param == "tcp" else serve_unix(setup, path, **options)

    def connect(server: PeerServer, **options: Any) -> AbstractAsyncContextManager[Peer]:
        if request.param == "tcp":
            return Peer.connect_tcp("127.0.0.1", server.port, **options)
        return Peer.connect_unix(path, **options)

    return serve, connect


def echo_methods() -> Registry:
    methods = Registry()
    methods.handle("echo")(lambda params: params)
    return methods


# -- serving


async def test_a_server_serves_its_clients_from_a_registry(family: tuple[Serve, Connect]) -> None:
    serve, connect = family
    with anyio.fail_after(60):
        async with serve(echo_methods()) as server, connect(server) as one, connect(server) as other:
            assert await one.call("echo", [1]) == [1]
            assert await other.call("echo", [2]) == [2]


async def test_a_function_prepares_each_peer_before_its_first_byte_is_read(family: tuple[Serve, Connect]) -> None:
    serve, connect = family
    prepared: list[Peer] = []

    def prepare(peer: Peer) -> None:
        prepared.append(peer)
        number = len(prepared)
        peer.handle("number")(lambda: number)

    with anyio.fail_after(60):
        async with serve(prepare) as server, connect(server) as one, connect(server) as other:
            assert sorted([await one.call("number"), await other.call("number")]) == [1, 2]

    assert all(peer.is_closed for peer in prepared)


async def test_a_server_calls_its_clients_back(family: tuple[Serve, Connect]) -> None:
    serve, connect = family
    methods = Registry()

    @methods.handle("greet")
    async def greet(_: Any, ctx: Context) -> str:
        return f"hello {await ctx.call('name')}"

    with anyio.fail_after(60):
        async with serve(methods) as server, connect(server) as client:
            client.handle("name")(lambda: "Ada")
            assert await client.call("greet") == "hello Ada"


async def test_the_options_of_a_server_hold_for_its_peers(family: tuple[Serve, Connect]) -> None:
    serve, connect = family
    with anyio.fail_after(60):
        async with (
            serve(echo_methods(), dialect="native", limits=Limits(frame=1000)) as server,
            connect(server, dialect="native") as client,
        ):
            await client.ping()
            with pytest.raises(ConnectionLost) as caught:
                await client.call("echo", ["x" * 2000])

    assert caught.value.reason is DisconnectReason.REMOTE_CLOSE


@pytest.mark.parametrize("count", [20, 200])
async def test_many_clients_connect_and_call_at_once(family: tuple[Serve, Connect], count: int) -> None:
    serve, connect = family
    everybody = anyio.Event()
    methods = Registry()
    waiting = 0

    @methods.handle("meet")
    async def meet(params: list[int]) -> int:
        nonlocal waiting
        waiting += 1
        if waiting == count:
            everybody.set()
        await everybody.wait()
        return params[0]

    async def call(server: PeerServer, number: int) -> None:
        async with connect(server) as client:
            assert await client.call("meet", [number]) == number

    with anyio.fail_after(60):
        async with serve(methods) as server, anyio.create_task_group() as tasks:
            for number in range(count):
                tasks.start_soon(call, server, number)


# -- leaving


async def test_the_requests_of_a_client_that_vanishes_are_cancelled(
    family: tuple[Serve, Connect],
) -> None:
    serve, connect = family
    began, ended = anyio.Event(), anyio.Event()
    methods = Registry()

    @methods.handle("wait")
    async def wait() -> None:
        try:
            began.set()
            await anyio.sleep_forever()
        finally:
            ended.set()

    async def call(client: Peer) -> None:
        with pytest.raises(ConnectionLost):
            await client.call("wait")

    with anyio.fail_after(60):
        async with serve(methods) as server:
            async with connect(server) as client, anyio.create_task_group() as tasks:
                tasks.start_soon(call, client)
                await began.wait()
                assert len(server.peers) == 1
                await client.aclose()
            await ended.wait()
            while server.peers:
                await settled()


async def test_leaving_the_block_of_a_server_closes_its_peers(family: tuple[Serve, Connect]) -> None:
    serve, connect = family
    lost: list[DisconnectReason] = []

    async def call(client: Peer) -> None:
        with pytest.raises(ConnectionLost) as caught:
            await client.call("wait")
        lost.append(caught.value.reason)

    methods = Registry()

    @methods.handle("wait")
    async def wait() -> None:
        await anyio.sleep_forever()

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks, serve(methods) as server:
            clients = [await connect(server).__aenter__() for _ in range(3)]
            for client in clients:
                tasks.start_soon(call, client)
            while len(server.peers) < 3:
                await settled()
        for client in clients:
            await client.aclose()
        with pytest.raises(OSError):
            async with connect(server):
                pass

    assert lost == [DisconnectReason.REMOTE_CLOSE] * 3


async def test_a_server_whose_scope_is_cancelled_closes_all_its_peers(family: tuple[Serve, Connect]) -> None:
    serve, connect = family
    clients: list[Peer] = []
    with anyio.move_on_after(60) as scope:
        async with serve(echo_methods()) as server:
            for _ in range(3):
                clients.append(await connect(server).__aenter__())
                await clients[-1].call("echo", [1])
            scope.cancel()
            await anyio.sleep_forever()
    with anyio.fail_after(60):
        for client in clients:
            assert (await client.wait_closed()).reason is DisconnectReason.REMOTE_CLOSE
            await client.aclose()


async def test_a_client_that_connects_while_the_server_leaves_is_not_left_behind(
    family: tuple[Serve, Connect],
) -> None:
    serve, connect = family
    for turns in range(6):
        with anyio.fail_after(60):
            async with serve(echo_methods()) as server:
                client = await connect(server).__aenter__()
                for _ in range(turns):
                    await anyio.lowlevel.checkpoint()
            assert isinstance(await client.wait_closed(), ConnectionLost)
            await client.aclose()


async def test_peers_that_do_not_read_do_not_hold_up_the_end_of_a_server_one_after_the_other(
    family: tuple[Serve, Connect],
) -> None:
    serve, _ = family
    methods = Registry()
    methods.handle("much")(lambda: "x" * 3_000_000)
    limits = Limits(flush_grace=0.5)
    raw: list[socket.socket] = []
    frame = b'Content-Length: 40\r\n\r\n{"jsonrpc":"2.0","id":1,"method":"much"}'
    with anyio.fail_after(4):  # ten times half a second, one after the other, would be more
        async with serve(methods, limits=limits) as server:
            for _ in range(10):
                sock = socket.socket(socket.AF_UNIX if server.path else socket.AF_INET)
                sock.connect(server.path or ("127.0.0.1", server.port))
                sock.sendall(frame)
                raw.append(sock)
            while len(server.peers) < 10:
                await settled()
            await settled()
    for sock in raw:
        sock.close()


async def test_a_server_whose_scope_is_cancelled_closes_peers_that_do_not_read_as_well(
    family: tuple[Serve, Connect],
) -> None:
    serve, _ = family
    methods = Registry()
    methods.handle("much")(lambda: "x" * 3_000_000)
    raw: list[socket.socket] = []
    with anyio.move_on_after(60) as scope:
        async with serve(methods, limits=Limits(flush_grace=0.05)) as server:
            for _ in range(3):
                sock = socket.socket(socket.AF_UNIX if server.path else socket.AF_INET)
                sock.connect(server.path or ("127.0.0.1", server.port))
                sock.sendall(b'Content-Length: 40\r\n\r\n{"jsonrpc":"2.0","id":1,"method":"much"}')
                raw.append(sock)
            while len(server.peers) < 3:
                await settled()
            await settled()
            peers = list(server.peers)
            scope.cancel()
            await anyio.sleep_forever()
    for sock in raw:
        sock.close()

    assert scope.cancelled_caught
    assert all(peer.is_closed for peer in peers)


# -- what goes wrong


async def test_an_unknown_dialect_is_refused_before_any_connection(family: tuple[Serve, Connect]) -> None:
    serve, _ = family
    with pytest.raises(ValueError, match="klingon"):
        serve(echo_methods(), dialect="klingon")


async def test_a_framing_that_cannot_be_made_loses_each_client_and_not_the_server(
    family: tuple[Serve, Connect], internal_errors: list[Any]
) -> None:
    serve, connect = family

    def broken(_: Limits) -> Any:
        raise ValueError("no such framing")

    with anyio.fail_after(60):
        async with serve(echo_methods(), framing=broken) as server:
            for _ in range(2):
                async with connect(server) as client:
                    assert (await client.wait_closed()).reason is not DisconnectReason.LOCAL_CLOSE
            assert not server.peers

    assert len(internal_errors) == 2
    internal_errors.clear()


async def test_a_function_that_cannot_prepare_a_peer_loses_that_peer_alone(
    family: tuple[Serve, Connect], internal_errors: list[Any]
) -> None:
    serve, connect = family
    count = 0

    def prepare(peer: Peer) -> None:
        nonlocal count
        count += 1
        if count == 1:
            raise ValueError("not this one")
        peer.handle("echo")(lambda params: params)

    with anyio.fail_after(60):
        async with serve(prepare) as server:
            async with connect(server) as unlucky:
                with pytest.raises(ConnectionLost):
                    await unlucky.call("echo", [1])
            async with connect(server) as client:
                assert await client.call("echo", [1]) == [1]
                assert len(server.peers) == 1

    assert len(internal_errors) == 1
    internal_errors.clear()


async def test_a_server_without_descriptors_left_continues_when_there_are_some(
    family: tuple[Serve, Connect], internal_errors: list[Any]
) -> None:
    serve, _ = family
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with anyio.fail_after(60):
        async with serve(echo_methods()) as server:
            await settled()
            sock = socket.socket(socket.AF_UNIX if server.path else socket.AF_INET)
            with sock:
                free = os.dup(0)
                os.close(free)
                resource.setrlimit(resource.RLIMIT_NOFILE, (free, hard))
                try:
                    sock.connect(server.path or ("127.0.0.1", server.port))
                    for _ in range(200):
                        await anyio.lowlevel.checkpoint()
                finally:
                    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
                assert not server.peers
                while not server.peers:
                    await settled()
    # It is logged, and not in every turn of the loop.
    assert 1 <= len(internal_errors) < 10
    internal_errors.clear()


async def test_connecting_without_a_server_fails_and_leaves_nothing(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(OSError):
        async with Peer.connect_tcp("127.0.0.1", port):
            pass
    with pytest.raises(OSError):
        async with Peer.connect_unix(tmp_path / "missing"):
            pass


async def test_a_port_in_use_is_an_error_that_leaves_nothing(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(OSError):
        async with serve_tcp(echo_methods(), port=taken.getsockname()[1]):
            pass


# -- unix sockets


async def test_a_unix_socket_may_be_opened_by_its_user_alone_and_is_gone_afterwards(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    async with serve_unix(echo_methods(), path) as server:
        mode = os.stat(path).st_mode
        assert stat.S_ISSOCK(mode)
        assert stat.S_IMODE(mode) == 0o600
        assert server.path == str(path)

    assert not path.exists()


async def test_a_stale_socket_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(path))
    assert path.exists()
    with anyio.fail_after(60):
        async with serve_unix(echo_methods(), path), Peer.connect_unix(path) as client:
            assert await client.call("echo", [1]) == [1]


async def test_a_socket_in_use_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with anyio.fail_after(60):
        async with serve_unix(echo_methods(), path):
            with pytest.raises(OSError):
                async with serve_unix(Registry(), path):
                    pass
            async with Peer.connect_unix(path) as client:
                assert await client.call("echo", [1]) == [1]


async def test_a_file_that_is_not_a_socket_is_never_replaced(tmp_path: Path) -> None:
    path = tmp_path / "notes"
    path.write_text("keep me", encoding="utf-8")
    with pytest.raises(OSError):
        async with serve_unix(echo_methods(), path):
            pass

    assert path.read_text(encoding="utf-8") == "keep me"


async def test_connecting_waits_until_a_unix_socket_has_room_for_one_more(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    connected = 0
    all_connected = anyio.Event()

    async def connect() -> None:
        nonlocal connected
        async with Peer.connect_unix(path):
            connected += 1
            if connected == 5:
                all_connected.set()
            await all_connected.wait()

    with socket.socket(socket.AF_UNIX) as listener, ExitStack() as stack, anyio.fail_after(60):
        listener.bind(str(path))
        listener.listen(0)
        listener.setblocking(False)
        earlier = fill_queue(path, stack)
        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(connect)
            await settled()
            assert connected == 0
            for _ in range(earlier + 5):
                await anyio.wait_readable(listener)
                stack.enter_context(listener.accept()[0])
            await all_connected.wait()


def fill_queue(path: Path, stack: ExitStack) -> int:
    """Connects to a listening socket until it has no room for one more, and returns how often that succeeded."""
    count = 0
    while True:
        client = stack.enter_context(socket.socket(socket.AF_UNIX))
        client.setblocking(False)
        try:
            client.connect(str(path))
        except BlockingIOError:
            return count
        count += 1


async def test_a_server_does_not_remove_the_socket_of_its_successor(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with anyio.fail_after(60):
        async with serve_unix(echo_methods(), path):
            path.unlink()
            successor = serve_unix(echo_methods(), path)
            await successor.__aenter__()
        async with Peer.connect_unix(path) as client:
            assert await client.call("echo", [1]) == [1]
        await successor.__aexit__(None, None, None)


async def test_an_unknown_method_over_a_socket_is_an_error_like_anywhere(family: tuple[Serve, Connect]) -> None:
    serve, connect = family
    with anyio.fail_after(60):
        async with serve(Registry()) as server, connect(server) as client:
            with pytest.raises(RemoteError):
                await client.call("missing")
