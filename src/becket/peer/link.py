"""One link on an event loop: the owner of its bytes, its timer and its end.

It feeds what arrives to the connection and hands the events on, joins what leaves, wakes at the next deadline, and ends
once, for one reason, from wherever it is told to. No rule of the protocol stands here (that is the connection's), and
no user's function is called here (that is `inbound`'s and `streams`').
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from math import inf
from time import monotonic, thread_time
from typing import TYPE_CHECKING

from becket.dialects import Dialect
from becket.errors import BadFrame, CallTimeout, ConnectionLost, DisconnectReason, RemoteProtocolError
from becket.limits import Limits
from becket.peer.claims import Claims
from becket.peer.pacing import LIGHT, Account, Meter, Pace
from becket.peer.transport import READ_SIZE, FdTransport, wake
from becket.peer.window import Window
from becket.rpc.connection import Connection, reason_of
from becket.rpc.messages import Failure
from becket.rpc.records import Call
from becket.wire.framing import Frame, Skipped

if TYPE_CHECKING:
    from becket.methods.permissions import Gate
    from becket.peer.roles import Describe, Loop, Outlasts, Server, Timer, Transport, Waiter

__all__ = ["Link"]

MOST_QUEUES = 4  # calls and notifications stop at one; answers that were on their way may fill the others
MOST_JOINED = READ_SIZE  # bytes that leave together
ENOUGH = 16  # frames that leave before the rest of a piece is taken: to write costs as much as to make one of them
LARGE = 16 * 1024  # bytes of a frame that may take long by itself
SLACK = 4  # and how much larger the limits of the queue must be


class Link:
    """Bytes, timer and end of one connection."""

    __slots__ = (
        "_account",
        "_buffer",
        "_buffered",
        "_closed_waiters",
        "_done_waiters",
        "_ending",
        "_has_ended_input",
        "_holders",
        "_is_behind",
        "_is_flush_planned",
        "_is_over_share",
        "_is_taking",
        "_joins",
        "_ledger",
        "_longest_timed",
        "_meter",
        "_most_joined",
        "_pace",
        "_partial",
        "_places",
        "_room_waiters",
        "_server",
        "_timer",
        "_used_before",
        "_wrote_alone",
        "acknowledged",
        "claims",
        "connection",
        "create_waiter",
        "dialect",
        "features",
        "gate",
        "is_done",
        "is_for_others",
        "limits",
        "loop",
        "lost",
        "name",
        "progress",
        "take_cancel",
        "take_notification",
        "take_request",
        "time",
        "transport",
        "wakes_at",
        "window",
    )

    def __init__(
        self, loop: Loop, transport: Transport, dialect: Dialect, connection: Connection, *, name: str
    ) -> None:
        self.loop = loop
        self.time = loop.time
        self.create_waiter = loop.create_waiter
        self.transport = transport
        self.dialect = dialect
        self.connection = connection
        self.limits: Limits = connection.limits
        self.name = name
        self.features = dialect.features
        self.progress = dialect.progress
        self.gate: Gate | None = None
        self.lost: ConnectionLost | None = None
        self.is_done = False
        self.is_for_others = False  # whether a call was ever made here on behalf of another caller
        self._closed_waiters: list[Waiter] = []
        self._done_waiters: list[Waiter] = []
        self._room_waiters: list[Waiter] = []
        loop.workers = self.limits.workers
        self.window = Window(connection.calls, self.limits.outbound_calls, loop.create_waiter)
        self._places = self.window.places
        self.acknowledged: set[Outlasts] = set()
        self.claims = Claims(dialect.progress, connection.cancelling, is_marked=bool(dialect.features))
        connection.make_way = self._make_way
        connection.claimed = self.claims.puts
        connection.listening = self.claims.listening
        # writing
        self._buffer: list[bytes] = []
        self._buffered = 0
        self._joins = False  # what is sent now leaves together with what follows
        # What waits to be joined does not count as queued: where the limits are that small, nothing waits.
        least = min(self.limits.send_high, self.limits.send_queue)
        self._most_joined = MOST_JOINED if least >= SLACK * MOST_JOINED else 0
        self._wrote_alone = False
        self._is_flush_planned = False
        # reading
        self._is_taking = False
        self._is_behind = False  # some frames were put off to the next turn
        self._holders: set[str] = set()
        self._ledger = loop.ledger
        self._account = Account(loop.ledger, self.limits.but(turn_seconds=inf) if loop.nests else self.limits)
        self._is_over_share = False
        self._used_before = 0.0  # by this thread, before the turn
        self._ending: Describe | None = None
        connection.clock = monotonic  # the loop's own clock may stand still within an iteration, as that of uvloop does
        loop.charge_to(self._account, self._charge)
        self._pace: Pace | None = None
        if isinstance(transport, FdTransport) and not loop.nests:
            self._pace = Pace(transport, self.limits)
        self._meter = Meter(self.limits, loop.time()) if self.limits.message_rate else None
        self._has_ended_input = False
        # time
        self._timer: Timer | None = None
        self.wakes_at = inf
        self._partial: tuple[int, float] | None = None
        # Bytes of one frame that earn it time: of a response above the limit that is skipped as many as it may have.
        self._longest_timed = self.limits.longest_skipped if dialect.skips_oversize else self.limits.frame

    def agree(self, features: Iterable[str]) -> None:
        """Uses from now on only what both sides have announced, where the dialect leaves it to them.

        What they say is understood in any case: their first words may come before ours about it."""
        dialect = self.dialect
        self.features = dialect.features.intersection(features)
        if dialect.features:
            self.connection.says_cancel = "cancel" in self.features
            self.progress = dialect.progress if "progress" in self.features else None

    def running(self) -> list[object]:
        """Returns an object for each handler that has begun and has not returned. From any thread."""
        running = self._server.running()
        return [*running, self] if self.lost is not None and self.loop.is_in_handler else running

    def start(self, server: Server) -> None:
        """Begins to read. Nothing arrives before the loop's next turn, so handlers can still be registered."""
        self._server = server
        self._ledger.join(self._account)
        self.take_request = server.take_request
        self.take_notification = server.take_notification
        self.take_cancel = server.take_cancel
        self.connection.use(self)
        self.connection.settle = None  # the waiter of a call is told at once; that its place is free, after each piece
        if not self.dialect.features and self.gate is None:
            # Nothing travels beside the params, nothing is to be decided.
            self.connection.serve = server.serve_nesting if self.loop.nests else server.serve
        self.transport.start(self.loop, self)

    # -- in

    def data_received(self, data: bytes) -> None:
        if self.lost is not None:
            return
        connection = self.connection
        framing = connection.framing
        time = self.time
        began = connection.began = monotonic()
        connection.until = began + self._account.turn
        now = connection.now = began if time is monotonic else time()
        frames = framing.feed(data)
        if (
            len(frames) == 1
            and not self._is_behind
            and not (self._ledger.spent and self._account.must_wait(is_small(frames[0]), began))
        ):  # one call after another: nothing to join, nothing to pace
            self._wrote_alone = False
            connection.read_apart(frames)
        else:
            self._take_many(frames)
        if self._places:
            self.window.free()
        if self._meter is not None and (pause := self._meter.spend(framing.frames, now)):
            self.hold("rate")
            self.loop.call_later(pause, self._end_pause)
        if (violation := connection.violation or framing.error) is not None:
            if not self._is_behind:  # what came before it is taken first
                self._end_by(violation)
        elif framing.pending or self._partial is not None:
            self._time_partial_frame(now)

    def _take_many(self, frames: list[Frame | Skipped]) -> None:
        connection = self.connection
        if self._is_behind:
            connection.add(frames)
            return
        if frames and self._ledger.spent and self._account.must_wait(False, connection.began):
            connection.add(frames)
            self._put_off()
            return
        open_calls = len(connection.calls)
        self._used_before = thread_time()
        self._joins = self._is_taking = True
        is_done = False  # also where a signal's handler raises in the midst of it: the others are not lost
        try:
            is_done = connection.read(frames)
        finally:
            if not is_done:
                self._put_off()
            self._is_taking = False
            self._joins = self._is_flush_planned
            self._wrote_alone = False
        if is_done:
            if len(connection.calls) < open_calls:
                self._join_what_follows(self.loop.call_after)
            elif connection.requests:
                self._join_what_follows(self.loop.call_soon)
        self.flush()
        if self._pace is not None:
            self._pace.took(monotonic() - connection.began, self._account.turn)

    def take_reply(self, call: Call, /) -> None:
        """Wakes whoever waits for a call of ours: its answer is there."""
        call.waiter.set_result(None)
        if self._places:
            self.window.free()

    def _join_what_follows(self, call: Callable[[Callable[[], object]], object]) -> None:
        """Several tasks will go on: what they send leaves together, when this calls for it."""
        self._joins = True
        if not self._is_flush_planned:
            self._is_flush_planned = True
            call(self._flush_soon)

    def _make_way(self) -> bool:
        """Has what was answered leave, so that the other side works while we go on, and returns whether our turn is
        over."""
        if len(self._buffer) >= ENOUGH:
            self.flush()
        connection = self.connection
        now = monotonic()
        if now <= connection.until:
            return False
        left = self._account.turn - (thread_time() - self._used_before)
        connection.until = now + left  # it may have had no core for a while
        return left <= 0.0

    def _put_off(self) -> None:
        """Leaves the loop to others; what came already is taken in the next turn."""
        if self.lost is None:
            self._is_behind = True
            self.hold("backlog")
            self._continue_soon()

    def _continue_soon(self) -> None:
        loop = self.loop
        self._ledger.wait(self._account, partial(loop.run_turn, self._continue), loop.call_soon)

    def _continue(self) -> None:
        if self.lost is not None or not self._is_behind or self._is_over_share:
            return
        connection = self.connection
        began = connection.began = monotonic()
        connection.until = began + self._account.turn
        connection.now = self.time()
        self._used_before = thread_time()
        self._joins = True
        is_done = False  # as in `_take_many`
        try:
            is_done = self._read_on()
        finally:
            self._joins = self._is_flush_planned
            if not is_done:
                self._continue_soon()
        self.flush()
        if not is_done:
            return
        self._is_behind = False
        if self._ending is not None:
            self._end_input(self._ending)
        elif (violation := self.connection.violation or self.connection.framing.error) is not None:
            self._end_by(violation)
        else:
            self.release("backlog")

    async def next_iteration(self) -> None:
        """Leaves the loop to others; goes on after links that waited before."""
        waiter = self.create_waiter()
        self._ledger.wait(self._account, partial(wake, waiter), self.loop.call_soon)
        await waiter

    def _read_on(self) -> bool:
        """Takes what is left of a piece; returns False if it is late and something still is."""
        is_done = self.connection.read_on()
        if self._places:
            self.window.free()
        return is_done

    def _charge(self, used: float, elapsed: float) -> None:
        """A turn of this link used so much processor time: beyond its share, it waits until others had theirs."""
        if not self._ledger.is_shared:
            return
        if used > LIGHT:
            self._ledger.spend(used, self.loop.call_soon)
        pause = self._account.charge(used, elapsed, monotonic())
        # What has come from one that ended is bounded, and the end must not wait.
        if pause and not self._is_over_share and not self._has_ended_input and self.lost is None:
            self._is_over_share = True
            self.hold("share")
            self.loop.call_later(pause, self._end_share_pause)

    def _end_share_pause(self) -> None:
        self._is_over_share = False
        self.release("share")
        if self._is_behind:
            self._continue_soon()

    def _end_pause(self) -> None:
        self.release("rate")

    def before_wait(self) -> None:
        """A handler waits within this link's own callback: what came and what leaves must not wait for it."""
        self._joins = False
        self._wrote_alone = False
        if self._is_taking:
            self._read_on()
        self.flush()

    def hold(self, who: str) -> None:
        """Stops reading until everybody who asked for it has let go."""
        if not self._holders:
            self.transport.pause()
        self._holders.add(who)

    def release(self, who: str) -> None:
        """Lets go of a `hold`."""
        if who in self._holders:
            self._holders.discard(who)
            if not self._holders and not self._has_ended_input and self.lost is None:
                self.transport.resume()

    def transport_ended(self, describe: Describe) -> None:
        """The other side will send no more."""
        if self.lost is not None:
            return
        self._has_ended_input = True
        if self._is_behind:  # what came before the end is taken first, in as many turns as it takes
            self._ending = describe
            self._is_over_share = False
            self._continue_soon()
        else:
            self._end_input(describe)

    def _end_input(self, describe: Describe) -> None:
        truncated = self.connection.receive_eof()
        lost = describe(str(truncated or ""))
        if truncated is not None and lost.reason is DisconnectReason.REMOTE_CLOSE:
            self._end_by(truncated)
        elif lost.reason is DisconnectReason.REMOTE_CLOSE:
            self._flush_then_lose(lost)  # it may have said its last word and still listen
        else:
            self.lose(lost)

    def _end_by(self, violation: RemoteProtocolError) -> None:
        if not self.connection.calls:  # else whoever waits is told
            import logging

            logging.getLogger("becket.peer").warning("%s: the link has ended: %s", self.name, violation)
        self.lose(reason_of(violation))

    def take_oddity(self, oddity: Failure | Skipped) -> None:
        """Writes down what belongs to nobody."""
        import logging

        if isinstance(oddity, Failure):
            odd = f"an error that belongs to no call: {oddity.message!r} ({oddity.code})"
        else:
            odd = f"dropped: {oddity.error}"
        logging.getLogger("becket.peer").warning("%s: %s", self.name, odd)

    # -- out

    @property
    def queued(self) -> int:
        """Bytes that are on their way out and have not left this process."""
        return self._buffered + self.transport.queued

    def send(self, frame: bytes) -> None:
        """Takes a frame for sending: a lone one leaves at once, the others of a turn leave together."""
        if self._joins:
            self._buffer.append(frame)
            size = self._buffered = self._buffered + len(frame)
            if size > self._most_joined:
                self.flush()
        elif self._wrote_alone:
            if self.lost is None:
                self._join_what_follows(self.loop.call_soon)
                self.send(frame)
        elif frame:
            self._wrote_alone = True
            self.transport.write(frame)

    say = send

    def tell(self, method: str, params: bytes | None) -> bool:
        """Sends a notification; returns whether so much waits to be read that whoever tells more should wait as well.

        Nothing is sent more often, so `send` stands here too, without a call for each."""
        frame = self.connection.notification(method, params)
        if not self._joins:
            self.send(frame)
        else:
            self._buffer.append(frame)
            size = self._buffered = self._buffered + len(frame)
            if size > self._most_joined:
                self.flush()
        return self.transport.queued > self.limits.send_high

    def flush(self) -> None:
        """Hands what was joined to the transport."""
        if self._buffer:
            data = self._buffer[0] if len(self._buffer) == 1 else b"".join(self._buffer)
            self._buffer.clear()
            self._buffered = 0
            self.transport.write(data)
            if self.transport.queued > MOST_QUEUES * self.limits.send_queue:
                excess = f"it does not read: {self.transport.queued} bytes wait for it"
                self.lose(ConnectionLost(DisconnectReason.REMOTE_VIOLATION, excess))

    def _flush_soon(self) -> None:
        self._is_flush_planned = self._joins = self._wrote_alone = False
        self.flush()

    def room_made(self) -> None:
        waiters, self._room_waiters = self._room_waiters, []
        for waiter in waiters:
            wake(waiter)

    async def wait_for_room(self) -> None:
        """Waits until something was written or settled. Whoever waits looks again whether it suffices."""
        waiter = self.loop.create_waiter()
        self._room_waiters.append(waiter)
        try:
            await waiter
        except BaseException:
            if waiter in self._room_waiters:
                self._room_waiters.remove(waiter)
            raise

    def abandon(self, call: Call) -> None:
        """Nobody wants the answer of this call any more: the other side is told, and its slot is free."""
        self.send(self.connection.abandon(call))
        self.window.free()

    # -- time

    def wake_at(self, time: float) -> None:
        """Makes sure that deadlines are looked at by then."""
        if time < self.wakes_at and self.lost is None:
            if self._timer is not None:
                self._timer.cancel()
            self.wakes_at = time
            self._timer = self.loop.call_later(time - self.loop.time(), self._tick)

    def _tick(self) -> None:
        # One timer and a walk through the open calls, of which there are at most `outbound_calls`.
        self._timer = None
        self.wakes_at = inf
        if self.lost is not None:
            return
        now = self.loop.time()
        connection = self.connection
        for call in connection.expired_calls(now):
            if call.stream is not None:  # it lives as long as its events come
                call.deadline = call.stream.extend()
                if call.deadline > now:
                    continue
            self.abandon(call)
            call.error = CallTimeout(call.method, call.timeout)
            wake(call.waiter)
        for request in connection.expired_requests(now):
            request.deadline = inf
            self._server.take_expiry(request)
        streams_until = min([stream.expire(now) for stream in tuple(self.acknowledged)], default=inf)
        self.room_made()
        self.wake_at(min(connection.next_deadline(), self.window.expire(now), streams_until))
        if self._partial is not None:
            self._time_partial_frame(now)

    def _time_partial_frame(self, now: float) -> None:
        """Holds a frame that has begun to its deadline, which progress does not renew beyond a fair rate."""
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
            self._end_by(BadFrame(f"a frame was not finished within {now - self._partial[1]:.1f} s"))
        else:
            self.wake_at(deadline)

    # -- the end

    def lose(self, lost: ConnectionLost) -> None:
        """Ends the link, now and once: every open call settles with this reason."""
        if self.lost is not None:
            return
        self.lost = lost
        self._ledger.leave(self._account)
        self._buffer.clear()
        self._buffered = 0
        self._joins = self._is_behind = False
        self.claims.puts.clear()  # what comes with the end is for nobody
        self.claims.listening.clear()
        requests = list(self.connection.requests.values())
        for call in self.connection.close(lost):
            wake(call.waiter)
        streams, self.acknowledged = self.acknowledged, set()
        for stream in streams:
            stream.lose(lost)
        self._server.end(requests)
        self.room_made()
        self.window.end()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        waiters, self._closed_waiters = self._closed_waiters, []
        for waiter in waiters:
            wake(waiter)
        self.transport.close()

    def transport_gone(self) -> None:
        """Nothing of this link is left."""
        self.is_done = True
        waiters, self._done_waiters = self._done_waiters, []
        for waiter in waiters:
            wake(waiter)
        self.loop.call_soon(self.loop.end)

    async def wait_lost(self) -> ConnectionLost:
        """Waits until the link has ended and returns why."""
        if self.lost is None:
            waiter = self.loop.create_waiter()
            self._closed_waiters.append(waiter)
            try:
                await waiter
            finally:
                if waiter in self._closed_waiters:
                    self._closed_waiters.remove(waiter)
        assert self.lost is not None
        return self.lost

    async def aclose(self, because: str = "") -> None:
        """Ends the link in good order: what is queued leaves, the process is told, and nothing of it remains."""
        if not self.connection.is_closing:
            self.connection.begin_closing()
            self._flush_then_lose(ConnectionLost(DisconnectReason.LOCAL_CLOSE, because))
        if not self.is_done:
            waiter = self.loop.create_waiter()
            self._done_waiters.append(waiter)
            await self.loop.finish(waiter)

    def _flush_then_lose(self, lost: ConnectionLost) -> None:
        """Lets what was said leave, for a moment, and ends the link."""
        self._joins = self._wrote_alone = False
        self.flush()
        if self.transport.queued and self.lost is None:
            self.loop.spawn(self._flush_and_lose(lost))
        else:
            self.lose(lost)

    async def _flush_and_lose(self, lost: ConnectionLost) -> None:
        until = self.loop.time() + self.limits.flush_grace
        try:
            while self.transport.queued and self.loop.time() < until and self.lost is None:
                self.wake_at(until)  # each time: an earlier deadline may have taken the timer
                await self.wait_for_room()
        finally:
            self.lose(lost)


def is_small(frame: Frame | Skipped) -> bool:
    return isinstance(frame, Skipped) or len(frame) <= LARGE
