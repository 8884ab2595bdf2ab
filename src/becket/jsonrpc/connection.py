"""JSON-RPC connection state, sans I/O: pending calls, inbound requests, batches, closing.

Sans-I/O: bytes in, events out; calls in, bytes out. No clock (time is an argument), no task, no lock. asyncio, trio,
threads and the tests drive the same object. It contains no method names: the format of a cancellation and the name of
the ping come from a dialect.

Every call that `open_call` files leaves the table exactly once: settled, abandoned, expired or lost with the link.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, assert_never

import msgspec
from msgspec import Raw, Struct

from becket._text import quote
from becket.errors import (
    ERROR_CODES,
    JSON_ERRORS,
    BadFrame,
    BadMessage,
    BadReply,
    BecketError,
    Busy,
    CallTimeout,
    ConnectionLost,
    DisconnectReason,
    FrameTooLarge,
    LocalProtocolError,
    Meaning,
    RemoteError,
    RemoteProtocolError,
    RpcError,
)
from becket.framing.framing import Frame, Framing, Outline, SkippedFrame
from becket.jsonrpc.budget import Budget, SharedBudget, measure_params, small_enough
from becket.jsonrpc.calls import (
    CLOSED,
    OPEN,
    RESPONDED,
    BatchResponse,
    CancellationFormat,
    IdCounter,
    InboundRequest,
    OutboundCall,
    has_response,
)
from becket.jsonrpc.codec import (
    END,
    END_BYTES,
    PARAMS_OPENERS,
    RESULT_KEY,
    DirectHandlers,
    never_yield,
    normalize_id,
    timeless,
)
from becket.jsonrpc.frame_encoder import FrameEncoder
from becket.jsonrpc.json_values import encode_json
from becket.jsonrpc.messages import (
    NULL_ID,
    Failure,
    Invalid,
    Malformed,
    NotificationMessage,
    Request,
    SingleMessage,
    Success,
)
from becket.limits import DEFAULT_LIMITS, Limits

if TYPE_CHECKING:
    from becket.framing.oversize import Scanner
    from becket.jsonrpc.call_protocols import FutureLike
    from becket.jsonrpc.protocols import Codec, EventReceiver
    from becket.jsonrpc.wire_format import WireFormat

__all__ = ["CancelRequested", "Connection", "ConnectionEvent", "EventBuffer", "build_connection_lost"]

RESULT_BYTES = len(RESULT_KEY) + END_BYTES
MAX_ID = 2**31 - 1  # some programs never respond to larger ones
MINUTE = 60.0
DEADLINE_PRECISION = 0.001  # seconds: deadlines are sent in milliseconds
SMALL_RESPONSE = 256  # bytes: as large as the error that would take its place, and bounded by the number of batches


class CancelRequested(Struct, frozen=True):
    """The other peer has cancelled this request, which is still open."""

    request: InboundRequest


ConnectionEvent = InboundRequest | NotificationMessage | OutboundCall | CancelRequested | Failure | SkippedFrame
"""A request or notification; an outbound call with its response; a cancellation; an error without a call; a dropped
frame."""


class EventBuffer:
    """Collects events in a list."""

    def __init__(self) -> None:
        self.events: list[ConnectionEvent] = []
        self.outgoing: list[bytes] = []

    def on_request(self, request: InboundRequest) -> None:
        self.events.append(request)

    def on_notification(self, notification: NotificationMessage) -> None:
        self.events.append(notification)

    def on_response(self, call: OutboundCall) -> None:
        self.events.append(call)

    def on_cancel(self, request: InboundRequest) -> None:
        self.events.append(CancelRequested(request))

    def on_anomaly(self, oddity: Failure | SkippedFrame) -> None:
        self.events.append(oddity)

    def send(self, frame: bytes) -> None:
        self.outgoing.append(frame)


class Connection:
    """One link, driven by the owner of its bytes and its clock."""

    __slots__ = (
        "_abandoned_ids",
        "_bad_json_is_fatal",
        "_batches",
        "_buffer",
        "_classify_error",
        "_encoder",
        "_fixed_ids",
        "_frames",
        "_free_requests",
        "_id_format",
        "_id_prefix_length",
        "_ids",
        "_largest_id",
        "_meanings",
        "_ping",
        "_rejects_invalid",
        "_requests_without_id",
        "_stray_rate",
        "began",
        "budget",
        "cache_event_prefixes",
        "calls",
        "can_send_cancel",
        "cancellation",
        "clock",
        "codec",
        "direct_handlers",
        "encode_notification",
        "error_codes",
        "framing",
        "invalid_messages",
        "is_closing",
        "last_received",
        "limits",
        "lost",
        "on_response",
        "receiver",
        "requests",
        "should_yield",
        "stray_responses",
        "uncounted",
        "until",
        "violation",
        "wake",
    )

    def __init__(
        self,
        framing: Framing,
        codec: Codec,
        *,
        limits: Limits = DEFAULT_LIMITS,
        cancellation: CancellationFormat | None = None,
        ping: str | None = None,
        error_codes: Mapping[Meaning, int] = ERROR_CODES,
        bad_json_is_fatal: bool = False,
        rejects_invalid: bool = True,
        wire_format: WireFormat | None = None,
        ids: IdCounter | None = None,
        budget: SharedBudget | None = None,
        skips_oversize: bool = False,
    ) -> None:
        self.framing = framing
        if skips_oversize and (scan := getattr(framing, "scan_oversize", None)) is not None:
            scan(self._open_scanner)
        self.codec = codec
        self.limits = limits
        self.cancellation = cancellation
        self.can_send_cancel = True  # inbound cancellations are handled in any case
        self.error_codes = {**ERROR_CODES, **error_codes}
        encoder = self._encoder = FrameEncoder(
            framing,
            codec,
            largest=limits.frame,
            error_codes=self.error_codes,
            map_error=None if wire_format is None else wire_format.map_error,
        )
        self.encode_notification: Callable[[str, bytes | None], bytes] = encoder.encode_notification
        self.cache_event_prefixes = encoder.cache_event_prefixes
        self.calls: dict[int, OutboundCall] = {}
        self.direct_handlers = DirectHandlers()
        self.should_yield: Callable[[], bool] = never_yield
        self.clock = timeless
        self.began = 0.0  # start of the turn in which frames are read, on that clock
        self.until = inf  # and its end
        self._frames: Iterator[Frame | SkippedFrame] = iter(())
        self.last_received = 0.0  # when the last bytes arrived
        self._buffer = EventBuffer()
        self.set_receiver(self._buffer)
        self.wake: Callable[[FutureLike], object] | None = None  # the futures of calls that have their response
        self.requests: dict[bytes | int, InboundRequest] = {}
        self.lost: ConnectionLost | None = None
        self.violation: RemoteProtocolError | None = None
        self.is_closing = False
        self.stray_responses = 0
        self.invalid_messages = 0  # invalid messages that get no response in this dialect
        self._meanings = build_meanings(self.error_codes)
        self._ping = ping or ""  # no method has that name
        self._free_requests = limits.inbound_requests  # 0 while closing
        self.budget = Budget(max(limits.inbound_bytes, 2 * limits.frame), shared=budget)
        self.uncounted = small_enough(self.budget.limit, limits.inbound_requests)
        self._bad_json_is_fatal = bad_json_is_fatal
        self._rejects_invalid = rejects_invalid
        self._ids = ids or IdCounter(0 if wire_format is None else wire_format.first_id - 1)
        self._fixed_ids: Mapping[str, int] = {}
        self._largest_id = MAX_ID  # 0 if numbers must be checked for use
        self._id_format = b"%d"
        self._id_prefix_length = 0  # length of what precedes the number
        self._classify_error: Callable[[int, str], Meaning | None] | None = None
        if wire_format is not None:
            self._apply_wire_format(wire_format)
        self._requests_without_id = 0  # so far
        # abandoned calls whose response may still come, with their chain
        self._abandoned_ids: dict[int, tuple[Any, ...]] = {}
        self._batches: list[list[OutboundCall]] = []
        self._stray_rate = (-inf, 0)

    def _open_scanner(self) -> Scanner:
        from becket.jsonrpc.oversize import MessageScanner  # most links never need it

        return MessageScanner(self.limits)

    def _apply_wire_format(self, wire_format: WireFormat) -> None:
        self._fixed_ids = wire_format.fixed_ids
        if wire_format.fixed_ids:
            self._largest_id = 0
        self._classify_error = wire_format.classify_error
        if wire_format.id_prefix:
            self._id_format = encode_json(wire_format.id_prefix)[:-1].replace(b"%", b"%%") + b'%d"'
            self._id_prefix_length = len(self._id_format % 0) - len(b'0"')

    # -- outbound calls

    def open_call(self, call: OutboundCall, params: bytes | None) -> bytes:
        """Files the call and returns the bytes of its request.

        Raises:
            ConnectionLost: the link has ended.
            LocalProtocolError: the request cannot be framed; nothing was filed.
        """
        ids = self._ids
        number = ids.last + 1
        if number >= self._largest_id:  # the first number may be 0
            number = self._choose_call_number(number, call.method)
        else:
            ids.last = number
        id = self._id_format % number
        frame = b""
        if params and params[0] in PARAMS_OPENERS:
            encoder = self._encoder
            try:  # the usual form, after a cached prefix; a function of its own would cost a hundredth of a call
                name = encoder.method_fragments[call.method]
                prefix = encoder.prefixes_with_id[len(id) + len(name) + len(params) + END_BYTES]
                frame = b"".join((prefix, id, name, params, END))
            except (KeyError, LocalProtocolError):
                pass  # sent for the first time, or it cannot be sent
        if not frame:
            frame = self._encoder.encode_request(id, call.method, params)
        call.number = number
        call.id = id
        self.calls[number] = call
        return frame

    def open_batch(
        self, calls: Sequence[tuple[OutboundCall, bytes | None]], notes: Sequence[tuple[str, bytes | None]]
    ) -> bytes:
        """Files these calls and returns one frame with their requests, followed by the notifications."""
        if self.lost is not None:
            raise self.lost.copy()
        if not calls and not notes:
            raise LocalProtocolError("an empty batch")
        bodies: list[bytes] = []
        for call, params in calls:
            call.number = self._choose_call_number(self._ids.last + 1, call.method)
            call.id = self._id_format % call.number
            bodies.append(self.codec.encode_request(call.id, call.method, params))
        bodies.extend(self.codec.encode_notification(method, params) for method, params in notes)
        frame = self.framing.encode(self.codec.encode_batch(bodies))
        if calls:
            self._forget_batches()
            self._batches.append([call for call, _ in calls])
            self.calls.update({call.number: call for call, _ in calls})
        return frame

    def cancel_call(self, call: OutboundCall) -> bytes:
        """Removes a call and returns the bytes of its cancellation, b"" if none are needed."""
        if self.calls.get(call.number) is not call:
            return b""
        del self.calls[call.number]
        self._abandoned_ids[call.number] = call.chain
        if len(self._abandoned_ids) > self.limits.remembered_ids:
            del self._abandoned_ids[next(iter(self._abandoned_ids))]
        if self._batches:  # one whose calls were all abandoned would stay for ever
            self._forget_batches()
        if self.cancellation is None or not self.can_send_cancel or call.method in self.cancellation.excluded_methods:
            return b""
        params = b"{" + encode_json(self.cancellation.member) + b":" + call.id + b"}"
        return self.framing.encode(self.codec.encode_notification(self.cancellation.method, params))

    def find_call(self, id: bytes) -> OutboundCall | None:
        """Returns the pending outbound call with this id, None if there is none."""
        return self.calls.get(self._parse_call_number(id))

    def find_abandoned(self, id: bytes) -> tuple[Any, ...] | None:
        """Returns the chain of an abandoned call that the other peer may still handle, None if there is none."""
        return self._abandoned_ids.get(self._parse_call_number(id))

    def find_expired_calls(self, now: float) -> list[OutboundCall]:
        """Returns the calls whose deadline has passed. They stay pending until they are abandoned."""
        return [call for call in self.calls.values() if call.deadline <= now]

    def find_expired_requests(self, now: float) -> list[InboundRequest]:
        """Returns the inbound requests whose deadline has passed."""
        return [request for request in self.requests.values() if request.deadline <= now]

    def next_deadline(self) -> float:
        """Returns when the next call or request expires; infinity when none does."""
        first_call = min((call.deadline for call in self.calls.values()), default=inf)
        first_request = min((request.deadline for request in self.requests.values()), default=inf)
        return min(first_call, first_request)

    # -- budget of inbound messages

    def hold(self, request: InboundRequest) -> None:
        """Counts a request without an immediate response against the budget, with its params decoded.

        Raises:
            Busy: it does not fit.
        """
        params = request.params
        if params is not None and len(params) > self.uncounted:
            size = measure_params(bytes(params))
            full = self.budget.take(size)
            if full is not None:
                raise Busy(full.what, full.limit)
            request.held = size

    def _release(self, holder: InboundRequest | BatchResponse) -> None:
        self.budget.give_back(holder.held)
        holder.held = 0

    # -- outbound responses

    def respond(self, request: InboundRequest, result: bytes) -> bytes:
        """Closes the request with this result; returns the bytes to send now, b"" if none."""
        id = request.id
        if request.state is OPEN and request.batch is None and not request.is_response_suppressed:
            try:  # as in `open_call`
                prefix = self._encoder.prefixes_with_id[len(id) + len(result) + RESULT_BYTES]
                frame = b"".join((prefix, id, RESULT_KEY, result, END))
            except (KeyError, LocalProtocolError):
                frame = self._encoder.frame_response(id, self.codec.encode_success(id, result))
            request.state = CLOSED
            del self.requests[request.key]
            if request.held:
                self._release(request)
            return frame
        return self._close_request(request, self.codec.encode_success(id, result))

    def respond_early(self, request: InboundRequest, result: bytes) -> bytes:
        """Sends the result of a request whose handler goes on; its id may then be reused."""
        held, request.held = request.held, 0  # its handler goes on, and holds its params
        frame = self.respond(request, result)
        request.state = RESPONDED
        request.held = held
        request.credit = None
        request.deadline = inf
        self._file_without_id(request)
        return frame

    def _file_without_id(self, request: InboundRequest) -> None:
        self._requests_without_id += 1
        request.key = self._requests_without_id
        self.requests[request.key] = request

    def reject(self, request: InboundRequest, error: RpcError) -> bytes:
        """Closes the request with this error; returns the bytes to send now, b"" if none."""
        return self._close_request(request, self._encoder.encode_error(request.id, error))

    def drop_request(self, request: InboundRequest) -> bytes:
        """Closes a request to which its dialect sends no response."""
        return self._close_request(request, None)

    def _close_request(self, request: InboundRequest, body: bytes | None) -> bytes:
        if request.state is CLOSED:
            return b""
        del self.requests[request.key]
        if request.held:
            self._release(request)
        was_open = request.state is OPEN
        request.state = CLOSED
        if not was_open:
            return b""
        if request.is_response_suppressed:
            body = None
        batch = request.batch
        if batch is None:
            return b"" if body is None else self._encoder.frame_response(request.id, body)
        if body is not None:
            self._add_to_batch(batch, request.id, body)
        batch.missing -= 1
        return b"" if batch.missing else self._encode_batch_response(batch)

    def _add_to_batch(self, batch: BatchResponse, id: bytes, body: bytes) -> None:
        """Keeps a response until its batch is complete, within the budget."""
        size = len(body)
        batch.size += size
        if batch.size > self.limits.frame:  # it cannot be sent any more: only the ids are needed
            self._release(batch)
            batch.bodies = [(one, b"") for one, _ in batch.bodies]
            body = b""
        elif size > SMALL_RESPONSE:
            full = self.budget.take(size)
            if full is None:
                batch.held += size
            else:
                # Not BUSY, which means that nothing was done.
                problem = f"the result has {size} bytes, the limit is {full.limit} {full.what}: call it outside a batch"
                body = self._encoder.encode_error(id, RpcError(Meaning.TOO_LARGE, problem))
        batch.bodies.append((id, body))

    def _encode_batch_response(self, batch: BatchResponse) -> bytes:
        if not batch.bodies:
            return b""
        self._release(batch)
        return self._encoder.frame_batch(batch.bodies, batch.size)

    # -- inbound messages

    def set_receiver(self, receiver: EventReceiver) -> None:
        """Sends all events to this receiver from now on, instead of collecting them for `receive`."""
        self.receiver = receiver
        self.on_response: Callable[[OutboundCall], object] = receiver.on_response

    def receive(self, chunk: bytes, now: float = 0.0) -> list[ConnectionEvent]:
        """Returns the events of these bytes, in order. Check `violation` and `data_to_send` after it."""
        self.last_received = now
        if self.lost is None:
            self.receive_frames(self.framing.feed(chunk))
            self.violation = self.violation or self.framing.error
        events = self._buffer.events.copy()
        self._buffer.events.clear()
        return events

    def receive_frames(self, frames: list[Frame | SkippedFrame]) -> bool:
        """Passes the events of these frames to the receiver, in order; returns False if the turn is over and some
        are left."""
        waiting = self._frames = iter(frames)
        return self.codec.decode_frames(waiting, self)  # pyright: ignore[reportArgumentType] - as in `resume_receiving`

    def resume_receiving(self) -> bool:
        """Continues with the frames that are left: after a pause, or while the handler of the last one waits within
        it."""
        # pyright takes the functions in the slots for methods that lack their `self`.
        return self.codec.decode_frames(self._frames, self)  # pyright: ignore[reportArgumentType]

    def queue_frames(self, frames: Iterable[Frame | SkippedFrame]) -> None:
        """Appends frames to those that are left."""
        self._frames = iter([*self._frames, *frames])

    def receive_eof(self) -> BadFrame | None:
        """Returns the partial frame when the input ended here; None between frames."""
        return self.framing.end()

    def data_to_send(self) -> bytes:
        """Returns the connection's own messages after `receive`: error responses and responses to pings."""
        outgoing = b"".join(self._buffer.outgoing)
        self._buffer.outgoing.clear()
        return outgoing

    def begin_closing(self) -> None:
        """Rejects requests from now on; responses are still received."""
        self.is_closing = True
        self._free_requests = 0

    def close(self, lost: ConnectionLost) -> list[OutboundCall]:
        """Ends the link for good and returns every pending call, each with its error set."""
        if self.lost is not None:
            return []
        self.lost = lost
        self._encoder.close(lost)
        self.begin_closing()
        calls = list(self.calls.values())
        self.calls.clear()
        for request in self.requests.values():
            request.state = CLOSED
        self.requests.clear()
        self._abandoned_ids.clear()
        self._batches.clear()
        self.budget.close()
        for _ in self._frames:
            pass  # a reader that is iterating over them finds no further one
        self._buffer = EventBuffer()
        for call in calls:
            call.error = lost.copy()  # each is raised on its own, with a traceback of its own
        return calls

    def on_message(self, message: SingleMessage | SkippedFrame) -> None:
        """Handles a message of any kind."""
        if self.lost is not None:
            return
        if isinstance(message, SkippedFrame):
            self._on_skipped_frame(message)
        else:
            self.on_member(message, None)

    def begin_batch(self) -> InboundBatch:
        """Returns the receiver for the members of a batch."""
        return InboundBatch(self, BatchResponse())

    def end_batch(self, batch: BatchResponse) -> None:
        """Sends the responses of a batch whose members were all received, if none is missing."""
        batch.missing -= 1
        if not batch.missing and (frame := self._encode_batch_response(batch)):
            self.receiver.send(frame)

    def on_member(self, message: SingleMessage, batch: BatchResponse | None) -> None:
        """Handles a message, on its own or as a member of a batch."""
        match message:
            case Request():
                self.on_any_request(batch, message.id, message.method, message.params)
            case NotificationMessage():
                self.on_notification(message.method, message.params)
            case Success(id, result):
                if call := self._pop_call(id):
                    call.result = result
                    self.receiver.on_response(call)
            case Failure(id):
                if id == NULL_ID:
                    self._on_unmatched_error(message)
                elif call := self._pop_call(id):
                    self._fail_call(call, self._build_error(call, message))
            case Malformed(id, problem, is_response):
                if call := self.find_call(id):
                    del self.calls[call.number]
                    self._fail_call(call, BadReply(method=call.method, problem=problem))
                elif is_response:
                    self._on_stray_response(id)
                else:
                    self._on_invalid_message(id, Meaning.INVALID_REQUEST, problem, batch)
            case Invalid(id, meaning, problem):
                if meaning is Meaning.PARSE_ERROR and self._bad_json_is_fatal:
                    self.violation = self.violation or BadMessage(problem)
                else:
                    self._on_invalid_message(id, meaning, problem, batch)
            case _:
                assert_never(message)

    def on_request(self, id: bytes, method: str, params: Raw | None) -> None:
        """Files an inbound request with a number as its id, or rejects it."""
        requests = self.requests
        if id in requests or method == self._ping or len(requests) >= self._free_requests:
            self._file_request(InboundRequest(id, id, method, params))
        else:
            request = requests[id] = InboundRequest(id, id, method, params)
            receive = self.receiver.on_request  # a function: called as a method it would cost more
            receive(request)

    def on_any_request(self, batch: BatchResponse | None, id: bytes, method: str, params: Raw | None) -> None:
        """Files an inbound request with any id, on its own or as a member of a batch, or rejects it."""
        self._file_request(InboundRequest(id, normalize_id(id), method, params, batch))

    def _file_request(self, request: InboundRequest) -> None:
        """Files any inbound request, or rejects it."""
        requests, key, batch = self.requests, request.key, request.batch
        is_anonymous = key in requests or key == NULL_ID  # null and a repeated id name no request
        if is_anonymous or request.method == self._ping or len(requests) >= self._free_requests:
            if self._respond_at_once(request):
                return
            self._file_without_id(request)
        else:
            requests[key] = request
        if batch is not None:
            batch.missing += 1
        self.receiver.on_request(request)

    def _respond_at_once(self, request: InboundRequest) -> bool:
        """Responds to a request without a handler: a ping, or one that is rejected. Returns whether it was one."""
        id, batch = request.id, request.batch
        if self.lost is not None:
            return True
        if request.key in self.requests and self._rejects_invalid:
            problem = f"duplicate id in flight: {id.decode(errors='replace')}"
            self._reject_invalid(id, Meaning.INVALID_REQUEST, problem, batch)
        elif request.method == self._ping:
            self._send_response(id, self.codec.encode_success(id, b"null"), batch)
        elif self.is_closing:
            self._reject_invalid(id, Meaning.NOT_READY, "shutting down", batch)
        elif len(self.requests) >= self._free_requests:
            self._send_response(
                id, self._encoder.encode_error(id, Busy("requests in flight", self._free_requests)), batch
            )
        else:
            return False
        return True

    def on_notification(self, method: str, params: Raw | None) -> None:
        """Handles an inbound notification."""
        if self.lost is not None:
            return
        if self.cancellation is not None and method == self.cancellation.method:
            self._on_cancel(params, self.cancellation)
        else:
            self.receiver.on_notification(NotificationMessage(method, params))

    def _on_cancel(self, params: Raw | None, cancelling: CancellationFormat) -> None:
        if params is None:
            return
        try:
            members = msgspec.json.decode(params, type=dict[str, Raw])
            request = self.requests.get(normalize_id(bytes(members[cancelling.member])))
        except (*JSON_ERRORS, KeyError):
            return  # it names no request, and a notification has no response
        if request is not None and not request.is_cancelled:
            request.is_cancelled = True
            request.is_response_suppressed = cancelling.response == "never sent"
            self.receiver.on_cancel(request)

    def _on_unmatched_error(self, message: Failure) -> None:
        # A peer rejects a batch as a whole under the null id; no other message of becket can be unreadable.
        self._forget_batches()
        batch = next((batch for batch in self._batches if not any(map(has_response, batch))), None)
        if batch is not None:
            self._batches.remove(batch)
            for call in filter(self._is_open, batch):
                del self.calls[call.number]
                self._fail_call(call, self._build_error(call, message))
            return
        self._on_stray_response(NULL_ID)
        self.receiver.on_anomaly(message)

    def _forget_batches(self) -> None:
        """Removes batches without a pending call, which cannot be rejected any more."""
        self._batches = [batch for batch in self._batches if any(map(self._is_open, batch))]

    def _is_open(self, call: OutboundCall) -> bool:
        return self.calls.get(call.number) is call

    def _pop_call(self, id: bytes) -> OutboundCall | None:
        call = self.calls.pop(self._parse_call_number(id), None)
        if call is None:
            self._on_stray_response(id)
        return call

    def _fail_call(self, call: OutboundCall, error: BecketError) -> None:
        call.error = error
        self.receiver.on_response(call)

    def _build_error(self, call: OutboundCall, failure: Failure) -> RemoteError | CallTimeout:
        code, message = failure.code, failure.message
        meaning = self._meanings.get(code) if self._classify_error is None else self._classify_error(code, message)
        if meaning is Meaning.TIMEOUT and self._has_expired(call):  # the other peer has noticed it first
            return CallTimeout(call.method, call.timeout)
        return RemoteError(method=call.method, code=code, message=message, data=failure.data, meaning=meaning)

    def _has_expired(self, call: OutboundCall) -> bool:
        deadline = call.deadline if call.stream is None else call.stream.renew_deadline()
        return self.last_received >= deadline - DEADLINE_PRECISION

    def _on_stray_response(self, id: bytes) -> None:
        number = self._parse_call_number(id)
        if number in self._abandoned_ids:
            del self._abandoned_ids[number]
            return
        self.stray_responses += 1
        if not self._rejects_invalid:
            return
        start, count = self._stray_rate
        start, count = (start, count + 1) if self.last_received - start < MINUTE else (self.last_received, 1)
        self._stray_rate = (start, count)
        if count > self.limits.stray_replies and self.violation is None:
            self.violation = BadMessage(f"{count} responses in a minute to no pending call, the last to id {quote(id)}")

    def _on_skipped_frame(self, skipped: SkippedFrame) -> None:
        outline = skipped.outline
        if outline is not None:
            self._skip_oversize(outline, skipped)
            return
        # The sender of a frame that is too large waits; stray text has no sender to respond to.
        if isinstance(skipped.error, FrameTooLarge) and self._rejects_invalid:
            self._reject_invalid(NULL_ID, Meaning.TOO_LARGE, str(skipped.error), None)
        self.receiver.on_anomaly(skipped)

    def _skip_oversize(self, outline: Outline, skipped: SkippedFrame) -> None:
        """Settles the call that a frame above the limit belongs to, outbound or inbound."""
        if outline.is_response:
            assert outline.id is not None
            self.on_member(Malformed(outline.id, str(skipped.error)), None)
            return
        if outline.id is not None:
            self._reject_invalid(outline.id, Meaning.TOO_LARGE, str(skipped.error), None)
        self.receiver.on_anomaly(skipped)

    def _on_invalid_message(self, id: bytes, meaning: Meaning, problem: str, batch: BatchResponse | None) -> None:
        if self._rejects_invalid:
            self._reject_invalid(id, meaning, problem, batch)
            return
        self.invalid_messages += 1
        if (
            self.invalid_messages & (self.invalid_messages - 1) == 0
        ):  # the first, the second, the fourth: a flood must not fill a log
            self.receiver.on_anomaly(SkippedFrame(BadFrame(f"{problem} ({self.invalid_messages} so far)")))

    def _reject_invalid(self, id: bytes, meaning: Meaning, problem: str, batch: BatchResponse | None) -> None:
        if normalize_id(id) in self.requests:  # under its own id it would be taken for a response to that one
            id = NULL_ID
        self._send_response(id, self._encoder.encode_error(id, RpcError(meaning, f"{meaning.value}: {problem}")), batch)

    def _send_response(self, id: bytes, body: bytes, batch: BatchResponse | None) -> None:
        if batch is not None:
            self._add_to_batch(batch, id, body)
        else:
            self.receiver.send(self._encoder.frame_response(id, body))

    def _choose_call_number(self, number: int, method: str) -> int:
        """Returns the number of an outbound call: that of its method, or this one, unless it is too large or in use."""
        fixed = self._fixed_ids.get(method)
        if fixed is not None and self._is_number_free(fixed):
            return fixed
        while True:
            if number > MAX_ID:
                number = 1
                self._largest_id = 0
            if self._largest_id or self._is_number_free(number):
                self._ids.last = number
                return number
            number += 1

    def _is_number_free(self, number: int) -> bool:
        return number not in self.calls and number not in self._abandoned_ids

    def _parse_call_number(self, id: bytes) -> int:
        """Returns the number of the call that an outbound id names, -1 for any other id."""
        digits = id[self._id_prefix_length :] if not self._id_prefix_length else id[self._id_prefix_length : -1]
        number = int(digits) if digits.isdigit() else -1
        return number if self._id_format % number == id else -1


class InboundBatch:
    """Receives the members of a batch: its responses are sent together, all else is as outside of one."""

    clock = staticmethod(timeless)  # a batch is handled in one turn
    should_yield = staticmethod(never_yield)
    began, until = 0.0, inf
    direct_handlers = DirectHandlers()  # none

    def __init__(self, connection: Connection, batch: BatchResponse) -> None:
        self.calls = connection.calls
        self.on_response = connection.on_response
        self.wake = connection.wake
        self.on_notification = connection.on_notification
        self.on_request = partial(connection.on_any_request, batch)
        self.on_message = partial(connection.on_member, batch=batch)
        self.begin_batch = connection.begin_batch  # never called: each member is an object
        self.end_batch = partial(connection.end_batch, batch)


def build_meanings(numbers: Mapping[Meaning, int]) -> dict[int, Meaning]:
    """Returns the meaning of each number: of several meanings the first, and JSON-RPC's where there is none."""
    standard = {number: meaning for meaning, number in ERROR_CODES.items() if number < 0}
    return standard | {number: meaning for meaning, number in reversed(list(numbers.items()))}


def build_connection_lost(violation: RemoteProtocolError) -> ConnectionLost:
    """Returns the close reason of a link whose other peer violated the protocol."""
    lost = ConnectionLost(DisconnectReason.REMOTE_VIOLATION, str(violation))
    lost.__cause__ = violation
    return lost
