"""The bytes that a blocking peer holds for the other peer: in worker threads and in nested calls."""

from __future__ import annotations

import threading
from typing import Any

from tests.blocking.pairs import PATIENCE, request, response, scripted

from becket import Limits
from becket.blocking import BlockingContext

BUSY = 1002
LIMITS = Limits(frame=20_000, inbound_bytes=40_000)
TEXT = ["a" * 15_000]  # two of them fit


def test_a_request_that_does_not_fit_beside_those_in_workers_is_busy_at_once() -> None:
    may_end = threading.Event()
    with scripted(limits=LIMITS) as (peer, raw):

        @peer.handle("slow", thread=True)
        def slow(params: Any) -> int:
            assert may_end.wait(PATIENCE)
            return len(params)

        raw.send(*(request(id, "slow", TEXT) for id in range(3)))
        busy = raw.receive()
        assert (busy["id"], busy["error"]["code"]) == (2, BUSY)
        may_end.set()
        assert {raw.receive()["id"], raw.receive()["id"]} == {0, 1}
        raw.send(request(4, "slow", TEXT))
        assert raw.receive()["result"] == 1


def test_a_request_that_does_not_fit_beside_those_that_call_back_is_busy_at_once() -> None:
    with scripted(limits=LIMITS) as (peer, raw):

        @peer.handle("nest")
        def nest(params: Any, ctx: BlockingContext) -> Any:
            return ctx.call("more")

        peer.handle("quick")(lambda params: peer.call("more"))
        called = []
        for id, method in enumerate(("nest", "quick")):
            raw.send(request(id, method, TEXT))
            called.append(raw.receive())
        for id, method in ((2, "nest"), (3, "quick")):
            raw.send(request(id, method, TEXT))
            busy = raw.receive()
            assert (busy["id"], busy["error"]["code"]) == (id, BUSY)
        for call in reversed(called):
            raw.send(response(call, "done"))
            assert raw.receive()["result"] == "done"
        raw.send(request(4, "nest", TEXT))
        raw.send(response(raw.receive(), "again"))
        assert raw.receive()["result"] == "again"
