"""What a link does with input that comes too slowly, too fast, or in one flood."""

from __future__ import annotations

import anyio
import pytest

from becket import ConnectionLost, DisconnectReason, Limits, Peer
from becket.peer.pacing import LEAST_READ, Meter, Pace
from becket.testing import memory_transports

pytestmark = pytest.mark.loops

FRAME = b'Content-Length: 33\r\n\r\n{"jsonrpc":"2.0","method":"tick"}'


async def lost_after(written: bytes, limits: Limits) -> ConnectionLost:
    """Returns how a link ends that got these bytes and then nothing more."""
    ours, theirs = memory_transports()
    async with Peer.over(ours, limits=limits) as peer:
        theirs.write(written)
        with anyio.fail_after(5):
            return await peer.wait_closed()


@pytest.mark.parametrize("begun", [b"Content-Le", FRAME[:30], FRAME + FRAME[:-1]])
async def test_a_frame_that_is_never_finished_ends_the_link(begun: bytes) -> None:
    lost = await lost_after(begun, Limits(partial_frame=0.01))
    assert lost.reason is DisconnectReason.REMOTE_VIOLATION


async def test_progress_does_not_renew_the_deadline_of_a_frame() -> None:
    ours, theirs = memory_transports()
    async with Peer.over(ours, limits=Limits(partial_frame=0.05)) as peer:
        with anyio.fail_after(5):
            async with anyio.create_task_group() as group:

                async def trickle() -> None:
                    theirs.write(b"Content-Length: 4000\r\n\r\n")
                    while True:
                        theirs.write(b" ")
                        await anyio.lowlevel.checkpoint()

                group.start_soon(trickle)
                lost = await peer.wait_closed()
                group.cancel_scope.cancel()
    assert lost.reason is DisconnectReason.REMOTE_VIOLATION


async def test_a_large_frame_that_keeps_coming_outlives_the_deadline() -> None:
    limits = Limits(partial_frame=0.01, partial_frame_rate=1)  # a second more for each byte that came
    ours, theirs = memory_transports()
    seen = anyio.Event()
    async with Peer.over(ours, limits=limits) as peer:
        peer.on("tick")(seen.set)
        theirs.write(FRAME[:-1])
        with anyio.move_on_after(0.05):  # past the deadline, which the bytes have moved
            await peer.wait_closed()
        theirs.write(FRAME[-1:])
        with anyio.fail_after(5):
            await seen.wait()
        assert not peer.is_closed


async def test_a_frame_in_time_leaves_no_deadline_behind() -> None:
    ours, theirs = memory_transports()
    async with Peer.over(ours, limits=Limits(partial_frame=0.01)) as peer:
        theirs.write(FRAME[:10])
        await anyio.lowlevel.checkpoint()
        theirs.write(FRAME[10:])
        with anyio.move_on_after(0.05):
            await peer.wait_closed()
        assert not peer.is_closed


async def test_a_limited_link_takes_its_messages_in_portions_and_loses_none() -> None:
    limits = Limits(message_rate=2_000.0, message_burst=10)
    ours, theirs = memory_transports()
    seen = 0
    done = anyio.Event()
    async with Peer.over(ours, limits=limits) as peer:

        @peer.on("tick")
        def tick() -> None:
            nonlocal seen
            seen += 1
            if seen == 40:
                done.set()

        for _ in range(40):
            theirs.write(FRAME)
        with anyio.fail_after(5):
            await done.wait()
    assert seen == 40


def test_a_meter_asks_for_a_pause_only_when_its_bucket_is_empty() -> None:
    meter = Meter(Limits(message_rate=10.0, message_burst=5), now=0.0)
    assert meter.spend(5, 0.0) == 0.0
    assert meter.spend(6, 0.0) == pytest.approx(0.1)
    assert meter.spend(6, 1.0) == 0.0
    assert meter.spend(12, 1.0) == pytest.approx(0.1)


class Source:
    read_size = 0


def paces(count: int) -> list[tuple[Pace, Source]]:
    limits = Limits(turn_seconds=0.002, turn_bytes=64 * 1024)
    transports = [Source() for _ in range(count)]
    return [(Pace(transport, limits), transport) for transport in transports]


def read_on(links: list[tuple[Pace, Source]], seconds_a_byte: float, rounds: int = 20) -> list[int]:
    """Returns how much links read at once after some turns in which each always had more to say."""
    for number in range(rounds):
        for pace, transport in links:
            pace.took(transport.read_size * seconds_a_byte, 0.01 * number)
    return [transport.read_size for _, transport in links]


def test_who_reads_fast_enough_reads_all_that_it_may_at_once() -> None:
    assert read_on(paces(1), 0.0005 / (64 * 1024)) == [64 * 1024]


def test_who_takes_longer_than_half_a_turn_reads_less_at_once() -> None:
    [size] = read_on(paces(1), 0.002 / (64 * 1024))

    assert size == 32 * 1024


def test_those_who_always_have_more_to_say_share_a_turn() -> None:
    alone = read_on(paces(1), 0.002 / (64 * 1024))
    four = read_on(paces(4), 0.002 / (64 * 1024))

    assert four == [alone[0] // 4] * 4
    assert read_on(paces(1000), 0.002 / (64 * 1024)) == [LEAST_READ] * 1000


def test_who_had_nothing_to_say_for_a_while_has_no_rivals() -> None:
    [(pace, transport)], others = paces(1), paces(4)
    pace.took(0.0, 0.0)
    read_on(others, 0.0)
    pace.took(0.0009, 10.0)

    assert transport.read_size == 64 * 1024


def test_who_is_alone_again_reads_more_at_once_again() -> None:
    links = paces(4)
    read_on(links, 0.002 / (64 * 1024))

    assert read_on(links[:1], 0.0001 / (64 * 1024)) == [64 * 1024]


async def test_one_turn_of_a_flood_leaves_the_loop_to_others() -> None:
    limits = Limits(turn_seconds=0.0)
    ours, theirs = memory_transports()
    turns: list[int] = []
    seen = 0
    done = anyio.Event()
    async with Peer.over(ours, limits=limits) as peer:

        @peer.on("tick")
        def tick() -> None:
            nonlocal seen
            seen += 1
            if seen == 200:
                done.set()

        theirs.write(FRAME * 200)
        with anyio.fail_after(5):
            while not done.is_set():
                turns.append(seen)
                await anyio.lowlevel.checkpoint()
    assert seen == 200
    assert len(set(turns)) > 1  # it was served in portions, and we ran in between
