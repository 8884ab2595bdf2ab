"""A peer takes descriptors instead of names: they define params, results, events and timeouts."""

from __future__ import annotations

from typing import Any

import anyio
import msgspec
import pytest
from msgspec import Raw, Struct
from tests.peer.scripted import notification, request, response, scripted

from becket import BadReply, CallTimeout, Context, Gap, InvalidParams, Limits, Meaning, RemoteError
from becket.methods.descriptors import Method, Notification
from becket.methods.streams import EventReader, Stream
from becket.testing import memory_pair

pytestmark = pytest.mark.loops


class Add(Struct):
    a: int
    b: int = 0


class Sum(Struct):
    total: int


class Tick(Struct):
    n: int


ADD = Method("add", Add, Sum)
STOP = Method("stop", None, None)
QUICK = Method("quick", None, int, timeout=0.01)
TICK = Notification("tick", Tick)
OVER = Notification("over", None)
TICKS = Stream("ticks", Add, Sum, events={TICK.name: EventReader(msgspec.json.Decoder(Tick).decode, (Tick,))})


async def test_a_call_uses_the_params_and_result_types_of_its_descriptor() -> None:
    async with memory_pair() as (left, right):

        @right.handle(ADD)
        def add(params: Add) -> Sum:
            return Sum(params.a + params.b)

        assert await left.call(ADD, Add(1, 2)) == Sum(3)


async def test_a_method_without_params_sends_no_params() -> None:
    async with scripted() as (peer, script), anyio.create_task_group() as tasks:
        tasks.start_soon(peer.call, STOP)
        called = await script.receive()
        assert called["method"] == "stop"
        assert "params" not in called
        script.send(response(called, None))


async def test_a_request_or_notification_that_is_marked_so_has_no_params() -> None:
    received: list[object] = []
    async with scripted(dialect="native") as (peer, script):
        peer.handle("requested")(lambda params: received.append(params))
        peer.on("notified")(lambda params: received.append(params))
        marked = {"_meta": {"becket": {"no_params": True}}}
        script.send(request(1, "requested", marked), notification("notified", marked))
        await script.receive()

    assert received == [None, None]


async def test_a_response_that_is_not_of_the_described_type_is_a_bad_response() -> None:
    async with memory_pair() as (left, right):
        right.handle("add")(lambda params: {"total": "three"})

        with pytest.raises(BadReply):
            await left.call(ADD, Add(1))


async def test_params_that_are_not_of_the_described_type_are_refused_before_the_handler() -> None:
    async with memory_pair() as (left, right):
        right.handle(ADD)(lambda params: Sum(params.a))

        with pytest.raises(RemoteError) as caught:
            await left.call("add", {"a": "1"})
        assert caught.value.meaning is Meaning.INVALID_PARAMS
        assert caught.value.data == InvalidParams([("/a", "expected `int`, got `str`")]).data


async def test_a_call_has_the_timeout_of_its_descriptor_unless_the_caller_sets_one() -> None:
    async with memory_pair() as (left, right):
        is_free = anyio.Event()

        @right.handle(QUICK)
        async def quick() -> int:
            await is_free.wait()
            return 1

        with pytest.raises(CallTimeout) as caught:
            await left.call(QUICK)
        assert caught.value.seconds == 0.01

        async with anyio.create_task_group() as tasks:
            responses: list[int] = []

            async def ask() -> None:
                responses.append(await left.call(QUICK, timeout=None))

            tasks.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            is_free.set()
        assert responses == [1]


async def test_a_descriptor_without_a_timeout_has_the_one_of_the_link() -> None:
    async with memory_pair(limits=Limits(call_timeout=0.01)) as (left, right):
        right.handle(STOP)(never)

        with pytest.raises(CallTimeout) as caught:
            await left.call(STOP)
        assert caught.value.seconds == 0.01


async def never() -> None:
    await anyio.sleep_forever()


async def test_a_notification_is_sent_by_its_descriptor() -> None:
    async with memory_pair() as (left, right):
        ticks: list[Tick] = []
        is_over = anyio.Event()

        @right.on(TICK)
        async def take(params: Tick, ctx: Context) -> None:
            ticks.append(params)

        @right.on(OVER)
        def end() -> None:
            is_over.set()

        await left.notify(TICK, Tick(1))
        left.notify_nowait(TICK, Tick(2))
        await left.notify(OVER)
        with anyio.fail_after(60):
            await is_over.wait()
        assert ticks == [Tick(1), Tick(2)]


async def test_the_events_of_a_described_stream_are_decoded_as_its_types() -> None:
    async with scripted() as (peer, script), peer.stream(TICKS, Add(1, 2)) as run:
        called = await script.receive()
        assert (called["method"], called["params"]) == ("ticks", {"a": 1, "b": 2})
        script.send(notification("tick", {"n": 1}))
        script.send(notification("tick", {"n": 2}))
        script.send(response(called, {"total": 3}))

        assert [event async for event in run] == [Tick(1), Tick(2)]
        assert await run.result() == Sum(3)


async def test_only_events_that_belong_to_a_call_come_with_it() -> None:
    def belongs(raw: Raw, params: Add) -> bool:
        return msgspec.json.decode(raw, type=Tick).n == params.a

    reader = EventReader(msgspec.json.Decoder(Tick).decode, (Tick,), belongs)
    own_ticks = Stream("ticks", Add, Sum, events={"tick": reader})

    async with (
        scripted() as (peer, script),
        peer.stream(own_ticks, Add(1)) as one,
        peer.stream(own_ticks, Add(2)) as two,
    ):
        first, second = await script.receive(), await script.receive()
        for number in (2, 1, 3, 2):
            script.send(notification("tick", {"n": number}))
        script.send(response(first, {"total": 1}))
        script.send(response(second, {"total": 2}))

        assert [event async for event in one] == [Tick(1)]
        assert [event async for event in two] == [Tick(2), Tick(2)]


async def test_an_event_that_cannot_be_decoded_is_skipped() -> None:
    async with scripted() as (peer, script), peer.stream(TICKS, Add(1)) as run:
        called = await script.receive()
        for params in ({"n": 1}, {"n": "two"}, {}, {"n": 3}):
            script.send(notification("tick", params))
        script.send(response(called, {"total": 1}))

        assert [event async for event in run if not isinstance(event, Gap)] == [Tick(1), Tick(3)]
        assert await run.result() == Sum(1)


@pytest.mark.parametrize("bound", [{"timeout": 0.01}, {"idle_timeout": 0.01}])
async def test_a_stream_ends_as_its_descriptor_defines(bound: dict[str, Any]) -> None:
    timed = Stream("ticks", Add, Sum, events=TICKS.events, **bound)
    async with memory_pair() as (left, right):
        right.handle("ticks")(wait_with_params)

        async with left.stream(timed, Add(1)) as run:
            with pytest.raises(CallTimeout) as caught:
                await run.result()
        assert caught.value.seconds == pytest.approx(0.01)


async def wait_with_params(params: Add) -> None:
    await anyio.sleep_forever()


async def test_a_stream_may_be_called_for_its_result_alone() -> None:
    async with memory_pair() as (left, right):
        right.handle(TICKS)(lambda params: Sum(params.a))

        assert await left.call(TICKS, Add(5)) == Sum(5)
