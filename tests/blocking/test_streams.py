"""A call and its events on the blocking runtime."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from msgspec import Struct
from tests.blocking.pairs import Started, blocking_pair, notification, response, scripted

from becket import BadReply, CallTimeout, ConnectionLost, Limits, Overflow, RemoteError, StreamOverrun
from becket.blocking import BlockingContext, BlockingPeer, connect_process
from becket.peer.streams import Gap
from becket.testing import child


class Tick(Struct):
    n: int


def tick(number: int) -> dict[str, Any]:
    return notification("tick", {"n": number})


def serve_counting(peer: BlockingPeer, *, thread: bool = False) -> None:
    @peer.handle("count", thread=thread)
    def count(params: dict[str, int], ctx: BlockingContext) -> str:
        for number in range(params["to"]):
            ctx.progress(number)
        return "counted"

    @peer.handle("tick", thread=thread)
    def send_ticks(params: dict[str, int], ctx: BlockingContext) -> str:
        for number in range(params["to"]):
            ctx.notify("tick", {"n": number})
        return "ticked"


@pytest.mark.parametrize("thread", [False, True])
@pytest.mark.parametrize("dialect", ["plain", "native"])
def test_a_stream_gives_typed_events_in_order_and_then_the_result(thread: bool, dialect: str) -> None:
    with blocking_pair(dialect=dialect) as (left, right):
        serve_counting(right, thread=thread)
        with left.stream("tick", {"to": 100}, events={"tick": Tick}) as run:
            assert [event.n for event in run] == list(range(100))
            assert run.result() == "ticked"


@pytest.mark.parametrize("dialect", ["plain", "native"])
def test_a_handler_also_receives_the_events_of_a_running_call(dialect: str) -> None:
    handled: list[int] = []
    with blocking_pair(dialect=dialect) as (left, right):
        serve_counting(right)
        left.on("tick")(lambda params: handled.append(params["n"]))
        with left.stream("tick", {"to": 100}, events={"tick": Tick}) as run:
            assert [event.n for event in run] == list(range(100))
            assert run.result() == "ticked"
    assert handled == list(range(100))


def test_events_of_many_threads_arrive_in_the_order_in_which_they_were_sent() -> None:
    sent: list[int] = []
    turn = threading.Lock()
    with blocking_pair() as (left, right):

        @right.handle("x", thread=True)
        def x(_: Any, ctx: BlockingContext) -> int:
            def notify_ticks() -> None:
                for _ in range(50):
                    with turn:
                        sent.append(len(sent))
                        ctx.notify("tick", {"n": sent[-1]})

            for sender in [Started(notify_ticks) for _ in range(8)]:
                sender.result()
            return len(sent)

        with left.stream("x", {}, events={"tick": Tick}) as run:
            assert [event.n for event in run] == list(range(400))
            assert run.result() == 400


@pytest.mark.parametrize("thread", [False, True])
def test_credit_delays_a_producer_for_a_bounded_time(thread: bool) -> None:
    with blocking_pair(dialect="native") as (left, right):
        serve_counting(right, thread=thread)
        with left.stream("count", {"to": 2000}) as run:
            assert list(run) == list(range(2000))
            assert run.result() == "counted"
        with left.stream("count", {"to": 2000}) as run:
            assert run.result() == "counted"  # its events are dropped, and still count


@pytest.mark.process
def test_no_event_of_a_child_that_responds_at_once_is_missed() -> None:
    with connect_process(child("ticks", 50)) as peer:
        for _ in range(5):
            with peer.stream("x", events={"tick": Tick}) as run:
                assert [event.n for event in run] == list(range(50))
                assert run.result() == 50


def test_leaving_a_stream_early_ends_it_at_the_other_peer() -> None:
    with scripted() as (peer, raw):
        with peer.stream("x", events={"tick": Tick}) as run:
            called = raw.receive()
            raw.send(tick(0), tick(1))
            assert next(iter(run)) == Tick(0)
        assert raw.receive() == notification("$/cancelRequest", {"id": called["id"]})


def test_a_stream_ends_with_the_error_of_its_call_after_its_events() -> None:
    with blocking_pair() as (left, right):

        @right.handle("fail")
        def fail(_: Any, ctx: BlockingContext) -> None:
            ctx.progress(1)
            raise LookupError

        seen: list[Any] = []

        def consume() -> None:
            with left.stream("fail") as run:
                seen.extend(run)

        with pytest.raises(RemoteError):
            consume()

    assert seen == [1]


def test_events_come_while_another_thread_calls() -> None:
    with scripted() as (peer, raw), peer.stream("stream", events={"tick": Tick}) as run:
        stream_request = raw.receive()
        events = iter(run)
        for number in range(10):
            other = Started(peer.call, "other")
            called = raw.receive()
            raw.send(tick(number), response(called, number))
            assert next(events) == Tick(number)
            assert other.result() == number
        raw.send(response(stream_request, "done"))
        assert run.result() == "done"


def test_a_stream_that_is_not_read_in_time_ends_or_drops_events_as_configured() -> None:
    with scripted(limits=Limits(stream_events=5)) as (peer, raw):
        with peer.stream("x", events={"tick": Tick}) as run:
            raw.receive()
            raw.send(*[tick(number) for number in range(20)])
            with pytest.raises(StreamOverrun):
                run.result()
        raw.receive()
        with peer.stream("x", events={"tick": Tick}, overflow=Overflow.DROP_OLDEST) as run:
            called = raw.receive()
            raw.send(*[tick(number) for number in range(20)], response(called))
            peer_has_read(peer, raw)
            assert [*run] == [Gap(15), *[Tick(number) for number in range(15, 20)]]
            assert run.dropped == 15


def peer_has_read(peer: BlockingPeer, raw: Any) -> None:
    """Makes sure that all that was sent has arrived: a later call got its response."""
    call = Started(peer.call, "ping")
    raw.send(response(raw.receive()))
    call.result()


def test_silence_times_out_and_the_end_of_the_link_ends_a_stream() -> None:
    with scripted() as (peer, raw):
        with peer.stream("x", idle_timeout=0.02) as run, pytest.raises(CallTimeout):
            list(run)
        with peer.stream("x") as run:
            raw.close()
            with pytest.raises(ConnectionLost):
                list(run)


# -- callbacks


def test_callbacks_get_every_event_before_the_call_returns() -> None:
    seen: list[Any] = []

    def on_tick(event: Tick) -> None:
        seen.append(event.n)

    with blocking_pair() as (left, right):
        serve_counting(right)
        assert left.call("count", {"to": 3}, on={"tick": on_tick}, on_progress=seen.append) == "counted"
        assert left.call("tick", {"to": 2}, on={"tick": on_tick}, on_progress=seen.append) == "ticked"

    assert seen == [0, 1, 2, 0, 1]


def test_a_callback_that_calls_back_is_not_overtaken_by_the_next_event() -> None:
    steps: list[str] = []
    with scripted() as (peer, raw):

        def on_tick(event: Tick) -> None:
            steps.append(f"begin {event.n}")
            peer.call("more", [event.n])
            steps.append(f"end {event.n}")

        call = Started(peer.call, "x", on={"tick": on_tick})
        called = raw.receive()
        raw.send(tick(0), tick(1), tick(2), response(called, "done"))
        for number in range(3):
            more = raw.receive()
            assert more["params"] == [number]
            raw.send(response(more))
        assert call.result() == "done"

    assert steps == [step for number in range(3) for step in (f"begin {number}", f"end {number}")]


def test_an_error_in_a_callback_fails_the_call_with_it() -> None:
    calls: list[int] = []

    def on_tick(event: Tick) -> None:
        calls.append(event.n)
        raise KeyError("mine")

    with scripted() as (peer, raw):
        call = Started(peer.call, "x", on={"tick": on_tick})
        called = raw.receive()
        raw.send(tick(0), tick(1))
        assert raw.receive() == notification("$/cancelRequest", {"id": called["id"]})
        with pytest.raises(KeyError, match="mine"):
            call.result()

    assert calls == [0]


def test_an_event_that_cannot_be_decoded_is_a_bad_response() -> None:
    with scripted() as (peer, raw):
        call = Started(peer.call, "x", on={"tick": take_tick})
        raw.receive()
        raw.send(notification("tick", {"n": "zero"}))
        with pytest.raises(BadReply):
            call.result()
        with peer.stream("x", events={"tick": Tick}) as run:
            raw.receive()
            raw.send(notification("tick", {"n": "zero"}))
            with pytest.raises(BadReply):
                list(run)


def take_tick(event: Tick) -> None:
    pytest.fail(f"it was called with {event}")


async def take_tick_async(event: Tick) -> None: ...


def test_an_async_callback_is_refused() -> None:
    with scripted() as (peer, raw):
        with pytest.raises(TypeError):
            peer.call("x", on={"tick": take_tick_async})
        peer.notify("first")
        assert raw.receive() == notification("first")


def test_no_event_is_delivered_after_the_end_of_the_link() -> None:
    received: list[int] = []
    with scripted(listen=False) as (peer, raw):

        def take(params: list[int]) -> None:
            received.append(params[0])
            if params[0] == 2:
                peer.close()

        call = Started(peer.call, "x", on={"tick": take})
        raw.receive()
        raw.send(notification("tick", [0]), notification("tick", [1]))
        raw.send(*(notification("tick", [number]) for number in range(2, 10)))
        with pytest.raises(ConnectionLost):
            call.result()

    assert received == [0, 1, 2]
