"""Every receiver of a notification gets it: the calls whose event it is, and the handler of its name."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from msgspec import Struct, field
from tests.peer.scripted import Message, notification, response, scripted, settled

from becket import Context
from becket.testing import memory_pair

pytestmark = pytest.mark.loops


class Tick(Struct):
    n: int


def tick(number: int) -> Message:
    return notification("tick", {"n": number})


async def test_a_handler_also_receives_the_events_of_a_running_call() -> None:
    handled: list[int] = []
    async with scripted() as (peer, script):
        peer.on("tick")(lambda params: handled.append(params["n"]))
        script.send(tick(0))
        async with peer.stream("x", events={"tick": Tick}) as run:
            called = await script.receive()
            script.send(tick(1), response(called), tick(2))
            assert [event.n async for event in run] == [1]
        script.send(tick(3))

    assert handled == [0, 1, 2, 3]


async def test_all_calls_and_the_handler_receive_an_event() -> None:
    handled: list[int] = []
    async with scripted() as (peer, script):
        peer.on("tick")(lambda params: handled.append(params["n"]))
        async with (
            peer.stream("a", events={"tick": Tick}) as a,
            peer.stream("b", events={"tick": Tick}) as b,
        ):
            first, second = await script.receive(), await script.receive()
            script.send(tick(1), response(first), response(second))

            assert [event.n async for event in a] == [event.n async for event in b] == handled == [1]


async def test_a_handler_that_is_registered_during_a_call_receives_what_follows() -> None:
    handled: list[int] = []
    async with scripted() as (peer, script), peer.stream("x", events={"tick": Tick}) as run:
        called = await script.receive()
        script.send(tick(1))
        await settled()
        peer.on("tick")(lambda params: handled.append(params["n"]))
        script.send(tick(2))
        await settled()
        peer.methods.remove("tick")
        script.send(tick(3), response(called))

        assert [event.n async for event in run] == [1, 2, 3]
        assert handled == [2]


async def test_a_function_of_a_call_and_a_handler_both_receive_its_events() -> None:
    handled: list[int] = []
    taken: list[int] = []
    async with memory_pair() as (left, right):

        @right.handle("count")
        async def count(_: Any, ctx: Context) -> None:
            for number in range(100):
                await ctx.notify("tick", {"n": number})

        def take(event: Tick) -> None:
            taken.append(event.n)

        left.on("tick")(lambda params: handled.append(params["n"]))
        await left.call("count", {}, on={"tick": take})

    assert taken == handled == list(range(100))


async def test_a_marked_event_reaches_its_call_and_the_handler_and_gives_its_credit_back_once() -> None:
    handled: list[int] = []
    async with memory_pair(dialect="native") as (left, right):

        @right.handle("count")
        async def count(_: Any, ctx: Context) -> str:
            for number in range(5_000):  # many times the credit
                await ctx.notify("tick", {"n": number})
            return "counted"

        left.on("tick")(lambda params: handled.append(params["n"]))
        async with left.stream("count", {}, events={"tick": Tick}) as run:
            assert [event.n async for event in run] == list(range(5_000))
            assert await run.result() == "counted"

    assert handled == list(range(5_000))


async def test_a_handler_that_fails_disturbs_no_call(caplog: pytest.LogCaptureFixture) -> None:
    async with scripted() as (peer, script), peer.stream("x", events={"tick": Tick}) as run:

        @peer.on("tick")
        def fail(_: Any) -> None:
            raise RuntimeError("a bug")

        script.send(tick(1), tick(2), response(await script.receive(), "done"))
        assert [event.n async for event in run] == [1, 2]
        assert await run.result() == "done"
    assert "a bug" in caplog.text


async def test_a_handler_can_read_whether_a_call_has_received_the_notification_too() -> None:
    streamed: list[bool] = []
    async with scripted() as (peer, script):

        @peer.on("tick")
        def note(_: Any, ctx: Context) -> None:
            streamed.append(ctx.is_streamed)

        async with peer.stream("x", events={"tick": Tick}) as run:
            script.send(tick(1), response(await script.receive()), tick(2))
            await run.result()
        await settled()
    assert streamed == [True, False]


async def test_a_handler_that_is_registered_unless_streamed_receives_only_the_rest() -> None:
    handled: list[int] = []
    async with scripted() as (peer, script):
        peer.methods.on("tick", unless_streamed=True)(lambda params: handled.append(params["n"]))
        script.send(tick(0))
        async with peer.stream("x", events={"tick": Tick}) as run:
            script.send(tick(1), response(await script.receive()), tick(2))
            assert [event.n async for event in run] == [1]
    assert handled == [0, 2]


async def test_all_functions_of_a_stream_receive_the_events_of_their_class() -> None:
    async with scripted() as (peer, script), peer.stream("x", events={"tick": Tick}) as run:
        first: list[Tick] = []
        second: list[Tick] = []
        run.on(Tick)(first.append)
        run.on(Tick)(second.append)
        script.send(tick(1), response(await script.receive()))
        await run.result()
    assert first == second == [Tick(1)]


class StrictTick(Struct, forbid_unknown_fields=True):
    n: int


class TickWithMeta(Struct):
    n: int
    meta: Any = field(name="_meta", default=None)


async def test_the_function_of_a_native_call_gets_its_events_without_their_metadata() -> None:
    seen: list[Any] = []

    def on_tick(event: Tick) -> None:
        seen.append(event)

    def on_strict(event: StrictTick) -> None:
        seen.append(event)

    def on_meta(event: TickWithMeta) -> None:
        seen.append(event)

    def on_untyped(event: dict[str, Any]) -> None:
        seen.append(event)

    async with memory_pair(dialect="native") as (left, right):

        @right.handle("count")
        async def count(_: Any, ctx: Context) -> None:
            for number in range(2):
                for name in ("tick", "strict", "meta", "untyped"):
                    await ctx.notify(name, {"n": number})

        functions = {"tick": on_tick, "strict": on_strict, "meta": on_meta, "untyped": on_untyped}
        await left.call("count", on=functions)

    assert seen == [event for n in range(2) for event in (Tick(n), StrictTick(n), TickWithMeta(n), {"n": n})]


async def test_the_function_of_a_native_call_gets_no_events_of_another_call() -> None:
    seen: list[int] = []

    def on_tick(event: Tick) -> None:
        seen.append(event.n)

    async with memory_pair(dialect="native") as (left, right):

        @right.handle("count")
        async def count(params: list[int], ctx: Context) -> None:
            await ctx.notify("tick", Tick(params[0]))
            if params[0] == 1:
                await ctx.call("again")
            await ctx.notify("tick", Tick(params[0]))

        @left.handle("again")
        async def again() -> None:
            await left.call("count", [2])

        await left.call("count", [1], on={"tick": on_tick})

    assert seen == [1, 1]


async def test_native_calls_of_the_same_time_get_their_own_events() -> None:
    seen: dict[int, list[int]] = {}

    async with memory_pair(dialect="native") as (left, right), anyio.create_task_group() as tasks:

        @right.handle("count")
        async def count(params: list[int], ctx: Context) -> None:
            for number in range(3):
                await ctx.notify("tick", Tick(10 * params[0] + number))
                await settled()  # the others send theirs in between

        async def call(number: int) -> None:
            def on_tick(event: Tick) -> None:
                seen.setdefault(number, []).append(event.n)

            await left.call("count", [number], on={"tick": on_tick})

        for number in range(6):  # more than the codec delivers directly
            tasks.start_soon(call, number)

    assert seen == {number: [10 * number, 10 * number + 1, 10 * number + 2] for number in range(6)}
