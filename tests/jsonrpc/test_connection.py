"""The tables of one link: every call settles once, every request gets at most one response."""

from __future__ import annotations

import json
from math import inf
from typing import Any, get_args

import pytest
from tests.jsonrpc.links import (
    LOST,
    Waiter,
    append_json,
    call,
    codes,
    failure,
    frame,
    link,
    notification,
    read,
    receive,
    receive_request,
    request,
    sent_messages,
    success,
)

import becket.jsonrpc.connection
from becket.errors import (
    ERROR_CODES,
    BadFrame,
    BadMessage,
    BadReply,
    Busy,
    CallTimeout,
    ConnectionLost,
    DisconnectReason,
    FrameTooLarge,
    InvalidRequest,
    LocalProtocolError,
    Meaning,
    RemoteError,
    RequestCancelled,
    RpcError,
)
from becket.framing import ContentLength, FramingFactory, JsonLines, SkippedFrame
from becket.jsonrpc.calls import RESPONDED, CancellationFormat, CancelResponse, InboundRequest, OutboundCall
from becket.jsonrpc.codec import JsonCodec
from becket.jsonrpc.connection import CancelRequested, Connection, EventBuffer, build_connection_lost
from becket.jsonrpc.messages import Failure, NotificationMessage
from becket.limits import Limits

INVALID = ERROR_CODES[Meaning.INVALID_REQUEST]
TOO_LARGE = ERROR_CODES[Meaning.TOO_LARGE]


# -- our calls


def test_a_call_is_one_request_and_its_response_one_event() -> None:
    connection = link()
    opened = OutboundCall("echo", Waiter())
    assert read(connection.open_call(opened, b'{"a":1}')) == [request(1, params={"a": 1})]
    assert list(connection.calls.values()) == [opened]

    assert receive(connection, success(1, {"b": 2})) == [opened]
    assert opened.result is not None
    assert bytes(opened.result) == b'{"b":2}'
    assert opened.error is None
    assert connection.calls == {}


def test_params_that_are_absent_are_not_sent() -> None:
    assert read(link().open_call(OutboundCall("echo", Waiter()), None)) == [request(1)]


def test_ids_are_numbers_from_one_upwards() -> None:
    connection = link()
    assert [call(connection).id for _ in range(3)] == [b"1", b"2", b"3"]


def test_ids_wrap_around_after_the_largest_and_skip_ids_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(becket.jsonrpc.connection, "MAX_ID", 5)
    connection = link(limits={"remembered_ids": 2})
    first, second, third = (call(connection) for _ in range(3))
    connection.cancel_call(second)
    receive(connection, success(3))
    assert [call(connection).id for _ in range(2)] == [b"4", b"5"]
    assert call(connection).id == b"3"  # 1 is open, 2 may still get a response
    receive(connection, success(2), success(1))
    assert [call(connection).id for _ in range(2)] == [b"1", b"2"]
    assert third.error is None
    assert first.error is None


def test_thousands_of_ids_in_use_are_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(becket.jsonrpc.connection, "MAX_ID", 3_000)
    connection = link()
    calls = [call(connection) for _ in range(3_000)]
    receive(connection, success(3_000))
    assert call(connection).id == b"3000"
    assert len(connection.calls) == len(calls)


def test_responses_may_come_in_any_order() -> None:
    connection = link()
    first, second, third = (call(connection) for _ in range(3))
    assert receive(connection, success(3), success(1), failure(2)) == [third, first, second]


def test_an_error_is_the_event_of_its_call_with_number_meaning_text_and_data() -> None:
    connection = link()
    opened = call(connection)
    assert receive(connection, failure(1, -32601, "no such method", data=[1])) == [opened]
    error = opened.error
    assert isinstance(error, RemoteError)
    assert (error.method, error.code, error.message, error.data) == ("echo", -32601, "no such method", [1])
    assert error.meaning is Meaning.UNKNOWN_METHOD


def test_the_other_peer_may_be_the_first_to_notice_that_the_time_of_a_call_is_over() -> None:
    connection = link()
    early, late = call(connection), call(connection)
    early.deadline = late.deadline = 5.0
    early.timeout = late.timeout = 2.0
    receive(connection, failure(1, ERROR_CODES[Meaning.TIMEOUT]), now=4.9)
    receive(connection, failure(2, ERROR_CODES[Meaning.TIMEOUT]), now=5.0)
    assert isinstance(early.error, RemoteError)  # a timeout of its own
    assert early.error.meaning is Meaning.TIMEOUT
    assert isinstance(late.error, CallTimeout)
    assert (late.error.method, late.error.seconds) == ("echo", 2.0)


def test_another_error_at_the_deadline_of_a_call_stays_what_it_is() -> None:
    connection = link()
    opened = call(connection)
    opened.deadline = 5.0
    receive(connection, failure(1, -32601), now=6.0)
    assert isinstance(opened.error, RemoteError)


@pytest.mark.parametrize("code", [0, -32099, 7, 2**40])
def test_an_error_whose_number_means_nothing_here_has_no_meaning(code: int) -> None:
    connection = link()
    opened = call(connection)
    receive(connection, failure(1, code))
    assert isinstance(opened.error, RemoteError)
    assert (opened.error.code, opened.error.meaning) == (code, None)


@pytest.mark.parametrize(
    "answer",
    [
        '{"jsonrpc":"2.0","id":1}',
        '{"id":1}',
        '{"jsonrpc":"2.0","id":1,"result":1,"error":{"code":1,"message":""}}',
        '{"jsonrpc":"2.0","id":1,"error":null}',
        '{"jsonrpc":"1.0","id":1,"result":1}',
        '{"id":1,"result":1}',
        '{"jsonrpc":"2.0","id":1,"error":"no"}',
        '{"jsonrpc":"2.0","id":1,"error":{"code":"1"}}',
        '{"jsonrpc":"2.0","id":1,"result":' + "[" * 99 + "]" * 99 + "}",
    ],
)
def test_a_response_that_cannot_be_decoded_fails_its_call_and_the_link_lives(answer: str) -> None:
    connection = link()
    opened = call(connection)
    assert receive(connection, answer) == [opened]
    assert isinstance(opened.error, BadReply)
    assert opened.error.method == "echo"
    assert sent_messages(connection) == []
    assert connection.violation is None
    assert connection.calls == {}


@pytest.mark.parametrize(
    "id", ["true", "1.0", "1e0", '"1"', "null", "{}", "[]", "[1]", '"' + "1" * 10_000 + '"', "-1", "01"]
)
@pytest.mark.parametrize("rest", ['"result":1', '"error":{"code":1,"message":""}', '"result":1,"error":{}', '"x":1'])
@pytest.mark.parametrize("space", ["", " "])
def test_an_id_of_another_type_is_not_an_issued_id(id: str, rest: str, space: str) -> None:
    connection = link()
    opened = call(connection)
    events = receive(connection, f'{{"jsonrpc":"2.0",{space}"id":{id},{rest}}}')
    assert [event for event in events if not isinstance(event, Failure)] == []
    assert list(connection.calls.values()) == [opened]
    assert connection.violation is None


def test_a_call_that_cannot_be_framed_is_not_filed() -> None:
    connection = link(limits={"frame": 100})
    with pytest.raises(LocalProtocolError):
        connection.open_call(OutboundCall("echo", Waiter()), b'["' + b"x" * 100 + b'"]')
    assert connection.calls == {}


# -- unexpected responses


def test_a_second_response_is_dropped_and_counted() -> None:
    connection = link()
    call(connection)
    receive(connection, success(1))
    assert receive(connection, success(1)) == []
    assert connection.stray_responses == 1
    assert sent_messages(connection) == []


@pytest.mark.parametrize(
    "answer", [success(99), failure(99), '{"jsonrpc":"2.0","result":1}', '{"jsonrpc":"2.0","id":9,"error":5}']
)
def test_a_response_to_an_id_that_was_never_issued_is_only_counted(answer: Any) -> None:
    connection = link()
    assert receive(connection, answer) == []
    assert connection.stray_responses == 1
    assert sent_messages(connection) == []


@pytest.mark.parametrize("answer", [success, failure])
def test_the_late_response_to_an_abandoned_call_is_dropped_without_a_count(answer: Any) -> None:
    connection = link()
    connection.cancel_call(call(connection))
    assert receive(connection, answer(1)) == []
    assert connection.stray_responses == 0
    receive(connection, answer(1))
    assert connection.stray_responses == 1


def test_a_malformed_late_response_is_dropped_without_a_count_too() -> None:
    connection = link()
    connection.cancel_call(call(connection))
    assert receive(connection, '{"jsonrpc":"2.0","id":1,"error":5}') == []
    assert connection.stray_responses == 0


def test_the_number_of_remembered_abandoned_ids_is_bounded() -> None:
    connection = link(limits={"remembered_ids": 2})
    for opened in [call(connection) for _ in range(3)]:
        connection.cancel_call(opened)
    receive(connection, success(1), success(2), success(3))
    assert connection.stray_responses == 1


def test_the_bound_of_remembered_abandoned_ids_may_be_zero() -> None:
    connection = link(limits={"remembered_ids": 0})
    connection.cancel_call(call(connection))
    receive(connection, success(1))
    assert connection.stray_responses == 1


def test_more_stray_responses_in_a_minute_than_the_limit_are_a_violation() -> None:
    connection = link()
    receive(connection, *[success(9)] * 100, now=0.0)
    assert connection.violation is None
    receive(connection, success(9), now=59.0)
    assert isinstance(connection.violation, BadMessage)


def test_stray_responses_of_another_minute_do_not_add_up() -> None:
    connection = link(limits={"stray_replies": 2})
    for now in (0.0, 1.0, 60.0, 61.0, 120.0):
        receive(connection, success(9), now=now)
    assert connection.violation is None
    assert connection.stray_responses == 5


def test_the_violation_quotes_only_the_beginning_of_an_id() -> None:
    connection = link(limits={"stray_replies": 0})
    receive(connection, success("x" * 100_000))
    assert len(str(connection.violation)) < 300


def test_the_first_violation_is_preserved() -> None:
    connection = link(limits={"stray_replies": 0})
    receive(connection, success(8), success(9))
    first = connection.violation
    connection.receive(b"no frame\r\n\r\n")
    assert connection.violation is first


# -- abandoned calls


def test_an_abandoned_call_is_cancelled_by_the_method_of_the_dialect() -> None:
    connection = link()
    opened = call(connection)
    assert read(connection.cancel_call(opened)) == [notification("$/cancelRequest", params={"id": 1})]
    assert connection.calls == {}


def test_the_dialect_names_the_member() -> None:
    connection = link(member="requestId")
    assert read(connection.cancel_call(call(connection))) == [notification("$/cancelRequest", params={"requestId": 1})]


def test_a_dialect_without_cancellation_sends_nothing() -> None:
    connection = link(rule=None)
    assert connection.cancel_call(call(connection)) == b""
    assert connection.calls == {}


def test_a_call_is_abandoned_once() -> None:
    connection = link()
    opened = call(connection)
    connection.cancel_call(opened)
    assert connection.cancel_call(opened) == b""


def test_a_call_that_got_a_response_or_never_opened_is_not_cancelled() -> None:
    connection = link()
    opened = call(connection)
    receive(connection, success(1))
    assert connection.cancel_call(opened) == b""
    assert connection.cancel_call(OutboundCall("echo", Waiter())) == b""


def test_abandoning_an_older_call_does_not_abandon_the_call_that_reuses_its_id(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(becket.jsonrpc.connection, "MAX_ID", 1)
    connection = link()
    older = call(connection)
    receive(connection, success(1))
    newer = call(connection)
    assert newer.id == older.id
    assert connection.cancel_call(older) == b""
    assert list(connection.calls.values()) == [newer]


@pytest.mark.parametrize("is_sent", [True, False])
@pytest.mark.parametrize("method", ["echo", "initialize"])
def test_a_cancellation_is_sent_if_the_peer_supports_it_and_the_method_is_not_excluded(
    method: str, is_sent: bool
) -> None:
    limits = Limits()
    cancellation = CancellationFormat("cancel", excluded_methods=frozenset({"initialize"}))
    connection = Connection(ContentLength(limits), JsonCodec(limits), limits=limits, cancellation=cancellation)
    connection.can_send_cancel = is_sent
    sent = read(connection.cancel_call(call(connection, method)))
    assert sent == ([notification("cancel", params={"id": 1})] if is_sent and method == "echo" else [])
    assert connection.calls == {}


def test_the_chain_of_an_abandoned_call_is_found_until_its_late_response() -> None:
    connection = link()
    opened = OutboundCall("echo", Waiter(), chain=("gate",))
    connection.open_call(opened, None)
    assert (connection.find_call(b"1"), connection.find_abandoned(b"1")) == (opened, None)
    connection.cancel_call(opened)
    assert (connection.find_call(b"1"), connection.find_abandoned(b"1")) == (None, ("gate",))
    assert connection.find_abandoned(b'"1"') is None
    receive(connection, success(1))
    assert connection.find_abandoned(b"1") is None


@pytest.mark.parametrize("id", [b"01", b'"1"', b"-1", b"1.0", b" 1", b"2", b""])
def test_a_call_is_found_by_the_text_of_its_id_alone(id: bytes) -> None:
    connection = link()
    opened = call(connection)
    assert connection.find_call(b"1") is opened
    assert connection.find_call(id) is None


# -- time


def test_the_time_of_the_last_bytes_is_zero_until_it_is_stated() -> None:
    connection = link()
    assert connection.last_received == 0.0
    connection.receive(b"", 5.0)
    assert connection.last_received == 5.0
    connection.receive(b"")
    assert connection.last_received == 0.0


# -- deadlines


def test_nothing_expires_where_nothing_has_a_deadline() -> None:
    connection = link()
    call(connection)
    receive_request(connection)
    assert connection.next_deadline() == inf
    assert link().next_deadline() == inf
    assert connection.find_expired_calls(1e9) == []
    assert connection.find_expired_requests(1e9) == []


def test_the_next_deadline_is_the_first_of_calls_and_requests() -> None:
    connection = link()
    early, late = call(connection), call(connection)
    early.deadline, late.deadline = 5.0, 7.0
    served = receive_request(connection)
    served.deadline = 3.0
    assert connection.next_deadline() == 3.0
    assert connection.find_expired_requests(2.9) == []
    assert connection.find_expired_requests(3.0) == [served]
    connection.respond(served, b"1")
    assert connection.next_deadline() == 5.0
    assert connection.find_expired_calls(6.0) == [early]
    assert connection.find_expired_calls(7.0) == [early, late]


# -- requests of the other peer


def test_a_request_is_an_event_and_its_response_a_frame() -> None:
    connection = link()
    served = receive_request(connection, 7, params=[1])
    assert (served.id, served.method, bytes(served.params or b"")) == (b"7", "echo", b"[1]")
    assert served.deadline == inf
    assert read(connection.respond(served, b'{"a":1}')) == [success(7, {"a": 1})]
    assert connection.requests == {}


@pytest.mark.parametrize(
    "id", ["0", "-5", "1.0", "1.5", "1e2", '"a"', '""', '"\\u00e9"', '"é"', '"\\n"', "null", "9007199254740993"]
)
def test_a_response_has_the_id_as_it_was_written(id: str) -> None:
    connection = link()
    (served,) = receive(connection, f'{{"jsonrpc":"2.0","id":{id},"method":"m"}}')
    assert isinstance(served, InboundRequest)
    assert connection.respond(served, b"1") == ContentLength().encode(
        f'{{"jsonrpc":"2.0","id":{id},"result":1}}'.encode()
    )


def test_an_incoming_id_may_equal_an_outgoing_one() -> None:
    connection = link()
    opened = call(connection)
    served = receive_request(connection, 1)
    assert read(connection.respond(served, b"2")) == [success(1, 2)]
    assert list(connection.calls.values()) == [opened]
    assert receive(connection, success(1, 3)) == [opened]


def test_a_refusal_has_the_number_of_its_meaning() -> None:
    connection = link()
    refusal = connection.reject(receive_request(connection), RpcError(Meaning.BUSY, "later", {"after": 5}))
    assert read(refusal) == [failure(1, 1002, "later", data={"after": 5})]


def test_a_refusal_may_have_a_number_of_its_own_and_zero_is_one() -> None:
    connection = link()
    assert codes(read(connection.reject(receive_request(connection), RpcError(0, "zero")))) == [(1, 0)]


def test_a_dialect_has_its_own_error_numbers_and_the_defaults_for_the_rest() -> None:
    numbers = {Meaning.BUSY: -32001, Meaning.CANCELLED: -32099}
    connection = link(error_codes=numbers)
    assert codes(read(connection.reject(receive_request(connection), Busy("calls", 1)))) == [(1, -32001)]
    assert codes(read(connection.reject(receive_request(connection), InvalidRequest("no")))) == [(1, -32600)]
    opened = call(connection)
    receive(connection, failure(1, -32001))
    assert isinstance(opened.error, RemoteError)
    assert opened.error.meaning is Meaning.BUSY


def test_a_request_is_closed_once() -> None:
    connection = link()
    served = receive_request(connection)
    assert connection.respond(served, b"1")
    assert connection.respond(served, b"2") == b""
    assert connection.reject(served, RequestCancelled()) == b""
    assert connection.drop_request(served) == b""


@pytest.mark.parametrize("batched", [False, True])
def test_closing_a_request_again_leaves_the_next_one_of_its_id_open(batched: bool) -> None:
    connection = link()
    first = receive_request(connection)
    connection.respond(first, b"1")
    if batched:
        (second,) = receive(connection, [request(1)])
    else:
        second = receive_request(connection)
    assert isinstance(second, InboundRequest)
    assert connection.respond(first, b"1") == b""
    assert connection.reject(first, RequestCancelled()) == b""
    assert list(connection.requests.values()) == [second]
    assert connection.respond(second, b"2") != b""


def test_a_forgotten_request_gets_no_response() -> None:
    connection = link()
    assert connection.drop_request(receive_request(connection)) == b""
    assert connection.requests == {}


def test_a_response_too_large_for_a_frame_becomes_an_error() -> None:
    connection = link(limits={"frame": 300})
    huge = b'"' + b"x" * 300 + b'"'
    assert codes(read(connection.respond(receive_request(connection), huge))) == [(1, TOO_LARGE)]
    refusal = RpcError(Meaning.INTERNAL, "x" * 300)
    assert codes(read(connection.reject(receive_request(connection), refusal))) == [(1, TOO_LARGE)]


@pytest.mark.parametrize(
    "error", [RpcError(5, "text", object()), RpcError(5, "\ud800"), RpcError(5, "text", {"a": float("nan")})]
)
def test_an_error_whose_data_json_cannot_encode_preserves_its_number(error: RpcError) -> None:
    connection = link()
    (answer,) = read(connection.reject(receive_request(connection), error))
    assert answer["error"]["code"] == 5
    assert "data" not in answer["error"]


def test_a_request_that_got_an_early_response_is_open_under_no_id_until_its_handler_ends() -> None:
    connection = link()
    served = receive_request(connection, 5)
    served.deadline, served.credit = 3.0, 7
    assert read(connection.respond_early(served, b'{"a":1}')) == [success(5, {"a": 1})]
    assert served.state is RESPONDED
    assert served.credit is None
    assert list(connection.requests.values()) == [served]
    assert connection.next_deadline() == inf
    assert receive(connection, notification("$/cancelRequest", params={"id": 5})) == []

    other = receive_request(connection, 5)
    assert connection.respond(served, b"2") == b""
    assert list(connection.requests.values()) == [other]


# -- ids in flight


def test_an_id_that_is_in_flight_is_refused_and_the_first_is_unharmed() -> None:
    connection = link()
    first = receive_request(connection, 5)
    assert receive(connection, request(5)) == []
    assert codes(sent_messages(connection)) == [(None, INVALID)]
    assert read(connection.respond(first, b"1")) == [success(5, 1)]


def test_a_string_id_with_other_escapes_is_the_same_id() -> None:
    connection = link()
    receive(connection, '{"jsonrpc":"2.0","id":"A","method":"m"}')
    assert receive(connection, '{"jsonrpc":"2.0","id":"\\u0041","method":"m"}') == []
    assert codes(sent_messages(connection)) == [(None, INVALID)]


def test_ids_that_only_look_alike_are_different_ones() -> None:
    connection = link()
    texts = ["1", "1.0", '"1"', "1e0", '"1.0"', "-1"]
    for text in texts:
        assert len(receive(connection, f'{{"jsonrpc":"2.0","id":{text},"method":"m"}}')) == 1
    assert len(connection.requests) == len(texts)


def test_the_null_id_names_nothing_so_many_may_be_in_flight() -> None:
    connection = link()
    served = [receive_request(connection, None) for _ in range(3)]
    assert len(connection.requests) == 3
    for one in served:
        assert read(connection.respond(one, b"1")) == [success(None, 1)]
    assert receive(connection, notification("$/cancelRequest", params={"id": None})) == []


def test_requests_under_the_null_id_expire_like_others() -> None:
    connection = link()
    first, second = receive_request(connection, None), receive_request(connection, None)
    first.deadline, second.deadline = 3.0, 5.0
    assert list(connection.requests.values()) == [first, second]
    assert connection.find_expired_requests(4.0) == [first]


def test_an_id_is_free_again_once_it_got_a_response() -> None:
    connection = link()
    connection.respond(receive_request(connection, 5), b"1")
    assert receive_request(connection, 5).id == b"5"


@pytest.mark.parametrize(
    "text",
    [
        '{"jsonrpc":"1.0","id":5,"method":"m"}',
        '{"jsonrpc":"2.0","id":5,"method":1}',
        '{"jsonrpc":"2.0","id":5}',
        '{"jsonrpc":"2.0","id":5,"method":"m","result":1}',
        '{"jsonrpc":"2.0","id":5,"method":"$/ping"}',
        '{"jsonrpc":"2.0","id":5,"method":"m","params":' + "[" * 99 + "]" * 99 + "}",
    ],
)
def test_a_refusal_never_responds_to_an_open_request_of_the_same_id(text: str) -> None:
    connection = link(ping="$/ping")
    served = receive_request(connection, 5)
    assert receive(connection, text) == []
    assert [id for id, _ in codes(sent_messages(connection))] == [None]
    assert read(connection.respond(served, b"1")) == [success(5, 1)]


def test_the_error_for_an_id_in_flight_quotes_it_even_if_it_is_not_text() -> None:
    connection = link()
    for _ in range(2):
        connection.on_request(b'"\xff"', "echo", None)
    (response,) = sent_messages(connection)
    assert response["error"]["message"] == 'invalid request: duplicate id in flight: "\ufffd"'


def test_an_error_of_the_link_that_is_too_large_for_a_frame_becomes_a_shorter_one() -> None:
    connection = link(limits={"frame": 200})
    receive(connection, request("x" * 120), request("x" * 120))
    assert codes(sent_messages(connection)) == [(None, TOO_LARGE)]


# -- the concurrency limit


def test_beyond_the_concurrency_limit_a_request_is_busy_at_once() -> None:
    connection = link(limits={"inbound_requests": 2})
    first = receive_request(connection, 1)
    receive_request(connection, 2)
    assert receive(connection, request(3), request(4)) == []
    assert codes(sent_messages(connection)) == [(3, 1002), (4, 1002)]
    connection.respond(first, b"1")
    assert receive_request(connection, 5).id == b"5"


def test_ten_thousand_requests_leave_no_more_than_the_concurrency_limit() -> None:
    connection = link()
    events = receive(connection, *(request(n) for n in range(10_000)))
    assert len(events) == len(connection.requests) == 256
    assert {code for _, code in codes(sent_messages(connection))} == {1002}


def test_while_closing_requests_are_rejected_and_responses_still_arrive() -> None:
    connection = link()
    opened = call(connection)
    connection.begin_closing()
    assert receive(connection, request(1), success(1)) == [opened]
    assert codes(sent_messages(connection)) == [(1, ERROR_CODES[Meaning.NOT_READY])]


def test_a_link_is_closing_from_the_moment_it_begins_to() -> None:
    connection = link()
    assert connection.is_closing is False
    connection.begin_closing()
    assert connection.is_closing is True


# -- pings


def test_a_ping_gets_a_response_while_closing() -> None:
    connection = link(ping="$/ping")
    connection.begin_closing()
    assert receive(connection, request(1, "$/ping"), request(2)) == []
    assert [answer["id"] for answer in sent_messages(connection) if "result" in answer] == [1]


def test_a_ping_gets_a_response_by_the_link_itself() -> None:
    connection = link(ping="$/ping")
    assert receive(connection, request(1, "$/ping"), request("a", "$/ping", params={})) == []
    assert sent_messages(connection) == [success(1), success("a")]
    assert connection.data_to_send() == b""
    assert connection.requests == {}


def test_a_ping_gets_a_response_however_many_requests_are_running() -> None:
    connection = link(ping="$/ping", limits={"inbound_requests": 0})
    receive(connection, request(1, "$/ping"))
    assert sent_messages(connection) == [success(1)]


def test_a_link_without_pings_has_a_request_of_that_name() -> None:
    assert receive_request(link(), 1, method="$/ping").method == "$/ping"


# -- notifications


def test_a_notification_is_an_event_and_never_gets_a_response() -> None:
    connection = link()
    (event,) = receive(connection, notification("tick", params={"n": 1}))
    assert isinstance(event, NotificationMessage)
    assert event.method == "tick"
    assert sent_messages(connection) == []


def test_a_notification_is_a_frame_without_an_id() -> None:
    connection = link()
    assert read(connection.encode_notification("tick", None)) == [notification("tick")]
    assert read(connection.encode_notification("tick", b"[1]")) == [notification("tick", params=[1])]


def test_events_come_in_the_order_of_arrival() -> None:
    connection = link()
    opened = call(connection)
    events = receive(connection, notification("a"), request(1), success(1), notification("b"))
    assert [type(event) for event in events] == [NotificationMessage, InboundRequest, OutboundCall, NotificationMessage]
    assert events[2] is opened


# -- notifications with a subscriber


def tick(n: int) -> dict[str, object]:
    return notification("tick", params={"n": n})


def test_a_subscribed_notification_goes_directly_to_its_subscriber() -> None:
    connection = link()
    seen: list[bytes] = []
    connection.direct_handlers.add("tick", b"", append_json(seen))
    assert receive(connection, *(tick(n) for n in range(100))) == []
    assert seen == [b'{"n":%d}' % n for n in range(100)]


def test_subscribed_and_other_notifications_preserve_their_order() -> None:
    class Subscriber(EventBuffer):
        def on_notification(self, notification: NotificationMessage) -> None:
            seen.append(notification.method)

    connection = link()
    seen: list[object] = []
    connection.set_receiver(Subscriber())
    connection.direct_handlers.add("tick", b"", append_json(seen))
    connection.receive(b"".join(frame(message) for message in (tick(1), notification("other"), tick(2))))
    assert seen == [b'{"n":1}', "other", b'{"n":2}']


def test_frames_wait_when_the_turn_is_over() -> None:
    connection = link()
    seen: list[object] = []
    connection.direct_handlers.add("tick", b"", append_json(seen))
    connection.should_yield = lambda: True
    receive(connection, *(tick(n) for n in range(100)))
    assert 0 < len(seen) < 100
    while not connection.resume_receiving():
        pass
    assert len(seen) == 100


def test_frames_that_come_while_others_wait_are_put_behind_them() -> None:
    connection = link()
    seen: list[object] = []
    connection.direct_handlers.add("tick", b"", append_json(seen))
    connection.should_yield = lambda: True
    receive(connection, *(tick(n) for n in range(30)))
    connection.queue_frames(connection.framing.feed(frame(tick(30))))
    while not connection.resume_receiving():
        pass
    assert seen == [b'{"n":%d}' % n for n in range(31)]


def test_a_subscribed_notification_with_other_spacing_is_an_ordinary_event() -> None:
    connection = link()
    connection.direct_handlers.add("tick", b"", append_json([]))
    (event,) = receive(connection, '{ "jsonrpc":"2.0", "method":"tick" }')
    assert isinstance(event, NotificationMessage)


def test_a_link_without_a_clock_is_never_late() -> None:
    connection = link()
    assert not connection.should_yield()


# -- cancellations of the other peer


@pytest.mark.parametrize("rule", get_args(CancelResponse))
def test_a_cancelled_request_is_an_event_while_it_is_open(rule: CancelResponse) -> None:
    connection = link(rule=rule)
    served = receive_request(connection, 5)
    (event,) = receive(connection, notification("$/cancelRequest", params={"id": 5}))
    assert isinstance(event, CancelRequested)
    assert event.request is served
    assert served.is_cancelled
    assert list(connection.requests.values()) == [served]


def test_each_rule_has_its_own_end_for_a_cancelled_request() -> None:
    connection = link()
    assert codes(read(connection.reject(receive_request(connection), RequestCancelled()))) == [(1, -32800)]
    connection = link(rule="never sent")
    assert connection.drop_request(receive_request(connection)) == b""
    connection = link(rule="sent by the handler")
    assert read(connection.respond(receive_request(connection), b'"stopped"')) == [success(1, "stopped")]


@pytest.mark.parametrize("rule", get_args(CancelResponse))
@pytest.mark.parametrize("is_error", [True, False])
def test_a_cancelled_request_gets_a_response_unless_the_rule_forbids_it(rule: CancelResponse, is_error: bool) -> None:
    connection = link(rule=rule)
    served, other = receive_request(connection, 5), receive_request(connection, 6)
    receive(connection, notification("$/cancelRequest", params={"id": 5}))
    assert served.is_response_suppressed is (rule == "never sent")
    for one in (served, other):
        sent = connection.reject(one, RpcError(5)) if is_error else connection.respond(one, b"1")
        assert bool(sent) is (one is other or rule != "never sent")
    assert connection.requests == {}


def test_a_request_is_cancelled_once() -> None:
    connection = link()
    receive_request(connection, 5)
    events = receive(connection, *[notification("$/cancelRequest", params={"id": 5})] * 3)
    assert len(events) == 1


def test_a_string_id_is_cancelled_however_it_is_escaped() -> None:
    connection = link()
    receive_request(connection, "é")
    assert len(receive(connection, '{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":"\\u00e9"}}')) == 1


@pytest.mark.parametrize(
    "params",
    [
        '{"id":6}', '{"id":"5"}', '{"id":5.0}', '{"id":true}', '{"id":null}', '{"id":{}}', '{"id":[5]}', "{}", "[5]",
        "[]", "5", '"5"', '{"requestId":5}', '{"id":"\\u0035"}', '{"id":{"a":"\\\\"}}', '{"id":"\\ud800"}',
    ],
)  # fmt: skip
def test_a_cancellation_that_names_no_open_request_is_ignored(params: str) -> None:
    connection = link()
    served = receive_request(connection, 5)
    assert receive(connection, f'{{"jsonrpc":"2.0","method":"$/cancelRequest","params":{params}}}') == []
    assert not served.is_cancelled
    assert [id for id, _ in codes(sent_messages(connection))] == ([None] if "ud800" in params else [])


def test_a_cancellation_of_bytes_that_are_not_text_is_ignored() -> None:
    connection = link()
    receive_request(connection, 5)
    body = b'{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":"\\n\xff"}}'
    assert connection.receive(ContentLength().encode(body)) == []


def test_a_cancellation_without_params_is_ignored() -> None:
    connection = link()
    receive_request(connection, 5)
    assert receive(connection, notification("$/cancelRequest"), notification("$/cancelRequest", params=None)) == []


def test_a_cancellation_behind_the_response_is_ignored() -> None:
    connection = link()
    connection.respond(receive_request(connection, 5), b"1")
    assert receive(connection, notification("$/cancelRequest", params={"id": 5})) == []


def test_a_storm_of_cancellations_leaves_nothing_behind() -> None:
    connection = link()
    storm = frame(notification("$/cancelRequest", params={"id": 5})) * 1_000
    receive_request(connection, 5)
    events = [event for _ in range(20) for event in connection.receive(storm)]
    assert len(events) == 1
    assert connection.data_to_send() == b""
    assert connection.violation is None


def test_without_cancellation_its_method_is_an_ordinary_notification() -> None:
    connection = link(rule=None)
    receive_request(connection, 5)
    (event,) = receive(connection, notification("$/cancelRequest", params={"id": 5}))
    assert isinstance(event, NotificationMessage)
    (event,) = receive(connection, [notification("$/cancelRequest", params={"id": 5})])
    assert isinstance(event, NotificationMessage)


def test_a_cancellation_as_a_request_is_a_request_like_any_other() -> None:
    assert receive_request(link(), 6, method="$/cancelRequest").id == b"6"


# -- bad messages


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("{", (None, -32700)),
        ("", (None, -32700)),
        ("1", (None, -32600)),
        ("[]", (None, -32600)),
        ("{}", (None, -32600)),
        ('{"jsonrpc":"2.0","id":5}', (5, -32600)),
        ('{"jsonrpc":"1.0","id":5,"method":"m"}', (5, -32600)),
        ('{"jsonrpc":"2.0","id":{},"method":"m"}', (None, -32600)),
        ('{"jsonrpc":"2.0","id":5,"method":"m","params":' + "[" * 99 + "]" * 99 + "}", (5, 1004)),
    ],
)
def test_a_bad_message_gets_a_response_and_the_link_lives(text: str, answer: object) -> None:
    connection = link()
    assert receive(connection, text) == []
    assert codes(sent_messages(connection)) == [answer]
    assert connection.violation is None
    assert receive_request(connection, 5).id == b"5"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "invalid request: an empty batch"),
        ("5", "invalid request: neither an object nor a batch"),
        ('{"jsonrpc":"2.0","id":5}', "invalid request: neither method, result nor error"),
        ('{"jsonrpc":"2.0","id":1,"method":"m"}', "invalid request: duplicate id in flight: 1"),
        ('{"jsonrpc":"2.0","id":2,"method":"m"}', "busy: requests in flight, the limit is 1"),
    ],
)
def test_an_error_response_describes_the_problem(text: str, message: str) -> None:
    connection = link(limits={"inbound_requests": 1})
    receive_request(connection, 1)
    receive(connection, text)
    assert [response["error"]["message"] for response in sent_messages(connection)] == [message]


def test_bad_json_ends_the_link_if_the_dialect_requires_it() -> None:
    connection = link(bad_json_is_fatal=True)
    assert receive(connection, "{", "[") == []
    assert isinstance(connection.violation, BadMessage)
    assert sent_messages(connection) == []


def test_a_message_that_is_json_does_not_end_the_link_even_there() -> None:
    connection = link(bad_json_is_fatal=True)
    receive(connection, "1")
    assert connection.violation is None
    assert codes(sent_messages(connection)) == [(None, -32600)]


@pytest.mark.parametrize(
    ("options", "message", "text"),
    [
        ({"bad_json_is_fatal": True}, "{", "not JSON: "),
        (
            {"limits": {"stray_replies": 0}},
            success(9),
            "1 responses in a minute to no pending call, the last to id '9'",
        ),
    ],
)
def test_a_violation_describes_the_problem(options: dict[str, Any], message: object, text: str) -> None:
    connection = link(**options)
    receive(connection, message)
    assert str(connection.violation).startswith(text)


def test_an_error_that_belongs_to_no_call_is_an_event() -> None:
    connection = link()
    opened = call(connection)
    (event,) = receive(connection, failure(None, -32700, "parse error"))
    assert isinstance(event, Failure)
    assert (event.code, event.message) == (-32700, "parse error")
    assert list(connection.calls.values()) == [opened]
    (event,) = receive(connection, {"jsonrpc": "2.0", "error": {"code": 1, "message": "no id"}})
    assert isinstance(event, Failure)


# -- bad frames


def test_a_bad_frame_ends_the_link_and_what_came_before_is_served() -> None:
    connection = link()
    (event,) = connection.receive(frame(notification("a")) + b"Content-Length: x\r\n\r\n" + frame(notification("b")))
    assert isinstance(event, NotificationMessage)
    assert isinstance(connection.violation, BadFrame)
    assert connection.receive(frame(notification("c"))) == []


def test_input_that_ends_inside_a_frame_is_reported() -> None:
    connection = link()
    connection.receive(frame(notification("a"))[:-1])
    assert isinstance(connection.receive_eof(), BadFrame)
    assert link().receive_eof() is None


def test_an_oversize_line_gets_a_response_and_the_next_one_served() -> None:
    connection = link(JsonLines, limits={"frame": 200})
    events = connection.receive(b'{"jsonrpc":"2.0","method":"' + b"x" * 200 + b'"}\n{"jsonrpc":"2.0","method":"m"}\n')
    assert [type(event) for event in events] == [SkippedFrame, NotificationMessage]
    assert isinstance(events[0], SkippedFrame)
    assert isinstance(events[0].error, FrameTooLarge)
    assert b'"code":1004' in connection.data_to_send()


@pytest.mark.parametrize(("framing", "what"), [(ContentLength, "frame"), (JsonLines, "line")])
def test_a_response_above_the_frame_limit_fails_its_call_alone(framing: FramingFactory, what: str) -> None:
    connection = link(framing, limits={"frame": 200}, skips_oversize=True)
    remote = framing(Limits())
    first, second = call(connection), call(connection)
    bodies = [json.dumps(success(id, "x" * size)).encode() for id, size in ((1, 300), (2, 0), (1, 300))]
    assert connection.receive(b"".join(map(remote.encode, bodies))) == [first, second]
    assert isinstance(first.error, BadReply)
    assert first.error.problem == f"{what} too large: {len(bodies[0])} bytes, the limit is 200"
    assert second.error is None
    assert (connection.stray_responses, connection.violation, connection.data_to_send()) == (1, None, b"")


@pytest.mark.parametrize("id", [5, None])
def test_an_oversize_request_gets_an_error_under_its_own_id_and_a_notification_none(id: int | None) -> None:
    connection = link(JsonLines, limits={"frame": 200}, skips_oversize=True)
    message = notification("m", params=["x" * 200]) if id is None else request(id, params=["x" * 200])
    body = json.dumps(message).encode()
    (event,) = connection.receive(body + b"\n")
    assert isinstance(event, SkippedFrame)
    problem = f"line too large: {len(body)} bytes, the limit is 200"
    assert str(event.error) == problem
    sent = [json.loads(line) for line in connection.data_to_send().splitlines()]
    assert sent == ([] if id is None else [failure(id, TOO_LARGE, f"too large: {problem}")])
    assert connection.violation is None


class UnscannedLines:
    """A framing without `scan_oversize`."""

    def __init__(self, limits: Limits) -> None:
        self._lines = JsonLines(limits)
        self.error: BadFrame | None = None
        self.frames = self.pending = 0
        self.feed, self.end = self._lines.feed, self._lines.end
        self.prefix, self.encode = self._lines.prefix, self._lines.encode


def test_a_framing_that_cannot_scan_oversize_frames_reports_them_as_lines_without_a_sender() -> None:
    connection = link(UnscannedLines, limits={"frame": 200}, skips_oversize=True)
    opened = call(connection)
    body = json.dumps(success(1, "x" * 300)).encode()
    (event,) = connection.receive(body + b"\n")
    assert isinstance(event, SkippedFrame)
    problem = f"too large: line too large: {len(body)} bytes, the limit is 200"
    assert json.loads(connection.data_to_send()) == failure(None, TOO_LARGE, problem)
    assert list(connection.calls.values()) == [opened]


def test_stray_text_is_an_event_and_gets_no_response() -> None:
    connection = link(lambda limits: JsonLines(limits, skip_stray=True))
    events = connection.receive(b'> npm run start\n{"jsonrpc":"2.0","method":"m"}\n')
    assert [type(event) for event in events] == [SkippedFrame, NotificationMessage]
    assert connection.data_to_send() == b""


# -- batches of the other peer


def test_a_batch_gets_a_response_in_one_frame_when_the_last_response_is_there() -> None:
    connection = link()
    first, note, second = receive(connection, [request(1), notification("tick"), request("b")])
    assert isinstance(note, NotificationMessage)
    assert isinstance(first, InboundRequest)
    assert isinstance(second, InboundRequest)
    assert connection.data_to_send() == b""
    assert connection.respond(second, b"2") == b""
    assert read(connection.reject(first, RpcError(5, "no"))) == [[success("b", 2), failure(1, 5, "no")]]
    assert connection.requests == {}


@pytest.mark.parametrize("members", [{}, {"params": {}}, {"params": [1]}])
def test_requests_of_a_batch_get_their_responses_together_with_and_without_params(members: dict[str, object]) -> None:
    connection = link()
    first, second = receive(connection, [request(1, **members), request(2, **members)])
    assert isinstance(first, InboundRequest)
    assert isinstance(second, InboundRequest)
    assert connection.respond(first, b"1") == b""
    assert read(connection.respond(second, b"2")) == [[success(1, 1), success(2, 2)]]


def test_while_closing_the_requests_of_a_batch_are_rejected_in_one_frame() -> None:
    connection = link()
    connection.begin_closing()
    assert receive(connection, [request(1), request(2)]) == []
    not_ready = ERROR_CODES[Meaning.NOT_READY]
    assert sent_messages(connection) == [[failure(id, not_ready, "not ready: shutting down") for id in (1, 2)]]


def test_a_link_that_ends_within_a_batch_delivers_no_further_member() -> None:
    class Closer(EventBuffer):
        def on_request(self, request: InboundRequest) -> None:
            super().on_request(request)
            connection.close(LOST)

    connection = link()
    receiver = Closer()
    connection.set_receiver(receiver)
    receive(connection, [request(1), request(2), notification("tick"), request(3, params={})])
    assert [event.id for event in receiver.events if isinstance(event, InboundRequest)] == [b"1"]
    assert (len(receiver.events), receiver.outgoing, connection.requests) == (1, [], {})


def test_a_batch_of_notifications_gets_no_response() -> None:
    connection = link()
    assert len(receive(connection, [notification("a"), notification("b")])) == 2
    assert connection.data_to_send() == b""


def test_invalid_members_get_responses_with_the_others() -> None:
    connection = link()
    (served,) = receive(connection, [1, request(1), [], {"foo": "boo"}])
    assert isinstance(served, InboundRequest)
    assert sent_messages(connection) == []
    ((*bad, good),) = read(connection.respond(served, b"1"))
    assert codes(bad) == [(None, -32600)] * 3
    assert good == success(1, 1)


def test_a_batch_of_nothing_but_bad_members_gets_a_response_at_once() -> None:
    connection = link()
    receive(connection, [1, 2, 3])
    (responses,) = sent_messages(connection)
    assert codes(responses) == [(None, -32600)] * 3


def test_a_batch_of_one_gets_a_response_with_a_batch_of_one() -> None:
    connection = link()
    (served,) = receive(connection, [request(1)])
    assert isinstance(served, InboundRequest)
    assert read(connection.respond(served, b"1")) == [[success(1, 1)]]


def test_an_empty_batch_and_a_large_one_are_one_error_each() -> None:
    connection = link()
    assert receive(connection, [], [request(n) for n in range(51)], [1] * 20_000) == []
    assert codes(sent_messages(connection)) == [(None, -32600), (None, 1004), (None, 1004)]


def test_responses_in_a_batch_settle_their_calls_and_get_no_response() -> None:
    connection = link()
    first, second, third = (call(connection) for _ in range(3))
    events = receive(connection, [success(2, "b"), request(1), failure(1), {"jsonrpc": "2.0", "id": 3}])
    served = events[1]
    assert isinstance(served, InboundRequest)
    assert events == [second, served, first, third]
    assert isinstance(third.error, BadReply)
    assert read(connection.respond(served, b"1")) == [[success(1, 1)]]


def test_stray_responses_in_a_batch_are_counted() -> None:
    connection = link()
    assert receive(connection, [success(99), failure(98), {"jsonrpc": "2.0", "id": 97, "error": 5}]) == []
    assert connection.stray_responses == 3
    assert sent_messages(connection) == []


def test_pings_duplicates_and_refusals_are_part_of_the_batch() -> None:
    connection = link(ping="$/ping", limits={"inbound_requests": 1})
    (served,) = receive(connection, [request(1), request(1), request(2, "$/ping"), request(3)])
    assert isinstance(served, InboundRequest)
    (responses,) = read(connection.respond(served, b"1"))
    assert responses[1] == success(2)
    assert [(answer["id"], answer.get("error", {}).get("code")) for answer in responses] == [
        (None, -32600),
        (2, None),
        (3, 1002),
        (1, None),
    ]


def test_a_batch_whose_requests_are_all_forgotten_gets_no_response() -> None:
    connection = link(rule="never sent")
    first, second = receive(connection, [request(1), request(2)])
    assert isinstance(first, InboundRequest)
    assert isinstance(second, InboundRequest)
    assert connection.drop_request(first) == b""
    assert connection.drop_request(second) == b""


def test_a_request_and_its_cancellation_may_share_a_batch() -> None:
    connection = link()
    served, requested = receive(connection, [request(1), notification("$/cancelRequest", params={"id": 1})])
    assert isinstance(served, InboundRequest)
    assert isinstance(requested, CancelRequested)
    assert codes(read(connection.reject(served, RequestCancelled()))[0]) == [(1, -32800)]


def test_responses_too_large_together_become_errors_each() -> None:
    connection = link(limits={"frame": 400})
    first, second = receive(connection, [request(1), request(2)])
    assert isinstance(first, InboundRequest)
    assert isinstance(second, InboundRequest)
    big = b'"' + b"x" * 250 + b'"'
    connection.respond(first, big)
    (responses,) = read(connection.respond(second, big))
    assert codes(responses) == [(1, TOO_LARGE), (2, TOO_LARGE)]
    size = 2 * len(connection.codec.encode_success(b"1", big))
    problem = f"the response has {size} bytes, the limit is 400"
    assert [response["error"]["message"] for response in responses] == [problem, problem]


def test_responses_of_the_link_itself_preserve_their_ids_if_a_batch_is_too_large() -> None:
    connection = link(ping="$/ping", limits={"frame": 600, "inbound_requests": 1})
    (served,) = receive(connection, [request(1), request(2, "$/ping"), request(3)])
    assert isinstance(served, InboundRequest)
    (responses,) = read(connection.respond(served, b'"' + b"x" * 500 + b'"'))
    assert codes(responses) == [(2, TOO_LARGE), (3, TOO_LARGE), (1, TOO_LARGE)]


def test_a_response_as_large_as_a_frame_is_too_large_in_a_batch() -> None:
    connection = link(limits={"frame": 400})
    (served,) = receive(connection, [request(1)])
    assert isinstance(served, InboundRequest)
    overhead = len(connection.codec.encode_success(b"1", b'""'))
    (responses,) = read(connection.respond(served, b'"' + b"x" * (400 - overhead) + b'"'))
    assert codes(responses) == [(1, TOO_LARGE)]


def test_errors_too_large_together_become_one() -> None:
    connection = link(limits={"frame": 400})
    connection.receive(frame([1] * 10))
    assert codes(sent_messages(connection)) == [(None, TOO_LARGE)]


# -- our batches


def open_batch(connection: Any, count: int) -> list[OutboundCall]:
    calls = [OutboundCall(f"m{n}", Waiter()) for n in range(count)]
    connection.open_batch([(one, None) for one in calls], [])
    return calls


def test_a_batch_is_one_frame_of_calls_and_notifications() -> None:
    connection = link()
    calls = [OutboundCall("a", Waiter()), OutboundCall("b", Waiter())]
    sent = connection.open_batch([(calls[0], b"[1]"), (calls[1], None)], [("tick", b"{}"), ("tock", None)])
    assert read(sent) == [
        [request(1, "a", params=[1]), request(2, "b"), notification("tick", params={}), notification("tock")]
    ]
    assert receive(connection, [success(2), success(1)]) == [calls[1], calls[0]]


def test_a_batch_may_be_responded_to_in_parts_and_mixed_with_others() -> None:
    connection = link()
    first, second = open_batch(connection, 2)
    other = call(connection)
    assert receive(connection, success(3), success(2)) == [other, second]
    assert receive(connection, success(1)) == [first]
    third = call(connection)
    assert receive(connection, success(4)) == [third]


def test_a_batch_of_notifications_waits_for_nothing() -> None:
    connection = link()
    assert read(connection.open_batch([], [("tick", None)])) == [[notification("tick")]]
    assert connection.calls == {}
    (event,) = receive(connection, failure(None))
    assert isinstance(event, Failure)


def test_an_empty_batch_is_not_sent() -> None:
    with pytest.raises(LocalProtocolError, match=r"^an empty batch$"):
        link().open_batch([], [])


def test_a_batch_that_cannot_be_framed_is_not_filed() -> None:
    connection = link(limits={"frame": 100})
    with pytest.raises(LocalProtocolError):
        open_batch(connection, 50)
    assert connection.calls == {}


def test_a_batch_that_is_refused_as_a_whole_fails_all_its_calls_and_no_others() -> None:
    connection = link()
    before = call(connection)
    batch = open_batch(connection, 3)
    later = open_batch(connection, 1)
    events = receive(connection, failure(None, -32600, "no batches"))
    assert set(map(id, events)) == set(map(id, batch))
    assert [(one.error.code, one.error.method) for one in batch if isinstance(one.error, RemoteError)] == [
        (-32600, "m0"),
        (-32600, "m1"),
        (-32600, "m2"),
    ]
    assert list(connection.calls.values()) == [before, *later]
    assert receive(connection, failure(None)) == later
    assert isinstance(receive(connection, failure(None))[0], Failure)


def test_a_refusal_passes_over_batches_that_have_their_responses() -> None:
    connection = link()
    open_batch(connection, 1)
    open_batch(connection, 1)
    (third,) = open_batch(connection, 1)
    receive(connection, success(2), success(1))
    assert receive(connection, failure(None)) == [third]


@pytest.mark.parametrize(
    "response", [success(1), failure(1), [success(1)], {"jsonrpc": "2.0", "id": 1, "result": 1, "x": 2}]
)
def test_a_batch_of_which_a_call_has_its_response_was_not_refused(response: object) -> None:
    connection = link()
    first, second = open_batch(connection, 2)
    assert receive(connection, response) == [first]
    assert isinstance(receive(connection, failure(None))[0], Failure)
    assert list(connection.calls.values()) == [second]
    assert connection.stray_responses == 1


def test_a_refusal_fails_the_rest_of_a_batch() -> None:
    connection = link()
    first, second = open_batch(connection, 2)
    connection.cancel_call(first)
    assert receive(connection, failure(None)) == [second]
    assert first.error is None


def test_errors_that_belong_to_no_call_are_counted_and_end_the_link_in_the_end() -> None:
    connection = link(limits={"stray_replies": 3})
    call(connection)
    receive(connection, *[failure(None)] * 3)
    assert (connection.stray_responses, connection.violation) == (3, None)
    receive(connection, failure(None))
    assert isinstance(connection.violation, BadMessage)


def test_an_abandoned_batch_ignores_a_refusal() -> None:
    connection = link()
    for opened in open_batch(connection, 2):
        connection.cancel_call(opened)
    assert isinstance(receive(connection, failure(None))[0], Failure)


# -- the end


def test_every_open_call_is_lost_with_an_error_of_its_own() -> None:
    connection = link()
    opened = [call(connection) for _ in range(3)]
    assert connection.close(LOST) == opened
    errors = [one.error for one in opened]
    assert all(isinstance(error, ConnectionLost) and error.reason is LOST.reason for error in errors)
    assert len({id(error) for error in errors}) == 3


def test_nothing_is_left_and_nothing_comes_after_the_end() -> None:
    connection = link(ping="$/ping")
    opened = call(connection)
    served = receive_request(connection, 5)
    receive(connection, request(6, "$/ping"))
    open_batch(connection, 2)
    connection.close(LOST)
    assert (connection.calls, connection.requests) == ({}, {})
    assert connection.data_to_send() == b""
    assert connection.respond(served, b"1") == b""
    assert connection.reject(served, RequestCancelled()) == b""
    assert connection.drop_request(served) == b""
    assert connection.cancel_call(opened) == b""
    assert receive(connection, request(7), notification("a"), success(1), "{") == []
    assert (connection.requests, connection.data_to_send(), connection.violation) == ({}, b"", None)
    assert connection.next_deadline() == inf


def test_the_first_end_counts() -> None:
    connection = link()
    call(connection)
    assert len(connection.close(LOST)) == 1
    assert connection.close(ConnectionLost(DisconnectReason.LOCAL_CLOSE)) == []
    assert connection.lost is LOST


def test_a_call_after_the_end_raises_the_reason_of_the_end() -> None:
    connection = link()
    connection.close(LOST)
    for ask in (
        lambda: connection.open_call(OutboundCall("echo", Waiter()), None),
        lambda: connection.open_batch([(OutboundCall("echo", Waiter()), None)], []),
        lambda: connection.encode_notification("tick", None),
    ):
        with pytest.raises(ConnectionLost) as caught:
            ask()
        assert caught.value is not LOST
        assert (caught.value.reason, caught.value.detail) == (LOST.reason, LOST.detail)


def test_a_violation_ends_the_link_with_its_own_text_and_as_the_cause() -> None:
    violation = BadMessage("nonsense")
    lost = build_connection_lost(violation)
    assert lost.reason is DisconnectReason.REMOTE_VIOLATION
    assert "nonsense" in lost.detail
    assert lost.__cause__ is violation


def test_each_lost_call_has_the_cause() -> None:
    connection = link()
    opened = call(connection)
    violation = BadMessage("nonsense")
    connection.close(build_connection_lost(violation))
    assert opened.error is not None
    assert opened.error.__cause__ is violation
