"""The codec, the connection, params and call meta as targets.

Whatever the bytes are, there is a message, a response or an expected error; and it is the one that a plain
reader of JSON would come to.
"""

from __future__ import annotations

import json
from collections.abc import Hashable
from random import Random
from typing import Annotated, Any

from msgspec import Meta, Raw, Struct
from msgspec.structs import replace
from tests.fuzz.reference_codec import NOT_JSON, classify, parse
from tests.fuzz.target import Target

from becket.conversion.decode import get_params_decoder
from becket.dialects import NATIVE, CallMeta
from becket.errors import ConnectionLost, DisconnectReason, LocalProtocolError, RpcError
from becket.framing import JsonLines
from becket.jsonrpc.calls import CancellationFormat, InboundRequest, OutboundCall
from becket.jsonrpc.codec import JsonCodec
from becket.jsonrpc.connection import Connection
from becket.jsonrpc.json_values import encode_json
from becket.jsonrpc.messages import Batch, Failure, Invalid, Malformed, NotificationMessage, Request, Success
from becket.limits import Limits

__all__ = ["TARGETS"]

LIMITS = Limits(frame=200, depth=6, batch=3, inbound_requests=3, stray_replies=1_000)
CODEC = JsonCodec(LIMITS)

MESSAGES = [
    b'{"jsonrpc":"2.0","id":1,"method":"m"}',
    b'{"jsonrpc":"2.0","id":"a\\u0041","method":"m","params":{"x":[1,null]}}',
    b'{"jsonrpc":"2.0","method":"m","params":[1.5e3,true]}',
    b'{"jsonrpc":"2.0","id":1,"result":{"id":2}}',
    b'{"jsonrpc":"2.0","id":2,"error":{"code":-1,"message":"no","data":[]}}',
    b'{"jsonrpc": "2.0", "id": null, "method": "m"}',
    b'[{"jsonrpc":"2.0","id":1,"method":"m"},{"jsonrpc":"2.0","method":"n"},1]',
    b'{"jsonrpc":"2.0","id":1,"params":[[[[[[]]]]]],"method":"m"}',
    b'{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1}}',
    b'{"jsonrpc":"2.0","id":3,"method":"$/ping"}',
]
TOKENS = [
    *(b'"jsonrpc":"2.0"', b'"id":', b'"method":', b'"params":', b'"result":', b'"error":', b'"code":', b'"\\u0069d":'),
    *(b"{", b"}", b"[", b"]", b",", b":", b'"', b"\\", b" ", b"\n", b"\t", b"{}", b"[]", b'""', b"null", b"true", b"0"),
    *(
        b"1",
        b"-1",
        b"1.0",
        b"1e400",
        b'"1"',
        b"NaN",
        b"\\ud800",
        b"\\ud83d\\ude00",
        b"\xff",
        b"\xc3\xa9",
        b"\x00",
        b"9" * 20,
    ),
]


# -- one frame

NO_DIGITS = str.maketrans("", "", "0123456789")  # a number makes no other outcome
KINDS = {
    Request: "request",
    NotificationMessage: "notification",
    Success: "success",
    Failure: "failure",
    Malformed: "malformed",
}


def kind_of(message: Any) -> Any:
    if isinstance(message, Batch):
        return [kind_of(member) for member in message.members]
    if isinstance(message, Invalid):
        return {"invalid request": "invalid"}.get(message.meaning.value, message.meaning.value)
    return KINDS[type(message)]


def decode(data: bytes, random: Random) -> Hashable:
    """Decodes a frame, and compares its kind with that of a plain reader."""
    message = CODEC.decode(data)
    kind = kind_of(message)
    if data.isascii():  # text that is no UTF-8 is found where it is read
        value = parse(data)
        wanted = classify(value, LIMITS)
        if value is NOT_JSON:
            assert kind == "parse error" or kind == "too large", f"{kind} and no JSON"
        elif wanted == "too large" and isinstance(message, Malformed):
            pass  # a response that is too large fails its pending call
        else:
            assert unlike(kind, wanted) is None, f"{kind}, and not {wanted}"
    if isinstance(message, Request):
        assert json.loads(message.id) is None or isinstance(json.loads(message.id), int | float | str)
    return str(kind), getattr(message, "problem", "").partition(" (byte")[0][:40].translate(NO_DIGITS)


def unlike(kind: Any, wanted: Any) -> Any:
    """Returns where the two differ. A response with a number beyond Python's own limits may be malformed."""
    if isinstance(kind, list) and isinstance(wanted, list) and len(kind) == len(wanted):
        return next((pair for pair in zip(kind, wanted, strict=True) if unlike(*pair)), None)
    return None if kind == wanted or (kind, wanted) == ("malformed", "failure") else (kind, wanted)


# -- a link


class Waiter:
    def done(self) -> bool:
        return False

    def set_result(self, result: None, /) -> None: ...


def receive(data: bytes, random: Random) -> Hashable:
    """Feeds lines to a link with pending calls, responds to its requests, and closes it."""
    connection = Connection(
        JsonLines(LIMITS), CODEC, limits=LIMITS, cancellation=CancellationFormat("$/cancelRequest"), ping="$/ping"
    )
    calls = [OutboundCall("echo", Waiter()) for _ in range(2)]
    for call in calls:
        connection.open_call(call, None)
    if random.random() < 0.5:
        calls.append(OutboundCall("echo", Waiter()))
        connection.open_batch([(calls[2], None)], [])
    cut = int(random.random() * len(data))
    events = connection.receive(data[:cut]) + connection.receive(data[cut:] + b"\n")
    settled = [event for event in events if isinstance(event, OutboundCall)]
    assert len(set(map(id, settled))) == len(settled), "settled twice"
    assert all((call.result is None) != (call.error is None) for call in settled)
    served = [event for event in events if isinstance(event, InboundRequest)]
    assert len(connection.requests) == len(served) <= LIMITS.inbound_requests
    output = connection.data_to_send()
    for request in served:
        frame = connection.respond(request, b"null")
        assert connection.respond(request, b"null") == b""
        output += frame
    codes = check_responses(output)
    lost = connection.close(ConnectionLost(DisconnectReason.LOCAL_CLOSE))
    assert len(lost) + len(settled) == len(calls)
    assert (connection.calls, connection.requests, connection.data_to_send()) == ({}, {}, b"")
    return tuple(sorted({type(event).__name__ for event in events})), codes, connection.stray_responses > 0


def check_responses(output: bytes) -> Hashable:
    """Returns the errors that were sent; every response must be valid JSON-RPC."""
    codes: set[int] = set()
    for line in output.splitlines():
        responses = json.loads(line)
        assert responses, "an empty batch"
        for response in responses if isinstance(responses, list) else [responses]:
            assert set(response) in ({"jsonrpc", "id", "result"}, {"jsonrpc", "id", "error"})
            assert response["jsonrpc"] == "2.0"
            assert not isinstance(response["id"], bool | dict | list)
            codes.add(response.get("error", {}).get("code", 0))
    return frozenset(codes)


# -- params


class Point(Struct, forbid_unknown_fields=True):
    x: Annotated[int, Meta(ge=0)]
    y: list[int | None] = []


class Circle(Struct, tag="circle"):
    at: Point


class Square(Struct, tag="square", rename={"side": "x"}):
    side: dict[str, Point]


DECODERS = [
    get_params_decoder(kind) for kind in (Any, Point, Circle | Square, list[Point | int], dict[str, Point | None], Raw)
]
PARAMS = [
    b'{"x":1,"y":[1,null]}',
    b'{"type":"circle","at":{"x":1}}',
    b'{"type":"square","x":{"a":{"x":2}}}',
    b'[1,{"x":1},"a"]',
    b'{"a":{"x":-1},"b":null}',
    b"[1e400,5]",
]
PARAMS_TOKENS = [*TOKENS, b'"x":', b'"y":', b'"type":', b'"circle"', b'"square"', b'"at":', b"-5", b"1.5"]


def convert(data: bytes, random: Random) -> Hashable:
    """Decodes params into every type: there is a value, or an error with all problems."""
    message = CODEC.decode(b'{"jsonrpc":"2.0","id":1,"method":"m","params":' + data + b"}")
    if not isinstance(message, Request):
        return None
    outcomes: list[str] = []
    for decoder in DECODERS:
        try:
            outcomes.append(type(decoder(message.params)).__name__)
        except RpcError as error:
            problems = getattr(error, "problems", None)
            assert problems is None or (problems and all(isinstance(pointer, str) for pointer, _ in problems))
            JsonCodec().encode_failure(b"1", 1, error.message, error.data)
            outcomes.append("parse error" if problems is None else f"{min(len(problems), 3)} problems")
    value = parse(data)
    if value is NOT_JSON:
        # What stands behind the params may be a member of the message then, or one more pair of brackets.
        assert message.params is None or parse(bytes(message.params)) is not NOT_JSON or not data.isascii()
    return tuple(outcomes)


# -- call meta

METAS = [
    b'{"_meta":{"becket":{"timeout_ms":5,"parent":"a","depth":1,"credit":8,"idem":"k"}}}',
    b'{"a":"_meta","_meta":{"progressToken":1}}',
    b'{"a":{"_meta":{}}}',
    b'["_meta"]',
]
META_TOKENS = [*TOKENS, b'"_meta":', b'"becket":', b'"depth":', b'"timeout_ms":', b'"parent":', b"-5", b"9" * 30]


def read_meta(data: bytes, random: Random) -> Hashable:
    """Reads the meta of a call, and writes it into params that are JSON."""
    found, _ = NATIVE.split_meta(Raw(data), NATIVE.features)
    meta = CallMeta(depth=3, idem="null")
    if data.isascii() and isinstance(value := parse(data), dict):
        try:
            written = NATIVE.insert_meta(data, encode_json(meta), NATIVE.features)
        except LocalProtocolError:
            return "no JSON"
        if isinstance(value.get("_meta", {}), dict) and data.startswith(b"{"):
            read, _ = NATIVE.split_meta(Raw(written), NATIVE.features)
            assert read == (meta if data != b"{}" else replace(meta, no_params=False))
    return None if found is None else tuple(value is None for value in (found.timeout_ms, found.parent, found.credit))


TARGETS = [
    Target("codec", MESSAGES, TOKENS, decode),
    Target("connection", [message + b"\n" for message in MESSAGES], TOKENS, receive),
    Target("params", PARAMS, PARAMS_TOKENS, convert),
    Target("meta", METAS, META_TOKENS, read_meta),
]
