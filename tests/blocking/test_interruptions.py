"""An interruption of a waiting thread abandons its call and affects no other thread."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.blocking.pairs import PATIENCE, Started, Watch, notification, request, response, scripted

from becket import Limits
from becket.blocking import BlockingContext
from becket.peer.blocking_calls import PendingCall


class Interrupted(BaseException):
    """Stands for a KeyboardInterrupt: raised by a signal, wherever the main thread is."""


class Interrupter:
    """Interrupts the main thread once, wherever it is."""

    def __init__(self) -> None:
        self._is_due = False
        self._has_come = threading.Event()

    def __call__(self) -> None:
        """Returns when the main thread was interrupted. A signal alone is lost where it comes just before a wait."""
        self._has_come.clear()
        self._is_due = True
        until = time.monotonic() + PATIENCE
        while not self._has_come.wait(0.005) and time.monotonic() < until:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)

    def raise_once(self, *_: object) -> None:
        if self._is_due:
            self._is_due = False
            self._has_come.set()
            raise Interrupted


@pytest.fixture
def interrupt() -> Iterator[Interrupter]:
    interrupter = Interrupter()
    before = signal.signal(signal.SIGUSR1, interrupter.raise_once)
    yield interrupter
    signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize("listen", [True, False])
def test_an_interruption_abandons_the_call_that_waits_and_the_peer_lives_on(
    listen: bool, interrupt: Interrupter
) -> None:
    with scripted(listen=listen) as (peer, raw):

        def play() -> None:
            called = raw.receive()
            interrupt()
            assert raw.receive() == notification("$/cancelRequest", {"id": called["id"]})
            raw.send(response(raw.receive(), "fine"))

        for _ in range(10):
            playing = Started(play)
            with pytest.raises(Interrupted):
                peer.call("slow", timeout=None)
            assert peer.call("next", timeout=8) == "fine"
            playing.result()


def test_an_interruption_of_the_reading_thread_lets_another_continue(interrupt: Interrupter) -> None:
    with scripted(listen=False) as (peer, raw):
        for round in range(20):
            others: list[Started[Any]] = []

            def play(round: int = round, others: list[Started[Any]] = others) -> None:
                raw.receive()
                for _ in range(3):
                    others.append(Started(peer.call, "other", timeout=None))
                called = [raw.receive() for _ in range(3)]
                interrupt()
                assert raw.receive()["method"] == "$/cancelRequest"
                raw.send(*[response(one, round) for one in called])

            playing = Started(play)
            with pytest.raises(Interrupted):
                peer.call("slow", timeout=None)
            playing.result()
            assert [other.result() for other in others] == [round] * 3


@pytest.mark.parametrize("listen", [True, False])
def test_an_interruption_of_a_parked_thread_affects_no_other_thread(listen: bool, interrupt: Interrupter) -> None:
    with scripted(listen=listen) as (peer, raw):
        for round in range(20):
            pump = Started(peer.call, "pump", timeout=None)
            first = raw.receive()

            def play(pump: Started[Any] = pump, first: Any = first, round: int = round) -> None:
                raw.receive()
                third = Started(peer.call, "third", timeout=None)
                last = raw.receive()
                interrupt()
                assert raw.receive()["method"] == "$/cancelRequest"
                raw.send(response(first, round))
                assert pump.result() == round
                raw.send(response(last, round))
                assert third.result() == round

            playing = Started(play)
            with pytest.raises(Interrupted):
                peer.call("parked", timeout=None)
            playing.result()


def test_a_handler_behind_an_interrupted_one_can_call_back() -> None:
    with scripted(listen=False) as (peer, raw):

        @peer.handle("interrupted")
        def interrupted() -> None:
            raise Interrupted

        peer.handle("nested")(lambda: peer.call("back", timeout=PATIENCE))
        peer.handle("echo")(lambda params: params)
        raw.send(request(1, "interrupted"), request(2, "nested"), request(3, "echo", [3]))

        def play() -> None:
            called: dict[str, Any] = {}
            while not {"back", "second"} <= called.keys():
                message = raw.receive()
                called[message.get("method")] = message
            raw.send(response(called["back"], "done"), response(called["second"], "fine"))

        with pytest.raises(Interrupted):
            peer.call("first", timeout=PATIENCE)
        playing = Started(play)
        assert peer.call("second", timeout=PATIENCE) == "fine"
        playing.result()


def test_an_interruption_within_a_handler_ends_the_wait_of_the_thread_that_ran_it(interrupt: Interrupter) -> None:
    began = threading.Event()
    with scripted(listen=False) as (peer, raw):

        @peer.handle("slow")
        def slow() -> str:
            began.set()
            threading.Event().wait(60)
            return "not reached"

        peer.handle("echo")(lambda params: params)

        def play() -> None:
            first = raw.receive()
            other = Started(peer.call, "other", timeout=None)
            second = raw.receive()
            # The handler is interrupted with the response for another thread right behind it.
            raw.send(request(1, "slow"), response(second, "for the other"), request(2, "echo", [2]))
            assert began.wait(60)
            interrupt()
            assert other.result() == "for the other"
            received = [raw.receive(), raw.receive(), raw.receive()]
            assert notification("$/cancelRequest", {"id": first["id"]}) in received
            assert response({"id": 2}, [2]) in received
            (interrupted,) = [each for each in received if each.get("id") == 1]
            assert interrupted["error"]["message"] == "internal error: the program was interrupted"

        playing = Started(play)
        with pytest.raises(Interrupted):
            peer.call("first", timeout=None)
        playing.result()


@pytest.mark.parametrize("arity", [0, 1, 2])
def test_a_handler_that_is_interrupted_is_responded_to_and_frees_its_slot(interrupt: Interrupter, arity: int) -> None:
    began = threading.Event()

    def wait() -> None:
        began.set()
        threading.Event().wait(60)

    def wait_with_params(params: object) -> None:
        wait()

    def wait_with_context(params: object, ctx: BlockingContext) -> None:
        wait()

    with scripted(listen=False, limits=Limits(inbound_requests=1)) as (peer, raw):
        peer.handle("slow")((wait, wait_with_params, wait_with_context)[arity])
        peer.handle("next")(lambda: "served")

        def play() -> None:
            raw.send(request(1, "slow", {}))
            assert began.wait(60)
            interrupt()
            assert raw.receive()["error"]["code"] == -32603
            raw.send(request(2, "next"))
            assert raw.receive() == response({"id": 2}, "served")
            raw.close()

        playing = Started(play)
        with pytest.raises(Interrupted):
            peer.serve()
        assert peer.serve() is not None  # it continues until the link has ended
        playing.result()


def test_a_pending_call_whose_constructor_was_interrupted_is_dropped_silently() -> None:
    made = PendingCall.__new__(PendingCall)
    made.__del__()


def test_an_interruption_of_a_pending_result_abandons_it(interrupt: Interrupter) -> None:
    with scripted() as (peer, raw):
        watch = Watch(peer)
        pending = peer.begin("slow", timeout=None)
        called = raw.receive()

        def interrupt_the_wait() -> None:
            watch.wait_for_reader(threading.main_thread().name)
            interrupt()

        interrupting = Started(interrupt_the_wait)
        with pytest.raises(Interrupted):
            pending.result()
        interrupting.result()
        assert raw.receive() == notification("$/cancelRequest", {"id": called["id"]})


def test_an_interruption_of_a_stream_ends_it_at_the_other_peer(interrupt: Interrupter) -> None:
    with scripted() as (peer, raw):
        taken = threading.Event()

        def consume() -> None:
            with peer.stream("slow") as run:
                for _ in run:
                    taken.set()

        def play() -> None:
            called = raw.receive()
            raw.send(notification("$/progress", {"token": called["id"], "value": 1}))
            assert taken.wait(PATIENCE)
            interrupt()
            assert raw.receive() == notification("$/cancelRequest", {"id": called["id"]})

        playing = Started(play)
        with pytest.raises(Interrupted):
            consume()
        playing.result()


def test_an_interruption_of_a_nested_call_reaches_the_call_around_it(interrupt: Interrupter) -> None:
    with scripted(listen=False) as (peer, raw):

        @peer.handle("ask")
        def ask(_: Any, ctx: BlockingContext) -> None:
            ctx.call("inner", timeout=None)

        def play() -> None:
            outer = raw.receive()
            raw.send(request(1, "ask"))
            inner = raw.receive()
            interrupt()
            received = [raw.receive() for _ in range(3)]
            cancelled = [each["params"]["id"] for each in received if each.get("method") == "$/cancelRequest"]
            assert sorted(cancelled) == sorted([outer["id"], inner["id"]])
            assert [each["id"] for each in received if "error" in each] == [1]

        playing = Started(play)
        with pytest.raises(Interrupted):
            peer.call("outer", timeout=None)
        playing.result()


def test_serving_can_be_interrupted_and_resumed(interrupt: Interrupter) -> None:
    with scripted(listen=False) as (peer, raw):
        peer.handle("echo")(lambda params: params)

        def play(last: bool) -> None:
            raw.send(request(1, "echo", [1]))
            assert raw.receive() == response({"id": 1}, [1])
            if last:
                raw.close()
            else:
                interrupt()

        playing = Started(play, False)
        with pytest.raises(Interrupted):
            peer.serve()
        playing.result()
        playing = Started(play, True)
        assert peer.serve() is not None
        playing.result()


BOMBED = """
import random, signal, socket, sys, threading, time
from becket import ConnectionLost
from becket.blocking import BlockingPeer
from becket.peer.transport.fd import FdTransport

class Interrupted(BaseException): ...

is_due = False

def interrupt(*_):
    global is_due
    if is_due:
        is_due = False
        raise Interrupted

signal.signal(signal.SIGUSR1, interrupt)
one, other = socket.socketpair()
left, right = BlockingPeer(FdTransport.from_socket(one)), BlockingPeer(FdTransport.from_socket(other))
right.handle("echo")(lambda params: params)
left.listen()
right.listen()
is_over = threading.Event()

def call_often():
    try:
        while True:
            left.call("echo", [1], timeout=None)
    except (ConnectionLost, RuntimeError):
        return

def interrupt_often():
    while not is_over.wait(random.random() * 0.002):
        signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1)

threads = [threading.Thread(target=target) for target in (call_often, call_often, call_often, interrupt_often)]
for thread in threads:
    thread.start()
until, count = time.monotonic() + 1, 0
while time.monotonic() < until:
    try:
        is_due = True
        left.call("echo", [2], timeout=None)
        is_due = False
    except Interrupted:
        count += 1
    except ConnectionLost:  # one has hit between reading some bytes and taking them: the link says so, and ends
        break
is_due = False
is_over.set()
left.close()
right.close()
for thread in threads:
    thread.join()
print("settled after", count)
"""


def test_after_an_interruption_at_any_step_closing_the_peer_settles_every_call() -> None:
    # In a program of its own: an interruption could hit pytest anywhere.
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", BOMBED], capture_output=True, encoding="utf-8", timeout=18, check=True
    )
    assert ran.stdout.startswith("settled after ")
