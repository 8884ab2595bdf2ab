"""Owns one extension process: starts, watches, restarts, reloads and stops it from one task.

One task makes all transitions of an extension, so two processes of it never run at once, except in a reload. Pure
functions decide (`lifecycle`, `restart`, `breaker`, `heartbeat`). Other tasks send requests, and wait.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import anyio

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
from becket.host.breaker import Breaker, BreakerState, Ticket, classify_error
from becket.host.diagnostics import without_id
from becket.host.events import (
    EventBus,
    ExtensionDegraded,
    ExtensionDisabled,
    ExtensionEnabled,
    ExtensionFailed,
    ExtensionRecovered,
    ExtensionReloaded,
    ExtensionRestarted,
    ExtensionRestarting,
    ExtensionStarted,
    ExtensionStarting,
    ExtensionStateChanged,
    ExtensionStopped,
    HostStalled,
)
from becket.host.exit_cause import ExitCause, Intent, build_exit_event, text_of
from becket.host.extension_connection import ExtensionConnection
from becket.host.heartbeat import HeartbeatDecision, HeartbeatPolicy, Liveness
from becket.host.heartbeat_timer import Heartbeats
from becket.host.lifecycle import (
    INACTIVE_STATES,
    ON_START,
    ON_STOP,
    RUNNING_STATES,
    STARTING_STATES,
    Drain,
    ExtensionState,
    Health,
    Lifecycle,
    RequestAction,
)
from becket.host.metrics import ExtensionMetrics, MetricsRecorder
from becket.host.restart import GiveUp, RestartHistory, Stagger, decide_restart
from becket.host.supervision_policy import SupervisionPolicy
from becket.peer.loops.async_loops import current_loop, loop_time

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

__all__ = ["Supervisor"]

T = TypeVar("T")

READY_TIMEOUT = 60.0  # seconds for a call that waits until its extension runs


class Supervisor:
    """The owner of one extension. `run` is its task; the other methods may be called from any task.

    `before_reload` is called before a reload; if it raises, the running process stays. The extensions of one host share
    its `heartbeats`. If any thread may read the `clock`, any thread may read the state."""

    def __init__(
        self,
        id: str,
        start: Callable[[], Awaitable[ExtensionConnection]],
        *,
        events: EventBus,
        supervision: SupervisionPolicy | None = None,
        command: tuple[str, ...] = (),
        version: str | None = None,
        stagger: Stagger | None = None,
        random: Callable[[], float] = random.random,
        before_reload: Callable[[], Awaitable[None]] | None = None,
        heartbeats: Heartbeats | None = None,
        clock: Callable[[], float] = loop_time,
    ) -> None:
        self.id = id
        self.supervision = supervision or SupervisionPolicy()
        self.command = command
        self.version = version
        self.failure: BecketError | None = None
        self._start = start
        self._before_reload = before_reload
        self._heartbeats = heartbeats
        self._clock = clock
        self._events = events
        self._stagger = stagger
        self._random = random
        self._lifecycle = Lifecycle(id)
        self._history = RestartHistory()
        self._breaker = Breaker(id, self.supervision.breaker)
        self._metrics = MetricsRecorder()
        self._extension: ExtensionConnection | None = None
        self._replaced: ExtensionConnection | None = None  # calls without a response, by a reload
        self._is_draining = False  # a replaced process ends
        self._not_reloaded: BecketError | None = None  # why the last reload kept the running process
        self._initializers: list[Callable[[ExtensionConnection], object]] = []
        self._wants_running = False
        self.was_stopped = False  # manually: only a manual start starts it again
        self._intent = Intent.NONE
        self._stop_reason = ""
        self._exit_cause: ExitCause | None = None  # of the running process
        self._generation = 0
        self._is_closing = False
        self._is_closed = False
        self._calls: dict[ExtensionConnection, int] = {}  # in flight, by connection
        self._changed = anyio.Event()
        self._on_start_settled: Callable[[], object] | None = None
        self._starting: anyio.CancelScope | None = None

    # -- state

    @property
    def supervisor(self) -> Supervisor:
        """Itself: a handle asks its source for it, and the source may be a `SingleConnection`."""
        return self

    @property
    def state(self) -> ExtensionState:
        """The lifecycle state of the extension."""
        return self._lifecycle.state

    @property
    def restarts(self) -> int:
        """How often it was restarted, in all."""
        return self._history.total

    @property
    def in_flight(self) -> int:
        """How many calls are pending."""
        return sum(self._calls.values())

    def metrics(self, inbound: int = 0) -> ExtensionMetrics:
        """Returns how often it is called, and its latencies; it has called its host `inbound` times."""
        return self._metrics.snapshot(self._clock(), inbound)

    def health(self) -> Health:
        """Returns its health, in one word."""
        return self._lifecycle.health(self._recent_restarts())

    def _recent_restarts(self) -> int:
        ready_at = self._history.ready_at
        has_stayed_up = ready_at is not None and self._clock() - ready_at >= self.supervision.restart.healthy_after
        return 0 if has_stayed_up else self._history.consecutive

    def current(self) -> ExtensionConnection | None:
        """Returns the connection of the running process, None if there is none."""
        return self._extension

    @property
    def restarts_on_errors(self) -> bool:
        """Whether a process that responds with an error is replaced, and the call sent once more."""
        return self.supervision.restarts_on_errors

    @property
    def resends_hooks(self) -> bool:
        """Whether a hook whose process has died is sent once more."""
        return bool(self.supervision.resends_hooks)

    # -- requests

    async def start(self) -> ExtensionConnection:
        """Starts the extension, unless it runs or is starting, and returns its connection.

        Raises:
            NotRunning: it is disabled, or was stopped before it was ready.
            StartFailed, HandshakeFailed, ...: why it could not be started.
        """
        self._request_start()
        await self._wait_while(self._is_start_awaited)
        return await self.ready(timeout=None)

    def start_nowait(self, on_settled: Callable[[], object]) -> None:
        """Starts the extension like `start`, and calls a function once it runs or has failed: no task waits for that.

        Raises:
            NotRunning: it is disabled, or its host closes.
        """
        self._request_start()
        self._on_start_settled = on_settled
        self._notify_waiters()

    def _request_start(self) -> None:
        if self._is_closing:
            raise NotRunning(self.id, self.state, "its host closes")
        action = ON_START[ExtensionState.STOPPING if self._is_stopping() else self.state]
        if action is RequestAction.REFUSE:
            raise NotRunning(self.id, self.state, "enable it first")
        if action in (RequestAction.BEGIN, RequestAction.BEGIN_AFTER):
            self.was_stopped = False
            self.failure = None
            self._history = self._history.cleared()
            self._wants_running = True
            self._notify_waiters()

    def _is_start_awaited(self) -> bool:
        """Whether a start was requested and has not begun."""
        return self._is_inactive() and self._wants_running and not self._is_closed

    def _is_inactive(self) -> bool:
        return self.state in (*INACTIVE_STATES, ExtensionState.STOPPING) or self._is_stopping()

    def _is_stopping(self) -> bool:
        """Whether a stop was requested, and it has not ended."""
        return self._intent is Intent.STOP and self.state not in INACTIVE_STATES

    async def stop(self, reason: str = "") -> None:
        """Stops the extension in order; returns when its process is gone. May be called twice."""
        self._wants_running, self.was_stopped = False, True
        self._stop_reason = reason
        life = self._generation  # it may be started again at once: that is not waited for
        if ON_STOP[self.state] is RequestAction.BEGIN:
            self._intent = Intent.STOP
            if self._starting is not None:
                self._starting.cancel()
        self._notify_waiters()
        await self._wait_while(
            lambda: self.state not in INACTIVE_STATES and self._generation == life and not self._is_closed
        )

    async def aclose(self, because: str = "") -> None:
        """Stops the extension like `stop`."""
        await self.stop(because)

    async def reload(self) -> None:
        """Starts a new process from the current files, and ends the running one when the new one is ready.

        The running process gets time to finish its calls. If the new one cannot be started, the running one stays.

        Raises:
            ExtensionRefused: the current files may not start.
            NotRunning: it was stopped meanwhile.
            StartFailed, HandshakeFailed, ...: why the new process could not be started.
        """
        if self._before_reload is not None:
            await self._before_reload()
        await self._exchange(Intent.RELOAD)

    async def replace(self) -> None:
        """Ends the running process, which gets time to finish its calls, and starts a new one.

        Raises:
            NotRunning: it was stopped meanwhile.
            StartFailed, HandshakeFailed, ...: why the new process could not be started.
        """
        await self._exchange(Intent.REPLACE)

    async def _exchange(self, intent: Intent) -> None:
        await self._wait_while(lambda: self._starting is not None)  # one that is starting may have the previous files
        if self.state not in RUNNING_STATES or self._is_stopping():
            await self.start()
            return
        self._intent, self._not_reloaded = intent, None
        self._notify_waiters()
        await self._wait_while(
            lambda: (
                (self._intent is intent or self._is_draining)
                and self.state in (*RUNNING_STATES, ExtensionState.RESTARTING)
            )
        )
        if self._not_reloaded is not None:
            raise copy(self._not_reloaded)
        if self._is_stopping():
            raise NotRunning(self.id, self.state, "it was stopped meanwhile")
        await self.ready(timeout=None)

    async def disable(self, because: str = "") -> None:
        """Stops the extension and prevents starts."""
        await self.stop()
        if self.state is not ExtensionState.DISABLED:
            self._transition(ExtensionState.DISABLED)
            self._events.publish(ExtensionDisabled(self.id, because))

    def enable(self) -> None:
        """Allows starts again."""
        if self.state is ExtensionState.DISABLED:
            self._transition(ExtensionState.STOPPED)
            self._events.publish(ExtensionEnabled(self.id))

    def refuse(self, error: ExtensionRefused) -> None:
        """Disables the extension for this reason; it may have been refused before."""
        self.failure = error
        if self.state is not ExtensionState.FAILED:
            self._transition(ExtensionState.FAILED)

    async def ready(self, *, timeout: float | None = READY_TIMEOUT) -> ExtensionConnection:
        """Waits until the extension runs, and returns its connection.

        Raises:
            NotRunning: it is stopped or disabled.
            CallTimeout: it was not ready within `timeout` seconds.
            StartFailed, HandshakeFailed, PeerCrashed, ...: why it does not run.
        """
        with anyio.move_on_after(timeout):
            if self.supervision.starts_on_demand and self.state is ExtensionState.STOPPED and not self.was_stopped:
                await self.start()
            await self._wait_while(lambda: self._is_transitional() and not self._is_closed)
            if self._extension is not None and self.state in RUNNING_STATES:
                return self._extension
            if self.failure is not None:
                raise copy(self.failure)
            raise NotRunning(self.id, self.state, "start it first")
        raise CallTimeout(f"the start of {self.id}", timeout or 0.0)

    def _running(self) -> ExtensionConnection | None:
        """Returns the connection that can be called at once."""
        current = self._extension
        if current is not None and self._lifecycle.state in RUNNING_STATES and current.peer.close_reason is None:
            return current
        return None

    def _is_transitional(self) -> bool:
        """Whether the state is about to change: it starts, stops, or is dead and its owner has not noticed yet."""
        is_dead = self._extension is None or self._extension.peer.close_reason is not None
        return self.state in (*STARTING_STATES, ExtensionState.STOPPING) or (is_dead and self.state in RUNNING_STATES)

    def reconfigure(self, supervision: SupervisionPolicy, *, command: tuple[str, ...], version: str | None) -> None:
        """Changes the supervision policy from the next start on."""
        if supervision.breaker != self.supervision.breaker:
            self._breaker = Breaker(self.id, supervision.breaker)
        self.supervision, self.command, self.version = supervision, command, version

    def add_initializer(self, arrangement: Callable[[ExtensionConnection], object]) -> None:
        """Calls a function with the running connection, and with each later one from its first moment."""
        self._initializers.append(arrangement)
        if self._extension is not None:
            arrangement(self._extension)

    async def call(self, action: Callable[[ExtensionConnection], Awaitable[T]], *, repeat: bool = False) -> T:
        """Runs an action with the running process, after waiting for one that is starting, and returns its result.

        With `repeat` it is run again with the next process if this one dies meanwhile; with `restarts_on_errors` once
        more, also if this one responds with an error.

        Raises:
            CircuitOpen: too many calls have failed lately; it was not tried.
        """
        may_resend = self.supervision.restarts_on_errors
        while True:
            extension: ExtensionConnection | None = None
            try:
                extension = self._running() or await self.ready()
                began = self._clock()
                ticket = self._begin_call(extension, began)
                try:
                    result = await action(extension)
                except BaseException as error:
                    self._end_call(extension, ticket, began, error)
                    raise
                self._end_call(extension, ticket, began, None)
                return result
            except (ConnectionLost, RemoteError) as error:
                is_repeated = repeat and isinstance(error, ConnectionLost)
                if not (is_repeated or may_resend) or not await self.replace_failed(extension, error):
                    raise
                may_resend = may_resend and is_repeated

    async def replace_failed(self, extension: ExtensionConnection | None, error: BecketError) -> bool:
        """Ends a process that has responded with an error, and waits until it, or one that has died, is gone.

        Returns whether another one may follow; after any other failure, or after a manual stop, none does."""
        if not self._wants_running or not isinstance(error, ConnectionLost | RemoteError):
            return False
        if extension is not None and isinstance(error, RemoteError):
            await extension.aclose()
        await self._wait_while(partial(self._is_current, extension))
        return True

    def _is_current(self, extension: ExtensionConnection | None) -> bool:
        return self._extension is extension

    @asynccontextmanager
    async def acquire(self) -> AsyncGenerator[ExtensionConnection, None]:
        """Yields the running connection, and counts the block as a call."""
        extension = self._running() or await self.ready()
        began = self._clock()
        ticket = self._begin_call(extension, began)
        try:
            yield extension
        except BaseException as error:
            self._end_call(extension, ticket, began, error)
            raise
        self._end_call(extension, ticket, began, None)

    def _begin_call(self, extension: ExtensionConnection, now: float) -> Ticket:
        ticket = self._breaker.admit(now)
        self._calls[extension] = self._calls.get(extension, 0) + 1
        return ticket

    def _end_call(
        self, extension: ExtensionConnection, ticket: Ticket, began: float, error: BaseException | None
    ) -> None:
        """Counts the outcome of a call. Raises for one that a reload has cut off, since its own error is about the
        link.

        A call wakes no task, unless the circuit has changed or the process is drained."""
        left = self._calls[extension] - 1
        if left:
            self._calls[extension] = left
        else:
            del self._calls[extension]
        ended = self._clock()
        has_changed = self._breaker.record(ticket, classify_error(error), ended)
        self._metrics.record(began, ended, failed=error is not None)
        if has_changed or (not left and (self._is_draining or self.state is ExtensionState.RESTARTING)):
            self._notify_waiters()
        if (
            extension is self._replaced
            and isinstance(error, ConnectionLost)
            and error.reason is DisconnectReason.LOCAL_CLOSE
        ):
            raise ConnectionLost(DisconnectReason.LOCAL_CLOSE, f"{self.id} was reloaded before it responded") from error

    # -- the owner task

    async def run(self) -> None:
        """Owns the extension until `close`. No failure of the extension ends it."""
        own_loop = None
        if self._heartbeats is None:
            own_loop = await current_loop()
            self._heartbeats = Heartbeats(own_loop)
        try:
            while not self._is_closed:
                await self._wait_while(lambda: not self._wants_running and not self._is_closed)
                if not self._is_closed:
                    await self._run_until_stopped()
        finally:
            with anyio.CancelScope(shield=True):
                await self._close_instance()
            self._is_closed = True
            self._notify_waiters()
            if own_loop is not None:
                own_loop.close()

    async def close(self) -> None:
        """Stops the extension, and ends `run`; starts are refused meanwhile."""
        self._is_closing = True
        await self.stop()
        self._is_closed = True
        self._notify_waiters()

    async def _run_until_stopped(self) -> None:
        """Runs the extension from its first start until it was stopped, or has failed."""
        self._intent, self._stop_reason = Intent.NONE, ""
        self._generation += 1
        self._transition(ExtensionState.SPAWNING)
        began = self._clock()
        try:
            started = await self._start_instance()
        except BecketError as error:
            self._fail(error)
            return
        if not started:
            await self._stop_instance()
            return
        self._transition(ExtensionState.READY)
        self._events.publish(ExtensionStarted(self.id, self._pid(), self._clock() - began, self.version))
        while self.state is not ExtensionState.STOPPED and self.state is not ExtensionState.FAILED:
            cause = await self._wait_for_exit_or_intent()
            if cause.intent is Intent.STOP:
                await self._stop_instance()
            elif cause.intent is Intent.RELOAD:
                await self._reload_copy()
            elif cause.intent is Intent.REPLACE:
                await self._replace_instance()
            else:
                await self._restart_or_fail(cause)

    async def _start_instance(self) -> bool:
        """Starts a process; returns False if it is to stop meanwhile. Raises failures."""
        extension = await self._open_copy()
        if extension is None:
            return False
        self._adopt_copy(extension)
        return self._intent is not Intent.STOP

    async def _open_copy(self) -> ExtensionConnection | None:
        """Starts a process beside a running one; returns None if it is to stop meanwhile."""
        self._events.publish(ExtensionStarting(self.id, self.command))
        extension: ExtensionConnection | None = None
        with anyio.CancelScope() as self._starting:
            try:
                extension = await self._start()
            finally:
                self._starting = None
                self._notify_waiters()
        return extension

    def _adopt_copy(self, extension: ExtensionConnection) -> None:
        self._extension, self._exit_cause = extension, None
        self._breaker.reset()
        self._history = self._history.became_ready(self._clock())
        for arrangement in self._initializers:
            arrangement(extension)

    async def _wait_for_exit_or_intent(self) -> ExitCause:
        """Waits until the running process needs an action."""
        assert self._extension is not None
        peer = self._extension.peer
        stop_heartbeat = self._keep_heartbeat(self._extension)
        peer.add_close_callback(self._on_closed)  # a callback, not a task: a host has hundreds of extensions
        try:
            is_open = False
            while self._exit_cause is None and self._intent is Intent.NONE:
                is_open = self._watch_breaker(is_open)
                await self._changed.wait()
        finally:
            stop_heartbeat()
            peer.remove_close_callback(self._on_closed)
        return self._exit_cause or ExitCause(self._intent.value, intent=self._intent)

    def _on_closed(self) -> None:
        assert self._extension is not None
        lost = self._extension.peer.close_reason
        self._set_exit_cause(ExitCause(str(lost), lost))

    def _on_dead(self, policy: HeartbeatPolicy) -> None:
        because = f"did not respond to a ping for {policy.dead_after:g} s and was ended: does it block its event loop?"
        self._set_exit_cause(ExitCause(because, is_hung=True))

    def _set_exit_cause(self, cause: ExitCause) -> None:
        self._exit_cause = self._exit_cause or cause
        self._notify_waiters()

    def _watch_breaker(self, was_open: bool) -> bool:
        """Sets the extension degraded while its circuit is open; returns whether it is."""
        is_open = self._breaker.state(self._clock()) is not BreakerState.CLOSED
        if is_open and not was_open:
            self._mark_degraded("too many of its calls fail")
        elif was_open and not is_open:
            self._mark_recovered()
        return is_open

    def _keep_heartbeat(self, extension: ExtensionConnection) -> Callable[[], object]:
        """Calls `_on_dead` when the extension is dead; returns a function that stops the heartbeat."""
        policy = self.supervision.heartbeat
        if policy is None or "ping" not in extension.features:
            return lambda: None
        assert self._heartbeats is not None  # set while `run` runs
        return self._heartbeats.add(extension.peer, policy, self._take_beat, partial(self._on_dead, policy))

    def _take_beat(self, beat: HeartbeatDecision) -> None:
        if beat.stalled:
            self._events.publish(HostStalled(beat.stalled))
        if beat.liveness is Liveness.SLOW:
            self._mark_degraded("it is slow to respond")
        elif (
            beat.liveness is Liveness.ALIVE
            and self.state is ExtensionState.DEGRADED
            and self._breaker.state(self._clock()) is BreakerState.CLOSED
        ):
            self._mark_recovered()

    def _mark_degraded(self, because: str) -> None:
        if self.state is ExtensionState.READY:
            self._transition(ExtensionState.DEGRADED)
            self._events.publish(ExtensionDegraded(self.id, because))

    def _mark_recovered(self) -> None:
        if self.state is ExtensionState.DEGRADED:
            self._transition(ExtensionState.READY)
            self._events.publish(ExtensionRecovered(self.id))

    async def _restart_or_fail(self, cause: ExitCause) -> None:
        """Restarts a process that has ended by itself, or is dead, if the policy allows it."""
        lost = cause.lost
        ended_at = self._clock()
        await self._close_instance(hung_because=cause.reason if cause.is_hung else "")
        self._events.publish(build_exit_event(self.id, lost, expected=False))
        because: BecketError = lost or ConnectionLost(DisconnectReason.LOCAL_CLOSE, cause.reason)
        while True:
            decision = decide_restart(self.supervision.restart, self._history, now=self._clock(), random=self._random)
            self._history = decision.history
            if isinstance(decision, GiveUp):
                self._fail(because, decision.because)
                return
            if self.state is not ExtensionState.RESTARTING:
                self._transition(ExtensionState.RESTARTING)
            self._events.publish(
                ExtensionRestarting(self.id, decision.attempt, decision.delay, text_of(self.id, because))
            )
            if not await self._wait_restart_delay(decision.delay):
                await self._stop_instance()
                return
            try:
                started = await self._start_instance()
            except ExtensionRefused as error:  # another attempt would only prompt again
                self._fail(error)
                return
            except BecketError as error:
                because = error
                continue
            if not started:
                await self._stop_instance()
                return
            self._transition(ExtensionState.READY)
            self._events.publish(
                ExtensionRestarted(self.id, self._pid(), self._history.total, self._clock() - ended_at)
            )
            return

    async def _wait_restart_delay(self, delay: float) -> bool:
        """Waits before a restart; returns False if the extension is to stop meanwhile."""
        with anyio.move_on_after(delay):
            await self._wait_while(lambda: self._intent is not Intent.STOP)
        if self._stagger is not None and (wait := self._stagger.reserve(self._clock())):
            with anyio.move_on_after(wait):
                await self._wait_while(lambda: self._intent is not Intent.STOP)
        return self._intent is not Intent.STOP

    async def _reload_copy(self) -> None:
        """Starts a new process, routes further calls to it, and ends the one before it."""
        began = self._clock()
        old = self._extension
        try:
            new = await self._open_copy()
        except BecketError as error:
            self._not_reloaded = error
            self._intent = Intent.NONE
            self._notify_waiters()
            return
        if new is None or self._intent is Intent.STOP:
            if new is not None:
                await new.aclose()
            await self._stop_instance()
            return
        self._adopt_copy(new)
        self._mark_recovered()
        self._intent = Intent.NONE
        self._notify_waiters()
        cut_off = 0 if old is None else await self._drain_copy(old)
        self._events.publish(ExtensionReloaded(self.id, self._clock() - began, cut_off))

    async def _drain_copy(self, old: ExtensionConnection) -> int:
        """Ends a replaced process after its pending calls; returns how many were cut off."""
        self._is_draining = True
        try:
            with anyio.move_on_after(self.supervision.drain_timeout):
                await self._wait_while(lambda: old in self._calls and self._intent is not Intent.STOP)
            cut_off = self._calls.get(old, 0)
            self._replaced = old
            await old.shutdown()
        finally:
            self._is_draining = False
            self._notify_waiters()
            with anyio.CancelScope(shield=True):
                await old.aclose()
        return cut_off

    async def _replace_instance(self) -> None:
        began = self._clock()
        self._transition(ExtensionState.RESTARTING)
        drain = Drain(began, self.supervision.drain_timeout)
        with anyio.move_on_after(drain.remaining(self._clock())):
            await self._wait_while(lambda: self.in_flight > 0 and self._intent is not Intent.STOP)
        cut_off = self.in_flight
        self._replaced = self._extension
        await self._close_instance(is_requested=True)
        if self._intent is Intent.STOP:
            await self._stop_instance()
            return
        try:
            started = await self._start_instance()
        except BecketError as error:
            self._intent = Intent.NONE
            self._fail(error)
            return
        if not started:
            await self._stop_instance()
            return
        self._intent = Intent.NONE
        self._transition(ExtensionState.READY)
        self._events.publish(ExtensionReloaded(self.id, self._clock() - began, cut_off))

    async def _stop_instance(self) -> None:
        self._transition(ExtensionState.STOPPING)
        extension = self._extension
        await self._close_instance(is_requested=True)
        if extension is not None:
            self._events.publish(build_exit_event(self.id, extension.peer.close_reason, expected=True))
        self._intent = Intent.NONE
        self._transition(ExtensionState.STOPPED)
        self._events.publish(ExtensionStopped(self.id))

    async def _close_instance(self, *, is_requested: bool = False, hung_because: str = "") -> None:
        extension, self._extension = self._extension, None
        self._notify_waiters()
        if extension is not None:
            if hung_because and extension.peer.process is not None:
                extension.peer.process.kill()  # it does not read: it would ignore the end of its stdin and SIGTERM
            if is_requested:
                await extension.shutdown(self._stop_reason)
            else:
                await extension.aclose(hung_because and f"{self.id} {hung_because}")

    def _fail(self, error: BecketError, because: str = "") -> None:
        self.failure = error
        self._wants_running = False
        text_of_error = without_id(self.id, str(error))
        text = f"{because}: {text_of_error}" if because else text_of_error
        self._transition(ExtensionState.FAILED)
        tail = error.stderr_tail if isinstance(error, PeerCrashed | StartFailed) else ""
        self._events.publish(ExtensionFailed(self.id, text, stderr_tail=tail))

    def _pid(self) -> int | None:
        process = None if self._extension is None else self._extension.peer.process
        return None if process is None else process.pid

    # -- events and waiting

    def _transition(self, to: ExtensionState) -> None:
        before = self.state
        self._lifecycle = self._lifecycle.transition(to, self._clock())
        self._events.publish(ExtensionStateChanged(self.id, before, to))
        self._notify_waiters()

    def _notify_waiters(self) -> None:
        changed, self._changed = self._changed, anyio.Event()
        changed.set()
        on_settled = self._on_start_settled
        if on_settled is not None and not self._is_start_awaited() and (not self._is_transitional() or self._is_closed):
            self._on_start_settled = None
            on_settled()

    async def _wait_while(self, condition: Callable[[], bool]) -> None:
        while condition():
            await self._changed.wait()
