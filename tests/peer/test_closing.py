"""A peer can be closed from anywhere: by another task, twice, in the middle of a call, within a handler, cancelled."""

from __future__ import annotations

import asyncio
import socket
from functools import partial

import anyio
import pytest
from tests.peer.children import QUICK, ready_child

from becket import ConnectionLost, DisconnectReason, Peer
from becket.peer.transport.child_process import ChildProcess
from becket.peer.transport.fd import FdTransport
from becket.testing import child, memory_pair, memory_transports

pytestmark = pytest.mark.loops


def process_of(peer: Peer) -> ChildProcess:
    assert peer.process is not None
    return peer.process


@pytest.mark.process
async def test_a_peer_is_closed_by_another_task_than_the_one_that_opened_it() -> None:
    with anyio.fail_after(60):
        peer = await Peer.connect_process(child("echoes"))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(peer.aclose)

    assert process_of(peer).has_exited


@pytest.mark.process
async def test_closing_again_and_by_many_at_once_waits_for_the_one_end() -> None:
    ended: list[bool] = []

    async def close(peer: Peer) -> None:
        await peer.aclose()
        ended.append(process_of(peer).has_exited)

    with anyio.fail_after(60):
        async with ready_child("ignores_sigterm") as (peer, _):
            async with anyio.create_task_group() as tasks:
                for _ in range(5):
                    tasks.start_soon(close, peer)
            await close(peer)

    assert ended == [True] * 6


@pytest.mark.process
async def test_closing_in_the_middle_of_a_call_settles_the_call() -> None:
    outcomes: list[DisconnectReason] = []

    async def call(peer: Peer) -> None:
        with pytest.raises(ConnectionLost) as caught:
            await peer.call("x")
        outcomes.append(caught.value.reason)

    with anyio.fail_after(60):
        async with ready_child("never_answers") as (peer, _), anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(call, peer)
            await anyio.wait_all_tasks_blocked()
            await peer.aclose()

    assert outcomes == [DisconnectReason.LOCAL_CLOSE] * 3


async def test_a_handler_may_close_its_own_peer() -> None:
    closed = anyio.Event()
    async with memory_pair() as (left, right):

        @right.handle("close")
        async def close() -> str:
            try:
                await right.aclose()
            finally:
                closed.set()
            return "closed"

        with anyio.fail_after(60), pytest.raises(ConnectionLost) as caught:
            await left.call("close")
        with anyio.fail_after(60):
            await closed.wait()

    assert caught.value.reason is DisconnectReason.REMOTE_CLOSE


async def test_a_handler_of_a_notification_may_close_its_own_peer() -> None:
    async with memory_pair() as (left, right):

        @right.on("close")
        async def close() -> None:
            await right.aclose()

        with anyio.fail_after(60):
            await left.notify("close")
            assert (await left.wait_closed()).reason is DisconnectReason.REMOTE_CLOSE
            assert (await right.wait_closed()).reason is DisconnectReason.LOCAL_CLOSE


@pytest.mark.process
async def test_a_handler_that_serves_a_child_may_end_that_child() -> None:
    calls_host = (
        "import sys, os;"
        'body = b\'{"jsonrpc":"2.0","id":1,"method":"close"}\';'
        'os.write(1, b"Content-Length: %d\\r\\n\\r\\n%b" % (len(body), body)); sys.stdin.buffer.read()'
    )
    with anyio.fail_after(60):
        async with Peer.connect_process(["/usr/bin/env", "python3", "-I", "-S", "-c", calls_host]) as peer:

            @peer.handle("close")
            async def close() -> None:
                await peer.aclose()

            assert (await peer.wait_closed()).reason is DisconnectReason.LOCAL_CLOSE

    assert process_of(peer).has_exited


async def test_a_handler_that_ends_its_own_link_and_waits_on_is_cancelled() -> None:
    is_over = anyio.Event()
    ours, theirs = socket.socketpair()
    with anyio.fail_after(60):
        async with (
            Peer.over(FdTransport.from_socket(ours)) as left,
            Peer.over(FdTransport.from_socket(theirs)) as right,
        ):

            @right.handle("leave")
            async def leave() -> None:
                try:
                    await right.aclose()
                    await anyio.sleep_forever()
                finally:
                    is_over.set()

            with pytest.raises(ConnectionLost):
                await left.call("leave")
            await is_over.wait()


@pytest.mark.process
async def test_a_block_that_is_cancelled_still_ends_the_child() -> None:
    with anyio.move_on_after(60) as scope:
        async with ready_child("ignores_sigterm") as (peer, _):
            scope.cancel()
            await anyio.sleep_forever()

    assert scope.cancelled_caught
    assert (process_of(peer).has_exited, process_of(peer).signal) == (True, "SIGKILL")


@pytest.mark.process
async def test_a_close_that_is_cancelled_half_way_still_finishes() -> None:
    async with ready_child("ignores_sigterm") as (peer, _):
        with anyio.move_on_after(60) as scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(peer.aclose)
                await peer.wait_closed()
                assert not process_of(peer).has_exited
                scope.cancel()
        assert process_of(peer).has_exited


@pytest.mark.process
async def test_a_peer_may_be_opened_in_a_cancelled_scope_and_leaves_nothing() -> None:
    with anyio.CancelScope() as scope:
        scope.cancel()
        async with Peer.connect_process(child("ignores_sigterm"), limits=QUICK):
            await anyio.sleep_forever()

    assert scope.cancelled_caught


async def test_a_call_that_is_cancelled_while_the_peer_closes_settles() -> None:
    async with memory_pair() as (left, right):
        right.handle("never")(never)
        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(swallow_loss, left)
                await anyio.wait_all_tasks_blocked()
                tasks.start_soon(left.aclose)
                tasks.cancel_scope.cancel()


async def never() -> None:
    await anyio.sleep_forever()


async def swallow_loss(peer: Peer) -> None:
    try:
        await peer.call("never")
    except ConnectionLost:
        pass


async def test_responses_that_had_come_settle_their_calls_although_the_link_ends_in_the_same_turn() -> None:
    one, other = memory_transports()
    results: list[object] = []

    async def call(peer: Peer) -> None:
        results.append(await peer.call("x"))

    limits = QUICK.but(turn_seconds=0.0)  # so that one chunk takes many turns
    async with Peer.over(one, limits=limits) as peer, Peer.over(other) as _:
        other.pause()
        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                for _ in range(100):
                    tasks.start_soon(call, peer)
                await anyio.wait_all_tasks_blocked()
                responses = [b'{"jsonrpc":"2.0","id":%d,"result":true}' % id for id in range(1, 101)]
                frames = [b"Content-Length: %d\r\n\r\n%b" % (len(body), body) for body in responses]
                one.accept(b"".join(frames) + b"no frame at all\r\n\r\n")

    assert results == [True] * 100
    assert (await peer.wait_closed()).reason is DisconnectReason.REMOTE_VIOLATION


@pytest.mark.process
async def test_closing_does_not_wait_longer_for_a_child_that_does_not_read_than_it_may() -> None:
    limits = QUICK.but(flush_grace=0.1)
    with anyio.fail_after(60):
        async with ready_child("never_reads", limits=limits) as (peer, _), anyio.create_task_group() as tasks:
            tasks.start_soon(time_out, peer)  # its timer fires while the close waits for what is queued
            await anyio.wait_all_tasks_blocked()
            await peer.aclose()

    assert process_of(peer).has_exited


async def time_out(peer: Peer) -> None:
    try:
        await peer.call("x", ["y" * 500_000], timeout=0.01)
    except (TimeoutError, ConnectionLost):
        pass


@pytest.mark.process
async def test_a_cancelled_scope_does_not_spin_while_a_child_takes_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[object] = []
    shield = asyncio.shield

    def count(waiter: object) -> object:
        waits.append(waiter)
        return shield(waiter)  # type: ignore[call-overload]

    monkeypatch.setattr(asyncio, "shield", count)
    with anyio.move_on_after(60) as scope:
        async with ready_child("ignores_sigterm"):
            scope.cancel()
            await anyio.sleep_forever()

    assert len(waits) < 10


async def test_close_callbacks_are_called_once_and_removed_ones_never() -> None:
    async with memory_pair() as (left, right):
        called: list[str] = []
        left.add_close_callback(lambda: called.append("kept"))
        removed = partial(called.append, "removed")
        left.add_close_callback(removed)
        left.remove_close_callback(removed)
        await right.aclose()
        await left.wait_closed()
        left.add_close_callback(lambda: called.append("late"))
        assert called == ["kept", "late"]
