"""Encodes and decodes JSON-RPC 2.0 frames: the fast path, with `parser` as fallback.

The fast path is one pass of msgspec over the envelope, with params and result left raw. msgspec keeps the last of two
equal keys and skips unknown members; so the lengths of the members are added up, and a frame with more than a few
bytes beyond the sum goes to `parser`. Limits of nodes and depth are checked before any parsing, on frames large enough
to exceed them. Events of a pending call are recognised by the beginning of their frame (`DirectHandlers`), and only
their params are parsed. `tests/jsonrpc/test_fast_path.py` compares all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import islice, repeat
from math import inf
from operator import length_hint
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from becket._text import quote
from becket.errors import JSON_ERRORS, LocalProtocolError
from becket.framing.framing import Frame, SkippedFrame
from becket.jsonrpc.json_values import decode_string, encode_json
from becket.jsonrpc.limit_checks import LimitChecker
from becket.jsonrpc.messages import (
    NO_ID,
    NULL_ID,
    Batch,
    Envelope,
    Invalid,
    Message,
    NotificationMessage,
    Request,
    SingleMessage,
)
from becket.limits import DEFAULT_LIMITS, Limits

if TYPE_CHECKING:
    from becket.jsonrpc.parser import MessageParser
    from becket.jsonrpc.protocols import DirectHandler, DirectRoute, MessageReceiver

__all__ = [
    "DirectHandlers",
    "JsonCodec",
    "decode_envelope",
    "never_yield",
    "normalize_id",
    "timeless",
]


# What a frame holds beside the texts of its members: braces, keys, quotes, commas.
NOTIFICATION_OVERHEAD = len('{"jsonrpc":"2.0","method":"","params":}')
REQUEST_OVERHEAD = len('{"jsonrpc":"2.0","id":,"method":"","params":}')
SUCCESS_OVERHEAD = len('{"jsonrpc":"2.0","id":,"result":}')
NULL_BYTES = len(NULL_ID)
SPACED_EXTRA = 5  # after the commas and colons of a notification or a response; no member is so short
SPACED_REQUEST_EXTRA = 7
SPACED_REQUEST = b'{"jsonrpc": "2.0", "id": '  # has three of them; no member that matters fits into the other four
PARAMS_KEY = b',"params":'
# Positions in the frames that becket writes.
ENVELOPE_WITH_ID = b'{"jsonrpc":"2.0","id":'
ENVELOPE_WITHOUT_ID = b'{"jsonrpc":"2.0"'
RESULT_KEY = b',"result":'
END = b"}"
END_BYTES = len(END)
PARAMS_OPENERS = b"{["  # first bytes of params
CHECK_EVERY = 16  # messages between two reads of the clock, if they are quick
SLOW = 0.00006  # seconds for each of them: slower ones are checked one by one
FIRST_MEMBER = b'{"'  # what an object with members begins with, as becket writes it
CLOSING_BRACE = END[0]
MAX_DIRECT_HANDLERS = 4  # each is a comparison for every frame; events of other calls are routed like all notifications

MAX_CACHED_METHODS = 1_024  # encoded method names; beyond this many they are encoded anew

# Malformed text, a value of another type, and text that is not UTF-8; the last for a dropped frame.
FAST_PATH_ERRORS = (*JSON_ERRORS, TypeError)

decode_envelope = msgspec.json.Decoder(Envelope).decode


class DirectHandlers:
    """Handlers of events, found by the beginning of the frame up to the first name in the params.

    A frame that begins so, ends with a brace, and has one JSON value in between holds nothing but this event."""

    __slots__ = ("_routes", "last")

    def __init__(self) -> None:
        self._routes: list[DirectRoute] = []
        self.last: DirectRoute | None = None  # that of the last event, tried first; None if there are no handlers

    def add(self, method: str, mark: bytes, handler: DirectHandler) -> None:
        """Adds the handler of a method's events if there is room. Their params begin with `mark`, which the handler
        does not get."""
        params = (mark or FIRST_MEMBER[:1]) + FIRST_MEMBER[1:]
        beginning = b'%b,"method":%b%b%b' % (ENVELOPE_WITHOUT_ID, encode_json(method), PARAMS_KEY, params)
        if len(self._routes) < MAX_DIRECT_HANDLERS:
            opener = FIRST_MEMBER if mark else b""
            start = len(beginning) - len(FIRST_MEMBER) + len(opener)
            self.last = (beginning, len(beginning), opener, start, handler)
            self._routes.append(self.last)

    def remove(self, handlers: Collection[DirectHandler]) -> None:
        """Removes these handlers."""
        self._routes = [route for route in self._routes if route[-1] not in handlers]
        self.last = self._routes[0] if self._routes else None

    def clear(self) -> None:
        """Removes all handlers."""
        self._routes.clear()
        self.last = None

    def find(self, frame: bytes) -> DirectRoute | None:
        """Returns the route of a frame, None if there is none."""
        for route in self._routes:
            if frame.startswith(route[0]):
                self.last = route
                return route
        return None


class JsonCodec:
    """JSON-RPC 2.0 in JSON."""

    __slots__ = (
        "_block",
        "_guard",
        "_max_fast_head",
        "_parser",
        "limits",
        "method_fragments",
        "notification_prefixes",
    )

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self.limits = limits
        self.method_fragments: dict[str, bytes] = {}  # methods as encoded between an id and params
        self.notification_prefixes: dict[str, bytes] = {}  # everything before the params of a notification
        self._guard = LimitChecker(limits)
        self._parser: MessageParser | None = None
        # Without the params: longer ones are measured, also the digits of an id.
        self._max_fast_head = min(limits.method_bytes, limits.id_bytes, REQUEST_OVERHEAD + limits.digits)
        self._block = CHECK_EVERY

    # -- in

    def decode(self, frame: Frame) -> Message:
        """Returns the message in `frame`; bytes that are no message are returned as `Invalid`."""
        collector = MessageCollector()
        self.decode_frames([frame], collector)
        message: Message = collector.messages[0]
        return message

    def decode_frames(
        self, frames: Iterator[Any] | list[Any], inbox: MessageReceiver, *, is_checked: bool = False
    ) -> bool:
        """Delivers the messages of these frames to `inbox`, in order: those of a list all at once; those of the
        iterator of one until the turn is over, and returns False if some are left then. With `is_checked` they are
        the members of a batch, whose frame was checked against the limits.

        One loop for a whole chunk: for the most frequent messages, calling a function costs half as much as all the
        rest. Most chunks are one frame: what only some messages need is looked up when they do."""
        deep = inf if is_checked else self._guard.safe_bytes
        direct_handlers = inbox.direct_handlers
        clock, until, began = inbox.clock, inbox.until, inbox.began
        is_whole = isinstance(frames, list)
        while True:
            for frame in frames if is_whole else islice(frames, self._block):
                route = direct_handlers.last
                if route is not None and frame.__class__ is bytes:
                    beginning, size, opener, start, handle = route
                    if frame[:size] != beginning:
                        route = direct_handlers.find(frame)
                        if route is not None:
                            beginning, size, opener, start, handle = route
                    if route is not None and frame[-1] == CLOSING_BRACE:
                        params = frame[start:-1]
                        if opener:
                            params = opener + params
                        if len(params) <= deep and handle(params):
                            continue
                try:
                    envelope = decode_envelope(frame)
                except FAST_PATH_ERRORS:
                    self._parse(frame, inbox)
                    if not is_whole and clock() > until:
                        break
                    continue
                # If there are params or a result and the lengths add up, the frame holds nothing else: no other
                # member, no duplicate, no white space. Many programs write a space after each comma and colon; no
                # member that matters fits into so few bytes. Anything else goes to the parser.
                method = envelope.method
                if not method:
                    result = envelope.result
                    inner = len(result)
                    if inner > deep and (excess := self._guard.find_problem(frame)):
                        inbox.on_message(self._get_parser().reject(frame, excess))
                        continue
                    call = inbox.calls.pop(envelope.id, None)
                    if call is not None:
                        size = inner + len(call.id) + SUCCESS_OVERHEAD
                        if inner and (len(frame) == size or len(frame) == size + SPACED_EXTRA):
                            call.result = result
                            if (wake := inbox.wake) is None:
                                inbox.on_response(call)
                            else:
                                wake(call.future)
                            continue
                        inbox.calls[call.number] = call
                    self._parse(frame, inbox)
                    continue
                params = envelope.params
                inner = len(params)
                id = envelope.id
                if inner > deep and (excess := self._guard.find_problem(frame)):
                    inbox.on_message(self._get_parser().reject(frame, excess))
                elif not inner or inner == NULL_BYTES:  # absent, or perhaps null, which means none
                    self._parse(frame, inbox)
                elif isinstance(id, int) and id >= 0:
                    text = b"%d" % id
                    head = len(method) + len(text) + REQUEST_OVERHEAD
                    is_exact = len(frame) == inner + head or is_spaced(frame, inner + head)
                    if is_exact and head <= self._max_fast_head:
                        inbox.on_request(text, method, params)
                    else:
                        self._parse(frame, inbox)
                elif id == NO_ID:
                    spare = len(frame) - inner - len(method) - NOTIFICATION_OVERHEAD
                    if spare not in (0, SPACED_EXTRA) or len(method) > self._max_fast_head:
                        self._parse(frame, inbox)
                    else:
                        inbox.on_notification(method, params)
                else:
                    self._parse(frame, inbox)
                if not is_whole and clock() > until:  # a function was called, and may have taken any time
                    break
            if is_whole or not length_hint(frames):
                return True
            now = clock()
            self._block = CHECK_EVERY if now - began < SLOW * self._block else 1
            began = now
            if inbox.should_yield():
                return False
            until = inbox.until

    def _parse(self, frame: Frame | SkippedFrame | Invalid, inbox: MessageReceiver) -> None:
        """Delivers the message or the batch in a frame that the fast path cannot decode."""
        message = frame if isinstance(frame, SkippedFrame | Invalid) else self._get_parser().parse(frame)
        if isinstance(message, list):
            batch = inbox.begin_batch()
            self.decode_frames(message, batch, is_checked=True)
            batch.end_batch()
        else:
            inbox.on_message(message)

    def _get_parser(self) -> MessageParser:
        reader = self._parser
        if reader is None:
            reader = self._parser = self._build_parser()
        return reader

    def _build_parser(self) -> MessageParser:
        from becket.jsonrpc.parser import MessageParser  # few links need it, and none while it starts

        return MessageParser(self.limits, self._guard)

    # -- out

    def encode_request(self, id: bytes, method: str, params: bytes | None) -> bytes:
        try:
            name = self.method_fragments[method]
        except KeyError:
            name = self._encode_method(method)
        if params is None:
            return b"".join((ENVELOPE_WITH_ID, id, name[: -len(PARAMS_KEY)], END))
        if params[:1] not in (b"{", b"["):
            raise LocalProtocolError(f"the params of {method} are neither an object nor an array: {quote(params)}")
        return b"".join((ENVELOPE_WITH_ID, id, name, params, END))

    def encode_notification(self, method: str, params: bytes | None) -> bytes:
        try:
            start = self.notification_prefixes[method]
        except KeyError:
            self._encode_method(method)
            start = self.notification_prefixes[method]
        if params is None:
            return start[: -len(PARAMS_KEY)] + END
        if params[:1] not in (b"{", b"["):
            raise LocalProtocolError(f"the params of {method} are neither an object nor an array: {quote(params)}")
        return start + params + END

    def encode_success(self, id: bytes, result: bytes) -> bytes:
        return b"".join((ENVELOPE_WITH_ID, id, RESULT_KEY, result, END))

    def encode_failure(self, id: bytes, code: int, message: str, data: object) -> bytes:
        error: dict[str, object] = {"code": code, "message": message}
        if data is not None:
            error["data"] = data
        return b"".join((ENVELOPE_WITH_ID, id, b',"error":', encode_json(error), END))

    def encode_batch(self, bodies: Iterable[bytes]) -> bytes:
        return b"[" + b",".join(bodies) + b"]"

    def _encode_method(self, method: str) -> bytes:
        if not method:
            raise LocalProtocolError("a method without a name")
        if len(self.method_fragments) >= MAX_CACHED_METHODS:
            self.method_fragments.clear()
            self.notification_prefixes.clear()
        encoded = self.method_fragments[method] = b',"method":' + encode_json(method) + PARAMS_KEY
        self.notification_prefixes[method] = ENVELOPE_WITHOUT_ID + encoded
        return encoded


timeless: Callable[[], float] = repeat(0.0).__next__
"""The clock of a codec without time limits; in C, like the real ones."""


def never_yield() -> bool:
    """Returns that a turn of the loop is not over, for a codec without time limits."""
    return False


def is_spaced(frame: Frame, size: int) -> bool:
    """Returns whether a request with a numeric id, of this size without spaces, has one after each comma and colon, or
    at least no member in their place."""
    return len(frame) == size + SPACED_REQUEST_EXTRA and bytes(frame).startswith(SPACED_REQUEST)


class MessageCollector:
    """An inbox that collects messages, without pending calls."""

    wake: Callable[[Any], object] | None = None
    clock = staticmethod(timeless)
    should_yield = staticmethod(never_yield)
    began, until = 0.0, inf

    def __init__(self) -> None:
        self.messages: list[Any] = []
        self.calls: dict[int, Any] = {}
        self.direct_handlers = DirectHandlers()

    def on_request(self, id: bytes, method: str, params: Raw | None) -> None:
        self.messages.append(Request(id, method, params))

    def on_notification(self, method: str, params: Raw | None) -> None:
        self.messages.append(NotificationMessage(method, params))

    def on_response(self, call: Any, /) -> None:
        """Never called: there are no pending calls."""

    def on_message(self, message: SingleMessage | SkippedFrame) -> None:
        self.messages.append(message)

    def begin_batch(self) -> MessageCollector:
        batch = MessageCollector()
        self.messages.append(Batch(batch.messages))
        return batch

    def end_batch(self) -> None:
        """Does nothing: the batch has its members."""


def normalize_id(id: bytes) -> bytes:
    """Returns the text under which an id is filed: one string written with and without escapes is one id."""
    if b"\\" in id:
        return encode_json(decode_string(id))
    return id
