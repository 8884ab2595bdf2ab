"""A frame is the same whether its beginning was cached or the codec wrote all of it; errors report what went wrong."""

from __future__ import annotations

import pytest
from tests.jsonrpc.links import LOST

from becket.errors import ERROR_CODES, ConnectionLost, LocalProtocolError, Meaning, RpcError
from becket.framing import ContentLength, Framing, JsonLines
from becket.jsonrpc.calls import NULL_FUTURE, InboundRequest, OutboundCall
from becket.jsonrpc.codec import JsonCodec
from becket.jsonrpc.connection import Connection
from becket.jsonrpc.frame_encoder import FrameEncoder
from becket.limits import Limits


class CountingFraming(ContentLength):
    """Counts the bodies that were encoded as a whole."""

    def __init__(self) -> None:
        super().__init__()
        self.encoded = 0

    def encode(self, body: bytes) -> bytes:
        self.encoded += 1
        return super().encode(body)


class TracingCodec(JsonCodec):
    """Adds a member to each message."""

    def encode_request(self, id: bytes, method: str, params: bytes | None) -> bytes:
        return super().encode_request(id, method, params)[:-1] + b',"trace":1}'

    def encode_notification(self, method: str, params: bytes | None) -> bytes:
        return super().encode_notification(method, params)[:-1] + b',"trace":1}'

    def encode_success(self, id: bytes, result: bytes) -> bytes:
        return super().encode_success(id, result)[:-1] + b',"trace":1}'


def build_encoder(
    framing: Framing | None = None, codec: JsonCodec | None = None, *, largest: int = 1_000
) -> FrameEncoder:
    return FrameEncoder(
        framing or ContentLength(Limits(frame=largest)),
        codec or JsonCodec(),
        largest=largest,
        error_codes=ERROR_CODES,
        map_error=None,
    )


def frame(body: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def respond(connection: Connection, result: bytes) -> bytes:
    """Returns the response to a request with the id 1 that the connection receives."""
    (request,) = connection.receive(frame(b'{"jsonrpc":"2.0","id":1,"method":"m","params":{}}'))
    assert isinstance(request, InboundRequest)
    return connection.respond(request, result)


# -- cached prefixes


@pytest.mark.parametrize("params", [b"{}", b"[]", b'{"a":1}', b"[[1]]"])
def test_a_method_that_was_sent_before_is_framed_without_encoding_the_body_again(params: bytes) -> None:
    framing = CountingFraming()
    connection = Connection(framing, JsonCodec())
    body = b'"method":"m","params":' + params + b"}"
    requests = [connection.open_call(OutboundCall("m", NULL_FUTURE), params) for _ in range(2)]
    assert requests == [frame(b'{"jsonrpc":"2.0","id":%b,%b' % (id, body)) for id in (b"1", b"2")]
    assert framing.encoded == 1
    assert connection.encode_notification("m", params) == frame(b'{"jsonrpc":"2.0",' + body)
    assert respond(connection, params) == frame(b'{"jsonrpc":"2.0","id":1,"result":' + params + b"}")
    assert framing.encoded == 1


@pytest.mark.parametrize("params", [b"1", b"null", b'"a"'])
def test_params_that_are_neither_an_object_nor_an_array_are_not_sent_by_a_cached_method_either(params: bytes) -> None:
    connection = Connection(ContentLength(), JsonCodec())
    connection.encode_notification("m", b"{}")
    with pytest.raises(LocalProtocolError, match="the params of m are neither"):
        connection.open_call(OutboundCall("m", NULL_FUTURE), params)
    with pytest.raises(LocalProtocolError, match="the params of m are neither"):
        connection.encode_notification("m", params)


def test_a_codec_that_changes_the_envelope_writes_each_frame() -> None:
    connection = Connection(ContentLength(), TracingCodec())
    for _ in range(2):
        assert b',"trace":1}' in connection.open_call(OutboundCall("m", NULL_FUTURE), b"[1]")
        assert b',"trace":1}' in connection.encode_notification("m", b"[1]")
        assert b',"trace":1}' in respond(connection, b"[1]")


def test_a_link_that_has_ended_sends_nothing_of_a_cached_method() -> None:
    connection = Connection(ContentLength(), JsonCodec())
    connection.encode_notification("m", b"{}")
    connection.close(LOST)
    with pytest.raises(ConnectionLost, match="over"):
        connection.encode_notification("m", b"{}")
    with pytest.raises(ConnectionLost, match="over"):
        connection.open_call(OutboundCall("m", NULL_FUTURE), b"{}")


# -- the events of a request

MARK = b'{"_meta":{"becket":{"parent":7}},'


def build_request() -> InboundRequest:
    return InboundRequest(b"7", b"7", "watch", None)


def test_an_event_after_a_cached_prefix_is_the_notification_with_the_mark_in_its_params() -> None:
    encoder, request = build_encoder(), build_request()
    whole = {method: encoder.encode_notification(method, MARK + b'"n":1}') for method in ("tick", "tock")}
    for method in whole:
        encoder.cache_event_prefixes(request, method, MARK)
    rest = b'"n":1}}'
    assert {method: prefixes[len(rest)] + rest for method, prefixes in request.event_prefixes.items()} == whole


def test_events_of_a_method_that_was_not_sent_before_have_no_cached_prefix() -> None:
    encoder, request = build_encoder(), build_request()
    encoder.cache_event_prefixes(request, "tick", MARK)
    assert request.event_prefixes == {}


@pytest.mark.parametrize(
    ("framing", "codec"),
    [(JsonLines(), JsonCodec()), (ContentLength(), TracingCodec()), (JsonLines(), TracingCodec())],
)
def test_events_have_no_cached_prefix_where_the_whole_body_is_needed(framing: Framing, codec: JsonCodec) -> None:
    encoder, request = build_encoder(framing, codec), build_request()
    encoder.encode_notification("tick", b"{}")
    encoder.cache_event_prefixes(request, "tick", MARK)
    assert request.event_prefixes == {}


# -- errors in the place of responses

TOO_LARGE = ERROR_CODES[Meaning.TOO_LARGE]


def failure(id: bytes, code: int, message: str) -> bytes:
    return b'{"jsonrpc":"2.0","id":%b,"error":{"code":%d,"message":"%b"}}' % (id, code, message.encode())


def test_a_response_that_is_too_large_becomes_an_error_with_its_size_and_the_limit() -> None:
    limits = Limits(frame=200)
    connection = Connection(ContentLength(limits), JsonCodec(limits), limits=limits)
    body = JsonCodec().encode_success(b"1", b'"%b"' % (b"x" * 300))
    problem = f"the response has {len(body)} bytes, the limit is 200"
    assert respond(connection, b'"%b"' % (b"x" * 300)) == frame(failure(b"1", TOO_LARGE, problem))


def test_responses_that_are_too_large_together_become_errors_with_their_size_and_the_limit() -> None:
    encoder = build_encoder(largest=250)
    problem = "the response has 600 bytes, the limit is 250"
    responses = [(b"1", b"x" * 300), (b"2", b"x" * 300)]
    errors = b",".join(failure(id, TOO_LARGE, problem) for id, _ in responses)
    assert encoder.frame_batch(responses, 600) == frame(b"[" + errors + b"]")


def test_responses_as_large_as_the_limit_are_sent_if_the_framing_carries_their_separators_too() -> None:
    encoder = build_encoder(ContentLength(Limits(frame=1_000)), largest=100)
    responses = [(b"1", b"x" * 60), (b"2", b"y" * 40)]
    assert encoder.frame_batch(responses, 100) == frame(b"[" + b"x" * 60 + b"," + b"y" * 40 + b"]")


@pytest.mark.parametrize("error", [RpcError(5, "text", object()), RpcError(5, "\ud800")])
def test_an_error_that_json_cannot_encode_reports_that_under_its_number(error: RpcError) -> None:
    found = build_encoder().encode_error(b"1", error)
    assert found == failure(b"1", 5, "the details of this error could not be encoded")
