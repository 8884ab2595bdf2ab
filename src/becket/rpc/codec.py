"""One frame into a message and back: the JSON of JSON-RPC 2.0.

The fast path is one pass of msgspec over the envelope, with params and result left raw. msgspec keeps the last of two
equal keys and passes over members it does not know; so the lengths of what it found are added up, and a frame with a
byte too many takes the careful path, which looks at the top level pair by pair. Guards against too many nodes and too
much depth run before any parsing, on frames large enough to hold them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, Protocol, cast, get_args, get_type_hints

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from becket.errors import LocalProtocolError, Meaning, quote
from becket.limits import DEFAULT_LIMITS, Limits
from becket.rpc.messages import NULL_ID, Batch, Failure, Invalid, Malformed, Message, Notification, Request, Success
from becket.wire.framing import Frame, Skipped

__all__ = ["Codec", "JsonCodec", "decode_json", "encode_json", "key_of"]


class Inbox(Protocol):
    """Where messages go. What a codec needs to know of a connection to take the short way with most of them."""

    calls: dict[bytes, Any]
    """Calls that wait for their answer, by id: taken out, given their `reply`, and put into the events."""
    claimed: Mapping[str, Callable[[Raw | None], None]]
    """Who takes which notification at once, while no event waits before it."""
    cancel_method: str | None
    """The notification that `take` must see."""

    is_late: Callable[[], bool]
    """Whether others wait for their turn: what follows goes into the events."""

    def take_request(self, id: bytes, method: str, params: Raw | None, events: list[Any]) -> None: ...

    def take(self, message: Message | Skipped, events: list[Any]) -> None: ...


class Codec(Protocol):
    """Frame to message and back, for one protocol."""

    def read(self, frames: Iterable[Frame | Skipped], inbox: Inbox, events: list[Any]) -> None:
        """Puts what the frames of one chunk bring into `inbox` and `events`, in order.

        It may answer calls, queue notifications and hand claimed ones over by itself, as `JsonCodec` does, or give
        every message to `inbox.take`."""
        ...

    def encode_value(self, value: object) -> bytes: ...

    def encode_request(self, id: bytes, method: str, params: bytes | None) -> bytes: ...

    def encode_notification(self, method: str, params: bytes | None) -> bytes: ...

    def encode_success(self, id: bytes, result: bytes) -> bytes: ...

    def encode_failure(self, id: bytes, code: int, message: str, data: object) -> bytes: ...

    def encode_batch(self, bodies: Iterable[bytes]) -> bytes: ...


ABSENT = Raw(b"")


class Envelope(Struct, gc=False):
    jsonrpc: Literal["2.0"]
    id: Raw = ABSENT
    method: str = ""
    params: Raw = ABSENT
    result: Raw = ABSENT
    error: Raw = ABSENT


class ErrorObject(Struct):
    code: int
    message: Any = ""
    data: Raw | UnsetType = UNSET


VERSION = "2.0"
# What a frame holds beside the texts of its members: braces, keys, quotes, commas.
NOTIFICATION_BYTES = len('{"jsonrpc":"2.0","method":""}')
REQUEST_BYTES = len('{"jsonrpc":"2.0","id":,"method":""}')
SUCCESS_BYTES = len('{"jsonrpc":"2.0","id":,"result":}')
PARAMS_KEY = b',"params":'
PARAMS_BYTES = len(PARAMS_KEY)
NULL_BYTES = len(NULL_ID)
EMPTY_BYTES = len("{}")
DIRECT_AT_ONCE = 32  # claimed notifications between two looks at the clock
NOT_CLAIMED: dict[str, Callable[[Raw | None], None]] = {}

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
            check_finite(value)
    except (TypeError, ValueError, RecursionError, OverflowError) as error:
        raise LocalProtocolError(f"no JSON for this {type(value).__name__}: {error}") from error
    return text


# Types whose values cannot hold a number without JSON, and those that could.
FINITE: set[object] = {str, int, bool, type(None)}
WATCHED: set[object] = {dict, list, tuple, float}


def learn_finite(kind: type[Any]) -> bool:
    """Files a type by its fields and returns whether its values need no second look."""
    try:
        is_harmless = issubclass(kind, Struct) and all(is_finite(hint) for hint in get_type_hints(kind).values())
    except (NameError, TypeError):  # an annotation that only a type checker can resolve
        is_harmless = False
    (FINITE if is_harmless else WATCHED).add(kind)
    return is_harmless


def is_finite(hint: Any) -> bool:
    arguments = get_args(hint)
    return all(is_finite(argument) for argument in arguments) if arguments else hint in FINITE


def check_finite(value: object) -> None:
    """Raises ValueError where NaN or an infinity is somewhere in a value that has been encoded without complaint."""
    try:
        # MessagePack keeps such a number as it is, behind 0xcb: a search in C, and right whenever it finds nothing.
        if NOT_FINITE.search(encode_packed(value)) is None:
            return
    except (OverflowError, TypeError, ValueError):  # integers beyond 64 bits and the like have no MessagePack
        pass
    walk_finite(msgspec.to_builtins(value, enc_hook=lambda raw: None))  # Raw is JSON already


NOT_FINITE = re.compile(rb"\xcb[\x7f\xff][\xf0-\xff]")
encode_packed = msgspec.msgpack.Encoder().encode


def walk_finite(value: object) -> None:
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{value} has no JSON")
    elif isinstance(value, dict):
        for member in cast("dict[str, object]", value).values():
            walk_finite(member)
    elif isinstance(value, list | tuple):
        for element in cast("list[object]", value):
            walk_finite(element)


class JsonCodec:
    """JSON-RPC 2.0 in JSON."""

    __slots__ = (
        "_deep",
        "_dense",
        "_methods",
        "_name_bytes",
        "limits",
    )

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self.limits = limits
        self._methods: dict[str, bytes] = {}
        # A level takes two bytes and a node at least two: smaller values cannot reach the limit. One level is ours.
        self._deep = 2 * limits.depth - 2
        self._dense = min(2 * limits.nodes, SLOW_FROM)
        self._name_bytes = min(limits.method_bytes, limits.id_bytes)  # of what takes the short way; others are measured

    # -- in

    def decode(self, frame: Frame) -> Message:
        """Returns the message in `frame`. Whatever the bytes are: what is no message comes back as `Invalid`."""
        single = Single()
        self.read([frame], single, single.events)
        message: Message = single.message or single.events[0]
        return message

    def read(self, frames: Iterable[Frame | Skipped], inbox: Inbox, events: list[Any]) -> None:
        """Puts what the frames of one chunk bring into `inbox` and `events`, in order.

        One loop for a whole chunk and for the messages that come by the hundred thousand: calling a function costs as
        much as half of what there is to do for one of them."""
        deep, name_bytes = self._deep, self._name_bytes
        calls, claimed, cancel = inbox.calls, inbox.claimed, inbox.cancel_method
        direct = DIRECT_AT_ONCE
        for frame in frames:
            if isinstance(frame, Skipped):
                inbox.take(frame, events)
                continue
            try:
                envelope = decode_envelope(frame)
            except UNDECODABLE:
                inbox.take(self._decode_carefully(frame), events)
                continue
            # Where the lengths add up, nothing else stands in the frame: no other member, no second one, no white
            # space. Anything else takes the careful path.
            id, method = envelope.id, envelope.method
            if not method:
                result = envelope.result
                inner = len(result)
                if inner > deep and (excess := self._find_excess(frame)):
                    inbox.take(self._refuse_unread(envelope, excess), events)
                    continue
                if inner and len(frame) == inner + len(id) + SUCCESS_BYTES and id:
                    call = calls.pop(bytes(id), None)
                    if call is None:
                        inbox.take(Success(bytes(id), result), events)
                    else:
                        call.reply = result
                        events.append(call)
                    continue
            else:
                params = envelope.params
                inner = len(params)
                if inner > NULL_BYTES or inner == EMPTY_BYTES:
                    rest = len(frame) - inner - len(method) - PARAMS_BYTES
                    if inner > deep and (excess := self._find_excess(frame)):
                        inbox.take(self._refuse_unread(envelope, excess), events)
                        continue
                    if len(method) <= name_bytes:
                        if not id:
                            if rest == NOTIFICATION_BYTES and method != cancel:
                                if events or method not in claimed:
                                    events.append(Notification(method, params))
                                    continue
                                claimed[method](params)  # nothing waits before it: straight to whom it belongs
                                direct -= 1
                                if not direct:
                                    direct = DIRECT_AT_ONCE
                                    if inbox.is_late():
                                        claimed = NOT_CLAIMED
                                continue
                        elif rest == REQUEST_BYTES + len(id):
                            text = bytes(id)
                            if text.isdigit() and len(text) <= name_bytes:
                                inbox.take_request(text, method, params, events)
                                continue
            inbox.take(self._decode_carefully(frame), events)

    def _decode_carefully(self, frame: Frame) -> Message:
        if len(frame) > self._deep and (excess := self._find_excess(frame)):
            try:
                return self._refuse_unread(decode_envelope(frame), excess)
            except (*UNDECODABLE, msgspec.ValidationError):
                return Invalid(NULL_ID, Meaning.TOO_LARGE, excess)
        try:
            members = decode_members(frame)
        except msgspec.ValidationError:
            return self._decode_batch(frame)
        except UNDECODABLE as error:
            return Invalid(NULL_ID, Meaning.PARSE_ERROR, f"not JSON: {error}")
        if len(members) > MEMBERS:
            return Invalid(NULL_ID, Meaning.TOO_LARGE, f"{len(members)} members, the limit is {MEMBERS}")
        twice = find_duplicate(bytes(frame), members)
        if twice is not None:
            id = NULL_ID if twice == "id" else readable_id(members.get("id"), self.limits)
            return Invalid(id or NULL_ID, Meaning.INVALID_REQUEST, f"duplicate member: {twice[:SHOWN]}")
        return self._classify(members)

    def _classify(self, members: dict[str, Raw]) -> Request | Notification | Success | Failure | Malformed | Invalid:
        if "method" not in members:
            return self._classify_answer(members)
        id = readable_id(members.get("id"), self.limits)
        if id is None and "id" in members:
            return Invalid(NULL_ID, Meaning.INVALID_REQUEST, BAD_ID)
        problem = ""
        method = readable_string(members["method"], self.limits.method_bytes)
        if not is_version(members.get("jsonrpc")):
            problem = BAD_VERSION
        elif "result" in members or "error" in members:
            problem = "both a request and an answer"
        elif not method:
            problem = "the method is no name"
        if problem or method is None:
            return Invalid(id or NULL_ID, Meaning.INVALID_REQUEST, problem)
        params = without_null(members.get("params"))
        return Notification(method, params) if id is None else Request(id, method, params)

    def _classify_answer(self, members: dict[str, Raw]) -> Success | Failure | Malformed | Invalid:
        has_result = "result" in members
        error = without_null(members.get("error"))  # `error: null` beside a result is a habit of JSON-RPC 1.0
        is_answer = has_result or "error" in members
        id = readable_id(members.get("id"), self.limits)
        if id is None:
            if not is_answer:
                return Invalid(NULL_ID, Meaning.INVALID_REQUEST, BAD_ID if "id" in members else "no request, no answer")
            if error is None or has_result or "id" in members:
                return Malformed(NULL_ID, "an answer without an id that can be read")
            id = NULL_ID  # they could not tell what they are answering
        if not is_version(members.get("jsonrpc")):
            return Malformed(id, BAD_VERSION, is_answer=is_answer)
        if has_result and error is None:
            return Success(id, members["result"])
        if error is not None and not has_result:
            return self._failure(id, error)
        problem = "both result and error" if has_result else "neither method, result nor error"
        return Malformed(id, problem, is_answer=is_answer)

    def _failure(self, id: bytes, raw: Raw) -> Failure | Malformed:
        try:
            error = decode_error(raw)
            data: object = None
            if error.data is not UNSET:
                data = (
                    self._shorten(error.data) if len(error.data) > self.limits.error_data else decode_json(error.data)
                )
        except (*UNDECODABLE, msgspec.ValidationError) as problem:
            return Malformed(id, f"the error is no error object: {problem}")
        message = error.message if isinstance(error.message, str) else ""
        return Failure(id, error.code, message[: self.limits.error_data], data)

    def _shorten(self, data: Raw) -> str:
        return f"{bytes(data)[: self.limits.error_data].decode(errors='replace')}..."

    def _decode_batch(self, frame: Frame) -> Message:
        try:
            elements = decode_elements(frame)
        except msgspec.ValidationError:
            return refuse_scalar(frame)
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
        if len(frame) > self._dense:
            commas = frame.count(b",")
            if opened + commas > self.limits.nodes or (commas > FEW and may_be_slow(frame)):
                excess = find_too_much(frame, self.limits.nodes)
                if excess is not None:
                    return excess
        return find_too_deep(frame, self.limits.depth) if opened > self.limits.depth else None

    def _refuse_unread(self, envelope: Envelope, problem: str) -> Malformed | Invalid:
        """Returns the refusal of a message that is too much to parse, under its id where that can be read."""
        id = readable_id(envelope.id, self.limits)
        if not envelope.method and (envelope.result or envelope.error):
            return Malformed(id or NULL_ID, problem)
        return Invalid(id or NULL_ID, Meaning.TOO_LARGE, problem)

    # -- out

    def encode_value(self, value: object) -> bytes:
        return encode_json(value)

    def encode_request(self, id: bytes, method: str, params: bytes | None) -> bytes:
        name = self._methods.get(method) or self._encode_method(method)
        if params is None:
            return b"".join((b'{"jsonrpc":"2.0","id":', id, name[: -len(PARAMS_KEY)], b"}"))
        if params[:1] != b"{" and params[:1] != b"[":
            raise LocalProtocolError(f"the params of {method} are neither an object nor an array: {quote(params)}")
        return b"".join((b'{"jsonrpc":"2.0","id":', id, name, params, b"}"))

    def encode_notification(self, method: str, params: bytes | None) -> bytes:
        name = self._methods.get(method) or self._encode_method(method)
        if params is None:
            return b"".join((b'{"jsonrpc":"2.0"', name[: -len(PARAMS_KEY)], b"}"))
        if params[:1] != b"{" and params[:1] != b"[":
            raise LocalProtocolError(f"the params of {method} are neither an object nor an array: {quote(params)}")
        return b"".join((b'{"jsonrpc":"2.0"', name, params, b"}"))

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
        encoded = self._methods[method] = b',"method":' + encode_json(method) + PARAMS_KEY
        return encoded


def never() -> bool:
    """Tells that a turn of the loop is not over yet, where nobody keeps the time."""
    return False


class Single:
    """An inbox for one message that nobody waits for."""

    def __init__(self) -> None:
        self.calls: dict[bytes, Any] = {}
        self.claimed: Mapping[str, Callable[[Raw | None], None]] = NOT_CLAIMED
        self.cancel_method: str | None = None
        self.is_late: Callable[[], bool] = never
        self.events: list[Any] = []
        self.message: Any = None

    def take_request(self, id: bytes, method: str, params: Raw | None, events: list[Any]) -> None:
        self.message = Request(id, method, params)

    def take(self, message: Message | Skipped, events: list[Any]) -> None:
        self.message = message


# -- ids, names, null

VERSION_TEXT = Raw(b'"2.0"')
BAD_VERSION = 'the member "jsonrpc" is not "2.0"'
BAD_ID = "the id is no string, number or null, or is too long"
MEMBERS = 64  # of one message; its unknown ones are passed over, but each costs a look
SHOWN = 64  # characters of a name that somebody else chose


def is_version(raw: Raw | None) -> bool:
    return raw is not None and (raw == VERSION_TEXT or readable_string(raw, SHOWN) == VERSION)


def readable_id(raw: Raw | None, limits: Limits) -> bytes | None:
    """Returns the text of an id that JSON-RPC allows, None for any other value and for an absent one."""
    if raw is None:
        return None
    text = bytes(raw)
    is_string = text.startswith(b'"')
    if len(text) > limits.id_bytes + 2 * is_string:  # its quotes
        return None
    if text == NULL_ID or text.isdigit():
        return text
    if not is_string and not text[-1:].isdigit():  # an object, an array, a bool
        return None
    try:
        decode_json(text)  # a number may be beyond all that Python has, a string may be no UTF-8
    except UNDECODABLE:
        return None
    return text


def key_of(id: bytes) -> bytes:
    """Returns the text under which an id is filed: one string written with and without escapes is one id."""
    if b"\\" in id:
        return encode_json(decode_string(id))
    return id


def readable_string(raw: Raw, most: int) -> str | None:
    """Returns a string of at most so many bytes, None for any other value."""
    if len(raw) > most + 2:  # its quotes
        return None
    try:
        return decode_string(raw)
    except (*UNDECODABLE, msgspec.ValidationError):
        return None


def without_null(raw: Raw | None) -> Raw | None:
    """`params: null` comes from programs that mean none."""
    return None if raw is not None and len(raw) == 4 and bytes(raw) == b"null" else raw


def refuse_scalar(frame: Frame) -> Invalid:
    """Returns the refusal of what is neither an object nor an array. msgspec saw that before it saw the rest."""
    try:
        msgspec.json.decode(frame, type=Raw)  # to the last byte
        decode_json(frame)
    except msgspec.ValidationError:  # a number that Python has no room for is JSON all the same
        pass
    except UNDECODABLE as error:
        return Invalid(NULL_ID, Meaning.PARSE_ERROR, f"not JSON: {error}")
    return Invalid(NULL_ID, Meaning.INVALID_REQUEST, "neither an object nor a batch")


# -- what msgspec lets through


def find_duplicate(frame: bytes, members: dict[str, Raw]) -> str | None:
    """Returns a top-level key that stands twice in `frame`, None if there is none.

    `members` is what msgspec made of the same frame: the last value of each key. Walking the pairs, a key seen before
    is a duplicate, and so is one whose value here is not its last one."""
    if ESCAPE not in frame and all(frame.count(b'"%b"' % key.encode()) == 1 for key in members):
        return None  # the usual case: no name stands twice, at whatever level
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


# These run at the speed of C whatever the bytes are. Quotes and brackets are told apart only by what is around them, so
# escapes go first; a frame that is no JSON may be judged wrongly, and is refused by the parser then.


def find_too_deep(frame: Frame, limit: int) -> str | None:
    # Two quotes in a row enclose nothing, or end one string and begin the next: all else keeps its side without them.
    brackets = without_escapes(frame).translate(ONE_KIND, delete=NO_BRACKET_OR_QUOTE).replace(b'""', b"")
    if QUOTE in brackets:
        brackets = b"".join(brackets.split(b'"')[::2])
    # There is one kind of bracket now, so each round takes away exactly one level.
    for _ in range(limit):
        brackets = brackets.replace(b"[]", b"")
        if not brackets:
            return None
    return f"nested deeper than {limit}"


def find_too_much(frame: Frame, limit: int) -> str | None:
    plain = without_escapes(frame)
    if plain.count(b'"') // 2 > 2 * limit:
        return f"more than {limit} values"
    outside = b"".join(plain.split(b'"')[::2])  # every second piece between quotes
    if outside.count(b"[") + outside.count(b"{") + outside.count(b",") > limit:
        return f"more than {limit} values"
    if count_slow(outside) > SLOW_NUMBERS:
        return f"more than {SLOW_NUMBERS} numbers of many digits or close to zero"
    return None


def without_escapes(frame: Frame) -> bytes:
    return bytes(frame).replace(b"\\\\", b"").replace(b'\\"', b"") if ESCAPE in frame else bytes(frame)


ESCAPE, QUOTE, OPENING_BRACKET = b'\\"['
NO_BRACKET_OR_QUOTE = bytes(byte for byte in range(256) if byte not in b'[]{}"')
ONE_KIND = bytes.maketrans(b"{}", b"[]")

# A number of hundreds of digits, or with an exponent below -300, takes a hundred times as long to read as any other,
# 11 us on a laptop. A message may have so many of them that it stays below 50 ms.
SLOW_NUMBERS = 4_096
SLOW_FROM = SLOW_NUMBERS * len("5e-324")  # bytes
FEW = 100  # numbers, each as long as Python reads at all: 100 us
LONG = 128  # digits
STRIDE = LONG // 2
AS_ZERO = bytes.maketrans(b"123456789", b"0" * 9)


def may_be_slow(frame: Frame) -> bool:
    """Tells quickly of most frames that they hold fewer slow numbers than the limit."""
    if frame.count(b"-") > SLOW_NUMBERS // 2 and frame.count(b"e-") + frame.count(b"E-") > SLOW_NUMBERS // 2:
        return True
    # Every 64th byte: a long run of digits shows as two digits in a row or more.
    return len(frame) > SLOW_NUMBERS * STRIDE and frame[::STRIDE].translate(AS_ZERO).count(b"00") > SLOW_NUMBERS // 4


def count_slow(outside: bytes) -> int:
    digits = outside.translate(AS_ZERO)
    slow = digits.count(b"0" * LONG)
    if outside.count(b"-") > SLOW_NUMBERS // 2:
        slow += digits.count(b"e-000") + digits.count(b"E-000")
    return slow
