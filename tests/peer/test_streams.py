"""A call and its events: receivers, order, types, and credit."""

from __future__ import annotations

from typing import Any

import anyio
import anyio.lowlevel
import msgspec
import pytest
from msgspec import Struct
from msgspec.structs import replace
from tests.peer.scripted import Message, Script, in_virtual_time, notification, request, response, scripted, settled

from becket import (
    DIALECTS,
    BadReply,
    CallTimeout,
    ConnectionLost,
    Context,
    DisconnectReason,
    Limits,
    Overflow,
    Peer,
    RemoteError,
)
from becket.errors import LocalProtocolError, NotSupported
from becket.peer.streams import Gap
from becket.testing import child, memory_pair

pytestmark = pytest.mark.loops


class Tick(Struct):
    n: int


class Text(Struct):
    text: str


def tick(number: int) -> Message:
    return notification("tick", {"n": number})


def progress(called: Message, value: object) -> Message:
    return notification("$/progress", {"token": called["id"], "value": value})


class Hasty(Script):
    """Responds within the write of the request, as the quickest possible peer."""

    def write(self, data: bytes) -> None:
        super().write(data)
        for called in self.unread():
            if "id" in called:
                self.send(tick(0), progress(called, "p0"), tick(1), progress(called, "p1"), response(called, "done"))


# -- events right after the request


async def test_events_that_come_with_the_response_before_the_call_has_returned_are_not_missed() -> None:
    async with Peer.over(Hasty()) as peer:
        async with peer.stream("x", events={"tick": Tick}) as run:
            assert [event async for event in run] == [Tick(0), Tick(1)]
            assert await run.result() == "done"
        async with peer.stream("x") as run:
            assert [event async for event in run] == ["p0", "p1"]
            assert await run.result() == "done"
        ticks: list[Any] = []
        values: list[Any] = []
        assert await peer.call("x", on={"tick": ticks.append}, on_progress=values.append) == "done"
        assert (ticks, values) == ([{"n": 0}, {"n": 1}], ["p0", "p1"])


@pytest.mark.process
async def test_no_event_of_a_child_that_responds_at_once_is_missed() -> None:
    async with Peer.connect_process(child("ticks", 50)) as peer:
        for _ in range(5):
            with anyio.fail_after(60):
                async with peer.stream("x", events={"tick": Tick}) as run:
                    assert [event.n async for event in run] == list(range(50))
                    assert await run.result() == 50


# -- reading events


async def test_a_stream_gives_typed_events_in_order_and_then_the_result() -> None:
    async with memory_pair() as (left, right):

        @right.handle("count")
        async def count(params: dict[str, int], ctx: Context) -> str:
            for number in range(params["to"]):
                await ctx.notify("tick", {"n": number})
            return "counted"

        with anyio.fail_after(60):
            async with left.stream("count", {"to": 5}, events={"tick": Tick}, returns=str) as run:
                assert [event async for event in run] == [Tick(number) for number in range(5)]
                assert await run.result() == "counted"


async def test_several_kinds_of_events_keep_their_order_among_each_other() -> None:
    async with scripted() as (peer, script):
        async with peer.stream("x", events={"tick": Tick, "text": str}) as run:
            called = await script.receive()
            script.send(tick(0), notification("other"), {"jsonrpc": "2.0", "method": "text", "params": ["a"]}, tick(1))
            with pytest.raises(BadReply):  # the params of a notification are never a plain string
                [event async for event in run]
        async with peer.stream("x", events={"tick": Tick, "text": list[str]}) as run:
            script.unread()
            called = {"id": called["id"] + 1}
            script.send(tick(0), notification("text", ["a"]), tick(1), notification("text", ["b"]), response(called))

            assert [event async for event in run] == [Tick(0), ["a"], Tick(1), ["b"]]


async def test_batches_give_what_has_come_since_the_last_time() -> None:
    async with scripted() as (peer, script), peer.stream("x", events={"tick": Tick}) as run:
        called = await script.receive()
        batches = run.batches()
        script.send(tick(0), tick(1), tick(2))
        assert await anext(batches) == [Tick(0), Tick(1), Tick(2)]
        script.send(tick(3))
        script.send(tick(4), response(called, "done"))
        assert await anext(batches) == [Tick(3), Tick(4)]
        with pytest.raises(StopAsyncIteration):
            await anext(batches)
        assert await run.result() == "done"


async def test_available_events_can_be_read_without_waiting() -> None:
    async with scripted() as (peer, script), peer.stream("x", events={"tick": Tick}) as run:
        assert run.batch_nowait() == []
        script.send(tick(0), tick(1))
        assert run.batch_nowait() == [Tick(0), Tick(1)]


async def test_events_before_an_undecodable_one_are_not_lost_in_its_batch() -> None:
    async with scripted() as (peer, script), peer.stream("x", events={"tick": Tick}) as run:
        script.send(tick(0), tick(1), notification("tick", {"n": "two"}), tick(3))
        batches = run.batches()

        assert await anext(batches) == [Tick(0), Tick(1)]
        with pytest.raises(BadReply):
            await anext(batches)
        with pytest.raises(BadReply):
            await run.result()


async def test_an_event_that_cannot_be_decoded_fails_the_call_although_its_response_is_there() -> None:
    async with scripted() as (peer, script), peer.stream("x", events={"tick": Tick}) as run:
        script.send(notification("tick", {"n": "zero"}), tick(1), response(await script.receive(), "done"))

        with pytest.raises(BadReply):
            await anext(run)
        with pytest.raises(BadReply):
            await anext(run)
        with pytest.raises(BadReply):
            await run.result()


async def test_the_result_is_there_after_the_block_if_it_came_within() -> None:
    async with scripted() as (peer, script):
        async with peer.stream("x") as run:
            script.send(response(await script.receive(), "done"))
            assert [event async for event in run] == []
        assert await run.result() == "done"


async def test_the_result_of_a_stream_that_was_left_early_raises_an_error() -> None:
    async with scripted() as (peer, script):
        async with peer.stream("x") as run:
            await script.receive()
        with pytest.raises(LocalProtocolError):
            await run.result()
        assert (await script.receive())["method"] == "$/cancelRequest"


async def test_a_stream_is_opened_once() -> None:
    async with scripted() as (peer, script):
        run = peer.stream("x")
        async with run:
            await script.receive()
        with pytest.raises(LocalProtocolError):
            async with run:
                pass


async def test_the_error_of_the_call_ends_the_stream_after_its_events() -> None:
    async with memory_pair() as (left, right):

        @right.handle("fail")
        async def fail(_: Any, ctx: Context) -> None:
            await ctx.progress(1)
            raise LookupError

        seen: list[Any] = []
        with anyio.fail_after(60):
            async with left.stream("fail") as run:
                seen.append(await anext(run))
                with pytest.raises(RemoteError):
                    await anext(run)
                with pytest.raises(RemoteError):
                    await run.result()

    assert seen == [1]


# -- callbacks


async def test_callbacks_get_every_event_before_the_call_returns_in_their_annotated_type() -> None:
    seen: list[Any] = []
    async with memory_pair() as (left, right):

        @right.handle("count")
        async def count(_: Any, ctx: Context) -> str:
            for number in range(3):
                await ctx.notify("tick", {"n": number})
                await ctx.progress([number])
                await ctx.notify("bell")
            return "counted"

        def on_tick(event: Tick) -> None:
            seen.append(event)

        def on_bell() -> None:
            seen.append("bell")

        def on_progress(value: list[int]) -> None:
            seen.append(value)

        with anyio.fail_after(60):
            result = await left.call("count", on={"tick": on_tick, "bell": on_bell}, on_progress=on_progress)

    assert result == "counted"
    assert seen == [event for number in range(3) for event in (Tick(number), [number], "bell")]


async def test_async_callbacks_are_awaited_one_after_the_other_and_only_their_call_waits() -> None:
    seen: list[str] = []
    release = anyio.Event()
    results: list[object] = []
    async with memory_pair() as (left, right):
        right.handle("echo")(lambda params: params)

        @right.handle("count")
        async def count(_: Any, ctx: Context) -> str:
            for number in range(3):
                await ctx.progress(number)
                await ctx.notify("tick", {"n": number})
            return "counted"

        async def on_progress(value: int) -> None:
            seen.append(f"begin {value}")
            await release.wait()
            seen.append(f"end {value}")

        def on_tick(event: Tick) -> None:
            seen.append(f"tick {event.n}")

        async def call() -> None:
            results.append(await left.call("count", on_progress=on_progress, on={"tick": on_tick}))

        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(call)
                await settled()
                assert await left.call("echo", [1]) == [1]  # while the first callback hangs
                assert (seen, results) == (["begin 0"], [])
                release.set()

    assert results == ["counted"]
    assert seen == [step for number in range(3) for step in (f"begin {number}", f"end {number}", f"tick {number}")]


@pytest.mark.parametrize("before", [0, 100])
@pytest.mark.parametrize("is_async", [False, True])
async def test_an_error_in_a_callback_fails_the_call_with_that_error_and_ends_it_at_the_other_peer(
    is_async: bool, before: int
) -> None:
    class OwnError(Exception): ...

    calls: list[int] = []

    def fail(event: Tick) -> None:
        calls.append(event.n)
        if event.n == before:
            raise OwnError(event.n)

    async def fail_async(event: Tick) -> None:
        fail(event)

    async with scripted() as (peer, script):

        async def call() -> None:
            with pytest.raises(OwnError) as caught:
                await peer.call("x", on={"tick": fail_async if is_async else fail})
            assert caught.value.args == (before,)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            called = await script.receive()
            script.send(*map(tick, range(before + 3)))
            assert (await script.receive())["method"] == "$/cancelRequest"
            script.send(response(called, "too late"))

    assert calls == list(range(before + 1))


@pytest.mark.parametrize("is_async", [False, True])
async def test_an_error_in_a_callback_wins_over_a_response_in_the_same_chunk(is_async: bool) -> None:
    def fail() -> None:
        raise KeyError("mine")

    async def fail_async() -> None:
        fail()

    async with Peer.over(Hasty()) as peer:
        with pytest.raises(KeyError, match="mine"):
            await peer.call("x", on={"tick": fail_async if is_async else fail})


@pytest.mark.parametrize("error", [msgspec.ValidationError("mine"), UnicodeDecodeError("utf-8", b"", 0, 1, "mine")])
async def test_a_validation_error_raised_by_a_callback_is_not_a_bad_response(error: Exception) -> None:
    def fail() -> None:
        raise error

    async with Peer.over(Hasty()) as peer:
        with pytest.raises(type(error)) as caught:
            await peer.call("x", on={"tick": fail})

    assert caught.value is error


@pytest.mark.parametrize("is_async", [False, True])
async def test_an_event_that_a_callback_cannot_take_is_a_bad_response_and_the_link_lives(is_async: bool) -> None:
    def on_tick(event: Text) -> None:
        pytest.fail("it was called")

    async def on_tick_async(event: Text) -> None:
        pytest.fail("it was called")

    async with Peer.over(Hasty()) as peer:
        with pytest.raises(BadReply):
            await peer.call("x", on={"tick": on_tick_async if is_async else on_tick})
        assert await peer.call("x") == "done"


async def test_events_that_come_with_the_end_of_the_link_are_dropped() -> None:
    seen: list[int] = []
    async with scripted() as (peer, script), anyio.create_task_group() as tasks:
        link = peer._link

        def on_tick(event: Tick) -> None:
            seen.append(event.n)
            if event.n == 40:
                link.disconnect(ConnectionLost(DisconnectReason.REMOTE_VIOLATION, "enough"))

        async def call() -> None:
            with pytest.raises(ConnectionLost):
                await peer.call("x", on={"tick": on_tick})

        tasks.start_soon(call)
        await script.receive()
        script.send(*map(tick, range(200)))

    assert seen[:41] == list(range(41))
    assert len(seen) < 41 + 16  # the rest of a few that are handed out together


async def test_a_task_that_waits_for_an_event_ends_when_another_task_leaves_the_stream() -> None:
    async with scripted() as (peer, script):
        run = peer.stream("x", events={"tick": Tick})

        async def wait() -> None:
            with pytest.raises(LocalProtocolError, match="left before its response arrived"):
                await anext(run)

        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                await run.__aenter__()
                await script.receive()
                tasks.start_soon(wait)
                await anyio.wait_all_tasks_blocked()
                await run.__aexit__()


async def test_one_undecodable_event_among_many_is_a_bad_response() -> None:
    seen: list[int] = []

    def on_tick(event: Tick) -> None:
        seen.append(event.n)

    async with scripted() as (peer, script), anyio.create_task_group() as tasks:

        async def call() -> None:
            with pytest.raises(BadReply):
                await peer.call("x", on={"tick": on_tick})

        tasks.start_soon(call)
        await script.receive()
        script.send(*map(tick, range(100)), {**tick(100), "params": {"n": "many"}}, tick(101))
        assert (await script.receive())["method"] == "$/cancelRequest"

    assert seen == list(range(100))


async def test_a_callback_with_too_many_parameters_is_refused_before_anything_is_sent() -> None:
    def on_tick(event: Tick, context: object) -> None: ...

    async with scripted() as (peer, script):
        with pytest.raises(TypeError):
            await peer.call("x", on={"tick": on_tick})

        assert script.unread() == []


async def test_a_call_with_callbacks_times_out_like_any_other() -> None:
    async def on_tick() -> None: ...

    async with scripted() as (peer, script):
        for callback in (on_tick, lambda: None):
            with pytest.raises(CallTimeout):
                await peer.call("x", timeout=0.01, on={"tick": callback})
            await script.receive()
            assert (await script.receive())["method"] == "$/cancelRequest"


# -- the call of an event


async def test_two_subscriptions_to_the_same_notification_both_get_it() -> None:
    ticks = {"tick": Tick}
    async with scripted() as (peer, script), peer.stream("a", events=ticks) as a, peer.stream("b", events=ticks) as b:
        first, second = await script.receive(), await script.receive()
        script.send(tick(0), response(first), tick(1), response(second))

        assert [event.n async for event in a] == [0]
        assert [event.n async for event in b] == [0, 1]


async def test_progress_goes_to_the_call_that_it_names_alone() -> None:
    async with scripted() as (peer, script), peer.stream("a") as one, peer.stream("b") as other:
        first, second = await script.receive(), await script.receive()
        script.send(progress(first, 1), progress(second, 2), progress(first, 3), response(second), response(first))

        assert [event async for event in one] == [1, 3]
        assert [event async for event in other] == [2]


@pytest.mark.parametrize(
    "params",
    [
        None,
        [],
        {},
        {"token": 4711, "value": 1},
        {"token": "1", "value": 1},
        {"token": None},
        {"value": 1},
        {"token": {}},
    ],
)
async def test_progress_that_names_no_call_is_ignored(params: object) -> None:
    async with scripted() as (peer, script):
        script.send(notification("$/progress", params))
        async with peer.stream("x") as run:
            called = await script.receive()
            script.send(notification("$/progress", params), progress(called, 1), response(called))

            assert [event async for event in run] == [1]
        script.send(notification("$/progress", params), progress(called, 2))
        assert not peer.is_closed


async def test_progress_without_a_value_is_null() -> None:
    async with scripted() as (peer, script), peer.stream("x") as run:
        called = await script.receive()
        script.send(notification("$/progress", {"token": called["id"]}), response(called))

        assert [event async for event in run] == [None]


async def test_a_dialect_without_progress_refuses_before_anything_is_sent() -> None:
    speechless = replace(DIALECTS["plain"], name="speechless", progress=None)
    async with scripted(dialect=speechless) as (peer, script):
        with pytest.raises(NotSupported):
            await peer.call("x", on_progress=lambda _: None)
        with pytest.raises(NotSupported):
            async with peer.stream("x"):
                pass
        assert script.unread() == []
        async with peer.stream("x", events={"tick": Tick}) as run:
            script.send(tick(0), response(await script.receive()))
            assert [event.n async for event in run] == [0]


async def test_a_handler_cannot_report_where_the_dialect_has_no_progress() -> None:
    speechless = replace(DIALECTS["plain"], name="speechless", progress=None)
    async with memory_pair(dialect=speechless) as (left, right):

        @right.handle("x")
        async def report(_: Any, ctx: Context) -> str:
            try:
                await ctx.progress(1)
            except NotSupported:
                return "not supported"
            return "reported"

        assert await left.call("x") == "not supported"


# -- time


async def test_the_timeout_between_events_is_no_deadline_for_the_other_peer() -> None:
    async with scripted(dialect="native") as (peer, script):
        async with peer.stream("x", {}, idle_timeout=30):
            called = await script.receive()
            assert "timeout_ms" not in called["params"]["_meta"]["becket"]
        assert (await script.receive())["method"] == "$/cancelRequest"
        async with peer.stream("x", {}, idle_timeout=30, timeout=20):
            called = await script.receive()
            assert 10_000 < called["params"]["_meta"]["becket"]["timeout_ms"] <= 20_000


@in_virtual_time
def test_a_stream_has_a_limit_in_all_if_it_is_given_one(run: Any) -> None:
    async def main() -> None:
        async with memory_pair() as (left, right):

            @right.handle("endless")
            async def endless(_: Any, ctx: Context) -> None:
                while True:
                    await ctx.progress(1)
                    await anyio.sleep(1)

            with anyio.fail_after(60):
                async with left.stream("endless", timeout=10, idle_timeout=5) as stream:
                    with pytest.raises(CallTimeout) as caught:
                        async for _ in stream:
                            pass
        assert caught.value.seconds == 10

    run(main)


async def test_a_stream_within_a_request_ends_with_the_deadline_of_the_request_whatever_its_events() -> None:
    outcomes: list[BaseException] = []
    async with scripted(dialect="native") as (peer, script):

        @peer.handle("outer")
        async def outer() -> None:
            try:
                async with peer.stream("inner", {}, events={"tick": Tick}) as run:
                    with anyio.CancelScope(shield=True):
                        async for _ in run:
                            pass
            except CallTimeout as error:
                outcomes.append(error)
                raise

        script.send(request(1, "outer", {"_meta": {"becket": {"timeout_ms": 50}}}))
        inner = await script.receive()
        assert inner["params"]["_meta"]["becket"]["timeout_ms"] <= 50
        script.send(tick(0))
        received = [await script.receive(), await script.receive()]

    assert {message.get("method", message.get("id")) for message in received} == {"$/cancelRequest", 1}


# -- credit


async def test_credit_delays_a_producer_until_its_events_are_read() -> None:
    sent = 0
    async with memory_pair(dialect="native") as (left, right):

        @right.handle("count")
        async def count(_: Any, ctx: Context) -> None:
            nonlocal sent
            for number in range(2000):
                await ctx.progress(number)
                sent += 1

        right.handle("echo")(lambda params: params)
        with anyio.fail_after(60):
            async with left.stream("count") as run:
                await settled()
                held = sent
                assert 0 < held < 2000
                # Its events are not read, and this affects neither a call nor another stream.
                assert await left.call("echo", {"a": 1}) == {"a": 1}
                async with left.stream("count") as other:
                    assert [event async for event in other] == list(range(2000))
                assert [event async for event in run] == list(range(2000))


async def test_tasks_of_one_handler_that_wait_for_credit_all_continue() -> None:
    async with memory_pair(dialect="native") as (left, right):

        @right.handle("count")
        async def count(_: Any, ctx: Context) -> str:
            async with anyio.create_task_group() as tasks:
                for number in range(600):
                    tasks.start_soon(ctx.progress, number)
            return "counted"

        with anyio.fail_after(60):
            async with left.stream("count") as run:
                await settled()
                assert sorted([event async for event in run]) == list(range(600))
                assert await run.result() == "counted"


@pytest.mark.parametrize("overflow", list(Overflow))
async def test_credit_never_exceeds_the_capacity_of_a_stream(overflow: Overflow) -> None:
    limits = Limits(stream_events=10)
    async with memory_pair(dialect="native", limits=limits) as (left, right):

        @right.handle("count")
        async def count(_: Any, ctx: Context) -> str:
            for number in range(100):
                await ctx.progress(number)
            return "counted"

        with anyio.fail_after(60):
            async with left.stream("count", overflow=overflow) as run:
                await settled()
                assert [event async for event in run] == list(range(100))
                assert await run.result() == "counted"


async def test_events_that_are_dropped_for_their_size_do_not_hold_their_producer_back_for_ever() -> None:
    limits = Limits(stream_bytes=1000)
    async with memory_pair(dialect="native", limits=limits) as (left, right):

        @right.handle("count")
        async def count(_: Any, ctx: Context) -> str:
            for _number in range(1000):
                await ctx.progress("x" * 90)
            return "counted"

        with anyio.fail_after(60):
            async with left.stream("count", overflow=Overflow.DROP_OLDEST) as run:
                await settled()
                events = [event async for event in run]
                assert await run.result() == "counted"

    dropped = sum(event.dropped for event in events if isinstance(event, Gap))
    assert dropped + sum(not isinstance(event, Gap) for event in events) == 1000


async def test_a_producer_that_waits_for_credit_ends_when_its_caller_leaves_or_its_link_does() -> None:
    ended: list[str] = []
    async with memory_pair(dialect="native") as (left, right):

        @right.handle("count")
        async def count(params: dict[str, str], ctx: Context) -> None:
            try:
                while True:
                    await ctx.progress(1)
            finally:
                ended.append(params["name"])

        with anyio.fail_after(60):
            async with left.stream("count", {"name": "left early"}):
                await settled()
            await settled()
            assert ended == ["left early"]
            async with left.stream("count", {"name": "closed"}) as run:
                await settled()
                await right.aclose()
                with pytest.raises(ConnectionLost):
                    await run.result()
        await settled()

    assert ended == ["left early", "closed"]


@pytest.mark.parametrize(
    "params", [None, {}, {"id": 1}, {"id": 1, "n": "9"}, {"id": 1, "n": -9}, {"id": 99, "n": 9}, [1]]
)
async def test_a_nonsensical_credit_grants_nothing(params: object) -> None:
    sent: list[int] = []
    async with scripted(dialect="native") as (peer, script):

        @peer.handle("count")
        async def count(_: Any, ctx: Context) -> str:
            for number in range(3):
                await ctx.progress(number)
                sent.append(number)
            return "counted"

        script.send(request(1, "count", {"_meta": {"becket": {"credit": 1}}}))
        await settled()
        script.send(notification("$/credit", params))
        await settled()
        assert sent == [0]
        script.send(notification("$/credit", {"id": 1, "n": 2}))
        assert [(await script.receive()).get("method") for _ in range(4)] == ["$/progress"] * 3 + [None]
