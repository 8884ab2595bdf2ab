"""Two peers in memory, and the ways in which the link between them can go wrong."""

from __future__ import annotations

import anyio
import pytest

from becket import ConnectionLost, DisconnectReason, Peer
from becket.testing import (
    CutReads,
    CutWrites,
    DelayReads,
    Fault,
    MemoryTransport,
    SplitReads,
    TornWrites,
    memory_pair,
    memory_transports,
)

pytestmark = pytest.mark.loops

HARMLESS: dict[str, Fault] = {
    "byte by byte": lambda end: SplitReads(end, every=1),
    "split within the header and the body": lambda end: SplitReads(end, at=(3, 20, 24, 50)),
    "three turns late": lambda end: DelayReads(end, turns=3),
    "written in pieces": lambda end: TornWrites(end, size=5),
    "all of it": lambda end: SplitReads(DelayReads(TornWrites(end, size=7), turns=2), every=3),
}


def serve(peer: Peer) -> list[int]:
    """Lets a peer echo, and returns the list of the numbers that it receives."""
    received: list[int] = []
    peer.handle("echo")(lambda params: params)
    peer.on("tell")(lambda params: received.extend(params))
    return received


async def test_both_ends_of_a_pair_call_each_other() -> None:
    async with memory_pair() as (left, right):
        serve(left)
        serve(right)

        assert await left.call("echo", {"from": "left"}) == {"from": "left"}
        assert await right.call("echo", {"from": "right"}) == {"from": "right"}


async def test_closing_one_end_ends_the_other() -> None:
    async with memory_pair() as (left, right):
        await left.aclose()

        with anyio.fail_after(60):
            lost = await right.wait_closed()

        assert lost.reason is DisconnectReason.REMOTE_CLOSE


async def test_written_bytes_are_queued_until_the_other_end_reads_them() -> None:
    one, other = memory_transports()
    async with Peer.over(one) as left, Peer.over(other) as right:
        other.pause()
        await left.notify("tell", [7] * 1000)

        assert one.queued > 1000

        received = serve(right)
        other.resume()
        await left.call("echo")

        assert (one.queued, len(received)) == (0, 1000)


async def test_a_pair_does_not_hold_what_a_closed_end_never_read() -> None:
    one, other = memory_transports()
    async with Peer.over(one) as left, Peer.over(other) as right:
        other.pause()
        await left.notify("tell", [1])
        await right.aclose()

        assert one.queued == 0


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("fault", list(HARMLESS.values()), ids=list(HARMLESS))
async def test_a_conversation_survives_a_link_that_is_only_slow(side: str, fault: Fault) -> None:
    async with memory_pair(**{side: fault}) as (left, right):
        received = serve(right)
        with anyio.fail_after(60):
            for number in range(3):
                await left.notify("tell", [number])
                assert await left.call("echo", [number, "é" * 20]) == [number, "é" * 20]

    assert received == [0, 1, 2]


async def test_a_link_can_be_cut_after_each_byte_that_is_read() -> None:
    for cut_after in range(60):
        async with memory_pair(left=lambda end, n=cut_after: CutReads(end, cut_after=n)) as (left, right):  # type: ignore[misc]
            serve(right)
            with anyio.fail_after(60), pytest.raises(ConnectionLost) as caught:
                await left.call("echo", ["a text that makes the answer longer than sixty bytes"])
            assert caught.value.reason is DisconnectReason.STREAM_ERROR
            assert (await right.wait_closed()).reason is DisconnectReason.REMOTE_CLOSE


async def test_a_link_can_be_cut_after_each_byte_that_is_written() -> None:
    reasons: set[DisconnectReason] = set()
    for cut_after in range(60):
        async with memory_pair(left=lambda end, n=cut_after: CutWrites(end, cut_after=n)) as (left, right):  # type: ignore[misc]
            serve(right)
            with anyio.fail_after(60), pytest.raises(ConnectionLost):
                await left.call("echo", ["a text that makes the request longer than sixty bytes"])
            with anyio.fail_after(60):
                reasons.add((await right.wait_closed()).reason)

    # Nothing of a frame is the end of a conversation; a part of one breaks the rules.
    assert reasons == {DisconnectReason.REMOTE_CLOSE, DisconnectReason.REMOTE_VIOLATION}


async def test_a_cut_link_still_delivers_what_came_before_the_cut() -> None:
    responses = len(b'Content-Length: 38\r\n\r\n{"jsonrpc":"2.0","id":1,"result":[1]}')
    async with memory_pair(left=lambda end: CutReads(end, cut_after=responses)) as (left, right):
        serve(right)

        assert await left.call("echo", [1]) == [1]
        with anyio.fail_after(60), pytest.raises(ConnectionLost):
            await left.call("echo", [2])


async def test_a_transport_reports_its_end_once_however_often_it_is_closed() -> None:
    class Counter:
        gone = 0

        def data_received(self, data: bytes) -> None: ...

        def write_queue_drained(self) -> None: ...

        def input_ended(self, describe: object) -> None: ...

        def transport_closed(self) -> None:
            self.gone += 1

    class NoLoop:
        def call_soon(self, function: object) -> None: ...

    one: MemoryTransport
    one, _ = memory_transports()
    counter = Counter()
    one.start(NoLoop(), counter)  # type: ignore[arg-type]
    one.close()
    one.close()

    assert counter.gone == 1
