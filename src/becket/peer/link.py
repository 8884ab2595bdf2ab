"""Owns one connection at run time: its bytes, deadlines, backpressure and close reason.

It feeds received bytes to the connection and dispatches the events, coalesces writes, wakes at the next deadline, and
ends once, for one reason, from any task. Protocol rules are in the connection, and users' functions are called in
`inbound` and `streams`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from math import inf
from time import monotonic, thread_time
from typing import TYPE_CHECKING

from becket._loggers import peer_logger
from becket.dialects import Dialect
from becket.errors import BadFrame, BecketError, CallTimeout, ConnectionLost, DisconnectReason, RemoteProtocolError
from becket.framing.framing import Frame, SkippedFrame
from becket.jsonrpc.calls import OutboundCall
from becket.jsonrpc.connection import Connection, build_connection_lost
from becket.jsonrpc.messages import Failure
from becket.limits import Limits
from becket.peer.call_slots import CallSlots
from becket.peer.event_routing import EventRouter
from becket.peer.transport.fair_share import LIGHT, Account, AdaptiveReadSize, MessageRateLimiter
from becket.peer.transport.fd import READ_SIZE, FdTransport

if TYPE_CHECKING:
    from becket.peer.protocols import (
        ConnectionLostFactory,
        InboundHandler,
        LongLivedStream,
        Loop,
        LoopFuture,
        Timer,
        Transport,
    )
    from becket.permissions.gate import Gate

__all__ = ["Link"]

MAX_QUEUE_FACTOR = 4  # calls and notifications stop at 1; responses in progress may fill the rest
MAX_COALESCED_BYTES = READ_SIZE  # bytes of one write
FLUSH_AFTER_FRAMES = 16  # frames sent before the rest of a chunk is received: a write costs as much as one frame
LARGE = 16 * 1024  # bytes of a frame that may take long by itself
QUEUE_HEADROOM = 4  # how much larger than one write the limits of the queue must be


class Link:
    """Bytes, timer and end of one connection."""

    __slots__ = (
        "_account",
        "_buffer",
        "_buffered",
        "_close_callbacks",
        "_drain_waiters",
        "_ending",
        "_handler",
        "_has_backlog",
        "_has_input_ended",
        "_has_written_this_turn",
        "_is_coalescing",
        "_is_flush_planned",
        "_is_over_share",
        "_is_receiving",
        "_ledger",
        "_longest_timed",
        "_max_coalesced_bytes",
        "_partial",
        "_pause_reasons",
        "_rate_limiter",
        "_read_size",
        "_slot_waiters",
        "_timer",
        "_transport_closed_waiters",
        "_used_before",
        "call_slots",
        "close_reason",
        "connection",
        "create_future",
        "dialect",
        "event_router",
        "features",
        "gate",
        "is_for_others",
        "is_transport_closed",
        "limits",
        "long_lived_streams",
        "loop",
        "name",
        "on_cancel",
        "on_notification",
        "on_request",
        "progress",
        "time",
        "transport",
        "unsent_calls",
        "wake",
        "wakes_at",
    )

    def __init__(
        self, loop: Loop, transport: Transport, dialect: Dialect, connection: Connection, *, name: str
    ) -> None:
        self.loop = loop
        self.time = loop.time
        self.create_future = loop.create_future
        self.wake = loop.wake
        self.transport = transport
        self.dialect = dialect
        self.connection = connection
        self.limits: Limits = connection.limits
        self.name = name
        self.features = dialect.features
        self.progress = dialect.progress
        self.gate: Gate | None = None
        self.close_reason: ConnectionLost | None = None
        self.is_transport_closed = False
        self.is_for_others = False  # whether a call was ever made here on behalf of another caller
        self._close_callbacks: list[Callable[[], object]] = []
        self._transport_closed_waiters: list[LoopFuture] = []
        self._drain_waiters: list[LoopFuture] = []
        loop.workers = self.limits.workers
        self.call_slots = CallSlots(connection.calls, self.limits.outbound_calls, loop)
        self._slot_waiters = self.call_slots.waiters
        self.unsent_calls: list[OutboundCall] = []  # those that wait for a slot, or for room in the send queue
        self.long_lived_streams: set[LongLivedStream] = set()
        self.event_router = EventRouter(dialect.progress, connection.direct_handlers, is_marked=bool(dialect.features))
        connection.should_yield = self._flush_and_check_turn
        # writing
        self._buffer: list[bytes] = []
        self._buffered = 0
        self._is_coalescing = False  # whether the next frames are sent together
        # Coalesced frames do not count as queued: where the limits are that small, none are coalesced.
        least = min(self.limits.send_high, self.limits.send_queue)
        self._max_coalesced_bytes = MAX_COALESCED_BYTES if least >= QUEUE_HEADROOM * MAX_COALESCED_BYTES else 0
        self._has_written_this_turn = False
        self._is_flush_planned = False
        # reading
        self._is_receiving = False
        self._has_backlog = False  # some frames were put off to the next turn
        self._pause_reasons: set[str] = set()
        self._ledger = loop.ledger
        self._account = Account(loop.ledger, self.limits.but(turn_seconds=inf) if loop.is_reentrant else self.limits)
        self._is_over_share = False
        self._used_before = 0.0  # processor time of this thread before the turn
        self._ending: ConnectionLostFactory | None = None
        connection.clock = monotonic  # the loop's clock may stand still within an iteration, as uvloop's does
        loop.charge_to(self._account, self._charge)
        self._read_size: AdaptiveReadSize | None = None
        if isinstance(transport, FdTransport) and not loop.is_reentrant:
            self._read_size = AdaptiveReadSize(transport, self.limits)
        self._rate_limiter = MessageRateLimiter(self.limits, loop.time()) if self.limits.message_rate else None
        self._has_input_ended = False
        # time
        self._timer: Timer | None = None
        self.wakes_at = inf
        self._partial: tuple[int, float] | None = None
        # Bytes of one frame that extend its deadline; a skipped oversized response may be larger than a frame.
        self._longest_timed = self.limits.longest_skipped if dialect.skips_oversize else self.limits.frame

    def limit_features(self, features: Iterable[str]) -> None:
        """Restricts the optional features of the dialect to those that both peers have announced.

        Inbound messages of other features are still understood: the other peer may have sent them before it knew."""
        dialect = self.dialect
        self.features = dialect.features.intersection(features)
        if dialect.features:
            self.connection.can_send_cancel = "cancel" in self.features
            self.progress = dialect.progress if "progress" in self.features else None

    def running(self) -> list[object]:
        """Returns an object for each handler that has begun and has not returned. From any thread."""
        running = self._handler.running()
        return [*running, self] if self.close_reason is not None and self.loop.is_in_handler else running

    def start(self, server: InboundHandler) -> None:
        """Starts reading. Nothing arrives before the loop's next turn, so handlers can still be registered."""
        self._handler = server
        self._ledger.join(self._account)
        self.on_request = server.on_request
        self.on_notification = server.on_notification
        self.on_cancel = server.on_cancel
        self.connection.set_receiver(self)
        # waiters are woken at once; freed slots are granted after each chunk
        self.connection.wake = self.wake
        self.transport.start(self.loop, self)

    # -- in

    def data_received(self, data: bytes) -> None:
        if self.close_reason is not None:
            return
        connection, time = self.connection, self.time
        framing = connection.framing
        connection.last_received = time()
        frames = framing.feed(data)
        if (
            len(frames) == 1
            and not self._has_backlog
            and not (self._ledger.spent and self._account.must_wait(is_small(frames[0]), monotonic()))
        ):  # one call after another: nothing to coalesce, nothing to pace
            self._has_written_this_turn = False
            # ignored for the reason given in `Connection.resume_receiving`
            connection.codec.decode_frames(frames, connection)  # pyright: ignore[reportArgumentType]
        else:
            self._receive_frames(frames)
        if self._slot_waiters:
            self.call_slots.grant_free_slots()
        if self._rate_limiter is not None:
            self._limit_rate(self._rate_limiter)
        if (violation := connection.violation or framing.error) is not None:
            if not self._has_backlog:  # messages before the violation are handled first
                self._disconnect_on_violation(violation)
        elif framing.pending or self._partial is not None:
            self._time_partial_frame(connection.last_received)

    def _limit_rate(self, limiter: MessageRateLimiter) -> None:
        pause = limiter.consume(self.connection.framing.frames, self.connection.last_received)
        if pause:
            self.pause_reading("rate")
            self.loop.call_later(pause, self._end_rate_pause)

    def _receive_frames(self, frames: list[Frame | SkippedFrame]) -> None:
        connection = self.connection
        if self._has_backlog:
            connection.queue_frames(frames)
            return
        if frames and self._ledger.spent and self._account.must_wait(False, monotonic()):
            connection.queue_frames(frames)
            self._defer_backlog()
            return
        open_calls = len(connection.calls)
        if self._take_turn(partial(connection.receive_frames, frames)):
            if len(connection.calls) < open_calls:
                self._coalesce_writes(self.loop.call_after_wakeups)
            elif connection.requests:
                self._coalesce_writes(self.loop.call_soon)
        self.flush()
        if self._read_size is not None:
            self._read_size.record(monotonic() - connection.began, self._account.turn)

    def _take_turn(self, receive: Callable[[], bool]) -> bool:
        """Handles frames, as many as fit into a turn; returns whether that were all. The others are the backlog."""
        connection = self.connection
        connection.began = monotonic()
        connection.until = connection.began + self._account.turn
        self._used_before = thread_time()
        self._is_coalescing = self._is_receiving = True
        is_done = False  # also when a signal handler raises in the middle: the other frames are not lost
        try:
            is_done = receive()
        finally:
            if not is_done:
                self._defer_backlog()
            self._is_receiving = False
            self._is_coalescing = self._is_flush_planned
            self._has_written_this_turn = False
        return is_done

    def on_response(self, call: OutboundCall, /) -> None:
        """Wakes the waiter of an outbound call: its response has arrived."""
        self.wake(call.future)
        if self._slot_waiters:
            self.call_slots.grant_free_slots()

    def _coalesce_writes(self, call: Callable[[Callable[[], object]], object]) -> None:
        """Coalesces what several tasks send when `call` resumes them."""
        self._is_coalescing = True
        if not self._is_flush_planned:
            self._is_flush_planned = True
            call(self._flush_soon)

    def _flush_and_check_turn(self) -> bool:
        """Sends the responses so far, so that the other peer can go on, and returns whether this link's turn is
        over."""
        if len(self._buffer) >= FLUSH_AFTER_FRAMES:
            self.flush()
        connection = self.connection
        now = monotonic()
        if now <= connection.until:
            return False
        left = self._account.turn - (thread_time() - self._used_before)
        connection.until = now + left  # the thread may have had no core for a while
        return left <= 0.0

    def _defer_backlog(self) -> None:
        """Yields the loop; frames that have arrived are handled in the next turn."""
        if self.close_reason is None:
            self._has_backlog = True
            self.pause_reading("backlog")
            self._continue_soon()

    def _continue_soon(self) -> None:
        loop = self.loop
        self._ledger.wait(self._account, partial(loop.run_turn, self._resume_backlog), loop.call_soon)

    def _resume_backlog(self) -> None:
        if self.close_reason is not None or not self._has_backlog or self._is_over_share:
            return
        self.connection.last_received = self.time()
        if self.loop.is_reentrant:  # a handler may wait for what arrives next
            self._has_backlog = False
            self.resume_reading("backlog")
        is_done = self._take_turn(self._read_backlog)
        self.flush()
        if not is_done:
            return
        self._has_backlog = False
        if self._ending is not None:
            self._end_input(self._ending)
        elif (violation := self.connection.violation or self.connection.framing.error) is not None:
            self._disconnect_on_violation(violation)
        else:
            self.resume_reading("backlog")

    async def next_iteration(self) -> None:
        """Yields the loop; resumes after links that waited before."""
        waiter = self.create_future()
        self._ledger.wait(self._account, partial(self.wake, waiter), self.loop.call_soon)
        await waiter

    def _read_backlog(self) -> bool:
        """Handles the rest of a chunk; returns False if the turn ends before it is done."""
        is_done = self.connection.resume_receiving()
        if self._slot_waiters:
            self.call_slots.grant_free_slots()
        return is_done

    def _charge(self, used: float, elapsed: float) -> None:
        """Charges a turn's processor time to this link: beyond its share, it pauses until the other links had
        theirs."""
        if not self._ledger.is_shared:
            return
        if used > LIGHT:
            self._ledger.spend(used, self.loop.call_soon)
        pause = self._account.charge(used, elapsed, monotonic())
        # what arrived before the end is bounded, and the end must not wait
        if pause and not self._is_over_share and not self._has_input_ended and self.close_reason is None:
            self._is_over_share = True
            self.pause_reading("share")
            self.loop.call_later(pause, self._end_share_pause)

    def _end_share_pause(self) -> None:
        self._is_over_share = False
        self.resume_reading("share")
        if self._has_backlog:
            self._continue_soon()

    def _end_rate_pause(self) -> None:
        self.resume_reading("rate")

    def before_wait(self) -> None:
        """Flushes both directions before a handler waits within this link's own callback."""
        self._is_coalescing = False
        self._has_written_this_turn = False
        if self._is_receiving:
            self._read_backlog()
        self.flush()

    def pause_reading(self, who: str) -> None:
        """Stops reading until every holder of a pause has released it."""
        if not self._pause_reasons:
            self.transport.pause()
        self._pause_reasons.add(who)

    def resume_reading(self, who: str) -> None:
        """Releases a `pause_reading`."""
        if who in self._pause_reasons:
            self._pause_reasons.discard(who)
            if not self._pause_reasons and not self._has_input_ended and self.close_reason is None:
                self.transport.resume()

    def input_ended(self, describe: ConnectionLostFactory) -> None:
        """Ends the inbound direction: the other peer sends no more."""
        if self.close_reason is not None:
            return
        self._has_input_ended = True
        if self._has_backlog:  # what arrived before the end is handled first, in as many turns as it takes
            self._ending = describe
            self._is_over_share = False
            self._continue_soon()
        else:
            self._end_input(describe)

    def _end_input(self, describe: ConnectionLostFactory) -> None:
        truncated = self.connection.receive_eof()
        lost = describe(str(truncated or ""))
        if truncated is not None and lost.reason is DisconnectReason.REMOTE_CLOSE:
            self._disconnect_on_violation(truncated)
        elif lost.reason is DisconnectReason.REMOTE_CLOSE:
            self._flush_then_disconnect(lost)  # the other peer may have closed only its sending direction
        else:
            self.disconnect(lost)

    def _disconnect_on_violation(self, violation: RemoteProtocolError) -> None:
        if not self.connection.calls:  # else the pending calls report it
            peer_logger().warning("%s: the link has ended: %s", self.name, violation)
        self.disconnect(build_connection_lost(violation))

    def on_anomaly(self, oddity: Failure | SkippedFrame) -> None:
        """Logs a message that belongs to no call."""
        if isinstance(oddity, Failure):
            odd = f"an error that belongs to no call: {oddity.message!r} ({oddity.code})"
        else:
            odd = f"dropped: {oddity.error}"
        peer_logger().warning("%s: %s", self.name, odd)

    # -- out

    @property
    def queued(self) -> int:
        """Bytes that were sent and have not left this process."""
        return self._buffered + self.transport.queued

    def send(self, frame: bytes) -> None:
        """Queues a frame: a single one is written at once, several of one turn are written together. An empty one is
        nothing to send."""
        if not frame:
            return
        if self._is_coalescing:
            self._buffer.append(frame)
            size = self._buffered = self._buffered + len(frame)
            if size > self._max_coalesced_bytes or len(self._buffer) >= FLUSH_AFTER_FRAMES:
                self.flush()
        elif self._has_written_this_turn:
            if self.close_reason is None:
                self._coalesce_writes(self.loop.call_soon)
                self.send(frame)
        else:
            self._has_written_this_turn = True
            self.transport.write(frame)

    def send_event(self, frame: bytes) -> bool:
        """Sends the frame of a notification; returns whether the send queue is so full that the sender should wait.

        The hottest path: the body of `send` is repeated here to save a call."""
        if not self._is_coalescing:
            self.send(frame)
        else:
            self._buffer.append(frame)
            size = self._buffered = self._buffered + len(frame)
            if size > self._max_coalesced_bytes:
                self.flush()
        return self.transport.queued > self.limits.send_high

    def flush(self) -> None:
        """Writes the coalesced frames to the transport."""
        if self._buffer:
            data = self._buffer[0] if len(self._buffer) == 1 else b"".join(self._buffer)
            self._buffer.clear()
            self._buffered = 0
            self.transport.write(data)
            if self.transport.queued > MAX_QUEUE_FACTOR * self.limits.send_queue:
                excess = f"the peer does not read: {self.transport.queued} bytes are queued for it"
                self.disconnect(ConnectionLost(DisconnectReason.REMOTE_VIOLATION, excess))

    def _flush_soon(self) -> None:
        self._is_flush_planned = self._is_coalescing = self._has_written_this_turn = False
        self.flush()

    def write_queue_drained(self) -> None:
        waiters, self._drain_waiters = self._drain_waiters, []
        for waiter in waiters:
            self.wake(waiter)

    async def wait_for_drain(self) -> None:
        """Waits until something was written or settled. The caller then checks its own condition again."""
        waiter = self.loop.create_future()
        self._drain_waiters.append(waiter)
        try:
            await waiter
        except BaseException:
            if waiter in self._drain_waiters:
                self._drain_waiters.remove(waiter)
            raise

    def abandon_call(self, call: OutboundCall) -> None:
        """Cancels a call whose response is no longer wanted: notifies the other peer and frees the slot."""
        self.send(self.connection.cancel_call(call))
        self.call_slots.grant_free_slots()

    def end_calls(self, group: str, build_error: Callable[[], BecketError]) -> None:
        """Ends the calls and streams of a group, each with an error of its own, and cancels them at the other peer."""
        for call in [call for call in self.connection.calls.values() if call.group == group]:
            if call.stream is not None:
                call.stream.close_with(build_error())
            else:
                self.abandon_call(call)
                call.error = build_error()
                self.wake(call.future)
        for stream in [stream for stream in self.long_lived_streams if stream.group == group]:
            stream.close_with(build_error())
        for call in self.unsent_calls:
            if call.group == group:
                call.error = build_error()
        self.call_slots.wake_failed()
        self.write_queue_drained()

    # -- time

    def wake_at(self, time: float) -> None:
        """Makes sure that deadlines are checked by then."""
        if time < self.wakes_at and self.close_reason is None:
            if self._timer is not None:
                self._timer.cancel()
            self.wakes_at = time
            self._timer = self.loop.call_later(time - self.loop.time(), self._check_deadlines)

    def _check_deadlines(self) -> None:
        # one timer and a walk over the pending calls, of which there are at most `outbound_calls`
        self._timer = None
        self.wakes_at = inf
        if self.close_reason is not None:
            return
        now = self.loop.time()
        connection = self.connection
        for call in connection.find_expired_calls(now):
            if call.stream is not None:  # its deadline moves with its events
                call.deadline = call.stream.renew_deadline()
                if call.deadline > now:
                    continue
            self.abandon_call(call)
            call.error = CallTimeout(call.method, call.timeout)
            self.wake(call.future)
        for request in connection.find_expired_requests(now):
            request.deadline = inf
            self._handler.on_deadline(request)
        streams_until = min([stream.expire(now) for stream in tuple(self.long_lived_streams)], default=inf)
        self.write_queue_drained()
        self.wake_at(min(connection.next_deadline(), self.call_slots.expire(now), streams_until))
        if self._partial is not None:
            self._time_partial_frame(now)

    def _time_partial_frame(self, now: float) -> None:
        """Applies a deadline to a partly received frame; progress below a fair rate does not extend it."""
        framing = self.connection.framing
        pending = framing.pending
        if not pending:
            self._partial = None
            return
        if self._partial is None or self._partial[0] != framing.frames:
            self._partial = (framing.frames, now)
        fair = min(pending, self._longest_timed) / self.limits.partial_frame_rate
        deadline = self._partial[1] + self.limits.partial_frame + fair
        if now >= deadline:
            self._disconnect_on_violation(BadFrame(f"a frame was not finished within {now - self._partial[1]:.1f} s"))
        else:
            self.wake_at(deadline)

    # -- the end

    def disconnect(self, lost: ConnectionLost) -> None:
        """Ends the link, now and once: every pending call settles with this reason."""
        if self.close_reason is not None:
            return
        self.close_reason = lost
        self._ledger.leave(self._account)
        self._buffer.clear()
        self._buffered = 0
        self._is_coalescing = self._has_backlog = False
        self.connection.direct_handlers.clear()  # bytes that arrive from now on are dropped
        requests = list(self.connection.requests.values())
        for call in self.connection.close(lost):
            self.wake(call.future)
        streams, self.long_lived_streams = self.long_lived_streams, set()
        for stream in streams:
            stream.disconnect(lost)
        self._handler.close(requests)
        self.write_queue_drained()
        self.call_slots.close()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        callbacks, self._close_callbacks = self._close_callbacks, []
        for callback in callbacks:
            callback()
        self.transport.close()

    def transport_closed(self) -> None:
        """Records that the transport is closed."""
        self.is_transport_closed = True
        waiters, self._transport_closed_waiters = self._transport_closed_waiters, []
        for waiter in waiters:
            self.wake(waiter)
        self.loop.call_soon(self.loop.close)

    async def wait_closed(self) -> ConnectionLost:
        """Waits until the link has ended and returns why."""
        if self.close_reason is None:
            waiter = self.loop.create_future()
            callback = partial(self.wake, waiter)
            self.add_close_callback(callback)
            try:
                await waiter
            finally:
                self.remove_close_callback(callback)
        assert self.close_reason is not None
        return self.close_reason

    def add_close_callback(self, callback: Callable[[], object]) -> None:
        """Calls `callback` when the link ends, or now if it has ended."""
        if self.close_reason is None:
            self._close_callbacks.append(callback)
        else:
            callback()

    def remove_close_callback(self, callback: Callable[[], object]) -> None:
        """Removes a close callback."""
        if callback in self._close_callbacks:
            self._close_callbacks.remove(callback)

    async def aclose(self, because: str = "") -> None:
        """Ends the link in order: flushes the queue, ends the process, and waits until both are gone."""
        if not self.connection.is_closing:
            self.connection.begin_closing()
            self._flush_then_disconnect(ConnectionLost(DisconnectReason.LOCAL_CLOSE, because))
        if not self.is_transport_closed:
            waiter = self.loop.create_future()
            self._transport_closed_waiters.append(waiter)
            await self.loop.wait_shielded(waiter)

    def _flush_then_disconnect(self, lost: ConnectionLost) -> None:
        """Flushes what was sent, for a bounded time, then ends the link."""
        self._is_coalescing = self._has_written_this_turn = False
        self.flush()
        if self.transport.queued and self.close_reason is None:
            self.loop.spawn(self._flush_and_disconnect(lost))
        else:
            self.disconnect(lost)

    async def _flush_and_disconnect(self, lost: ConnectionLost) -> None:
        until = self.loop.time() + self.limits.flush_grace
        try:
            while self.transport.queued and self.loop.time() < until and self.close_reason is None:
                self.wake_at(until)  # each time: an earlier deadline may have taken the timer
                await self.wait_for_drain()
        finally:
            self.disconnect(lost)


def is_small(frame: Frame | SkippedFrame) -> bool:
    return isinstance(frame, SkippedFrame) or len(frame) <= LARGE
