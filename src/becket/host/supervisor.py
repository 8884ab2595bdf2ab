"""Keeps one extension alive: starts it, watches it, starts it again, replaces it and ends it.

One task owns an extension and makes all of its moves, so two copies of it never live at once. What to do is decided by
pure functions (`lifecycle`, `restart`, `breaker`, `heartbeat`); here it is done. Everybody else asks, and waits.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from copy import copy
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import anyio
from msgspec import Struct

from becket.errors import (
    BecketError,
    CallTimeout,
    ConnectionLost,
    DisconnectReason,
    ExtensionRefused,
    NotRunning,
    PeerCrashed,
    RemoteError,
    StartFailed,
)
from becket.host.breaker import Breaker, BreakerPolicy, BreakerState, outcome_of
from becket.host.diagnostics import without_id
from becket.host.events import (
    Events,
    ExtensionDegraded,
    ExtensionDisabled,
    ExtensionEnabled,
    ExtensionExited,
    ExtensionFailed,
    ExtensionMoved,
    ExtensionRecovered,
    ExtensionReloaded,
    ExtensionRestarted,
    ExtensionRestarting,
    ExtensionStarted,
    ExtensionStarting,
    ExtensionStopped,
    HostStalled,
)
from becket.host.extension import Extension
from becket.host.heartbeat import Beat, HeartbeatPolicy, Pulse
from becket.host.heartbeats import Heartbeats
from becket.host.lifecycle import ON_START, ON_STOP, Drain, Health, Lifecycle, RequestMeans, State
from becket.host.meter import Figures, Meter
from becket.host.restart import GiveUp, RestartHistory, RestartPolicy, Stagger, decide_restart
from becket.peer.loops import current_loop, loop_time

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

__all__ = ["Care", "Supervisor"]

T = TypeVar("T")

PATIENCE = 60.0  # seconds for a call that waits until its extension runs
ALIVE = (State.READY, State.DEGRADED)
ON_ITS_WAY = (State.SPAWNING, State.RESTARTING)
AT_REST = (State.STOPPED, State.FAILED, State.DISABLED)


class Care(Struct, frozen=True, kw_only=True):
    """How an extension is looked after. Without a heartbeat, only exits and timeouts tell that it is dead.

    With `restarts_on_errors` a copy that responds with an error is ended, and the call sent once more to the next one;
    so is a call whose copy has died. So do the hosts of one system, and a tool that refuses an input runs twice there.
    With `resends_hooks` a hook whose copy has died is sent once more; None means as the extension's own system does.
    With `starts_when_needed` the first call starts it, unless somebody has stopped it."""

    restart: RestartPolicy = RestartPolicy()
    breaker: BreakerPolicy = BreakerPolicy()
    heartbeat: HeartbeatPolicy | None = HeartbeatPolicy()
    drain: float = 10.0
    restarts_on_errors: bool = False
    resends_hooks: bool | None = None
    starts_when_needed: bool = False


class Wish(Enum):
    """What its owner shall do next, besides watching."""

    NOTHING = "go on"
    STOP = "end it"
    RELOAD = "start another copy, and then end it"
    REPLACE = "end it, and then start another copy"


class Ending(Struct, frozen=True):
    """Why a process is no more, or shall be no more."""

    because: str
    lost: ConnectionLost | None = None
    wish: Wish = Wish.NOTHING
    is_hung: bool = False


class Supervisor:
    """The owner of one extension. `run` is its task; the other methods may be called from any task.

    `renew` is asked before a reload whether there may be one; what it raises keeps the running copy in its place. The
    extensions of one host share its `heartbeats`. Where any thread may read the `clock`, any thread may ask how the
    extension does."""

    def __init__(
        self,
        id: str,
        start: Callable[[], Awaitable[Extension]],
        *,
        events: Events,
        care: Care | None = None,
        command: tuple[str, ...] = (),
        version: str | None = None,
        stagger: Stagger | None = None,
        chance: Callable[[], float] = random.random,
        renew: Callable[[], Awaitable[None]] | None = None,
        heartbeats: Heartbeats | None = None,
        clock: Callable[[], float] = loop_time,
    ) -> None:
        self.id = id
        self.care = care or Care()
        self.command = command
        self.version = version
        self.failure: BecketError | None = None
        self._start = start
        self._renew = renew
        self._heartbeats = heartbeats
        self._clock = clock
        self._events = events
        self._stagger = stagger
        self._chance = chance
        self._life = Lifecycle(id)
        self._history = RestartHistory()
        self._breaker = Breaker(id, self.care.breaker)
        self._meter = Meter()
        self._extension: Extension | None = None
        self._replaced: Extension | None = None  # by a reload, though it had calls to answer
        self._is_draining = False  # a copy that was replaced ends
        self._not_reloaded: BecketError | None = None  # why the last reload left the running copy in its place
        self._arrangements: list[Callable[[Extension], object]] = []
        self._wants_running = False
        self.was_stopped = False  # by hand: only a hand starts it again
        self._wish = Wish.NOTHING
        self._lives = 0
        self._closes = False
        self._is_over = False
        self._calls: Counter[Extension] = Counter()  # in flight, by copy
        self._changed = anyio.Event()
        self._starting: anyio.CancelScope | None = None

    # -- how it does

    @property
    def state(self) -> State:
        """Where the extension stands."""
        return self._life.state

    @property
    def restarts(self) -> int:
        """How often it was started again, in all its life."""
        return self._history.total

    @property
    def in_flight(self) -> int:
        """How many calls it has not answered yet."""
        return self._calls.total()

    def figures(self, asked: int = 0) -> Figures:
        """Returns how often it is called, and how long its answers take; it has called its host `asked` times."""
        return self._meter.read(self._clock(), asked)

    def health(self) -> Health:
        """Returns how it does, in one word."""
        return self._life.health(self._recent_restarts())

    def _recent_restarts(self) -> int:
        ready_at = self._history.ready_at
        has_stayed_up = ready_at is not None and self._clock() - ready_at >= self.care.restart.healthy_after
        return 0 if has_stayed_up else self._history.in_a_row

    def current(self) -> Extension | None:
        """Returns the handle of the copy that runs now, None where none does."""
        return self._extension

    # -- asking

    async def start(self) -> Extension:
        """Starts the extension, unless it runs or is about to, and returns the handle on it.

        Raises:
            NotRunning: it is disabled, or was stopped before it was ready.
            StartFailed, HandshakeFailed, ...: why it could not be started.
        """
        if self._closes:
            raise NotRunning(self.id, self.state, "its host closes")
        means = ON_START[State.STOPPING if self._is_ending() else self.state]
        if means is RequestMeans.REFUSE:
            raise NotRunning(self.id, self.state, "enable it first")
        if means in (RequestMeans.BEGIN, RequestMeans.AFTERWARDS):
            self.was_stopped = False
            self.failure = None
            self._history = self._history.forgotten()
            self._wants_running = True
            self._tell()
            await self._wait_while(lambda: self._is_resting() and self._wants_running and not self._is_over)
        return await self.ready(patience=None)

    def _is_resting(self) -> bool:
        return self.state in (*AT_REST, State.STOPPING) or self._is_ending()

    def _is_ending(self) -> bool:
        """Whether it was asked to end, and is still there."""
        return self._wish is Wish.STOP and self.state not in AT_REST

    async def stop(self) -> None:
        """Ends the extension in good order; returns when its process is gone. Twice is once."""
        self._wants_running, self.was_stopped = False, True
        life = self._lives  # somebody may start it again at once: that is another life, and not waited for
        if ON_STOP[self.state] is RequestMeans.BEGIN:
            self._wish = Wish.STOP
            if self._starting is not None:
                self._starting.cancel()
            self._tell()
        await self._wait_while(lambda: self.state not in AT_REST and self._lives == life and not self._is_over)

    async def reload(self) -> None:
        """Starts a new copy of the files that are there now, and ends the running one when the new one is ready.

        The running copy is given time to respond to the calls that it has. Where the new one cannot be started, the
        running one stays.

        Raises:
            ExtensionRefused: there may be no new copy.
            NotRunning: it was stopped meanwhile.
            StartFailed, HandshakeFailed, ...: why the new copy could not be started.
        """
        if self._renew is not None:
            await self._renew()
        await self._exchange(Wish.RELOAD)

    async def replace(self) -> None:
        """Ends the running copy, which is given time to respond to the calls that it has, and starts a new one.

        Raises:
            NotRunning: it was stopped meanwhile.
            StartFailed, HandshakeFailed, ...: why the new copy could not be started.
        """
        await self._exchange(Wish.REPLACE)

    async def _exchange(self, wish: Wish) -> None:
        await self._wait_while(lambda: self._starting is not None)  # a copy that starts may be of the files before
        if self.state not in ALIVE or self._is_ending():
            await self.start()
            return
        self._wish, self._not_reloaded = wish, None
        self._tell()
        await self._wait_while(
            lambda: (self._wish is wish or self._is_draining) and self.state in (*ALIVE, State.RESTARTING)
        )
        if self._not_reloaded is not None:
            raise copy(self._not_reloaded)
        if self._is_ending():
            raise NotRunning(self.id, self.state, "it was stopped meanwhile")
        await self.ready(patience=None)

    async def disable(self, because: str = "") -> None:
        """Ends the extension and lets nothing start it."""
        await self.stop()
        if self.state is not State.DISABLED:
            self._move(State.DISABLED)
            self._events.publish(ExtensionDisabled(self.id, because))

    def enable(self) -> None:
        """Lets the extension be started again."""
        if self.state is State.DISABLED:
            self._move(State.STOPPED)
            self._events.publish(ExtensionEnabled(self.id))

    def refuse(self, error: ExtensionRefused) -> None:
        """It must not be started, for this reason; it may have been refused before."""
        self.failure = error
        if self.state is not State.FAILED:
            self._move(State.FAILED)

    async def ready(self, *, patience: float | None = PATIENCE) -> Extension:
        """Waits until the extension runs, and returns the handle on it.

        Raises:
            NotRunning: it is stopped or disabled.
            CallTimeout: it was not ready within `patience` seconds.
            StartFailed, HandshakeFailed, PeerCrashed, ...: why it does not run.
        """
        with anyio.move_on_after(patience):
            if self.care.starts_when_needed and self.state is State.STOPPED and not self.was_stopped:
                await self.start()
            await self._wait_while(lambda: self._is_passing() and not self._is_over)
            if self._extension is not None and self.state in ALIVE:
                return self._extension
            if self.failure is not None:
                raise copy(self.failure)
            raise NotRunning(self.id, self.state, "start it first")
        raise CallTimeout(f"the start of {self.id}", patience or 0.0)

    def _is_passing(self) -> bool:
        """Whether things will be otherwise in a moment: it starts, ends, or is dead and its owner does not know yet."""
        is_dead = self._extension is None or self._extension.peer.close_reason is not None
        return self.state in (*ON_ITS_WAY, State.STOPPING) or (is_dead and self.state in ALIVE)

    def adopt(self, care: Care, *, command: tuple[str, ...], version: str | None) -> None:
        """From the next start on the extension is looked after like this."""
        if care.breaker != self.care.breaker:
            self._breaker = Breaker(self.id, care.breaker)
        self.care, self.command, self.version = care, command, version

    def arrange(self, arrangement: Callable[[Extension], object]) -> None:
        """Does something with every copy of the extension from its first moment: the one that runs, and later ones."""
        self._arrangements.append(arrangement)
        if self._extension is not None:
            arrangement(self._extension)

    async def use(self, action: Callable[[Extension], Awaitable[T]], *, repeat: bool = False) -> T:
        """Does something with the running copy, waiting for it where it is about to run, and returns what came of it.

        With `repeat` it is done again with the next copy when this one dies in the midst of it; with
        `restarts_on_errors` once more, also where this one responds with an error.

        Raises:
            CircuitOpen: too many calls have failed lately; it was not tried.
        """
        may_resend = self.care.restarts_on_errors
        while True:
            extension: Extension | None = None
            try:
                async with self.borrowed() as extension:
                    return await action(extension)
            except (ConnectionLost, RemoteError) as error:
                is_repeated = repeat and isinstance(error, ConnectionLost)
                if not (is_repeated or may_resend) or not await self.replace_failed(extension, error):
                    raise
                may_resend = may_resend and is_repeated

    async def replace_failed(self, extension: Extension | None, error: BecketError) -> bool:
        """Ends a copy that has responded with an error, and waits until it, or one that has died, runs no more.

        Returns whether another may follow it; after any other failure, or where somebody has stopped it, none does."""
        if not self._wants_running or not isinstance(error, ConnectionLost | RemoteError):
            return False
        if extension is not None and isinstance(error, RemoteError):
            await extension.aclose()
        await self._wait_while(partial(self._is_current, extension))
        return True

    def _is_current(self, extension: Extension | None) -> bool:
        return self._extension is extension

    @asynccontextmanager
    async def borrowed(self) -> AsyncGenerator[Extension, None]:
        """Yields the running copy, and takes what happens in the block for a call: it is counted, and waited for."""
        extension = await self.ready()
        began = loop_time()
        ticket = self._breaker.admit(began)
        self._calls[extension] += 1
        error: BaseException | None = None
        try:
            yield extension
        except ConnectionLost as lost:
            error = lost
            if extension is self._replaced and lost.reason is DisconnectReason.LOCAL_CLOSE:
                raise ConnectionLost(DisconnectReason.LOCAL_CLOSE, f"reload of {self.id}") from lost
            raise
        except BaseException as failure:
            error = failure
            raise
        finally:
            self._calls[extension] -= 1
            if not self._calls[extension]:
                del self._calls[extension]
            ended = loop_time()
            self._breaker.settle(ticket, outcome_of(error), ended)
            self._meter.record(began, ended, failed=error is not None)
            self._tell()

    # -- the owner

    async def run(self) -> None:
        """Owns the extension until `close`. Whatever happens to the extension, this does not fail."""
        own_loop = None
        if self._heartbeats is None:
            own_loop = await current_loop()
            self._heartbeats = Heartbeats(own_loop)
        try:
            while not self._is_over:
                await self._wait_while(lambda: not self._wants_running and not self._is_over)
                if not self._is_over:
                    await self._live()
        finally:
            with anyio.CancelScope(shield=True):
                await self._end_copy()
            self._is_over = True
            self._tell()
            if own_loop is not None:
                own_loop.end()

    async def close(self) -> None:
        """Stops the extension, and ends `run`; nobody can start it meanwhile."""
        self._closes = True
        await self.stop()
        self._is_over = True
        self._tell()

    async def _live(self) -> None:
        """One life: from the first start until the extension was stopped, or has failed."""
        self._wish = Wish.NOTHING
        self._lives += 1
        self._move(State.SPAWNING)
        began = loop_time()
        try:
            started = await self._start_copy()
        except BecketError as error:
            self._fail(error)
            return
        if not started:
            await self._stop_copy()
            return
        self._move(State.READY)
        self._events.publish(ExtensionStarted(self.id, self._pid(), loop_time() - began, self.version))
        while self.state is not State.STOPPED and self.state is not State.FAILED:
            ending = await self._watch()
            if ending.wish is Wish.STOP:
                await self._stop_copy()
            elif ending.wish is Wish.RELOAD:
                await self._reload_copy()
            elif ending.wish is Wish.REPLACE:
                await self._replace_copy()
            else:
                await self._recover(ending)

    async def _start_copy(self) -> bool:
        """Starts a process; returns False where somebody wants it to end meanwhile. What fails is raised."""
        extension = await self._open_copy()
        if extension is None:
            return False
        self._adopt_copy(extension)
        return self._wish is not Wish.STOP

    async def _open_copy(self) -> Extension | None:
        """Starts a process beside the one that may run; returns None where somebody wants it to end meanwhile."""
        self._events.publish(ExtensionStarting(self.id, self.command))
        extension: Extension | None = None
        with anyio.CancelScope() as self._starting:
            try:
                extension = await self._start()
            finally:
                self._starting = None
                self._tell()
        return extension

    def _adopt_copy(self, extension: Extension) -> None:
        self._extension = extension
        self._breaker.reset()
        self._history = self._history.became_ready(loop_time())
        for arrangement in self._arrangements:
            arrangement(extension)

    async def _watch(self) -> Ending:
        """Waits until something must be done about the running copy."""
        assert self._extension is not None
        extension = self._extension
        endings: list[Ending] = []

        def end(ending: Ending) -> None:
            endings.append(ending)
            self._tell()

        async def wait_for_end() -> None:
            lost = await extension.peer.wait_closed()
            end(Ending(str(lost), lost))

        stop_heartbeat = self._keep_heartbeat(extension, end)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(wait_for_end)
                is_open = False
                while not endings and self._wish is Wish.NOTHING:
                    is_open = self._judge_calls(is_open)
                    await self._changed.wait()
                tasks.cancel_scope.cancel()
        finally:
            stop_heartbeat()
        return endings[0] if endings else Ending(self._wish.value, wish=self._wish)

    def _judge_calls(self, was_open: bool) -> bool:
        """Calls the extension degraded while its circuit is open; returns whether it is."""
        is_open = self._breaker.state(loop_time()) is not BreakerState.CLOSED
        if is_open and not was_open:
            self._degrade("too many of its calls fail")
        elif was_open and not is_open:
            self._recover_health()
        return is_open

    def _keep_heartbeat(self, extension: Extension, end: Callable[[Ending], None]) -> Callable[[], object]:
        """Calls `end` when the extension is dead; returns what stops the heartbeat."""
        policy = self.care.heartbeat
        if policy is None or "ping" not in extension.features:
            return lambda: None
        assert self._heartbeats is not None  # there is one as long as `run` runs
        because = f"did not respond to a ping for {policy.dead_after:g} s and was ended: does it block its event loop?"
        dead = Ending(because, is_hung=True)
        return self._heartbeats.add(extension.peer, policy, self._take_beat, partial(end, dead))

    def _take_beat(self, beat: Beat) -> None:
        if beat.stalled:
            self._events.publish(HostStalled(beat.stalled))
        if beat.pulse is Pulse.SLOW:
            self._degrade("it is slow to answer")
        elif (
            beat.pulse is Pulse.ALIVE
            and self.state is State.DEGRADED
            and self._breaker.state(loop_time()) is BreakerState.CLOSED
        ):
            self._recover_health()

    def _degrade(self, because: str) -> None:
        if self.state is State.READY:
            self._move(State.DEGRADED)
            self._events.publish(ExtensionDegraded(self.id, because))

    def _recover_health(self) -> None:
        if self.state is State.DEGRADED:
            self._move(State.READY)
            self._events.publish(ExtensionRecovered(self.id))

    async def _recover(self, ending: Ending) -> None:
        """The copy has ended by itself, or is dead: another is started, if it may."""
        lost = ending.lost
        ended_at = loop_time()
        await self._end_copy(hung_because=ending.because if ending.is_hung else "")
        self._events.publish(describe_exit(self.id, lost, expected=False))
        because: BecketError = lost or ConnectionLost(DisconnectReason.LOCAL_CLOSE, ending.because)
        while True:
            decision = decide_restart(self.care.restart, self._history, now=loop_time(), random=self._chance)
            self._history = decision.history
            if isinstance(decision, GiveUp):
                self._fail(because, decision.because)
                return
            if self.state is not State.RESTARTING:
                self._move(State.RESTARTING)
            self._events.publish(
                ExtensionRestarting(self.id, decision.attempt, decision.delay, text_of(self.id, because))
            )
            if not await self._pause(decision.delay):
                await self._stop_copy()
                return
            try:
                started = await self._start_copy()
            except ExtensionRefused as error:  # trying again would only ask again
                self._fail(error)
                return
            except BecketError as error:
                because = error
                continue
            if not started:
                await self._stop_copy()
                return
            self._move(State.READY)
            self._events.publish(ExtensionRestarted(self.id, self._pid(), self._history.total, loop_time() - ended_at))
            return

    async def _pause(self, delay: float) -> bool:
        """Waits before a restart; returns False where somebody wants the extension to end meanwhile."""
        with anyio.move_on_after(delay):
            await self._wait_while(lambda: self._wish is not Wish.STOP)
        if self._stagger is not None and (wait := self._stagger.take(loop_time())):
            with anyio.move_on_after(wait):
                await self._wait_while(lambda: self._wish is not Wish.STOP)
        return self._wish is not Wish.STOP

    async def _reload_copy(self) -> None:
        """Starts a new copy, lets it take the calls from then on, and ends the one before it."""
        began = loop_time()
        old = self._extension
        try:
            new = await self._open_copy()
        except BecketError as error:
            self._not_reloaded = error
            self._wish = Wish.NOTHING
            self._tell()
            return
        if new is None or self._wish is Wish.STOP:
            if new is not None:
                await new.aclose()
            await self._stop_copy()
            return
        self._adopt_copy(new)
        self._recover_health()
        self._wish = Wish.NOTHING
        self._tell()
        cut_off = 0 if old is None else await self._drain_copy(old)
        self._events.publish(ExtensionReloaded(self.id, loop_time() - began, cut_off))

    async def _drain_copy(self, old: Extension) -> int:
        """Ends a copy whose place is taken, after the calls that it has; returns how many were cut off."""
        self._is_draining = True
        try:
            with anyio.move_on_after(self.care.drain):
                await self._wait_while(lambda: self._calls[old] > 0 and self._wish is not Wish.STOP)
            cut_off = self._calls[old]
            self._replaced = old
            await old.shutdown()
        finally:
            self._is_draining = False
            self._tell()
            with anyio.CancelScope(shield=True):
                await old.aclose()
        return cut_off

    async def _replace_copy(self) -> None:
        began = loop_time()
        self._move(State.RESTARTING)
        drain = Drain(began, self.care.drain)
        with anyio.move_on_after(drain.remaining(loop_time())):
            await self._wait_while(lambda: self.in_flight > 0 and self._wish is not Wish.STOP)
        cut_off = self.in_flight
        self._replaced = self._extension
        await self._end_copy(is_asked=True)
        if self._wish is Wish.STOP:
            await self._stop_copy()
            return
        try:
            started = await self._start_copy()
        except BecketError as error:
            self._wish = Wish.NOTHING
            self._fail(error)
            return
        if not started:
            await self._stop_copy()
            return
        self._wish = Wish.NOTHING
        self._move(State.READY)
        self._events.publish(ExtensionReloaded(self.id, loop_time() - began, cut_off))

    async def _stop_copy(self) -> None:
        self._move(State.STOPPING)
        extension = self._extension
        await self._end_copy(is_asked=True)
        if extension is not None:
            self._events.publish(describe_exit(self.id, extension.peer.close_reason, expected=True))
        self._wish = Wish.NOTHING
        self._move(State.STOPPED)
        self._events.publish(ExtensionStopped(self.id))

    async def _end_copy(self, *, is_asked: bool = False, hung_because: str = "") -> None:
        extension, self._extension = self._extension, None
        self._tell()
        if extension is not None:
            if hung_because and extension.peer.process is not None:
                extension.peer.process.kill()  # it does not read: the end of its stdin and SIGTERM would be waited out
            await (extension.shutdown() if is_asked else extension.aclose(hung_because and f"{self.id} {hung_because}"))

    def _fail(self, error: BecketError, because: str = "") -> None:
        self.failure = error
        self._wants_running = False
        said = without_id(self.id, str(error))
        text = f"{because}: {said}" if because else said
        self._move(State.FAILED)
        tail = error.stderr_tail if isinstance(error, PeerCrashed | StartFailed) else ""
        self._events.publish(ExtensionFailed(self.id, text, stderr_tail=tail))

    def _pid(self) -> int | None:
        process = None if self._extension is None else self._extension.peer.process
        return None if process is None else process.pid

    # -- telling and waiting

    def _move(self, to: State) -> None:
        before = self.state
        self._life = self._life.move(to, loop_time())
        self._events.publish(ExtensionMoved(self.id, before, to))
        self._tell()

    def _tell(self) -> None:
        changed, self._changed = self._changed, anyio.Event()
        changed.set()

    async def _wait_while(self, condition: Callable[[], bool]) -> None:
        while condition():
            await self._changed.wait()


def text_of(id: str, error: BecketError) -> str:
    """Returns why a copy has ended, without its id; of one that the host itself has ended, the reason alone."""
    if isinstance(error, ConnectionLost) and error.reason is DisconnectReason.LOCAL_CLOSE and error.detail:
        return error.detail
    return without_id(id, str(error))


def describe_exit(id: str, lost: ConnectionLost | None, *, expected: bool) -> ExtensionExited:
    if isinstance(lost, PeerCrashed):
        return ExtensionExited(id, lost.exit_code, lost.signal, lost.stderr_tail, expected)
    return ExtensionExited(id, None, expected=expected)
