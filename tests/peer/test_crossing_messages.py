"""Messages that cross on a link: responses and the end, large responses, cancelled callers."""

from __future__ import annotations

import socket
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from tests.peer.scripted import in_virtual_time, request, scripted, settled

from becket import Busy, CallTimeout, Context, Limits, Meaning, Peer, RemoteError
from becket.peer.transport.fd import FdTransport
from becket.testing import memory_pair

pytestmark = pytest.mark.loops

LARGE = "x" * 4_000_000


async def test_a_response_that_came_before_the_pipe_broke_is_delivered() -> None:
    ours, theirs = socket.socketpair()
    responses: list[Any] = []
    async with Peer.over(FdTransport.from_socket(ours)) as peer:
        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:

                async def ask() -> None:
                    responses.append(await peer.call("ask"))

                group.start_soon(ask)
                theirs.setblocking(False)
                await anyio.wait_readable(theirs)
                theirs.recv(1000)
                theirs.send(b'Content-Length: 36\r\n\r\n{"jsonrpc":"2.0","id":1,"result":42}')
                theirs.close()
                peer.notify_nowait("tell", ["x" * 100_000])  # breaks before the response was read
    assert responses == [42]


async def test_large_responses_to_a_peer_that_reads_may_wait_together() -> None:
    async with memory_pair() as (left, right):

        @right.handle("large")
        async def large() -> str:
            await anyio.lowlevel.checkpoint()
            return LARGE

        sizes: list[int] = []
        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:

                async def ask() -> None:
                    sizes.append(len(await left.call("large")))

                for _ in range(4):
                    group.start_soon(ask)
        assert sizes == [len(LARGE)] * 4


async def test_more_notifications_than_the_queue_holds_are_busy_and_the_link_lives() -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        async with Peer.over(FdTransport.from_socket(ours), limits=Limits(send_queue=100_000)) as peer:
            for _ in range(50):
                try:
                    peer.notify("tell", ["x" * 50_000])
                except Busy:
                    break
            else:
                pytest.fail("nothing was refused")
            assert not peer.is_closed


@in_virtual_time
def test_a_timeout_names_the_seconds_that_were_really_left(run: Any) -> None:
    received: list[float] = []

    async def main() -> None:
        async with scripted(dialect="native") as (peer, script):

            @peer.handle("outer")
            async def outer(params: Any, ctx: Context) -> None:
                await anyio.sleep(5)
                with anyio.CancelScope(shield=True), pytest.raises(CallTimeout) as caught:
                    await ctx.call("inner", timeout=60)
                received.append(caught.value.seconds)

            script.send(request(1, "outer", {"_meta": {"becket": {"timeout_ms": 20_000}}}))
            await anyio.sleep(30)

    run(main)
    assert received == [pytest.approx(15)]


async def test_a_feature_that_was_not_announced_is_not_used() -> None:
    began = anyio.Event()
    cancelled = anyio.Event()
    async with memory_pair(dialect="native") as (left, right):

        @right.handle("wait")
        async def wait(params: None, ctx: Context) -> None:
            began.set()
            try:
                await anyio.sleep_forever()
            finally:
                cancelled.set()

        @right.handle("report")
        async def report(params: None, ctx: Context) -> None:
            await ctx.progress(1)

        left.limit_features(["deadline"])
        right.limit_features(["deadline"])
        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:
                group.start_soon(left.call, "wait")
                await began.wait()
                group.cancel_scope.cancel()
        await settled()
        assert not cancelled.is_set()
        with pytest.raises(RemoteError) as refused:
            await left.call("report")
        assert refused.value.meaning is Meaning.NOT_SUPPORTED


async def test_calls_that_gave_up_waiting_for_room_leave_nothing_behind() -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        async with Peer.over(FdTransport.from_socket(ours), limits=Limits(send_queue=100_000)) as peer:
            try:
                for _ in range(50):
                    peer.notify_nowait("tell", ["x" * 50_000])
            except Busy:
                pass
            for _ in range(5):
                with anyio.move_on_after(0.01) as scope:
                    await peer.call("ask", ["x" * 60_000], timeout=None)
                assert scope.cancelled_caught
            assert not peer.is_closed


async def test_the_next_event_of_a_handler_fails_when_its_caller_has_left() -> None:
    outcome: list[str] = []
    ended = anyio.Event()
    async with memory_pair(dialect="native") as (left, right):

        @right.handle("produce", thread=True)
        def produce(params: None, ctx: Context) -> None:
            try:
                while True:
                    anyio.from_thread.run(ctx.progress, 1)
            except Exception as error:
                outcome.append(type(error).__name__)
                anyio.from_thread.run_sync(ended.set)
                raise

        with anyio.fail_after(60):
            async with left.stream("produce") as run:
                async for _ in run:
                    break
            await ended.wait()
    assert outcome == ["RequestCancelled"]
