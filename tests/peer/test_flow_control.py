"""A peer that is slower than the other: memory stays bounded, callers are busy, nothing deadlocks."""

from __future__ import annotations

import socket
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from random import Random
from typing import Any, cast

import anyio
import pytest
from tests.peer.children import QUICK, ready_child
from tests.peer.scripted import Script

from becket import Busy, CallTimeout, ConnectionLost, DisconnectReason, Limits, Peer
from becket.errors import NotSent
from becket.peer.outbound import READY
from becket.peer.transport.child_process import open_child
from becket.peer.transport.child_transport import ChildTransport
from becket.peer.transport.fd import FdTransport
from becket.testing import child

pytestmark = [pytest.mark.loops, pytest.mark.process]

KIB = 1024
SMALL = QUICK.but(send_queue=128 * KIB, send_high=64 * KIB)


@asynccontextmanager
async def measured_child(name: str, *, limits: Limits) -> AsyncGenerator[tuple[Peer, ChildTransport], None]:
    """Yields a peer of this child together with its transport, which has the size of the queue."""
    transport = ChildTransport(*open_child(child(name), limits=limits), limits)
    async with Peer.over(transport, limits=limits) as peer:
        yield peer, transport


# -- a child that does not read


async def test_calls_to_a_child_that_never_reads_end_busy_or_timed_out_and_the_queue_is_bounded() -> None:
    outcomes: list[type[Exception]] = []

    async def call(peer: Peer) -> None:
        try:
            await peer.call("x", ["y" * 20 * KIB], timeout=0.2)
        except (Busy, CallTimeout) as error:
            outcomes.append(type(error))

    with anyio.fail_after(60):
        async with measured_child("never_reads", limits=SMALL) as (peer, transport):
            async with anyio.create_task_group() as tasks:
                for _ in range(100):
                    tasks.start_soon(call, peer)
            most = transport.queued

    assert len(outcomes) == 100
    assert set(outcomes) == {NotSent, CallTimeout}  # sent calls wait for a response, the others were never sent
    assert 0 < most <= SMALL.send_queue + 20 * KIB


async def test_a_call_that_was_never_sent_sends_no_cancellation() -> None:
    with anyio.fail_after(60):
        async with measured_child("never_reads", limits=SMALL) as (peer, transport):
            with pytest.raises(CallTimeout):
                await peer.call("x", ["y" * 300 * KIB], timeout=0.05)
            await anyio.wait_all_tasks_blocked()  # this one was sent, and its cancellation follows it
            queued = transport.queued
            with pytest.raises(Busy):
                await peer.call("x", ["y"], timeout=0.05)
            await anyio.wait_all_tasks_blocked()
            assert transport.queued == queued


async def test_a_notification_without_waiting_is_refused_when_too_much_waits() -> None:
    with anyio.fail_after(60):
        async with measured_child("never_reads", limits=SMALL) as (peer, transport):
            with pytest.raises(Busy) as caught:  # noqa: PT012 - at which of them does not matter
                for _ in range(1000):
                    peer.notify_nowait("x", ["y" * KIB])
            assert transport.queued <= SMALL.send_queue

    assert caught.value.limit == SMALL.send_queue


async def test_a_notification_waits_for_a_child_that_does_not_read_and_gives_up_in_the_end() -> None:
    with anyio.fail_after(60):
        async with measured_child("never_reads", limits=SMALL.but(call_timeout=0.05)) as (peer, transport):
            with pytest.raises(Busy):  # noqa: PT012 - at which of them does not matter
                for _ in range(1000):
                    await peer.notify("x", ["y" * KIB])
            assert transport.queued <= SMALL.send_high + 64 * KIB  # frames of one turn leave together


class Stuck(Script):
    """Reads nothing of what is written."""

    def write(self, data: bytes) -> None:
        self.queued += len(data)


@pytest.mark.parametrize("most", [1_000, 20 * KIB, 200 * KIB])
async def test_the_limits_of_the_queue_are_exact_however_small_they_are(most: int) -> None:
    """To a frame, though all notifications of one turn of the loop could be sent together."""
    stuck = Stuck()
    async with Peer.over(stuck, limits=Limits(send_high=most // 2, send_queue=most)) as peer:
        for _ in range(most // 100):
            before = stuck.queued
            try:
                waits = peer.notify("x", ["y" * 100])
            except NotSent:
                break
            assert before <= most
            assert (waits is not READY) == (stuck.queued > most // 2)
            cast("Coroutine[Any, Any, None]", waits).close()
        assert most < stuck.queued < most + 200
        stuck.queued = 0


async def test_a_child_that_never_reads_is_closed_like_any_other() -> None:
    with anyio.fail_after(60):
        async with measured_child("never_reads", limits=SMALL) as (peer, _):
            with pytest.raises(CallTimeout):
                await peer.call("x", ["y" * 300 * KIB], timeout=0.05)

    assert peer.process is not None
    assert peer.process.has_exited


async def test_a_child_that_sends_requests_without_reading_responses_is_lost_before_memory_grows() -> None:
    most = 0
    with anyio.fail_after(60):
        async with measured_child("asks_without_reading", limits=SMALL) as (peer, transport):

            @peer.handle("ask")
            def ask() -> str:
                nonlocal most
                most = max(most, transport.queued)
                return "y" * 10 * KIB

            lost = await peer.wait_closed()

    assert lost.reason is DisconnectReason.REMOTE_VIOLATION
    assert most <= 2 * SMALL.send_queue + 64 * KIB


# -- both at once


async def test_a_child_that_writes_before_it_reads_and_a_host_that_writes_much_do_not_lock_up() -> None:
    ticks = 0
    with anyio.fail_after(60):
        async with Peer.connect_process(child("writes_before_it_reads", 2_000_000), limits=QUICK) as peer:

            @peer.on("tick")
            def tick(_: Any) -> None:
                nonlocal ticks
                ticks += 1

            async with anyio.create_task_group() as tasks:
                for number in range(10):
                    tasks.start_soon(echo, peer, [number, "y" * 300 * KIB])

    assert ticks > 1000


async def echo(peer: Peer, value: list[Any]) -> None:
    assert await peer.call("echo", value) == value


@pytest.mark.parametrize("seed", range(5))
async def test_full_pipes_in_both_directions_never_lock_up(seed: int) -> None:
    random = Random(seed)
    with anyio.fail_after(60):
        async with Peer.connect_process(child("echoes"), limits=QUICK) as peer, anyio.create_task_group() as tasks:
            for number in range(40):
                tasks.start_soon(echo, peer, [number, "y" * random.choice([1, 100, 5_000, 70_000, 200_000])])
                if random.random() < 0.3:
                    await peer.notify("note", ["z" * random.randrange(100_000)])


@pytest.mark.parametrize("seed", range(5))
async def test_two_peers_that_flood_each_other_over_narrow_sockets_never_lock_up(seed: int) -> None:
    random = Random(seed)
    ends = socket.socketpair()
    for end in ends:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 * KIB)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 * KIB)
    left, right = (FdTransport.from_socket(end) for end in ends)
    limits = SMALL.but(outbound_calls=8)
    with anyio.fail_after(60):
        async with Peer.over(left, limits=limits) as one, Peer.over(right, limits=limits) as other:
            for peer in (one, other):

                @peer.handle("echo")
                async def response(params: Any) -> Any:
                    await anyio.lowlevel.checkpoint()
                    return params

            async with anyio.create_task_group() as tasks:
                for number in range(20):
                    for peer in (one, other):
                        tasks.start_soon(echo, peer, [number, "y" * random.choice([1, 100, 3_000, 20_000])])


async def test_a_handler_that_calls_back_while_both_pipes_are_full_gets_its_response() -> None:
    ends = socket.socketpair()
    left, right = (FdTransport.from_socket(end) for end in ends)
    with anyio.fail_after(60):
        async with Peer.over(left) as one, Peer.over(right) as other:

            @other.handle("outer")
            async def outer(params: Any) -> int:
                inner = await other.call("inner", params)
                return len(inner)

            @one.handle("inner")
            async def inner(params: Any) -> str:
                return "y" * (params[0] + 1)

            async with anyio.create_task_group() as tasks:
                for _ in range(30):
                    tasks.start_soon(measure, one)


async def measure(peer: Peer) -> None:
    assert await peer.call("outer", [200_000, "z" * 100_000]) == 200_001


# -- one that floods, and the others


async def test_a_child_that_floods_does_not_block_its_siblings() -> None:
    ticks = 0
    with anyio.fail_after(60):
        async with (
            Peer.connect_process(child("floods_stdout"), limits=QUICK) as flooder,
            Peer.connect_process(child("echoes"), limits=QUICK) as sibling,
        ):
            first = anyio.Event()

            @flooder.on("tick")
            def tick(_: Any) -> None:
                nonlocal ticks
                ticks += 1
                first.set()

            await first.wait()
            served: list[int] = []
            while len(served) < 20 or served[-1] == served[0]:  # the flood is there all the time
                await echo(sibling, [len(served)])
                served.append(ticks)


async def test_notifications_faster_than_their_handler_end_the_link_at_the_limit() -> None:
    stuck = anyio.Event()
    with anyio.fail_after(60):
        async with Peer.connect_process(child("floods_stdout"), limits=QUICK.but(notifications=10_000)) as peer:

            @peer.on("tick")
            async def tick(_: Any) -> None:
                stuck.set()
                await anyio.sleep_forever()

            lost = await peer.wait_closed()

    assert stuck.is_set()
    assert lost.reason is DisconnectReason.REMOTE_VIOLATION


async def test_the_next_call_is_refused_with_the_reason_when_a_flood_has_ended_the_link() -> None:
    with anyio.fail_after(60):
        async with ready_child("never_reads", limits=SMALL.but(call_timeout=5)) as (peer, _):
            assert peer.process is not None
            peer.process.kill()
            with pytest.raises(ConnectionLost):
                await peer.call("x", ["y" * 300 * KIB])


# -- many at once


async def test_senders_in_one_turn_all_wait_while_nothing_is_read() -> None:
    script = Script()
    async with Peer.over(script) as peer:
        script.queued = Limits().send_high + 1
        received = [peer.notify("x", [number]) for number in range(6)]
        assert all(waits is not READY for waits in received)
        for waits in received:
            cast("Coroutine[Any, Any, None]", waits).close()


async def test_responses_are_sent_together_while_the_rest_of_a_chunk_is_processed() -> None:
    script = Script()
    left: list[int] = []  # responses between one request and the next

    async with Peer.over(script, limits=Limits(turn_seconds=60)) as peer:  # all of it in one turn

        @peer.handle("x")
        def handle(params: list[int]) -> None:
            left.append(len(script.unread()))

        script.send(*({"jsonrpc": "2.0", "id": n, "method": "x", "params": [n]} for n in range(64)))

    writes = [count for count in left if count]
    assert left[0] == 0
    assert 2 <= len(writes) <= 64 / 16
