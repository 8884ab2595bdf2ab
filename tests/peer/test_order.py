"""Notifications are handled one at a time, in order; responses and requests do not wait for them."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import anyio
import anyio.from_thread
import anyio.lowlevel
import pytest
from tests.peer.scripted import notification, request, response, scripted, settled

from becket import ConnectionLost, DisconnectReason, Limits, Method, Peer
from becket.conversion.custom_type import CustomType
from becket.testing import memory_pair

pytestmark = pytest.mark.loops


async def interleave(steps: list[str], name: str) -> None:
    for step in range(3):
        steps.append(f"{name}{step}")
        await anyio.lowlevel.checkpoint()


async def test_requests_run_at_once_where_notifications_would_wait_for_each_other() -> None:
    """The steps of the same function interleave as request handlers, and do not as notification handlers."""
    called: list[str] = []
    received: list[str] = []
    async with memory_pair() as (left, right):

        @right.handle("ask")
        async def ask(params: list[str]) -> None:
            await interleave(called, params[0])

        @right.on("tell")
        async def on_notification(params: list[str]) -> None:
            await interleave(received, params[0])

        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                for name in "abc":
                    await left.notify("tell", [name])
                    tasks.start_soon(left.call, "ask", [name])
            await settled()

    assert sorted(called) == sorted(received)
    assert called != sorted(called)  # they can interleave
    assert received == sorted(received)


@pytest.mark.parametrize("kinds", ["plain", "async", "thread", "mixed"])
async def test_notifications_are_handled_in_arrival_order_whatever_their_handlers_are(kinds: str) -> None:
    count = 12 if kinds == "thread" else 60
    received: list[int] = []
    done = anyio.Event()

    def note(number: int) -> None:
        received.append(number)
        if number == count - 1:
            done.set()

    async with memory_pair() as (left, right):

        @right.on("plain")
        def plain(params: list[int]) -> None:
            note(params[0])

        @right.on("async")
        async def slow(params: list[int]) -> None:
            for _ in range(params[0] % 3):
                await anyio.lowlevel.checkpoint()
            note(params[0])

        @right.on("thread", thread=True)
        def work(params: list[int]) -> None:
            anyio.from_thread.run_sync(note, params[0])

        names = ["plain", "async", "async", "plain"]
        with anyio.fail_after(60):
            for number in range(count):
                await left.notify(names[number % 4] if kinds == "mixed" else kinds, [number])
            await done.wait()

    assert received == list(range(count))


async def test_a_response_overtakes_a_handler_that_hangs() -> None:
    async with memory_pair() as (left, right):
        right.handle("echo")(lambda params: params)

        @left.on("told")
        async def on_notification() -> None:
            await anyio.sleep_forever()

        @left.handle("asked")
        async def called() -> None:
            await anyio.sleep_forever()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(right.call, "asked")
            await right.notify("told")
            await settled()
            with anyio.fail_after(60):
                assert await left.call("echo", [1]) == [1]
            tasks.cancel_scope.cancel()


async def test_a_handler_of_a_notification_may_call_back_and_the_next_waits_for_it() -> None:
    steps: list[str] = []
    done = anyio.Event()
    async with memory_pair() as (left, right):
        left.handle("echo")(lambda params: params)

        @right.on("tell")
        async def on_notification(params: list[str]) -> None:
            steps.append(f"begin {params[0]}")
            steps.extend(await right.call("echo", params))
            steps.append(f"end {params[0]}")
            if params[0] == "c":
                done.set()

        with anyio.fail_after(60):
            for name in "abc":
                await left.notify("tell", [name])
            await done.wait()

    assert steps == [step for name in "abc" for step in (f"begin {name}", name, f"end {name}")]


async def test_a_notification_handler_starts_before_the_handler_of_a_later_request() -> None:
    steps: list[str] = []
    async with scripted() as (peer, script):
        peer.on("tell")(lambda: steps.append("told"))
        peer.handle("ask")(lambda: steps.append("asked"))
        script.send(notification("tell"), request(1, "ask"), notification("tell"), request(2, "ask"))

        assert [(await script.receive())["id"] for _ in range(2)] == [1, 2]

    assert steps == ["told", "asked", "told", "asked"]


async def test_a_notification_handler_that_fails_does_not_stop_later_ones() -> None:
    received: list[int] = []
    done = anyio.Event()
    async with memory_pair() as (left, right):

        @right.on("tell")
        async def on_notification(params: list[int]) -> None:
            await anyio.lowlevel.checkpoint()
            received.append(params[0])
            if params[0] == 4:
                done.set()
            if params[0] % 2:
                raise ValueError(params[0])

        with anyio.fail_after(60):
            for number in range(5):
                await left.notify("tell", [number])
            await done.wait()

    assert received == [0, 1, 2, 3, 4]


async def test_a_notification_handler_that_is_cancelled_does_not_stop_later_ones() -> None:
    received: list[int] = []
    async with scripted() as (peer, script):

        @peer.on("tell")
        async def on_notification(params: list[int]) -> None:
            await anyio.lowlevel.checkpoint()
            received.append(params[0])
            if is_asyncio():
                task = asyncio.ensure_future(anyio.sleep_forever())
                task.cancel()
                await task  # raises the cancellation of another task, as only asyncio does

        script.send(*[notification("tell", [number]) for number in range(5)])
        with anyio.fail_after(60):
            while len(received) < 5:
                await anyio.lowlevel.checkpoint()

    assert received == [0, 1, 2, 3, 4]


def is_asyncio() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


# -- what waits is bounded


async def test_too_many_notifications_for_a_handler_that_hangs_end_the_link() -> None:
    async with scripted(limits=Limits(notifications=10)) as (peer, script):

        @peer.on("tell")
        async def on_notification() -> None:
            await anyio.sleep_forever()

        script.send(*[notification("tell")] * 30)
        with anyio.fail_after(60):
            lost = await peer.wait_closed()

    assert lost.reason is DisconnectReason.REMOTE_VIOLATION


async def test_the_bytes_of_notifications_that_were_handled_do_not_count_any_more() -> None:
    handled = 0
    async with scripted(limits=Limits(notification_bytes=5000)) as (peer, script):

        @peer.on("tell")
        async def on_notification(_: Any) -> None:
            nonlocal handled
            handled += 1
            if handled < 200:  # the next is there before this one is done: the queue is short, and never empty
                script.send(notification("tell", ["x" * 100]))
            await anyio.lowlevel.checkpoint()

        script.send(notification("tell", ["x" * 100]))
        with anyio.fail_after(60):
            while handled < 200 and not peer.is_closed:
                await anyio.lowlevel.checkpoint()

        assert (handled, peer.is_closed) == (200, False)


async def test_a_response_behind_the_notification_that_ends_the_link_still_settles_its_call() -> None:
    outcomes: list[object] = []
    limits = Limits(notifications=10, turn_seconds=0.0)  # so that one chunk takes many turns
    async with scripted(limits=limits) as (peer, script):

        @peer.on("tell")
        async def on_notification() -> None:
            await anyio.sleep_forever()

        async def call() -> None:
            try:
                outcomes.append(await peer.call("x", timeout=None))
            except ConnectionLost as lost:
                outcomes.append(lost.reason)

        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(call)
                called = await script.receive()
                script.send(*[notification("tell")] * 100, response(called, "answered"))

    assert outcomes in (["answered"], [DisconnectReason.REMOTE_VIOLATION])


# -- fairness


async def test_one_link_that_is_flooded_leaves_the_loop_to_another() -> None:
    flooded = 0
    async with (
        scripted(limits=Limits(turn_seconds=0.0)) as (peer, script),
        memory_pair() as (left, right),
    ):
        right.handle("echo")(lambda params: params)

        @peer.on("flood")
        def take() -> None:
            nonlocal flooded
            flooded += 1

        script.send(*[notification("flood")] * 3000)
        assert 0 < flooded < 3000
        assert script.is_paused
        await left.call("echo", [1])
        assert flooded < 3000
        with anyio.fail_after(60):
            while flooded < 3000:
                await anyio.lowlevel.checkpoint()
            while script.is_paused:
                await anyio.lowlevel.checkpoint()


# -- many at once


async def test_every_request_of_a_burst_runs_at_once_up_to_the_limit() -> None:
    running = 0
    everybody = anyio.Event()
    async with memory_pair(limits=Limits(inbound_requests=100)) as (left, right):

        @right.handle("meet")
        async def meet() -> None:
            nonlocal running
            running += 1
            if running == 100:
                everybody.set()
            await everybody.wait()

        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                for _ in range(100):
                    tasks.start_soon(left.call, "meet")


async def test_ten_thousand_requests_at_once_are_served_up_to_the_limit_and_the_rest_is_rejected_at_once() -> None:
    running = 0
    async with scripted() as (peer, script):

        @peer.handle("wait")
        async def wait() -> str:
            nonlocal running
            running += 1
            await go_on.wait()
            return "waited"

        go_on = anyio.Event()
        for start in range(0, 10_000, 100):
            script.send(*[request(id, "wait") for id in range(start, start + 100)])
        with anyio.fail_after(60):
            refused = [await script.receive() for _ in range(10_000 - 256)]
        await settled()
        assert (running, script.unread()) == (256, [])
        assert {message["error"]["code"] for message in refused} == {1002}
        go_on.set()
        assert {(await script.receive())["result"] for _ in range(256)} == {"waited"}


async def test_functions_in_threads_run_at_once() -> None:
    barrier = threading.Barrier(4)
    async with memory_pair() as (left, right):

        @right.handle("meet", thread=True)
        def meet() -> None:
            barrier.wait(60)

        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                for _ in range(4):
                    tasks.start_soon(left.call, "meet")


async def test_many_calls_in_both_directions_all_get_their_own_responses() -> None:
    async with memory_pair() as (left, right):

        def serve(peer: Peer) -> None:
            @peer.handle("echo")
            async def echo(params: list[int]) -> list[int]:
                for _ in range(params[0] % 4):
                    await anyio.lowlevel.checkpoint()
                return params

        serve(left)
        serve(right)

        async def call(peer: Peer, number: int) -> None:
            assert await peer.call("echo", [number]) == [number]

        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                for number in range(200):
                    tasks.start_soon(call, left, number)
                    tasks.start_soon(call, right, number)


async def test_params_of_a_custom_type_are_decoded_in_the_order_of_arrival() -> None:
    decoded: list[Any] = []

    def note(value: Any) -> Any:
        decoded.append(value)
        return value

    method: Method[Any, Any] = Method("note", CustomType(Any, from_json=note, to_json=lambda value: value), Any)
    async with scripted() as (peer, script):

        @peer.handle(method)
        async def handle(params: Any) -> Any:
            return params

        script.send(notification("note", [1]), notification("note", [2]), request(1, "note", [3]))
        with anyio.fail_after(60):
            await script.receive()

    assert decoded == [[1], [2], [3]]
