"""One frame into a message and back: the JSON of JSON-RPC 2.0.

The fast path is one pass of msgspec over the envelope, with params and result left raw. msgspec keeps the last of two
equal keys and passes over members it does not know; so the lengths of what it found are added up, and a frame with more
bytes than a few spaces takes the careful path, which looks at the top level pair by pair. Guards against too many nodes
and too much depth run before any parsing, on frames large enough to hold them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, islice
from operator import length_hint
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from becket.errors import LocalProtocolError, Meaning, quote
from becket.limits import DEFAULT_LIMITS, Limits
from becket.rpc.guards import (
    AS_ZERO,
    FEW_BYTES,
    NO_MARK,
    OPENING_BRACKET,
    SLOW_FROM,
    SLOW_NUMBERS,
    TWO_DIGITS,
    find_duplicate,
    find_too_deep,
    find_too_long,
    find_too_much,
)
from becket.rpc.json_values import decode_json, decode_string, encode_json
from becket.rpc.messages import NULL_ID, Batch, Failure, Invalid, Malformed, Message, Notification, Request, Success
from becket.rpc.runs import Listening, Run
from becket.wire.framing import Frame, Skipped

if TYPE_CHECKING:
    from becket.rpc.roles import Inbox

__all__ = ["NOBODY", "NOT_CLAIMED", "JsonCodec", "decode_envelope", "key_of", "never", "unserved"]


ABSENT = Raw(b"")
NO_ID = -1  # should one say it, its frame is longer than those without an id


class Envelope(Struct, gc=False):
    """What most messages have. A number as an id comes as one, at a third of the price of its text."""

    jsonrpc: Literal["2.0"]
    id: int | str = NO_ID
    method: str = ""
    params: Raw = ABSENT
    result: Raw = ABSENT


class Outline(Struct, gc=False):
    """What any message has, for one that is not read further."""

    jsonrpc: Literal["2.0"]
    id: Raw = ABSENT
    method: str = ""
    result: Raw = ABSENT
    error: Raw = ABSENT


class ErrorObject(Struct):
    code: int
    message: Any = ""
    data: Raw | UnsetType = UNSET


VERSION = "2.0"
# What a frame holds beside the texts of its members: braces, keys, quotes, commas.
NOTIFICATION_BYTES = len('{"jsonrpc":"2.0","method":"","params":}')
REQUEST_BYTES = len('{"jsonrpc":"2.0","id":,"method":"","params":}')
SUCCESS_BYTES = len('{"jsonrpc":"2.0","id":,"result":}')
NULL_BYTES = len(NULL_ID)
SPACES = 5  # behind the commas and colons of a notification or of an answer; a member so short has no name
REQUEST_SPACES = 7
SPACED_REQUEST = b'{"jsonrpc": "2.0", "id": '  # has three of them; behind the other four nothing can hide that matters
NOTICE = b'{"jsonrpc":"2.0","method":%b,"params":'
SPACED_NOTICE = b'{"jsonrpc": "2.0", "method": %b, "params": '
PARAMS_KEY = b',"params":'
# What stands where in the frames that we write.
WITH_ID = b'{"jsonrpc":"2.0","id":'
WITHOUT_ID = b'{"jsonrpc":"2.0"'
RESULT_KEY = b',"result":'
END = b"}"
OPENINGS = b"{["  # what params begin with
CHECK_EVERY = 16  # messages between two looks at the clock
NOT_CLAIMED: dict[str, Callable[[Raw | None], None]] = {}
NOBODY: dict[str, Listening] = {}

METHODS_KEPT = 1_024  # encoded method names; a program that sends more kinds than this encodes them anew

# Parsing fails in three ways: malformed text, a value of another type, and text that is not UTF-8.
UNDECODABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
UNREADABLE = (*UNDECODABLE, TypeError)  # the last for a frame that was dropped

decode_envelope = msgspec.json.Decoder(Envelope).decode
decode_members = msgspec.json.Decoder(dict[str, Raw]).decode
decode_elements = msgspec.json.Decoder(list[Raw]).decode


class JsonCodec:
    """JSON-RPC 2.0 in JSON."""

    __slots__ = (
        "_deep",
        "_dense",
        "_run",
        "_short",
        "_stride",
        "_unlike",
        "limits",
        "names",
        "notices",
    )

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self.limits = limits
        self.names: dict[str, bytes] = {}  # methods as they stand between an id and params
        self.notices: dict[str, bytes] = {}  # all that stands before the params of a notification
        # A level takes two bytes and a digit one: smaller values cannot reach the limits. One level is ours.
        self._deep = min(2 * limits.depth - 2, limits.digits)
        self._stride = max(1, (limits.digits + 1) // 2)
        self._dense = min(2 * limits.nodes, SLOW_FROM)
        self._short = min(limits.method_bytes, limits.id_bytes)  # all but the params: longer ones are measured
        self._run: Run | None = None  # that the last frames were of
        self._unlike = ""  # a method whose events are written in a way of their own

    # -- in

    def decode(self, frame: Frame) -> Message:
        """Returns the message in `frame`. Whatever the bytes are: what is no message comes back as `Invalid`."""
        single = Single()
        self.read(iter([frame]), single)  # pyright: ignore[reportArgumentType]
        message: Message = single.message
        return message

    def read(self, frames: Iterator[Any], inbox: Inbox) -> bool:
        """Puts what the frames of a chunk bring into `inbox`, in order; False means that it is late and some are left.

        One loop for a whole chunk and for the messages that come by the hundred thousand: calling a function costs as
        much as half of what there is to do for one of them."""
        deep, short = self._deep, self._short
        calls: dict[Any, Any] = inbox.calls
        claimed, settle = inbox.claimed, inbox.settle
        listening, run, method = inbox.listening, self._run, ""
        while True:
            frame = None
            block: Iterator[Any] = islice(frames, CHECK_EVERY)
            if run is not None:
                listener = listening.get(run.method)
                if listener is None:
                    run = self._run = None
                elif (other := run.hand_out(block, listener)) is not None:
                    block, run = chain((other,), block), None
                    self._run = None
                elif run.taken:
                    frame = run
            for frame in block:
                try:
                    envelope = decode_envelope(frame)
                except UNREADABLE:
                    method = ""
                    inbox.take(self._read_carefully(frame))
                    continue
                # Where there are params or a result and the lengths add up, nothing else stands in the frame: no other
                # member, no second one, no white space. Many programs write a space behind each comma and colon; in so
                # few bytes there is no room for a member that matters. Anything else takes the careful path.
                method = envelope.method
                if not method:
                    result = envelope.result
                    inner = len(result)
                    if inner > deep and (excess := self._find_excess(frame)):
                        inbox.take(self._refuse_unread(frame, excess))
                        continue
                    call = calls.pop(envelope.id, None)
                    if call is not None:
                        size = inner + len(call.id) + SUCCESS_BYTES
                        if inner and (len(frame) == size or len(frame) == size + SPACES):
                            call.reply = result
                            if settle is None:
                                call.waiter.set_result(None)
                            else:
                                settle(call)
                            continue
                        calls[call.number] = call
                    inbox.take(self._decode_carefully(frame))
                    continue
                params = envelope.params
                inner = len(params)
                if (
                    inner
                    and method in claimed
                    and len(frame) == inner + len(method) + NOTIFICATION_BYTES  # so it has no id either
                    and inner <= deep
                    and inner != NULL_BYTES
                ):
                    claimed[method](params)
                    continue
                id = envelope.id
                if inner > deep and (excess := self._find_excess(frame)):
                    inbox.take(self._refuse_unread(frame, excess))
                elif not inner or inner == NULL_BYTES:  # the latter may be null, which is none
                    inbox.take(self._decode_carefully(frame))
                elif id == NO_ID:
                    spare = len(frame) - inner - len(method) - NOTIFICATION_BYTES
                    if spare and spare != SPACES:
                        inbox.take(self._decode_carefully(frame))
                    elif method in claimed:  # a large one, which was looked into, or one with spaces
                        claimed[method](params)
                    elif len(method) > short:
                        inbox.take(self._decode_carefully(frame))
                    else:
                        inbox.take_notification(method, params)
                else:
                    text = b"%d" % id if id.__class__ is int else b""
                    head = len(method) + len(text) + REQUEST_BYTES
                    if head > short or (len(frame) != inner + head and not (text and is_spaced(frame, inner + head))):
                        inbox.take(self._decode_carefully(frame))
                        continue
                    serve = inbox.serve  # as it is now: whoever took the last one may have closed the link
                    if not serve(text, method, params):
                        inbox.take_request(text, method, params)
            if run is None:
                if method not in listening:
                    self._unlike = ""
                elif method != self._unlike:
                    run = self._run = self._begin_run(method, frame)
            if frame is None or not length_hint(frames, 1):
                return True
            if inbox.is_late():
                return False

    def _begin_run(self, method: str, frame: Any) -> Run | None:
        """Returns what hands out further events like the one in this frame; None where it is written otherwise."""
        name, text = encode_json(method), bytes(frame)
        for form in (NOTICE, SPACED_NOTICE):
            start = form % name
            if text.startswith(start):
                return Run(method, start, len(start) + self._deep + len(END))
        self._unlike = method
        return None

    def _read_carefully(self, frame: Frame | Skipped) -> Message | Skipped:
        return frame if isinstance(frame, Skipped) else self._decode_carefully(frame)

    def _decode_carefully(self, frame: Frame) -> Message:
        if len(frame) > self._deep and (excess := self._find_excess(frame)):
            return self._refuse_unread(frame, excess)
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
            error = msgspec.json.decode(raw, type=ErrorObject)
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
        limits = self.limits
        marks = frame if len(frame) < FEW_BYTES else frame.translate(None, NO_MARK)
        opened = marks.count(b"{")
        if OPENING_BRACKET in marks:
            opened += marks.count(b"[")
        if len(frame) > self._dense and (opened + marks.count(b",") > limits.nodes or marks.count(b"-") > SLOW_NUMBERS):
            excess = find_too_much(frame, limits.nodes)
            if excess is not None:
                return excess
        # Of a number that is too long at least two digits stand so far from each other.
        if TWO_DIGITS in frame[:: self._stride].translate(AS_ZERO):
            excess = find_too_long(frame, limits.digits)
            if excess is not None:
                return excess
        return find_too_deep(frame, limits.depth) if opened > limits.depth else None

    def _refuse_unread(self, frame: Frame, problem: str) -> Malformed | Invalid:
        """Returns the refusal of a message that is too much to parse, under its id where that can be read."""
        try:
            outline = msgspec.json.decode(frame, type=Outline)
        except (*UNDECODABLE, msgspec.ValidationError):
            return Invalid(NULL_ID, Meaning.TOO_LARGE, problem)
        id = readable_id(outline.id, self.limits)
        if not outline.method and (outline.result or outline.error):
            return Malformed(id or NULL_ID, problem)
        return Invalid(id or NULL_ID, Meaning.TOO_LARGE, problem)

    # -- out

    def encode_value(self, value: object) -> bytes:
        return encode_json(value)

    def encode_request(self, id: bytes, method: str, params: bytes | None) -> bytes:
        try:
            name = self.names[method]
        except KeyError:
            name = self._encode_method(method)
        if params is None:
            return b"".join((WITH_ID, id, name[: -len(PARAMS_KEY)], END))
        if params[:1] not in (b"{", b"["):
            raise LocalProtocolError(f"the params of {method} are neither an object nor an array: {quote(params)}")
        return b"".join((WITH_ID, id, name, params, END))

    def encode_notification(self, method: str, params: bytes | None) -> bytes:
        try:
            start = self.notices[method]
        except KeyError:
            self._encode_method(method)
            start = self.notices[method]
        if params is None:
            return start[: -len(PARAMS_KEY)] + END
        if params[:1] not in (b"{", b"["):
            raise LocalProtocolError(f"the params of {method} are neither an object nor an array: {quote(params)}")
        return start + params + END

    def encode_success(self, id: bytes, result: bytes) -> bytes:
        return b"".join((WITH_ID, id, RESULT_KEY, result, END))

    def encode_failure(self, id: bytes, code: int, message: str, data: object) -> bytes:
        error: dict[str, object] = {"code": code, "message": message}
        if data is not None:
            error["data"] = data
        return b"".join((WITH_ID, id, b',"error":', encode_json(error), END))

    def encode_batch(self, bodies: Iterable[bytes]) -> bytes:
        return b"[" + b",".join(bodies) + b"]"

    def _encode_method(self, method: str) -> bytes:
        if not method:
            raise LocalProtocolError("a method without a name")
        if len(self.names) >= METHODS_KEPT:
            self.names.clear()
            self.notices.clear()
        encoded = self.names[method] = b',"method":' + encode_json(method) + PARAMS_KEY
        self.notices[method] = WITHOUT_ID + encoded
        return encoded


def never() -> bool:
    """Tells that a turn of the loop is not over yet, where nobody keeps the time."""
    return False


def unserved(id: bytes, method: str, params: Raw) -> bool:
    """Leaves a request to whoever takes it."""
    return False


def is_spaced(frame: Frame, size: int) -> bool:
    """Returns whether a request with a number for an id, of this size without spaces, has one behind each comma and
    colon, or at least nothing in their place that matters."""
    return len(frame) == size + REQUEST_SPACES and bytes(frame).startswith(SPACED_REQUEST)


def unasked(call: Any) -> None:
    """Settles nothing: nobody has asked."""


class Single:
    """An inbox for one message that nobody waits for."""

    def __init__(self) -> None:
        self.calls: dict[int, Any] = {}
        self.claimed: Mapping[str, Callable[[Raw | None], None]] = NOT_CLAIMED
        self.listening: Mapping[str, Listening] = NOBODY
        self.settle: Callable[[Any], object] | None = unasked
        self.serve: Callable[[bytes, str, Raw], bool] = unserved
        self.is_late: Callable[[], bool] = never
        self.message: Any = None

    def take_request(self, id: bytes, method: str, params: Raw | None) -> None:
        self.message = Request(id, method, params)

    def take_notification(self, method: str, params: Raw | None) -> None:
        self.message = Notification(method, params)

    def take(self, message: Message | Skipped) -> None:
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
