"""The bytes that are held for the other peer at once: in handlers, prompts, batches and queues."""

from __future__ import annotations

from typing import Any

import anyio
import anyio.from_thread
import pytest
from tests.peer.scripted import Script, notification, request, scripted, settled

from becket import Context, Limits, Meaning
from becket.errors import ERROR_CODES
from becket.jsonrpc.budget import SharedBudget
from becket.methods.descriptors import Method
from becket.permissions.gate import Gate
from becket.permissions.grants import Grants
from becket.permissions.policies import Decision

pytestmark = pytest.mark.loops

BUSY = ERROR_CODES[Meaning.BUSY]
LIMITS = Limits(frame=20_000, inbound_bytes=40_000)
TEXT = ["a" * 15_000]  # two of them fit
CONTAINERS: list[Any] = [{}] * 270  # 1,000 bytes, and 64 for each value
WRITE = Method("memory.append", Any, bool, requires="memory.write")


async def receive_responses(script: Script, count: int) -> dict[int, Any]:
    """Returns the next responses: the number of each error, or the result, by id."""
    found: dict[int, Any] = {}
    for _ in range(count):
        response = await script.receive()
        found[response["id"]] = response["error"]["code"] if "error" in response else response["result"]
    return found


class Slow:
    """A handler that waits until it may end."""

    def __init__(self) -> None:
        self.may_end = anyio.Event()
        self.running = 0

    async def serve(self, params: Any) -> int:
        self.running += 1
        await self.may_end.wait()
        return len(params)


@pytest.mark.parametrize(("params", "fit"), [(TEXT, 2), (CONTAINERS, 2), (["😀" + "a" * 9_000], 1), (["a"], 5)])
async def test_a_request_that_does_not_fit_beside_those_being_served_is_busy_at_once(params: Any, fit: int) -> None:
    slow = Slow()
    async with scripted(limits=LIMITS) as (peer, script):
        peer.handle("slow")(slow.serve)
        script.send(*(request(id, "slow", params) for id in range(5)))
        assert await receive_responses(script, 5 - fit) == dict.fromkeys(range(fit, 5), BUSY)
        await settled()
        assert slow.running == fit
        slow.may_end.set()
        assert await receive_responses(script, fit) == dict.fromkeys(range(fit), len(params))
        script.send(request(9, "slow", params))
        assert await receive_responses(script, 1) == {9: len(params)}


async def test_one_request_always_fits_an_empty_budget() -> None:
    slow = Slow()
    async with scripted(limits=Limits(frame=20_000, inbound_bytes=1)) as (peer, script):
        peer.handle("slow")(slow.serve)
        script.send(request(1, "slow", ["😀" + "a" * 19_000]), request(2, "slow", TEXT))
        assert await receive_responses(script, 1) == {2: BUSY}
        slow.may_end.set()
        assert await receive_responses(script, 1) == {1: 1}


async def test_requests_of_functions_in_threads_count() -> None:
    started, may_end = anyio.Event(), anyio.Event()

    def wait(params: Any, ctx: Context) -> int:
        anyio.from_thread.run_sync(started.set)
        anyio.from_thread.run(may_end.wait)
        return len(params)

    async with scripted(limits=LIMITS) as (peer, script):
        peer.handle("slow", thread=True)(wait)
        script.send(*(request(id, "slow", TEXT) for id in range(3)))
        assert await receive_responses(script, 1) == {2: BUSY}
        with anyio.fail_after(60):
            await started.wait()
        may_end.set()
        assert await receive_responses(script, 2) == {0: 1, 1: 1}


async def test_functions_that_return_at_once_are_never_busy() -> None:
    async with scripted(limits=LIMITS) as (peer, script):
        peer.handle("size")(lambda params: len(params[0]))
        script.send(*(request(id, "size", TEXT) for id in range(20)))
        assert await receive_responses(script, 20) == dict.fromkeys(range(20), 15_000)


async def test_requests_that_wait_for_consent_count() -> None:
    may_respond = anyio.Event()

    async def ask(prompt: str, decision: Decision) -> bool:
        await may_respond.wait()
        return True

    gate = Gate("notes", Grants(), asks=True)
    async with scripted(limits=LIMITS, gate=gate, ask=ask) as (peer, script):
        peer.handle(WRITE)(lambda params: True)
        script.send(*(request(id, "memory.append", TEXT) for id in range(4)))
        assert await receive_responses(script, 2) == {2: BUSY, 3: BUSY}
        may_respond.set()
        assert await receive_responses(script, 2) == {0: True, 1: True}
        script.send(request(5, "memory.append", TEXT))
        assert await receive_responses(script, 1) == {5: True}


async def test_a_request_that_is_cancelled_or_refused_counts_no_more() -> None:
    slow = Slow()
    gate = Gate("notes", Grants.of(["memory.write"]))
    async with scripted(limits=LIMITS, gate=gate) as (peer, script):
        peer.handle("slow")(slow.serve)
        peer.handle(WRITE)(slow.serve)
        peer.handle("typed")(typed)
        for id in range(10):
            script.send(request(id, "slow", TEXT))
            await settled()
            script.send(notification("$/cancelRequest", {"id": id}))
            assert await receive_responses(script, 1) == {id: ERROR_CODES[Meaning.CANCELLED]}
            script.send(request(id, "typed", TEXT))
            assert await receive_responses(script, 1) == {id: ERROR_CODES[Meaning.INVALID_PARAMS]}
        script.send(request(20, "memory.append", TEXT))
        await settled()
        gate.revoke("memory.write")
        assert await receive_responses(script, 1) == {20: ERROR_CODES[Meaning.PERMISSION_DENIED]}
        script.send(request(21, "slow", TEXT), request(22, "slow", TEXT), request(23, "slow", TEXT))
        assert await receive_responses(script, 1) == {23: BUSY}


async def typed(params: list[int]) -> None: ...


async def test_a_function_that_has_responded_still_holds_its_params() -> None:
    slow = Slow()

    async def accept(params: Any, ctx: Context) -> None:
        ctx.respond("accepted")
        await slow.serve(params)

    async with scripted(limits=LIMITS) as (peer, script):
        peer.handle("accept")(accept)
        peer.handle("small")(lambda: "ok")
        script.send(*(request(id, "accept", TEXT) for id in range(3)))
        assert await receive_responses(script, 3) == {0: "accepted", 1: "accepted", 2: BUSY}
        slow.may_end.set()
        await settled()
        script.send(request(4, "accept", TEXT), request(5, "accept", TEXT))
        assert await receive_responses(script, 2) == {4: "accepted", 5: "accepted"}


async def test_responses_wait_in_a_batch_only_as_far_as_they_fit() -> None:
    slow = Slow()
    async with scripted(limits=LIMITS) as (peer, script):
        peer.handle("slow")(slow.serve)
        peer.handle("large")(lambda: "a" * 15_000)
        for id in (10, 20, 30):
            script.send([request(id, "large"), request(id + 1, "slow", [])])
        await settled()
        slow.may_end.set()
        batches = [await script.receive() for _ in range(3)]
        results = {one["id"]: one.get("result") for batch in batches for one in batch}
        assert results == {10: "a" * 15_000, 20: "a" * 15_000, 30: None, 11: 0, 21: 0, 31: 0}
        refused = next(one for batch in batches for one in batch if one["id"] == 30)
        assert refused["error"]["code"] == ERROR_CODES[Meaning.TOO_LARGE]


async def test_links_that_share_a_budget_are_busy_together_and_a_link_that_ends_frees_its_part() -> None:
    slow = Slow()
    budget = SharedBudget(40_000, "bytes held for all")
    async with scripted(budget=budget) as (peer, script):
        peer.handle("slow")(slow.serve)
        async with scripted(budget=budget) as (other, second):
            other.handle("slow")(slow.serve)
            second.send(request(1, "slow", TEXT), request(2, "slow", TEXT))
            script.send(request(1, "slow", TEXT))
            response = await script.receive()
            assert response["error"]["code"] == BUSY
            assert "for all" in response["error"]["message"]
        script.send(request(2, "slow", TEXT))
        await settled()
        assert script.unread() == []
        assert budget.used == 15_000 + len('[""]') + 2 * 64


async def test_notifications_that_wait_for_their_handler_take_no_more_memory_than_their_bytes() -> None:
    seen: list[Any] = []
    may_go_on = anyio.Event()

    async def take(params: list[str]) -> None:
        await may_go_on.wait()
        seen.append(params)

    async with scripted() as (peer, script):
        peer.on("event")(take)
        script.send(notification("event", ["a"]), notification("event", ["b"]), notification("event", [3]))
        script.send(notification("event", ["c"]))
        may_go_on.set()
        await settled()
    assert seen == [["a"], ["b"], ["c"]]
