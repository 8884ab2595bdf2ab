"""Handlers that respond before they return, and acknowledged streams, on the blocking runtime."""

from __future__ import annotations

import threading
from typing import Any

import msgspec
import pytest
from msgspec import Raw, Struct
from tests.blocking.pairs import PATIENCE, Started, blocking_pair, notification, request, response, scripted

from becket import CallTimeout, ConnectionLost, Limits, RemoteError
from becket.blocking import BlockingContext, BlockingPeer
from becket.errors import BadReply, LocalProtocolError, Meaning, RpcError, Unencodable
from becket.methods.descriptors import Method
from becket.methods.streams import CancelReason, EventReader, Stream

both = pytest.mark.parametrize("thread", [False, True])


class Turn(Struct, frozen=True):
    stream: str


class TextEvent(Struct, frozen=True):
    stream: str
    text: str = ""
    is_last: bool = False
    error: str | None = None


class Gathered:
    def __init__(self, params: Turn) -> None:
        self._stream = params.stream
        self._said: list[str] = []
        self._error: str | None = None

    def on_response(self, response: Raw, /) -> None:
        if msgspec.json.decode(response) != self._stream:
            raise ValueError("another stream")

    def on_event(self, event: TextEvent, /) -> bool:
        self._said.append(event.text)
        self._error = event.error
        return event.is_last

    def result(self) -> str:
        if self._error is not None:
            raise RpcError(Meaning.INTERNAL, self._error)
        return " ".join(self._said)


CANCEL: Method[dict[str, str], None] = Method("cancel", dict[str, str], None)


def cancel(params: Turn, reason: CancelReason) -> tuple[Method[dict[str, str], None], dict[str, str]]:
    return CANCEL, {"stream": params.stream, "reason": reason}


def read(raw: Raw) -> TextEvent:
    return msgspec.json.decode(raw, type=TextEvent)


def is_of_turn(raw: Raw, params: Turn) -> bool:
    return read(raw).stream == params.stream


TURN = Stream(
    "turn",
    Turn,
    str,
    events={"said": EventReader(read, (TextEvent,), belongs=is_of_turn)},
    gather=Gathered,
    cancel=cancel,
)


def text_event(text: str, **more: Any) -> dict[str, Any]:
    return notification("said", {"stream": "a", "text": text, **more})


# -- responding


@both
def test_a_function_responds_and_continues(thread: bool) -> None:
    with scripted() as (peer, raw):
        received, ended = threading.Event(), threading.Event()

        @peer.handle("work", thread=thread)
        def work(params: Any, ctx: BlockingContext) -> str:
            ctx.respond({"accepted": True})
            assert received.wait(PATIENCE)
            ctx.call("more")
            ended.set()
            return "dropped"

        raw.send(request(1, "work"))
        assert raw.receive()["result"] == {"accepted": True}
        received.set()
        raw.send(response(raw.receive()))
        assert ended.wait(PATIENCE)
        peer.handle("end")(lambda _: "ended")
        raw.send(request(2, "end"))
        assert raw.receive()["result"] == "ended"


def test_a_response_leaves_at_once_also_where_more_has_come_in_the_same_chunk() -> None:
    with scripted() as (peer, raw):
        received = threading.Event()

        @peer.handle("work")
        def work(params: Any, ctx: BlockingContext) -> None:
            ctx.respond("accepted")
            assert received.wait(PATIENCE)

        raw.send(request(1, "work"), request(2, "work"))
        assert raw.receive() == response({"id": 1}, "accepted")
        received.set()
        assert raw.receive() == response({"id": 2}, "accepted")


@both
def test_an_invalid_or_second_response_raises_in_the_handler(thread: bool) -> None:
    with scripted() as (peer, raw):
        errors: list[str] = []

        @peer.handle("work", thread=thread)
        def work(params: Any, ctx: BlockingContext) -> None:
            for result in (object(), "accepted", "again"):
                try:
                    ctx.respond(result)
                except LocalProtocolError as error:
                    errors.append("no JSON" if isinstance(error, Unencodable) else str(error))

        raw.send(request(1, "work"))
        assert raw.receive()["result"] == "accepted"
        peer.handle("end")(lambda _: errors)
        text_event: list[str] = []
        while len(text_event) < 2:  # the function continues in a thread of its own
            raw.send(request(2, "end"))
            text_event = raw.receive()["result"]
        assert text_event == ["no JSON", "the response to work was sent already"]


@both
def test_an_error_after_the_response_is_logged_and_not_sent(thread: bool, caplog: pytest.LogCaptureFixture) -> None:
    with scripted() as (peer, raw):

        @peer.handle("work", thread=thread)
        def work(params: Any, ctx: BlockingContext) -> None:
            ctx.respond("accepted")
            raise RpcError(Meaning.BUSY, "no")

        peer.handle("end")(lambda _: "ended")
        raw.send(request(1, "work"))
        assert raw.receive()["result"] == "accepted"
        while not caplog.records:
            raw.send(request(2, "end"))
            assert raw.receive()["result"] == "ended"
    assert ["after its response" in record.getMessage() for record in caplog.records] == [True]


def test_a_worker_that_has_responded_counts_among_the_running_requests() -> None:
    with scripted(limits=Limits(inbound_requests=1)) as (peer, raw):
        may_end = threading.Event()

        @peer.handle("work", thread=True)
        def work(params: Any, ctx: BlockingContext) -> None:
            ctx.respond("accepted")
            assert may_end.wait(PATIENCE)

        raw.send(request(1, "work"))
        assert raw.receive()["result"] == "accepted"
        raw.send(request(2, "work"))
        assert raw.receive()["error"]["code"] == 1002
        may_end.set()
        while "error" in (received := ask(raw, 3)):
            assert received["error"]["code"] == 1002
        assert received["result"] == "accepted"


def ask(raw: Any, id: int) -> dict[str, Any]:
    raw.send(request(id, "work"))
    received: dict[str, Any] = raw.receive()
    return received


def test_cancelling_a_request_that_got_a_response_changes_nothing() -> None:
    with scripted() as (peer, raw):
        may_end, seen = threading.Event(), list[bool]()

        @peer.handle("work", thread=True)
        def work(params: Any, ctx: BlockingContext) -> None:
            ctx.respond("accepted")
            assert may_end.wait(PATIENCE)
            seen.append(ctx.is_cancelled)
            peer.notify("ended")

        peer.handle("end")(lambda _: "ended")
        raw.send(request(1, "work"))
        assert raw.receive()["result"] == "accepted"
        raw.send(notification("$/cancelRequest", {"id": 1}), request(2, "end"))
        assert raw.receive()["result"] == "ended"
        may_end.set()
        assert raw.receive() == notification("ended")
    assert seen == [False]


# -- streams that are acknowledged


@both
@pytest.mark.parametrize("dialect", ["plain", "native"])
def test_a_stream_is_acknowledged_at_once_and_ends_with_an_event(thread: bool, dialect: str) -> None:
    with blocking_pair(dialect=dialect) as (left, right):

        @right.handle(TURN, thread=thread)
        def turn(params: Turn, ctx: BlockingContext) -> str:
            ctx.respond(params.stream)
            for number in range(1000):
                ctx.notify("said", TextEvent(params.stream, str(number)))
            ctx.notify("said", TextEvent(params.stream, "end", is_last=True))
            return ""

        with left.stream(TURN, Turn("a")) as run:
            assert [event.text for event in run if isinstance(event, TextEvent)] == [*map(str, range(1000)), "end"]
            assert run.result().endswith("998 999 end")
            assert run.skipped == 0


def test_events_may_come_before_the_acknowledgement_and_bad_ones_are_skipped() -> None:
    with scripted() as (peer, raw), peer.stream(TURN, Turn("a")) as run:
        called = raw.receive()
        malformed = notification("said", {"stream": "a", "text": 1})
        raw.send(
            text_event("good"), malformed, response(called, "a"), text_event("day", is_last=True), text_event("late")
        )
        assert run.result() == "good day"
        assert run.skipped == 0  # a malformed event belongs to no stream


def test_an_error_event_is_raised() -> None:
    with scripted() as (peer, raw), peer.stream(TURN, Turn("a")) as run:
        raw.send(response(raw.receive(), "a"), text_event("", is_last=True, error="out of words"))
        with pytest.raises(RemoteError, match="out of words"):
            list(run)
        with pytest.raises(RemoteError, match="out of words"):
            run.result()


def test_leaving_a_stream_early_sends_a_cancellation() -> None:
    with scripted() as (peer, raw):
        with peer.stream(TURN, Turn("a")) as run:
            raw.send(response(raw.receive(), "a"), text_event("good"))
            assert next(iter(run)) == TextEvent("a", "good")
        assert raw.receive()["params"] == {"stream": "a", "reason": CancelReason.LEFT}


def test_a_stream_that_falls_silent_times_out_and_is_cancelled() -> None:
    with scripted() as (peer, raw), peer.stream(TURN, Turn("a"), idle_timeout=0.05) as run:
        raw.send(response(raw.receive(), "a"), text_event("good"))
        with pytest.raises(CallTimeout):
            run.result()
        assert raw.receive()["params"] == {"stream": "a", "reason": CancelReason.TIMED_OUT}


def test_a_stream_without_its_last_event_ends_with_the_link() -> None:
    def take(peer: BlockingPeer) -> None:
        with peer.stream(TURN, Turn("a")) as run:
            run.result()

    with scripted() as (peer, raw):
        taking = Started(take, peer)
        raw.send(response(raw.receive(), "a"))
        raw.close()
        with pytest.raises(ConnectionLost) as caught:
            taking.result()
    assert caught.value.__notes__


@pytest.mark.parametrize("where", ["belongs", "take", "acknowledge", "result"])
def test_a_function_of_a_stream_that_raises_fails_its_own_stream_only(where: str) -> None:
    def fail_in(name: str) -> None:
        if name == where:
            raise ZeroDivisionError("mistake")

    class Raises(Gathered):
        def on_response(self, response: Raw, /) -> None:
            fail_in("acknowledge")

        def on_event(self, event: TextEvent, /) -> bool:
            fail_in("take")
            return super().on_event(event)

        def result(self) -> str:
            fail_in("result")
            return super().result()

    def belongs(raw: Raw, params: Turn) -> bool:
        fail_in("belongs")
        return is_of_turn(raw, params)

    events = {"said": EventReader(read, (TextEvent,), belongs=belongs)}
    turn = Stream("turn", Turn, str, events=events, gather=Raises)
    with scripted(listen=False) as (peer, raw), peer.stream(turn, Turn("a")) as run:
        called = raw.receive()
        unrelated = Started(peer.call, "unrelated")
        other = raw.receive()
        raw.send(response(called, "a"), text_event("x", is_last=True), response(other, "fine"))
        assert unrelated.result() == "fine"
        with pytest.raises(BadReply) as caught:
            run.result()
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
