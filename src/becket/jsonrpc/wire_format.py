"""JSON-RPC variants of foreign systems: member order, ids, null params and error shapes.

`JsonCodec` is exact JSON-RPC 2.0. Some foreign systems accept a message without a version, a response without a
result, or an error of any shape. `WireFormat` describes the differences, and `WireFormatCodec` applies them. Most
messages still take the fast path of `JsonCodec`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum

import msgspec
from msgspec import Raw, Struct

from becket._text import quote
from becket.errors import JSON_ERRORS, LocalProtocolError, Meaning, RpcError
from becket.framing.framing import Frame
from becket.jsonrpc.codec import JsonCodec
from becket.jsonrpc.json_values import decode_json, encode_json
from becket.jsonrpc.limit_checks import LimitChecker
from becket.jsonrpc.messages import NULL_ID, Failure, Invalid, NotificationMessage, Request, SingleMessage, Success
from becket.jsonrpc.parser import NO_MESSAGE, MessageParser, null_to_none, parse_id, parse_string
from becket.limits import DEFAULT_LIMITS, Limits

__all__ = ["ErrorPrecedence", "WireFormat", "WireFormatCodec", "accepts_no_id", "is_unsigned_id"]


class ErrorPrecedence(Enum):
    """Whether a response is a result or an error. One with neither is a null result."""

    ERROR_FIRST = "an error where there is a member `error`, even null, and even beside a result"
    ERROR_UNLESS_NULL = "an error where there is one that is not null, even beside a result"
    RESULT_FIRST = "a result where there is one that is not null, and an error only where that is not null"


def is_unsigned_id(id: bytes) -> bool:
    """Returns whether this is the text of a whole number from 0 on."""
    return id.isdigit()


def accepts_no_id(id: bytes) -> bool:
    """Accepts no request at all: the other peer sends none."""
    return False


class WireFormat(Struct, frozen=True, kw_only=True):
    """How one peer of a protocol encodes its messages, and how it reads those of the other.

    The version is sent if `has_version`, and never required. `accepts_id` decides by the text of its id whether a
    request is accepted; others are invalid messages, and a request under the null id is a notification. An error is
    read by its message alone: `unknown_error` replaces a missing one, 0 a missing number. With `is_error_text` the
    error is sent as its message alone; an error object is read all the same.

    Calls are numbered from `first_id` on, except those whose methods have a number in `fixed_ids`. `map_error` chooses
    the text and the number of an error that is sent; `classify_error` returns the meaning of a received one, from its
    number and its message."""

    has_version: bool = True
    id_is_last: bool = False  # after the params, as structs in other languages have it
    has_null_params: bool = False  # if there are none
    has_scalar_params: bool = False  # not only objects and arrays
    first_id: int = 1
    fixed_ids: Mapping[str, int] = {}
    id_prefix: str = ""  # of outbound requests, whose ids are strings then
    accepts_id: Callable[[bytes], bool] = is_unsigned_id
    error_precedence: ErrorPrecedence = ErrorPrecedence.ERROR_FIRST
    unknown_error: str = "unknown error"
    is_error_text: bool = False
    map_error: Callable[[RpcError], RpcError] | None = None
    classify_error: Callable[[int, str], Meaning | None] | None = None


SPECIFIED = WireFormat()


class WireFormatCodec(JsonCodec):
    """JSON-RPC in a `WireFormat`. There are no batches."""

    __slots__ = ("_start", "wire_format")

    def __init__(self, limits: Limits = DEFAULT_LIMITS, wire_format: WireFormat = SPECIFIED) -> None:
        super().__init__(limits)
        self.wire_format = wire_format
        self._start = b'{"jsonrpc":"2.0",' if wire_format.has_version else b"{"
        if not wire_format.accepts_id(b"1"):
            self._max_fast_head = -1  # no request takes the fast path, which does not check `accepts_id`

    # -- in

    def _build_parser(self) -> WireFormatParser:
        return WireFormatParser(self.limits, self._guard, self.wire_format)

    # -- out

    def encode_request(self, id: bytes, method: str, params: bytes | None) -> bytes:
        if params is None and self.wire_format.has_null_params:
            params = NULL_ID
        else:
            self._check_params(method, params)
        name = encode_json(method) if params is None else b'%b,"params":%b' % (encode_json(method), params)
        if self.wire_format.id_is_last:
            return b'%b"method":%b,"id":%b}' % (self._start, name, id)
        return b'%b"id":%b,"method":%b}' % (self._start, id, name)

    def encode_notification(self, method: str, params: bytes | None) -> bytes:
        self._check_params(method, params)
        name = encode_json(method) if params is None else b'%b,"params":%b' % (encode_json(method), params)
        return b'%b"method":%b}' % (self._start, name)

    def _check_params(self, method: str, params: bytes | None) -> None:
        if params is not None and params[:1] not in (b"{", b"[") and not self.wire_format.has_scalar_params:
            raise LocalProtocolError(f"the params of {method} are neither an object nor an array: {quote(params)}")

    def encode_success(self, id: bytes, result: bytes) -> bytes:
        return b'%b"id":%b,"result":%b}' % (self._start, id, result)

    def encode_failure(self, id: bytes, code: int, message: str, data: object) -> bytes:
        error: object = message
        if not self.wire_format.is_error_text:
            error = {"code": code, "message": message} | ({} if data is None else {"data": data})
        return b'%b"id":%b,"error":%b}' % (self._start, id, encode_json(error))

    def encode_batch(self, bodies: Iterable[bytes]) -> bytes:
        raise LocalProtocolError("the other peer does not support batches")


class WireFormatParser(MessageParser):
    """Parses the messages of such a peer, with missing or additional members."""

    __slots__ = ("_wire_format",)

    def __init__(self, limits: Limits, guard: LimitChecker, wire_format: WireFormat) -> None:
        super().__init__(limits, guard)
        self._wire_format = wire_format

    def _classify(self, members: dict[str, Raw]) -> SingleMessage:
        method = parse_string(members["method"], self._limits.method_bytes) if "method" in members else None
        if not method:
            return self._classify_response(members)
        params = null_to_none(members.get("params"))
        if null_to_none(members.get("id")) is None:
            return NotificationMessage(method, params)
        id = parse_id(members["id"], self._limits)
        if id is None or not self._wire_format.accepts_id(id):
            return Invalid(NULL_ID, Meaning.INVALID_REQUEST, f"a request with an id that is not accepted: {method}")
        return Request(id, method, params)

    def _classify_response(self, members: dict[str, Raw]) -> Success | Failure | Invalid:
        if null_to_none(members.get("id")) is None:
            return Invalid(NULL_ID, Meaning.INVALID_REQUEST, NO_MESSAGE)
        id = parse_id(members["id"], self._limits)
        if id is None:
            return Invalid(NULL_ID, Meaning.INVALID_REQUEST, "a response without a readable id")
        error = members.get("error")
        if self._wire_format.error_precedence is not ErrorPrecedence.ERROR_FIRST:
            error = null_to_none(error)
        if (
            self._wire_format.error_precedence is ErrorPrecedence.RESULT_FIRST
            and null_to_none(members.get("result")) is not None
        ):
            error = None
        return Success(id, members.get("result", NULL)) if error is None else self._parse_error(id, error)

    def _parse_error(self, id: bytes, raw: Raw) -> Failure:
        """Returns the error in any shape: unreadable members are left out."""
        members = parse_members(raw)
        number = parse_value(members.get("code"))
        extra = members.get("data", NULL)
        return Failure(
            id,
            number if isinstance(number, int) and not isinstance(number, bool) else 0,
            self._parse_error_text(members.get("message") if members or not self._wire_format.is_error_text else raw),
            self._truncate(extra) if len(extra) > self._limits.error_data else parse_value(extra),
        )

    def _parse_error_text(self, raw: Raw | None) -> str:
        text = parse_value(raw)
        return text[: self._limits.error_data] if isinstance(text, str) else self._wire_format.unknown_error

    def _split_batch(self, frame: Frame) -> Invalid:
        try:
            msgspec.json.decode(frame, type=Raw)  # to the last byte
        except JSON_ERRORS as error:
            return Invalid(NULL_ID, Meaning.PARSE_ERROR, f"not JSON: {error}")
        return Invalid(NULL_ID, Meaning.INVALID_REQUEST, "not an object")


NULL = Raw(NULL_ID)
decode_members = msgspec.json.Decoder(dict[str, Raw]).decode


def parse_members(raw: Raw) -> dict[str, Raw]:
    """Returns the members of an object, none for any other value."""
    try:
        return decode_members(raw)
    except JSON_ERRORS:
        return {}


def parse_value(raw: Raw | None) -> object:
    """Returns a value, None for one beyond Python's range."""
    try:
        return None if raw is None else decode_json(raw)
    except JSON_ERRORS:
        return None
