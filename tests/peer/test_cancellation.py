"""Leaving a call's scope cancels it at both ends; messages that cross are dropped."""

from __future__ import annotations

import asyncio
import threading
from contextlib import nullcontext
from typing import Any

import anyio
import anyio.from_thread
import anyio.lowlevel
import pytest
from msgspec.structs import replace
from tests.peer.scripted import in_virtual_time, notification, request, response, scripted, settled

from becket import DIALECTS, Context, Limits, Meaning, Peer, RemoteError
from becket.jsonrpc.calls import CancellationFormat
from becket.testing import memory_pair

pytestmark = pytest.mark.loops

CANCELLED = -32800
MCP_LIKE = replace(
    DIALECTS["plain"],
    name="never answers",
    cancellation=CancellationFormat("notifications/cancelled", "requestId", "never sent"),
)
ACP_LIKE = replace(
    DIALECTS["plain"],
    name="sent by the handler",
    cancellation=CancellationFormat("session/cancel", "id", "sent by the handler"),
)
SPEECHLESS = replace(DIALECTS["plain"], name="no word for it", cancellation=None)


def cancel(id: object) -> dict[str, Any]:
    return notification("$/cancelRequest", {"id": id})


def handle_wait(peer: Peer) -> anyio.Event:
    """Registers "wait", which waits until it is cancelled; the event is set then."""
    ended = anyio.Event()

    @peer.handle("wait")
    async def wait() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()

    return ended


# -- what crosses the wire


async def test_leaving_the_scope_of_a_call_ends_its_handler_whose_clean_up_runs() -> None:
    began, ended = anyio.Event(), anyio.Event()
    async with memory_pair() as (left, right):

        @right.handle("wait")
        async def wait() -> None:
            try:
                began.set()
                await anyio.sleep_forever()
            finally:
                ended.set()

        with anyio.fail_after(60):
            with anyio.CancelScope() as scope:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(left.call, "wait")
                    await began.wait()
                    scope.cancel()
            await ended.wait()


@in_virtual_time
def test_a_scope_with_a_deadline_of_its_own_cancels_as_well(run: Any) -> None:
    async def main() -> None:
        async with memory_pair() as (left, right):
            ended = handle_wait(right)
            with anyio.move_on_after(10) as scope:
                await left.call("wait")
            with anyio.fail_after(60):
                await ended.wait()

        assert scope.cancelled_caught

    run(main)


@in_virtual_time
def test_a_timeout_ends_the_handler_too(run: Any) -> None:
    async def main() -> None:
        async with memory_pair() as (left, right):
            ended = handle_wait(right)
            with anyio.fail_after(60):
                with pytest.raises(TimeoutError):
                    await left.call("wait", timeout=10)
                await ended.wait()

    run(main)


async def test_the_late_response_to_a_cancelled_call_is_not_counted_as_a_violation() -> None:
    async with scripted(limits=Limits(stray_replies=0)) as (peer, script):
        for _ in range(3):
            with anyio.move_on_after(0.01):
                await peer.call("x")
            called = await script.receive()
            assert (await script.receive())["params"] == {"id": called["id"]}
            script.send(response(called, "too late"))

        assert not peer.is_closed
        script.send(response({"id": 4711}))  # to no request
        assert peer.is_closed


async def test_a_reply_that_crosses_the_cancellation_is_dropped_and_the_next_call_gets_its_own() -> None:
    async with memory_pair() as (left, right):
        right.handle("echo")(lambda params: params)
        for number in range(20):
            with anyio.CancelScope() as scope:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(left.call, "echo", [number])
                    tasks.start_soon(left.call, "echo", [number])
                    await anyio.lowlevel.checkpoint()
                    scope.cancel()
            assert await left.call("echo", ["next", number]) == ["next", number]


async def test_every_cancellation_of_asyncio_cancels_a_call() -> None:
    if not asyncio_runs():
        pytest.skip("trio has one way, and it is tested above")
    async with scripted() as (peer, script):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(peer.call("a"), 0.01)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await peer.call("b")
        task = asyncio.create_task(peer.call("c"))
        await settled()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        first, last = await asyncio.wait({asyncio.ensure_future(peer.call("d"))}, timeout=0.01)
        assert not first
        for pending in last:
            pending.cancel()
        await settled()
        received = script.unread()

    assert [message["method"] for message in received] == [
        word for name in "abcd" for word in (name, "$/cancelRequest")
    ]


# -- when it comes


async def test_a_cancellation_before_the_handler_has_begun_means_that_it_never_runs() -> None:
    async with scripted() as (peer, script):
        has_begun = False

        @peer.handle("x")
        async def never() -> None:
            nonlocal has_begun
            has_begun = True

        script.send(request(1, "x"), cancel(1))

        response = await script.receive()
        # Where tasks start eagerly, it has begun before the cancellation is read, and is through.
        is_cancelled = response.get("error", {}).get("code") == CANCELLED
        assert is_cancelled is not has_begun
        await settled()
        assert script.unread() == []


async def test_a_cancellation_right_behind_its_request_ends_the_handler_at_its_first_wait_at_the_latest() -> None:
    seen: list[str] = []
    async with scripted() as (peer, script):

        @peer.handle("x")
        async def x() -> None:
            seen.append("begun")  # only where tasks start eagerly
            await anyio.lowlevel.checkpoint()
            seen.append("gone on")

        script.send(request(1, "x"), cancel(1))

        assert (await script.receive())["error"]["code"] == CANCELLED
        await settled()
    assert "gone on" not in seen


async def test_a_cancellation_in_the_same_chunk_as_its_request_does_not_affect_a_finished_handler() -> None:
    async with scripted() as (peer, script):
        peer.handle("plain")(lambda: "done")
        peer.on("told")(lambda: None)
        script.send(
            request(1, "plain"), cancel(1), request(2, "missing"), cancel(2), request(3, "told"), cancel(3),
            request(4, "plain"),
        )  # fmt: skip

        received = [await script.receive() for _ in range(4)]
        assert [message["id"] for message in received] == [1, 2, 3, 4]
        assert [message.get("result") for message in received] == ["done", None, None, "done"]


async def test_a_handler_that_waits_for_a_worker_never_runs_when_it_is_cancelled() -> None:
    release = threading.Event()
    ran: list[str] = []
    async with scripted(limits=Limits(inbound_requests=1, worker_threads=1)) as (peer, script):
        running = anyio.Event()

        @peer.on("hold", thread=True)
        def hold() -> None:
            anyio.from_thread.run_sync(running.set)
            assert release.wait(60)

        @peer.handle("work", thread=True)
        def work() -> None:
            ran.append("work")

        try:
            script.send(notification("hold"))
            with anyio.fail_after(60):
                await running.wait()
            script.send(request(1, "work"))
            await settled()
            script.send(cancel(1))
            refused = await script.receive()
            assert (refused["id"], refused["error"]["code"]) == (1, CANCELLED)
        finally:
            release.set()
        await settled()
        assert script.unread() == []

    assert ran == []


async def test_a_handler_on_its_way_to_a_worker_runs_or_is_cancelled_and_never_both() -> None:
    ran: set[int] = set()
    outcomes: dict[int, Any] = {}
    async with scripted() as (peer, script):
        peer.handle("work", thread=True)(lambda params: ran.add(params["id"]))
        for id in range(300):
            script.send(request(id, "work", {"id": id}))
            for _ in range(id % 7):  # it is in a different state each time
                await anyio.lowlevel.checkpoint()
            script.send(cancel(id))
            received = await script.receive()
            outcomes[received["id"]] = received.get("error", {}).get("code")

    assert sorted(outcomes) == list(range(300))
    assert ran == {id for id, code in outcomes.items() if code is None}


async def test_a_handler_that_waits_for_a_worker_never_runs_after_the_end_of_its_link() -> None:
    release = threading.Event()
    ran: list[str] = []
    tasks = len(anyio.get_running_tasks())
    async with scripted(limits=Limits(inbound_requests=1, worker_threads=1)) as (peer, script):
        running = anyio.Event()

        @peer.on("hold", thread=True)
        def hold() -> None:
            anyio.from_thread.run_sync(running.set)
            assert release.wait(60)

        peer.handle("work", thread=True)(lambda: ran.append("work"))
        try:
            script.send(notification("hold"))
            with anyio.fail_after(60):
                await running.wait()
            script.send(request(1, "work"))
            await settled()
            script.leave()
            with anyio.fail_after(60):
                await peer.wait_closed()
        finally:
            release.set()
    with anyio.fail_after(60):
        while len(anyio.get_running_tasks()) > tasks:
            await anyio.lowlevel.checkpoint()

    assert ran == []


async def test_a_handler_that_swallows_the_cancellation_responds_normally() -> None:
    async with scripted() as (peer, script):

        @peer.handle("x")
        async def stubborn() -> str:
            try:
                await anyio.sleep_forever()
            except anyio.get_cancelled_exc_class():
                return "done all the same"
            raise AssertionError

        script.send(request(1, "x"))
        await settled()
        script.send(cancel(1))

        assert (await script.receive())["result"] == "done all the same"


class Steps:
    """The progress of a handler, and the event that lets it continue."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.go_on = [anyio.Event(), anyio.Event()]

    async def critical(self, *, within: int = 0) -> None:
        """Finishes two steps that must not be interrupted, and waits for ever then."""
        with anyio.CancelScope(shield=True):
            for number, event in enumerate(self.go_on):
                with anyio.CancelScope() if within else nullcontext():
                    self.seen.append(f"begun {number}")
                    await event.wait()
                    await anyio.lowlevel.checkpoint()
                    self.seen.append(f"done {number}")
        try:
            await anyio.sleep_forever()
        finally:
            self.seen.append("cancelled")


@pytest.mark.parametrize("within", [0, 1])
async def test_a_shielded_part_of_a_handler_is_finished_before_it_is_cancelled(within: int) -> None:
    steps = Steps()
    async with scripted() as (peer, script):

        @peer.handle("x")
        async def x() -> None:
            await steps.critical(within=within)

        script.send(request(1, "x"))
        await settled()
        script.send(cancel(1))
        await settled()
        script.send(cancel(1))  # which changes nothing
        assert steps.seen == ["begun 0"]
        for event in steps.go_on:
            event.set()
            await settled()

        assert steps.seen == ["begun 0", "done 0", "begun 1", "done 1", "cancelled"]
        assert (await script.receive())["error"]["code"] == CANCELLED


@pytest.mark.parametrize("is_notification", [False, True])
async def test_a_shielded_part_of_a_handler_is_finished_though_the_link_has_ended(is_notification: bool) -> None:
    steps = Steps()
    async with scripted() as (peer, script):
        (peer.on if is_notification else peer.handle)("x")(steps.critical)
        script.send(notification("x") if is_notification else request(1, "x"))
        await settled()
        script.leave()
        await settled()
        await peer.aclose()
        assert steps.seen == ["begun 0"]
        for event in steps.go_on:
            event.set()
            await settled()

    assert steps.seen == ["begun 0", "done 0", "begun 1", "done 1", "cancelled"]


async def test_a_handler_that_never_waits_again_after_its_shielded_part_responds_normally() -> None:
    go_on = anyio.Event()
    async with scripted() as (peer, script):

        @peer.handle("x")
        async def x() -> str:
            with anyio.CancelScope(shield=True):
                await go_on.wait()
            return "finished"

        script.send(request(1, "x"))
        await settled()
        script.send(cancel(1))
        await settled()
        go_on.set()

        assert (await script.receive())["result"] == "finished"


async def test_on_asyncio_a_handler_is_cancelled_once_for_each_cancellation(anyio_backend_name: str) -> None:
    """Its clean-up may wait, without a shield, and although the program has loaded anyio."""
    if anyio_backend_name != "asyncio":
        pytest.skip("elsewhere a scope that is cancelled stays so")
    seen: list[str] = []
    async with scripted() as (peer, script):

        @peer.handle("x")
        async def x() -> str:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                for _ in range(3):
                    await asyncio.sleep(0)
                    seen.append("cleans up")
            return "in order"

        script.send(request(1, "x"))
        await settled()
        script.send(cancel(1))

        assert (await script.receive())["result"] == "in order"
    assert seen == ["cleans up"] * 3


async def test_a_handler_may_respond_to_a_cancellation_with_its_own_error() -> None:
    async with scripted() as (peer, script):

        @peer.handle("x")
        async def rolls_back() -> None:
            try:
                await anyio.sleep_forever()
            finally:
                raise ValueError("could not roll back")

        script.send(request(1, "x"))
        await settled()
        script.send(cancel(1))

        assert (await script.receive())["error"]["code"] == -32603


async def test_a_function_in_a_thread_sees_that_it_was_cancelled_and_its_result_is_sent() -> None:
    began = anyio.Event()
    cancelled = threading.Event()
    async with scripted() as (peer, script):

        @peer.handle("work", thread=True)
        def work(_: Any, ctx: Context) -> str:
            assert not ctx.is_cancelled
            anyio.from_thread.run_sync(began.set)
            assert cancelled.wait(60)
            assert ctx.is_cancelled
            return "as far as it got"

        script.send(request(1, "work"))
        with anyio.fail_after(60):
            await began.wait()
        script.send(cancel(1))
        cancelled.set()

        assert (await script.receive())["result"] == "as far as it got"


async def test_a_thread_sees_that_its_link_has_ended() -> None:
    began = anyio.Event()
    may_look, has_looked = threading.Event(), threading.Event()
    seen: list[bool] = []
    async with memory_pair() as (left, right):

        @right.handle("work", thread=True)
        def work(_: Any, ctx: Context) -> None:
            anyio.from_thread.run_sync(began.set)
            assert may_look.wait(60)
            seen.append(ctx.is_cancelled)
            has_looked.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lose, left)
            with anyio.fail_after(60):
                await began.wait()
            tasks.start_soon(right.aclose)
            with anyio.fail_after(60):
                await right.wait_closed()
            may_look.set()
            await anyio.to_thread.run_sync(has_looked.wait, 5)

    assert seen == [True]


async def lose(peer: Peer) -> None:
    with pytest.raises(ConnectionError):
        await peer.call("work")


# -- cancellations without a request


@pytest.mark.parametrize(
    "params", [None, [], {}, {"id": None}, {"id": 4711}, {"id": "1"}, {"id": True}, {"id": {}}, [1]]
)
async def test_a_cancellation_that_names_no_request_is_ignored(params: object) -> None:
    async with scripted() as (peer, script):

        @peer.handle("wait")
        async def wait() -> str:
            await release.wait()
            return "waited"

        release = anyio.Event()
        script.send(request(1, "wait"))
        await settled()
        script.send(notification("$/cancelRequest", params))
        await settled()
        assert script.unread() == []
        release.set()

        assert (await script.receive())["result"] == "waited"


async def test_a_storm_of_cancellations_is_bounded_and_cancels_once() -> None:
    cancellations: list[int] = []
    async with scripted() as (peer, script):

        @peer.handle("wait")
        async def wait() -> str:
            try:
                await anyio.sleep_forever()
            except anyio.get_cancelled_exc_class():
                cancellations.append(1)
                raise
            raise AssertionError

        script.send(request(1, "wait"))
        await settled()
        script.send(*[cancel(1)] * 1000, *[cancel(id) for id in range(1000)])

        assert (await script.receive())["error"]["code"] == CANCELLED
        script.send(cancel(1))
        await settled()
        assert (cancellations, script.unread()) == ([1], [])


async def test_a_request_as_a_cancellation_is_an_unknown_method() -> None:
    async with scripted() as (_, script):
        script.send(request(1, "$/cancelRequest", {"id": 1}))

        assert (await script.receive())["error"]["code"] == -32601


# -- handlers that cancel themselves


async def test_a_handler_that_is_cancelled_by_its_own_program_gets_a_response() -> None:
    for dialect in (DIALECTS["plain"], MCP_LIKE, ACP_LIKE, SPEECHLESS):
        async with scripted(dialect=dialect) as (peer, script):

            @peer.handle("x")
            async def gives_up() -> None:
                if asyncio_runs():
                    task = asyncio.ensure_future(anyio.sleep_forever())
                    task.cancel()
                    await task
                with anyio.CancelScope() as scope:
                    scope.cancel()
                    await anyio.sleep_forever()
                raise RemoteError(method="x", code=1, message="gave up")

            script.send(request(1, "x"))

            assert (await script.receive())["error"]["code"] in (CANCELLED, -32603)


def asyncio_runs() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


# -- the rules of other protocols


async def test_a_dialect_may_leave_a_cancelled_request_without_a_response() -> None:
    ended = anyio.Event()
    async with scripted(dialect=MCP_LIKE) as (peer, script):

        @peer.handle("wait")
        async def wait() -> None:
            try:
                await anyio.sleep_forever()
            finally:
                ended.set()

        @peer.handle("never")
        async def never() -> None:
            await anyio.sleep_forever()

        script.send(request(1, "wait"))
        await settled()
        script.send(notification("notifications/cancelled", {"requestId": 1}))
        with anyio.fail_after(60):
            await ended.wait()
        script.send(request(2, "never"), notification("notifications/cancelled", {"requestId": 2}))
        script.send(request(1, "missing"))  # the id is free again

        assert (await script.receive())["error"]["code"] == -32601
        await settled()
        assert script.unread() == []


async def test_a_cancellation_is_sent_as_the_dialect_defines_it() -> None:
    async with scripted(dialect=MCP_LIKE) as (peer, script):
        with anyio.move_on_after(0.01):
            await peer.call("x")
        called = await script.receive()

        assert await script.receive() == notification("notifications/cancelled", {"requestId": called["id"]})


async def test_a_dialect_may_let_the_handler_decide_when_to_end() -> None:
    began = anyio.Event()
    look_again = anyio.Event()
    async with scripted(dialect=ACP_LIKE) as (peer, script):

        @peer.handle("prompt")
        async def prompt(_: Any, ctx: Context) -> str:
            began.set()
            await look_again.wait()
            return "cancelled" if ctx.is_cancelled else "finished"

        script.send(request(1, "prompt"))
        with anyio.fail_after(60):
            await began.wait()
        script.send(notification("session/cancel", {"id": 1}))
        await settled()
        assert script.unread() == []
        look_again.set()

        assert (await script.receive())["result"] == "cancelled"


async def test_a_dialect_without_a_cancel_method_ends_the_call_locally() -> None:
    async with scripted(dialect=SPEECHLESS, limits=Limits(stray_replies=0)) as (peer, script):
        with anyio.move_on_after(0.01):
            await peer.call("x")
        called = await script.receive()
        await settled()

        assert script.unread() == []
        script.send(response(called))
        assert not peer.is_closed


async def test_a_cancelled_caller_gets_only_its_cancellation() -> None:
    async with memory_pair() as (left, right):

        @right.handle("wait")
        async def wait() -> None:
            await anyio.sleep_forever()

        outcome: list[BaseException] = []

        async def call() -> None:
            try:
                await left.call("wait")
            except BaseException as error:
                outcome.append(error)
                raise

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await settled()
            tasks.cancel_scope.cancel()

        assert isinstance(outcome[0], anyio.get_cancelled_exc_class())
        with pytest.raises(RemoteError) as caught:  # whereas a caller that still waits gets the error
            await responds_with_cancelled(left, right)

    assert caught.value.meaning is Meaning.CANCELLED


async def responds_with_cancelled(left: Peer, right: Peer) -> None:
    from becket.errors import RequestCancelled

    @right.handle("refuse")
    def refuse() -> None:
        raise RequestCancelled

    await left.call("refuse")
