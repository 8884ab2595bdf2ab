"""Streams by descriptor: the events of each call, undecodable events, and event functions."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from msgspec import Raw, Struct, field, to_builtins
from tests.peer.scripted import notification, request, response, scripted, settled

from becket import Context
from becket.conversion.decode import get_result_decoder
from becket.errors import PermissionDenied
from becket.methods.streams import EventReader, Stream
from becket.testing import memory_pair

pytestmark = pytest.mark.loops


class Count(Struct, frozen=True):
    to: int


class Tick(Struct, frozen=True, forbid_unknown_fields=True):
    n: int


class Tock(Struct, frozen=True, tag="tock"):
    text: str


class Named(Struct, frozen=True):
    name: str
    n: int = 0


def is_named(raw: Raw, params: Named) -> bool:
    named: Named = get_result_decoder(Named)(raw)
    return named.name == params.name


COUNT: Stream[Count, int, Tick | Tock] = Stream(
    "count",
    Count,
    int,
    events={
        "tick": EventReader(get_result_decoder(Tick), (Tick,)),
        "tock": EventReader(get_result_decoder(Tock), (Tock,)),
    },
)
NAMED: Stream[Named, int, Named] = Stream(
    "named", Named, int, events={"named": EventReader(get_result_decoder(Named), (Named,), belongs=is_named)}
)


async def test_the_events_of_a_descriptor_come_as_its_classes_and_the_result_as_its_own() -> None:
    async with memory_pair() as (left, right):

        @right.handle(COUNT)
        async def count(params: Count, ctx: Context) -> int:
            for n in range(params.to):
                await ctx.notify("tick", Tick(n))
            await ctx.notify("tock", Tock("end"))
            return params.to

        async with left.stream(COUNT, Count(2)) as run:
            events = [event async for event in run]
            result = await run.result()
    assert events == [Tick(0), Tick(1), Tock("end")]
    assert result == 2


async def test_an_event_that_cannot_be_decoded_is_skipped_and_counted() -> None:
    async with scripted() as (peer, script), peer.stream(COUNT, Count(1)) as run:
        called = await script.receive()
        script.send(
            notification("tick", {"n": "one"}),
            notification("tick", {"n": 1}),
            notification("tick", [1]),
            notification("tick"),
            response(called, 1),
        )
        assert [event async for event in run] == [Tick(1)]
        assert run.skipped == 3
        assert await run.result() == 1


async def test_events_that_cannot_be_decoded_are_skipped_in_batches_as_well() -> None:
    async with scripted() as (peer, script), peer.stream(COUNT, Count(1)) as run:
        called = await script.receive()
        script.send(
            notification("tick", {"n": 1}), notification("tick"), notification("tick", {"n": 2}), response(called, 1)
        )
        assert [event async for batch in run.batches() for event in batch] == [Tick(1), Tick(2)]
        assert run.skipped == 1


async def test_each_event_goes_to_the_function_of_its_class() -> None:
    async with scripted() as (peer, script), peer.stream(COUNT, Count(1)) as run:
        called = await script.receive()
        seen: list[object] = []

        @run.on(Tick)
        async def take_tick(event: Tick) -> None:
            await settled()
            seen.append(event)

        @run.on(Tock)
        def take_tock() -> None:
            seen.append("tock")

        script.send(
            notification("tick", {"n": 1}),
            notification("tock", {"type": "tock", "text": "x"}),
            notification("tick", {"n": 2}),
            response(called, 3),
        )
        assert await run.result() == 3
        assert seen == [Tick(1), "tock", Tick(2)]


async def test_events_without_a_function_are_skipped() -> None:
    async with scripted() as (peer, script), peer.stream(COUNT, Count(1)) as run:
        called = await script.receive()
        seen: list[Tick] = []
        run.on(Tick)(seen.append)
        script.send(
            notification("tock", {"type": "tock", "text": "x"}), notification("tick", {"n": 2}), response(called, 3)
        )
        assert await run.result() == 3
        assert seen == [Tick(2)]


async def test_a_stream_takes_only_the_events_that_its_reader_selects() -> None:
    async with scripted() as (peer, script), peer.stream(NAMED, Named("a")) as a, peer.stream(NAMED, Named("b")) as b:
        called = [await script.receive(), await script.receive()]
        script.send(
            notification("named", {"name": "b", "n": 1}),
            notification("named", {"name": "a", "n": 2}),
            notification("named", {"name": "nobody", "n": 3}),
            *[response(one, 0) for one in called],
        )
        assert [event async for event in a] == [Named("a", 2)]
        assert [event async for event in b] == [Named("b", 1)]


async def test_two_streams_of_one_kind_get_their_own_events_where_these_have_a_mark() -> None:
    async with memory_pair(dialect="native") as (left, right):

        @right.handle(COUNT)
        async def count(params: Count, ctx: Context) -> int:
            for n in range(3):
                await ctx.notify("tick", Tick(params.to + n))
                await settled()
            return params.to

        async with left.stream(COUNT, Count(10)) as tens, left.stream(COUNT, Count(20)) as twenties:
            assert [event async for event in tens] == [Tick(10), Tick(11), Tick(12)]
            assert [event async for event in twenties] == [Tick(20), Tick(21), Tick(22)]


async def test_events_without_a_mark_are_for_every_call_that_subscribed() -> None:
    async with memory_pair(dialect="native") as (left, right):

        @right.handle(COUNT)
        async def count(params: Count) -> int:
            await right.notify("tick", Tick(params.to))
            return 0

        async with left.stream(COUNT, Count(1)) as run:
            assert [event async for event in run] == [Tick(1)]


class Sparse(Struct, frozen=True, omit_defaults=True):
    n: int = 0


class ByPosition(Struct, frozen=True, array_like=True):
    n: int


class WithMeta(Struct, frozen=True):
    meta: Any = field(name="_meta")


class TaggedByMeta(Struct, frozen=True, tag="x", tag_field="_meta"):
    n: int


EVENT_PARAMS = [
    None,
    {},
    {"_meta": {"mine": 1}},
    [1, 2],
    {"a": {"b": 1}},
    Tick(1),
    Tock("_meta"),
    Sparse(),
    Sparse(1),
    ByPosition(1),
    WithMeta({"mine": 1}),
    WithMeta(3),
    TaggedByMeta(1),
]


@pytest.mark.parametrize("params", EVENT_PARAMS, ids=repr)
async def test_the_mark_of_an_event_is_removed_before_delivery(params: Any) -> None:
    async with memory_pair(dialect="native") as (left, right):

        @right.handle("tell")
        async def notify_caller(_: Any, ctx: Context) -> None:
            for _ in range(3):
                await ctx.notify("told", params)

        seen: list[object] = []

        @left.on("told")
        def on_told(params: Any) -> None:
            seen.append(params)

        await left.call("tell", {})
        await settled()
    assert seen == [to_builtins(params)] * 3


@pytest.mark.parametrize("params", [{"_meta": {"mine": 1}}, WithMeta({"mine": 1})], ids=repr)
async def test_metadata_of_an_event_and_its_mark_are_one_member(params: Any) -> None:
    async with scripted(dialect="native") as (peer, script):

        @peer.handle("tell")
        async def notify_caller(_: Any, ctx: Context) -> None:
            for _ in range(3):
                await ctx.notify("told", params)

        script.send(request(1, "tell", {}))
        for _ in range(3):
            message = await script.receive()
            assert message["params"] == {"_meta": {"mine": 1, "becket": {"parent": 1}}}


async def test_a_mark_under_another_name_is_recognised() -> None:
    async with scripted(dialect="native") as (peer, script), peer.stream("count", events={"tick": Tick}) as run:
        called = await script.receive()
        script.send(
            notification("tick", {"n": 1, "_meta": {"becket": {"parent": called["id"]}}}),
            notification("tick", {"n": 2, "_meta": {"becket": {"parent": called["id"] + 1}}}),
            notification("tick", {"n": 3, "_meta": {"becket": {"parent": str(called["id"])}}}),
            response(called, 0),
        )
        assert [event async for event in run] == [Tick(1)]


async def test_events_without_a_subscription_do_not_use_up_credit() -> None:
    async with memory_pair(dialect="native") as (left, right):

        @right.handle(COUNT)
        async def count(params: Count, ctx: Context) -> int:
            for n in range(params.to):
                await ctx.notify("unclaimed", Tick(n))
            await ctx.notify("tick", Tick(1))
            return params.to

        with anyio.fail_after(60):
            async with left.stream(COUNT, Count(2_000)) as run:
                assert [event async for event in run] == [Tick(1)]
                assert await run.result() == 2_000


async def test_ending_a_stream_raises_the_given_error_and_cancels_the_request() -> None:
    async with scripted() as (peer, script), peer.stream(COUNT, Count(1)) as run:
        called = await script.receive()
        script.send(notification("tick", {"n": 1}))
        await settled()
        run.close_with(PermissionDenied("providers.register"))
        assert await script.receive() == notification("$/cancelRequest", {"id": called["id"]})
        with pytest.raises(PermissionDenied):
            await anext(aiter(run))
        with pytest.raises(PermissionDenied):
            await run.result()


async def test_ending_a_stream_that_was_not_opened_changes_nothing() -> None:
    async with scripted() as (peer, script):
        run = peer.stream(COUNT, Count(1))
        run.close_with(PermissionDenied("providers.register"))
        async with run:
            script.send(response(await script.receive(), 3))
            assert await run.result() == 3
