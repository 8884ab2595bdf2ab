"""Peers over custom streams, and the failures of such streams."""

from __future__ import annotations

import socket

import anyio
import pytest

from becket import CallTimeout, ConnectionLost, DisconnectReason, Limits, Peer
from becket.peer.transport.stream import StreamTransport

pytestmark = pytest.mark.loops


class Pipe:
    """One end of a byte stream in memory, with the three methods that a peer needs."""

    def __init__(
        self, incoming: anyio.abc.ObjectReceiveStream[bytes], outgoing: anyio.abc.ObjectSendStream[bytes]
    ) -> None:
        self.incoming = incoming
        self.outgoing = outgoing
        self.closed = 0

    async def receive(self) -> bytes:
        return await self.incoming.receive()

    async def send(self, item: bytes) -> None:
        await self.outgoing.send(item)

    async def aclose(self) -> None:
        self.closed += 1
        await self.incoming.aclose()
        await self.outgoing.aclose()


def pipes() -> tuple[Pipe, Pipe]:
    to_right, from_left = anyio.create_memory_object_stream[bytes](10)
    to_left, from_right = anyio.create_memory_object_stream[bytes](10)
    return Pipe(from_right, to_right), Pipe(from_left, to_left)


async def test_two_peers_communicate_over_any_two_streams() -> None:
    left, right = pipes()
    with anyio.fail_after(60):
        async with Peer.over(left) as one, Peer.over(right) as other:
            for peer in (one, other):
                peer.handle("echo")(lambda params: params)
            assert await one.call("echo", [1]) == [1]
            assert await other.call("echo", ["y" * 500_000]) == ["y" * 500_000]

    assert (left.closed, right.closed) == (1, 1)


async def test_streams_of_anyio_are_such_streams() -> None:
    client, server = [await anyio.abc.UNIXSocketStream.from_socket(end) for end in socket.socketpair()]
    with anyio.fail_after(60):
        async with Peer.over(client) as one, Peer.over(server) as other:
            other.handle("echo")(lambda params: params)
            assert await one.call("echo", [1]) == [1]
            await one.aclose()
            assert (await other.wait_closed()).reason is DisconnectReason.REMOTE_CLOSE


@pytest.mark.parametrize("method", ["receive", "send"])
@pytest.mark.parametrize(
    "error", [ValueError("odd"), OSError("broken"), anyio.BrokenResourceError(), anyio.BusyResourceError("reading")]
)
async def test_any_exception_of_a_stream_ends_the_link_with_that_reason(
    method: str, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    left, right = pipes()

    async def fail(*_: object) -> bytes:
        raise error

    monkeypatch.setattr(left, method, fail)
    with anyio.fail_after(60):
        async with Peer.over(left) as one, Peer.over(right):
            with pytest.raises(ConnectionLost) as caught:
                await one.call("echo")

    assert caught.value.reason is DisconnectReason.STREAM_ERROR
    assert left.closed == 1


async def test_a_stream_that_ends_is_a_link_that_was_closed_by_the_other_peer() -> None:
    left, right = pipes()
    with anyio.fail_after(60):
        async with Peer.over(left) as one:
            await right.aclose()
            assert (await one.wait_closed()).reason is DisconnectReason.REMOTE_CLOSE


async def test_a_stream_that_never_finishes_its_close_does_not_hold_up_the_peer() -> None:
    left, right = pipes()

    async def never() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            await Pipe.aclose(left)

    left.aclose = never  # type: ignore[method-assign]
    with anyio.fail_after(60):
        async with Peer.over(StreamTransport(left, close_grace=0.01)), Peer.over(right):
            pass


async def test_a_stream_that_fails_to_close_is_closed_enough() -> None:
    left, right = pipes()

    async def fail() -> None:
        await Pipe.aclose(left)
        raise anyio.BrokenResourceError

    left.aclose = fail  # type: ignore[method-assign]
    with anyio.fail_after(60):
        async with Peer.over(left), Peer.over(right):
            pass


async def test_a_stream_that_does_not_send_counts_what_waits() -> None:
    left, right = pipes()

    async def never(_: bytes) -> None:
        await anyio.sleep_forever()

    left.send = never  # type: ignore[method-assign]
    transport = StreamTransport(left)
    with anyio.fail_after(60):
        async with Peer.over(transport, limits=Limits(flush_grace=0.01)) as one, Peer.over(right):
            with pytest.raises(CallTimeout):
                await one.call("echo", ["y" * 1000], timeout=0.01)
            assert transport.queued > 1000


async def test_a_cancelled_caller_does_not_tear_the_frame_that_is_being_sent() -> None:
    left, right = pipes()
    sending = anyio.Event()
    go_on = anyio.Event()
    send = left.send

    async def send_in_halves(data: bytes) -> None:
        await send(data[: len(data) // 2])
        sending.set()
        await go_on.wait()
        await send(data[len(data) // 2 :])

    left.send = send_in_halves  # type: ignore[method-assign]
    with anyio.fail_after(60):
        async with Peer.over(left) as one, Peer.over(right) as other:
            other.handle("echo")(lambda params: params)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(one.call, "echo", ["cancelled"])
                await sending.wait()
                tasks.cancel_scope.cancel()
            go_on.set()
            assert await one.call("echo", ["whole"]) == ["whole"]


async def test_a_peer_that_cannot_be_made_leaves_its_stream_alone() -> None:
    left, right = pipes()
    with pytest.raises(ValueError, match="klingon"):
        async with Peer.over(left, dialect="klingon"):
            pytest.fail("it was made")

    assert left.closed == 0
    await left.aclose()
    await right.aclose()
