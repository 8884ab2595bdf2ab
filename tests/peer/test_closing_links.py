"""Closing a link with calls, handlers and streams under way, at both ends."""

from __future__ import annotations

import gc
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import anyio.from_thread
import anyio.lowlevel
import pytest
from tests.peer.scripted import Script, notification, request, response, scripted, settled

from becket import BatchCall, ConnectionLost, Context, DisconnectReason, Limits, Peer
from becket.testing import memory_pair, memory_transports

pytestmark = pytest.mark.loops


async def never() -> None:
    await anyio.sleep_forever()


async def open_stream(peer: Peer) -> None:
    async with peer.stream("x") as run:
        await run.result()


async def call_with_events(peer: Peer) -> None:
    await peer.call("x", on={"tick": lambda _: None})


async def call_batch(peer: Peer) -> None:
    [outcome] = await peer.batch([BatchCall("x")])
    raise outcome


Way = Callable[[Peer], Awaitable[object]]
WAYS: dict[str, Way] = {
    "call": lambda peer: peer.call("x"),
    "call without a deadline": lambda peer: peer.call("x", timeout=None),
    "call with events": call_with_events,
    "stream": open_stream,
    "batch": call_batch,
}


# -- our calls


@pytest.mark.parametrize("way", list(WAYS.values()), ids=list(WAYS))
async def test_pending_calls_settle_when_the_peer_is_closed(
    way: Way,
) -> None:
    reasons: list[DisconnectReason] = []

    async def ask(peer: Peer) -> None:
        with pytest.raises(ConnectionLost) as caught:
            await way(peer)
        reasons.append(caught.value.reason)

    async with memory_pair() as (left, right):
        right.handle("x")(never)
        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                for _ in range(3):
                    tasks.start_soon(ask, left)
                await settled()
                await left.aclose()

    assert reasons == [DisconnectReason.LOCAL_CLOSE] * 3


@pytest.mark.parametrize("way", [*WAYS.values(), lambda peer: peer.notify("x")], ids=[*WAYS, "notification"])
async def test_calls_and_notifications_after_the_end_are_refused(way: Way) -> None:
    async with memory_pair() as (left, right):
        await left.aclose()
        for peer, reason in ((left, DisconnectReason.LOCAL_CLOSE), (right, DisconnectReason.REMOTE_CLOSE)):
            with anyio.fail_after(60):
                await peer.wait_closed()
                with pytest.raises(ConnectionLost) as caught:
                    await way(peer)
            assert caught.value.reason is reason
        with pytest.raises(ConnectionLost):
            left.notify_nowait("x")


async def test_each_failed_call_gets_its_own_error() -> None:
    async with memory_pair() as (left, _):
        await left.aclose()
        errors = []
        for _ in range(3):
            with pytest.raises(ConnectionLost) as caught:
                await left.call("x")
            errors.append(caught.value)

    assert len({id(error) for error in errors}) == 3


async def test_a_peer_shows_whether_and_why_it_has_ended() -> None:
    async with memory_pair(name="notes") as (left, _):
        assert (left.is_closed, left.close_reason) == (False, None)
        assert "notes" in repr(left)
        await left.aclose()
        assert left.is_closed
        assert left.close_reason is not None
        assert left.close_reason.reason is DisconnectReason.LOCAL_CLOSE


async def test_every_waiter_for_the_end_gets_the_reason() -> None:
    reasons: list[DisconnectReason] = []

    async def wait(peer: Peer) -> None:
        reasons.append((await peer.wait_closed()).reason)

    async with memory_pair() as (left, right):
        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                for _ in range(3):
                    tasks.start_soon(wait, right)
                await settled()
                with anyio.move_on_after(0):
                    await right.wait_closed()  # one that does not wait for long
                await left.aclose()
        reasons.append((await right.wait_closed()).reason)

    assert reasons == [DisconnectReason.REMOTE_CLOSE] * 4


async def test_cancelled_waits_for_the_end_leave_nothing_behind() -> None:
    async def look(peer: Peer) -> None:
        with anyio.CancelScope() as scope:
            scope.cancel()
            await peer.wait_closed()

    async with memory_pair() as (left, _):
        await look(left)
        gc.collect()
        before = len(gc.get_objects())
        for _ in range(1000):
            await look(left)
        gc.collect()

        assert len(gc.get_objects()) - before < 500


# -- requests of the other peer


async def test_closing_cancels_every_handler_whose_clean_up_runs() -> None:
    ended: list[str] = []
    async with scripted() as (peer, script):

        @peer.handle("wait")
        async def wait(params: list[str]) -> None:
            try:
                await anyio.sleep_forever()
            finally:
                ended.append(params[0])

        @peer.on("told")
        async def on_notification() -> None:
            try:
                await anyio.sleep_forever()
            finally:
                ended.append("told")

        script.send(request(1, "wait", ["a"]), request(2, "wait", ["b"]), notification("told"), notification("told"))
        await settled()
        with anyio.fail_after(60):
            await peer.aclose()
        await settled()

    assert sorted(ended) == ["a", "b", "told"]  # the second notification was never begun


async def test_the_clean_up_of_a_handler_may_still_wait_when_the_link_has_ended() -> None:
    cleaned = anyio.Event()
    async with memory_pair() as (left, right):

        @right.handle("wait")
        async def wait() -> None:
            try:
                await anyio.sleep_forever()
            finally:
                with anyio.CancelScope(shield=True):
                    for _ in range(5):
                        await anyio.lowlevel.checkpoint()
                    with pytest.raises(ConnectionLost):
                        await right.call("x")
                    cleaned.set()

        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(lose, left, "wait")
                await settled()
                await right.aclose()
                with anyio.fail_after(60):
                    await cleaned.wait()
                scope.cancel()


async def lose(peer: Peer, method: str) -> None:
    with pytest.raises(ConnectionLost):
        await peer.call(method)


async def test_a_function_in_a_thread_does_not_hold_up_the_end() -> None:
    began = anyio.Event()
    release, finished = threading.Event(), threading.Event()
    async with memory_pair() as (left, right):

        @right.handle("work", thread=True)
        def work() -> None:
            anyio.from_thread.run_sync(began.set)
            assert release.wait(60)
            finished.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lose, left, "work")
            with anyio.fail_after(60):
                await began.wait()
                await right.aclose()
            assert not finished.is_set()
            release.set()
            await anyio.to_thread.run_sync(finished.wait, 5)


async def test_a_function_in_a_thread_may_close_its_peer() -> None:
    async with memory_pair() as (left, right):

        @right.handle("leave", thread=True)
        def leave() -> None:
            anyio.from_thread.run(right.aclose)

        with anyio.fail_after(60):
            await lose(left, "leave")


async def test_a_request_during_the_final_flush_is_rejected() -> None:
    async with scripted(limits=Limits(flush_grace=5)) as (peer, script), anyio.create_task_group() as tasks:
        peer.handle("x")(lambda: pytest.fail("it was run"))
        script.queued = 10
        tasks.start_soon(peer.aclose)
        await settled()
        assert not script.is_closed
        script.send(request(1, "x"))
        assert (await script.receive())["error"]["code"] == 1005
        script.make_room()


async def test_a_notification_sent_just_before_close_still_arrives() -> None:
    received: list[int] = []
    async with memory_pair() as (left, right):
        right.on("tell")(lambda params: received.append(params[0]))
        for number in range(100):
            left.notify_nowait("tell", [number])
        with anyio.fail_after(60):
            await left.aclose()
            await right.wait_closed()

    assert received == list(range(100))


async def test_a_response_in_the_same_chunk_as_the_end_settles_its_call() -> None:
    results: list[object] = []
    async with scripted() as (peer, script):

        async def call() -> None:
            results.append(await peer.call("x"))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            called = await script.receive()
            script.send(response(called, "in time"))
            script.leave()

    assert results == ["in time"]


# -- from wherever


async def test_a_callback_of_a_call_may_close_its_peer() -> None:
    async with memory_pair() as (left, right):

        @right.handle("x")
        async def report(_: Any, ctx: Context) -> None:
            await ctx.progress(1)
            await anyio.sleep_forever()

        async def close(_: Any) -> None:
            await left.aclose()

        with anyio.fail_after(60), pytest.raises(ConnectionLost) as caught:
            await left.call("x", on_progress=close)

    assert caught.value.reason is DisconnectReason.LOCAL_CLOSE


async def test_a_consumer_may_close_the_peer_of_its_stream() -> None:
    async with memory_pair() as (left, right):

        @right.handle("x")
        async def report(_: Any, ctx: Context) -> None:
            while True:
                await ctx.progress(1)
                await anyio.lowlevel.checkpoint()

        with anyio.fail_after(60):
            async with left.stream("x") as run:
                assert await anext(run) == 1
                await left.aclose()
                with pytest.raises(ConnectionLost):
                    await run.result()


async def test_both_ends_may_close_at_once_and_many_times() -> None:
    async with memory_pair() as (left, right):
        right.handle("x")(never)
        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(lose, left, "x")
                await settled()
                for _ in range(4):
                    tasks.start_soon(left.aclose)
                    tasks.start_soon(right.aclose)
        await left.aclose()
        await right.aclose()


async def test_many_links_open_and_close_one_after_the_other() -> None:
    with anyio.fail_after(60):
        for number in range(50):
            async with memory_pair() as (left, right):
                right.handle("echo")(lambda params: params)
                assert await left.call("echo", [number]) == [number]


async def test_a_peer_may_be_awaited_and_closed_explicitly() -> None:
    one, other = memory_transports()
    left, right = await Peer.over(one), await Peer.over(other)
    right.handle("echo")(lambda params: params)
    with anyio.fail_after(60):
        assert await left.call("echo", [1]) == [1]
        await left.aclose()
        await right.aclose()


async def test_a_peer_is_an_async_context_manager() -> None:
    one, other = memory_transports()
    async with await Peer.over(one) as left, await Peer.over(other) as right:
        right.handle("echo")(lambda params: params)
        assert await left.call("echo", [1]) == [1]
    assert left.is_closed


# -- a loop that is over


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("timeout", [60.0, None])
def test_a_peer_whose_loop_has_ended_fails_at_once_and_never_hangs(backend: str, timeout: float | None) -> None:
    async def leave_open() -> Peer:
        one, _ = memory_transports()
        return await Peer.over(one)

    peer = anyio.run(leave_open, backend=backend)

    async def use() -> None:
        with anyio.move_on_after(5) as scope:
            with pytest.raises((RuntimeError, ConnectionLost)):
                await peer.call("x", timeout=timeout)
        assert not scope.cancel_called

    anyio.run(use, backend=backend)


class Stuck(Script):
    """An end of a link that reads nothing."""

    def write(self, data: bytes) -> None:
        super().write(data)
        self.queued += len(data)


async def test_no_event_is_delivered_after_the_end_of_the_link() -> None:
    script = Stuck()
    received: list[int] = []
    async with Peer.over(script, limits=Limits(send_queue=1_000)) as peer:

        def take(params: list[int]) -> None:
            received.append(params[0])
            if params[0] == 2:
                peer.notify_nowait("short")
                peer.notify("long", ["x" * 10_000])  # type: ignore[unused-awaitable, unused-ignore]
                assert peer.is_closed

        async def call() -> None:
            with pytest.raises(ConnectionLost):
                await peer.call("x", on={"tick": take})

        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(call)
                await script.receive()
                script.queued = 0
                script.send(notification("tick", [0]), notification("tick", [1]))
                script.send(*(notification("tick", [number]) for number in range(2, 10)))

    assert received == [0, 1, 2]
