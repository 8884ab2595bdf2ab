"""Calls that are begun now and waited for later, or never."""

from __future__ import annotations

import gc

import pytest
from tests.blocking.pairs import Started, Watch, blocking_pair, notification, response, scripted

from becket import CallTimeout, ConnectionLost, DisconnectReason, Limits, RemoteError


@pytest.mark.parametrize("listen", [True, False])
def test_many_calls_of_one_thread_are_on_their_way_at_once(listen: bool) -> None:
    with scripted(listen=listen) as (peer, raw):
        pending = [peer.begin("x", [number]) for number in range(5)]
        called = [raw.receive() for _ in range(5)]  # all were sent, and none got a response
        raw.send(*[response(one, one["params"]) for one in reversed(called)])

        assert [call.result() for call in pending] == [[number] for number in range(5)]


def test_result_can_be_called_again_after_a_result_and_after_an_error() -> None:
    with blocking_pair() as (left, right):
        right.handle("echo")(lambda params: params)
        fine, failed = left.begin("echo", [1]), left.begin("missing")
        for _ in range(2):
            assert fine.result() == [1]
            with pytest.raises(RemoteError):
                failed.result()


def test_a_result_that_came_long_ago_is_still_there() -> None:
    with blocking_pair() as (left, right):
        right.handle("echo")(lambda params: params)
        early = left.begin("echo", ["early"])
        for number in range(20):
            assert left.call("echo", [number]) == [number]
        assert early.result() == ["early"]


def test_a_pending_call_times_out_although_no_thread_waits_for_it() -> None:
    with scripted() as (peer, raw):
        pending = peer.begin("slow", timeout=0.02)
        called = raw.receive()
        assert raw.receive() == notification("$/cancelRequest", {"id": called["id"]})
        with pytest.raises(CallTimeout):
            pending.result()


def test_cancel_notifies_the_other_peer_and_the_result_raises() -> None:
    with scripted() as (peer, raw):
        pending = peer.begin("slow")
        called = raw.receive()
        pending.cancel()
        pending.cancel()
        assert raw.receive() == notification("$/cancelRequest", {"id": called["id"]})
        for _ in range(2):
            with pytest.raises(BaseException, match="slow"):
                pending.result()


def test_cancelling_a_finished_call_changes_nothing() -> None:
    with blocking_pair() as (left, right):
        right.handle("echo")(lambda params: params)
        pending = left.begin("echo", [1])
        assert pending.result() == [1]
        pending.cancel()
        assert pending.result() == [1]


@pytest.mark.parametrize("listen", [True, False])
def test_cancel_wakes_a_thread_that_waits_for_the_result(listen: bool) -> None:
    with scripted(listen=listen) as (peer, raw):
        for _ in range(10):
            pending = peer.begin("slow", timeout=None)
            raw.receive()
            waits = [Started(pending.result) for _ in range(3)]
            pending.cancel()
            assert raw.receive()["method"] == "$/cancelRequest"
            for wait in waits:
                with pytest.raises(BaseException, match="slow"):
                    wait.result()


@pytest.mark.parametrize("listen", [True, False])
def test_several_threads_may_wait_for_one_result(listen: bool) -> None:
    with scripted(listen=listen) as (peer, raw):
        for round in range(20):
            pending = peer.begin("x", timeout=None)
            called = raw.receive()
            waits = [Started(pending.result) for _ in range(4)]
            raw.send(response(called, round))
            assert [wait.result() for wait in waits] == [round] * 4


def test_a_slot_that_a_cancelled_call_frees_goes_to_a_thread_that_polls_for_it() -> None:
    with scripted(listen=False, limits=Limits(outbound_calls=1)) as (peer, raw):
        first = peer.begin("first", timeout=None)
        raw.receive()
        watch = Watch(peer)
        second = Started(peer.call, "second", timeout=None)
        watch.wait_for_reader(second.thread.name)
        first.cancel()
        assert raw.receive()["method"] == "$/cancelRequest"
        called = raw.receive()
        assert called["method"] == "second"
        raw.send(response(called, 2))
        assert second.result() == 2


def test_a_pending_call_without_references_is_abandoned() -> None:
    with scripted() as (peer, raw):
        peer.begin("x", [1])
        gc.collect()
        called = raw.receive()
        assert called["method"] == "x"
        assert raw.receive() == notification("$/cancelRequest", {"id": called["id"]})


def test_pending_calls_settle_when_the_peer_is_closed() -> None:
    with scripted() as (peer, raw):
        pending = [peer.begin("x", timeout=None) for _ in range(3)]
        waits = Started(pending[0].result)
        for _ in pending:
            raw.receive()
        peer.close()
        for settle in (waits.result, pending[1].result, pending[2].result):
            with pytest.raises(ConnectionLost) as caught:
                settle()
            assert caught.value.reason is DisconnectReason.LOCAL_CLOSE
        with pytest.raises(ConnectionLost):
            peer.begin("y").result()
