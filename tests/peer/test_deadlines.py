"""Deadline and depth are sent with a call if announced: deadlines shrink, depth is bounded."""

from __future__ import annotations

from itertools import pairwise
from math import inf
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from tests.peer.scripted import notification, request, response, scripted

from becket import CallTimeout, Context, Limits, Meaning, Peer, RemoteError
from becket.testing import memory_pair, run_in_virtual_time

pytestmark = pytest.mark.loops


def meta_of(message: dict[str, Any]) -> dict[str, Any]:
    meta: dict[str, Any] = message.get("params", {}).get("_meta", {}).get("becket", {})
    return meta


# -- deadlines


async def test_the_timeout_of_a_call_is_sent_with_it() -> None:
    async with scripted(dialect="native") as (peer, script), anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: peer.call("x", {"a": 1}, timeout=2.5))
        called = await script.receive()
        assert meta_of(called)["timeout_ms"] == 2500
        assert called["params"]["a"] == 1
        script.send(response(called))


async def test_a_call_without_a_deadline_is_sent_without_meta() -> None:
    async with scripted(dialect="native") as (peer, script), anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: peer.call("x", timeout=None))
        called = await script.receive()
        assert "params" not in called
        script.send(response(called))


async def test_params_by_position_have_no_room_for_meta_and_are_unchanged() -> None:
    async with scripted(dialect="native") as (peer, script), anyio.create_task_group() as tasks:
        tasks.start_soon(peer.call, "x", [1])
        called = await script.receive()
        assert called["params"] == [1]
        script.send(response(called))


async def test_no_deadline_is_sent_without_the_feature() -> None:
    async with scripted(dialect="native") as (peer, script), anyio.create_task_group() as tasks:
        peer.limit_features(frozenset({"cancel", "progress"}))
        tasks.start_soon(peer.call, "x")
        called = await script.receive()
        assert "params" not in called
        script.send(response(called))


async def test_a_handler_can_read_the_remaining_time() -> None:
    async with memory_pair(dialect="native") as (left, right):

        @right.handle("remaining")
        def remaining(_: Any, ctx: Context) -> list[Any]:
            return [ctx.remaining(), ctx.deadline < inf]

        [left_over, has_deadline] = await left.call("remaining", timeout=5.0)
        assert 0 < left_over <= 5.001  # differences of a clock are rounded
        assert has_deadline

        @right.handle("endless")
        def endless(_: Any, ctx: Context) -> bool:
            return ctx.remaining() == inf

        assert await left.call("endless", timeout=None)


async def test_a_deadline_shrinks_through_nested_calls_and_never_grows() -> None:
    seen: list[float] = []
    async with memory_pair(dialect="native") as (left, right):

        def serve(peer: Peer) -> None:
            @peer.handle("down")
            async def down(params: dict[str, int], ctx: Context) -> None:
                seen.append(ctx.remaining())
                if params["levels"]:
                    # It sets a far longer timeout than the caller has given it.
                    await ctx.call("down", {"levels": params["levels"] - 1}, timeout=1000)

        serve(left)
        serve(right)
        with anyio.fail_after(60):
            await left.call("down", {"levels": 6}, timeout=10)

    assert len(seen) == 7
    # A millisecond is the unit on the wire: each hop may round up by half of one.
    assert all(later <= before + 0.001 for before, later in pairwise(seen))
    assert seen[0] <= 10.001


async def test_a_handler_ends_at_its_deadline_without_a_cancellation() -> None:
    ended = anyio.Event()
    async with scripted(dialect="native") as (peer, script):

        @peer.handle("wait")
        async def wait() -> None:
            try:
                await anyio.sleep_forever()
            finally:
                ended.set()

        script.send(request(1, "wait", {"_meta": {"becket": {"timeout_ms": 10}}}))
        with anyio.fail_after(60):
            await ended.wait()

        assert (await script.receive())["error"]["code"] == 1001


async def test_a_nested_call_ends_with_the_deadline_of_the_request_that_it_belongs_to() -> None:
    outcomes: list[BaseException] = []
    async with scripted(dialect="native") as (peer, script):

        @peer.handle("outer")
        async def outer() -> None:
            try:
                await peer.call("inner", timeout=None)
            except BaseException as error:
                outcomes.append(error)
                raise

        script.send(request(1, "outer", {"_meta": {"becket": {"timeout_ms": 50}}}))
        inner = await script.receive()
        assert 0 < meta_of(inner)["timeout_ms"] <= 50
        assert meta_of(inner)["parent"] == 1
        assert (await script.receive())["method"] == "$/cancelRequest"
        refused = await script.receive()
        assert (refused["id"], "error" in refused) == (1, True)

    assert isinstance(outcomes[0], CallTimeout | anyio.get_cancelled_exc_class())


@pytest.mark.parametrize("timeout_ms", [None, 5_000, 60_000])
async def test_a_request_within_a_call_lasts_no_longer_than_the_call_whatever_its_timeout(
    timeout_ms: int | None,
) -> None:
    left: list[float] = []
    async with scripted(dialect="native") as (peer, script), anyio.create_task_group() as tasks:

        @peer.handle("inner")
        def inner(params: Any, ctx: Context) -> None:
            left.append(ctx.remaining())

        async def call() -> None:
            await peer.call("outer", timeout=10)

        tasks.start_soon(call)
        outer = await script.receive()
        meta = {"parent": outer["id"]} | ({} if timeout_ms is None else {"timeout_ms": timeout_ms})
        script.send(request(1, "inner", {"_meta": {"becket": meta}}))
        await script.receive()
        script.send(response(outer))
    assert left[0] <= (5.1 if timeout_ms == 5_000 else 10.1)


async def test_a_nested_call_with_events_reports_the_time_that_its_request_had_left() -> None:
    seconds: list[float] = []
    async with scripted(dialect="native") as (peer, script):

        async def call(events: dict[str, Any] | None) -> None:
            with pytest.raises(CallTimeout) as late:
                await peer.call("inner", on=events, timeout=60)
            seconds.append(late.value.seconds)

        @peer.handle("outer")
        async def outer() -> None:
            with anyio.CancelScope(shield=True):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(call, None)
                    tasks.start_soon(call, {"event": print})

        script.send(request(1, "outer", {"_meta": {"becket": {"timeout_ms": 50}}}))
        while "method" in await script.receive():
            pass

    assert len(seconds) == 2
    assert max(seconds) < 1  # not 60; the clock rounds


async def test_a_nonsensical_deadline_is_ignored() -> None:
    async with scripted(dialect="native") as (peer, script):

        @peer.handle("x")
        async def serve() -> str:
            await anyio.lowlevel.checkpoint()
            return "served"

        odd: list[Any] = [10**15, "soon", None, {}, 1.5, True]
        for id, timeout in enumerate(odd):
            script.send(request(id, "x", {"_meta": {"becket": {"timeout_ms": timeout}}}))
            received = await script.receive()
            assert (received["id"], "result" in received or received["error"]["code"] == -32602) == (id, True)
        for id, timeout in enumerate([0, -5, -(10**30), 10**400], start=100):
            script.send(request(id, "x", {"_meta": {"becket": {"timeout_ms": timeout}}}))
            assert (await script.receive())["id"] == id  # refused or served, but with a response
        script.send(request(200, "x"))
        assert (await script.receive())["result"] == "served"


# -- what belongs to a request, and what does not


async def test_a_task_that_outlives_its_request_is_not_bound_by_it_any_more() -> None:
    async with scripted(dialect="native") as (peer, script), anyio.create_task_group() as tasks:
        release = anyio.Event()

        @peer.handle("start")
        async def start() -> str:
            tasks.start_soon(later)
            return "started"

        async def later() -> None:
            await release.wait()
            await peer.call("later", {}, timeout=60)

        script.send(request(1, "start", {"_meta": {"becket": {"timeout_ms": 9000, "depth": 3}}}))
        assert (await script.receive())["result"] == "started"
        release.set()
        called = await script.receive()

        assert meta_of(called).get("parent") is None
        assert meta_of(called).get("depth", 0) == 0
        assert meta_of(called)["timeout_ms"] > 30_000
        script.send(response(called))


async def test_a_notification_that_arrives_while_a_request_is_served_does_not_belong_to_it() -> None:
    # A link that was opened within a handler of another one is read in the context of that handler.
    opened: list[Any] = []
    async with scripted(dialect="native") as (peer, script):

        @peer.handle("open")
        async def open_another() -> str:
            opened.append(scripted(dialect="native"))
            inner, inner_script = await opened[0].__aenter__()
            opened[1:] = [inner, inner_script]

            @inner.on("told")
            async def on_told() -> None:
                await inner.call("from a notification", {}, timeout=60)

            inner_script.send(notification("told"))
            first = await inner_script.receive()
            inner_script.send(response(first))
            assert meta_of(first).get("parent") is None
            assert meta_of(first).get("depth", 0) == 0
            return "opened"

        script.send(request(1, "open", {"_meta": {"becket": {"timeout_ms": 5000, "depth": 7}}}))
        assert (await script.receive()).get("result") == "opened"
        await opened[0].__aexit__(None, None, None)


async def test_a_nested_call_on_another_link_has_the_depth_but_no_parent_there() -> None:
    async with (
        scripted(dialect="native") as (peer, script),
        scripted(dialect="native") as (other, other_script),
    ):

        @peer.handle("relay")
        async def relay() -> Any:
            return await other.call("x", {})

        script.send(request("r", "relay", {"_meta": {"becket": {"timeout_ms": 5000, "depth": 4}}}))
        called = await other_script.receive()
        assert (meta_of(called)["depth"], "parent" in meta_of(called)) == (5, False)
        assert meta_of(called)["timeout_ms"] <= 5000
        other_script.send(response(called, "relayed"))
        assert (await script.receive())["result"] == "relayed"


async def test_a_nested_call_names_the_request_that_it_belongs_to() -> None:
    async with scripted(dialect="native") as (peer, script):

        @peer.handle("outer")
        async def outer() -> None:
            await deep_down()

        async def deep_down() -> None:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(peer.call, "a", {})
                tasks.start_soon(peer.call, "b", {})

        script.send(request("abc", "outer", {"_meta": {"becket": {"depth": 1}}}))
        for _ in range(2):
            called = await script.receive()
            assert (meta_of(called)["parent"], meta_of(called)["depth"]) == ("abc", 2)
            script.send(response(called))
        assert (await script.receive())["id"] == "abc"


# -- depth


@pytest.mark.parametrize("limit", [3, 32])
async def test_calls_within_calls_are_refused_beyond_the_limit_and_work_at_every_depth_below(limit: int) -> None:
    async with memory_pair(dialect="native", limits=Limits(call_depth=limit)) as (left, right):

        def serve(peer: Peer) -> None:
            @peer.handle("down")
            async def down(params: dict[str, int]) -> int:
                if not params["levels"]:
                    return 0
                deeper: int = await peer.call("down", {"levels": params["levels"] - 1})
                return 1 + deeper

        serve(left)
        serve(right)
        with anyio.fail_after(60):
            for levels in range(limit + 1):
                assert await left.call("down", {"levels": levels}) == levels
            with pytest.raises(RemoteError) as caught:
                await left.call("down", {"levels": limit + 1})

        assert caught.value.meaning in (Meaning.BUSY, Meaning.INTERNAL)  # busy for the innermost call only
        assert await left.call("down", {"levels": 1}) == 1


async def test_a_depth_beyond_the_limit_is_also_refused_by_the_receiver() -> None:
    async with scripted(dialect="native", limits=Limits(call_depth=3)) as (peer, script):
        peer.handle("x")(lambda: "served")
        script.send(request(1, "x", {"_meta": {"becket": {"depth": 3}}}))
        assert (await script.receive())["result"] == "served"
        script.send(request(2, "x", {"_meta": {"becket": {"depth": 4}}}))
        assert (await script.receive())["error"]["code"] == 1002


# -- an hour in a moment


def test_timeouts_of_an_hour_come_in_order_and_at_their_time() -> None:
    outcomes: list[tuple[float, float]] = []

    async def main() -> None:
        async with scripted(dialect="native") as (peer, _), anyio.create_task_group() as tasks:
            start = anyio.current_time()

            async def call(seconds: float) -> None:
                with pytest.raises(CallTimeout) as caught:
                    await peer.call("x", timeout=seconds)
                outcomes.append((caught.value.seconds, round(anyio.current_time() - start)))

            for seconds in (3600.0, 60.0, 1.0, 600.0, 60.0):
                tasks.start_soon(call, seconds)

    run_in_virtual_time(main)

    assert outcomes == [(1.0, 1), (60.0, 60), (60.0, 60), (600.0, 600), (3600.0, 3600)]
