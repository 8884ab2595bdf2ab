"""Messages in the wire formats of other systems, read and written."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import Raw
from tests.jsonrpc.links import (
    Waiter,
    call,
    failure,
    notification,
    receive,
    receive_request,
    request,
    sent_messages,
    success,
)

from becket.errors import LocalProtocolError, Meaning, MethodNotFound, RemoteError, RpcError
from becket.framing import ContentLength, JsonLines, SkippedFrame
from becket.framing.framing import FramingFactory
from becket.jsonrpc.calls import IdCounter, OutboundCall
from becket.jsonrpc.codec import JsonCodec
from becket.jsonrpc.connection import Connection
from becket.jsonrpc.messages import Failure, Invalid, Malformed, NotificationMessage, Request, Success
from becket.jsonrpc.wire_format import ErrorPrecedence, WireFormat, WireFormatCodec, accepts_no_id, is_unsigned_id
from becket.limits import Limits

ERROR_FIRST = WireFormat(unknown_error="it failed")
RESULT_FIRST = WireFormat(unknown_error="it failed", error_precedence=ErrorPrecedence.RESULT_FIRST)


def link(wire_format: WireFormat | None, framing: FramingFactory = ContentLength, **options: Any) -> Connection:
    limits = Limits(stray_replies=2)
    codec = WireFormatCodec(limits, wire_format or WireFormat())
    options = {"rejects_invalid": False} | options
    return Connection(framing(limits), codec, limits=limits, wire_format=wire_format, **options)


def decode(frame: str, wire_format: WireFormat = ERROR_FIRST, **limits: int) -> Any:
    message = WireFormatCodec(Limits().but(**limits), wire_format).decode(frame.encode())
    fields = [getattr(message, name) for name in message.__struct_fields__]
    return (type(message), *(msgspec.json.decode(field) if isinstance(field, Raw) else field for field in fields))


# -- what is written


@pytest.mark.parametrize(
    ("wire_format", "params", "text"),
    [
        (WireFormat(), b"{}", b'{"jsonrpc":"2.0","id":1,"method":"m","params":{}}'),
        (WireFormat(), None, b'{"jsonrpc":"2.0","id":1,"method":"m"}'),
        (WireFormat(id_is_last=True), b"[1]", b'{"jsonrpc":"2.0","method":"m","params":[1],"id":1}'),
        (WireFormat(id_is_last=True), None, b'{"jsonrpc":"2.0","method":"m","id":1}'),
        (WireFormat(has_null_params=True), None, b'{"jsonrpc":"2.0","id":1,"method":"m","params":null}'),
        (WireFormat(has_version=False, has_null_params=True), b"{}", b'{"id":1,"method":"m","params":{}}'),
    ],
)
def test_the_wire_format_orders_the_members_of_a_request(
    wire_format: WireFormat, params: bytes | None, text: bytes
) -> None:
    assert WireFormatCodec(wire_format=wire_format).encode_request(b"1", "m", params) == text


def test_params_that_are_neither_an_object_nor_an_array_are_not_sent() -> None:
    codec = WireFormatCodec()
    with pytest.raises(LocalProtocolError, match=r"^the params of m are neither an object nor an array: '1'$"):
        codec.encode_request(b"1", "m", b"1")
    with pytest.raises(LocalProtocolError, match=r"^the params of m are neither an object nor an array: '1'$"):
        codec.encode_notification("m", b"1")


def test_notifications_and_responses_have_the_version_only_where_it_is_written() -> None:
    codec, bare = WireFormatCodec(), WireFormatCodec(wire_format=WireFormat(has_version=False))
    assert codec.encode_notification("m", None) == b'{"jsonrpc":"2.0","method":"m"}'
    assert bare.encode_notification("m", b"{}") == b'{"method":"m","params":{}}'
    assert codec.encode_success(b"1", b"2") == b'{"jsonrpc":"2.0","id":1,"result":2}'
    assert bare.encode_success(b"1", b"2") == b'{"id":1,"result":2}'


def test_an_error_is_an_object_or_its_text_alone() -> None:
    codec, text = WireFormatCodec(), WireFormatCodec(wire_format=WireFormat(has_version=False, is_error_text=True))
    assert codec.encode_failure(b"1", -1, "no", None) == b'{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no"}}'
    assert codec.encode_failure(b"1", -1, "no", [1]).endswith(b'"message":"no","data":[1]}}')
    assert text.encode_failure(b"1", -1, "no", [1]) == b'{"id":1,"error":"no"}'


def test_a_batch_is_refused() -> None:
    with pytest.raises(LocalProtocolError, match=r"^the other peer does not support batches$"):
        link(None).open_batch([], [("m", None)])


# -- what is read


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        ('{"id":1,"method":"m","params":null}', (Request, b"1", "m", None)),
        ('{"jsonrpc":"1.0","id":1,"method":"m","params":{}}', (Request, b"1", "m", {})),
        ('{"jsonrpc":"2.0","method":"m","params":{},"id":1}', (Request, b"1", "m", {})),
        ('{"id":1,"method":"m","result":1}', (Request, b"1", "m", None)),
        ('{"id":null,"method":"m","params":{}}', (NotificationMessage, "m", {})),
        ('{"method":"m"}', (NotificationMessage, "m", None)),
        ('{"id":1,"method":5,"result":1}', (Success, b"1", 1)),
        ('{"id":1}', (Success, b"1", None)),
        ('{"id":"1","result":2}', (Success, b'"1"', 2)),
    ],
)
def test_the_id_and_the_method_alone_determine_the_kind_of_a_message(frame: str, message: Any) -> None:
    assert decode(frame) == message


def test_a_response_without_a_result_has_the_result_null() -> None:
    assert WireFormatCodec().decode(b'{"id":1}') == Success(b"1", Raw(b"null"))


@pytest.mark.parametrize(
    ("frame", "problem"),
    [
        ('{"id":"1","method":"m"}', "a request with an id that is not accepted: m"),
        ('{"id":-1,"method":"m"}', "a request with an id that is not accepted: m"),
        ('{"id":1.5,"method":"m"}', "a request with an id that is not accepted: m"),
        ('{"id":true,"method":"m"}', "a request with an id that is not accepted: m"),
        ('{"id":[],"result":1}', "a response without a readable id"),
        ('{"id":null,"result":1}', "neither a request nor a response"),
        ('{"result":1}', "neither a request nor a response"),
        ("{}", "neither a request nor a response"),
        ('[{"id":1,"method":"m"}]', "not an object"),
        ("[1e999]", "not an object"),
        ("1e999", "not an object"),
        ("5", "not an object"),
    ],
)
def test_everything_else_is_not_a_message(frame: str, problem: str) -> None:
    assert decode(frame) == (Invalid, b"null", Meaning.INVALID_REQUEST, problem)


@pytest.mark.parametrize("frame", ["[1", "[1]]", "nul", ""])
def test_invalid_json_is_distinguished(frame: str) -> None:
    kind, id, meaning, problem = decode(frame)
    assert (kind, id, meaning) == (Invalid, b"null", Meaning.PARSE_ERROR)
    assert problem.startswith("not JSON: ")


def test_a_peer_accepts_the_requests_that_its_wire_format_declares() -> None:
    app = WireFormat(accepts_id=lambda id: id.startswith(b'"app:'))
    ours = '{"jsonrpc":"2.0","id":"app:1","method":"m","params":{}}'
    theirs = '{"jsonrpc":"2.0","id":1,"method":"m","params":{}}'
    assert decode(ours, app) == (Request, b'"app:1"', "m", {})
    assert decode(theirs, app)[0] is Invalid
    assert decode(theirs, WireFormat(accepts_id=accepts_no_id))[0] is Invalid
    assert decode('{"jsonrpc":"2.0","method":"m","params":{}}', app) == (NotificationMessage, "m", {})
    others = WireFormat(accepts_id=lambda id: not is_unsigned_id(id))
    assert decode(ours, others) == (Request, b'"app:1"', "m", {})
    assert decode(theirs, others)[0] is Invalid


@pytest.mark.parametrize("params", ["", ',"params":{}', ',"params":{"a":1}', ',"params": {"a": 1}'])
def test_a_request_with_a_negative_id_is_refused_where_ids_are_unsigned(params: str) -> None:
    kind, id, meaning, _ = decode('{"jsonrpc":"2.0","id":-5,"method":"m"' + params + "}")
    assert (kind, id, meaning) == (Invalid, b"null", Meaning.INVALID_REQUEST)


@pytest.mark.parametrize(
    ("members", "by_error", "by_result"),
    [
        ('"result":1', (Success, b"1", 1), (Success, b"1", 1)),
        ('"result":1,"error":null', (Failure, b"1", 0, "it failed", None), (Success, b"1", 1)),
        ('"error":null', (Failure, b"1", 0, "it failed", None), (Success, b"1", None)),
        ('"result":1,"error":{"message":"no"}', (Failure, b"1", 0, "no", None), (Success, b"1", 1)),
        ('"error":{"message":"no"}', (Failure, b"1", 0, "no", None), (Failure, b"1", 0, "no", None)),
    ],
)
def test_a_response_is_an_error_or_a_result_as_the_system_sees_it(members: str, by_error: Any, by_result: Any) -> None:
    frame = '{"jsonrpc":"2.0","id":1,' + members + "}"
    assert decode(frame, ERROR_FIRST) == by_error
    assert decode(frame, RESULT_FIRST) == by_result


@pytest.mark.parametrize(
    ("error", "code", "message", "data"),
    [
        ('{"code":-5,"message":"no","data":{"a":1}}', -5, "no", {"a": 1}),
        ('{"code":"E1","message":"no"}', 0, "no", None),
        ('{"code":true,"message":7}', 0, "it failed", None),
        ('{"code":1e999,"message":""}', 0, "", None),
        ('"no"', 0, "it failed", None),
        ("[1]", 0, "it failed", None),
        ("false", 0, "it failed", None),
    ],
)
def test_an_error_of_any_shape_is_read_by_its_message(error: str, code: int, message: str, data: object) -> None:
    assert decode('{"id":1,"error":' + error + "}") == (Failure, b"1", code, message, data)


def test_an_error_that_is_a_text_is_its_message() -> None:
    wire_format = WireFormat(is_error_text=True, unknown_error="it failed")
    assert decode('{"id":1,"error":"no"}', wire_format) == (Failure, b"1", 0, "no", None)
    assert decode('{"id":1,"error":["no"]}', wire_format) == (Failure, b"1", 0, "it failed", None)


def test_the_data_of_an_error_is_cut_at_its_limit() -> None:
    frame = '{"id":1,"error":{"code":1,"message":"no","data":"%s"}}' % ("x" * 100)
    assert decode(frame, error_data=10)[4] == '"xxxxxxxxx...'
    assert decode(frame, error_data=102)[4] == "x" * 100


def test_a_response_that_is_too_deep_fails_its_call() -> None:
    assert decode('{"jsonrpc":"2.0","id":1,"result":%s}' % ("[" * 90 + "]" * 90))[:2] == (Malformed, b"1")


# -- the link


def test_ids_begin_where_the_system_begins() -> None:
    connection = link(WireFormat(first_id=0))
    assert [call(connection).id for _ in range(3)] == [b"0", b"1", b"2"]


def test_a_method_with_an_id_of_its_own_is_called_under_it_unless_that_is_in_use() -> None:
    connection = link(WireFormat(first_id=0, fixed_ids={"shutdown": 0}))
    first = call(connection)
    assert receive(connection, success(0, {})) == [first]
    shutdown, again = call(connection, "shutdown"), call(connection, "shutdown")
    assert (shutdown.id, again.id, call(connection).id) == (b"0", b"1", b"2")
    assert receive(connection, success(0, {})) == [shutdown]


def test_the_first_call_has_the_id_of_its_method_too() -> None:
    connection = link(WireFormat(first_id=0, fixed_ids={"shutdown": 9}))
    assert [call(connection, method).id for method in ("shutdown", "m", "m")] == [b"9", b"0", b"1"]


def test_a_call_in_a_batch_has_the_id_of_its_method() -> None:
    connection = Connection(ContentLength(), JsonCodec(), wire_format=WireFormat(fixed_ids={"shutdown": 9}))
    calls = [OutboundCall(method, Waiter()) for method in ("m", "shutdown", "m")]
    connection.open_batch([(made, None) for made in calls], [])
    assert [made.id for made in calls] == [b"1", b"9", b"2"]


def test_links_that_share_their_ids_never_use_one_twice() -> None:
    ids = IdCounter()
    before, after = link(ERROR_FIRST, ids=ids), link(ERROR_FIRST, ids=ids)
    assert [call(connection).id for connection in (before, before, after)] == [b"1", b"2", b"3"]


def test_ids_with_a_prefix_are_strings_in_a_row() -> None:
    connection = link(WireFormat(id_prefix='app:"%d'))
    calls = [call(connection) for _ in range(2)]
    assert [msgspec.json.decode(made.id) for made in calls] == ['app:"%d1', 'app:"%d2']
    events = receive(connection, success('app:"%d2', "two"), success('app:"%d1', "one"))
    assert [msgspec.json.decode(event.result or b"") for event in events if isinstance(event, OutboundCall)] == [
        "two",
        "one",
    ]


@pytest.mark.parametrize("id", ["lib:1", "app:01", "app:", "app:x", "app:-1", 1])
def test_an_id_with_another_prefix_is_not_an_issued_id(id: object) -> None:
    connection = link(WireFormat(id_prefix="app:"))
    made = call(connection)
    assert receive(connection, success(id)) == []
    assert list(connection.calls.values()) == [made]
    assert connection.stray_responses == 1


def test_a_call_is_settled_by_a_plain_result() -> None:
    connection = link(ERROR_FIRST)
    made = call(connection)
    assert receive(connection, success(1, {"a": 1})) == [made]
    assert made.result is not None


def test_an_invalid_message_is_counted_and_gets_no_response() -> None:
    connection = link(ERROR_FIRST)
    events = receive(connection, "nonsense", "[]", {"id": "x", "method": "m"}, {"jsonrpc": "2.0"}, {}, "5")
    assert sent_messages(connection) == []
    assert connection.invalid_messages == 6
    assert connection.violation is None
    assert len(events) == 3  # the first, the second and the fourth
    texts = [str(event.error) for event in events if isinstance(event, SkippedFrame)]
    assert texts[0].startswith("not JSON: ")
    assert texts[0].endswith(" (1 so far)")
    assert texts[1:] == ["not an object (2 so far)", "neither a request nor a response (4 so far)"]


def test_a_frame_that_was_skipped_gets_no_response_either() -> None:
    connection = link(ERROR_FIRST, lambda limits: JsonLines(limits.but(frame=50)))
    (event,) = connection.receive(b'{"method":"' + b"m" * 60 + b'"}\n')
    assert isinstance(event, SkippedFrame)
    assert connection.data_to_send() == b""


def test_garbage_that_ends_the_link_still_does() -> None:
    connection = link(ERROR_FIRST, bad_json_is_fatal=True)
    receive(connection, "nonsense")
    assert connection.violation is not None


def test_garbage_gets_a_response_unless_configured_otherwise() -> None:
    connection = link(ERROR_FIRST, rejects_invalid=True)
    receive(connection, "5")
    assert [response["error"]["code"] for response in sent_messages(connection)] == [-32600]


def test_responses_without_a_request_are_only_counted() -> None:
    connection = link(ERROR_FIRST)
    receive(connection, *(success(99) for _ in range(5)))
    assert connection.stray_responses == 5
    assert connection.violation is None


def test_two_requests_under_one_id_both_get_a_response() -> None:
    connection = link(ERROR_FIRST)
    first, second = receive_request(connection, 7), receive_request(connection, 7)
    assert connection.respond(second, b"2").endswith(b'{"jsonrpc":"2.0","id":7,"result":2}')
    assert connection.respond(first, b"1").endswith(b'{"jsonrpc":"2.0","id":7,"result":1}')


def test_an_error_is_encoded_as_the_system_defines_it() -> None:
    def say(error: RpcError) -> RpcError:
        return RpcError(-5, f"no {error.method}") if isinstance(error, MethodNotFound) else error

    connection = link(WireFormat(map_error=say))
    assert connection.reject(receive_request(connection, 1), MethodNotFound("m")).endswith(
        b'{"jsonrpc":"2.0","id":1,"error":{"code":-5,"message":"no m"}}'
    )


def test_the_meaning_of_an_error_may_depend_on_its_text() -> None:
    def mean(code: int, message: str) -> Meaning | None:
        return Meaning.PERMISSION_DENIED if message.startswith("denied") else None

    connection = link(WireFormat(classify_error=mean))
    calls = [call(connection), call(connection)]
    receive(connection, failure(1, -32602, "denied: a"), failure(2, -32602, "bad"))
    errors = [made.error for made in calls]
    assert [error.meaning for error in errors if isinstance(error, RemoteError)] == [Meaning.PERMISSION_DENIED, None]


def test_the_meaning_of_an_error_may_depend_on_its_number() -> None:
    connection = link(WireFormat(classify_error=lambda code, message: Meaning.BUSY if code == 429 else None))
    calls = [call(connection), call(connection)]
    receive(connection, failure(1, 429), failure(2, -32602))
    assert [made.error.meaning for made in calls if isinstance(made.error, RemoteError)] == [Meaning.BUSY, None]


def test_a_number_of_two_meanings_is_read_as_the_first() -> None:
    connection = link(None, error_codes={Meaning.PERMISSION_DENIED: -32602, Meaning.INTERNAL: -32000})
    calls = [call(connection) for _ in range(3)]
    receive(connection, failure(1, -32602), failure(2, -32000), failure(3, -32603))
    assert [made.error.meaning for made in calls if isinstance(made.error, RemoteError)] == [
        Meaning.INVALID_PARAMS,
        Meaning.INTERNAL,
        Meaning.INTERNAL,
    ]


def test_requests_and_notifications_are_received() -> None:
    connection = link(WireFormat(accepts_id=accepts_no_id))
    assert receive(connection, request(1)) != []
    assert connection.requests == {}
    assert [type(event) for event in receive(connection, notification("m", params={}))] == [NotificationMessage]
