"""Provides CallStream: a call with its events, bounded buffering and credit.

The reader delivers events and never waits: a stream buffers a bounded number of them, and past the bound its overflow
policy applies. The call settles for its consumer when all events before the response were taken or dropped; only that
call waits for it.

If the response only acknowledges the request, the last event takes its place: the stream outlives the connection's
call, and the link keeps it among `long_lived_streams` until then.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from enum import Enum
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from msgspec import Raw, Struct

from becket._deprecated import RenamedMember
from becket.errors import (
    JSON_ERRORS,
    BadReply,
    BecketError,
    CallTimeout,
    ConnectionLost,
    LocalProtocolError,
    RemoteError,
    RpcError,
    StreamOverrun,
)
from becket.jsonrpc.calls import NULL_FUTURE, OutboundCall
from becket.methods.error_mapping import HANDLER_ERRORS, log_internal_error
from becket.methods.streams import Cancellation, CancelReason, EventReader, ResultCollector
from becket.peer.event_routing import JSON_NULL, CallSubscription, EventHandler
from becket.peer.nested_calls import latest_deadline

if TYPE_CHECKING:
    from typing import Protocol

    from becket.methods.descriptors import Method, Notification
    from becket.peer.event_routing import PutEvent
    from becket.peer.link import Link
    from becket.peer.protocols import LoopFuture

    class StreamCaller(Protocol):
        """What a stream needs of the `Outbound` that opens it."""

        @property
        def link(self) -> Link: ...

        async def open_call(
            self,
            call: OutboundCall,
            params: object,
            *,
            until: float,
            credit: int | None = None,
            progress: CallSubscription | None = None,
        ) -> None: ...

        def call_detached(self, method: Method[Any, Any] | Notification[Any], params: object) -> None: ...

        def outcome(self, call: OutboundCall, decode: Callable[[Raw], Any]) -> Any: ...


__all__ = ["CallStream", "Gap", "Overflow"]

E = TypeVar("E")
K = TypeVar("K")
K2 = TypeVar("K2")
R = TypeVar("R")

CREDIT_WINDOW = 256  # events that the other peer may send ahead of the consumer, if credit was negotiated
COLLECTOR_ERRORS = (ValueError, *JSON_ERRORS)  # errors of a collector about the other peer's data
PAUSE_DIVISOR = 4  # a quarter of the bounds: the level at which a stream may pause its connection


class Overflow(Enum):
    """What a stream does when its consumer is slower than its producer, without credit."""

    END = "end with StreamOverrun"
    DROP_OLDEST = "drop the oldest and report how many"


class Gap(Struct, frozen=True):
    """Takes the place of dropped events in a stream."""

    dropped: int


class CallStream(Generic[E, R]):
    """A call and its events: `async with peer.stream(...) as run: async for event in run: ...; await run.result()`.

    `dropped` counts the events that were not taken in time, `skipped` those that could not be decoded, if the stream
    goes on without them."""

    def __init__(
        self,
        outbound: StreamCaller,
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
        gathering: ResultCollector[Any, Any] | None = None,
        cancel: Callable[[CancelReason], Cancellation] | None = None,
    ) -> None:
        self.dropped = 0
        self.skipped = 0
        self.group = ""  # as that of an `OutboundCall`, if it is set before the stream is opened
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
        self._collector = gathering
        self._collected: Any = None
        self._cancel = cancel
        self._is_acknowledged = False
        self._has_final_event = False
        self._is_paused = False
        self._holder = f"stream {id(self)}"
        self._call: OutboundCall | None = None
        self._subscriptions: list[tuple[str, CallSubscription]] = []
        self._buffer: deque[tuple[Callable[[Raw], Any], Raw, bool]] = deque()  # the last: it has used credit
        self._bytes = 0
        self._gap = 0
        self._consumed = 0
        self._credit = 0
        self._error: BecketError | None = None
        self._is_settled = False
        self._waiters: list[LoopFuture] = []
        self._opened = 0.0
        self._until = inf
        self._last_event = 0.0
        self._event_handlers: list[tuple[tuple[type, ...], EventHandler]] = []

    # -- life

    async def __aenter__(self) -> CallStream[E, R]:
        if self._call is not None:
            raise LocalProtocolError("a stream is opened once")
        link = self._link
        self._last_event = link.loop.time()
        self._opened = self._last_event
        self._until = min(self._opened + self._timeout, latest_deadline())
        call = self._call = OutboundCall(self._method, self, stream=self, group=self.group)
        call.deadline = self.renew_deadline()
        call.timeout = min(self._timeout, self._idle)
        for method, reader in self._readers.items():
            subscription = self._build_subscription(reader, call, self._collector)
            self._subscriptions.append((method, subscription))
            link.event_router.add(method, subscription)
        try:
            if "credit" in link.features and self._collector is None:  # which belongs to a pending request
                self._credit = min(CREDIT_WINDOW, link.limits.stream_events)
            progress = (
                None if self._progress is None else self._build_subscription(EventReader(self._progress), call, None)
            )
            credit = self._credit or None
            await self._outbound.open_call(call, self._params, until=self._until, credit=credit, progress=progress)
        except BaseException:
            self._unsubscribe()
            link.abandon_call(call)
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        self._abandon()
        if self._call is not None:
            self._call.future = NULL_FUTURE  # a reference cycle
            self._call.stream = None

    def _abandon(self) -> None:
        """Abandons the rest: notifies the other peer, unless it has responded."""
        if self._call is not None and not self._is_settled:
            self._error = LocalProtocolError(f"{self._method}: the stream was left before its response arrived")
            self._cancel_call(self._call, CancelReason.LEFT)
        self._unsubscribe()
        self._drop_all()
        self._resume()
        self._wake()  # another task may wait for an event

    def _unsubscribe(self) -> None:
        for method, subscription in self._subscriptions:
            self._link.event_router.remove(method, subscription)
        self._subscriptions.clear()
        if self._call is not None:
            self._link.event_router.remove_progress(self._call.id)

    # -- the call's waiter

    def done(self) -> bool:
        """Whether the response has arrived, or never will."""
        return self._is_settled

    def set_result(self, _: None, /) -> None:
        """Records that the response has arrived, or never will."""
        if self._is_settled:
            return
        call, gathering = self._call, self._collector
        if call is not None:
            if isinstance(call.error, CallTimeout):
                self._send_cancel_request(call, CancelReason.TIMED_OUT)
            elif call.error is None and gathering is not None:
                self._on_acknowledged(call, gathering)
                return
        self._settle()

    def _settle(self) -> None:
        self._is_settled = True
        self._unsubscribe()
        self._wake()

    def renew_deadline(self) -> float:
        """Returns the deadline, renewed by the last event."""
        idle_until = self._last_event + self._idle
        if self._call is not None:
            self._call.timeout = self._idle if idle_until < self._until else self._until - self._opened
        return min(self._until, idle_until)

    # -- responses that only acknowledge

    def _on_acknowledged(self, call: OutboundCall, gathering: ResultCollector[Any, Any]) -> None:
        try:
            gathering.on_response(JSON_NULL if call.result is None else call.result)
        except COLLECTOR_ERRORS as error:
            self._end_with(self._bad_reply(error), CancelReason.FAILED)
            return
        except HANDLER_ERRORS as error:
            self._fail(error)
            return
        self._is_acknowledged = True
        self._last_event = self._link.connection.last_received
        if self._has_final_event:
            self._finish(gathering)
        else:
            self._link.long_lived_streams.add(self)

    def _collect_into(
        self, put: PutEvent, decode: Callable[[Raw], Any], gathering: ResultCollector[Any, Any]
    ) -> PutEvent:
        def gather(raw: Raw | None) -> None:
            try:
                is_last = gathering.on_event(decode(JSON_NULL if raw is None else raw))
            except COLLECTOR_ERRORS:
                self.skipped += 1
                self._last_event = self._link.connection.last_received
                return
            except HANDLER_ERRORS as error:
                self._fail(error)
                return
            put(raw)
            if is_last and not self._is_settled:  # else it came once too often for the bounds
                self._has_final_event = True
                self._unsubscribe()  # what follows it belongs to no call
                if self._is_acknowledged:
                    self._finish(gathering)

        return gather

    def _finish(self, gathering: ResultCollector[Any, Any]) -> None:
        """Settles the stream when both the last event and the acknowledgement are there, in either order."""
        self._link.long_lived_streams.discard(self)
        try:
            self._collected = gathering.result()
        except RpcError as error:
            self._error = self._remote_error(error)
        except COLLECTOR_ERRORS as error:
            self._error = self._bad_reply(error)
        except HANDLER_ERRORS as error:
            self._error = self._own_failure(error)
        self._settle()

    def _remote_error(self, error: RpcError) -> RemoteError:
        code = error.code if error.meaning is None else self._link.connection.error_codes[error.meaning]
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
        """Ends this stream alone: a function of its method has failed in the reader."""
        self._end_with(self._own_failure(error), CancelReason.FAILED)

    def expire(self, now: float) -> float:
        """Ends an acknowledged stream if its deadline has passed; returns the deadline."""
        deadline = self.renew_deadline()
        if deadline > now:
            return deadline
        assert self._call is not None
        self._end_with(CallTimeout(self._method, self._call.timeout), CancelReason.TIMED_OUT)
        return inf

    def disconnect(self, lost: ConnectionLost) -> None:
        """Ends an acknowledged stream: its link has ended."""
        self._error = lost.copy()
        self._error.add_note(f"{self._method}: ended mid-stream, after the acknowledgement and before the last event")
        self._settle()

    def _cancel_call(self, call: OutboundCall, reason: CancelReason) -> None:
        """Cancels the rest at the other peer, by the link and by the method's own cancel request."""
        self._is_settled = True
        self._link.long_lived_streams.discard(self)
        self._link.abandon_call(call)
        self._send_cancel_request(call, reason)

    def _send_cancel_request(self, call: OutboundCall, reason: CancelReason) -> None:
        if self._cancel is None or not call.id or self._has_final_event:  # nothing of it runs: not yet, or no longer
            return
        try:
            self._outbound.call_detached(*self._cancel(reason))
        except Exception as error:  # its params cannot be built; the stream ends all the same
            log_internal_error(error)

    # -- events in

    def _build_subscription(
        self, reader: EventReader[Any], call: OutboundCall, gathering: ResultCollector[Any, Any] | None
    ) -> CallSubscription:
        belongs, decode = reader.belongs, reader.decode
        accept = None if belongs is None else partial(self._accepts, belongs)
        put = self._build_sink(decode, is_own=False)
        if gathering is not None:
            return CallSubscription(self._collect_into(put, decode, gathering), accept=accept, call=call)
        return CallSubscription(put, put_own=self._build_sink(decode, is_own=True), accept=accept, call=call)

    def _accepts(self, belongs: Callable[[Raw, Any], bool], raw: Raw) -> bool:
        """Returns whether an event is for this call. One that cannot be decoded is for none."""
        try:
            return belongs(raw, self._params)
        except JSON_ERRORS:
            return False
        except HANDLER_ERRORS as error:
            self._fail(error)
            return False

    def _build_sink(self, decode: Callable[[Raw], Any], *, is_own: bool) -> PutEvent:
        buffer = self._buffer
        append = buffer.append
        connection = self._link.connection
        most_events, most_bytes = self._link.limits.stream_events, self._link.limits.stream_bytes

        def put(raw: Raw | None) -> None:
            value = JSON_NULL if raw is None else raw
            append((decode, value, is_own))
            size = self._bytes = self._bytes + len(value)
            self._last_event = connection.last_received
            if size > most_bytes or len(buffer) > most_events:
                self._on_overrun()
            if self._waiters:
                self._wake()

        def put_and_pause(raw: Raw | None) -> None:
            put(raw)
            if not self._is_paused:
                self._pause_if_full()

        return put_and_pause if self._may_pause else put

    def _on_overrun(self) -> None:
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

    def close_with(self, error: BecketError) -> None:
        """Ends the stream with this error, and cancels the call at the other peer."""
        if self._call is not None:
            self._drop_all()
            self._end_with(error, CancelReason.LEFT)

    def _end_with(self, error: BecketError, reason: CancelReason) -> None:
        assert self._call is not None
        self._error = self._error or error
        if not self._is_settled:
            self._cancel_call(self._call, reason)
            self._settle()

    def _wake(self) -> None:
        waiters, self._waiters = self._waiters, []
        wake = self._link.wake
        for waiter in waiters:
            wake(waiter)

    async def _wait(self) -> None:
        """Waits for the next event or the end. Several tasks may wait: all are woken."""
        if self._call is None:
            raise LocalProtocolError(f"{self._method}: the stream is not open: use it in an `async with` block")
        waiter = self._link.loop.create_future()
        self._waiters.append(waiter)
        try:
            await waiter
        finally:
            if waiter in self._waiters:
                self._waiters.remove(waiter)

    def _pause_if_full(self) -> None:
        limits = self._link.limits
        if (
            len(self._buffer) * PAUSE_DIVISOR > limits.stream_events
            or self._bytes * PAUSE_DIVISOR > limits.stream_bytes
        ):
            self._is_paused = True
            self._link.pause_reading(self._holder)

    def _resume(self) -> None:
        if self._is_paused:
            self._is_paused = False
            self._link.resume_reading(self._holder)

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
                except JSON_ERRORS as problem:
                    self._on_undecodable(problem)
                    continue
                return event
            self._resume()
            if self._is_settled:
                if (error := self._failure()) is not None:
                    raise error
                raise StopAsyncIteration
            await self._wait()

    async def batches(self) -> AsyncIterator[list[E | Gap]]:
        """Yields lists of all events since the last one: the cheapest way to consume many."""
        async for event in self:
            yield self._drain_buffer([event])

    def batch_nowait(self) -> list[E | Gap]:
        """Returns the buffered events, without waiting."""
        return self._drain_buffer([])

    def _drain_buffer(self, ready: list[E | Gap]) -> list[E | Gap]:
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
            except JSON_ERRORS as error:
                try:
                    self._on_undecodable(error)
                except BadReply:
                    if not ready:
                        raise
                    break  # it stays the outcome of the stream; earlier events are returned first
            else:
                ready.append(event)
        return ready

    def _on_undecodable(self, error: Exception) -> None:
        """Skips an event that cannot be decoded, or ends the stream with it."""
        if self._is_tolerant:
            self.skipped += 1
            return
        bad = BadReply(method=self._method, problem=f"an event: {error}")
        self._drop_all()
        self._end_with(bad, CancelReason.FAILED)
        raise bad from error

    def return_credit(self) -> None:
        """Returns the credit of one event."""
        if not self._credit:
            return
        self._consumed += 1
        link = self._link
        if self._consumed * 2 >= self._credit and not self._is_settled and link.dialect.credit is not None:
            assert self._call is not None
            params = b'{"id":%b,"n":%d}' % (self._call.id, self._consumed)
            self._consumed = 0
            link.send(link.connection.encode_notification(link.dialect.credit, params))

    @overload
    def on(self, kind: type[K], /) -> Callable[[Callable[[K], Any]], Callable[[K], Any]]: ...

    @overload
    def on(self, kind: type[K], other: type[K2], /) -> Callable[[Callable[[K | K2], Any]], Callable[[K | K2], Any]]: ...

    @overload
    def on(self, *kinds: type[Any]) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]: ...

    def on(self, *kinds: type[Any]) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
        """Registers the decorated function, plain or `async def`, for events of these classes.

        `result` calls it with the events, in order. An event goes to all functions registered for its class."""

        def register(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
            self._event_handlers.append((kinds, EventHandler(function)))
            return function

        return register

    async def result(self) -> R:
        """Returns the result of the call. Unread events go to the functions of `on`, or are dropped.

        Raises:
            RemoteError, CallTimeout, ConnectionLost, StreamOverrun, BadReply: as for any call.
        """
        if self._event_handlers:
            async for event in self:
                await self._dispatch_event(event)
        while not self._is_settled:
            self._drop_unread()
            await self._wait()
        self._drop_unread()
        if (error := self._failure()) is not None:
            raise error
        assert self._call is not None
        result: R
        result = self._collected if self._collector is not None else self._outbound.outcome(self._call, self._returns)
        return result

    async def _dispatch_event(self, event: E | Gap) -> None:
        for kinds, handler in self._event_handlers:
            if isinstance(event, kinds):
                outcome = handler.function(*((event,) if handler.arity else ()))
                if handler.is_async:
                    await outcome

    def _drop_unread(self) -> None:
        for _, _, is_own in self._buffer:
            if is_own:  # a producer with credit would wait for them for ever
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

    take_ready = RenamedMember("batch_nowait")
    extend = RenamedMember("renew_deadline")
