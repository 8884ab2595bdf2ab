"""A blocking peer can be closed from anywhere: by another thread, twice, by a handler, in the middle of anything."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.blocking.pairs import Started, blocking_pair, request, scripted

from becket import ConnectionLost, DisconnectReason, Limits
from becket.blocking import BlockingContext, BlockingPeer, connect_process
from becket.testing import child

QUICK = Limits(stdin_grace=0.05, term_grace=0.05, flush_grace=0.05)


def reason_of(started: Started[Any]) -> DisconnectReason:
    with pytest.raises(ConnectionLost) as caught:
        started.result()
    return caught.value.reason


@pytest.mark.parametrize("listen", [True, False])
def test_closing_from_another_thread_settles_the_calls_that_wait(listen: bool) -> None:
    for _ in range(10):
        with scripted(listen=listen) as (peer, raw):
            calls = [Started(peer.call, "x", timeout=None) for _ in range(3)]
            for _ in calls:
                raw.receive()
            Started(peer.close).result()
            assert [reason_of(call) for call in calls] == [DisconnectReason.LOCAL_CLOSE] * 3
            with pytest.raises(ConnectionLost):
                peer.call("y")
            with pytest.raises(ConnectionLost):
                peer.notify("y")


@pytest.mark.parametrize("listen", [True, False])
def test_closing_many_times_at_once_is_closing_once(listen: bool) -> None:
    for _ in range(10):
        with blocking_pair(listen=listen) as (left, right):
            closes = [Started(peer.close) for _ in range(4) for peer in (left, right)]
            for close in closes:
                close.result()
            left.close()
            assert left.is_closed
            assert left.close_reason is not None


def closing(peer: BlockingPeer, closed: threading.Event) -> Callable[[], None]:
    def close() -> None:
        peer.close()
        closed.set()

    return close


@pytest.mark.parametrize("thread", [False, True])
@pytest.mark.parametrize("notified", [False, True])
def test_a_handler_may_close_its_own_peer(thread: bool, notified: bool) -> None:
    for _ in range(10):
        closed = threading.Event()
        with scripted() as (peer, raw):
            register = peer.on if notified else peer.handle
            register("close", thread=thread)(closing(peer, closed))
            raw.send({"jsonrpc": "2.0", "method": "close"} if notified else request(1, "close"))
            assert closed.wait(60)
            assert Started(peer.wait_closed).result().reason is DisconnectReason.LOCAL_CLOSE


@pytest.mark.parametrize("listen", [True, False])
def test_a_handler_may_close_its_peer_while_its_thread_waits_for_a_call(listen: bool) -> None:
    for _ in range(10):
        with scripted(listen=listen) as (peer, raw):
            peer.handle("close")(peer.close)
            call = Started(peer.call, "x", timeout=None)
            raw.receive()
            other = Started(peer.call, "y", timeout=None)
            raw.receive()
            raw.send(request(1, "close"))
            assert reason_of(call) is DisconnectReason.LOCAL_CLOSE
            assert reason_of(other) is DisconnectReason.LOCAL_CLOSE


def test_a_nested_call_is_settled_by_a_close_from_another_thread() -> None:
    outcomes: list[DisconnectReason] = []
    with scripted() as (peer, raw):

        @peer.handle("ask")
        def ask(_: Any, ctx: BlockingContext) -> None:
            try:
                ctx.call("inner", timeout=None)
            except ConnectionLost as lost:
                outcomes.append(lost.reason)
                raise

        raw.send(request(1, "ask"))
        raw.receive()
        Started(peer.close).result()

    assert outcomes == [DisconnectReason.LOCAL_CLOSE]


def test_a_running_worker_does_not_delay_the_end_and_sees_that_it_is_cancelled() -> None:
    began, look = threading.Event(), threading.Event()
    seen: list[bool] = []
    done = threading.Event()
    with scripted() as (peer, raw):

        @peer.handle("work", thread=True)
        def work(_: Any, ctx: BlockingContext) -> None:
            began.set()
            assert look.wait(60)
            seen.append(ctx.is_cancelled)
            with pytest.raises(ConnectionLost):
                ctx.call("x")
            done.set()

        raw.send(request(1, "work"))
        assert began.wait(60)
        Started(peer.close).result()
        look.set()
        assert done.wait(60)

    assert seen == [True]


@pytest.mark.parametrize("listen", [True, False])
def test_serving_ends_when_the_other_peer_leaves_or_the_peer_is_closed(listen: bool) -> None:
    with scripted(listen=listen) as (peer, raw):
        served = Started(peer.serve)
        raw.close()
        assert served.result().reason is DisconnectReason.REMOTE_CLOSE
    with scripted(listen=listen) as (peer, _):
        served = Started(peer.serve)
        Started(peer.close).result()
        assert served.result().reason is DisconnectReason.LOCAL_CLOSE


def test_a_notification_sent_just_before_close_still_arrives() -> None:
    received: list[int] = []
    for _ in range(5):
        received.clear()
        with blocking_pair() as (left, right):
            right.on("tell")(lambda params: received.append(params[0]))
            for number in range(100):
                left.notify("tell", [number])
            left.close()
            right.wait_closed()
        assert received == list(range(100))


def test_a_peer_that_was_never_used_leaves_nothing_behind() -> None:
    with blocking_pair(listen=False):
        pass
    with blocking_pair():
        pass


# -- children


@pytest.mark.process
@pytest.mark.parametrize("used", [True, False])
def test_closing_ends_the_child(used: bool) -> None:
    with connect_process(child("echoes")) as peer:
        if used:
            assert peer.call("x", [1]) == [1]

    assert peer.process.has_exited
    assert peer.process.exit_code == 0


@pytest.mark.process
def test_closing_ends_a_child_that_ignores_everything_while_calls_wait() -> None:
    with connect_process(child("ignores_sigterm"), limits=QUICK) as peer:
        ready = threading.Event()
        peer.on("ready")(lambda _: ready.set())
        calls = [Started(peer.call, "x", timeout=None) for _ in range(3)]
        assert ready.wait(60)
        closes = [Started(peer.close) for _ in range(3)]
        for close in closes:
            close.result()
        assert peer.process.signal == "SIGKILL"
        assert {reason_of(call) for call in calls} == {DisconnectReason.LOCAL_CLOSE}


@pytest.mark.process
def test_a_block_that_raises_still_ends_the_child() -> None:
    with pytest.raises(KeyError), connect_process(child("echoes")) as peer:
        raise KeyError
    assert peer.process.has_exited


CHILD = """
from becket import Registry
from becket.blocking import connect_stdio

methods = Registry()

@methods.handle("ask")
def ask(params, ctx):
    print("a stray word")
    return ctx.call("host/double", params) + 1

@methods.handle("count")
def count(params, ctx):
    for number in range(params["to"]):
        ctx.progress(number)
    return "counted"

@methods.handle("leave")
def leave(params, ctx):
    ctx.peer.close()

with connect_stdio(methods=methods) as peer:
    print("served:", peer.serve().reason.name)
"""


@pytest.mark.process
def test_two_blocking_programs_communicate_over_real_pipes(tmp_path: Path) -> None:
    script = tmp_path / "child.py"
    script.write_text(CHILD, encoding="utf-8")
    output: list[str] = []
    with connect_process([sys.executable, str(script)], inherit_env=True, on_stderr=output.append) as peer:
        peer.handle("host/double")(lambda params: params[0] * 2)
        assert peer.call("ask", [20]) == 41
        calls = [peer.begin("ask", [number]) for number in range(40)]
        assert [call.result() for call in calls] == [number * 2 + 1 for number in range(40)]
        with peer.stream("count", {"to": 50}) as run:
            assert list(run) == list(range(50))
            assert run.result() == "counted"

    assert peer.process.exit_code == 0
    assert "served: REMOTE_CLOSE" in output


@pytest.mark.process
def test_a_child_whose_handler_closes_its_peer_ends_in_good_order(tmp_path: Path) -> None:
    script = tmp_path / "child.py"
    script.write_text(CHILD, encoding="utf-8")
    output: list[str] = []
    with connect_process([sys.executable, str(script)], inherit_env=True, on_stderr=output.append) as peer:
        with pytest.raises(ConnectionLost):
            Started(peer.call, "leave", []).result()
        Started(peer.wait_closed).result()

    assert peer.process.exit_code == 0
    assert "served: LOCAL_CLOSE" in output
