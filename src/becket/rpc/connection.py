"""The state of one link: its calls, the requests it serves, its batches, and how it ends.

Sans-I/O: bytes in, events out; calls in, bytes out. No clock (time comes in as an argument), no task, no lock. asyncio,
trio, threads and the tests drive the same object. It knows no method name: how a cancellation is spelled and which
request is a ping come from a dialect.

Every call that `open_call` files leaves the table exactly once: answered, abandoned, expired or lost with the link.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING, Any, assert_never

import msgspec
from msgspec import Raw

from becket.errors import (
    NUMBERS,
    BadFrame,
    BadMessage,
    BadReply,
    BecketError,
    Busy,
    ConnectionLost,
    DisconnectReason,
    FrameTooLarge,
    LocalProtocolError,
    Meaning,
    RemoteError,
    RemoteProtocolError,
    RpcError,
    quote,
)
from becket.limits import DEFAULT_LIMITS, Limits
from becket.rpc.budget import Budget, SharedBudget, measure_params, small_enough
from becket.rpc.codec import (
    END,
    NOBODY,
    NOT_CLAIMED,
    OPENINGS,
    RESULT_KEY,
    WITH_ID,
    JsonCodec,
    key_of,
    never,
    timeless,
    unserved,
)
from becket.rpc.json_values import encode_json
from becket.rpc.messages import NULL_ID, Batch, Failure, Invalid, Malformed, Message, Notification, Request, Success
from becket.rpc.records import BatchReply, Call, Cancelling, Event, EventList, Ids, InboundRequest
from becket.rpc.runs import Listening
from becket.rpc.starts import CallStarts, Start, Starts
from becket.wire.framing import Frame, Framing, Outline, Skipped

if TYPE_CHECKING:
    from becket.rpc.roles import Codec, Taker
    from becket.rpc.spelling import Spelling
    from becket.wire.framing import Scanner

__all__ = ["Connection", "reason_of"]

LARGEST_ID = 2**31 - 1  # larger ones are never answered by some programs
MINUTE = 60.0
SMALL_RESPONSE = 256  # bytes: as large as the error that would stand in its place, and bounded by the number of batches


class Connection:
    """One link, driven by whoever owns its bytes and its clock."""

    __slots__ = (
        "_answer_starts",
        "_answers_garbage",
        "_bad_json_is_fatal",
        "_batches",
        "_call_starts",
        "_collected",
        "_fixed_ids",
        "_forgotten",
        "_frames",
        "_id_form",
        "_id_start",
        "_ids",
        "_largest_id",
        "_mean",
        "_meanings",
        "_nulls",
        "_ping",
        "_say_error",
        "_starts",
        "_stray_window",
        "_window",
        "began",
        "budget",
        "calls",
        "cancelling",
        "claimed",
        "clock",
        "codec",
        "framing",
        "garbage",
        "is_closing",
        "limits",
        "listening",
        "lost",
        "make_way",
        "now",
        "numbers",
        "requests",
        "says_cancel",
        "serve",
        "settle",
        "strays",
        "taker",
        "uncounted",
        "until",
        "violation",
    )

    def __init__(
        self,
        framing: Framing,
        codec: Codec,
        *,
        limits: Limits = DEFAULT_LIMITS,
        cancelling: Cancelling | None = None,
        ping: str | None = None,
        numbers: Mapping[Meaning, int] = NUMBERS,
        bad_json_is_fatal: bool = False,
        answers_garbage: bool = True,
        spelling: Spelling | None = None,
        ids: Ids | None = None,
        budget: SharedBudget | None = None,
        skips_oversize: bool = False,
    ) -> None:
        self.framing = framing
        if skips_oversize and (scan := getattr(framing, "scan_oversize", None)) is not None:
            scan(self._open_scanner)
        self.codec = codec
        # Where what stands before a body depends on its size alone, and the body is written as we write it, a whole
        # frame is put together at once.
        self._answer_starts: Mapping[int, bytes] = {}
        self._call_starts: Mapping[str, tuple[Mapping[int, bytes], bytes]] = {}
        self._starts: Mapping[str, Mapping[int, bytes]] = {}
        if type(codec) is JsonCodec:
            headers: Mapping[int, bytes] = getattr(framing, "headers", {})
            self._answer_starts = Start(headers, WITH_ID, len(RESULT_KEY) + len(END))
            self._call_starts = CallStarts(headers, codec.names)
            self._starts = Starts(headers, codec.notices)
        self.limits = limits
        self.cancelling = cancelling
        self.says_cancel = True  # what they say of it is heard in any case
        self.numbers = {**NUMBERS, **numbers}
        self.calls: dict[int, Call] = {}
        self.claimed: Mapping[str, Callable[[Raw | None], None]] = NOT_CLAIMED
        self.listening: Mapping[str, Listening] = NOBODY
        self.make_way: Callable[[], bool] = never
        self.clock = timeless
        self.began = 0.0  # the turn in which frames are read, by that clock
        self.until = inf  # and when it is over
        self.serve: Callable[[bytes, str, Raw], bool] = unserved
        self._frames: Iterator[Frame | Skipped] = iter(())
        self.now = 0.0  # when the last bytes came
        self._collected = EventList()
        self.use(self._collected)
        self.requests: dict[bytes, InboundRequest] = {}
        self.lost: ConnectionLost | None = None
        self.violation: RemoteProtocolError | None = None
        self.is_closing = False
        self.strays = 0
        self.garbage = 0  # what was no message and is not answered in this dialect
        self._meanings = meanings_of(self.numbers)
        self._ping = ping
        self._window = limits.inbound_requests
        self.budget = Budget(max(limits.inbound_bytes, 2 * limits.frame), shared=budget)
        self.uncounted = small_enough(self.budget.limit, limits.inbound_requests)
        self._bad_json_is_fatal = bad_json_is_fatal
        self._answers_garbage = answers_garbage
        self._ids = ids or Ids(0 if spelling is None else spelling.first_id - 1)
        self._fixed_ids: Mapping[str, int] = {}
        self._largest_id = LARGEST_ID  # 0 where it takes a look whether a number is in use
        self._id_form = b"%d"
        self._id_start = 0  # what stands before the number
        self._say_error: Callable[[RpcError], RpcError] | None = None
        self._mean: Callable[[int, str], Meaning | None] | None = None
        if spelling is not None:
            self._spell(spelling)
        self._nulls = 0
        self._forgotten: dict[int, tuple[Any, ...]] = {}  # abandoned calls that may still be answered, with their chain
        self._batches: list[list[Call]] = []
        self._stray_window = (-inf, 0)

    def _open_scanner(self) -> Scanner:
        from becket.rpc.oversize import MessageScanner  # most links never need it

        return MessageScanner(self.limits)

    def _spell(self, spelling: Spelling) -> None:
        self._fixed_ids = spelling.fixed_ids
        if spelling.fixed_ids:
            self._largest_id = 0
        self._say_error = spelling.say_error
        self._mean = spelling.mean
        if spelling.id_prefix:
            self._id_form = encode_json(spelling.id_prefix)[:-1].replace(b"%", b"%%") + b'%d"'
            self._id_start = len(self._id_form % 0) - len(b'0"')

    # -- calls of ours

    def open_call(self, call: Call, params: bytes | None) -> bytes:
        """Files the call and returns the bytes that ask it.

        Raises:
            ConnectionLost: the link has ended.
            LocalProtocolError: the request cannot be framed; nothing was filed.
        """
        ids = self._ids
        number = ids.last + 1
        if number > self._largest_id:
            number = self._choose_number(number, call.method)
        else:
            ids.last = number
        id = self._id_form % number
        if params and params[0] in OPENINGS:
            try:
                start, name = self._call_starts[call.method]
                frame = b"".join((start[len(id) + len(params)], id, name, params, END))
            except (KeyError, LocalProtocolError):
                frame = self._frame_call(id, call.method, params)
        else:
            frame = self._frame_call(id, call.method, params)
        call.number = number
        call.id = id
        self.calls[number] = call
        return frame

    def _frame_call(self, id: bytes, method: str, params: bytes | None) -> bytes:
        if self.lost is not None:
            raise self.lost.again()
        return self.framing.encode(self.codec.encode_request(id, method, params))

    def open_batch(
        self, calls: Sequence[tuple[Call, bytes | None]], notes: Sequence[tuple[str, bytes | None]]
    ) -> bytes:
        """Files these calls and returns the one frame that asks them and tells the notifications behind them."""
        if self.lost is not None:
            raise self.lost.again()
        if not calls and not notes:
            raise LocalProtocolError("an empty batch")
        bodies: list[bytes] = []
        filed: dict[int, Call] = {}
        for call, params in calls:
            number = self._choose_number(self._ids.last + 1, call.method)
            filed[number] = call
            bodies.append(self.codec.encode_request(self._id_form % number, call.method, params))
        bodies.extend(self.codec.encode_notification(method, params) for method, params in notes)
        frame = self.framing.encode(self.codec.encode_batch(bodies))
        for number, call in filed.items():
            call.number = number
            call.id = self._id_form % number
        self.calls.update(filed)
        if filed:
            self._forget_batches()
            self._batches.append(list(filed.values()))
        return frame

    def notification(self, method: str, params: bytes | None) -> bytes:
        """Returns the bytes that tell this to the other side.

        Raises:
            ConnectionLost: the link has ended.
            LocalProtocolError: it cannot be framed.
        """
        if params and params[0] in OPENINGS:
            try:
                return self._starts[method][len(params)] + params + END
            except (KeyError, LocalProtocolError):
                pass
        if self.lost is not None:
            raise self.lost.again()
        return self.framing.encode(self.codec.encode_notification(method, params))

    def abandon(self, call: Call) -> bytes:
        """Forgets a call whose answer nobody wants any more; returns the bytes that say so, b"" if none are needed."""
        if self.calls.get(call.number) is not call:
            return b""
        del self.calls[call.number]
        self._forgotten[call.number] = call.chain
        if len(self._forgotten) > self.limits.remembered_ids:
            del self._forgotten[next(iter(self._forgotten))]
        if self._batches:  # one whose calls were all given up would stay for ever
            self._forget_batches()
        if self.cancelling is None or not self.says_cancel or call.method in self.cancelling.never:
            return b""
        params = b"{" + encode_json(self.cancelling.member) + b":" + call.id + b"}"
        return self.framing.encode(self.codec.encode_notification(self.cancelling.method, params))

    def find_call(self, id: bytes) -> Call | None:
        """Returns the open call of ours that bears this id, None if there is none."""
        return self.calls.get(self._number_of(id))

    def find_abandoned(self, id: bytes) -> tuple[Any, ...] | None:
        """Returns the chain of a call that was abandoned and that they may still handle, None if there is none."""
        return self._forgotten.get(self._number_of(id))

    def expired_calls(self, now: float) -> list[Call]:
        """Returns the calls whose deadline has passed. They stay open until they are abandoned."""
        return [call for call in self.calls.values() if call.deadline <= now]

    def expired_requests(self, now: float) -> list[InboundRequest]:
        """Returns the requests of theirs whose deadline has passed."""
        return [request for request in self.requests.values() if request.deadline <= now]

    def next_deadline(self) -> float:
        """Returns when a call or a request expires next; infinity when none does."""
        first_call = min((call.deadline for call in self.calls.values()), default=inf)
        first_request = min((request.deadline for request in self.requests.values()), default=inf)
        return min(first_call, first_request)

    # -- what is held for them

    def hold(self, request: InboundRequest) -> None:
        """Counts a request that is not answered at once against the budget, with its params decoded.

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

    def _release(self, holder: InboundRequest | BatchReply) -> None:
        self.budget.give_back(holder.held)
        holder.held = 0

    # -- answers of ours

    def answer(self, request: InboundRequest, result: bytes) -> bytes:
        """Closes the request with this result; returns what is to be sent now, b"" if nothing is."""
        if request.batch is None and not request.is_unwanted and self.requests.get(request.key) is request:
            frame = self.answer_unfiled(request.id, result)  # first: what cannot be encoded leaves it open
            del self.requests[request.key]
            if request.held:
                self._release(request)
            return frame
        return self._close(request, self.codec.encode_success(request.id, result))

    def answer_unfiled(self, id: bytes, result: bytes) -> bytes:
        """Returns the answer to a request that `serve` has answered where it arrived: no table knows of it."""
        try:
            start = self._answer_starts[len(id) + len(result)]
        except (KeyError, LocalProtocolError):
            return self._frame_answer(id, self.codec.encode_success(id, result))
        return b"".join((start, id, RESULT_KEY, result, END))

    def refuse_unfiled(self, id: bytes, error: RpcError) -> bytes:
        """The same with an error."""
        return self._frame_answer(id, self._error_body(id, error))

    def refuse(self, request: InboundRequest, error: RpcError) -> bytes:
        """Closes the request with this error; returns what is to be sent now, b"" if nothing is."""
        return self._close(request, self._error_body(request.id, error))

    def forget(self, request: InboundRequest) -> bytes:
        """Closes a request that its dialect leaves without an answer."""
        return self._close(request, None)

    def _close(self, request: InboundRequest, body: bytes | None) -> bytes:
        if (found := self.requests.pop(request.key, None)) is not request:
            self._put_back(found)
            return b""
        if request.held:
            self._release(request)
        if request.is_unwanted:
            body = None
        batch = request.batch
        if batch is None:
            return b"" if body is None else self._frame_answer(request.id, body)
        if body is not None:
            self._add_to_batch(batch, request.id, body)
        batch.missing -= 1
        return b"" if batch.missing else self._frame_batch(batch)

    def _put_back(self, request: InboundRequest | None) -> None:
        """One was closed a second time; by now its id may name another, which stays open."""
        if request is not None:
            self.requests[request.key] = request

    def _frame_answer(self, id: bytes, body: bytes) -> bytes:
        try:
            return self.framing.encode(body)
        except LocalProtocolError:
            return self.framing.encode(self._error_body(id, self._too_large(len(body))))

    def _add_to_batch(self, batch: BatchReply, id: bytes, body: bytes) -> None:
        """Keeps a response until its batch is complete, as far as the budget goes."""
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
                # Not BUSY, which says that nothing was done.
                problem = f"the result has {size} bytes, and {full.limit} {full.what} is the limit: call it on its own"
                body = self._error_body(id, RpcError(Meaning.TOO_LARGE, problem))
        batch.bodies.append((id, body))

    def _frame_batch(self, batch: BatchReply) -> bytes:
        if not batch.bodies:
            return b""
        self._release(batch)
        if batch.size <= self.limits.frame:
            try:
                return self.framing.encode(self.codec.encode_batch(body for _, body in batch.bodies))
            except LocalProtocolError:
                pass  # with what stands between them it is too large
        excess = self._too_large(batch.size)
        try:
            return self.framing.encode(self.codec.encode_batch(self._error_body(id, excess) for id, _ in batch.bodies))
        except LocalProtocolError:
            return self.framing.encode(self._error_body(NULL_ID, excess))

    def _too_large(self, size: int) -> RpcError:
        return RpcError(Meaning.TOO_LARGE, f"the answer has {size} bytes, the limit is {self.limits.frame}")

    def _error_body(self, id: bytes, error: RpcError) -> bytes:
        if self._say_error is not None:
            error = self._say_error(error)
        code = self.numbers[error.meaning] if error.meaning is not None else error.code
        assert code is not None  # RpcError has a meaning or a number
        try:
            return self.codec.encode_failure(id, code, error.message, error.data)
        except LocalProtocolError:  # what the handler attached has no JSON; its number still tells the most
            return self.codec.encode_failure(id, code, "the details of this error could not be encoded", None)

    # -- what they send

    def use(self, taker: Taker) -> None:
        """Hands everything that comes to this taker from now on, instead of keeping it for `receive`."""
        self.taker = taker
        self.settle: Callable[[Call], object] | None = taker.take_reply

    def receive(self, chunk: bytes, now: float = 0.0) -> list[Event]:
        """Returns what these bytes bring, in order. Look at `violation` and at `take_answers` after it."""
        self.now = now
        if self.lost is None:
            self.read(self.framing.feed(chunk))
            self.violation = self.violation or self.framing.error
        events = self._collected.events.copy()
        self._collected.events.clear()
        return events

    def read(self, frames: Iterable[Frame | Skipped]) -> bool:
        """Hands what these frames bring to the taker, in order; returns False if it is late and some are left."""
        waiting = self._frames = iter(frames)
        return self.codec.read(waiting, self)  # pyright: ignore[reportArgumentType] - as in `read_on`

    def read_apart(self, frames: Iterable[Frame | Skipped]) -> None:
        """The same for a frame that is taken at once, whatever is left of others."""
        self.codec.read(iter(frames), self)  # pyright: ignore[reportArgumentType] - as in `read_on`

    def read_on(self) -> bool:
        """Goes on with the frames that are left: after a pause, or while whoever took the last one waits within it."""
        # pyright takes the functions in the slots for methods that lack their `self`.
        return self.codec.read(self._frames, self)  # pyright: ignore[reportArgumentType]

    def add(self, frames: Iterable[Frame | Skipped]) -> None:
        """Puts frames behind those that are left."""
        self._frames = iter([*self._frames, *frames])

    def receive_eof(self) -> BadFrame | None:
        """Returns what was cut off when the input ended here; None between frames."""
        return self.framing.end()

    def take_answers(self) -> bytes:
        """Returns what the link itself has to say about what `receive` has returned: refusals and pings."""
        answers = b"".join(self._collected.answers)
        self._collected.answers.clear()
        return answers

    def begin_closing(self) -> None:
        """Serves nothing any more: requests are refused from now on, and answers still taken."""
        self.is_closing = True
        self.serve = unserved

    def close(self, lost: ConnectionLost) -> list[Call]:
        """Ends the link for good and returns every call that was open, each with its error set."""
        if self.lost is not None:
            return []
        self.lost = lost
        self._starts = {}  # nothing leaves any more
        self._call_starts = {}
        self.begin_closing()
        calls = list(self.calls.values())
        self.calls.clear()
        self.requests.clear()
        self._forgotten.clear()
        self._batches.clear()
        self.budget.close()
        for _ in self._frames:
            pass  # whoever reads them at this moment finds no further one
        self._collected = EventList()
        for call in calls:
            call.error = lost.again()  # each is raised on its own, with a traceback of its own
        return calls

    def take(self, message: Message | Skipped) -> None:
        """Takes a message of any kind."""
        if self.lost is not None:
            return
        if isinstance(message, Skipped):
            self._skip(message)
        else:
            self._take(message, None)

    def _take(
        self,
        message: Request | Notification | Success | Failure | Malformed | Invalid | Batch,
        batch: BatchReply | None,
    ) -> None:
        match message:
            case Request():
                self.take_request(message.id, message.method, message.params, batch)
            case Notification():
                self.take_notification(message.method, message.params)
            case Success(id, result):
                if call := self._answered(id):
                    call.reply = result
                    self.taker.take_reply(call)
            case Failure(id):
                if id == NULL_ID:
                    self._take_unmatched(message)
                elif call := self._answered(id):
                    self._fail(call, self._remote_error(call, message))
            case Malformed(id, problem, is_answer):
                if call := self.find_call(id):
                    del self.calls[call.number]
                    self._fail(call, BadReply(method=call.method, problem=problem))
                elif is_answer:
                    self._stray(id)
                else:
                    self._take_garbage(id, Meaning.INVALID_REQUEST, problem, batch)
            case Invalid(id, meaning, problem):
                if meaning is Meaning.PARSE_ERROR and self._bad_json_is_fatal:
                    self.violation = self.violation or BadMessage(problem)
                else:
                    self._take_garbage(id, meaning, problem, batch)
            case Batch(members):
                together = BatchReply()
                together.missing = 1  # held until all members were looked at
                for member in members:
                    self._take(member, together)
                together.missing -= 1
                if not together.missing and (frame := self._frame_batch(together)):
                    self.taker.say(frame)
            case _:
                assert_never(message)

    def take_request(self, id: bytes, method: str, params: Raw | None, batch: BatchReply | None = None) -> None:
        """Files a request of theirs, or refuses it."""
        if self.lost is not None:
            return
        requests = self.requests
        key = id if id.isdigit() else key_of(id)
        # Null names nothing, so two of them are no duplicate; and who may not be told of a duplicate gets two answers.
        if key == NULL_ID or (not self._answers_garbage and key in requests):
            self._nulls += 1
            key = b"null %d" % self._nulls
        if key in requests:
            problem = f"duplicate id in flight: {id.decode(errors='replace')}"
            self._reject(id, Meaning.INVALID_REQUEST, problem, batch)
        elif method == self._ping:
            self._say(id, self.codec.encode_success(id, b"null"), batch)
        elif self.is_closing:
            self._reject(id, Meaning.NOT_READY, "shutting down", batch)
        elif len(requests) >= self._window:
            self._say(id, self._error_body(id, Busy("requests in flight", self._window)), batch)
        else:
            if batch is not None:
                batch.missing += 1
            request = requests[key] = InboundRequest(id, key, method, params, batch)
            self.taker.take_request(request)

    def take_notification(self, method: str, params: Raw | None) -> None:
        """Takes what they tell."""
        if self.lost is not None:
            return
        if self.cancelling is not None and method == self.cancelling.method:
            self._take_cancel(params, self.cancelling)
        else:
            self.taker.take_notification(Notification(method, params))

    def _take_cancel(self, params: Raw | None, cancelling: Cancelling) -> None:
        if params is None:
            return
        try:
            members = msgspec.json.decode(params, type=dict[str, Raw])
            request = self.requests.get(key_of(bytes(members[cancelling.member])))
        except (msgspec.DecodeError, UnicodeDecodeError, KeyError):
            return  # it names no request, and a notification is never answered
        if request is not None and not request.is_cancelled:
            request.is_cancelled = True
            request.is_unwanted = cancelling.rule == "never answered"
            self.taker.take_cancel(request)

    def _take_unmatched(self, message: Failure) -> None:
        # A peer that refuses a batch as a whole says so under the null id; nothing else of ours can be unreadable.
        self._forget_batches()
        if self._batches:
            for call in self._batches.pop(0):
                if self._is_open(call):
                    del self.calls[call.number]
                    self._fail(call, self._remote_error(call, message))
            return
        self._stray(NULL_ID)
        self.taker.take_oddity(message)

    def _forget_batches(self) -> None:
        """Forgets batches that cannot be refused as a whole any more: a call of theirs has its response, or none is
        open."""
        self._batches = [
            batch for batch in self._batches if any(map(self._is_open, batch)) and not any(map(has_response, batch))
        ]

    def _is_open(self, call: Call) -> bool:
        return self.calls.get(call.number) is call

    def _answered(self, id: bytes) -> Call | None:
        call = self.calls.pop(self._number_of(id), None)
        if call is None:
            self._stray(id)
        return call

    def _fail(self, call: Call, error: BecketError) -> None:
        call.error = error
        self.taker.take_reply(call)

    def _remote_error(self, call: Call, failure: Failure) -> RemoteError:
        code, message = failure.code, failure.message
        return RemoteError(
            method=call.method,
            code=code,
            message=message,
            data=failure.data,
            meaning=self._meanings.get(code) if self._mean is None else self._mean(code, message),
        )

    def _stray(self, id: bytes) -> None:
        number = self._number_of(id)
        if number in self._forgotten:
            del self._forgotten[number]
            return
        self.strays += 1
        if not self._answers_garbage:
            return
        start, count = self._stray_window
        start, count = (start, count + 1) if self.now - start < MINUTE else (self.now, 1)
        self._stray_window = (start, count)
        if count > self.limits.stray_replies and self.violation is None:
            self.violation = BadMessage(
                f"{count} answers in a minute that nobody asked for, the last to id {quote(id)}"
            )

    def _skip(self, skipped: Skipped) -> None:
        outline = skipped.outline
        if outline is not None:
            self._skip_oversize(outline, skipped)
            return
        # Whoever sent a frame that is too large waits; stray text has nobody to answer.
        if isinstance(skipped.error, FrameTooLarge) and self._answers_garbage:
            self._reject(NULL_ID, Meaning.TOO_LARGE, str(skipped.error), None)
        self.taker.take_oddity(skipped)

    def _skip_oversize(self, outline: Outline, skipped: Skipped) -> None:
        """Settles the call that a frame above the limit belongs to: one of ours, or one of theirs."""
        if outline.is_response:
            assert outline.id is not None
            self._take(Malformed(outline.id, str(skipped.error)), None)
            return
        if outline.id is not None:
            self._reject(outline.id, Meaning.TOO_LARGE, str(skipped.error), None)
        self.taker.take_oddity(skipped)

    def _take_garbage(self, id: bytes, meaning: Meaning, problem: str, batch: BatchReply | None) -> None:
        if self._answers_garbage:
            self._reject(id, meaning, problem, batch)
            return
        self.garbage += 1
        if self.garbage & (self.garbage - 1) == 0:  # the first, the second, the fourth: a flood must not fill a log
            self.taker.take_oddity(Skipped(BadFrame(f"{problem} ({self.garbage} so far)")))

    def _reject(self, id: bytes, meaning: Meaning, problem: str, batch: BatchReply | None) -> None:
        if key_of(id) in self.requests:  # under its own id this would answer the one that is open
            id = NULL_ID
        self._say(id, self._error_body(id, RpcError(meaning, f"{meaning.value}: {problem}")), batch)

    def _say(self, id: bytes, body: bytes, batch: BatchReply | None) -> None:
        if batch is not None:
            self._add_to_batch(batch, id, body)
        else:
            self.taker.say(self._frame_answer(id, body))

    def _choose_number(self, number: int, method: str) -> int:
        """Returns the number for a call of ours: that of its method, or this one, unless it is too large or in use."""
        fixed = self._fixed_ids.get(method)
        if fixed is not None and self._is_free(fixed):
            return fixed
        while True:
            if number > LARGEST_ID:
                number = 1
                self._largest_id = 0
            if self._largest_id or self._is_free(number):
                self._ids.last = number
                return number
            number += 1

    def _is_free(self, number: int) -> bool:
        return number not in self.calls and number not in self._forgotten

    def _number_of(self, id: bytes) -> int:
        """Returns the number of the call that an id of ours names, -1 for any other id."""
        digits = id[self._id_start :] if not self._id_start else id[self._id_start : -1]
        number = int(digits) if digits.isdigit() else -1
        return number if self._id_form % number == id else -1


def has_response(call: Call) -> bool:
    return call.reply is not None or isinstance(call.error, RemoteError | BadReply)


def meanings_of(numbers: Mapping[Meaning, int]) -> dict[int, Meaning]:
    """Returns what a number means that came: of several meanings the first, and that of JSON-RPC where it has none."""
    standard = {number: meaning for meaning, number in NUMBERS.items() if number < 0}
    return standard | {number: meaning for meaning, number in reversed(list(numbers.items()))}


def reason_of(violation: RemoteProtocolError) -> ConnectionLost:
    """Returns how a link ends whose other side broke the rules."""
    lost = ConnectionLost(DisconnectReason.REMOTE_VIOLATION, str(violation))
    lost.__cause__ = violation
    return lost
