"""Streams that are acknowledged at once and end with an event: their result, and their end."""

from __future__ import annotations

from typing import Any

import anyio
import msgspec
import pytest
from msgspec import Raw, Struct
from tests.peer.scripted import Script, in_virtual_time, notification, refusal, request, response, scripted, settled

from becket import Limits, Overflow
from becket.conversion.custom_type import CustomType
from becket.errors import (
    BadReply,
    CallTimeout,
    ConnectionLost,
    LocalProtocolError,
    Meaning,
    PermissionDenied,
    RemoteError,
    RpcError,
    StreamOverrun,
)
from becket.methods.descriptors import Method, Notification
from becket.methods.streams import CancelReason, EventReader, Stream
from becket.peer.streams import CallStream, Gap
from becket.testing import memory_pair

pytestmark = pytest.mark.loops


class Turn(Struct, frozen=True):
    stream: str


class TextEvent(Struct, frozen=True, tag="said"):
    text: str


class Failed(Struct, frozen=True, tag="failed"):
    message: str


class Done(Struct, frozen=True, tag="done"):
    words: int


class Event(Struct, frozen=True):
    stream: str
    event: TextEvent | Failed | Done


class Envelope(Struct, frozen=True):
    stream: str


class Gathered:
    """Joins the events, and compares the last one with them."""

    def __init__(self, params: Turn) -> None:
        self._stream = params.stream
        self._said: list[str] = []
        self._failure: str | None = None
        self._words = 0

    def on_response(self, response: Raw, /) -> None:
        if msgspec.json.decode(response, type=Turn).stream != self._stream:
            raise ValueError("it acknowledges another stream")

    def on_event(self, event: TextEvent | Failed | Done, /) -> bool:
        match event:
            case TextEvent(text):
                self._said.append(text)
            case Failed(message):
                self._failure = message
            case Done(words):
                self._words = words
        return not isinstance(event, TextEvent)

    def result(self) -> str:
        if self._failure is not None:
            raise RpcError(Meaning.BUSY, self._failure)
        if self._words != len(self._said):
            raise ValueError(f"{self._words} words were meant")
        return " ".join(self._said)


class Cancel(Struct, frozen=True):
    stream: str
    reason: str


CANCEL: Method[Cancel, dict[str, Any]] = Method("turn/cancel", Cancel, dict[str, Any], timeout=5.0)


def build_cancel(params: Turn, reason: CancelReason) -> tuple[Method[Cancel, dict[str, Any]], Cancel]:
    return CANCEL, Cancel(params.stream, reason)


def is_of_turn(raw: Raw, params: Turn) -> bool:
    return msgspec.json.decode(raw, type=Envelope).stream == params.stream


def read_event(raw: Raw) -> TextEvent | Failed | Done:
    return msgspec.json.decode(raw, type=Event).event


EVENTS = {"turn/event": EventReader(read_event, (TextEvent, Failed, Done), belongs=is_of_turn)}
TURN: Stream[Turn, str, TextEvent | Failed | Done] = Stream(
    "turn", Turn, str, events=EVENTS, gather=Gathered, cancel=build_cancel
)
UNCANCELLED: Stream[Turn, str, TextEvent | Failed | Done] = Stream("turn", Turn, str, events=EVENTS, gather=Gathered)
ACKNOWLEDGED = {"stream": "a"}


def text_event(text: str, stream: str = "a") -> dict[str, Any]:
    return notification("turn/event", {"stream": stream, "event": {"type": "said", "text": text}})


def done(words: int, stream: str = "a") -> dict[str, Any]:
    return notification("turn/event", {"stream": stream, "event": {"type": "done", "words": words}})


def failed(message: str) -> dict[str, Any]:
    return notification("turn/event", {"stream": "a", "event": {"type": "failed", "message": message}})


async def collect(run: CallStream[Any, Any], seen: list[object]) -> None:
    async for event in run:
        seen.append(event)


# -- results


async def test_the_result_is_made_of_the_events_and_the_response_only_acknowledges() -> None:
    async with scripted() as (peer, script), peer.stream(TURN, Turn("a")) as run:
        called = await script.receive()
        script.send(response(called, ACKNOWLEDGED))
        await settled()
        assert not run.done()
        script.send(text_event("good"), text_event("day"), done(2))
        assert [event async for event in run] == [TextEvent("good"), TextEvent("day"), Done(2)]
        assert await run.result() == "good day"
        assert await run.result() == "good day"
    assert script.unread() == []


async def test_events_may_come_before_the_acknowledgement() -> None:
    async with scripted() as (peer, script), peer.stream(TURN, Turn("a")) as run:
        called = await script.receive()
        script.send(text_event("good"))
        assert await anext(run) == TextEvent("good")
        script.send(response(called, ACKNOWLEDGED), text_event("day"), done(2))
        assert await run.result() == "good day"


async def test_all_events_may_come_before_the_acknowledgement_and_it_is_waited_for() -> None:
    async with scripted() as (peer, script), peer.stream(TURN, Turn("a")) as run:
        called = await script.receive()
        script.send(text_event("day"), done(1))
        assert [await anext(run), await anext(run)] == [TextEvent("day"), Done(1)]
        assert not run.done()
        script.send(response(called, ACKNOWLEDGED))
        assert await run.result() == "day"


async def test_events_after_the_last_one_are_dropped() -> None:
    async with scripted() as (peer, script), peer.stream(TURN, Turn("a")) as run:
        called = await script.receive()
        stray: list[object] = []
        peer.methods.on("turn/event", unless_streamed=True)(lambda params: stray.append(params))
        script.send(text_event("day"), done(1), text_event("late"), response(called, ACKNOWLEDGED), text_event("later"))
        assert [event async for event in run] == [TextEvent("day"), Done(1)]
        assert await run.result() == "day"
    assert len(stray) == 2


async def test_events_of_another_stream_are_ignored() -> None:
    async with scripted() as (peer, script), peer.stream(TURN, Turn("a")) as a, peer.stream(TURN, Turn("b")) as b:
        called = [await script.receive(), await script.receive()]
        script.send(
            response(called[1], {"stream": "b"}),
            text_event("for b", "b"),
            done(0, "nobody"),
            response(called[0], ACKNOWLEDGED),
            text_event("for a"),
            done(1),
            done(1, "b"),
        )
        assert await a.result() == "for a"
        assert await b.result() == "for b"
        assert (a.skipped, b.skipped) == (0, 0)


async def test_a_malformed_event_is_skipped_and_counted_when_it_arrives() -> None:
    async with scripted() as (peer, script), peer.stream(TURN, Turn("a")) as run:
        called = await script.receive()
        script.send(
            response(called, ACKNOWLEDGED),
            notification("turn/event", {"stream": "a", "event": {"type": "sung", "text": "la"}}),
            notification("turn/event", {"stream": "a"}),
            notification("turn/event"),  # names no stream at all
            notification("turn/event", [1]),
            text_event("day"),
            done(1),
        )
        assert run.skipped == 2
        assert [event async for event in run] == [TextEvent("day"), Done(1)]
        assert await run.result() == "day"


async def test_a_gathered_stream_gives_its_events_in_batches_and_by_class() -> None:
    async with scripted() as (peer, script):
        async with peer.stream(TURN, Turn("a")) as run:
            script.send(response(await script.receive(), ACKNOWLEDGED), text_event("good"), text_event("day"), done(2))
            assert [batch async for batch in run.batches()] == [[TextEvent("good"), TextEvent("day"), Done(2)]]
        async with peer.stream(TURN, Turn("a")) as run:
            seen: list[str] = []

            @run.on(TextEvent)
            async def take(event: TextEvent) -> None:
                await settled()
                seen.append(event.text)

            script.send(response(await script.receive(), ACKNOWLEDGED), text_event("good"), text_event("day"), done(2))
            assert await run.result() == "good day"
            assert seen == ["good", "day"]


async def test_the_result_is_complete_although_events_are_not_read_or_dropped() -> None:
    words = [text_event(str(number)) for number in range(6)]
    async with (
        scripted(limits=Limits(stream_events=2)) as (peer, script),
        peer.stream(TURN, Turn("a"), overflow=Overflow.DROP_OLDEST) as run,
    ):
        script.send(response(await script.receive(), ACKNOWLEDGED), *words, done(6))
        assert [event async for event in run] == [Gap(5), TextEvent("5"), Done(6)]
        assert await run.result() == "0 1 2 3 4 5"
        assert run.dropped == 5
    assert script.unread() == []


async def test_an_acknowledged_stream_frees_its_slot() -> None:
    async with scripted(limits=Limits(outbound_calls=1)) as (peer, script), peer.stream(TURN, Turn("a")) as run:
        script.send(response(await script.receive(), ACKNOWLEDGED))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(peer.call, "other")
            script.send(response(await script.receive()))
        script.send(done(0))
        assert await run.result() == ""


async def test_a_stream_whose_response_acknowledges_works_with_marked_events_and_progress() -> None:
    async with memory_pair(dialect="native", limits=Limits(stream_events=2000)) as (left, right):

        @right.handle("turn")
        async def turn(params: Turn) -> Turn:
            for _ in range(1000):  # more than credit would allow ahead
                await right.notify("turn/event", Event(params.stream, TextEvent("word")))
            await right.notify("turn/event", Event(params.stream, Done(1000)))
            return params

        with anyio.fail_after(60):
            async with left.stream(TURN, Turn("a"), progress=int) as run:
                assert len([event async for event in run]) == 1001


# -- failures


async def test_an_error_instead_of_the_acknowledgement_fails_the_stream() -> None:
    async with scripted() as (peer, script), peer.stream(TURN, Turn("a")) as run:
        called = await script.receive()
        script.send(text_event("good"), done(1), refusal(called, -32602, "no such engine"))
        with pytest.raises(RemoteError) as caught:
            assert [event async for event in run] == []
        assert caught.value.message == "no such engine"
        with pytest.raises(RemoteError):
            await run.result()
    assert script.unread() == []


@pytest.mark.parametrize("wrong", [{"stream": "b"}, {}, None, [1]])
async def test_an_acknowledgement_of_something_else_fails_the_stream(wrong: object) -> None:
    async with scripted() as (peer, script), peer.stream(TURN, Turn("a")) as run:
        script.send(response(await script.receive(), wrong), text_event("late"))
        with pytest.raises(BadReply) as caught:
            await run.result()
        assert caught.value.method == "turn"
        assert caught.value.__cause__ is not None
        assert (await script.receive())["params"]["reason"] == CancelReason.FAILED
        assert run.batch_nowait() == []


async def test_an_error_event_ends_the_stream_as_a_remote_error() -> None:
    async with scripted() as (peer, script), peer.stream(TURN, Turn("a")) as run:
        script.send(response(await script.receive(), ACKNOWLEDGED), text_event("good"), failed("out of words"))
        seen: list[object] = []
        with pytest.raises(RemoteError):
            await collect(run, seen)
        assert seen == [TextEvent("good"), Failed("out of words")]
        with pytest.raises(RemoteError) as caught:
            await run.result()
    error = caught.value
    assert (error.method, error.message, error.meaning, error.code) == ("turn", "out of words", Meaning.BUSY, 1002)
    assert isinstance(error.__cause__, RpcError)
    assert script.unread() == []


async def test_a_custom_error_number_is_preserved() -> None:
    class Fails(Gathered):
        def result(self) -> str:
            raise RpcError(-7, "odd", {"more": 1})

    stream: Stream[Turn, str, TextEvent | Failed | Done] = Stream("turn", Turn, str, events=EVENTS, gather=Fails)
    async with scripted() as (peer, script), peer.stream(stream, Turn("a")) as run:
        script.send(response(await script.receive(), ACKNOWLEDGED), done(0))
        with pytest.raises(RemoteError) as caught:
            await run.result()
    assert (caught.value.code, caught.value.meaning, caught.value.data) == (-7, None, {"more": 1})


async def test_events_that_make_no_result_are_a_bad_reply() -> None:
    async with scripted() as (peer, script), peer.stream(TURN, Turn("a")) as run:
        script.send(response(await script.receive(), ACKNOWLEDGED), text_event("good"), done(2))
        with pytest.raises(BadReply) as caught:
            await run.result()
    assert "2 words were meant" in caught.value.problem


class Raises(Gathered):
    """Fails in one of its functions, as a program with a mistake does."""

    where = ""

    def on_response(self, response: Raw, /) -> None:
        self._fail_in("acknowledge")

    def on_event(self, event: TextEvent | Failed | Done, /) -> bool:
        self._fail_in("take")
        return super().on_event(event)

    def result(self) -> str:
        self._fail_in("result")
        return super().result()

    def _fail_in(self, where: str) -> None:
        if where == self.where:
            raise ZeroDivisionError("mistake")


def raising(where: str) -> Stream[Turn, str, TextEvent | Failed | Done]:
    """Returns a stream with a function that raises."""

    def belongs(raw: Raw, params: Turn) -> bool:
        if where == "belongs":
            raise ZeroDivisionError("mistake")
        return is_of_turn(raw, params)

    events = {"turn/event": EventReader(read_event, (TextEvent, Failed, Done), belongs=belongs)}
    return Stream("turn", Turn, str, events=events, gather=type("RaisesThere", (Raises,), {"where": where}))


@pytest.mark.parametrize("where", ["belongs", "take", "acknowledge", "result"])
async def test_a_function_of_a_stream_that_raises_fails_its_own_stream_only(
    where: str, caplog: pytest.LogCaptureFixture
) -> None:
    outcomes: list[str] = []
    async with scripted() as (peer, script), peer.stream(UNCANCELLED, Turn("b")) as other:
        script.send(response(await script.receive(), {"stream": "b"}))
        async with peer.stream(raising(where), Turn("a")) as run, anyio.create_task_group() as tasks:
            called = await script.receive()

            async def call() -> None:
                outcomes.append(await peer.call("unrelated"))

            tasks.start_soon(call)
            unrelated = await script.receive()
            script.send(response(called, ACKNOWLEDGED), text_event("x"), done(1), text_event("y", "b"), done(1, "b"))
            script.send(response(unrelated, "fine"))
            with anyio.fail_after(60), pytest.raises(BadReply) as caught:
                await run.result()
        with anyio.fail_after(60):
            assert await other.result() == "y"
        assert not peer.is_closed
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert "ZeroDivisionError" in str(caught.value)
    assert outcomes == ["fine"]
    assert caplog.records == []


@pytest.mark.parametrize("is_acknowledged", [True, False])
async def test_a_stream_whose_last_event_never_comes_ends_with_its_link(is_acknowledged: bool) -> None:
    async with scripted() as (peer, script), peer.stream(TURN, Turn("a")) as run:
        called = await script.receive()
        script.send(text_event("good"), *([response(called, ACKNOWLEDGED)] if is_acknowledged else []))
        script.leave()
        with pytest.raises(ConnectionLost) as caught:
            assert [event async for event in run] == []
        assert any("mid-stream" in note for note in getattr(caught.value, "__notes__", ())) is is_acknowledged
        with pytest.raises(ConnectionLost):
            await run.result()
    assert script.unread() == []


async def test_streams_that_end_with_their_link_have_an_error_each() -> None:
    async with scripted() as (peer, script), peer.stream(TURN, Turn("a")) as a, peer.stream(TURN, Turn("b")) as b:
        script.send(response(await script.receive(), ACKNOWLEDGED), response(await script.receive(), {"stream": "b"}))
        await settled()
        await peer.aclose()
        errors: list[BaseException] = []
        for run in (a, b):
            with pytest.raises(ConnectionLost) as caught:
                await run.result()
            errors.append(caught.value)
    assert errors[0] is not errors[1]


# -- abandoned streams


@pytest.mark.parametrize("is_acknowledged", [True, False])
async def test_leaving_a_stream_early_sends_its_cancel_request(is_acknowledged: bool) -> None:
    async with scripted() as (peer, script):
        async with peer.stream(TURN, Turn("a")) as run:
            called = await script.receive()
            script.send(text_event("good"), *([response(called, ACKNOWLEDGED)] if is_acknowledged else []))
            assert await anext(run) == TextEvent("good")
        received = [await script.receive() for _ in range(1 if is_acknowledged else 2)]
        cancel = received[-1]
        assert (cancel["method"], cancel["params"]) == ("turn/cancel", {"stream": "a", "reason": CancelReason.LEFT})
        assert is_acknowledged or received[0] == notification("$/cancelRequest", {"id": called["id"]})
        script.send(refusal(cancel, -32601), text_event("late"))
        with pytest.raises(LocalProtocolError):
            await run.result()
        assert await response_to_call(peer, script) == "pong"


async def response_to_call(peer: Any, script: Script) -> object:
    """Returns the response to a call: the link still works."""
    results: list[object] = []

    async def call() -> None:
        results.append(await peer.call("ping"))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        script.send(response(await script.receive(), "pong"))
    return results[0]


async def test_cancelling_the_task_sends_the_cancel_request_of_its_stream() -> None:
    async with scripted() as (peer, script):
        with anyio.CancelScope() as scope:
            async with peer.stream(TURN, Turn("a")) as run:
                script.send(response(await script.receive(), ACKNOWLEDGED))
                await settled()
                scope.cancel()
                await run.result()
        assert (await script.receive())["method"] == "turn/cancel"


async def test_the_cancel_request_is_sent_although_the_link_is_closed_right_after() -> None:
    async with scripted() as (peer, script):
        async with peer.stream(TURN, Turn("a")):
            script.send(response(await script.receive(), ACKNOWLEDGED))
        await peer.aclose()
        assert (await script.receive())["method"] == "turn/cancel"


async def test_a_stream_without_a_cancel_method_sends_nothing_on_leaving() -> None:
    async with scripted() as (peer, script):
        async with peer.stream(UNCANCELLED, Turn("a")):
            script.send(response(await script.receive(), ACKNOWLEDGED))
        await settled()
    assert script.unread() == []


async def test_a_stream_that_has_its_last_event_is_not_cancelled_any_more() -> None:
    async with scripted(dialect="plain") as (peer, script):
        async with peer.stream(TURN, Turn("a")):
            called = await script.receive()
            script.send(done(0))
        await settled()
        assert script.unread() == [notification("$/cancelRequest", {"id": called["id"]})]
        script.send(response(called, ACKNOWLEDGED))  # late, and harmless


async def test_a_stream_whose_request_was_never_sent_is_not_cancelled() -> None:
    async with scripted() as (peer, script):
        script.queued = 10_000_000
        with anyio.CancelScope() as scope:
            run = peer.stream(TURN, Turn("a"))
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(run.__aenter__)
                await settled()
                run.close_with(PermissionDenied("providers.register"))
                scope.cancel()
        await settled()
    assert script.unread() == []


async def test_a_stream_that_is_ended_from_outside_is_cancelled() -> None:
    async with scripted() as (peer, script), peer.stream(TURN, Turn("a")) as run:
        script.send(response(await script.receive(), ACKNOWLEDGED), text_event("good"))
        run.close_with(PermissionDenied("providers.register"))
        assert (await script.receive())["params"] == {"stream": "a", "reason": CancelReason.LEFT}
        with pytest.raises(PermissionDenied):
            await anext(run)


async def test_a_stream_that_is_too_slow_ends_and_is_cancelled() -> None:
    async with scripted(limits=Limits(stream_events=2)) as (peer, script), peer.stream(TURN, Turn("a")) as run:
        script.send(response(await script.receive(), ACKNOWLEDGED), text_event("1"), text_event("2"), done(2))
        with pytest.raises(StreamOverrun):
            await run.result()
        assert (await script.receive())["params"]["reason"] == CancelReason.FAILED
    assert script.unread() == []


async def test_an_ordinary_stream_may_have_a_cancel_method_too() -> None:
    ordinary: Stream[Turn, str, TextEvent | Failed | Done] = Stream(
        "turn", Turn, str, events=EVENTS, cancel=build_cancel
    )
    async with scripted() as (peer, script):
        async with peer.stream(ordinary, Turn("a")):
            called = await script.receive()
        assert await script.receive() == notification("$/cancelRequest", {"id": called["id"]})
        assert (await script.receive())["method"] == "turn/cancel"


async def test_a_stream_may_be_cancelled_by_a_notification() -> None:
    stop = Notification("session/cancel", Turn)
    stream: Stream[Turn, str, TextEvent | Failed | Done] = Stream(
        "turn", Turn, str, events=EVENTS, gather=Gathered, cancel=lambda params, reason: (stop, Turn(params.stream))
    )
    async with scripted() as (peer, script):
        async with peer.stream(stream, Turn("a")):
            called = await script.receive()
            script.send(response(called, ACKNOWLEDGED))
        assert await script.receive() == notification("session/cancel", {"stream": "a"})


async def test_params_with_a_conversion_of_their_own_are_gathered_and_cancelled_as_what_they_are() -> None:
    def read(value: Any) -> Turn:
        return Turn(value["of"])

    def write(turn: Turn) -> object:
        return {"of": turn.stream}

    converted: Any = CustomType(Turn, from_json=read, to_json=write)
    stop: Method[Turn, None] = Method("stop", converted, None)
    stream: Stream[Turn, str, TextEvent | Failed | Done] = Stream(
        "turn",
        converted,
        str,
        events={"turn/event": EventReader(read_event)},
        gather=Gathered,
        cancel=lambda params, reason: (stop, Turn(f"{params.stream}: {reason}")),
    )
    async with scripted() as (peer, script):
        async with peer.stream(stream, Turn("a")):
            called = await script.receive()
            script.send(response(called, ACKNOWLEDGED))
        assert called["params"] == {"of": "a"}
        assert (await script.receive())["params"] == {"of": "a: left before its end"}


async def test_a_cancel_request_that_cannot_be_built_is_logged_and_the_stream_ends(
    internal_errors: list[Any],
) -> None:
    def fail(params: Turn, reason: CancelReason) -> tuple[Method[Any, Any], object]:
        raise KeyError(params.stream)

    stream: Stream[Turn, str, TextEvent | Failed | Done] = Stream(
        "turn", Turn, str, events=EVENTS, gather=Gathered, cancel=fail
    )
    async with scripted() as (peer, script):
        async with peer.stream(stream, Turn("a")):
            script.send(response(await script.receive(), ACKNOWLEDGED))
        assert await response_to_call(peer, script) == "pong"
    assert len(internal_errors) == 1
    internal_errors.clear()


async def test_no_cancel_request_is_sent_on_a_lost_link() -> None:
    async with scripted() as (peer, script):
        async with peer.stream(TURN, Turn("a")):
            script.send(response(await script.receive(), ACKNOWLEDGED))
            script.leave()
        await settled()
    assert script.unread() == []


async def test_requests_of_the_other_peer_are_served_while_a_stream_continues() -> None:
    async with scripted() as (peer, script), peer.stream(TURN, Turn("a")) as run:
        peer.handle("help")(lambda _: "helped")
        script.send(response(await script.receive(), ACKNOWLEDGED), request(1, "help"))
        assert (await script.receive())["result"] == "helped"
        script.send(done(0))
        assert await run.result() == ""


# -- timeouts


@in_virtual_time
def test_events_and_the_acknowledgement_renew_the_time_of_a_stream(run: Any) -> None:
    async def main() -> None:
        async with scripted() as (peer, script), peer.stream(TURN, Turn("a"), idle_timeout=10) as run:
            called = await script.receive()
            malformed = notification("turn/event", {"stream": "a"})
            for message in (response(called, ACKNOWLEDGED), text_event("good"), malformed, text_event("day"), done(2)):
                await anyio.sleep(9)
                script.send(message)
            assert await run.result() == "good day"
        assert script.unread() == []

    run(main)


@in_virtual_time
@pytest.mark.parametrize("is_acknowledged", [True, False])
def test_a_stream_that_falls_silent_times_out_and_is_cancelled_with_that_reason(
    run: Any, is_acknowledged: bool
) -> None:
    async def main() -> None:
        async with scripted() as (peer, script), peer.stream(TURN, Turn("a"), idle_timeout=10) as run:
            called, start = await script.receive(), anyio.current_time()
            script.send(text_event("good"), *([response(called, ACKNOWLEDGED)] if is_acknowledged else []))
            await anyio.sleep(4)
            script.send(text_event("day"))
            seen: list[object] = []
            with pytest.raises(CallTimeout) as caught:
                await collect(run, seen)
            assert round(anyio.current_time() - start, 1) == 14
            assert caught.value.seconds == 10
            assert seen == [TextEvent("good"), TextEvent("day")]
            await settled()
            cancel = script.unread()[-1]
            assert cancel["params"] == {"stream": "a", "reason": CancelReason.TIMED_OUT}
        await settled()
        assert script.unread() == []  # leaving it now sends nothing more

    run(main)


@in_virtual_time
def test_the_time_of_the_whole_bounds_a_stream_that_is_acknowledged(run: Any) -> None:
    async def main() -> None:
        async with scripted() as (peer, script), peer.stream(TURN, Turn("a"), timeout=25, idle_timeout=10) as run:
            script.send(response(await script.receive(), ACKNOWLEDGED))
            start = anyio.current_time()
            async with anyio.create_task_group() as tasks:

                async def talk() -> None:
                    for _ in range(3):
                        await anyio.sleep(8)
                        script.send(text_event("on"))

                tasks.start_soon(talk)
                with pytest.raises(CallTimeout) as caught:
                    await run.result()
            assert (caught.value.seconds, round(anyio.current_time() - start)) == (25, 25)
            await settled()
            assert script.unread()[-1]["params"]["reason"] == CancelReason.TIMED_OUT

    run(main)


@in_virtual_time
def test_a_cancel_request_without_a_response_is_abandoned(run: Any) -> None:
    async def main() -> None:
        async with scripted(limits=Limits(outbound_calls=1)) as (peer, script):
            async with peer.stream(TURN, Turn("a")):
                script.send(response(await script.receive(), ACKNOWLEDGED))
            assert (await script.receive())["method"] == "turn/cancel"
            start = anyio.current_time()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(peer.call, "other")
                await anyio.sleep(6)
                assert (await script.receive())["method"] == "$/cancelRequest"
                script.send(response(await script.receive()))
            assert round(anyio.current_time() - start) == 6

    run(main)
