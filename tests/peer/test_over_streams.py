"""`Peer.over` a byte stream of the program's own: of anyio, or any object like one."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.abc
import anyio.lowlevel
import pytest
from anyio.streams.stapled import StapledByteStream, StapledObjectStream
from tests.peer.scripted import frame, request, settled

from becket import DisconnectReason, Limits, Peer
from becket.framing import JsonLines

pytestmark = pytest.mark.loops


def memory_streams() -> tuple[StapledObjectStream[bytes], StapledObjectStream[bytes]]:
    """Returns two ends of a pair of memory streams, which hand over whole chunks."""
    to_right, from_left = anyio.create_memory_object_stream[bytes](10)
    to_left, from_right = anyio.create_memory_object_stream[bytes](10)
    return StapledObjectStream(to_right, from_right), StapledObjectStream(to_left, from_left)


class OneByteAtATime:
    """A stream that takes and gives single bytes; it has nothing but the three methods that are needed."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._rest = b""

    async def receive(self) -> bytes:
        if not self._rest:
            self._rest = await self._inner.receive()
        first, self._rest = self._rest[:1], self._rest[1:]
        await anyio.lowlevel.checkpoint()
        return first

    async def send(self, item: bytes) -> None:
        for position in range(len(item)):
            await self._inner.send(item[position : position + 1])

    async def aclose(self) -> None:
        await self._inner.aclose()


@asynccontextmanager
async def tcp_streams() -> AsyncGenerator[tuple[Any, Any], None]:
    accepted: list[anyio.abc.SocketStream] = []
    ready, done = anyio.Event(), anyio.Event()

    async def serve(stream: anyio.abc.SocketStream) -> None:
        accepted.append(stream)
        ready.set()
        await done.wait()

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, serve)
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        async with await anyio.connect_tcp("127.0.0.1", port) as stream:
            await ready.wait()
            async with accepted[0]:
                yield stream, accepted[0]
        done.set()
        tasks.cancel_scope.cancel()


async def converse(left: Peer, right: Peer) -> None:
    """Lets two peers call each other, in small and in large."""
    for peer in (left, right):
        peer.handle("echo")(lambda params: params)
    with anyio.fail_after(60):
        assert await left.call("echo", {"a": "é"}) == {"a": "é"}
        assert await right.call("echo", ["x" * 5000]) == ["x" * 5000]
        async with anyio.create_task_group() as tasks:
            for number in range(20):
                tasks.start_soon(left.call, "echo", [number])
                tasks.start_soon(right.call, "echo", [number])


# -- streams that work


async def test_two_peers_communicate_over_a_tcp_stream_of_anyio() -> None:
    async with tcp_streams() as (one, other), Peer.over(one) as left, Peer.over(other) as right:
        await converse(left, right)
        await left.aclose()
        with anyio.fail_after(60):
            assert (await right.wait_closed()).reason is DisconnectReason.REMOTE_CLOSE


async def test_two_peers_communicate_over_stapled_byte_streams() -> None:
    async with (
        tcp_streams() as (one, other),
        Peer.over(StapledByteStream(one, one)) as left,
        Peer.over(StapledByteStream(other, other), framing=None) as right,
    ):
        await converse(left, right)


async def test_a_stream_may_give_and_take_single_bytes() -> None:
    one, other = memory_streams()
    async with Peer.over(OneByteAtATime(one)) as left, Peer.over(OneByteAtATime(other)) as right:
        for peer in (left, right):
            peer.handle("echo")(lambda params: params)
        with anyio.fail_after(60):
            assert await left.call("echo", {"a": 1}) == {"a": 1}
            assert await right.call("echo", [2]) == [2]


async def test_another_framing_may_be_chosen() -> None:
    one, other = memory_streams()
    async with Peer.over(one, framing=JsonLines) as left, Peer.over(other, framing=JsonLines) as right:
        await converse(left, right)


# -- how they end


async def test_closing_a_peer_closes_its_stream() -> None:
    one, other = memory_streams()
    async with Peer.over(one):
        pass
    with pytest.raises(anyio.EndOfStream):
        await other.receive()
    await other.aclose()


# -- backpressure


async def test_bytes_that_a_slow_stream_has_not_taken_are_counted_and_sent_before_the_end() -> None:
    one, other = memory_streams()
    received = bytearray()
    async with Peer.over(one) as peer:
        for number in range(30):
            await peer.notify("tell", {"n": number, "padding": "x" * 10_000})

        async def read_slowly() -> None:
            while True:
                try:
                    received.extend(await other.receive())
                except anyio.EndOfStream:
                    return
                await anyio.lowlevel.checkpoint()

        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(peer.aclose)
                tasks.start_soon(read_slowly)
    await other.aclose()

    assert received.count(b'"tell"') == 30


async def test_a_stream_is_not_read_while_its_link_is_paused() -> None:
    one, other = memory_streams()
    async with Peer.over(one, limits=Limits(stream_events=40)) as peer:
        ticks = b"".join(frame({"jsonrpc": "2.0", "method": "tick", "params": {"n": n}}) for n in range(10))
        async with peer.stream("x", events={"tick": dict[str, int]}, pause_connection=True) as run:
            await other.receive()
            for _ in range(8):
                await other.send(ticks)
            await settled()
            await other.send(ticks)
            seen = 0
            with anyio.fail_after(60):
                while seen < 90:
                    await anext(run)
                    seen += 1
        await other.send(frame(request(1, "missing")))
        with anyio.fail_after(60):
            while b"-32601" not in await other.receive():
                pass
    await other.aclose()
