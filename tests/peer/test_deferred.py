"""A plain handler may return a result that is settled later: the response is sent then, and nothing is left."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
from tests.peer.scripted import notification, request, scripted, settled

from becket import RpcError
from becket.peer.deferred import Deferred

pytestmark = pytest.mark.loops


async def test_the_response_is_sent_when_the_result_is_settled() -> None:
    results: list[Deferred] = []
    async with scripted() as (peer, script):
        peer.handle("later")(lambda: add_result(results))
        script.send(request(1, "later"), request(2, "later"))
        await settled()
        assert script.unread() == []
        results[1].settle("second")
        results[0].settle(ValueError("first"))
        results[1].settle("again")

        assert (await script.receive())["result"] == "second"
        assert (await script.receive())["error"]["code"] == -32603
        await settled()
        assert script.unread() == []


async def test_a_result_that_is_settled_before_it_is_returned_is_sent() -> None:
    def settle_at_once(outcome: object) -> Deferred:
        result = Deferred()
        result.settle(outcome)
        result.settle("again")
        return result

    async with scripted() as (peer, script):
        peer.handle("value")(lambda: settle_at_once(5))
        peer.handle("error")(lambda: settle_at_once(RpcError(1234, "no")).translated(lambda outcome: outcome))
        script.send(request(1, "value"), request(2, "error"))

        assert (await script.receive())["result"] == 5
        assert (await script.receive())["error"]["code"] == 1234
        assert peer.in_flight == 0


async def test_a_result_without_json_gets_an_internal_error_as_its_response(caplog: pytest.LogCaptureFixture) -> None:
    results: list[Deferred] = []
    async with scripted() as (peer, script):
        peer.handle("later")(lambda: add_result(results))
        script.send(request(1, "later"))
        results[0].settle(object())

        assert (await script.receive())["error"]["code"] == -32603
        assert peer.in_flight == 0
    assert "cannot be encoded as JSON" in caplog.text


@pytest.mark.parametrize("end", ["settled", "cancelled", "open"])
async def test_a_link_is_freed_although_its_results_were_deferred(end: str) -> None:
    results: list[Deferred] = []
    async with scripted() as (peer, script):
        peer.handle("later")(lambda: add_result(results))
        script.send(request(1, "later"))
        if end == "settled":
            results[0].settle("done")
        elif end == "cancelled":
            script.send(notification("$/cancelRequest", {"id": 1}))
        if end != "open":
            await script.receive()
    link: weakref.ref[Any] = weakref.ref(peer)
    del peer, script
    await settled()
    gc.collect()

    assert link() is None


def add_result(results: list[Deferred]) -> Deferred:
    results.append(Deferred())
    return results[-1]
