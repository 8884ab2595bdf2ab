"""The runtimes of an extension alone: waiting without a loop, late notifications, a stop during a start."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from tests.extension.raw_host import build_initialize, initialize

from becket import ConnectionLost, DisconnectReason, ExtensionServer, Meaning, Peer, RemoteError
from becket.contract.handshake import INITIALIZE
from becket.contract.tasks import TASK_DONE, TaskEnded
from becket.errors import LocalProtocolError
from becket.extension.runtime_async import AsyncioWorkers, EventSender
from becket.extension.runtime_blocking import BlockingEventSender, UserFunction, check_not_awaitable, run_synchronously
from becket.limits import Limits
from becket.testing import memory_transports


async def echo(value: int) -> int:
    return value


async def wait() -> None:
    await anyio.lowlevel.checkpoint()


def test_a_coroutine_that_never_waits_is_run_at_once() -> None:
    assert run_synchronously(echo, 3) == 3


def test_waiting_without_a_loop_is_an_error() -> None:
    class Waits:
        def __await__(self) -> Any:
            yield

    with pytest.raises(LocalProtocolError):
        run_synchronously(Waits)


class Awaitable:
    def __await__(self) -> Any:
        yield


@pytest.mark.parametrize("make", [wait, Awaitable])
def test_a_result_that_must_be_awaited_is_refused(make: Any) -> None:
    with pytest.raises(TypeError, match="make it `async def`"):
        check_not_awaitable(UserFunction(make, False), make())


class Gone:
    """The context of a call whose link has ended."""

    def __init__(self) -> None:
        self.sent: list[Any] = []

    @property
    def peer(self) -> Gone:
        return self

    def notify(self, *sent: Any) -> None:
        self.sent.append(sent)
        raise ConnectionLost(DisconnectReason.REMOTE_CLOSE)

    notify_nowait = notify


@pytest.mark.parametrize("kind", [EventSender, BlockingEventSender])
def test_a_last_notification_on_a_lost_link_is_dropped(kind: Any) -> None:
    gone = Gone()
    kind(gone).notify_best_effort(TASK_DONE, TaskEnded("1"))

    assert gone.sent == [(TASK_DONE, TaskEnded("1"))]


@pytest.mark.loops
async def test_a_start_that_is_overtaken_by_the_end_is_rejected_as_not_ready() -> None:
    class Slow(ExtensionServer):
        id = "slow"

        def __init__(self) -> None:
            self.has_begun, self.may_end = anyio.Event(), anyio.Event()
            self.is_stopped = False

        async def on_start(self) -> None:
            self.has_begun.set()
            await self.may_end.wait()

        async def on_stop(self) -> None:
            self.is_stopped = True

    slow = Slow()
    ours, theirs = memory_transports()
    serving = slow.over(theirs)
    errors: list[RemoteError] = []

    async def greet(host: Peer) -> None:
        with pytest.raises(RemoteError) as refused:
            await host.call(INITIALIZE, build_initialize())
        errors.append(refused.value)

    with anyio.fail_after(60):
        async with Peer.over(ours, dialect="native") as host, serving, anyio.create_task_group() as group:
            group.start_soon(greet, host)
            await slow.has_begun.wait()
            await serving.stop()
            slow.may_end.set()

    assert [error.meaning for error in errors] == [Meaning.NOT_READY]


@pytest.mark.loops
async def test_a_start_that_fails_while_it_ends_stays_ended(internal_errors: list[Any]) -> None:
    class Failing(ExtensionServer):
        id = "failing"

        async def on_start(self) -> None:
            await serving.stop()
            raise LookupError("no file")

    ours, theirs = memory_transports()
    serving = Failing().over(theirs)
    async with Peer.over(ours, dialect="native") as host, serving:
        for _ in range(2):
            with pytest.raises(RemoteError) as refused:
                await initialize(host)

    assert refused.value.meaning is Meaning.NOT_READY
    internal_errors.clear()


async def test_a_cancelled_scope_does_not_spin_while_a_thread_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    release = threading.Event()
    shield, waits = asyncio.shield, 0
    results: list[int] = []

    def counting(future: Any) -> Any:
        nonlocal waits
        waits += 1
        return shield(future)

    def work() -> int:
        release.wait(60)
        return 3

    async def run() -> None:
        with anyio.CancelScope() as scope:
            scope.cancel()
            results.append(await AsyncioWorkers(Limits()).run_in_worker(work))

    monkeypatch.setattr(asyncio, "shield", counting)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            for _ in range(100):
                await anyio.lowlevel.checkpoint()
            release.set()

    assert (results, waits) == ([3], 1)
