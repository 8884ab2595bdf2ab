"""Several calls and notifications in one frame: each call has an outcome of its own."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from msgspec import Struct
from tests.peer.scripted import notification, refusal, request, response, scripted, settled

from becket import (
    BadReply,
    BatchCall,
    BatchNotify,
    Busy,
    CallTimeout,
    ConnectionLost,
    Context,
    DisconnectReason,
    Limits,
    Meaning,
    Peer,
    RemoteError,
    RpcError,
)
from becket.errors import LocalProtocolError
from becket.testing import memory_pair

pytestmark = pytest.mark.loops


class Sum(Struct):
    total: int


# -- sent batches


async def test_each_call_of_a_batch_has_its_own_outcome_in_the_order_of_the_calls() -> None:
    received: list[Any] = []
    async with memory_pair() as (left, right):
        right.on("tell")(lambda params: received.append(params))
        right.handle("sum")(lambda params: {"total": sum(params)})

        @right.handle("slow")
        async def slow() -> str:
            await anyio.lowlevel.checkpoint()
            return "slow"

        @right.handle("fail")
        def fail() -> None:
            raise RpcError(7, "seven")

        with anyio.fail_after(60):
            outcomes = await left.batch(
                [
                    BatchCall("slow"),
                    BatchNotify("tell", [1]),
                    BatchCall("sum", [1, 2], Sum),
                    BatchCall("fail"),
                    BatchCall("missing"),
                    BatchCall("sum", [1], str),
                ]
            )

    assert outcomes[:2] == ["slow", Sum(3)]
    assert [type(outcome) for outcome in outcomes[2:]] == [RemoteError, RemoteError, BadReply]
    assert (outcomes[2].code, outcomes[3].meaning) == (7, Meaning.UNKNOWN_METHOD)
    assert received == [[1]]


async def test_a_batch_is_one_frame_and_its_responses_may_come_in_any_order() -> None:
    async with scripted() as (peer, script), anyio.create_task_group() as tasks:
        outcomes: list[Any] = []

        async def ask() -> None:
            outcomes.extend(await peer.batch([BatchCall("a", [1]), BatchCall("b"), BatchCall("c"), BatchNotify("d")]))

        tasks.start_soon(ask)
        a, b, c, d = await script.receive()
        assert [message["method"] for message in (a, b, c, d)] == ["a", "b", "c", "d"]
        assert "id" not in d
        script.send([response(c, 3), refusal(a, 1)])
        script.send(response(b, 2))

    assert isinstance(outcomes[0], RemoteError)
    assert outcomes[1:] == [2, 3]


async def test_a_batch_of_notifications_alone_waits_for_nothing() -> None:
    async with scripted() as (peer, script):
        assert await peer.batch([BatchNotify("a"), BatchNotify("b", {"x": 1})]) == []
        assert await script.receive() == [notification("a"), notification("b", {"x": 1})]


async def test_an_empty_batch_is_refused_before_anything_is_sent() -> None:
    async with scripted() as (peer, script):
        with pytest.raises(LocalProtocolError):
            await peer.batch([])
        with pytest.raises(LocalProtocolError):
            await peer.batch([BatchCall("x", object())])
        assert script.unread() == []


async def test_a_peer_that_refuses_the_batch_as_a_whole_fails_each_of_its_calls_and_no_other() -> None:
    async with scripted() as (peer, script), anyio.create_task_group() as tasks:
        outcomes: list[Any] = []

        async def ask() -> None:
            outcomes.extend(await peer.batch([BatchCall("a"), BatchCall("b")]))

        async def call() -> None:
            outcomes.append(await peer.call("alone"))

        tasks.start_soon(ask)
        await script.receive()
        tasks.start_soon(call)
        alone = await script.receive()
        script.send({"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "no batches here"}})
        await settled()
        script.send(response(alone, "answered"))

    assert [outcome.meaning for outcome in outcomes[:2]] == [Meaning.INVALID_REQUEST] * 2
    assert outcomes[2] == "answered"


async def test_calls_of_a_batch_without_a_response_time_out_alone() -> None:
    async with scripted() as (peer, script), anyio.create_task_group() as tasks:
        outcomes: list[Any] = []

        async def ask() -> None:
            outcomes.extend(await peer.batch([BatchCall("a"), BatchCall("b")], timeout=0.05))

        tasks.start_soon(ask)
        a, b = await script.receive()
        script.send([response(a, 1)])
        assert (await script.receive())["params"] == {"id": b["id"]}

    assert (outcomes[0], type(outcomes[1])) == (1, CallTimeout)


async def test_leaving_a_batch_cancels_its_pending_calls() -> None:
    async with scripted(limits=Limits(stray_replies=0)) as (peer, script):
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(peer.batch, [BatchCall("a"), BatchCall("b"), BatchCall("c")])
                a, b, c = await script.receive()
                script.send([response(b)])
                scope.cancel()

        assert [(await script.receive())["params"]["id"] for _ in range(2)] == [a["id"], c["id"]]
        script.send([response(a), response(c)])
        assert not peer.is_closed


async def test_a_link_that_ends_settles_the_calls_of_a_batch() -> None:
    outcomes: list[Any] = []

    async def ask(peer: Peer) -> None:
        outcomes.extend(await peer.batch([BatchCall("a"), BatchCall("b")], timeout=None))

    async with scripted() as (peer, script):
        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask, peer)
                a, _ = await script.receive()
                script.send(response(a, 1))
                script.leave()
        assert outcomes[0] == 1
        assert isinstance(outcomes[1], ConnectionLost)
        assert outcomes[1].reason is DisconnectReason.REMOTE_CLOSE
        with pytest.raises(ConnectionLost):
            await peer.batch([BatchCall("a")])


async def test_a_batch_beyond_the_limit_of_the_other_peer_is_refused_by_it_for_every_call() -> None:
    async with memory_pair(limits=Limits(batch=3)) as (left, right):
        right.handle("x")(lambda: 1)
        with anyio.fail_after(60):
            assert await left.batch([BatchCall("x")] * 3) == [1, 1, 1]
            outcomes = await left.batch([BatchCall("x")] * 4)
            assert await left.call("x") == 1

    assert [type(outcome) for outcome in outcomes] == [RemoteError] * 4


async def test_a_batch_waits_for_a_slot_like_any_call_and_frees_it() -> None:
    async with scripted(limits=Limits(outbound_calls=1)) as (peer, script), anyio.create_task_group() as tasks:
        tasks.start_soon(peer.call, "first")
        first = await script.receive()
        tasks.start_soon(peer.batch, [BatchCall("a"), BatchCall("b")])
        await settled()
        with pytest.raises(Busy):
            await peer.batch([BatchCall("c")], timeout=0.01)
        tasks.start_soon(peer.call, "last")
        await settled()
        assert script.unread() == []
        script.send(response(first))
        a, b = await script.receive()
        script.send([response(b), response(a)])
        last = await script.receive()
        assert last["method"] == "last"
        script.send(response(last))


# -- received batches


async def test_an_incoming_batch_gets_a_response_in_one_frame_when_the_last_handler_is_done() -> None:
    release = anyio.Event()
    async with scripted() as (peer, script):
        peer.handle("quick")(lambda params: params)
        received: list[Any] = []
        peer.on("tell")(lambda params: received.append(params))

        @peer.handle("slow")
        async def slow() -> str:
            await release.wait()
            return "slow"

        script.send([request(1, "slow"), request(2, "quick", [1]), notification("tell", [2]), request(3, "missing"), 5])
        await settled()
        assert script.unread() == []
        release.set()
        responses = {message["id"]: message for message in await script.receive()}

    assert received == [[2]]
    assert responses[1]["result"] == "slow"
    assert responses[2]["result"] == [1]
    assert responses[3]["error"]["code"] == -32601
    assert responses[None]["error"]["code"] == -32600


async def test_members_of_an_incomplete_batch_cause_no_write() -> None:
    release = anyio.Event()
    async with scripted() as (peer, script):
        peer.handle("quick")(lambda params: params)

        @peer.handle("slow")
        async def slow() -> str:
            await release.wait()
            return "slow"

        script.send([request(1, "slow"), request(2, "quick", [1])], notification("other"))  # which it reads in one turn
        await settled()
        assert script.unread() == []
        release.set()

        assert [message["id"] for message in await script.receive()] == [2, 1]


async def test_a_batch_of_notifications_never_gets_a_response() -> None:
    async with scripted() as (peer, script):
        received: list[Any] = []
        peer.on("tell")(lambda params: received.append(params))
        script.send([notification("tell", [1]), notification("missing"), notification("tell", [2])])
        await settled()

        assert (received, script.unread()) == ([[1], [2]], [])


async def test_a_member_of_a_batch_may_be_cancelled_and_call_back() -> None:
    async with scripted() as (peer, script):

        @peer.handle("wait")
        async def wait() -> None:
            await anyio.sleep_forever()

        @peer.handle("back")
        async def back(_: Any, ctx: Context) -> Any:
            return await ctx.call("host/x")

        script.send([request(1, "wait"), request(2, "back")])
        called = await script.receive()
        assert called["method"] == "host/x"
        script.send(response(called, "from the host"))
        script.send(notification("$/cancelRequest", {"id": 1}))
        responses = {message["id"]: message for message in await script.receive()}

    assert responses[1]["error"]["code"] == -32800
    assert responses[2]["result"] == "from the host"
