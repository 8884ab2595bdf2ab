"""Calls of the blocking runtime: the same outcomes as elsewhere, from one thread or from many."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from typing import Any

import pytest
from msgspec import Struct
from tests.blocking.pairs import Started, Watch, blocking_pair, notification, request, response, scripted

from becket import (
    BadReply,
    BatchCall,
    BatchNotify,
    Busy,
    CallTimeout,
    ConnectionLost,
    DisconnectReason,
    Limits,
    Meaning,
    PeerCrashed,
    Registry,
    RemoteError,
    RpcError,
)
from becket.blocking import BlockingPeer, connect_process
from becket.errors import LocalProtocolError, NotSupported
from becket.peer.transport.fd import FdTransport
from becket.testing import child


class Sum(Struct):
    total: int


def serve_some(peer: BlockingPeer) -> None:
    peer.handle("echo")(lambda params: params)
    peer.handle("sum")(lambda params: {"total": sum(params)})

    @peer.handle("fail")
    def fail() -> None:
        raise RpcError(Meaning.QUOTA, "too much", {"by": 1})

    @peer.handle("crash")
    def crash() -> None:
        raise KeyError("the password is swordfish")


# -- each outcome


def test_a_result_is_decoded_as_the_requested_type() -> None:
    with blocking_pair() as (left, right):
        serve_some(right)

        assert left.call("echo", {"text": "é"}) == {"text": "é"}
        assert left.call("sum", [1, 2], returns=Sum) == Sum(3)


def test_errors_of_the_other_peer_have_their_meaning_and_no_internal_details() -> None:
    with blocking_pair() as (left, right):
        serve_some(right)
        outcomes = []
        for method in ("fail", "crash", "missing"):
            with pytest.raises(RemoteError) as caught:
                left.call(method)
            outcomes.append((caught.value.meaning, caught.value.message))

    assert outcomes[0] == (Meaning.QUOTA, "too much")
    assert outcomes[1] == (Meaning.INTERNAL, "internal error")
    assert outcomes[2][0] is Meaning.UNKNOWN_METHOD


def test_a_response_of_another_type_is_a_bad_response_and_the_link_lives() -> None:
    with blocking_pair() as (left, right):
        serve_some(right)
        with pytest.raises(BadReply):
            left.call("echo", [1], returns=Sum)
        assert left.call("echo", [1]) == [1]


def test_a_timed_out_call_sends_a_cancellation() -> None:
    with scripted() as (peer, raw):
        with pytest.raises(CallTimeout):
            peer.call("slow", timeout=0.02)
        called = raw.receive()
        assert raw.receive() == notification("$/cancelRequest", {"id": called["id"]})
        raw.send(response(called, "too late"))
        later = Started(peer.call, "next")
        raw.send(response(raw.receive(), "fine"))
        assert later.result() == "fine"


def test_the_limits_of_a_peer_hold_for_its_calls() -> None:
    with scripted(limits=Limits(call_timeout=0.02)) as (peer, _), pytest.raises(CallTimeout) as caught:
        peer.call("x")
    assert caught.value.seconds == 0.02


def test_a_deadline_far_away_is_not_a_problem() -> None:
    with blocking_pair() as (left, right):
        serve_some(right)
        assert left.call("echo", [1], timeout=1e12) == [1]
        assert left.call("echo", [2], timeout=None) == [2]


def test_every_call_settles_when_the_other_peer_disconnects() -> None:
    with scripted() as (peer, raw):
        calls = [Started(peer.call, "x", timeout=None) for _ in range(3)]
        for _ in calls:
            raw.receive()
        raw.close()
        reasons = []
        for call in calls:
            with pytest.raises(ConnectionLost) as caught:
                call.result()
            reasons.append(caught.value.reason)
        with pytest.raises(ConnectionLost):
            peer.call("y")

    assert reasons == [DisconnectReason.REMOTE_CLOSE] * 3


@pytest.mark.process
def test_a_crash_of_the_child_settles_every_call_with_its_exit_code_and_stderr() -> None:
    with connect_process(child("exits_when_called", 3)) as peer:
        calls = [Started(peer.call, "x", timeout=None) for _ in range(3)]
        for call in calls:
            with pytest.raises(PeerCrashed) as caught:
                call.result()
            assert caught.value.exit_code == 3
        with pytest.raises(PeerCrashed):
            peer.call("y")


@pytest.mark.process
def test_the_exit_of_a_child_is_noticed_without_a_pending_call() -> None:
    with connect_process(child("exits", 7)) as peer:
        lost = Started(peer.wait_closed).result()
        assert isinstance(lost, PeerCrashed)
        assert lost.exit_code == 7


def test_params_that_json_cannot_encode_are_refused_before_anything_is_sent() -> None:
    with scripted() as (peer, raw):
        with pytest.raises(LocalProtocolError):
            peer.call("x", object())
        with pytest.raises(LocalProtocolError):
            peer.notify("x", float("nan"))
        peer.notify("first")
        assert raw.receive() == notification("first")


def test_a_call_that_gets_no_slot_in_time_is_busy_and_the_next_gets_one() -> None:
    with scripted(limits=Limits(outbound_calls=1)) as (peer, raw):
        first = Started(peer.call, "first")
        called = raw.receive()
        with pytest.raises(Busy):
            peer.call("second", timeout=0.02)
        third = Started(peer.call, "third")
        raw.send(response(called, 1))
        raw.send(response(raw.receive(), 3))
        assert (first.result(), third.result()) == (1, 3)


def test_a_ping_gets_a_response_while_the_handlers_hang() -> None:
    release = threading.Event()
    with blocking_pair(dialect="native") as (left, right):

        @right.handle("hang", thread=True)
        def hang() -> None:
            assert release.wait(60)

        hanging = Started(left.call, "hang")
        left.ping()
        release.set()
        hanging.result()
    with blocking_pair() as (left, _), pytest.raises(NotSupported):
        left.ping()


def test_a_batch_has_an_outcome_for_each_call() -> None:
    received: list[Any] = []
    with blocking_pair() as (left, right):
        serve_some(right)
        right.on("tell")(lambda params: received.append(params))
        outcomes = left.batch([BatchCall("echo", [1]), BatchCall("missing"), BatchNotify("tell", [2])])

    assert outcomes[0] == [1]
    assert isinstance(outcomes[1], RemoteError)
    assert received == [[2]]


def test_a_peer_shows_its_dialect_and_the_announced_features() -> None:
    with blocking_pair(dialect="native") as (left, _):
        assert "left" in repr(left)
        assert "ping" in left.features
        left.limit_features(frozenset({"cancel"}))
        assert left.features == {"cancel"}
        left.drain()
        assert (left.is_closed, left.close_reason, left.process) == (False, None, None)
        left.close()
        assert DisconnectReason.LOCAL_CLOSE.value in repr(left)


# -- many threads


@pytest.mark.parametrize("listen", [True, False])
def test_many_threads_call_at_once_and_each_gets_its_own_responses(listen: bool) -> None:
    def call_often(peer: BlockingPeer, thread: int) -> None:
        for number in range(100):
            assert peer.call("echo", [thread, number], timeout=8) == [thread, number]

    with scripted_echo(listen=listen) as peer:
        threads = [Started(call_often, peer, thread) for thread in range(8)]
        for thread in threads:
            thread.result()


class scripted_echo:
    """A peer whose remote end echoes, in a thread of its own."""

    def __init__(self, *, listen: bool) -> None:
        self._pair = blocking_pair(listen=False)
        self._listen = listen

    def __enter__(self) -> BlockingPeer:
        left, right = self._pair.__enter__()
        serve_some(right)
        right.listen()
        if self._listen:
            left.listen()
        return left

    def __exit__(self, *error: Any) -> None:
        self._pair.__exit__(*error)


@pytest.mark.parametrize("listen", [True, False])
def test_a_waiting_thread_takes_over_the_reading_when_the_reading_thread_is_done(listen: bool) -> None:
    with scripted(listen=listen) as (peer, raw):
        for round in range(50):
            quick = Started(lambda: [peer.call("quick", timeout=8) for _ in range(3)])
            called = raw.receive()
            slow = Started(peer.call, "slow", timeout=8)
            slow_request = raw.receive()
            for _ in range(2):
                raw.send(response(called, round))
                called = raw.receive()  # it has called again at once, perhaps before the other could take its place
            raw.send(response(called, round))
            assert quick.result() == [round] * 3
            raw.send(response(slow_request, "at last"))
            assert slow.result() == "at last"


def test_requests_are_served_after_several_threads_took_turns_at_reading() -> None:
    with scripted() as (peer, raw):
        serve_some(peer)
        watch = Watch(peer)
        for id in range(5):
            one, other = Started(peer.call, "a"), Started(peer.call, "b")
            called = [raw.receive(), raw.receive()]
            watch.wait_until_background_lies_down()
            raw.send(response(called[0]))
            raw.send(response(called[1]))
            one.result()
            other.result()
            raw.send(request(id, "echo", [id]))
            assert raw.receive() == {"jsonrpc": "2.0", "id": id, "result": [id]}


def test_both_peers_call_each_other_from_many_threads() -> None:
    def call_often(peer: BlockingPeer, thread: int) -> None:
        for number in range(50):
            assert peer.call("echo", [thread, number], timeout=8) == [thread, number]

    with blocking_pair() as (left, right):
        serve_some(left)
        serve_some(right)
        threads = [Started(call_often, peer, thread) for thread in range(4) for peer in (left, right)]
        for thread in threads:
            thread.result()


# -- notifications


@pytest.mark.parametrize("listen", [True, False])
def test_a_notification_is_sent_although_no_thread_waits(listen: bool) -> None:
    with scripted(listen=listen) as (peer, raw):
        for number in range(5):
            peer.notify("tell", [number])
        assert [raw.receive()["params"] for _ in range(5)] == [[number] for number in range(5)]


def test_notify_waits_while_the_other_peer_does_not_read() -> None:
    def notify_often(peer: BlockingPeer) -> None:
        for _ in range(1000):
            peer.notify("tell", ["x" * 50_000])

    with scripted(limits=Limits(send_high=100_000, call_timeout=0.2)) as (peer, _), pytest.raises(Busy):
        notify_often(peer)


# -- what is refused


def test_async_handlers_are_refused_when_they_are_registered() -> None:
    async def handler() -> None: ...

    methods = Registry()
    methods.handle("x")(handler)
    with blocking_pair() as (left, right):
        with pytest.raises(TypeError):
            right.handle("x")(handler)
        with pytest.raises(TypeError):
            right.on("x")(handler)
        right.handle("x")(lambda: "plain")
        assert left.call("x") == "plain"
    one, other = socket.socketpair()
    with other, pytest.raises(TypeError):
        BlockingPeer(FdTransport.from_socket(one), methods=methods)


@pytest.mark.process
@pytest.mark.parametrize("options", [{"dialect": "klingon"}, {"methods": "async"}])
def test_a_peer_that_cannot_be_made_leaves_no_child_behind(options: dict[str, Any]) -> None:
    async def handler() -> None: ...

    if "methods" in options:
        options = {"methods": Registry()}
        options["methods"].handle("x")(handler)
    with pytest.raises((TypeError, ValueError)):
        connect_process(child("echoes"), **options)


@pytest.mark.process
def test_the_blocking_runtime_imports_neither_asyncio_nor_anyio_nor_trio() -> None:
    program = """
import sys
from becket.blocking import connect_process
with connect_process(sys.argv[1:]) as peer:
    assert peer.call("x", [1]) == [1]
    with peer.stream("x", []) as run:
        assert run.result() == []
print(sorted({"asyncio", "anyio", "trio"} & set(sys.modules)))
"""
    ran = subprocess.run(
        [sys.executable, "-c", program, *child("echoes")],
        capture_output=True,
        encoding="utf-8",
        timeout=100,
        check=True,
    )
    assert ran.stdout.strip() == "[]"
