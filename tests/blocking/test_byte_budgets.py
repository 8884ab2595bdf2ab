"""How many bytes a blocking peer holds for the other side: in worker threads, and in functions that call back."""

from __future__ import annotations

import threading
from typing import Any

from tests.blocking.pairs import PATIENCE, answer, request, scripted

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

        raw.say(*(request(id, "slow", TEXT) for id in range(3)))
        busy = raw.hear()
        assert (busy["id"], busy["error"]["code"]) == (2, BUSY)
        may_end.set()
        assert {raw.hear()["id"], raw.hear()["id"]} == {0, 1}
        raw.say(request(4, "slow", TEXT))
        assert raw.hear()["result"] == 1


def test_a_request_that_does_not_fit_beside_those_that_call_back_is_busy_at_once() -> None:
    with scripted(limits=LIMITS) as (peer, raw):

        @peer.handle("nest")
        def nest(params: Any, ctx: BlockingContext) -> Any:
            return ctx.call("more")

        peer.handle("quick")(lambda params: peer.call("more"))
        asked = []
        for id, method in enumerate(("nest", "quick")):
            raw.say(request(id, method, TEXT))
            asked.append(raw.hear())
        for id, method in ((2, "nest"), (3, "quick")):
            raw.say(request(id, method, TEXT))
            busy = raw.hear()
            assert (busy["id"], busy["error"]["code"]) == (id, BUSY)
        for call in reversed(asked):
            raw.say(answer(call, "done"))
            assert raw.hear()["result"] == "done"
        raw.say(request(4, "nest", TEXT))
        raw.say(answer(raw.hear(), "again"))
        assert raw.hear()["result"] == "again"
