"""A plain handler may return a result that is settled later: the response is sent then, and nothing is left."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
from tests.peer.scripted import request, scripted, settled

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


@pytest.mark.parametrize("is_settled", [True, False])
async def test_a_link_is_freed_although_its_results_were_deferred(is_settled: bool) -> None:
    results: list[Deferred] = []
    async with scripted() as (peer, script):
        peer.handle("later")(lambda: add_result(results))
        script.send(request(1, "later"))
        if is_settled:
            results[0].settle("done")
            await script.receive()
    link: weakref.ref[Any] = weakref.ref(peer)
    del peer, script
    await settled()
    gc.collect()

    assert link() is None


def add_result(results: list[Deferred]) -> Deferred:
    results.append(Deferred())
    return results[-1]
