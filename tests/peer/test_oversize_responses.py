"""A response above the frame limit fails its own call; the link and all other calls continue."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from tests.peer.children import QUICK

from becket import BadReply, ConnectionLost, DisconnectReason, Peer, RemoteError
from becket.blocking import BlockingPeer
from becket.errors import FrameTooLarge, Meaning
from becket.framing import ContentLength, JsonLines, LengthPrefixed
from becket.peer.transport.fd import FdTransport
from becket.testing import memory_transports

pytestmark = [pytest.mark.process]

LIMITS = QUICK.but(frame=64 * 1024, skipped_bytes=512 * 1024)

# Reads requests in one framing. The response to `large` has as many bytes as requested, that to `later` follows it.
CHILD = """
import json, struct, sys
framing = sys.argv[1]
stdin, stdout = sys.stdin.buffer, sys.stdout.buffer

def read():
    if framing == "lines":
        return stdin.readline()
    if framing == "lengths":
        prefix = stdin.read(4)
        return stdin.read(struct.unpack(">I", prefix)[0]) if prefix else b""
    length = 0
    while line := stdin.readline().strip():
        length = int(line.partition(b":")[2])
    return stdin.read(length)

def send(body):
    header = b"Content-Length: %d\\r\\n\\r\\n" % len(body)
    head = {"lines": b"", "lengths": struct.pack(">I", len(body)), "headers": header}[framing]
    stdout.write(head + body + (b"\\n" if framing == "lines" else b""))
    stdout.flush()

def respond(id, result):
    send(json.dumps({"jsonrpc": "2.0", "result": result, "id": id}).encode())

waiting = []
while body := read():
    message = json.loads(body)
    method, params = message.get("method"), message.get("params")
    if method == "later":
        waiting.append(message["id"])
    elif method == "large":
        respond(message["id"], {"id": -1, "text": "x" * params["size"]})
        for id in waiting:
            respond(id, "later")
        waiting.clear()
    elif method == "no id":
        send(b'{"jsonrpc":"2.0","result":{"id":1,"text":"' + b"x" * params["size"] + b'"}}')
    elif "id" in message:
        respond(message["id"], params)
"""
FRAMINGS = {"headers": ContentLength, "lines": JsonLines, "lengths": LengthPrefixed}
EVERY_FRAMING = pytest.mark.parametrize("name", FRAMINGS)


def command(name: str) -> list[str]:
    return [sys.executable, "-c", CHILD, name]


async def fail(peer: Peer, method: str, size: int) -> BadReply:
    with pytest.raises(BadReply) as caught:
        await peer.call(method, {"size": size})
    return caught.value


@pytest.mark.loops
@EVERY_FRAMING
async def test_only_the_call_with_the_oversize_response_fails(name: str) -> None:
    later: list[Any] = []
    with anyio.fail_after(60):
        async with Peer.connect_process(command(name), limits=LIMITS, framing=FRAMINGS[name]) as peer:
            async with anyio.create_task_group() as group:

                async def call_later() -> None:
                    later.append(await peer.call("later"))

                for _ in range(3):  # more often than any other oversize frame may come
                    group.start_soon(call_later)
                    await anyio.wait_all_tasks_blocked()
                    error = await fail(peer, "large", 200_000)
                    assert error.method == "large"
                    assert str(LIMITS.frame) in error.problem
            assert later == ["later"] * 3
            assert await peer.call("echo", [1]) == [1]


@pytest.mark.loops
@EVERY_FRAMING
@pytest.mark.parametrize(("method", "size"), [("large", 600_000), ("no id", 200_000)])
async def test_every_call_settles_where_the_oversize_response_has_no_id_or_is_too_long(
    name: str, method: str, size: int
) -> None:
    settled: list[ConnectionLost] = []
    with anyio.fail_after(60):
        async with (
            Peer.connect_process(command(name), limits=LIMITS, framing=FRAMINGS[name]) as peer,
            anyio.create_task_group() as group,
        ):

            async def call(method: str) -> None:
                with pytest.raises(ConnectionLost) as caught:
                    await peer.call(method, {"size": size})
                settled.append(caught.value)

            group.start_soon(call, "later")
            await anyio.wait_all_tasks_blocked()
            group.start_soon(call, method)
    assert [lost.reason for lost in settled] == [DisconnectReason.REMOTE_VIOLATION] * 2
    assert isinstance(settled[0].__cause__, FrameTooLarge)


@pytest.mark.loops
async def test_the_late_response_to_an_abandoned_call_is_skipped_silently() -> None:
    ours, theirs = memory_transports()
    async with Peer.over(ours, limits=LIMITS) as peer:
        with anyio.move_on_after(0):
            await peer.call("slow")
        body = b'{"jsonrpc":"2.0","id":1,"result":"' + b"x" * 100_000 + b'"}'
        theirs.write(ContentLength(LIMITS.but(frame=200_000)).encode(body))
        await anyio.wait_all_tasks_blocked()
        assert not peer.is_closed


@pytest.mark.loops
async def test_a_request_on_an_oversize_line_is_rejected_under_its_own_id() -> None:
    ours, theirs = memory_transports()
    async with (
        Peer.over(ours, limits=LIMITS, framing=JsonLines),
        Peer.over(theirs, framing=JsonLines) as sender,
    ):
        with anyio.fail_after(60), pytest.raises(RemoteError) as caught:
            await sender.call("store", {"text": "x" * 100_000})
    assert caught.value.meaning is Meaning.TOO_LARGE


@asynccontextmanager
async def responds_at_length(dialect: str) -> AsyncGenerator[Peer, None]:
    """Yields a peer with a small frame limit; the one behind it has that of the dialect."""
    ours, theirs = memory_transports()
    async with Peer.over(ours, limits=LIMITS, dialect=dialect) as peer, Peer.over(theirs, dialect=dialect) as other:
        other.handle("large")(lambda: "x" * 200_000)
        other.handle("echo")(lambda params: params)
        with anyio.fail_after(60):
            yield peer


@pytest.mark.loops
@pytest.mark.parametrize("dialect", ["plain", "native", "lsp", "mcp"])
async def test_the_rule_holds_in_the_dialects_of_json_rpc(dialect: str) -> None:
    async with responds_at_length(dialect) as peer:
        with pytest.raises(BadReply):
            await peer.call("large")
        assert await peer.call("echo", {"a": 1}) == {"a": 1}


@pytest.mark.loops
async def test_the_dialect_of_another_system_applies_its_own_rule() -> None:
    async with responds_at_length("synaps") as peer:
        with pytest.raises(ConnectionLost):
            await peer.call("large")


@EVERY_FRAMING
def test_a_blocking_peer_fails_only_the_call_with_the_oversize_response(name: str) -> None:
    ours, theirs = socket.socketpair()
    with subprocess.Popen(command(name), stdin=theirs, stdout=theirs) as process:
        theirs.close()
        with BlockingPeer(FdTransport.from_socket(ours), limits=LIMITS, framing=FRAMINGS[name]) as peer:
            for _ in range(3):
                with pytest.raises(BadReply):
                    peer.call("large", {"size": 200_000}, timeout=20)
            assert peer.call("echo", [1], timeout=20) == [1]
            with pytest.raises(ConnectionLost):
                peer.call("large", {"size": 600_000}, timeout=20)
        process.kill()
