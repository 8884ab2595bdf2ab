"""A call and its events, and how whoever made the call gets them.

The reader hands the events over and never waits: a stream holds a bounded number of them, and past the bound its
declared policy applies. The call settles for its consumer when everything that came before the answer was taken or
dropped; only that call waits for it.

Where the answer only acknowledges the request, the last event takes its place: the stream outlives the call that the
connection knows, and the link keeps it among `acknowledged` until then.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from enum import Enum
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from msgspec import Raw, Struct

from becket.errors import (
    BadReply,
    BecketError,
    CallTimeout,
    ConnectionLost,
    LocalProtocolError,
    RemoteError,
    RpcError,
    StreamOverrun,
)
from becket.methods.dispatch import FAILURES, log_unexpected
from becket.methods.streams import Cancellation, CancelReason, EventReader, Gathering
from becket.peer.claims import NULL, Claim, Listener
from becket.peer.transport import wake
from becket.rpc.records import GONE, Call
from becket.typed.decoding import UNDECODABLE

if TYPE_CHECKING:
    from becket.peer.link import Link
    from becket.peer.outbound import Outbound
    from becket.peer.roles import Waiter

__all__ = ["CallStream", "Gap", "Overflow"]

E = TypeVar("E")
K = TypeVar("K")
K2 = TypeVar("K2")
R = TypeVar("R")

CREDIT_WINDOW = 256  # events that the other side may send ahead of the consumer, where credit was agreed
UNREADABLE = (ValueError, *UNDECODABLE)  # what a gathering raises for what the other side got wrong
PAUSE_SHARE = 4  # a quarter of the bounds: where a stream that may pause its connection does so


class Overflow(Enum):
    """What a stream does when its consumer is slower than its producer, and no credit holds the producer back."""

    END = "end with StreamOverrun"
    DROP_OLDEST = "drop the oldest and say how many"


class Gap(Struct, frozen=True):
    """Stands in a stream where events were dropped."""

    dropped: int


class CallStream(Generic[E, R]):
    """A call and its events: `async with peer.stream(...) as run: async for event in run: ...; await run.result()`.

    `dropped` counts the events that were not taken in time, `skipped` those that could not be read, where a stream of
    that kind goes on without them."""

    def __init__(
        self,
        outbound: Outbound,
        method: str,
        params: object,
        *,
        events: Mapping[str, EventReader[Any]],
        progress: Callable[[Raw], Any] | None,
        returns: Callable[[Raw], Any],
        timeout: float = inf,
        idle_timeout: float = inf,
        overflow: Overflow = Overflow.END,
        pause_connection: bool = False,
        is_tolerant: bool = False,
        gathering: Gathering[Any, Any] | None = None,
        cancel: Callable[[CancelReason], Cancellation] | None = None,
    ) -> None:
        self.dropped = 0
        self.skipped = 0
        self._outbound = outbound
        self._link: Link = outbound.link
        self._method = method
        self._params = params
        self._readers = events
        self._progress = progress
        self._returns = returns
        self._timeout = timeout
        self._idle = idle_timeout
        self._overflow = overflow
        self._may_pause = pause_connection
        self._is_tolerant = is_tolerant
        self._gathering = gathering
        self._gathered: Any = None
        self._cancel = cancel
        self._is_acknowledged = False
        self._has_last = False
        self._is_paused = False
        self._holder = f"stream {id(self)}"
        self._call: Call | None = None
        self._claims: list[tuple[str, Claim]] = []
        self._buffer: deque[tuple[Callable[[Raw], Any], Raw, bool]] = deque()  # the last: it has used up credit
        self._bytes = 0
        self._gap = 0
        self._taken = 0
        self._credit = 0
        self._error: BecketError | None = None
        self._is_settled = False
        self._waiters: list[Waiter] = []
        self._opened = 0.0
        self._until = inf
        self._last_event = 0.0
        self._takers: list[tuple[tuple[type, ...], Listener]] = []

    # -- life

    async def __aenter__(self) -> CallStream[E, R]:
        if self._call is not None:
            raise LocalProtocolError("a stream is opened once")
        link = self._link
        self._last_event = link.loop.time()
        self._opened = self._last_event
        self._until = min(self._opened + self._timeout, self._outbound.latest())
        call = self._call = Call(self._method, self, stream=self)
        call.deadline = self.extend()
        call.timeout = min(self._timeout, self._idle)
        for method, reader in self._readers.items():
            claim = self._claim(reader, call, self._gathering)
            self._claims.append((method, claim))
            link.claims.add(method, claim)
        try:
            if "credit" in link.features and self._gathering is None:  # which belongs to a request that is open
                self._credit = min(CREDIT_WINDOW, link.limits.stream_events)
            progress = None if self._progress is None else self._claim(EventReader(self._progress), call, None)
            credit = self._credit or None
            await self._outbound.open(call, self._params, until=self._until, credit=credit, progress=progress)
        except BaseException:
            self._release()
            link.abandon(call)
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        self._abandon()
        if self._call is not None:
            self._call.waiter = GONE  # the two know each other; neither shall keep the other alive
            self._call.stream = None

    def _abandon(self) -> None:
        """Nobody wants the rest: the other side is told unless it has answered."""
        if self._call is not None and not self._is_settled:
            self._error = LocalProtocolError(f"{self._method}: the stream was left before its answer came")
            self._give_up(self._call, CancelReason.LEFT)
        self._release()
        self._drop_all()
        self._resume()
        self._wake()  # another task may wait for an event

    def _release(self) -> None:
        for method, claim in self._claims:
            self._link.claims.remove(method, claim)
        self._claims.clear()
        if self._call is not None:
            self._link.claims.remove_progress(self._call.id)

    # -- the call's waiter

    def done(self) -> bool:
        """Whether the answer is there, or will never come."""
        return self._is_settled

    def set_result(self, _: None, /) -> None:
        """The answer is there, or will never come."""
        if self._is_settled:
            return
        call, gathering = self._call, self._gathering
        if call is not None:
            if isinstance(call.error, CallTimeout):
                self._ask_to_cancel(call, CancelReason.TIMED_OUT)
            elif call.error is None and gathering is not None:
                self._acknowledge(call, gathering)
                return
        self._settle()

    def _settle(self) -> None:
        self._is_settled = True
        self._release()
        self._wake()

    def extend(self) -> float:
        """Returns the deadline as it is after the last event."""
        idle_until = self._last_event + self._idle
        if self._call is not None:
            self._call.timeout = self._idle if idle_until < self._until else self._until - self._opened
        return min(self._until, idle_until)

    # -- an answer that only acknowledges

    def _acknowledge(self, call: Call, gathering: Gathering[Any, Any]) -> None:
        try:
            gathering.acknowledge(NULL if call.reply is None else call.reply)
        except UNREADABLE as error:
            self._end_with(self._bad_reply(error), CancelReason.FAILED)
            return
        except FAILURES as error:
            self._fail(error)
            return
        self._is_acknowledged = True
        self._last_event = self._link.connection.now
        if self._has_last:
            self._conclude(gathering)
        else:
            self._link.acknowledged.add(self)

    def _gather_into(
        self, put: Callable[[Raw | None], None], decode: Callable[[Raw], Any], gathering: Gathering[Any, Any]
    ) -> Callable[[Raw | None], None]:
        def gather(raw: Raw | None) -> None:
            try:
                is_last = gathering.take(decode(NULL if raw is None else raw))
            except UNREADABLE:
                self.skipped += 1
                self._last_event = self._link.connection.now
                return
            except FAILURES as error:
                self._fail(error)
                return
            put(raw)
            if is_last and not self._is_settled:  # else it came once too often for the bounds
                self._has_last = True
                self._release()  # what follows it belongs to nobody
                if self._is_acknowledged:
                    self._conclude(gathering)

        return gather

    def _conclude(self, gathering: Gathering[Any, Any]) -> None:
        """The last event and the acknowledgement are there, in whichever order they came."""
        self._link.acknowledged.discard(self)
        try:
            self._gathered = gathering.result()
        except RpcError as error:
            self._error = self._remote_error(error)
        except UNREADABLE as error:
            self._error = self._bad_reply(error)
        except FAILURES as error:
            self._error = self._own_failure(error)
        self._settle()

    def _remote_error(self, error: RpcError) -> RemoteError:
        code = error.code if error.meaning is None else self._link.connection.numbers[error.meaning]
        assert code is not None  # it has a meaning or a number
        remote = RemoteError(
            method=self._method, code=code, message=error.message, data=error.data, meaning=error.meaning
        )
        remote.__cause__ = error
        return remote

    def _bad_reply(self, cause: Exception) -> BadReply:
        bad = BadReply(method=self._method, problem=str(cause))
        bad.__cause__ = cause
        return bad

    def _own_failure(self, cause: BaseException) -> BadReply:
        bad = BadReply(method=self._method, problem=f"{type(cause).__name__}: {cause}")
        bad.__cause__ = cause
        return bad

    def _fail(self, error: BaseException) -> None:
        """A function of the stream's method has failed on the reading path: this stream ends, and nothing else."""
        self._end_with(self._own_failure(error), CancelReason.FAILED)

    def expire(self, now: float) -> float:
        """Ends a stream that was acknowledged if its time is over; returns when that will be."""
        deadline = self.extend()
        if deadline > now:
            return deadline
        assert self._call is not None
        self._end_with(CallTimeout(self._method, self._call.timeout), CancelReason.TIMED_OUT)
        return inf

    def lose(self, lost: ConnectionLost) -> None:
        """Ends a stream that was acknowledged: its link has ended."""
        self._error = lost.again()
        self._error.add_note(f"{self._method}: ended mid-stream, after the acknowledgement and before the last event")
        self._settle()

    def _give_up(self, call: Call, reason: CancelReason) -> None:
        """Nobody wants the rest: the other side is told, by the link and by the method's own word for it."""
        self._is_settled = True
        self._link.acknowledged.discard(self)
        self._link.abandon(call)
        self._ask_to_cancel(call, reason)

    def _ask_to_cancel(self, call: Call, reason: CancelReason) -> None:
        if self._cancel is None or not call.id or self._has_last:  # nothing of it runs: not yet, or no longer
            return
        try:
            self._outbound.ask_aside(*self._cancel(reason))
        except Exception as error:  # in what it makes of the params; the stream ends all the same
            log_unexpected(error)

    # -- events in

    def _claim(self, reader: EventReader[Any], call: Call, gathering: Gathering[Any, Any] | None) -> Claim:
        belongs, decode = reader.belongs, reader.decode
        accept = None if belongs is None else partial(self._accepts, belongs)
        put = self._put_into(decode, is_own=False)
        if gathering is not None:
            return Claim(self._gather_into(put, decode, gathering), accept=accept, call=call)
        return Claim(put, put_own=self._put_into(decode, is_own=True), accept=accept, call=call)

    def _accepts(self, belongs: Callable[[Raw, Any], bool], raw: Raw) -> bool:
        """Returns whether an event is for this call. One that cannot be read is for none."""
        try:
            return belongs(raw, self._params)
        except UNDECODABLE:
            return False
        except FAILURES as error:
            self._fail(error)
            return False

    def _put_into(self, decode: Callable[[Raw], Any], *, is_own: bool) -> Callable[[Raw | None], None]:
        buffer = self._buffer
        append = buffer.append
        connection = self._link.connection
        most_events, most_bytes = self._link.limits.stream_events, self._link.limits.stream_bytes

        def put(raw: Raw | None) -> None:
            value = NULL if raw is None else raw
            append((decode, value, is_own))
            size = self._bytes = self._bytes + len(value)
            self._last_event = connection.now
            if size > most_bytes or len(buffer) > most_events:
                self._overrun()
            if self._waiters:
                self._wake()

        def put_and_pause(raw: Raw | None) -> None:
            put(raw)
            if not self._is_paused:
                self._pause_if_full()

        return put_and_pause if self._may_pause else put

    def _overrun(self) -> None:
        limits = self._link.limits
        if self._overflow is Overflow.DROP_OLDEST:
            while len(self._buffer) > limits.stream_events or self._bytes > limits.stream_bytes:
                _, raw, is_own = self._buffer.popleft()
                self._bytes -= len(raw)
                self._gap += 1
                self.dropped += 1
                if is_own:
                    self.return_credit()
            return
        is_many = len(self._buffer) > limits.stream_events
        limit = limits.stream_events if is_many else limits.stream_bytes
        self._end_with(StreamOverrun(self._method, limit), CancelReason.FAILED)

    def end(self, error: BecketError) -> None:
        """Ends the stream with this error, and tells the other side that nobody wants the rest."""
        if self._call is not None:
            self._drop_all()
            self._end_with(error, CancelReason.LEFT)

    def _end_with(self, error: BecketError, reason: CancelReason) -> None:
        assert self._call is not None
        self._error = self._error or error
        if not self._is_settled:
            self._give_up(self._call, reason)
            self._settle()

    def _wake(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            wake(waiter)

    async def _wait(self) -> None:
        """Waits for the next event or the end. Several tasks may: all are woken."""
        if self._call is None:
            raise LocalProtocolError(f"{self._method}: the stream is not open: use it in an `async with` block")
        waiter = self._link.loop.create_waiter()
        self._waiters.append(waiter)
        try:
            await waiter
        finally:
            if waiter in self._waiters:
                self._waiters.remove(waiter)

    def _pause_if_full(self) -> None:
        limits = self._link.limits
        if len(self._buffer) * PAUSE_SHARE > limits.stream_events or self._bytes * PAUSE_SHARE > limits.stream_bytes:
            self._is_paused = True
            self._link.hold(self._holder)

    def _resume(self) -> None:
        if self._is_paused:
            self._is_paused = False
            self._link.release(self._holder)

    # -- events out

    def __aiter__(self) -> AsyncIterator[E | Gap]:
        return self

    async def __anext__(self) -> E | Gap:
        while True:
            if self._gap:
                gap, self._gap = Gap(self._gap), 0
                return gap
            if self._buffer:
                decode, raw, is_own = self._buffer.popleft()
                self._bytes -= len(raw)
                if is_own:
                    self.return_credit()
                try:
                    event: E | Gap = decode(raw)
                except UNDECODABLE as problem:
                    self._skip(problem)
                    continue
                return event
            self._resume()
            if self._is_settled:
                if (error := self._failure()) is not None:
                    raise error
                raise StopAsyncIteration
            await self._wait()

    async def batches(self) -> AsyncIterator[list[E | Gap]]:
        """Yields what has come since the last time, many at once: the cheapest way to take a flood."""
        async for event in self:
            yield self._take_after([event])

    def take_ready(self) -> list[E | Gap]:
        """Returns what has come and was not taken, without waiting."""
        return self._take_after([])

    def _take_after(self, ready: list[E | Gap]) -> list[E | Gap]:
        if self._gap:
            ready.append(Gap(self._gap))
            self._gap = 0
        while self._buffer:
            decode, raw, is_own = self._buffer.popleft()
            self._bytes -= len(raw)
            if is_own:
                self.return_credit()
            try:
                event = decode(raw)
            except UNDECODABLE as error:
                try:
                    self._skip(error)
                except BadReply:
                    if not ready:
                        raise
                    break  # it stays the outcome of the stream; what came before it is handed out first
            else:
                ready.append(event)
        return ready

    def _skip(self, error: Exception) -> None:
        """Passes over an event that cannot be decoded, or ends the stream with it."""
        if self._is_tolerant:
            self.skipped += 1
            return
        bad = BadReply(method=self._method, problem=f"an event: {error}")
        self._drop_all()
        self._end_with(bad, CancelReason.FAILED)
        raise bad from error

    def return_credit(self) -> None:
        """One event that has used up credit is out of the way."""
        if not self._credit:
            return
        self._taken += 1
        link = self._link
        if self._taken * 2 >= self._credit and not self._is_settled and link.dialect.credit is not None:
            assert self._call is not None
            params = b'{"id":%b,"n":%d}' % (self._call.id, self._taken)
            self._taken = 0
            link.send(link.connection.notification(link.dialect.credit, params))

    @overload
    def on(self, kind: type[K], /) -> Callable[[Callable[[K], Any]], Callable[[K], Any]]: ...

    @overload
    def on(self, kind: type[K], other: type[K2], /) -> Callable[[Callable[[K | K2], Any]], Callable[[K | K2], Any]]: ...

    @overload
    def on(self, *kinds: type[Any]) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]: ...

    def on(self, *kinds: type[Any]) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
        """Registers the decorated function, plain or `async def`, for events of these classes.

        `result` hands it the events, in order. All functions that were registered for an event get it."""

        def register(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
            self._takers.append((kinds, Listener(function)))
            return function

        return register

    async def result(self) -> R:
        """Returns the answer of the call. Events that were not taken go to the functions of `on`, or are dropped.

        Raises:
            RemoteError, CallTimeout, ConnectionLost, StreamOverrun, BadReply: as for any call.
        """
        if self._takers:
            async for event in self:
                await self._hand_over(event)
        while not self._is_settled:
            self._drop_untaken()
            await self._wait()
        self._drop_untaken()
        if (error := self._failure()) is not None:
            raise error
        assert self._call is not None
        result: R
        result = self._gathered if self._gathering is not None else self._outbound.outcome(self._call, self._returns)
        return result

    async def _hand_over(self, event: E | Gap) -> None:
        for kinds, listener in self._takers:
            if isinstance(event, kinds):
                outcome = listener.function(*((event,) if listener.arity else ()))
                if listener.is_async:
                    await outcome

    def _drop_untaken(self) -> None:
        for _, _, is_own in self._buffer:
            if is_own:  # a producer that counts would wait for them for ever
                self.return_credit()
        self._drop_all()
        self._resume()

    def _drop_all(self) -> None:
        self._buffer.clear()
        self._bytes = 0

    def _failure(self) -> BecketError | None:
        if self._error is not None:
            return self._error
        return None if self._call is None else self._call.error
