"""One supervised extension: its start, its end, its restarts, and the calls meanwhile."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import anyio
import msgspec
import pytest
from tests.peer.scripted import in_virtual_time

from becket.errors import (
    CallTimeout,
    CircuitOpen,
    ConnectionLost,
    DisconnectReason,
    ExtensionRefused,
    NotRunning,
    PeerCrashed,
    RemoteError,
    StartFailed,
)
from becket.host.breaker import BreakerPolicy
from becket.host.events import (
    EventBus,
    ExtensionDegraded,
    ExtensionExited,
    ExtensionFailed,
    ExtensionRecovered,
    ExtensionReloaded,
    ExtensionRestarted,
    ExtensionRestarting,
    ExtensionStarted,
    ExtensionStopped,
    HostEvent,
)
from becket.host.extension import Extension
from becket.host.heartbeat import HeartbeatPolicy
from becket.host.lifecycle import ExtensionState, Health
from becket.host.restart import RestartPolicy, RestartStrategy, Stagger
from becket.host.supervision_policy import SupervisionPolicy
from becket.host.supervisor import Supervisor
from becket.peer.loops.async_loops import loop_time

pytestmark = pytest.mark.loops

CRASH = PeerCrashed(exit_code=3, stderr_tail="boom\n")
QUICK = SupervisionPolicy(restart=RestartPolicy(delay=0.001, longest_delay=0.002), heartbeat=None)


class Link:
    """The peer of a copy that a test plays."""

    process = None

    def __init__(self) -> None:
        self.features = frozenset({"ping"})
        self.close_reason: ConnectionLost | None = None
        self.last_received_at = 0.0
        self.answers_pings = True
        self.pinged = anyio.Event()
        self._ended = anyio.Event()
        self._callbacks: list[Callable[[], object]] = []

    async def wait_closed(self) -> ConnectionLost:
        await self._ended.wait()
        assert self.close_reason is not None
        return self.close_reason

    def add_close_callback(self, callback: Callable[[], object]) -> None:
        self._callbacks.append(callback)
        if self.close_reason is not None:
            callback()

    def remove_close_callback(self, callback: Callable[[], object]) -> None:
        self._callbacks.remove(callback)

    def end(self, reason: ConnectionLost) -> None:
        self.close_reason = self.close_reason or reason
        self._ended.set()
        for callback in self._callbacks:
            callback()

    def ping_nowait(self) -> None:
        if self.answers_pings:
            self.last_received_at = loop_time()
            self.pinged.set()


class Copy:
    """A copy of an extension that a test plays."""

    def __init__(self) -> None:
        self.peer = Link()
        self.was_asked = False
        self.answered = anyio.Event()
        self.may_end: anyio.Event | None = None  # None: at once

    @property
    def features(self) -> frozenset[str]:
        return self.peer.features

    async def work(self) -> str:
        async with anyio.create_task_group() as tasks:

            async def wait_for_end() -> None:
                await self.peer.wait_closed()
                tasks.cancel_scope.cancel()

            tasks.start_soon(wait_for_end)
            await self.answered.wait()
            tasks.cancel_scope.cancel()
        if self.peer.close_reason is not None:
            raise self.peer.close_reason
        return "done"

    async def shutdown(self, reason: str = "") -> None:
        self.was_asked = True
        if self.may_end is not None:
            await self.may_end.wait()
        await self.aclose()

    async def aclose(self, because: str = "") -> None:
        self.peer.end(ConnectionLost(DisconnectReason.LOCAL_CLOSE, because))


class Stage:
    """A supervisor, the copies that it has started, and its events."""

    def __init__(self, supervision: SupervisionPolicy, start: Callable[[int], Any] | None, **options: Any) -> None:
        self.copies: list[Copy] = []
        self.reported: list[HostEvent] = []
        events = EventBus()
        events.subscribe(HostEvent, self._take)
        self._start = start
        self._news = anyio.Event()
        self.supervisor = Supervisor(
            "notes", self._open, events=events, supervision=supervision, random=lambda: 0.0, **options
        )

    async def _open(self) -> Extension:
        if self._start is not None:
            await self._start(len(self.copies))
        self.copies.append(Copy())
        return cast("Extension", self.copies[-1])

    def _take(self, event: HostEvent) -> None:
        self.reported.append(event)
        news, self._news = self._news, anyio.Event()
        news.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        with anyio.fail_after(60):
            while not condition():
                await self._news.wait()

    def kinds(self, *kinds: type[HostEvent]) -> list[HostEvent]:
        return [event for event in self.reported if isinstance(event, kinds)]


@asynccontextmanager
async def staged(
    supervision: SupervisionPolicy = QUICK, start: Callable[[int], Any] | None = None, **options: Any
) -> AsyncGenerator[Stage, None]:
    stage = Stage(supervision, start, **options)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stage.supervisor.run)
            yield stage
            await stage.supervisor.close()


def work(extension: Extension) -> Any:
    return cast("Copy", extension).work()


async def give_up(_: int) -> None:
    raise StartFailed("notes", "no such file")


# -- start and stop


async def test_start_returns_the_handle_and_stop_sends_shutdown() -> None:
    async with staged() as stage:
        assert stage.supervisor.state is ExtensionState.STOPPED
        handle = await stage.supervisor.start()
        assert handle is cast("Any", stage.copies[0])
        assert (stage.supervisor.state, stage.supervisor.health()) == (ExtensionState.READY, Health.RUNNING)
        await stage.supervisor.stop()
        assert stage.supervisor.state is ExtensionState.STOPPED
        assert stage.copies[0].was_asked
        assert stage.supervisor.current() is None
    assert [type(event) for event in stage.kinds(ExtensionStarted, ExtensionExited, ExtensionStopped)] == [
        ExtensionStarted,
        ExtensionExited,
        ExtensionStopped,
    ]


async def test_starting_twice_at_once_starts_one_copy() -> None:
    async with staged() as stage, anyio.create_task_group() as tasks:
        tasks.start_soon(stage.supervisor.start)
        tasks.start_soon(stage.supervisor.start)
        await stage.supervisor.start()
        assert len(stage.copies) == 1


async def test_stopping_twice_at_once_is_once() -> None:
    async with staged() as stage:
        await stage.supervisor.start()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stage.supervisor.stop)
            tasks.start_soon(stage.supervisor.stop)
        assert len(stage.kinds(ExtensionStopped)) == 1


async def test_a_first_start_that_fails_is_not_repeated_and_raises_the_reason() -> None:
    async with staged(start=give_up) as stage:
        with pytest.raises(StartFailed):
            await stage.supervisor.start()
        assert (stage.supervisor.state, stage.supervisor.health()) == (ExtensionState.FAILED, Health.FAILED_INITIALIZE)
        with pytest.raises(StartFailed):
            await stage.supervisor.ready()
    (failed,) = stage.kinds(ExtensionFailed)
    assert isinstance(failed, ExtensionFailed)
    assert "no such file" in failed.because


@pytest.mark.parametrize(("start", "state"), [(None, ExtensionState.READY), (give_up, ExtensionState.FAILED)])
async def test_a_start_without_a_waiting_task_calls_back_once_with_its_outcome(
    start: Callable[[int], Any] | None, state: ExtensionState
) -> None:
    states: list[ExtensionState] = []
    is_settled = anyio.Event()
    async with staged(start=start) as stage:

        def on_settled() -> None:
            states.append(stage.supervisor.state)
            is_settled.set()

        stage.supervisor.start_nowait(on_settled)
        assert states == []
        await is_settled.wait()
    assert states == [state]


async def test_a_start_that_is_stopped_before_it_has_begun_calls_back() -> None:
    is_settled = anyio.Event()
    async with staged() as stage:
        stage.supervisor.start_nowait(is_settled.set)
        await stage.supervisor.stop()
        await is_settled.wait()
        assert stage.copies == []


async def test_a_failed_extension_can_be_started_explicitly() -> None:
    attempts = 0

    async def start(_: int) -> None:
        nonlocal attempts
        attempts += 1
        if attempts == 1:
            raise StartFailed("notes", "not yet")

    async with staged(start=start) as stage:
        with pytest.raises(StartFailed):
            await stage.supervisor.start()
        await stage.supervisor.start()
        assert stage.supervisor.state is ExtensionState.READY


async def test_a_stop_in_the_midst_of_a_start_leaves_nothing() -> None:
    begun, left = anyio.Event(), anyio.Event()

    async def start(_: int) -> None:
        try:
            begun.set()
            await anyio.sleep_forever()
        finally:
            left.set()

    async with staged(start=start) as stage, anyio.create_task_group() as tasks:

        async def ask() -> None:
            with pytest.raises(NotRunning):
                await stage.supervisor.start()

        tasks.start_soon(ask)
        await begun.wait()
        await stage.supervisor.stop()
        assert left.is_set()
        assert stage.copies == []


async def test_a_caller_that_leaves_while_it_starts_does_not_end_the_start() -> None:
    begun, go_on = anyio.Event(), anyio.Event()

    async def start(_: int) -> None:
        begun.set()
        await go_on.wait()

    async with staged(start=start) as stage:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stage.supervisor.start)
            await begun.wait()
            tasks.cancel_scope.cancel()
        go_on.set()
        await stage.supervisor.ready()
        assert len(stage.copies) == 1


async def test_a_disabled_extension_cannot_be_started_until_it_is_enabled() -> None:
    async with staged() as stage:
        await stage.supervisor.start()
        await stage.supervisor.disable("by hand")
        with pytest.raises(NotRunning) as refused:
            await stage.supervisor.start()
        assert refused.value.state == "disabled"
        await stage.supervisor.disable()
        stage.supervisor.enable()
        stage.supervisor.enable()
        await stage.supervisor.start()
        assert stage.supervisor.state is ExtensionState.READY


async def test_waiting_for_a_refused_extension_raises_the_reason() -> None:
    async with staged() as stage:
        stage.supervisor.refuse(ExtensionRefused("notes", "it needs ffmpeg"))
        with pytest.raises(ExtensionRefused):
            await stage.supervisor.ready()
        assert stage.supervisor.health() is Health.FAILED_VALIDATION


async def test_an_extension_that_is_refused_again_has_the_newest_reason() -> None:
    async with staged() as stage:
        for because in ("it needs ffmpeg", "it needs notes"):
            stage.supervisor.refuse(ExtensionRefused("notes", because))
            with pytest.raises(ExtensionRefused) as refused:
                await stage.supervisor.ready()
            assert refused.value.because == because


async def test_waiting_for_an_extension_that_is_not_started_fails_at_once() -> None:
    async with staged() as stage:
        with pytest.raises(NotRunning):
            await stage.supervisor.ready()


async def test_waiting_for_a_start_has_an_end() -> None:
    async def start(_: int) -> None:
        await anyio.sleep_forever()

    async with staged(start=start) as stage, anyio.create_task_group() as tasks:

        async def ask() -> None:
            with pytest.raises(NotRunning):
                await stage.supervisor.start()

        tasks.start_soon(ask)
        await stage.until(lambda: stage.supervisor.state is ExtensionState.SPAWNING)
        with pytest.raises(CallTimeout):
            await stage.supervisor.ready(timeout=0.01)
        await stage.supervisor.stop()


# -- restarts


async def test_a_copy_that_crashes_is_replaced_and_the_handle_continues() -> None:
    async with staged() as stage:
        await stage.supervisor.start()
        stage.copies[0].peer.end(CRASH)
        await stage.until(lambda: len(stage.kinds(ExtensionRestarted)) == 1)
        handle = await stage.supervisor.ready()
        assert handle is cast("Any", stage.copies[1])
        assert stage.supervisor.restarts == 1
        assert stage.supervisor.health() is Health.DEGRADED  # until it has stayed up
    exited = stage.kinds(ExtensionExited)[0]
    assert isinstance(exited, ExtensionExited)
    assert (exited.exit_code, exited.stderr_tail, exited.expected) == (3, "boom\n", False)


async def test_a_crash_loop_ends_by_the_policy() -> None:
    supervision = SupervisionPolicy(restart=RestartPolicy(most=3, delay=0.0), heartbeat=None)
    async with staged(supervision) as stage:
        await stage.supervisor.start()
        for _ in range(4):
            await stage.until(lambda: stage.supervisor.state is ExtensionState.READY)
            copy = stage.copies[-1]
            copy.peer.end(CRASH)
            await stage.until(lambda: stage.supervisor.current() is not cast("Any", copy))  # noqa: B023
        await stage.until(lambda: stage.supervisor.state is ExtensionState.FAILED)
        with pytest.raises(PeerCrashed):
            await stage.supervisor.ready()
    assert len(stage.kinds(ExtensionRestarting)) == 3


async def test_a_restart_that_fails_counts_as_one() -> None:
    async def start(copies: int) -> None:
        if copies:
            raise StartFailed("notes", "gone")

    supervision = SupervisionPolicy(restart=RestartPolicy(most=2, delay=0.0), heartbeat=None)
    async with staged(supervision, start) as stage:
        await stage.supervisor.start()
        stage.copies[0].peer.end(CRASH)
        await stage.until(lambda: stage.supervisor.state is ExtensionState.FAILED)
        with pytest.raises(StartFailed):
            await stage.supervisor.ready()
        assert len(stage.kinds(ExtensionRestarting)) == 2


async def test_an_extension_that_is_never_restarted_fails_with_its_crash() -> None:
    supervision = SupervisionPolicy(restart=RestartPolicy(strategy=RestartStrategy.NEVER), heartbeat=None)
    async with staged(supervision) as stage:
        await stage.supervisor.start()
        stage.copies[0].peer.end(CRASH)
        await stage.until(lambda: stage.supervisor.state is ExtensionState.FAILED)
        with pytest.raises(PeerCrashed):
            await stage.supervisor.call(work)


async def test_a_stop_while_a_restart_is_waited_for_ends_it() -> None:
    supervision = SupervisionPolicy(
        restart=RestartPolicy(delay=1000.0, longest_delay=1000.0, first_is_immediate=False), heartbeat=None
    )
    async with staged(supervision) as stage:
        await stage.supervisor.start()
        stage.copies[0].peer.end(CRASH)
        await stage.until(lambda: stage.supervisor.state is ExtensionState.RESTARTING)
        await stage.supervisor.stop()
        assert (stage.supervisor.state, len(stage.copies)) == (ExtensionState.STOPPED, 1)


async def test_many_restarts_are_spread() -> None:
    stagger = Stagger(at_once=1, gap=1000.0)
    async with staged(stagger=stagger) as stage:
        await stage.supervisor.start()
        stagger.reserve(anyio.current_time())
        stage.copies[0].peer.end(CRASH)
        await stage.until(lambda: stage.supervisor.state is ExtensionState.RESTARTING)
        await anyio.wait_all_tasks_blocked()
        assert len(stage.copies) == 1
        await stage.supervisor.stop()


async def test_handlers_registered_once_hold_for_every_copy() -> None:
    arranged: list[object] = []
    async with staged() as stage:
        stage.supervisor.add_initializer(arranged.append)
        await stage.supervisor.start()
        stage.copies[0].peer.end(CRASH)
        await stage.until(lambda: len(stage.kinds(ExtensionRestarted)) == 1)
        assert arranged == stage.copies
        stage.supervisor.add_initializer(arranged.append)
        assert arranged[2] is stage.copies[1]


# -- calls


async def test_a_call_in_flight_fails_with_the_reason_when_the_copy_dies() -> None:
    async with staged() as stage:
        await stage.supervisor.start()
        async with anyio.create_task_group() as tasks:

            async def call() -> None:
                with pytest.raises(PeerCrashed):
                    await stage.supervisor.call(work)

            tasks.start_soon(call)
            await anyio.wait_all_tasks_blocked()
            assert stage.supervisor.in_flight == 1
            stage.copies[0].peer.end(CRASH)


async def test_calls_are_counted_and_their_responses_timed() -> None:
    async with staged() as stage:
        await stage.supervisor.start()
        stage.copies[0].answered.set()
        await stage.supervisor.call(work)
        with pytest.raises(RemoteError):
            await stage.supervisor.call(refuse)

        figures = stage.supervisor.metrics()

        assert (figures.calls, figures.failures) == (2, 1)
        assert figures.per_second > 0
        assert figures.latency_p50 is not None


async def refuse(extension: Extension) -> None:
    raise RemoteError(method="work", code=1, message="no")


async def test_a_call_that_may_be_repeated_is_made_again_with_the_next_copy() -> None:
    async with staged() as stage:
        await stage.supervisor.start()
        results: list[str] = []
        async with anyio.create_task_group() as tasks:

            async def call() -> None:
                results.append(await stage.supervisor.call(work, repeat=True))

            tasks.start_soon(call)
            await anyio.wait_all_tasks_blocked()
            stage.copies[0].peer.end(CRASH)
            await stage.until(lambda: len(stage.copies) == 2)
            stage.copies[1].answered.set()
        assert results == ["done"]


@pytest.mark.parametrize(("restarts", "copies"), [(False, 1), (True, 2)])
async def test_an_error_of_an_extension_ends_its_copy_only_if_configured(restarts: bool, copies: int) -> None:
    called: list[Extension] = []

    async def fail(extension: Extension) -> None:
        called.append(extension)
        raise RemoteError(method="tool.call", code=-32000, message="no")

    async with staged(msgspec.structs.replace(QUICK, restarts_on_errors=restarts)) as stage:
        await stage.supervisor.start()
        with pytest.raises(RemoteError):
            await stage.supervisor.call(fail)
        assert len(called) == len(stage.copies) == copies


async def test_a_call_that_comes_while_a_dead_copy_is_cleared_away_waits_for_the_next() -> None:
    is_cleared = anyio.Event()

    async def fail_once(extension: Extension) -> str:
        copy = cast("Copy", extension)
        if copy is stage.copies[0]:
            raise RemoteError(method="tool.call", code=-32000, message="no")
        return "done"

    async with staged(msgspec.structs.replace(QUICK, restarts_on_errors=True)) as stage:
        await stage.supervisor.start()
        first = stage.copies[0]
        clear_away = first.aclose

        async def clear_away_slowly(because: str = "") -> None:
            await clear_away()
            await is_cleared.wait()

        first.aclose = clear_away_slowly  # type: ignore[method-assign]
        results: list[str] = []
        async with anyio.create_task_group() as tasks:

            async def call() -> None:
                results.append(await stage.supervisor.call(fail_once))

            tasks.start_soon(call)
            await anyio.wait_all_tasks_blocked()
            is_cleared.set()
        assert results == ["done"]


async def test_a_call_waits_for_a_copy_that_is_about_to_run() -> None:
    go_on = anyio.Event()

    async def start(copies: int) -> None:
        if copies:
            await go_on.wait()

    async with staged(start=start) as stage:
        await stage.supervisor.start()
        stage.copies[0].peer.end(CRASH)
        await stage.until(lambda: stage.supervisor.state is ExtensionState.RESTARTING)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stage.supervisor.call, work)
            await anyio.wait_all_tasks_blocked()
            go_on.set()
            await stage.until(lambda: len(stage.copies) == 2)
            stage.copies[1].answered.set()


async def test_a_call_right_after_a_crash_waits_for_the_next_copy() -> None:
    async with staged() as stage:
        await stage.supervisor.start()
        stage.copies[0].peer.end(CRASH)
        results: list[str] = []
        async with anyio.create_task_group() as tasks:

            async def call() -> None:
                results.append(await stage.supervisor.call(work))

            tasks.start_soon(call)
            await stage.until(lambda: len(stage.copies) == 2)
            stage.copies[1].answered.set()
        assert results == ["done"]


@in_virtual_time
def test_calls_that_fail_open_the_circuit_and_the_extension_is_degraded_until_they_succeed(run: Any) -> None:
    async def main() -> None:
        breaker = BreakerPolicy(failures=2, open_for=10, successes=1)
        async with staged(SupervisionPolicy(breaker=breaker, heartbeat=None)) as stage:
            await stage.supervisor.start()

            async def time_out(_: Extension) -> None:
                raise CallTimeout("tool.call", 1.0)

            async def refuse(_: Extension) -> None:
                raise RemoteError(method="tool.call", code=1, message="no", data=None, meaning=None)

            for _ in range(5):
                with pytest.raises(RemoteError):  # a response is a sign of life
                    await stage.supervisor.call(refuse)
            for _ in range(2):
                with pytest.raises(CallTimeout):
                    await stage.supervisor.call(time_out)
            with pytest.raises(CircuitOpen):
                await stage.supervisor.call(refuse)
            await stage.until(lambda: len(stage.kinds(ExtensionDegraded)) == 1)
            stage.copies[0].answered.set()
            while not stage.kinds(ExtensionRecovered):
                try:
                    await stage.supervisor.call(work)
                except CircuitOpen as error:
                    await anyio.sleep(error.seconds)
                await anyio.wait_all_tasks_blocked()
        assert len(stage.kinds(ExtensionRecovered)) == 1

    run(main)


async def test_a_new_copy_is_called_although_the_circuit_of_the_one_before_was_open() -> None:
    supervision = SupervisionPolicy(
        restart=QUICK.restart, breaker=BreakerPolicy(failures=1, open_for=3600), heartbeat=None
    )
    async with staged(supervision) as stage:
        await stage.supervisor.start()

        async def time_out(_: Extension) -> None:
            raise CallTimeout("tool.call", 1.0)

        with pytest.raises(CallTimeout):
            await stage.supervisor.call(time_out)
        with pytest.raises(CircuitOpen):
            await stage.supervisor.call(work)
        stage.copies[0].peer.end(ConnectionLost(DisconnectReason.REMOTE_CLOSE))
        await stage.until(lambda: len(stage.kinds(ExtensionRestarted)) == 1)
        stage.copies[1].answered.set()
        assert await stage.supervisor.call(work) == "done"


async def test_responses_to_pings_do_not_make_an_extension_with_an_open_circuit_healthy() -> None:
    heartbeat = HeartbeatPolicy(every=0.01, slow_after=60, dead_after=120, stalled_after=60)
    async with staged(
        SupervisionPolicy(breaker=BreakerPolicy(failures=1, open_for=3600), heartbeat=heartbeat)
    ) as stage:
        await stage.supervisor.start()

        async def time_out(_: Extension) -> None:
            raise CallTimeout("tool.call", 1.0)

        with pytest.raises(CallTimeout):
            await stage.supervisor.call(time_out)
        await stage.until(lambda: len(stage.kinds(ExtensionDegraded)) == 1)
        for _ in range(3):
            stage.copies[0].peer.pinged = anyio.Event()
            await stage.copies[0].peer.pinged.wait()
        assert stage.supervisor.health() is Health.DEGRADED
    assert stage.kinds(ExtensionRecovered) == []


async def test_a_call_that_may_be_repeated_fails_when_the_extension_is_stopped() -> None:
    async with staged() as stage:
        await stage.supervisor.start()
        lost: list[ConnectionLost] = []

        async def call() -> None:
            with pytest.raises(ConnectionLost) as caught:
                await stage.supervisor.call(work, repeat=True)
            lost.append(caught.value)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await anyio.wait_all_tasks_blocked()
            await stage.supervisor.stop()
        assert [error.reason for error in lost] == [DisconnectReason.LOCAL_CLOSE]
    assert len(stage.copies) == 1


# -- reload


async def test_a_reload_starts_a_new_copy_and_ends_the_old_one_after_its_calls() -> None:
    async with staged() as stage:
        await stage.supervisor.start()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stage.supervisor.call, work)
            await anyio.wait_all_tasks_blocked()
            tasks.start_soon(stage.supervisor.reload)
            await anyio.wait_all_tasks_blocked()
            assert len(stage.copies) == 2
            assert stage.supervisor.current() is cast("Any", stage.copies[1])
            assert (stage.supervisor.state, stage.supervisor.in_flight) == (ExtensionState.READY, 1)
            assert stage.kinds(ExtensionReloaded) == []
            assert not stage.copies[0].was_asked
            stage.copies[0].answered.set()
        assert stage.copies[0].was_asked
        assert stage.supervisor.state is ExtensionState.READY
    (reloaded,) = stage.kinds(ExtensionReloaded)
    assert isinstance(reloaded, ExtensionReloaded)
    assert reloaded.cut_off == 0


async def test_a_reload_cancels_calls_that_take_too_long_and_reports_them() -> None:
    async with staged(SupervisionPolicy(drain_timeout=0.01, heartbeat=None)) as stage:
        await stage.supervisor.start()
        async with anyio.create_task_group() as tasks:

            async def call() -> None:
                with pytest.raises(ConnectionLost) as lost:
                    await stage.supervisor.call(work)
                assert "reload" in str(lost.value)

            tasks.start_soon(call)
            await anyio.wait_all_tasks_blocked()
            await stage.supervisor.reload()
    (reloaded,) = stage.kinds(ExtensionReloaded)
    assert isinstance(reloaded, ExtensionReloaded)
    assert reloaded.cut_off == 1


async def test_a_reload_whose_new_copy_does_not_start_leaves_the_running_one() -> None:
    broken = True

    async def start(copies: int) -> None:
        if copies and broken:
            raise StartFailed("notes", "syntax error")

    async with staged(start=start) as stage:
        running = await stage.supervisor.start()
        for _ in range(2):
            with pytest.raises(StartFailed):
                await stage.supervisor.reload()
            assert (stage.supervisor.state, await stage.supervisor.ready()) == (ExtensionState.READY, running)
        broken = False
        await stage.supervisor.reload()
        assert await stage.supervisor.ready() is cast("Any", stage.copies[1])


async def test_a_copy_that_ends_while_its_successor_starts_is_not_missed() -> None:
    starts: list[int] = []

    async def start(copies: int) -> None:
        starts.append(copies)
        if starts == [0, 1]:
            stage.copies[0].peer.end(ConnectionLost(DisconnectReason.PROCESS_EXIT))
            raise StartFailed("notes", "syntax error")

    async with staged(start=start) as stage:
        await stage.supervisor.start()
        with pytest.raises(StartFailed):
            await stage.supervisor.reload()
        await stage.until(lambda: len(stage.copies) == 2)


async def test_a_reload_while_the_old_copy_drains_is_one_more_reload() -> None:
    async with staged() as stage:
        await stage.supervisor.start()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stage.supervisor.call, work)
            await anyio.wait_all_tasks_blocked()
            tasks.start_soon(stage.supervisor.reload)
            await anyio.wait_all_tasks_blocked()
            tasks.start_soon(stage.supervisor.reload)
            await anyio.wait_all_tasks_blocked()
            stage.copies[0].answered.set()
        assert len(stage.copies) == 3
        assert len(stage.kinds(ExtensionReloaded)) == 2


async def test_a_replacement_ends_the_old_copy_before_the_new_one_starts() -> None:
    async with staged() as stage:
        await stage.supervisor.start()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stage.supervisor.call, work)
            await anyio.wait_all_tasks_blocked()
            tasks.start_soon(stage.supervisor.replace)
            await stage.until(lambda: stage.supervisor.state is ExtensionState.RESTARTING)
            assert len(stage.copies) == 1
            stage.copies[0].answered.set()
        assert len(stage.copies) == 2


async def test_a_replacement_that_does_not_start_fails_with_the_reason() -> None:
    async def start(copies: int) -> None:
        if copies:
            raise StartFailed("notes", "syntax error")

    async with staged(start=start) as stage:
        await stage.supervisor.start()
        with pytest.raises(StartFailed):
            await stage.supervisor.replace()
        assert stage.supervisor.state is ExtensionState.FAILED


async def test_a_reload_of_a_stopped_extension_starts_it() -> None:
    async with staged() as stage:
        await stage.supervisor.reload()
        assert stage.supervisor.state is ExtensionState.READY


async def test_a_stop_during_a_reload_wins() -> None:
    async def start(copies: int) -> None:
        if copies:
            await anyio.sleep_forever()

    async with staged(start=start) as stage:
        await stage.supervisor.start()
        async with anyio.create_task_group() as tasks:

            async def call() -> None:
                with pytest.raises(ConnectionLost):
                    await stage.supervisor.call(work)

            async def reload() -> None:
                with pytest.raises(NotRunning):
                    await stage.supervisor.reload()

            tasks.start_soon(call)
            await anyio.wait_all_tasks_blocked()
            tasks.start_soon(reload)
            await anyio.wait_all_tasks_blocked()
            await stage.supervisor.stop()
        assert stage.supervisor.state is ExtensionState.STOPPED
        assert all(copy.peer.close_reason is not None for copy in stage.copies)


async def test_a_stop_and_a_reload_at_once_both_return_and_the_last_one_holds() -> None:
    async with staged() as stage:
        await stage.supervisor.start()
        called: list[Callable[[], Any]] = []

        async def ask(request: Callable[[], Any]) -> None:
            called.append(request)
            try:
                await request()
            except NotRunning:
                assert called[-1] == stage.supervisor.stop

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, stage.supervisor.stop)
            tasks.start_soon(ask, stage.supervisor.reload)  # before the owner is notified of the stop
        is_reloaded = called[-1] == stage.supervisor.reload
        assert stage.supervisor.state is (ExtensionState.READY if is_reloaded else ExtensionState.STOPPED)
        assert len(stage.kinds(ExtensionStopped)) == 1


async def test_a_start_right_after_a_stop_starts_another_copy_and_both_return() -> None:
    async with staged() as stage:
        await stage.supervisor.start()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stage.supervisor.stop)
            await stage.until(lambda: stage.supervisor.state is not ExtensionState.READY)
            handle = await stage.supervisor.start()
        assert handle is cast("Any", stage.copies[1])
        assert stage.supervisor.state is ExtensionState.READY


async def test_a_closing_supervisor_refuses_start_and_reload() -> None:
    async with staged() as stage:
        await stage.supervisor.start()
        async with anyio.create_task_group() as tasks:

            async def ask(request: Callable[[], Any]) -> None:
                with pytest.raises(NotRunning, match="closes"):
                    await request()

            stage.copies[0].may_end = anyio.Event()
            tasks.start_soon(stage.supervisor.close)
            await stage.until(lambda: stage.supervisor.state is ExtensionState.STOPPING)
            tasks.start_soon(ask, stage.supervisor.reload)
            await ask(stage.supervisor.start)
            stage.copies[0].may_end.set()
        assert (stage.supervisor.state, len(stage.copies)) == (ExtensionState.STOPPED, 1)


async def test_a_reload_while_a_copy_starts_replaces_it() -> None:
    begun, go_on = anyio.Event(), anyio.Event()

    async def start(copies: int) -> None:
        if not copies:
            begun.set()
            await go_on.wait()

    async with staged(start=start) as stage, anyio.create_task_group() as tasks:
        tasks.start_soon(stage.supervisor.start)
        await begun.wait()
        tasks.start_soon(stage.supervisor.reload)
        await anyio.wait_all_tasks_blocked()
        go_on.set()
        await stage.until(lambda: bool(stage.kinds(ExtensionReloaded)))
        assert len(stage.copies) == 2


# -- heartbeat

HEART = HeartbeatPolicy(every=0.02, slow_after=0.02, dead_after=0.06, stalled_after=10.0)


@in_virtual_time
def test_an_extension_that_does_not_read_is_slow_then_dead_and_then_replaced(run: Callable[..., None]) -> None:
    async def main() -> None:
        async with staged(SupervisionPolicy(restart=QUICK.restart, heartbeat=HEART)) as stage:
            await stage.supervisor.start()
            stage.copies[0].peer.answers_pings = False
            await stage.until(lambda: len(stage.kinds(ExtensionRestarted)) == 1)
            assert stage.copies[0].peer.close_reason is not None
        assert len(stage.kinds(ExtensionDegraded)) >= 1
        [restarting] = stage.kinds(ExtensionRestarting)
        assert restarting.because == (
            "did not respond to a ping for 0.06 s and was ended: does it block its event loop?"
        )

    run(main)


@in_virtual_time
def test_an_extension_that_responds_to_pings_is_left_alone(run: Callable[..., None]) -> None:
    async def main() -> None:
        async with staged(SupervisionPolicy(heartbeat=HEART)) as stage:
            await stage.supervisor.start()
            for _ in range(3):
                await stage.copies[0].peer.pinged.wait()
                stage.copies[0].peer.pinged = anyio.Event()
            assert (stage.supervisor.state, len(stage.copies)) == (ExtensionState.READY, 1)

    run(main)


async def test_an_extension_that_is_slow_for_a_while_recovers() -> None:
    policy = HeartbeatPolicy(every=0.02, slow_after=0.02, dead_after=1000.0, stalled_after=10.0)
    async with staged(SupervisionPolicy(heartbeat=policy)) as stage:
        await stage.supervisor.start()
        link = stage.copies[0].peer
        link.answers_pings = False
        await stage.until(lambda: stage.supervisor.state is ExtensionState.DEGRADED)
        link.answers_pings = True
        link.last_received_at = anyio.current_time()  # its messages arrive at last
        await stage.until(lambda: len(stage.kinds(ExtensionRecovered)) == 1)
