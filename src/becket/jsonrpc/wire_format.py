"""JSON-RPC variants of foreign systems: member order, ids, null params and error shapes.

`JsonCodec` is JSON-RPC 2.0 and exact. The systems that becket has dialects for are not: they take a message without a
version, an answer without a result, an error of any shape. `WireFormat` says in what they differ, `WireFormatCodec`
reads and writes so. Most messages still take the fast path of `JsonCodec`."""

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
from becket.jsonrpc.messages import NULL_ID, Failure, Invalid, Malformed, Message, NotificationMessage, Request, Success
from becket.jsonrpc.parser import MessageDecoder, MessageParser, null_to_none, parse_id, parse_string
from becket.limits import DEFAULT_LIMITS, Limits

__all__ = ["ErrorPrecedence", "WireFormat", "WireFormatCodec", "accepts_no_id", "is_unsigned_id"]


class ErrorPrecedence(Enum):
    """Whether an answer is a result or an error. One with neither is a result, null."""

    ERROR_FIRST = "an error where there is a member `error`, even null, and even beside a result"
    ERROR_UNLESS_NULL = "an error where there is one that is not null, even beside a result"
    RESULT_FIRST = "a result where there is one that is not null, and an error only where that is not null"


def is_unsigned_id(id: bytes) -> bool:
    """Whether this is the text of a whole number from 0 on."""
    return id.isdigit()


def accepts_no_id(id: bytes) -> bool:
    """Hears no request at all: the other side has none to send."""
    return False


class WireFormat(Struct, frozen=True, kw_only=True):
    """How one side of a protocol writes its messages, and what it makes of those of the other.

    The version is written where `has_version`, and never asked for. `accepts_id` says by the text of its id whether a
    request is one; what it does not hear is no message, and a request under the null id is a notification. An error is
    read by its message alone: `unknown_error` stands for one that has none, 0 for a number that is missing. Where
    `is_error_text` the error is its message, and nothing else; one that is an object is read all the same.

    Calls are numbered from `first_id` on, but for those whose methods have a number in `fixed_ids`. `map_error` chooses
    the words and the number of an error that is sent; `classify_error` says what one that came means, from its number
    and its message."""

    has_version: bool = True
    id_is_last: bool = False  # behind the params, as structs in other languages have it
    has_null_params: bool = False  # where there are none
    has_scalar_params: bool = False  # not only objects and arrays
    first_id: int = 1
    fixed_ids: Mapping[str, int] = {}
    id_prefix: str = ""  # of our own requests, whose ids are strings then
    accepts_id: Callable[[bytes], bool] = is_unsigned_id
    error_precedence: ErrorPrecedence = ErrorPrecedence.ERROR_FIRST
    unknown_error: str = "unknown error"
    is_error_text: bool = False
    map_error: Callable[[RpcError], RpcError] | None = None
    classify_error: Callable[[int, str], Meaning | None] | None = None


class WireFormatCodec(JsonCodec):
    """JSON-RPC as a `WireFormat` has it. There are no batches."""

    __slots__ = ("_start", "wire_format")

    def __init__(self, limits: Limits = DEFAULT_LIMITS, spelling: WireFormat = WireFormat()) -> None:  # noqa: B008 (frozen)
        super().__init__(limits)
        self.wire_format = spelling
        self._start = b'{"jsonrpc":"2.0",' if spelling.has_version else b"{"
        if not spelling.accepts_id(b"1"):
            self._max_fast_head = -1  # no request takes the fast path, which does not look at `accepts_id`

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
        raise LocalProtocolError("the other side reads no batches")


class WireFormatParser(MessageParser):
    """Reads what such a program sends, whatever it leaves out or adds."""

    __slots__ = ("_spelling",)

    def __init__(self, limits: Limits, guard: LimitChecker, spelling: WireFormat) -> None:
        super().__init__(limits, guard)
        self._spelling = spelling

    def _classify(
        self, members: dict[str, Raw]
    ) -> Request | NotificationMessage | Success | Failure | Malformed | Invalid:
        method = parse_string(members["method"], self._limits.method_bytes) if "method" in members else None
        if not method:
            return self._classify_response(members)
        params = null_to_none(members.get("params"))
        if null_to_none(members.get("id")) is None:
            return NotificationMessage(method, params)
        id = parse_id(members["id"], self._limits)
        if id is None or not self._spelling.accepts_id(id):
            return Invalid(NULL_ID, Meaning.INVALID_REQUEST, f"a request under an id that is not heard: {method}")
        return Request(id, method, params)

    def _classify_response(self, members: dict[str, Raw]) -> Success | Failure | Malformed | Invalid:
        if null_to_none(members.get("id")) is None:
            return Invalid(NULL_ID, Meaning.INVALID_REQUEST, "no request, no answer")
        id = parse_id(members["id"], self._limits)
        if id is None:
            return Invalid(NULL_ID, Meaning.INVALID_REQUEST, "an answer without an id that can be read")
        error = members.get("error")
        if self._spelling.error_precedence is not ErrorPrecedence.ERROR_FIRST:
            error = null_to_none(error)
        if (
            self._spelling.error_precedence is ErrorPrecedence.RESULT_FIRST
            and null_to_none(members.get("result")) is not None
        ):
            error = None
        return Success(id, members.get("result", NULL)) if error is None else self._parse_error(id, error)

    def _parse_error(self, id: bytes, raw: Raw) -> Failure:
        """Returns the error, whatever it looks like: what cannot be read of it is left out."""
        members = parse_members(raw)
        number = parse_value(members.get("code"))
        extra = members.get("data", NULL)
        return Failure(
            id,
            number if isinstance(number, int) and not isinstance(number, bool) else 0,
            self._parse_error_text(members.get("message") if members or not self._spelling.is_error_text else raw),
            self._truncate(extra) if len(extra) > self._limits.error_data else parse_value(extra),
        )

    def _parse_error_text(self, raw: Raw | None) -> str:
        text = parse_value(raw)
        return text[: self._limits.error_data] if isinstance(text, str) else self._spelling.unknown_error

    def _decode_batch(self, frame: Frame, decode: MessageDecoder) -> Message:
        try:
            msgspec.json.decode(frame, type=Raw)  # to the last byte
        except JSON_ERRORS as error:
            return Invalid(NULL_ID, Meaning.PARSE_ERROR, f"not JSON: {error}")
        return Invalid(NULL_ID, Meaning.INVALID_REQUEST, "no object")


NULL = Raw(NULL_ID)
decode_members = msgspec.json.Decoder(dict[str, Raw]).decode


def parse_members(raw: Raw) -> dict[str, Raw]:
    """Returns the members of an object, none for any other value."""
    try:
        return decode_members(raw)
    except JSON_ERRORS:
        return {}


def parse_value(raw: Raw | None) -> object:
    """Returns a value, None for one that Python has no room for."""
    try:
        return None if raw is None else decode_json(raw)
    except JSON_ERRORS:
        return None
