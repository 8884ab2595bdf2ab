"""Handlers of the blocking runtime: in the reading thread or in workers, with nested calls."""

from __future__ import annotations

import sys
import threading
from contextvars import ContextVar
from typing import Any

import pytest
from tests.blocking.pairs import Started, Watch, blocking_pair, notification, request, response, scripted

from becket import CallTimeout, Limits, Meaning, Registry, RemoteError
from becket.blocking import BlockingContext, BlockingPeer, connect_process
from becket.testing import child


def serve_down(peer: BlockingPeer, *, thread: bool = False) -> None:
    @peer.handle("down", thread=thread)
    def down(params: dict[str, int], ctx: BlockingContext) -> int:
        if not params["levels"]:
            return 0
        deeper: int = ctx.call("down", {"levels": params["levels"] - 1})
        return 1 + deeper


# -- nested calls


@pytest.mark.parametrize("thread", [False, True])
@pytest.mark.parametrize("levels", [1, 2, 10, 32])
def test_a_handler_may_call_back_to_any_depth_that_is_allowed(levels: int, thread: bool) -> None:
    with blocking_pair(dialect="native") as (left, right):
        serve_down(left, thread=thread)
        serve_down(right, thread=thread)
        assert Started(left.call, "down", {"levels": levels}).result() == levels


def test_calls_within_calls_are_refused_beyond_the_limit() -> None:
    with blocking_pair(dialect="native", limits=Limits(call_depth=5)) as (left, right):
        serve_down(left)
        serve_down(right)
        with pytest.raises(RemoteError):
            Started(left.call, "down", {"levels": 6}).result()
        assert Started(left.call, "down", {"levels": 5}).result() == 5


@pytest.mark.parametrize("count", [10, 100, 250])
def test_every_request_of_a_burst_may_call_back(count: int) -> None:
    with scripted() as (peer, raw):

        @peer.handle("ask")
        def ask(params: list[int], ctx: BlockingContext) -> int:
            result: int = ctx.call("host/double", params)
            return result

        raw.send(*[request(id, "ask", [id]) for id in range(count)])
        # All of them call back before the first gets a response.
        calls = [raw.receive() for _ in range(count)]
        assert sorted(call["params"][0] for call in calls) == list(range(count))
        raw.send(*[response(call, call["params"][0] * 2) for call in calls])
        responses = {message["id"]: message.get("result") for message in (raw.receive() for _ in range(count))}

    assert responses == {id: id * 2 for id in range(count)}


def test_a_burst_that_nests_leaves_the_program_as_deep_as_it_was() -> None:
    with scripted() as (peer, raw):
        depths: list[int] = []

        @peer.handle("ask")
        def ask(params: list[int], ctx: BlockingContext) -> None:
            depths.append(depth())
            ctx.call("host/wait")

        raw.send(*[request(id, "ask", [id]) for id in range(200)])
        calls = [raw.receive() for _ in range(200)]
        raw.send(*[response(call) for call in reversed(calls)])
        for _ in range(200):
            raw.receive()

    assert max(depths) < sys.getrecursionlimit() // 2


def depth() -> int:
    frame, count = sys._getframe(), 0
    while frame.f_back is not None:
        frame, count = frame.f_back, count + 1
    return count


def test_a_handler_that_waits_does_not_block_later_requests() -> None:
    with scripted() as (peer, raw):
        peer.handle("echo")(lambda params: params)

        @peer.handle("ask")
        def ask(_: Any, ctx: BlockingContext) -> Any:
            return ctx.call("host/wait")

        raw.send(request(1, "ask"), request(2, "echo", [2]))
        received = [raw.receive(), raw.receive()]
        called = next(message for message in received if "method" in message)
        assert response({"id": 2}, [2]) in received
        raw.send(request(3, "echo", [3]))
        assert raw.receive() == response({"id": 3}, [3])
        raw.send(response(called, "at last"))
        assert raw.receive() == response({"id": 1}, "at last")


def test_a_handler_that_is_cancelled_while_it_waits_sees_it_and_gets_a_response() -> None:
    with scripted() as (peer, raw):

        @peer.handle("ask")
        def ask(_: Any, ctx: BlockingContext) -> list[bool]:
            before = ctx.is_cancelled
            ctx.call("host/wait")
            return [before, ctx.is_cancelled]

        raw.send(request(1, "ask"))
        called = raw.receive()
        raw.send(notification("$/cancelRequest", {"id": 1}), response(called))
        assert raw.receive() == response({"id": 1}, [False, True])


def test_a_handler_that_misses_its_deadline_while_it_waits_loses_its_nested_call() -> None:
    with scripted(dialect="native") as (peer, raw):

        @peer.handle("ask")
        def ask(_: Any, ctx: BlockingContext) -> str:
            try:
                ctx.call("host/wait", timeout=None)
            except CallTimeout:
                return "timed out"
            return "answered"

        raw.send(request(1, "ask", {"_meta": {"becket": {"timeout_ms": 30}}}))
        called = raw.receive()
        assert called["params"]["_meta"]["becket"]["parent"] == 1
        received = [raw.receive(), raw.receive()]
        assert {message.get("method", message.get("result")) for message in received} == {
            "$/cancelRequest",
            "timed out",
        }


# -- the request that a call belongs to


def meta_of(message: dict[str, Any]) -> dict[str, Any]:
    meta: dict[str, Any] = message.get("params", {}).get("_meta", {}).get("becket", {})
    return meta


@pytest.mark.parametrize("thread", [False, True])
def test_a_call_after_a_request_was_served_does_not_belong_to_it(thread: bool) -> None:
    release = threading.Event()
    with scripted(dialect="native", listen=False) as (peer, raw):

        @peer.handle("serve", thread=thread)
        def serve() -> str:
            assert not thread or release.wait(60)
            return "served"

        # This thread waits for its own call, and serves the request meanwhile.
        waiting = Started(play_other_peer, raw, release)
        peer.call("first", {})
        waiting.result()
        peer.notify("between")
        call = peer.begin("second", {})
        assert raw.receive()["method"] == "between"
        second = raw.receive()
        assert (meta_of(second).get("parent"), meta_of(second).get("depth", 0)) == (None, 0)
        assert meta_of(second)["timeout_ms"] > 30_000
        raw.send(response(second))
        call.result()


def play_other_peer(raw: Any, release: threading.Event) -> None:
    first = raw.receive()
    raw.send(request(1, "serve", {"_meta": {"becket": {"timeout_ms": 9000, "depth": 3}}}))
    release.set()
    assert raw.receive()["result"] == "served"
    raw.send(response(first))


@pytest.mark.parametrize("thread", [False, True])
def test_a_call_while_a_worker_serves_a_request_belongs_to_it_only_if_the_worker_makes_it(thread: bool) -> None:
    release = threading.Event()
    with scripted(dialect="native", listen=False) as (peer, raw):

        @peer.handle("serve", thread=True)
        def serve(_: Any, ctx: BlockingContext) -> str:
            if thread:
                ctx.call("from the worker", {})
            assert release.wait(60)
            return "served"

        def play() -> tuple[dict[str, Any], dict[str, Any]]:
            first = raw.receive()
            raw.send(request("r", "serve", {"_meta": {"becket": {"timeout_ms": 9000, "depth": 3}}}))
            inner = raw.receive() if thread else {}
            if thread:
                raw.send(response(inner))
            raw.send(response(first))
            second = raw.receive()
            raw.send(response(second))
            release.set()
            return inner, second

        playing = Started(play)
        peer.call("first", {})
        peer.call("second", {})
        inner, second = playing.result()
        assert meta_of(second).get("parent") is None
        assert meta_of(inner).get("parent") == ("r" if thread else None)
        peer.close()


def test_a_notification_that_arrives_while_a_handler_waits_does_not_belong_to_its_request() -> None:
    with scripted(dialect="native") as (peer, raw):

        @peer.handle("ask")
        def ask(_: Any, ctx: BlockingContext) -> None:
            ctx.call("host/wait", {})

        @peer.on("told")
        def on_notification() -> None:
            peer.call("from a notification", {})

        raw.send(request(1, "ask", {"_meta": {"becket": {"depth": 3}}}))
        waiting = raw.receive()
        raw.send(notification("told"))
        from_told = raw.receive()
        assert (meta_of(waiting).get("parent"), meta_of(waiting)["depth"]) == (1, 4)
        assert (meta_of(from_told).get("parent"), meta_of(from_told).get("depth", 0)) == (None, 0)
        raw.send(response(from_told), response(waiting))
        assert raw.receive()["id"] == 1


# -- order


def test_notifications_are_handled_one_at_a_time_although_their_handlers_call_back() -> None:
    steps: list[str] = []
    with scripted() as (peer, raw):

        @peer.on("tell")
        def on_notification(params: list[str]) -> None:
            steps.append(f"begin {params[0]}")
            steps.append(peer.call("host/name", params))
            steps.append(f"end {params[0]}")

        raw.send(*[notification("tell", [name]) for name in "abc"])
        for name in "abc":
            called = raw.receive()
            assert called["params"] == [name]
            raw.send(response(called, name))
        peer.handle("done")(lambda: None)
        raw.send(request(1, "done"))
        raw.receive()

    assert steps == [step for name in "abc" for step in (f"begin {name}", name, f"end {name}")]


@pytest.mark.parametrize("thread", [False, True])
def test_notifications_arrive_in_order(thread: bool) -> None:
    received: list[int] = []
    done = threading.Event()
    with blocking_pair() as (left, right):

        @right.on("tell", thread=thread)
        def on_notification(params: list[int]) -> None:
            received.append(params[0])
            if params[0] == 199:
                done.set()

        for number in range(200):
            left.notify("tell", [number])
        assert done.wait(60)

    assert received == list(range(200))


def test_requests_are_served_without_a_pending_call() -> None:
    with blocking_pair() as (left, right):
        right.handle("echo")(lambda params: params)
        left.handle("echo")(lambda params: params)
        watches = [Watch(left), Watch(right)]
        for number in range(5):
            assert left.call("echo", [number]) == [number]
            assert right.call("echo", [number]) == [number]
            for watch in watches:
                watch.wait_for_reader("becket link")


# -- workers


def test_workers_run_at_once_and_responses_overtake_them() -> None:
    barrier = threading.Barrier(4)
    with blocking_pair() as (left, right):
        right.handle("echo")(lambda params: params)

        @right.handle("meet", thread=True)
        def meet(_: Any, ctx: BlockingContext) -> None:
            assert threading.current_thread().name == "becket worker"
            barrier.wait(60)

        calls = [left.begin("meet") for _ in range(3)]
        assert left.call("echo", [1]) == [1]
        last = left.begin("meet")
        for call in (*calls, last):
            assert call.result() is None


def test_a_worker_thread_serves_one_request_after_another_with_a_context_of_its_own() -> None:
    seen: ContextVar[int] = ContextVar("seen", default=0)
    with blocking_pair() as (left, right):

        @right.handle("work", thread=True)
        def work(params: list[int]) -> list[int]:
            before = seen.get()
            seen.set(params[0])
            return [threading.get_ident(), before]

        results = [left.call("work", [number]) for number in range(1, 51)]
        assert len({thread for thread, _ in results}) < len(results)
        assert {before for _, before in results} == {0}


def test_idle_worker_threads_end_with_their_link() -> None:
    workers: list[threading.Thread] = []
    with blocking_pair() as (left, right):

        @right.handle("work", thread=True)
        def work() -> None:
            workers.append(threading.current_thread())

        for _ in range(3):
            left.call("work")
    for worker in workers:
        worker.join(60)
        assert not worker.is_alive()


def test_workers_may_call_back_all_at_once() -> None:
    with blocking_pair() as (left, right):
        left.handle("double")(lambda params: params[0] * 2)

        @right.handle("work", thread=True)
        def work(params: list[int], ctx: BlockingContext) -> int:
            result: int = ctx.call("double", params)
            return result

        calls = [left.begin("work", [number]) for number in range(30)]
        assert [call.result() for call in calls] == [number * 2 for number in range(30)]


def test_a_worker_sees_that_it_was_cancelled_and_what_it_returns_is_sent() -> None:
    began, look = threading.Event(), threading.Event()
    with scripted() as (peer, raw):

        @peer.handle("work", thread=True)
        def work(_: Any, ctx: BlockingContext) -> bool:
            assert not ctx.is_cancelled
            began.set()
            assert look.wait(60)
            return ctx.is_cancelled

        raw.send(request(1, "work"))
        assert began.wait(60)
        peer.handle("echo")(lambda params: params)
        raw.send(notification("$/cancelRequest", {"id": 1}), request(2, "echo", []))
        assert raw.receive() == response({"id": 2}, [])
        look.set()
        assert raw.receive() == response({"id": 1}, True)


def test_an_error_in_a_worker_is_an_internal_error_with_an_incident() -> None:
    with blocking_pair() as (left, right):

        @right.handle("fail", thread=True)
        def fail() -> None:
            raise KeyError("secret")

        with pytest.raises(RemoteError) as caught:
            left.call("fail")

    assert caught.value.meaning is Meaning.INTERNAL
    assert "secret" not in str(caught.value.data)


# -- the context


def test_the_context_has_the_method_the_caller_and_the_deadline() -> None:
    with scripted(dialect="native") as (peer, raw):

        @peer.handle("describe")
        def describe(params: Any, ctx: BlockingContext) -> list[Any]:
            return [params, ctx.method, ctx.id, ctx.peer is peer, 0 < ctx.remaining() <= 5, ctx.is_cancelled]

        raw.send(request("abc", "describe", {"a": 1, "_meta": {"becket": {"timeout_ms": 5000}}}))
        assert raw.receive()["result"] == [{"a": 1}, "describe", "abc", True, True, False]


@pytest.mark.process
def test_one_registry_serves_several_children() -> None:
    methods = Registry()
    methods.handle("x")(lambda params: params)
    with (
        connect_process(child("echoes"), methods=methods) as one,
        connect_process(child("echoes"), methods=methods) as other,
    ):
        assert (one.call("x", [1]), other.call("x", [2])) == ([1], [2])
        one.handle("own")(lambda: None)
        assert "own" not in other.methods


@pytest.mark.parametrize("thread", [False, True])
@pytest.mark.parametrize("is_notification", [False, True])
def test_a_handler_that_fails_because_its_caller_is_gone_is_not_an_incident(
    thread: bool, is_notification: bool, caplog: pytest.LogCaptureFixture
) -> None:
    ended = threading.Event()
    with scripted() as (peer, raw):

        def outer(_: Any, ctx: BlockingContext) -> None:
            try:
                ctx.call("never")
            finally:
                ended.set()

        (peer.on if is_notification else peer.handle)("outer", thread=thread)(outer)
        raw.send(notification("outer", {}) if is_notification else request(1, "outer", {}))
        assert raw.receive()["method"] == "never"
        raw.close()
        peer.wait_closed()
        assert ended.wait(60)
    assert [record.getMessage() for record in caplog.records] == []


def test_requests_of_unknown_methods_reach_the_handler_of_unknown_methods() -> None:
    with blocking_pair() as (left, right):

        @right.handle_unknown()
        def proxy(params: Any, ctx: BlockingContext) -> object:
            return [ctx.method, params]

        async def never() -> None: ...

        assert left.call("a/b", {"x": 1}) == ["a/b", {"x": 1}]
        with pytest.raises(TypeError):
            left.handle_unknown()(never)


def test_functions_that_wait_for_the_link_count_among_the_running_requests() -> None:
    with scripted(limits=Limits(inbound_requests=2)) as (peer, raw):
        peer.handle("nest")(lambda params: peer.call("more"))
        called = []
        for id in (1, 2):
            raw.send(request(id, "nest", {}))
            called.append(raw.receive())
        raw.send(request(3, "nest", {}))
        busy = raw.receive()
        assert (busy["id"], busy["error"]["code"]) == (3, 1002)
        for call in reversed(called):
            raw.send(response(call, "done"))
            assert raw.receive()["result"] == "done"
        raw.send(request(4, "nest", {}))
        raw.send(response(raw.receive(), "again"))
        assert raw.receive()["result"] == "again"
