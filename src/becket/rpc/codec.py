"""One frame into a message and back: the JSON of JSON-RPC 2.0.

The fast path is one pass of msgspec over the envelope, with params and result left raw. msgspec keeps the last of two
equal keys and passes over members it does not know; so the lengths of what it found are added up, and a frame with more
bytes than a few spaces takes the long way, which is `careful`'s. Guards against too many nodes and too much depth run
before any parsing, on frames large enough to hold them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, islice, repeat
from math import inf
from operator import length_hint
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import Raw, Struct

from becket.errors import LocalProtocolError, quote
from becket.limits import DEFAULT_LIMITS, Limits
from becket.rpc.guards import Guard
from becket.rpc.json_values import decode_string, encode_json
from becket.rpc.messages import NULL_ID, Message, Notification, Request
from becket.rpc.runs import Listening, Run
from becket.wire.framing import Frame, Skipped

if TYPE_CHECKING:
    from becket.rpc.careful import CarefulReader
    from becket.rpc.roles import Inbox

__all__ = ["NOBODY", "NOT_CLAIMED", "JsonCodec", "decode_envelope", "key_of", "never", "timeless", "unserved"]


ABSENT = Raw(b"")
NO_ID = -1  # should one say it, its frame is longer than those without an id


class Envelope(Struct, gc=False):
    """What most messages have. A number as an id comes as one, at a third of the price of its text."""

    jsonrpc: Literal["2.0"]
    id: int | str = NO_ID
    method: str = ""
    params: Raw = ABSENT
    result: Raw = ABSENT


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
CHECK_EVERY = 16  # messages between two looks at the clock, where they are quick
SLOW = 0.00006  # seconds for each of them: those that take longer are taken one by one
NOT_CLAIMED: dict[str, Callable[[Raw | None], None]] = {}
NOBODY: dict[str, Listening] = {}

METHODS_KEPT = 1_024  # encoded method names; a program that sends more kinds than this encodes them anew

# Malformed text, a value of another type, and text that is not UTF-8; the last for a frame that was dropped.
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, TypeError)

decode_envelope = msgspec.json.Decoder(Envelope).decode


class JsonCodec:
    """JSON-RPC 2.0 in JSON."""

    __slots__ = (
        "_block",
        "_careful",
        "_guard",
        "_run",
        "_short",
        "_unlike",
        "limits",
        "names",
        "notices",
    )

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self.limits = limits
        self.names: dict[str, bytes] = {}  # methods as they stand between an id and params
        self.notices: dict[str, bytes] = {}  # all that stands before the params of a notification
        self._guard = Guard(limits)
        self._careful: CarefulReader | None = None
        self._short = min(limits.method_bytes, limits.id_bytes)  # all but the params: longer ones are measured
        self._block = CHECK_EVERY
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
        guard, short = self._guard, self._short
        deep = guard.deep
        calls: dict[Any, Any] = inbox.calls
        claimed, settle = inbox.claimed, inbox.settle
        listening, run, method = inbox.listening, self._run, ""
        clock, until = inbox.clock, inbox.until
        began = inbox.began
        while True:
            frame = None
            block: Iterator[Any] = islice(frames, self._block)
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
                    if clock() > until:
                        break
                    continue
                # Where there are params or a result and the lengths add up, nothing else stands in the frame: no other
                # member, no second one, no white space. Many programs write a space behind each comma and colon; in so
                # few bytes there is no room for a member that matters. Anything else takes the long way.
                method = envelope.method
                if not method:
                    result = envelope.result
                    inner = len(result)
                    if inner > deep and (excess := guard.find_excess(frame)):
                        inbox.take(self._reader().refuse(frame, excess))
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
                    inbox.take(self._reader().read(frame, self.decode))
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
                if inner > deep and (excess := guard.find_excess(frame)):
                    inbox.take(self._reader().refuse(frame, excess))
                elif not inner or inner == NULL_BYTES:  # the latter may be null, which is none
                    inbox.take(self._reader().read(frame, self.decode))
                elif id == NO_ID:
                    spare = len(frame) - inner - len(method) - NOTIFICATION_BYTES
                    if spare and spare != SPACES:
                        inbox.take(self._reader().read(frame, self.decode))
                    elif method in claimed:  # a large one, which was looked into, or one with spaces
                        claimed[method](params)
                    elif len(method) > short:
                        inbox.take(self._reader().read(frame, self.decode))
                    else:
                        inbox.take_notification(method, params)
                else:
                    text = b"%d" % id if id.__class__ is int else b""
                    head = len(method) + len(text) + REQUEST_BYTES
                    if head > short or (len(frame) != inner + head and not (text and is_spaced(frame, inner + head))):
                        inbox.take(self._reader().read(frame, self.decode))
                    else:
                        serve = inbox.serve  # as it is now: whoever took the last one may have closed the link
                        if not serve(text, method, params):
                            inbox.take_request(text, method, params)
                if clock() > until:  # a function was called, and may have taken any time
                    break
            if run is None:
                if method not in listening:
                    self._unlike = ""
                elif method != self._unlike:
                    run = self._run = self._begin_run(method, frame)
            if frame is None or not length_hint(frames, 1):
                return True
            now = clock()
            self._block = CHECK_EVERY if now - began < SLOW * self._block else 1
            began = now
            if inbox.make_way():
                return False
            until = inbox.until

    def _begin_run(self, method: str, frame: Any) -> Run | None:
        """Returns what hands out further events like the one in this frame; None where it is written otherwise."""
        name, text = encode_json(method), bytes(frame)
        for form in (NOTICE, SPACED_NOTICE):
            start = form % name
            if text.startswith(start):
                return Run(method, start, len(start) + self._guard.deep + len(END))
        self._unlike = method
        return None

    def _read_carefully(self, frame: Frame | Skipped) -> Message | Skipped:
        return frame if isinstance(frame, Skipped) else self._reader().read(frame, self.decode)

    def _reader(self) -> CarefulReader:
        reader = self._careful
        if reader is None:
            reader = self._careful = self._open_reader()
        return reader

    def _open_reader(self) -> CarefulReader:
        from becket.rpc.careful import CarefulReader  # few links need it, and none while it starts

        return CarefulReader(self.limits, self._guard)

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


timeless: Callable[[], float] = repeat(0.0).__next__
"""The clock where nobody keeps the time; in C, as those that it stands in for."""


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
        self.make_way: Callable[[], bool] = never
        self.clock = timeless
        self.began = 0.0
        self.until = inf
        self.message: Any = None

    def take_request(self, id: bytes, method: str, params: Raw | None) -> None:
        self.message = Request(id, method, params)

    def take_notification(self, method: str, params: Raw | None) -> None:
        self.message = Notification(method, params)

    def take(self, message: Message | Skipped) -> None:
        self.message = message


def key_of(id: bytes) -> bytes:
    """Returns the text under which an id is filed: one string written with and without escapes is one id."""
    if b"\\" in id:
        return encode_json(decode_string(id))
    return id
