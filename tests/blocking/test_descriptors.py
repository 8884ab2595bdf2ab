"""A blocking peer takes descriptors as `Peer` does: in calls, pending ones, streams, notifications and handlers."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import Struct
from tests.blocking.pairs import blocking_pair

from becket import BadReply, CallTimeout
from becket.blocking import BlockingContext
from becket.methods.descriptors import Method, Notification
from becket.methods.streams import EventReader, Stream


class Add(Struct):
    a: int
    b: int = 0


class Sum(Struct):
    total: int


class Tick(Struct):
    n: int


ADD = Method("add", Add, Sum)
COUNT = Method("count", None, int)
SLOW = Method("slow", None, None, timeout=0.01)
TICK = Notification("tick", Tick)
OVER = Notification("over", None)
TICKS = Stream("ticks", Add, Sum, events={TICK.name: EventReader(msgspec.json.Decoder(Tick).decode, (Tick,))})


def test_calls_use_the_types_of_their_descriptors() -> None:
    with blocking_pair() as (left, right):

        @right.handle(ADD)
        def add(params: Add) -> Sum:
            return Sum(params.a + params.b)

        right.handle(COUNT)(lambda: 5)

        assert left.call(ADD, Add(1, 2)) == Sum(3)
        assert left.call(COUNT) == 5
        assert left.begin(ADD, Add(3)).result() == Sum(3)
        assert left.begin(COUNT).result() == 5


def test_a_response_of_another_type_is_a_bad_response() -> None:
    with blocking_pair() as (left, right):
        right.handle("count")(lambda: "five")

        with pytest.raises(BadReply):
            left.call(COUNT)


def test_a_call_has_the_timeout_of_its_descriptor() -> None:
    with blocking_pair() as (left, right):
        right.handle(SLOW, thread=True)(lambda params, ctx: wait_until_cancelled(ctx))

        with pytest.raises(CallTimeout) as caught:
            left.call(SLOW)
        assert caught.value.seconds == 0.01
        with pytest.raises(CallTimeout) as caught:
            left.begin(SLOW, timeout=0.02).result()
        assert caught.value.seconds == 0.02


def wait_until_cancelled(ctx: Any) -> None:
    while not ctx.is_cancelled:
        pass


def test_events_and_notifications_are_read_as_described() -> None:
    with blocking_pair() as (left, right):
        received: list[Tick | None] = []

        @right.on(TICK)
        def take(params: Tick) -> None:
            received.append(params)

        right.on(OVER)(lambda: received.append(None))

        @right.handle(TICKS)
        def ticks(params: Add, ctx: BlockingContext) -> Sum:
            for number in range(params.a):
                ctx.notify(TICK, Tick(number))
            return Sum(ctx.call(COUNT))

        left.handle(COUNT)(lambda: 7)
        left.notify(TICK, Tick(9))
        left.notify(OVER)

        with left.stream(TICKS, Add(3)) as run:
            assert list(run) == [Tick(0), Tick(1), Tick(2)]
            assert run.result() == Sum(7)
        assert received == [Tick(9), None]


@pytest.mark.parametrize("bound", [{"timeout": 0.01}, {"idle_timeout": 0.01}])
def test_a_stream_ends_as_its_descriptor_defines(bound: dict[str, Any]) -> None:
    timed = Stream("ticks", Add, Sum, events=TICKS.events, **bound)
    with blocking_pair() as (left, right):
        right.handle("ticks", thread=True)(lambda params, ctx: wait_until_cancelled(ctx))

        with left.stream(timed, Add(1)) as run, pytest.raises(CallTimeout) as caught:
            run.result()
        assert caught.value.seconds == pytest.approx(0.01)


def test_a_coroutine_function_is_refused_for_a_descriptor_too_and_its_name_stays_free() -> None:
    async def later(params: Add) -> Sum:
        return Sum(params.a)

    with blocking_pair() as (left, right):
        with pytest.raises(TypeError, match="async def"):
            right.handle(ADD)(later)  # type: ignore[arg-type]
        right.handle(ADD)(lambda params: Sum(params.a))
        assert left.call(ADD, Add(4)) == Sum(4)
