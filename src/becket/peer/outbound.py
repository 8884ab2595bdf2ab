"""Sends calls, notifications and batches, and returns or raises their outcomes."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence, Set as AbstractSet
from functools import partial
from itertools import repeat
from math import inf
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast

from msgspec import Raw, Struct

from becket.conversion.decode import RESULT_DECODERS, get_result_decoder
from becket.dialects import CallMeta
from becket.dialects.dialect import TAKES_META, begin_params, can_take_meta
from becket.errors import JSON_ERRORS, BadReply, BecketError, DisconnectReason, NotSent, NotSupported
from becket.jsonrpc.calls import NULL_FUTURE, OPEN, OutboundCall
from becket.jsonrpc.json_values import decode_json, encode_json
from becket.limits import Limits
from becket.methods.descriptors import Method, Notification
from becket.peer.event_routing import CallSubscription, EventHandler
from becket.peer.nested_calls import CURRENT_REQUEST, CurrentRequest, bind_to_request

if TYPE_CHECKING:
    from becket.methods.streams import Stream
    from becket.peer.link import Link
    from becket.peer.protocols import LoopFuture
    from becket.peer.streams import CallStream, Overflow

__all__ = ["READY", "BatchCall", "BatchNotify", "Outbound", "encode_notification", "wait_drained"]


class Unset:
    """The type of a default that is distinct from None."""


UNSET: Final = Unset()


def resolve_timeout(timeout: float | Unset | None, limits: Limits) -> float:
    """Returns a timeout in seconds: the link's default if unset, infinity for None."""
    return limits.call_timeout if isinstance(timeout, Unset) else inf if timeout is None else check_seconds(timeout)


def check_seconds(timeout: float) -> float:
    """Returns the timeout. Raises ValueError for `nan`, which no clock ever reaches."""
    if timeout != timeout:
        raise ValueError("`timeout` must be a number of seconds, got nan")
    return timeout


def to_milliseconds(timeout: float) -> int:
    return max(1, round(timeout * 1000))


class BatchCall(Struct, frozen=True):
    """A call within a batch."""

    method: str
    params: object = None
    returns: Any = Any


class BatchNotify(Struct, frozen=True):
    """A notification within a batch."""

    method: str
    params: object = None


class Outbound:
    """The calling half of one link."""

    __slots__ = (
        "_call_slots",
        "_calls",
        "_create_future",
        "_time",
        "_timeout",
        "_transport",
        "_usual_features",
        "_usual_prefix",
        "_usual_timeout",
        "link",
    )

    def __init__(self, link: Link) -> None:
        self.link = link
        self._timeout = link.limits.call_timeout
        # What a call needs, one lookup away: the hottest path of a program.
        self._calls = link.connection.calls
        self._create_future = link.create_future
        self._time = link.time
        self._transport = link.transport
        self._call_slots = link.call_slots
        # Most calls of a link have the same metadata.
        self._usual_timeout = -inf
        self._usual_features: AbstractSet[str] | None = None
        self._usual_prefix = b""

    async def call(
        self,
        method: Any,
        params: object,
        timeout: Any,
        returns: Any,
        on: Mapping[str, Callable[..., Any]] | None = None,
        on_progress: Callable[..., Any] | None = None,
        group: str = "",
    ) -> Any:
        """Calls a method and returns its result; see `Peer.call`."""
        link = self.link
        if method.__class__ is not str and not isinstance(method, str):
            if not isinstance(method, Method):
                raise TypeError(f"`method` must be a name or a `Method`, got {method!r}")
            if timeout is UNSET and method.timeout is not None:
                timeout = method.timeout
            if method.params_to_json is not None:
                params = method.params_to_json(params)
            returns = method.result
            method = method.name
        if timeout is UNSET:
            timeout = self._timeout
        elif timeout is None:
            timeout = inf
        elif timeout != timeout:
            check_seconds(timeout)
        if on or on_progress is not None:
            return await self._call_with_events(
                method, params, timeout, get_result_decoder(returns), on or {}, on_progress
            )
        try:
            decode = RESULT_DECODERS[returns]
        except (KeyError, TypeError):  # the first time, or always for a type expression that cannot be hashed
            decode = get_result_decoder(returns)
        encoded = None if params is None else encode_json(params)
        # Functions in slots are called through a name: as methods they cost three times as much.
        create_future, time = self._create_future, self._time
        call = OutboundCall(method, NULL_FUTURE, time() + timeout, timeout)
        if group:
            call.group = group
        current = CURRENT_REQUEST.get()
        if current is not None:
            current = bind_to_request(call, current, link)
        if features := link.features:
            if (
                current is None
                and timeout == self._usual_timeout
                and features is self._usual_features
                and encoded
                and (encoded != b"{}" if TAKES_META[params.__class__] else can_take_meta(encoded))
            ):
                encoded = self._usual_prefix + encoded[1:]
            else:
                encoded = self._add_meta(call, current, encoded)
        slots = self._call_slots
        if len(self._calls) >= slots.limit or slots.waiters or self._transport.queued:
            await self._wait_for_slot(call, 0 if encoded is None else len(encoded))
        try:
            link.send(link.connection.open_call(call, encoded))
            if call.deadline < link.wakes_at:
                link.wake_at(call.deadline)
            if call.result is None and call.error is None:  # a transport may deliver the response while it sends
                call.future = future = create_future()  # while the other peer has the request already
                await future
        except BaseException:
            link.abandon_call(call)
            raise
        if call.result is None:
            return self.outcome(call, decode)
        try:
            return decode(call.result)
        except JSON_ERRORS as error:
            raise BadReply(method=method, problem=str(error)) from error

    def _add_meta(self, call: OutboundCall, current: CurrentRequest | None, params: bytes | None) -> bytes | None:
        """Returns the params of a call with its metadata, and keeps the prefix of the next ones."""
        link = self.link
        features = link.features
        meta = self._encode_meta(call.timeout, current, None)
        if meta is None:
            return params
        if current is None:
            self._usual_timeout, self._usual_features = call.timeout, features
            self._usual_prefix = begin_params(meta)
        return link.dialect.insert_meta(params, meta, features)

    async def open_call(
        self,
        call: OutboundCall,
        params: object,
        *,
        until: float | None = None,
        credit: int | None = None,
        progress: CallSubscription | None = None,
    ) -> None:
        """Sends a call whose waiter the caller awaits; subscribes to `progress` before the request is sent.

        `until` is the deadline sent to the other peer, if that of the call may be renewed."""
        link = self.link
        if progress is not None and link.progress is None:
            raise NotSupported("progress", f"the dialect {link.dialect.name} does not define it")
        encoded = None if params is None else encode_json(params)
        current = CURRENT_REQUEST.get()
        if current is not None:
            current = bind_to_request(call, current, link)
        token = None
        if link.features:
            timeout = call.timeout if until is None else until - link.time()
            meta = self._encode_meta(timeout, current, credit)
            if meta is not None:
                encoded = link.dialect.insert_meta(encoded, meta, link.features)
        elif progress is not None and link.progress is not None and link.progress.token_codec is not None:
            token = link.event_router.next_token()
            encoded = link.progress.token_codec.insert_token(encoded, token)
        await self._wait_for_slot(call, 0 if encoded is None else len(encoded))
        try:
            frame = link.connection.open_call(call, encoded)
        except BaseException:
            link.call_slots.grant_free_slots()
            raise
        if progress is not None:
            link.event_router.add_progress(call.id, progress, token)
        link.send(frame)
        link.wake_at(call.deadline)

    def stream(
        self,
        method: str | Stream[Any, Any, Any],
        params: object,
        *,
        events: Mapping[str, Any] | None,
        progress: Any,
        returns: Any,
        timeout: float | Unset | None,
        idle_timeout: float | Unset | None,
        overflow: Overflow | None,
        pause_connection: bool,
    ) -> CallStream[Any, Any]:
        """Returns a call with its events, not opened yet.

        Events that the descriptor's reader cannot decode are skipped and counted."""
        from becket.methods.streams import EventReader  # programs without streams start without these modules
        from becket.peer.streams import CallStream, Overflow

        stream = None if isinstance(method, str) else method
        if stream is not None:
            returns = stream.result
            timeout = stream.timeout if isinstance(timeout, Unset) else timeout
            if isinstance(idle_timeout, Unset) and stream.idle_timeout is not None:
                idle_timeout = stream.idle_timeout
        wants_progress = (events is None and stream is None) or progress is not None
        strict = {name: EventReader[Any](get_result_decoder(kind)) for name, kind in (events or {}).items()}
        return CallStream(
            self,
            method if isinstance(method, str) else method.name,
            params if stream is None or stream.params_to_json is None else stream.params_to_json(params),
            events=strict if stream is None else stream.events,
            progress=get_result_decoder(Any if progress is None else progress) if wants_progress else None,
            returns=get_result_decoder(returns),
            timeout=inf if timeout is None or isinstance(timeout, Unset) else check_seconds(timeout),
            idle_timeout=resolve_timeout(idle_timeout, self.link.limits),
            overflow=overflow or Overflow.END,
            pause_connection=pause_connection,
            is_tolerant=stream is not None,
            gathering=None if stream is None or stream.gather is None else stream.gather(params),
            cancel=None if stream is None or stream.cancel is None else partial(stream.cancel, params),
        )

    def call_detached(self, method: Method[Any, Any] | Notification[Any], params: object) -> None:
        """Sends a request whose response is ignored, or a notification. It waits for no slot: it frees one."""
        if isinstance(method, Notification):
            self.link.send_event(self.link.connection.encode_notification(*encode_notification(method, params)))
            return
        if method.params_to_json is not None:
            params = method.params_to_json(params)
        timeout = self._timeout if method.timeout is None else method.timeout
        self._send_aside(method.name, None if params is None else encode_json(params), timeout)

    def ping_aside(self, method: str) -> None:
        """Sends a ping whose response is only counted as traffic."""
        self._send_aside(method, None, self._timeout)

    def _send_aside(self, method: str, params: bytes | None, timeout: float) -> None:
        link = self.link
        call = OutboundCall(method, NULL_FUTURE, link.time() + timeout, timeout)
        link.send(link.connection.open_call(call, params))
        link.wake_at(call.deadline)

    async def _call_with_events(
        self,
        method: str,
        params: object,
        timeout: float,
        decode: Callable[[Raw], Any],
        on: Mapping[str, Callable[..., Any]],
        on_progress: Callable[..., Any] | None,
    ) -> Any:
        """Calls a method, passes the events before its response to these functions, and returns the result.

        Plain functions are called by the reader, in order. If one of them can wait, all are called from here."""
        handlers = {name: EventHandler(function) for name, function in on.items()}
        progress = None if on_progress is None else EventHandler(on_progress)
        link = self.link
        is_async = any(handler.is_async for handler in (*handlers.values(), progress) if handler is not None)
        if is_async and link.loop.is_reentrant:
            raise TypeError(f"a callback of {method!r} is `async def`: the blocking runtime needs a plain function")
        if is_async or link.loop.is_reentrant:  # where a plain function may wait, the next event must not overtake it
            return await self._call_and_await_events(method, params, timeout, decode, handlers, progress)
        waiter = link.loop.create_future()
        call = OutboundCall(method, waiter, link.loop.time() + timeout, timeout)
        failures: list[Exception] = []

        def release() -> None:
            for name, subscription in subscriptions:
                link.event_router.remove(name, subscription)
            link.event_router.remove_progress(call.id)

        def fail(error: Exception) -> None:
            failures.append(error)
            release()
            link.abandon_call(call)
            link.wake(waiter)

        subscriptions = [(name, handler.build_subscription(call, fail)) for name, handler in handlers.items()]
        for name, subscription in subscriptions:
            link.event_router.add(name, subscription)
        try:
            progress_subscription = None if progress is None else progress.build_subscription(call, fail)
            await self.open_call(call, params, progress=progress_subscription)
            await waiter
        except BaseException:
            link.abandon_call(call)
            raise
        finally:
            release()
        if failures:
            raise failures[0]
        return self.outcome(call, decode)

    async def _call_and_await_events(
        self,
        method: str,
        params: object,
        timeout: float,
        decode: Callable[[Raw], Any],
        handlers: Mapping[str, EventHandler],
        progress: EventHandler | None,
    ) -> Any:
        from becket.methods.streams import EventReader
        from becket.peer.streams import CallStream

        stream = CallStream[tuple[EventHandler, Any], Any](
            self,
            method,
            params,
            events={name: EventReader(handler.decode_with_handler) for name, handler in handlers.items()},
            progress=None if progress is None else progress.decode_with_handler,
            returns=decode,
            timeout=timeout,
        )
        async with stream as run:
            async for event in run:
                handler, value = cast(
                    "tuple[EventHandler, Any]", event
                )  # no gap: this stream ends rather than dropping events
                outcome = handler.function(*((value,) if handler.arity else ()))
                if handler.is_async:
                    await outcome
                lost = self.link.close_reason
                if lost is not None and lost.reason is DisconnectReason.LOCAL_CLOSE:
                    break  # events that came before the other peer left are still delivered
            return await run.result()

    def notify(self, method: str | Notification[Any], params: object) -> Coroutine[Any, Any, None]:
        """Sends a notification at once. The returned awaitable waits while the send queue is full."""
        link = self.link
        if link.transport.queued > link.limits.send_queue:
            raise NotSent("bytes that the other peer has not read", link.limits.send_queue)
        name, encoded = encode_notification(method, params)
        return wait_drained(link) if link.send_event(link.connection.encode_notification(name, encoded)) else READY

    def notify_nowait(self, method: str | Notification[Any], params: object) -> None:
        """Sends a notification, or raises Busy when the send queue is full."""
        link = self.link
        name, encoded = encode_notification(method, params)
        if link.queued + len(encoded or b"") > link.limits.send_queue:
            raise NotSent("bytes that the other peer has not read", link.limits.send_queue)
        link.send(link.connection.encode_notification(name, encoded))

    async def batch(self, members: Sequence[BatchCall | BatchNotify], timeout: float) -> list[Any]:
        """Sends all in one frame and returns an outcome for each call: its result, or the error that it would raise."""
        link = self.link
        requests = [member for member in members if isinstance(member, BatchCall)]
        shared = OutboundCall("", NULL_FUTURE, link.loop.time() + timeout, timeout)  # what all its calls have in common
        meta = None
        if requests:
            current = CURRENT_REQUEST.get()
            if current is not None:
                current = bind_to_request(shared, current, link)
            if link.features:
                meta = self._encode_meta(shared.timeout, current, None)
        deadline, timeout, chain = shared.deadline, shared.timeout, shared.chain
        calls = [
            OutboundCall(member.method, link.loop.create_future(), deadline, timeout, chain=chain)
            for member in requests
        ]
        encoded = [None if member.params is None else encode_json(member.params) for member in requests]
        if meta is not None:
            encoded = [link.dialect.insert_meta(params, meta, link.features) for params in encoded]
        notifications = [
            (member.method, None if member.params is None else encode_json(member.params))
            for member in members
            if isinstance(member, BatchNotify)
        ]
        slots = link.call_slots
        if calls and (link.transport.queued or slots.is_full or slots.waiters):  # it takes one slot for all its calls
            await self._wait_for_slot(calls[0], sum(len(params or b"") for params in encoded))
        try:
            frame = link.connection.open_batch(list(zip(calls, encoded, strict=True)), notifications)
        except BaseException:
            link.call_slots.grant_free_slots()
            raise
        link.send(frame)
        if calls:
            link.wake_at(deadline)
        try:
            for call in calls:
                await cast("LoopFuture", call.future)
        except BaseException:
            for call in calls:
                link.abandon_call(call)
            raise
        return [self._outcome_or_error(call, member.returns) for call, member in zip(calls, requests, strict=True)]

    def _outcome_or_error(self, call: OutboundCall, returns: Any) -> Any:
        try:
            return self.outcome(call, get_result_decoder(returns))
        except BecketError as error:
            return error

    def outcome(self, call: OutboundCall, decode: Callable[[Raw], Any]) -> Any:
        """Returns the result of a settled call, or raises its error."""
        if call.error is not None:
            raise call.error
        assert call.result is not None
        try:
            return decode(call.result)
        except JSON_ERRORS as error:
            raise BadReply(method=call.method, problem=str(error)) from error

    def _encode_meta(self, timeout: float, current: CurrentRequest | None, credit: int | None) -> bytes | None:
        """Returns the metadata of a call, or None."""
        link = self.link
        timeout_ms = to_milliseconds(timeout) if timeout < inf and "deadline" in link.features else None
        if current is None and credit is None:
            return None if timeout_ms is None else b'{"timeout_ms":%d}' % timeout_ms
        depth = 0
        parent: int | str | None = None
        if current is not None:
            depth = current.request.depth + 1
            if current.link is link and current.request.state is OPEN:
                parent = decode_json(current.request.id)
        if depth > link.limits.call_depth:
            raise NotSent("calls within calls", link.limits.call_depth)
        return encode_json(CallMeta(timeout_ms=timeout_ms, parent=parent, depth=depth, credit=credit))

    async def _wait_for_slot(self, call: OutboundCall, size: int) -> None:
        """Waits until the call has a slot and its bytes have room. A call that was never sent is busy, not timed
        out."""
        link = self.link
        limits = link.limits
        link.call_slots.grant_free_slots()  # slots freed within this chunk are for the callers that wait already
        link.unsent_calls.append(call)
        try:
            while link.close_reason is None:
                if call.error is not None:
                    raise call.error
                if link.queued and link.queued + size > limits.send_queue:
                    if link.loop.time() >= call.deadline:
                        raise NotSent("bytes that the other peer has not read", limits.send_queue)
                    link.wake_at(call.deadline)
                    await link.wait_for_drain()
                elif link.call_slots.is_full:
                    if link.loop.time() >= call.deadline:
                        raise NotSent("calls in flight", limits.outbound_calls)
                    link.wake_at(call.deadline)
                    await link.call_slots.wait(call)
                else:
                    return
        except BaseException:
            link.call_slots.grant_free_slots()  # it may have had a slot, and found no room then
            raise
        finally:
            link.unsent_calls.remove(call)


def encode_notification(method: str | Notification[Any], params: object) -> tuple[str, bytes | None]:
    """Returns the name of a notification and its params as JSON."""
    if not isinstance(method, str):
        if method.params_to_json is not None:
            params = method.params_to_json(params)
        method = method.name
    return method, None if params is None else encode_json(params)


async def wait_drained(link: Link) -> None:
    """Waits while the send queue is full.

    Raises:
        Busy: the other peer has not read for as long as a call may take.
    """
    until = link.loop.time() + link.limits.call_timeout
    while link.queued > link.limits.send_high and link.close_reason is None:
        if link.loop.time() >= until:
            raise NotSent("bytes that the other peer has not read", link.limits.send_queue)
        link.wake_at(until)
        await link.wait_for_drain()


class ReadyAwaitable:
    """An awaitable that is complete: the operation is done.

    One object serves every call, however often it is awaited or passed to a task group, and need not be awaited."""

    __slots__ = ()
    __await__ = staticmethod(repeat(iter(())).__next__)  # all of it in C: always the same iterator, which is at its end

    # What a task group reads before it cancels a task. A coroutine written in C has no frame either.
    cr_frame = None
    cr_running = cr_suspended = False

    def send(self, value: None, /) -> NoReturn:
        raise StopIteration

    def throw(self, error: BaseException, /) -> NoReturn:
        raise error

    def close(self) -> None: ...


READY = cast("Coroutine[Any, Any, None]", ReadyAwaitable())
