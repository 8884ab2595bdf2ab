"""Failures of streams: slow or leaving consumers, dying producers, late events."""

from __future__ import annotations

from contextlib import aclosing
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from tests.peer.children import QUICK
from tests.peer.scripted import notification, response, scripted

from becket import BadReply, CallTimeout, ConnectionLost, Context, Limits, Overflow, Peer, PeerCrashed, StreamOverrun
from becket.peer.streams import CallStream, Gap
from becket.testing import child, memory_pair, memory_transports

pytestmark = pytest.mark.loops

TICK = {"tick": Any}


async def numbers_of(run: CallStream[Any]) -> list[Any]:
    """Returns the events of a stream: the number of each, and how many each gap has dropped."""
    return [f"{event.dropped} dropped" if isinstance(event, Gap) else event["n"] async for event in run]


# -- a consumer that is too slow


@pytest.mark.process
async def test_a_stream_that_is_not_read_in_time_ends_with_an_error_and_the_link_lives() -> None:
    limits = QUICK.but(stream_events=10)
    seen: list[int] = []
    with anyio.fail_after(60):
        async with Peer.connect_process(child("ticks", 50), limits=limits) as peer:
            async with peer.stream("x", events=TICK) as run:
                await peer.call("y")  # after the stream's events: all of them are there and none was read
                with pytest.raises(StreamOverrun) as caught:
                    await collect(run, seen)
                with pytest.raises(StreamOverrun):
                    await run.result()
            assert await peer.call("y") == 50

    assert caught.value.limit == 10
    assert seen == list(range(len(seen)))  # the beginning is left, without a gap
    assert 10 <= len(seen) <= 11


async def collect(run: CallStream[Any], seen: list[int]) -> None:
    async for event in run:
        seen.append(event["n"])


@pytest.mark.process
async def test_a_stream_may_drop_its_oldest_events_and_reports_their_number() -> None:
    limits = QUICK.but(stream_events=10)
    with anyio.fail_after(60):
        async with (
            Peer.connect_process(child("ticks", 50), limits=limits) as peer,
            peer.stream("x", events=TICK, overflow=Overflow.DROP_OLDEST) as run,
        ):
            await peer.call("y")
            seen = await numbers_of(run)
            result = await run.result()

    assert seen == ["40 dropped", *range(40, 50)]
    assert (run.dropped, result) == (40, 50)


@pytest.mark.process
async def test_a_stream_is_bounded_by_bytes_too() -> None:
    limits = QUICK.but(stream_bytes=10_000)
    with anyio.fail_after(60):
        async with (
            Peer.connect_process(child("ticks", 50, 1000), limits=limits) as peer,
            peer.stream("x", events=TICK, overflow=Overflow.DROP_OLDEST) as run,
        ):
            await peer.call("y")
            seen = await numbers_of(run)

    assert seen == ["41 dropped", *range(41, 50)]


@pytest.mark.parametrize("way", ["one by one", "in batches", "without waiting"])
async def test_events_that_a_consumer_has_read_no_longer_count_against_the_bytes_of_a_stream(way: str) -> None:
    taken = 0
    async with (
        scripted(limits=Limits(stream_bytes=1_000)) as (peer, script),
        peer.stream("x", events=TICK) as run,
        aclosing(run.batches()) as batches,
    ):
        called = await script.receive()
        for number in range(50):
            script.send(notification("tick", {"n": number, "text": "a" * 200}))
            match way:
                case "one by one":
                    taken += (await anext(run))["n"] == number
                case "in batches":
                    taken += len(await anext(batches))
                case _:
                    taken += len(run.batch_nowait())
        script.send(response(called, "end"))
        with anyio.fail_after(60):
            assert await run.result() == "end"
    assert taken == 50


async def test_two_gaps_are_reported_separately_where_events_came_between() -> None:
    one, other = memory_transports()
    limits = Limits(stream_events=2)
    async with Peer.over(one, limits=limits) as peer, Peer.over(other) as server:

        async def send(*numbers: int) -> None:
            for number in numbers:
                await server.notify("tick", {"n": number})
            await server.call("seen")

        server.handle("never")(never)
        peer.handle("seen")(lambda _: None)
        with anyio.fail_after(60):
            async with peer.stream("never", events=TICK, overflow=Overflow.DROP_OLDEST) as run:
                seen: list[Any] = []
                await send(0, 1, 2, 3)
                seen += [await anext(run), await anext(run), await anext(run)]
                await send(4, 5, 6)
                seen += [await anext(run), await anext(run)]

    assert seen == [Gap(2), {"n": 2}, {"n": 3}, Gap(1), {"n": 5}]


async def never() -> None:
    await anyio.sleep_forever()


@pytest.mark.process
async def test_a_link_that_may_be_paused_loses_no_event_of_a_slow_consumer() -> None:
    limits = QUICK.but(stream_events=4000)  # pauses at a thousand; what one read brings fits well below the limit
    with anyio.fail_after(60):
        async with (
            Peer.connect_process(child("ticks", 20_000), limits=limits) as peer,
            peer.stream("x", events=TICK, pause_connection=True) as run,
        ):
            seen: list[int] = []
            async for event in run:
                seen.append(event["n"])
                if not len(seen) % 500:
                    await anyio.lowlevel.checkpoint()
            result = await run.result()

    assert seen == list(range(20_000))
    assert (run.dropped, result) == (0, 20_000)


async def test_other_calls_do_not_wait_for_a_stream_that_is_not_read() -> None:
    async with memory_pair() as (left, right):

        @right.handle("ticks")
        async def ticks(_: Any, ctx: Context) -> None:
            for number in range(1000):
                await ctx.notify("tick", {"n": number})

        right.handle("other")(lambda _: "answered")
        with anyio.fail_after(60):
            async with left.stream("ticks", events=TICK) as run:
                assert await left.call("other") == "answered"
                assert await numbers_of(run) == list(range(1000))


# -- many consumers


async def test_a_thousand_streams_get_every_event_though_one_of_them_is_dead() -> None:
    async with memory_pair(limits=Limits(outbound_calls=2000, inbound_requests=2000)) as (left, right):
        go = anyio.Event()

        @right.handle("wait")
        async def wait() -> None:
            await go.wait()

        seen: list[list[int]] = []
        opened = 0

        async def consume() -> None:
            nonlocal opened
            async with left.stream("wait", events=TICK) as run:
                opened += 1
                if opened == 1:
                    return  # this one leaves at once
                seen.append(await numbers_of(run))

        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                for _ in range(1000):
                    tasks.start_soon(consume)
                while opened < 1000:
                    await anyio.lowlevel.checkpoint()
                for number in range(3):
                    await right.notify("tick", {"n": number})
                go.set()

    assert seen == [[0, 1, 2]] * 999


async def test_a_stream_that_overruns_does_not_affect_other_streams() -> None:
    async with memory_pair(limits=Limits(stream_events=10)) as (left, right):
        received = anyio.Event()

        @right.handle("ticks")
        async def ticks(_: Any, ctx: Context) -> None:
            for number in range(50):
                await ctx.notify("tick", {"n": number})
                await anyio.lowlevel.checkpoint()
            received.set()
            await anyio.sleep_forever()

        @right.handle("wait")
        async def wait() -> str:
            await received.wait()
            return "done"

        with anyio.fail_after(60):
            async with (
                left.stream("ticks", events={"nothing": Any}),
                left.stream("wait", events=TICK) as slow,
                left.stream("wait", events=TICK, overflow=Overflow.DROP_OLDEST) as other,
            ):
                with pytest.raises(StreamOverrun):
                    await take_late(slow, received)
                assert await other.result() == "done"


async def take_late(run: CallStream[Any], received: anyio.Event) -> list[Any]:
    await received.wait()
    return await numbers_of(run)


# -- a consumer that leaves


async def test_the_producer_is_cancelled_when_its_consumer_leaves() -> None:
    cancelled = anyio.Event()
    async with memory_pair() as (left, right):

        @right.handle("ticks")
        async def ticks(_: Any, ctx: Context) -> None:
            try:
                number = 0
                while True:
                    await ctx.notify("tick", {"n": number})
                    number += 1
                    await anyio.lowlevel.checkpoint()
            finally:
                cancelled.set()

        with anyio.fail_after(60):
            async with left.stream("ticks", events=TICK) as run:
                async for event in run:
                    if event["n"] == 3:
                        break
            await cancelled.wait()


async def test_events_for_a_consumer_that_has_left_are_dropped() -> None:
    late: list[Any] = []
    async with memory_pair() as (left, right):
        right.handle("never")(never)
        left.methods.on("tick", unless_streamed=True)(lambda params: late.append(params))
        left.handle("seen")(lambda _: None)
        with anyio.fail_after(60):
            async with left.stream("never", events=TICK) as run:
                await right.notify("tick", {"n": 1})
                assert await anext(run) == {"n": 1}
            await right.notify("tick", {"n": 2})
            await right.call("seen")

    assert late == [{"n": 2}]  # without a subscription it is a notification like any other


# -- a producer that dies, or sends too long


@pytest.mark.process
async def test_a_producer_that_dies_ends_the_stream_once_after_all_that_it_sent() -> None:
    seen: list[int] = []
    with anyio.fail_after(60):
        async with (
            Peer.connect_process(child("dies_in_mid_stream", 5), limits=QUICK) as peer,
            peer.stream("x", events=TICK) as run,
        ):
            for _ in range(3):  # and it stays ended
                with pytest.raises(PeerCrashed) as caught:
                    await collect(run, seen)
                assert caught.value.exit_code == 4
            with pytest.raises(PeerCrashed):
                await run.result()

    assert seen == list(range(5))


@pytest.mark.process
async def test_events_that_come_after_the_response_do_not_reach_the_stream() -> None:
    late: list[int] = []
    over = anyio.Event()
    with anyio.fail_after(60):
        async with Peer.connect_process(child("ticks_after_the_answer", 3), limits=QUICK) as peer:
            peer.on("tick")(lambda params: late.append(params["n"]))
            peer.on("over")(lambda _: over.set())
            async with peer.stream("x", events=TICK) as run:
                assert await numbers_of(run) == []
                assert await run.result() == "answered"
            await over.wait()

    assert late == [0, 1, 2]


async def test_an_event_after_the_end_of_its_call_does_not_go_to_the_next_call() -> None:
    """Events belong to a call by its id alone, and an id is used once."""
    async with scripted(dialect="native") as (peer, script):
        for number in range(3):
            async with peer.stream("x", events=TICK, progress=Any) as run:
                called = await script.receive()
                script.send(
                    *(late(id, n) for id in range(1, called["id"]) for n in range(2)),
                    *(notification("$/progress", {"token": id, "value": {"n": -1}}) for id in range(1, called["id"])),
                    late(called["id"], number),
                    response(called),
                )
                assert await numbers_of(run) == [number]


def late(id: int, number: int) -> dict[str, Any]:
    return notification("tick", {"n": number, "_meta": {"becket": {"parent": id}}})


async def test_events_of_many_senders_arrive_in_the_order_in_which_they_were_sent() -> None:
    """One writer for a link, whole frames and a pipe keep the order of events."""
    sent: list[int] = []
    async with memory_pair() as (left, right):

        @right.handle("x")
        async def x(_: Any, ctx: Context) -> int:
            async def notify_ticks(sender: int) -> None:
                for _ in range(20):
                    sent.append(len(sent))
                    await ctx.notify("tick", {"n": sent[-1], "padding": "x" * sent[-1] * 50})
                    for _ in range(sender):
                        await anyio.lowlevel.checkpoint()

            async with anyio.create_task_group() as tasks:
                for sender in range(8):
                    tasks.start_soon(notify_ticks, sender)
            return len(sent)

        with anyio.fail_after(60):
            async with left.stream("x", {}, events=TICK) as run:
                assert await numbers_of(run) == list(range(160))
                assert await run.result() == 160


@pytest.mark.process
async def test_a_second_response_changes_nothing() -> None:
    with anyio.fail_after(60):
        async with Peer.connect_process(child("answers_twice"), limits=QUICK) as peer:
            async with peer.stream("x", events=TICK) as run:
                assert await numbers_of(run) == []
                assert await run.result() == 1
            assert await peer.call("y") == 1


async def test_an_event_that_cannot_be_decoded_ends_the_stream_and_the_link_lives() -> None:
    async with memory_pair() as (left, right):

        @right.handle("ticks")
        async def ticks(_: Any, ctx: Context) -> str:
            await ctx.notify("tick", {"n": 0})
            await ctx.notify("tick", {"n": "nought"})
            await anyio.sleep_forever()
            return "never"

        right.handle("other")(lambda _: "answered")
        seen: list[Any] = []
        with anyio.fail_after(60):
            async with left.stream("ticks", events={"tick": dict[str, int]}) as run:
                with pytest.raises(BadReply):
                    await collect(run, seen)
                with pytest.raises(BadReply):
                    await run.result()
            assert await left.call("other") == "answered"

    assert seen == [0]


async def test_a_stream_that_becomes_silent_times_out_after_its_events() -> None:
    async with memory_pair() as (left, right):

        @right.handle("ticks")
        async def ticks(_: Any, ctx: Context) -> None:
            for number in range(3):
                await ctx.notify("tick", {"n": number})
            await anyio.sleep_forever()

        seen: list[int] = []
        with anyio.fail_after(60):
            async with left.stream("ticks", events=TICK, idle_timeout=1.0) as run:
                with pytest.raises(CallTimeout):
                    await collect(run, seen)

    assert seen == [0, 1, 2]


async def test_a_stream_ends_when_its_peer_is_closed() -> None:
    async with memory_pair() as (left, right):
        right.handle("never")(never)
        with anyio.fail_after(60):
            async with left.stream("never", events=TICK) as run, anyio.create_task_group() as tasks:
                tasks.start_soon(left.aclose)
                with pytest.raises(ConnectionLost):
                    await numbers_of(run)


# -- two tasks at one stream


async def test_tasks_that_wait_for_events_and_for_the_result_of_one_stream_all_continue_at_its_end() -> None:
    async with memory_pair() as (left, right):

        @right.handle("ticks")
        async def ticks(_: Any, ctx: Context) -> str:
            for number in range(3):
                await ctx.notify("tick", {"n": number})
                await anyio.wait_all_tasks_blocked()
            return "done"

        seen: list[int] = []
        results: list[str] = []

        async def wait(run: CallStream[Any]) -> None:
            results.append(await run.result())

        with anyio.fail_after(60):
            async with left.stream("ticks", events=TICK) as run, anyio.create_task_group() as tasks:
                tasks.start_soon(collect, run, seen)
                tasks.start_soon(wait, run)
                tasks.start_soon(wait, run)

    assert results == ["done", "done"]
    assert seen == sorted(seen)  # waiting for the result drops the events that were not read


async def test_a_result_that_is_awaited_without_taking_the_events_does_not_starve_a_producer_that_counts() -> None:
    async with memory_pair(dialect="native") as (left, right):
        assert "credit" in left.features

        @right.handle("ticks")
        async def ticks(_: Any, ctx: Context) -> str:
            for number in range(2000):
                await ctx.progress({"n": number})
            return "done"

        with anyio.fail_after(60):
            async with left.stream("ticks") as run:
                assert await run.result() == "done"
