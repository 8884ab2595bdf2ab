"""Handlers that respond before they return: the response, and what still ends them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from math import inf
from typing import Any

import anyio
import pytest
from tests.peer.scripted import in_virtual_time, notification, request, response, scripted, settled

from becket import ConnectionLost, Context, Limits, Meaning
from becket.errors import LocalProtocolError, RpcError, Unencodable
from becket.methods.descriptors import Method
from becket.permissions.gate import Gate
from becket.permissions.grants import Grants
from becket.testing import memory_pair

pytestmark = pytest.mark.loops


def result_of(received: Any) -> Any:
    """Returns the response to a request."""
    return received["result"]


# -- what the caller gets


async def test_a_coroutine_responds_and_continues() -> None:
    async with scripted() as (peer, script):
        ended = anyio.Event()

        @peer.handle("work")
        async def work(params: Any, ctx: Context) -> str:
            ctx.respond({"accepted": True})
            await peer.call("more")
            ended.set()
            return "dropped"

        script.send(request(1, "work"))
        assert result_of(await script.receive()) == {"accepted": True}
        script.send(response(await script.receive()))
        with anyio.fail_after(60):
            await ended.wait()
        await settled()
    assert script.unread() == []


async def test_a_plain_function_responds_before_its_later_notifications() -> None:
    async with scripted() as (peer, script):

        @peer.handle("work")
        def work(params: Any, ctx: Context) -> str:
            peer.notify_nowait("before")
            ctx.respond("accepted")
            peer.notify_nowait("after")
            return "dropped"

        script.send(request(1, "work"), request(2, "work"))
        received = [await script.receive() for _ in range(6)]
        await settled()
        output = [message.get("method", message.get("result")) for message in received]
        assert output == ["before", "accepted", "after"] * 2
    assert script.unread() == []


async def test_a_function_in_a_worker_responds_and_continues() -> None:
    async with scripted() as (peer, script):
        may_end = threading.Event()

        @peer.handle("work", thread=True)
        def work(params: Any, ctx: Context) -> str:
            ctx.respond("accepted")
            assert may_end.wait(60)
            return "dropped"

        script.send(request(1, "work"))
        assert result_of(await script.receive()) == "accepted"
        may_end.set()
    assert script.unread() == []


async def test_a_function_in_a_worker_gets_the_error_of_its_response() -> None:
    async with scripted() as (peer, script):

        @peer.handle("work", thread=True)
        def work(params: Any, ctx: Context) -> str:
            with pytest.raises(Unencodable):
                ctx.respond(object())
            ctx.respond("accepted")
            with pytest.raises(LocalProtocolError, match="sent already"):
                ctx.respond("again")
            return "dropped"

        script.send(request(1, "work"))
        assert result_of(await script.receive()) == "accepted"
    assert script.unread() == []


async def test_a_response_is_null_unless_a_value_is_given() -> None:
    async with scripted() as (peer, script):

        @peer.handle("work")
        async def work(params: Any, ctx: Context) -> str:
            ctx.respond()
            return "dropped"

        script.send(request(1, "work"))
        assert result_of(await script.receive()) is None


async def test_responding_twice_is_refused() -> None:
    async with scripted() as (peer, script):
        errors: list[Exception] = []

        @peer.handle("work")
        async def work(params: Any, ctx: Context) -> None:
            ctx.respond("accepted")
            try:
                ctx.respond("again")
            except LocalProtocolError as error:
                errors.append(error)

        script.send(request(1, "work"))
        assert result_of(await script.receive()) == "accepted"
        await settled()
    assert "the response to work was sent already" in str(errors[0])
    assert script.unread() == []


async def test_a_handler_that_has_ended_cannot_respond_any_more() -> None:
    async with scripted() as (peer, script):
        contexts: list[Context] = []

        @peer.handle("work")
        async def work(params: Any, ctx: Context) -> str:
            contexts.append(ctx)
            return "returned"

        script.send(request(1, "work"))
        assert result_of(await script.receive()) == "returned"
        with pytest.raises(LocalProtocolError, match="sent already"):
            contexts[0].respond("late")


async def test_a_result_that_json_cannot_encode_is_refused_and_another_may_be_given() -> None:
    async with scripted() as (peer, script):

        @peer.handle("work")
        async def work(params: Any, ctx: Context) -> None:
            with pytest.raises(Unencodable):
                ctx.respond(float("nan"))
            ctx.respond("accepted")

        script.send(request(1, "work"))
        assert result_of(await script.receive()) == "accepted"


async def test_responding_to_a_notification_is_refused() -> None:
    async with scripted() as (peer, script):
        errors: list[Exception] = []

        @peer.on("told")
        def on_told(params: Any, ctx: Context) -> None:
            try:
                ctx.respond("heard")
            except LocalProtocolError as error:
                errors.append(error)

        script.send(notification("told"))
        await settled()
    assert "notification" in str(errors[0])
    assert script.unread() == []


async def test_responding_on_a_lost_link_is_refused() -> None:
    async with scripted() as (peer, script):
        errors: list[Exception] = []

        @peer.handle("work")
        def work(params: Any, ctx: Context) -> None:
            script.leave()
            try:
                ctx.respond("accepted")
            except ConnectionLost as error:
                errors.append(error)

        script.send(request(1, "work"))
        await settled()
    assert len(errors) == 1


async def test_members_of_a_batch_that_respond_early_get_responses_with_the_others() -> None:
    async with scripted() as (peer, script):
        ended = anyio.Event()

        @peer.handle("work")
        async def work(params: Any, ctx: Context) -> str:
            ctx.respond("accepted")
            await ended.wait()
            return "dropped"

        @peer.handle("other")
        async def other() -> str:
            return "done"

        script.send([request(1, "work"), request(2, "other"), request(3, "work")])
        received = await script.receive()
        assert {member["id"]: member["result"] for member in received} == {1: "accepted", 2: "done", 3: "accepted"}
        ended.set()
        await settled()
    assert script.unread() == []


@pytest.mark.parametrize("dialect", ["plain", "native"])
async def test_events_after_the_response_are_not_held_back_by_credit(dialect: str) -> None:
    async with memory_pair(dialect=dialect) as (left, right):
        ended = anyio.Event()

        @right.handle("work")
        async def work(params: Any, ctx: Context) -> None:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(send, ctx, 300)  # one that waits for credit when the response is sent
                await settled()
                ctx.respond("accepted")
            await send(ctx, 300)
            ended.set()

        async def send(ctx: Context, count: int) -> None:
            for number in range(count):
                await ctx.notify("tick", {"n": number})

        late: list[object] = []
        left.methods.on("tick", unless_streamed=True)(lambda params: late.append(params))
        with anyio.fail_after(60):
            async with left.stream("work", events={"tick": dict[str, int]}) as run:
                while not run.done():  # without taking anything
                    await settled()
                await ended.wait()
                await settled()
                taken = run.batch_nowait()
                assert await run.result() == "accepted"
    assert [*taken, *late] == [{"n": number} for number in range(300)] * 2


# -- after the response


@pytest.mark.parametrize("error", [RpcError(Meaning.BUSY, "no"), ValueError("no")])
@pytest.mark.parametrize("kind", ["coroutine", "plain", "worker"])
async def test_an_error_after_the_response_is_logged_and_not_sent(
    error: Exception, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with scripted() as (peer, script):

        def work(params: Any, ctx: Context) -> None:
            ctx.respond("accepted")
            raise error

        async def work_on_loop(params: Any, ctx: Context) -> None:
            work(params, ctx)

        handlers: dict[str, Callable[[], object]] = {
            "coroutine": lambda: peer.handle("work")(work_on_loop),
            "plain": lambda: peer.handle("work")(work),
            "worker": lambda: peer.handle("work", thread=True)(work),
        }
        handlers[kind]()
        script.send(request(1, "work"))
        assert result_of(await script.receive()) == "accepted"
        peer.handle("end")(lambda _: None)
        with anyio.fail_after(60):
            while not caplog.records:
                await settled()
        script.send(request(2, "end"))
        assert (await script.receive())["id"] == 2
    assert script.unread() == []
    (record,) = caplog.records
    assert "'work' failed after its response" in record.getMessage()
    assert record.exc_info is not None
    assert record.exc_info[1] is error


# -- what still ends them, and what does not


async def test_a_request_that_got_a_response_cannot_be_cancelled_by_its_id() -> None:
    async with scripted() as (peer, script):
        may_end, seen = anyio.Event(), list[bool]()

        @peer.handle("work")
        async def work(params: Any, ctx: Context) -> None:
            ctx.respond("accepted")
            await may_end.wait()
            seen.append(ctx.is_cancelled)

        script.send(request(1, "work"))
        assert result_of(await script.receive()) == "accepted"
        script.send(notification("$/cancelRequest", {"id": 1}))
        await settled()
        may_end.set()
        await settled()
    assert seen == [False]
    assert script.unread() == []


async def test_the_id_of_a_finished_request_may_be_used_again_while_its_function_runs() -> None:
    async with scripted() as (peer, script):
        may_end, ended = anyio.Event(), list[int]()

        @peer.handle("work")
        async def work(params: dict[str, int], ctx: Context) -> None:
            ctx.respond(params["n"])
            await may_end.wait()
            ended.append(params["n"])

        @peer.handle("wait")
        async def wait() -> None:
            await anyio.sleep_forever()

        for number in (1, 2):
            script.send(request(7, "work", {"n": number}))
            assert await script.receive() == response({"id": 7}, number)
        script.send(request(7, "wait"))
        await settled()
        may_end.set()
        await settled()
        assert sorted(ended) == [1, 2]
        assert script.unread() == []  # they sent no response for the pending request
        script.send(notification("$/cancelRequest", {"id": 7}))
        assert (await script.receive())["error"]["code"] == -32800


async def test_a_function_that_continues_counts_among_the_running_requests_until_it_ends() -> None:
    async with scripted(limits=Limits(inbound_requests=1)) as (peer, script):
        may_end = anyio.Event()

        @peer.handle("work")
        async def work(params: Any, ctx: Context) -> None:
            ctx.respond("accepted")
            await may_end.wait()

        script.send(request(1, "work"))
        assert result_of(await script.receive()) == "accepted"
        script.send(request(2, "work"))
        assert (await script.receive())["error"]["code"] == 1002
        may_end.set()
        await settled()
        script.send(request(3, "work"))
        assert result_of(await script.receive()) == "accepted"


async def test_a_coroutine_that_has_responded_ends_with_its_link() -> None:
    async with scripted() as (peer, script):
        ended = anyio.Event()

        @peer.handle("work")
        async def work(params: Any, ctx: Context) -> None:
            ctx.respond("accepted")
            try:
                await anyio.sleep_forever()
            finally:
                assert ctx.is_cancelled
                ended.set()

        script.send(request(1, "work"))
        assert result_of(await script.receive()) == "accepted"
        script.leave()
        with anyio.fail_after(60):
            await ended.wait()


async def test_a_worker_that_has_responded_sees_that_its_link_has_ended() -> None:
    left = threading.Event()
    seen: list[bool] = []
    async with scripted() as (peer, script):

        @peer.handle("work", thread=True)
        def work(params: Any, ctx: Context) -> None:
            ctx.respond("accepted")
            assert left.wait(60)
            seen.append(ctx.is_cancelled)

        script.send(request(1, "work"))
        assert result_of(await script.receive()) == "accepted"
        script.leave()
        left.set()
    with anyio.fail_after(60):
        while not seen:
            await settled()
    assert seen == [True]


async def test_a_revoked_permission_ends_a_handler_that_has_responded() -> None:
    gate = Gate("notes", Grants.of(["memory.write"]))
    write = Method("write", None, None, requires="memory.write")
    async with scripted(gate=gate) as (peer, script):
        ended = anyio.Event()

        @peer.handle(write)
        async def work(_: None, ctx: Context) -> None:
            ctx.respond()
            try:
                await anyio.sleep_forever()
            finally:
                ended.set()

        script.send(request(1, "write"))
        assert result_of(await script.receive()) is None
        gate.revoke("memory.write")
        with anyio.fail_after(60):
            await ended.wait()
        await settled()
    assert script.unread() == []


@in_virtual_time
def test_the_callers_deadline_does_not_end_a_handler_that_has_responded(run: Any) -> None:
    async def main() -> None:
        async with scripted(dialect="native") as (peer, script):
            remaining: list[float] = []

            @peer.handle("work")
            async def work(params: Any, ctx: Context) -> None:
                remaining.append(ctx.remaining())
                ctx.respond("accepted")
                await anyio.sleep(60)
                remaining.append(ctx.remaining())

            script.send(request(1, "work", {"_meta": {"becket": {"timeout_ms": 20_000}}}))
            assert result_of(await script.receive()) == "accepted"
            await anyio.sleep(61)
        assert remaining == [20, inf]
        assert script.unread() == []

    run(main)


async def test_calls_after_the_response_still_belong_to_the_request() -> None:
    async with scripted(dialect="native") as (peer, script):

        @peer.handle("work")
        async def work(params: Any, ctx: Context) -> None:
            ctx.respond("accepted")
            await ctx.call("more")

        script.send(request("a", "work"))
        assert result_of(await script.receive()) == "accepted"
        called = await script.receive()
        assert called["params"]["_meta"]["becket"]["depth"] == 1
        script.send(response(called))


async def test_events_after_the_response_have_the_mark_of_their_request() -> None:
    async with scripted(dialect="native") as (peer, script):

        @peer.handle("work")
        async def work(params: Any, ctx: Context) -> None:
            ctx.respond("accepted")
            await ctx.notify("tick", {})

        script.send(request(1, "work"))
        assert result_of(await script.receive()) == "accepted"
        assert (await script.receive())["params"]["_meta"]["becket"]["parent"] == 1
