"""A call settles exactly once, with one outcome of a closed set. Each of them is provoked here."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import anyio
import pytest
import trio
from msgspec import Struct
from tests.peer.children import ready_child
from tests.peer.scripted import Script, refusal, request, response, scripted, settled

from becket import (
    BadReply,
    Busy,
    CallTimeout,
    ConnectionLost,
    Context,
    DisconnectReason,
    Limits,
    Meaning,
    Peer,
    PeerCrashed,
    Registry,
    RemoteError,
    RpcError,
)
from becket.errors import LocalProtocolError, NotSupported
from becket.testing import memory_pair

pytestmark = pytest.mark.loops


class Sum(Struct):
    total: int
    terms: list[int]


# -- results


@pytest.mark.parametrize("value", [None, True, 0, -1.5, "", "é\u2028\U0001f600", [], {}, [[1, {"a": None}]], 2**53])
async def test_a_result_comes_back_as_it_was_returned(value: object) -> None:
    async with memory_pair() as (left, right):
        right.handle("get")(lambda: value)

        assert await left.call("get") == value


async def test_a_result_is_decoded_as_the_requested_type() -> None:
    async with memory_pair() as (left, right):
        right.handle("sum")(lambda params: {"total": sum(params), "terms": params})

        assert await left.call("sum", [1, 2], returns=Sum) == Sum(3, [1, 2])


async def test_params_that_are_absent_are_absent_on_the_wire() -> None:
    async with scripted() as (peer, script), anyio.create_task_group() as tasks:
        tasks.start_soon(peer.call, "x")
        called = await script.receive()
        assert called == {"jsonrpc": "2.0", "id": 1, "method": "x"}
        script.send(response(called))


async def test_responses_may_come_in_any_order() -> None:
    results: dict[int, object] = {}

    async def call(peer: Peer, number: int) -> None:
        results[number] = await peer.call("x", [number])

    async with scripted() as (peer, script), anyio.create_task_group() as tasks:
        for number in range(5):
            tasks.start_soon(call, peer, number)
        called = [await script.receive() for _ in range(5)]
        script.send(*[response(one, one["params"]) for one in reversed(called)])

    assert results == {number: [number] for number in range(5)}


async def test_a_thousand_calls_are_in_flight_at_once() -> None:
    arrived = anyio.Event()
    running = 0
    results: set[int] = set()

    async def call(peer: Peer, number: int) -> None:
        results.add(await peer.call("wait", [number]))

    async with memory_pair(limits=Limits(inbound_requests=1000)) as (left, right):

        @right.handle("wait")
        async def wait(params: list[int]) -> int:
            nonlocal running
            running += 1
            if running == 1000:
                arrived.set()
            await arrived.wait()
            return params[0]

        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                for number in range(1000):
                    tasks.start_soon(call, left, number)

    assert results == set(range(1000))


# -- errors of the other peer


@pytest.mark.parametrize("meaning", list(Meaning))
async def test_an_error_that_a_handler_raises_arrives_with_its_meaning(meaning: Meaning) -> None:
    async with memory_pair() as (left, right):

        @right.handle("fail")
        def fail() -> None:
            raise RpcError(meaning, "because", {"at": 3})

        with pytest.raises(RemoteError) as caught:
            await left.call("fail")

    error = caught.value
    assert (error.meaning, error.message, error.data, error.method) == (meaning, "because", {"at": 3}, "fail")


async def test_an_application_error_number_arrives_without_a_meaning() -> None:
    async with memory_pair() as (left, right):

        @right.handle("fail")
        def fail() -> None:
            raise RpcError(0, "zero is a number too")

        with pytest.raises(RemoteError) as caught:
            await left.call("fail")

    assert (caught.value.code, caught.value.meaning, caught.value.data) == (0, None, None)


async def test_an_unknown_method_is_a_method_not_found_error() -> None:
    async with memory_pair() as (left, _):
        with pytest.raises(RemoteError) as caught:
            await left.call("missing")

    assert (caught.value.code, caught.value.meaning) == (-32601, Meaning.UNKNOWN_METHOD)


async def test_a_remote_error_that_a_handler_does_not_catch_is_not_forwarded() -> None:
    async with memory_pair() as (left, right):

        @left.handle("secret")
        def fail() -> None:
            raise RpcError(4711, "the key is under the mat", {"key": "k"})

        @right.handle("relay")
        async def relay() -> None:
            await right.call("secret")

        with pytest.raises(RemoteError) as caught:
            await left.call("relay")

    assert (caught.value.meaning, caught.value.message) == (Meaning.INTERNAL, "internal error")
    assert set(caught.value.data) == {"incident"}  # type: ignore[call-overload]


# -- the other outcomes


async def test_a_timed_out_call_sends_a_cancellation() -> None:
    async with scripted() as (peer, script):
        with pytest.raises(CallTimeout) as caught:
            await peer.call("slow", timeout=0.01)
        called = await script.receive()

        assert (caught.value.method, caught.value.seconds) == ("slow", 0.01)
        assert isinstance(caught.value, TimeoutError)
        assert (await script.receive())["params"] == {"id": called["id"]}


async def test_a_link_that_the_other_peer_closes_is_lost() -> None:
    async with memory_pair() as (left, right):

        @right.handle("leave")
        async def leave() -> None:
            await right.aclose()

        with anyio.fail_after(60), pytest.raises(ConnectionLost) as caught:
            await left.call("leave")

    assert caught.value.reason is DisconnectReason.REMOTE_CLOSE
    assert isinstance(caught.value, ConnectionError)


@pytest.mark.process
async def test_a_process_that_ends_is_a_crash() -> None:
    async with ready_child("exits_when_called", 3) as (peer, _):
        with anyio.fail_after(60), pytest.raises(PeerCrashed) as caught:
            await peer.call("x")

    assert caught.value.exit_code == 3


@pytest.mark.parametrize("params", [None, {"for": "it"}])
async def test_a_request_beyond_the_concurrency_limit_of_the_receiver_is_busy_at_once(params: Any) -> None:
    release = anyio.Event()
    async with memory_pair(limits=Limits(inbound_requests=2)) as (left, right):

        @right.handle("wait")
        async def wait(params: Any) -> str:
            await release.wait()
            return "waited"

        results: list[str] = []

        async def call() -> None:
            results.append(await left.call("wait", params))

        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(call)
                tasks.start_soon(call)
                await settled()
                with pytest.raises(RemoteError) as caught:
                    await left.call("wait", params)
                assert caught.value.meaning is Meaning.BUSY
                release.set()

    assert results == ["waited", "waited"]


async def test_a_call_without_room_in_the_send_queue_in_time_is_busy_and_never_sent() -> None:
    async with scripted(limits=Limits(send_queue=1000)) as (peer, script):
        script.queued = 900
        with pytest.raises(Busy) as caught:
            await peer.call("x", ["y" * 200], timeout=0.01)

        assert (caught.value.limit, script.unread()) == (1000, [])


async def test_a_call_is_sent_as_soon_as_the_send_queue_has_room() -> None:
    sizes: list[int] = []

    async def call(peer: Peer, size: int) -> None:
        sizes.append(await peer.call("size", ["y" * size]))

    async with memory_pair(limits=Limits(send_queue=100_000)) as (left, right):
        right.handle("size")(lambda params: len(params[0]))
        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                for _ in range(20):
                    tasks.start_soon(call, left, 40_000)
                tasks.start_soon(call, left, 500_000)  # alone it may be larger than the queue

    assert sorted(sizes) == [40_000] * 20 + [500_000]


@pytest.mark.parametrize("reply", ["three", {"total": "3", "terms": []}, {"total": 3}, None])
async def test_a_response_of_another_type_is_a_bad_response_and_the_link_lives(reply: object) -> None:
    async with memory_pair() as (left, right):
        right.handle("sum")(lambda: reply)

        with pytest.raises(BadReply) as caught:
            await left.call("sum", returns=Sum)
        assert caught.value.method == "sum"
        assert await left.call("sum") == reply


@pytest.mark.parametrize(
    "malformed",
    [
        {"result": 1, "error": {"code": 1, "message": ""}},
        {"error": "no"},
        {"error": {"message": "no number"}},
        {"error": {"code": "1", "message": ""}},
        {},
    ],
)
async def test_a_malformed_response_is_a_bad_response_and_the_link_lives(malformed: dict[str, Any]) -> None:
    async with scripted() as (peer, script), anyio.create_task_group() as tasks:

        async def call() -> None:
            with pytest.raises(BadReply):
                await peer.call("x")
            assert await peer.call("y") == "fine"

        tasks.start_soon(call)
        called = await script.receive()
        script.send({"jsonrpc": "2.0", "id": called["id"], **malformed})
        script.send(response(await script.receive(), "fine"))


@pytest.mark.parametrize(
    "params", [object(), {"x": object()}, float("nan"), [float("inf")], {1: {2, object()}}, "text", 5]
)
async def test_params_that_json_cannot_encode_are_refused_before_anything_is_sent(params: object) -> None:
    async with scripted() as (peer, script):
        for ask in (peer.call, peer.notify):
            with pytest.raises(LocalProtocolError):
                await ask("x", params)

        assert script.unread() == []


async def test_params_beyond_the_frame_limit_are_refused_before_anything_is_sent() -> None:
    async with scripted(limits=Limits(frame=1000)) as (peer, script):
        with pytest.raises(LocalProtocolError):
            await peer.call("x", ["y" * 2000])
        assert script.unread() == []


async def test_a_result_beyond_the_frame_limit_is_a_too_large_error() -> None:
    async with memory_pair(limits=Limits(frame=1000)) as (left, right):
        right.handle("get")(lambda: "y" * 2000)

        with pytest.raises(RemoteError) as caught:
            await left.call("get")
        assert caught.value.meaning is Meaning.TOO_LARGE


async def test_an_unknown_error_number_is_preserved() -> None:
    async with scripted() as (peer, script), anyio.create_task_group() as tasks:

        async def call() -> None:
            with pytest.raises(RemoteError) as caught:
                await peer.call("x")
            assert (caught.value.code, caught.value.meaning, caught.value.message) == (-32099, None, "odd")

        tasks.start_soon(call)
        script.send(refusal(await script.receive(), -32099, "odd"))


async def test_an_error_that_belongs_to_no_call_is_logged_and_ignored(caplog: pytest.LogCaptureFixture) -> None:
    async with scripted() as (peer, script), anyio.create_task_group() as tasks:
        tasks.start_soon(peer.call, "x")
        called = await script.receive()
        with caplog.at_level("WARNING", "becket.peer"):
            script.send({"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "what was that?"}})
        script.send(response(called))

    [record] = [record for record in caplog.records if record.name == "becket.peer"]
    assert "what was that?" in record.getMessage()


# -- the concurrency limit of calls


async def test_calls_beyond_the_concurrency_limit_wait_for_a_slot_and_leave_in_order() -> None:
    async with scripted(limits=Limits(outbound_calls=2)) as (peer, script), anyio.create_task_group() as tasks:
        for number in range(6):
            tasks.start_soon(peer.call, "x", [number])
            await settled()
        in_flight = [await script.receive(), await script.receive()]
        assert script.unread() == []
        order: list[int] = []
        for _ in range(4):
            called = in_flight.pop()
            order += called["params"]
            script.send(response(called))
            in_flight.append(await script.receive())
        for called in in_flight:
            order += called["params"]
            script.send(response(called))

    assert order == [1, 2, 3, 4, 0, 5]


async def test_a_handler_of_the_same_chunk_does_not_overtake_calls_that_wait_for_a_slot() -> None:
    async with scripted(limits=Limits(outbound_calls=1)) as (peer, script), anyio.create_task_group() as tasks:

        @peer.handle("call back")
        async def call_back(params: Any, ctx: Context) -> None:
            await ctx.call("back")

        tasks.start_soon(peer.call, "first")
        await settled()
        tasks.start_soon(peer.call, "second")
        await settled()
        first = await script.receive()
        script.send(response(first), request(7, "call back"))
        order: list[str] = []
        for _ in range(2):
            called = await script.receive()
            order.append(called["method"])
            script.send(response(called))

    assert order == ["second", "back"]


async def test_a_caller_that_calls_again_at_once_does_not_overtake_waiting_calls() -> None:
    async with scripted(limits=Limits(outbound_calls=1)) as (peer, script), anyio.create_task_group() as tasks:

        async def call_again_and_again(name: str) -> None:
            for number in range(3):
                await peer.call(name, [number])

        with anyio.fail_after(60):
            for name in ("a", "b", "c"):
                tasks.start_soon(call_again_and_again, name)
                await settled()
            order = []
            for _ in range(9):
                called = await script.receive()
                order.append(called["method"])
                script.send(response(called))

    assert order == ["a", "b", "c"] * 3


async def test_a_call_that_gets_no_slot_in_time_is_busy_and_never_sent() -> None:
    async with scripted(limits=Limits(outbound_calls=1)) as (peer, script), anyio.create_task_group() as tasks:
        tasks.start_soon(peer.call, "first")
        called = await script.receive()
        with anyio.fail_after(60), pytest.raises(Busy) as caught:
            await peer.call("second", timeout=0.01)

        assert (caught.value.limit, script.unread()) == (1, [])
        script.send(response(called))


async def test_a_call_that_is_cancelled_while_it_waits_for_a_slot_leaves_the_slot_to_the_next() -> None:
    async with scripted(limits=Limits(outbound_calls=1)) as (peer, script), anyio.create_task_group() as tasks:
        tasks.start_soon(peer.call, "first")
        called = await script.receive()
        scope = anyio.CancelScope()

        async def give_up() -> None:
            with scope:
                await peer.call("given up")

        tasks.start_soon(give_up)
        await settled()
        tasks.start_soon(peer.call, "third")
        await settled()
        scope.cancel()
        await settled()
        script.send(response(called))

        third = await script.receive()
        assert third["method"] == "third"
        script.send(response(third))


async def test_a_call_that_is_cancelled_when_it_has_just_got_its_slot_hands_it_on() -> None:
    async with scripted(limits=Limits(outbound_calls=1)) as (peer, script), anyio.create_task_group() as tasks:
        tasks.start_soon(peer.call, "first")
        called = await script.receive()
        scope = anyio.CancelScope()

        async def give_up() -> None:
            with scope:
                await peer.call("given up")

        tasks.start_soon(give_up)
        await settled()
        tasks.start_soon(peer.call, "third")
        await settled()
        script.send(response(called))
        scope.cancel()  # before the one that was woken could continue

        while (messages := await script.receive())["method"] != "third":
            assert messages["method"] in ("given up", "$/cancelRequest")  # on trio it may have left already
        script.send(response(messages))


async def test_a_slot_is_free_again_however_its_call_is_abandoned() -> None:
    async def call(peer: Peer) -> None:
        await peer.call("x")

    async def call_with_events(peer: Peer) -> None:
        await peer.call("x", on={"tick": lambda _: None})

    async def stream(peer: Peer) -> None:
        async with peer.stream("x") as run:
            await run.result()

    for give_up in (call, call_with_events, stream):
        async with scripted(limits=Limits(outbound_calls=1)) as (peer, script), anyio.create_task_group() as tasks:
            scope = anyio.CancelScope()

            async def run(peer: Peer, scope: anyio.CancelScope, give_up: Callable[..., Any]) -> None:
                with scope:
                    await give_up(peer)

            tasks.start_soon(run, peer, scope, give_up)
            assert (await script.receive())["method"] == "x"
            tasks.start_soon(peer.call, "next")
            await settled()
            scope.cancel()

            assert (await script.receive())["method"] == "$/cancelRequest"
            called = await script.receive()
            assert called["method"] == "next"
            script.send(response(called))


async def test_a_slot_that_is_waited_for_by_many_goes_to_each_when_calls_time_out() -> None:
    outcomes: list[type[Exception]] = []

    async def call(peer: Peer) -> None:
        try:
            await peer.call("x", timeout=0.02)
        except (CallTimeout, Busy) as error:
            outcomes.append(type(error))

    async with scripted(limits=Limits(outbound_calls=2)) as (peer, _):
        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                for _ in range(10):
                    tasks.start_soon(call, peer)

    assert len(outcomes) == 10
    assert CallTimeout in outcomes


async def test_calls_that_wait_for_a_slot_settle_when_the_link_ends() -> None:
    lost: list[DisconnectReason] = []

    async def call(peer: Peer) -> None:
        with pytest.raises(ConnectionLost) as caught:
            await peer.call("x", timeout=None)
        lost.append(caught.value.reason)

    async with scripted(limits=Limits(outbound_calls=1)) as (peer, script):
        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                for _ in range(5):
                    tasks.start_soon(call, peer)
                await settled()
                script.leave()

    assert lost == [DisconnectReason.REMOTE_CLOSE] * 5


# -- both directions


async def test_both_peers_call_each_other_at_once() -> None:
    meeting = {"left": anyio.Event(), "right": anyio.Event()}
    results: dict[str, object] = {}
    async with memory_pair() as (left, right):

        def serve(peer: Peer, mine: str, theirs: str) -> None:
            @peer.handle("meet")
            async def meet() -> str:
                meeting[mine].set()
                await meeting[theirs].wait()  # neither responds before both got a request
                return mine

        serve(left, "left", "right")
        serve(right, "right", "left")

        async def call(peer: Peer, name: str) -> None:
            results[name] = await peer.call("meet")

        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(call, left, "left")
                tasks.start_soon(call, right, "right")

    assert results == {"left": "right", "right": "left"}


async def test_a_handler_may_call_back_and_be_called_back_again() -> None:
    async with memory_pair() as (left, right):

        def serve(peer: Peer) -> None:
            @peer.handle("down")
            async def down(params: list[int]) -> list[int]:
                deeper: list[int] = await peer.call("down", [params[0] - 1]) if params[0] else []
                return [*params, *deeper]

        serve(left)
        serve(right)

        with anyio.fail_after(60):
            assert await left.call("down", [20]) == list(range(20, -1, -1))


# -- notifications


async def test_a_notification_is_handled_and_never_gets_a_response() -> None:
    async with scripted() as (peer, script):
        await peer.notify("tell", {"a": 1})
        peer.notify_nowait("tell")

        assert await script.receive() == {"jsonrpc": "2.0", "method": "tell", "params": {"a": 1}}
        assert await script.receive() == {"jsonrpc": "2.0", "method": "tell"}


async def test_a_notification_is_sent_although_it_is_not_awaited() -> None:
    async with scripted() as (peer, script):
        peer.notify("tell")  # type: ignore[unused-awaitable, unused-ignore]

        assert (await script.receive())["method"] == "tell"


async def test_a_task_group_can_start_a_notification() -> None:
    async with scripted() as (peer, script):
        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(peer.notify, "tell", [1])
                tasks.start_soon(peer.notify, "tell", [2])

        assert [(await script.receive())["params"] for _ in range(2)] == [[1], [2]]


async def test_a_nursery_of_trio_can_start_a_notification(anyio_backend_name: str) -> None:
    if anyio_backend_name != "trio":
        pytest.skip("a nursery of trio needs trio")
    async with scripted() as (peer, script):
        with anyio.fail_after(60):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(peer.notify, "tell", [1])

        assert (await script.receive())["params"] == [1]


async def test_a_task_of_asyncio_can_be_made_of_a_notification(anyio_backend_name: str) -> None:
    if anyio_backend_name != "asyncio":
        pytest.skip("a task of asyncio needs asyncio")
    async with scripted() as (peer, script):
        with anyio.fail_after(60):
            await asyncio.create_task(peer.notify("tell", [1]))
            await asyncio.gather(peer.notify("tell", [2]), peer.notify("tell", [3]))

        assert [(await script.receive())["params"] for _ in range(3)] == [[1], [2], [3]]


async def test_a_task_group_that_is_cancelled_ends_although_it_has_started_a_notification() -> None:
    async with scripted() as (peer, script):
        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(peer.notify, "tell")
                tasks.cancel_scope.cancel()
                await anyio.sleep_forever()

        assert (await script.receive())["method"] == "tell"  # sent when it was called


async def test_a_handler_can_start_its_notifications_in_a_task_group() -> None:
    async with memory_pair(dialect="native") as (left, right):
        received: list[int] = []

        @right.handle("count")
        async def count(params: None, ctx: Context) -> int:
            async with anyio.create_task_group() as tasks:
                for number in range(3):
                    tasks.start_soon(ctx.notify, "tell", [number])
            return 3

        with anyio.fail_after(60):
            assert await left.call("count", on={"tell": lambda params: received.append(params[0])}) == 3
        assert sorted(received) == [0, 1, 2]


async def test_notify_nowait_is_busy_when_the_queue_is_full() -> None:
    async with scripted(limits=Limits(send_queue=1000)) as (peer, script):
        script.queued = 990
        with pytest.raises(Busy) as caught:
            peer.notify_nowait("tell", ["x" * 100])

        assert (caught.value.limit, script.unread()) == (1000, [])


async def test_awaiting_a_notification_waits_while_the_other_peer_is_behind() -> None:
    async with memory_pair(limits=Limits(send_high=100_000)) as (left, right):
        received: list[int] = []
        right.on("tell")(lambda params: received.append(params["n"]))
        with anyio.fail_after(60):
            for number in range(50):
                await left.notify("tell", {"n": number, "padding": "x" * 40_000})
                assert len(received) >= number - 4  # never further ahead than the limit and what is sent together
            await left.drain()


# -- ping


async def test_a_ping_gets_a_response_although_every_handler_hangs() -> None:
    async with memory_pair(dialect="native", limits=Limits(inbound_requests=1)) as (left, right):

        @right.handle("hang")
        async def hang() -> None:
            await anyio.sleep_forever()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(left.call, "hang")
            await settled()
            with anyio.fail_after(60):
                await left.ping()
            tasks.cancel_scope.cancel()


async def test_a_ping_is_not_supported_without_the_feature() -> None:
    async with memory_pair() as (left, _):
        with pytest.raises(NotSupported):
            await left.ping()
    async with memory_pair(dialect="native") as (left, _):
        left.limit_features(frozenset({"cancel"}))
        with pytest.raises(NotSupported):
            await left.ping()


async def test_a_ping_to_a_peer_that_does_not_read_times_out() -> None:
    async with scripted(dialect="native") as (peer, _):
        with pytest.raises(CallTimeout):
            await peer.ping(timeout=0.01)


# -- arguments of a call


async def test_the_error_for_an_unknown_dialect_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match="plain"):
        async with memory_pair(dialect="klingon"):
            pass


async def test_the_limits_of_a_peer_hold_for_its_calls() -> None:
    async with scripted(limits=Limits(call_timeout=0.01)) as (peer, _):
        with pytest.raises(CallTimeout) as caught:
            await peer.call("x")
    assert caught.value.seconds == 0.01


async def test_a_registry_is_not_changed_by_the_peers_that_serve_it() -> None:
    methods = Registry()
    methods.handle("shared")(lambda: "shared")
    async with memory_pair(methods=methods) as (left, right):
        right.handle("own")(lambda: "own")

        assert await left.call("shared") == "shared"
        assert await right.call("shared") == "shared"
        assert await left.call("own") == "own"
        with pytest.raises(RemoteError):
            await right.call("own")

    assert list(methods) == ["shared"]


class Fragile(Script):
    """A transport that ends its link within a write, as one does whose send queue is beyond all limits."""

    link: Any

    def write(self, data: bytes) -> None:
        self.link.disconnect(ConnectionLost(DisconnectReason.REMOTE_VIOLATION, "it does not read"))


async def test_a_call_whose_own_request_ends_the_link_raises_at_once() -> None:
    transport = Fragile()
    async with Peer.over(transport) as peer:
        transport.link = peer._link
        with anyio.fail_after(60), pytest.raises(ConnectionLost, match="it does not read"):
            await peer.call("x")
