"""Two connections and a pipe between them, driven in any order: calls settle once, ids never cross, nothing is left."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, get_args

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.jsonrpc.links import LOST, Waiter, link

from becket.errors import BadReply, CallTimeout, ConnectionLost, RemoteError, RequestCancelled, RpcError
from becket.framing import ContentLength, FramingFactory, JsonLines, SkippedFrame
from becket.jsonrpc.calls import CancelResponse, InboundRequest, OutboundCall
from becket.jsonrpc.connection import CancelRequested
from becket.jsonrpc.messages import Failure, NotificationMessage

WINDOW = 3
OWN_CODE = 777  # the number of errors that a handler chose
REFUSALS = {-32700, -32600, 1002, 1004, 1005}  # what a link sends by itself
ENDS = st.sampled_from([0, 1])
NONSENSE = [
    "{",
    "1",
    "[]",
    "[1,[]]",
    "{}",
    '{"jsonrpc":"2.0","id":"a","method":"again"}',
    '{"jsonrpc":"2.0","id":true,"method":"m"}',
    '{"jsonrpc":"2.0","id":[1],"result":1}',
    '{"jsonrpc":"1.0","id":1,"method":"m"}',
    '{"jsonrpc":"2.0","id":1,"method":"m","method":"m"}',
    '{"jsonrpc":"2.0","id":1,"method":5}',
    '{"jsonrpc":"2.0","id":1,"params":[]}',
    '{"jsonrpc":"2.0","id":999999,"result":1}',
    '{"jsonrpc":"2.0","id":"1","result":"wrong"}',
    '{"jsonrpc":"2.0","id":1.0,"result":"wrong"}',
    '{"jsonrpc":"2.0","id":null,"result":"wrong"}',
    '{"jsonrpc":"2.0","result":"wrong"}',
    '{"jsonrpc":"2.0","error":"wrong"}',
    '{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":999999}}',
    '{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":{}}}',
    '{"jsonrpc":"2.0","method":"$/cancelRequest","params":[1]}',
    '{"jsonrpc":"2.0","id":1,"method":"m","params":' + "[" * 99 + "]" * 99 + "}",
]


class PeerModel:
    """One peer, and its state in the model."""

    def __init__(self, framing: FramingFactory, rule: CancelResponse) -> None:
        # Invalid messages must not end the link here: the limit of stray responses has tests of its own.
        self.connection = link(
            framing, rule=rule, limits={"inbound_requests": WINDOW, "stray_replies": 10**9}, ping="ping"
        )
        self.encode = self.connection.framing.encode
        self.watch = framing(self.connection.limits)  # decodes what this peer sends
        self.sent = b""  # what the other peer has not read yet
        self.open: dict[int, OutboundCall] = {}
        self.tokens: dict[int, int] = {}  # the request of each call
        self.settled: Counter[int] = Counter()
        self.kept: list[OutboundCall] = []  # ids of objects are unique only while they live
        self.serving: list[InboundRequest] = []
        self.served: list[InboundRequest] = []
        self.arrived: Counter[str] = Counter()  # ids of requests that have arrived
        self.answered: Counter[str] = Counter()
        self.ticks_sent = 0
        self.ticks_received = 0

    @property
    def is_open(self) -> bool:
        return self.connection.lost is None

    def settle(self, call: OutboundCall) -> None:
        self.settled[id(call)] += 1
        assert self.open.pop(id(call)) is call

    def write(self, data: bytes) -> None:
        self.sent += data
        for body in self.watch.feed(data):
            assert not isinstance(body, SkippedFrame)
            message = json.loads(bytes(body))
            for member in message if isinstance(message, list) else [message]:
                if "method" not in member:
                    self.answered[json.dumps(member["id"])] += 1


class Links(RuleBasedStateMachine):
    """Random use of both ends. Every rule ends with all that a real driver would do at once."""

    @initialize(
        framing=st.sampled_from([ContentLength, JsonLines]),
        rule=st.sampled_from(get_args(CancelResponse)),
        is_calm=st.booleans(),
    )
    def join(self, framing: FramingFactory, rule: CancelResponse, is_calm: bool) -> None:
        self.rule = rule
        self.is_calm = is_calm
        self.peers = [PeerModel(framing, rule), PeerModel(framing, rule)]
        self.now = 0.0
        self.tokens = 0
        self.has_nonsense = False

    def new_call(self, peer: PeerModel, timeout: float) -> tuple[OutboundCall, bytes]:
        self.tokens += 1
        call = OutboundCall("echo", Waiter(), deadline=self.now + timeout, timeout=timeout)
        peer.kept.append(call)
        peer.open[id(call)] = call
        peer.tokens[id(call)] = self.tokens
        return call, b"[%d]" % self.tokens

    # -- what a program does

    @rule(at=ENDS, timeout=st.sampled_from([1.0, 5.0, 1e9]), count=st.integers(1, WINDOW + 1))
    def call(self, at: int, timeout: float, count: int) -> None:
        peer = self.peers[at]
        if peer.is_open:
            for _ in range(count):
                peer.write(peer.connection.open_call(*self.new_call(peer, timeout)))
        else:
            with pytest.raises(ConnectionLost):
                peer.connection.open_call(OutboundCall("echo", Waiter()), None)

    @rule(at=ENDS, count=st.integers(1, 3), notes=st.integers(0, 1))
    def batch(self, at: int, count: int, notes: int) -> None:
        peer = self.peers[at]
        if peer.is_open:
            calls = [self.new_call(peer, 1e9) for _ in range(count)]
            ticks = [("tick", b"[%d]" % (peer.ticks_sent + n)) for n in range(notes)]
            peer.ticks_sent += notes
            peer.write(peer.connection.open_batch(calls, ticks))

    @rule(at=ENDS)
    def notify(self, at: int) -> None:
        peer = self.peers[at]
        if peer.is_open:
            peer.write(peer.connection.encode_notification("tick", b"[%d]" % peer.ticks_sent))
            peer.ticks_sent += 1

    @rule(at=ENDS, pick=st.integers(0), ending=st.sampled_from(["answer", "refuse", "forget", "twice"]))
    def finish(self, at: int, pick: int, ending: str) -> None:
        peer = self.peers[at]
        if ending == "twice":
            if peer.served:
                done = peer.served[pick % len(peer.served)]
                assert peer.connection.respond(done, b"0") == b""
                assert peer.connection.reject(done, RpcError(OWN_CODE)) == b""
        elif peer.serving:
            self.close_request(peer, peer.serving.pop(pick % len(peer.serving)), ending)

    def close_request(self, peer: PeerModel, request: InboundRequest, ending: str) -> None:
        connection = peer.connection
        peer.served.append(request)
        token = bytes(request.params or b"[0]")[1:-1]
        if request.is_cancelled and self.rule == "never sent":
            peer.write(connection.drop_request(request))
        elif request.is_cancelled and self.rule == "sent" and ending != "answer":
            peer.write(connection.reject(request, RequestCancelled()))
        elif ending == "refuse":
            peer.write(connection.reject(request, RpcError(OWN_CODE, token.decode())))
        else:
            peer.write(connection.respond(request, token))

    @rule(at=ENDS, pick=st.integers(0))
    def cancel(self, at: int, pick: int) -> None:
        peer = self.peers[at]
        if peer.open:
            call = list(peer.open.values())[pick % len(peer.open)]
            peer.write(peer.connection.cancel_call(call))
            peer.settle(call)
            assert peer.connection.cancel_call(call) == b""

    @rule(seconds=st.sampled_from([0.5, 1.0, 5.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds
        for peer in self.peers:
            assert peer.connection.next_deadline() >= min((call.deadline for call in peer.open.values()), default=0.0)
            for call in peer.connection.find_expired_calls(self.now):
                peer.write(peer.connection.cancel_call(call))
                call.error = CallTimeout(call.method, call.timeout)
                peer.settle(call)

    @rule(at=ENDS, is_serious=st.sampled_from([False, False, True]))
    def leave(self, at: int, is_serious: bool) -> None:
        if is_serious:
            self.close(at)

    def close(self, at: int) -> None:
        peer = self.peers[at]
        was_open = peer.is_open
        for call in peer.connection.close(LOST):
            assert was_open
            assert isinstance(call.error, ConnectionLost)
            peer.settle(call)
        peer.served += peer.serving
        peer.serving.clear()

    # -- what a pipe does

    @precondition(lambda self: not self.is_calm)
    @rule(at=ENDS, text=st.sampled_from(NONSENSE))
    def talk_nonsense(self, at: int, text: str) -> None:
        self.has_nonsense = True
        self.peers[at].sent += self.peers[at].encode(text.encode())

    @rule(to=ENDS, size=st.integers(1, 150) | st.just(10**9))
    def deliver(self, to: int, size: int) -> None:
        receiver, sender = self.peers[to], self.peers[1 - to]
        chunk, sender.sent = sender.sent[:size], sender.sent[size:]
        events = receiver.connection.receive(chunk, self.now)
        assert receiver.is_open or not events
        for event in events:
            self.take(receiver, sender, event)
        receiver.write(receiver.connection.data_to_send())
        assert receiver.connection.violation is None

    def take(self, receiver: PeerModel, sender: PeerModel, event: Any) -> None:
        match event:
            case InboundRequest():
                receiver.arrived[event.id.decode()] += 1
                receiver.serving.append(event)
                if event.method == "echo":
                    made = next(call for call in reversed(sender.kept) if call.id == event.id)
                    assert bytes(event.params or b"") == b"[%d]" % sender.tokens[id(made)]
            case NotificationMessage():
                assert bytes(event.params or b"") == b"[%d]" % receiver.ticks_received
                receiver.ticks_received += 1
            case OutboundCall():
                self.check_outcome(receiver, event)
                receiver.settle(event)
            case CancelRequested():
                assert event.request in receiver.serving
            case Failure():
                assert event.id == b"null"
            case _:
                raise AssertionError(event)

    def check_outcome(self, peer: PeerModel, call: OutboundCall) -> None:
        token = peer.tokens[id(call)]
        match call.error:
            case None:
                assert call.result is not None
                assert bytes(call.result) == b"%d" % token
            case RemoteError(code=777, message=message):
                assert message == str(token)
            case RemoteError(code=code):
                assert code in REFUSALS
                assert code in (1002, 1005) or self.has_nonsense
            case BadReply():
                assert self.has_nonsense
            case _:
                raise AssertionError(call.error)

    # -- what holds at any time

    @invariant()
    @precondition(lambda self: hasattr(self, "peers"))
    def the_tables_match_the_model(self) -> None:
        for peer in self.peers:
            assert set(map(id, peer.connection.calls.values())) == set(peer.open)
            assert set(map(id, peer.connection.requests.values())) == set(map(id, peer.serving))

    @invariant()
    @precondition(lambda self: hasattr(self, "peers"))
    def every_call_is_open_or_settled_once(self) -> None:
        for peer in self.peers:
            for call in peer.kept:
                assert peer.settled[id(call)] == (0 if id(call) in peer.open else 1)

    @invariant()
    @precondition(lambda self: hasattr(self, "peers"))
    def the_window_is_respected(self) -> None:
        assert all(len(peer.connection.requests) <= WINDOW for peer in self.peers)

    @invariant()
    @precondition(lambda self: hasattr(self, "peers"))
    def every_response_has_a_request(self) -> None:
        if not self.has_nonsense:
            for peer, other in (self.peers, self.peers[::-1]):
                assert all(id in {call.id.decode() for call in other.kept} for id in peer.answered)
                assert max(peer.answered.values(), default=0) <= 1

    # -- what holds in the end

    def teardown(self) -> None:
        if not hasattr(self, "peers"):
            return
        for to in (0, 1, 0, 1):
            self.deliver(to, 10**9)
        self.check_cancellations_have_arrived()
        for _ in range(3 + sum(len(peer.kept) for peer in self.peers)):  # waiting calls take several turns
            for to in (0, 1):
                self.deliver(to, 10**9)
                for request in self.peers[to].serving[:]:
                    self.peers[to].serving.remove(request)
                    self.close_request(self.peers[to], request, "answer")
        if all(peer.is_open for peer in self.peers):
            assert [peer.open for peer in self.peers] == [{}, {}]  # no call waits for ever
            assert [peer.ticks_received for peer in self.peers] == [peer.ticks_sent for peer in reversed(self.peers)]
        for at in (0, 1):
            self.close(at)
        self.every_call_is_open_or_settled_once()
        for peer in self.peers:
            assert (peer.open, peer.connection.calls, peer.connection.requests) == ({}, {}, {})
            assert peer.connection.data_to_send() == b""

    def check_cancellations_have_arrived(self) -> None:
        if self.has_nonsense or not all(peer.is_open for peer in self.peers):
            return
        for peer, other in (self.peers, self.peers[::-1]):
            wanted = {call.id for call in other.open.values()}
            assert all(request.is_cancelled == (request.id not in wanted) for request in peer.serving)


TestLinks = Links.TestCase
TestLinks.settings = settings(max_examples=max(20, settings().max_examples // 2), stateful_step_count=40)
