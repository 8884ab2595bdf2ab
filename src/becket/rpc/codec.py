"""One frame into a message and back: the JSON of JSON-RPC 2.0.

The fast path is one pass of msgspec over the envelope, with params and result left raw. msgspec keeps the last of two
equal keys and passes over members it does not know; so the lengths of what it found are added up, and a frame with a
byte too many takes the careful path, which looks at the top level pair by pair. Guards against too many nodes and too
much depth run before any parsing, on frames large enough to hold them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any, Protocol, get_args, get_type_hints

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from becket.errors import LocalProtocolError, Meaning
from becket.limits import DEFAULT_LIMITS, Limits
from becket.rpc.messages import NULL_ID, Batch, Failure, Invalid, Malformed, Message, Notification, Request, Success
from becket.wire.framing import Frame

__all__ = ["Codec", "JsonCodec", "decode_json", "encode_json", "key_of"]


class Codec(Protocol):
    """Frame to message and back, for one protocol."""

    def decode(self, frame: Frame) -> Message: ...

    def encode_value(self, value: object) -> bytes: ...

    def encode_request(self, id: bytes, method: str, params: bytes | None) -> bytes: ...

    def encode_notification(self, method: str, params: bytes | None) -> bytes: ...

    def encode_success(self, id: bytes, result: bytes) -> bytes: ...

    def encode_failure(self, id: bytes, code: int, message: str, data: object) -> bytes: ...

    def encode_batch(self, bodies: Iterable[bytes]) -> bytes: ...


class Envelope(Struct, gc=False):
    jsonrpc: str | UnsetType = UNSET
    id: Raw | UnsetType = UNSET
    method: str | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


class ErrorObject(Struct):
    code: int
    message: Any = ""
    data: Raw | UnsetType = UNSET


VERSION = "2.0"
# What a frame holds beside the texts of its members: braces, keys, quotes, commas.
NOTIFICATION_BYTES = len('{"jsonrpc":"2.0","method":""}')
REQUEST_BYTES = len('{"jsonrpc":"2.0","id":,"method":""}')
SUCCESS_BYTES = len('{"jsonrpc":"2.0","id":,"result":}')
PARAMS_BYTES = len(',"params":')
NULL_BYTES = len(NULL_ID)

METHODS_KEPT = 1_024  # encoded method names; a program that sends more kinds than this encodes them anew

# Parsing fails in three ways: malformed text, a value of another type, and text that is not UTF-8.
UNDECODABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

decode_envelope = msgspec.json.Decoder(Envelope).decode
decode_members = msgspec.json.Decoder(dict[str, Raw]).decode
decode_elements = msgspec.json.Decoder(list[Raw]).decode
decode_error = msgspec.json.Decoder(ErrorObject).decode
decode_string = msgspec.json.Decoder(str).decode
decode_json = msgspec.json.Decoder().decode
encode_any = msgspec.json.Encoder().encode


def encode_json(value: object) -> bytes:
    """Returns the compact JSON of `value`.

    Raises:
        LocalProtocolError: it has no JSON: an unknown type, NaN or an infinity, a lone surrogate, a circle.
    """
    try:
        text = encode_any(value)
        # msgspec writes NaN and infinities as null, which would change the value in silence.
        kind = type(value)
        if kind not in FINITE and (kind in WATCHED or not learn_finite(kind)) and b"null" in text:
            check_finite(msgspec.to_builtins(value))
    except (TypeError, ValueError, RecursionError, OverflowError) as error:
        raise LocalProtocolError(f"no JSON for this {type(value).__name__}: {error}") from error
    return text


# Types whose values cannot hold a number without JSON, and those that could.
FINITE: set[object] = {str, int, bool, type(None)}
WATCHED: set[object] = {dict, list, tuple, float}


def learn_finite(kind: type) -> bool:
    """Files a type by its fields and returns whether its values need no second look."""
    is_harmless = issubclass(kind, Struct) and all(is_finite(hint) for hint in get_type_hints(kind).values())
    (FINITE if is_harmless else WATCHED).add(kind)
    return is_harmless


def is_finite(hint: Any) -> bool:
    arguments = get_args(hint)
    return all(is_finite(argument) for argument in arguments) if arguments else hint in FINITE


def check_finite(value: object) -> None:
    match value:
        case float():
            if not math.isfinite(value):
                raise ValueError(f"{value} has no JSON")
        case dict():
            for member in value.values():
                check_finite(member)
        case list() | tuple():
            for element in value:
                check_finite(element)
        case _:
            pass


class JsonCodec:
    """JSON-RPC 2.0 in JSON."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self.limits = limits
        self._methods: dict[str, bytes] = {}
        # A level takes two bytes and a node at least two: smaller values cannot reach the limit.
        self._deep = 2 * limits.depth
        self._dense = 2 * limits.nodes
        self._name_bytes = min(limits.method_bytes, limits.id_bytes) + REQUEST_BYTES

    # -- in

    def decode(self, frame: Frame) -> Message:
        """Returns the message in `frame`. Whatever the bytes are: what is no message comes back as `Invalid`."""
        try:
            envelope = decode_envelope(frame)
        except (*UNDECODABLE, msgspec.ValidationError):
            return self._decode_carefully(frame)
        size = len(frame)
        id = envelope.id
        method = envelope.method
        if envelope.jsonrpc == VERSION and envelope.error is UNSET:
            if method is UNSET:
                result = envelope.result
                if result is not UNSET and id is not UNSET:
                    inner = len(result)
                    if inner > self._deep and (excess := self._find_excess(frame)):
                        return refuse_unread(envelope, excess)
                    if size == len(id) + inner + SUCCESS_BYTES:
                        return Success(bytes(id), result)
            elif envelope.result is UNSET and method:
                params = envelope.params
                if params is UNSET:
                    raw = None
                    rest = size
                else:
                    raw = params
                    inner = len(params)
                    rest = size - inner - PARAMS_BYTES
                    if inner > self._deep:
                        if excess := self._find_excess(frame):
                            return refuse_unread(envelope, excess)
                    elif inner == NULL_BYTES and bytes(params) == NULL_ID:
                        raw = None
                if rest <= self._name_bytes:
                    if id is UNSET:
                        if rest == len(method) + NOTIFICATION_BYTES:
                            return Notification(method, raw)
                    elif rest == len(method) + len(id) + REQUEST_BYTES:
                        text = bytes(id)
                        if text.isdigit():
                            return Request(text, method, raw)
        return self._decode_carefully(frame)

    def _decode_carefully(self, frame: Frame) -> Message:
        if len(frame) > self._deep and (excess := self._find_excess(frame)):
            try:
                return refuse_unread(decode_envelope(frame), excess)
            except (*UNDECODABLE, msgspec.ValidationError):
                return Invalid(NULL_ID, Meaning.TOO_LARGE, excess)
        try:
            members = decode_members(frame)
        except msgspec.ValidationError:
            return self._decode_batch(frame)
        except UNDECODABLE as error:
            return Invalid(NULL_ID, Meaning.PARSE_ERROR, f"not JSON: {error}")
        twice = find_duplicate(bytes(frame), members)
        if twice is not None:
            id = NULL_ID if twice == "id" else readable_id(members.get("id"), self.limits)
            return Invalid(id or NULL_ID, Meaning.INVALID_REQUEST, f"duplicate member: {twice}")
        return self._classify(members)

    def _classify(self, members: dict[str, Raw]) -> Request | Notification | Success | Failure | Malformed | Invalid:
        raw_id = members.get("id")
        id = readable_id(raw_id, self.limits)
        answer_id = id or NULL_ID
        if id is None and raw_id is not None:
            return Invalid(NULL_ID, Meaning.INVALID_REQUEST, "the id is no string, number or null, or is too long")
        is_answer = "result" in members or "error" in members
        if members.get("jsonrpc") != VERSION_TEXT:
            problem = 'the member "jsonrpc" is not "2.0"'
            if is_answer and id is not None:
                return Malformed(id, problem)
            return Invalid(answer_id, Meaning.INVALID_REQUEST, problem)
        if "method" in members:
            if is_answer:
                return Invalid(answer_id, Meaning.INVALID_REQUEST, "both a request and an answer")
            method = readable_method(members["method"], self.limits)
            if method is None:
                return Invalid(answer_id, Meaning.INVALID_REQUEST, "the method is no name")
            params = without_null(members.get("params"))
            return Notification(method, params) if id is None else Request(id, method, params)
        if id is None:
            if "error" in members:  # an answer without an id: they could not tell what they are answering
                return self._failure(NULL_ID, members["error"])
            return Invalid(NULL_ID, Meaning.INVALID_REQUEST, "neither a request nor an answer")
        error = without_null(members.get("error"))
        if error is None and "result" in members:  # `error: null` beside a result is a habit of JSON-RPC 1.0
            return Success(id, members["result"])
        if error is not None and "result" not in members:
            return self._failure(id, error)
        return Malformed(id, "both result and error" if error is not None else "neither result nor error")

    def _failure(self, id: bytes, raw: Raw) -> Failure | Malformed:
        try:
            error = decode_error(raw)
            data: object = None
            if error.data is not UNSET:
                size = len(error.data)
                kept = self.limits.error_data
                data = (
                    decode_json(error.data)
                    if size <= kept
                    else f"{bytes(error.data)[:kept].decode(errors='replace')}..."
                )
        except (*UNDECODABLE, msgspec.ValidationError) as problem:
            return Malformed(id, f"the error is no error object: {problem}")
        return Failure(id, error.code, error.message if isinstance(error.message, str) else "", data)

    def _decode_batch(self, frame: Frame) -> Message:
        try:
            elements = decode_elements(frame)
        except msgspec.ValidationError:
            return Invalid(NULL_ID, Meaning.INVALID_REQUEST, "neither an object nor a batch")
        except UNDECODABLE as error:
            return Invalid(NULL_ID, Meaning.PARSE_ERROR, f"not JSON: {error}")
        if not elements:
            return Invalid(NULL_ID, Meaning.INVALID_REQUEST, "an empty batch")
        if len(elements) > self.limits.batch:
            problem = f"a batch of {len(elements)}, the limit is {self.limits.batch}"
            return Invalid(NULL_ID, Meaning.TOO_LARGE, problem)
        members: list[Request | Notification | Success | Failure | Malformed | Invalid] = []
        for element in elements:
            if bytes(element)[:1] == b"{":
                member = self.decode(bytes(element))
                assert not isinstance(member, Batch)  # an object is never a batch
                members.append(member)
            else:
                members.append(Invalid(NULL_ID, Meaning.INVALID_REQUEST, "no object in a batch"))
        return Batch(members)

    def _find_excess(self, frame: Frame) -> str | None:
        # Counted with what stands in strings: most frames are below the limits even so.
        opened = frame.count(b"{")
        if OPENING_BRACKET in frame:
            opened += frame.count(b"[")
        is_dense = len(frame) > self._dense and opened + frame.count(b",") > self.limits.nodes
        return find_excess(frame, self.limits) if is_dense or opened > self.limits.depth else None

    # -- out

    def encode_value(self, value: object) -> bytes:
        return encode_json(value)

    def encode_request(self, id: bytes, method: str, params: bytes | None) -> bytes:
        name = self._methods.get(method) or self._encode_method(method)
        if params is None:
            return b"".join((b'{"jsonrpc":"2.0","id":', id, b",", name, b"}"))
        return b"".join((b'{"jsonrpc":"2.0","id":', id, b",", name, b',"params":', params, b"}"))

    def encode_notification(self, method: str, params: bytes | None) -> bytes:
        name = self._methods.get(method) or self._encode_method(method)
        if params is None:
            return b"".join((b'{"jsonrpc":"2.0",', name, b"}"))
        return b"".join((b'{"jsonrpc":"2.0",', name, b',"params":', params, b"}"))

    def encode_success(self, id: bytes, result: bytes) -> bytes:
        return b"".join((b'{"jsonrpc":"2.0","id":', id, b',"result":', result, b"}"))

    def encode_failure(self, id: bytes, code: int, message: str, data: object) -> bytes:
        error: dict[str, object] = {"code": code, "message": message}
        if data is not None:
            error["data"] = data
        return b"".join((b'{"jsonrpc":"2.0","id":', id, b',"error":', encode_json(error), b"}"))

    def encode_batch(self, bodies: Iterable[bytes]) -> bytes:
        return b"[" + b",".join(bodies) + b"]"

    def _encode_method(self, method: str) -> bytes:
        if len(self._methods) >= METHODS_KEPT:
            self._methods.clear()
        encoded = self._methods[method] = b'"method":' + encode_json(method)
        return encoded


# -- ids, names, null

VERSION_TEXT = Raw(b'"2.0"')
NUMBER = re.compile(rb"-?[0-9]")


def readable_id(raw: Raw | None, limits: Limits) -> bytes | None:
    """Returns the text of an id that JSON-RPC allows, None for any other value and for an absent one."""
    if raw is None or len(raw) > limits.id_bytes + 2:  # the quotes of a string
        return None
    text = bytes(raw)
    if text == NULL_ID or NUMBER.match(text):
        return text
    if text.startswith(b'"'):
        try:
            decode_string(text)
        except UNDECODABLE:
            return None
        return text
    return None


def key_of(id: bytes) -> bytes:
    """Returns the text under which an id is filed: one string written with and without escapes is one id."""
    if b"\\" in id:
        return encode_json(decode_string(id))
    return id


def readable_method(raw: Raw, limits: Limits) -> str | None:
    if len(raw) > limits.method_bytes:
        return None
    try:
        return decode_string(raw) or None
    except (*UNDECODABLE, msgspec.ValidationError):
        return None


def without_null(raw: Raw | None) -> Raw | None:
    """`params: null` comes from programs that mean none."""
    return None if raw is not None and len(raw) == 4 and bytes(raw) == b"null" else raw


def refuse_unread(envelope: Envelope, problem: str) -> Malformed | Invalid:
    """Returns the refusal of a message that is too much to parse, under its id where that can be read."""
    id = None if envelope.id is UNSET else readable_id(envelope.id, DEFAULT_LIMITS)
    if id is not None and envelope.method is UNSET:
        return Malformed(id, problem)
    return Invalid(id or NULL_ID, Meaning.TOO_LARGE, problem)


# -- what msgspec lets through


def find_duplicate(frame: bytes, members: dict[str, Raw]) -> str | None:
    """Returns a top-level key that stands twice in `frame`, None if there is none.

    `members` is what msgspec made of the same frame: the last value of each key. Walking the pairs, a key seen before
    is a duplicate, and so is one whose value here is not its last one."""
    seen: set[str] = set()
    position = skip_space(frame, frame.index(b"{") + 1)
    while frame[position : position + 1] == b'"':
        key_text = STRING.match(frame, position)
        assert key_text is not None  # msgspec has parsed this frame
        key = decode_string(key_text.group())
        value = bytes(members[key])
        start = skip_space(frame, skip_space(frame, key_text.end()) + 1)
        end = skip_space(frame, start + len(value))
        if key in seen or not frame.startswith(value, start) or frame[end : end + 1] not in (b",", b"}"):
            return key
        seen.add(key)
        position = skip_space(frame, end + 1)
    return None


STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"')
SPACE = re.compile(rb"[ \t\r\n]*")


def skip_space(frame: bytes, position: int) -> int:
    match = SPACE.match(frame, position)
    return match.end() if match else position


def find_excess(frame: Frame, limits: Limits) -> str | None:
    """Returns what is too much in a frame, None where nothing is. Runs at the speed of C whatever the bytes are."""
    # Without escapes, every second piece between quotes is outside of strings.
    plain = bytes(frame).replace(b"\\\\", b"").replace(b'\\"', b"")
    if plain.count(b'"') // 2 > 2 * limits.nodes:
        return f"more than {limits.nodes} values"
    outside = b"".join(plain.split(b'"')[::2])
    brackets = outside.translate(None, delete=NO_BRACKET)
    if len(brackets) // 2 + outside.count(b",") > limits.nodes:
        return f"more than {limits.nodes} values"
    for _ in range(limits.depth):
        if not brackets:
            return None
        brackets = brackets.replace(b"[]", b"").replace(b"{}", b"")
    return f"nested deeper than {limits.depth}" if brackets else None


OPENING_BRACKET = ord("[")
NO_BRACKET = bytes(byte for byte in range(256) if byte not in b"[]{}")
