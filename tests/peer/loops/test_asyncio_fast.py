"""Tasks resume at the end of the callback that wakes them."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import socket
import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, cast

import anyio
import pytest
from tests.peer.scripted import frame, request, response

from becket import Limits, Peer
from becket.peer.loops._asyncio_fast import InlineWakeups
from becket.peer.loops.asyncio_loop import HAS_EAGER_TASKS, AsyncioLoop
from becket.peer.protocols import LoopFuture
from becket.peer.transport.fair_share import Account, Ledger
from becket.peer.transport.fd import FdTransport


def awaited() -> tuple[asyncio.Future[None], InlineWakeups]:
    loop = asyncio.get_running_loop()
    return loop.create_future(), InlineWakeups(loop, Ledger())


async def wait_for(waiter: LoopFuture, log: list[str], name: str = "went on") -> None:
    await waiter
    log.append(name)


async def begun(*coroutines: object) -> list[asyncio.Task[None]]:
    """Starts tasks and lets each of them run up to its first wait."""
    tasks = [asyncio.ensure_future(one) for one in coroutines]  # type: ignore[call-overload]
    await asyncio.sleep(0)
    return tasks


async def in_callback(function: Callable[[], object]) -> None:
    """Runs a function where the loop runs its callbacks: no task is there."""
    done = asyncio.Event()

    def run() -> None:
        function()
        done.set()

    asyncio.get_running_loop().call_soon(run)
    await done.wait()


async def test_a_task_continues_when_the_callback_that_wakes_it_is_done() -> None:
    waiter, wakeups = awaited()
    log: list[str] = []
    (task,) = await begun(wait_for(waiter, log))

    def callback() -> None:
        wakeups.wake(waiter)
        wakeups.call_after_wakeups(lambda: log.append("after it"))
        log.append("callback")

    def run() -> None:
        wakeups.run_callback(callback)
        log.append("the loop goes on")

    await in_callback(run)
    assert log == ["callback", "went on", "after it", "the loop goes on"]
    await task


async def test_a_task_that_is_woken_from_another_task_waits_for_its_turn() -> None:
    waiter, wakeups = awaited()
    log: list[str] = []
    await begun(wait_for(waiter, log))
    wakeups.wake(waiter)
    wakeups.call_after_wakeups(lambda: log.append("after it"))
    assert log == []
    await asyncio.sleep(0)
    assert log == ["went on", "after it"]


async def test_a_task_that_wakes_another_as_it_continues_does_not_run_it_within_itself() -> None:
    first, wakeups = awaited()
    second = asyncio.get_running_loop().create_future()
    log: list[str] = []

    async def wake() -> None:
        await first
        wakeups.wake(second)
        log.append("woke the other")

    await begun(wake(), wait_for(second, log, "the other"))
    await in_callback(lambda: wakeups.run_callback(lambda: wakeups.wake(first)))
    await asyncio.sleep(0)
    assert log == ["woke the other", "the other"]


async def test_tasks_that_use_up_a_turn_leave_the_others_to_later_iterations_in_their_order() -> None:
    loop = asyncio.get_running_loop()
    ledger = Ledger()
    wakeups = InlineWakeups(loop, ledger)
    wakeups.account = Account(ledger, Limits(turn_seconds=0.0))
    waiters = [loop.create_future() for _ in range(3)]
    log: list[str] = []
    await begun(*(wait_for(waiter, log, name) for waiter, name in zip(waiters, "abc", strict=True)))

    def wake() -> None:
        for waiter in waiters:
            wakeups.wake(waiter)

    seen: list[int] = []

    def run() -> None:
        wakeups.run_callback(wake)
        seen.append(len(log))

    await in_callback(run)
    while len(log) < 3:
        seen.append(len(log))
        await asyncio.sleep(0)
    assert log == ["a", "b", "c"]
    assert seen[0] == 1
    assert 2 in seen


async def test_a_turn_is_charged_for_its_callback_and_the_tasks_that_it_woke() -> None:
    loop = asyncio.get_running_loop()
    ledger = Ledger()
    for _ in range(2):
        ledger.join(Account(ledger, Limits()))
    wakeups = InlineWakeups(loop, ledger)
    charged: list[float] = []
    wakeups.charge = lambda used, elapsed: charged.append(used)
    waiter = loop.create_future()

    async def work() -> None:
        await waiter
        until = time.thread_time() + 0.002
        while time.thread_time() < until:
            pass

    await begun(work())
    await in_callback(lambda: wakeups.run_callback(lambda: wakeups.wake(waiter)))
    assert len(charged) == 1
    assert charged[0] >= 0.002


async def test_a_task_that_raises_keyboard_interrupt_affects_no_other_task() -> None:
    loop = asyncio.get_running_loop()
    wakeups = InlineWakeups(loop, Ledger())
    waiters = [loop.create_future() for _ in range(3)]
    log: list[str] = []

    async def leave() -> None:
        await waiters[0]
        raise KeyboardInterrupt

    leaving, *_ = await begun(leave(), wait_for(waiters[1], log, "second"), wait_for(waiters[2], log, "third"))

    def wake() -> None:
        for waiter in waiters:
            wakeups.wake(waiter)
        wakeups.call_after_wakeups(lambda: log.append("after them"))

    def run() -> None:
        with pytest.raises(KeyboardInterrupt):
            wakeups.run_callback(wake)

    await in_callback(run)
    await asyncio.sleep(0)
    assert log == ["after them", "second", "third"]
    with pytest.raises(KeyboardInterrupt):
        leaving.result()


async def test_a_task_woken_by_a_callback_that_then_raised_runs_in_the_next_iteration() -> None:
    waiter, wakeups = awaited()
    log: list[str] = []
    await begun(wait_for(waiter, log))

    def callback() -> None:
        wakeups.wake(waiter)
        wakeups.call_after_wakeups(lambda: log.append("after it"))
        raise SystemExit

    def run() -> None:
        with pytest.raises(SystemExit):
            wakeups.run_callback(callback)
        assert log == ["after it"]  # queued frames are sent, should the loop never run again

    await in_callback(run)
    await asyncio.sleep(0)
    assert (log, wakeups.is_in_callback) == (["after it", "went on"], False)


async def test_a_task_may_run_the_loop_within_itself_until_another_one_has_gone_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loop = asyncio.get_running_loop()
    monkeypatch.setattr(type(loop), "_nest_patched", True, raising=False)  # as nest_asyncio does
    wakeups = InlineWakeups(loop, Ledger())
    waiters = [loop.create_future() for _ in range(2)]
    log: list[str] = []

    async def nest() -> None:
        await waiters[0]
        log.append("begins")
        task = asyncio.current_task()
        assert task is not None
        asyncio.tasks._leave_task(loop, task)
        ready = cast("Any", loop)._ready
        for _ in range(len(ready)):
            ready.popleft()._run()
            loop.call_soon(lambda: None)  # the loop around this one has counted them
        asyncio.tasks._enter_task(loop, task)
        log.append("ends")

    await begun(nest(), wait_for(waiters[1], log))

    def wake() -> None:
        for waiter in waiters:
            wakeups.wake(waiter)

    await in_callback(lambda: wakeups.run_callback(wake))
    await asyncio.sleep(0)
    assert log == ["begins", "went on", "ends"]


# -- handlers that start at once


@pytest.mark.skipif(not HAS_EAGER_TASKS, reason="before 3.12 a task starts in the next turn of the loop")
async def test_a_handler_starts_in_the_callback_that_brings_its_request() -> None:
    ours = AsyncioLoop()
    log: list[str] = []

    async def handle() -> None:
        log.append("handler")
        await asyncio.sleep(0)

    def callback() -> None:
        ours.spawn(handle())
        log.append("callback")

    def run() -> None:
        ours.run_turn(callback)
        log.append("the loop goes on")

    await in_callback(run)
    await asyncio.sleep(0)
    assert log == ["handler", "callback", "the loop goes on"]


# -- what asyncio and anyio do with futures


async def test_a_task_that_is_cancelled_after_it_was_woken_is_cancelled_at_its_next_wait() -> None:
    waiter, wakeups = awaited()
    log: list[str] = []
    (task,) = await begun(wait_for(waiter, log))

    def wake_and_cancel() -> None:
        wakeups.wake(waiter)
        task.cancel()

    await in_callback(lambda: wakeups.run_callback(wake_and_cancel))
    with pytest.raises(asyncio.CancelledError):
        await task
    assert log == []  # as in any callback of asyncio: its next step raises


async def test_anyio_does_not_cancel_a_task_that_was_woken_before_its_scope_was_cancelled() -> None:
    waiter, wakeups = awaited()
    log: list[str] = []
    scope = anyio.CancelScope()

    async def scoped() -> None:
        with scope:
            await wait_for(waiter, log)
            await asyncio.sleep(1)

    (task,) = await begun(scoped())

    def wake_and_cancel() -> None:
        wakeups.wake(waiter)
        scope.cancel()

    await in_callback(lambda: wakeups.run_callback(wake_and_cancel))
    await task
    assert (log, task.cancelling(), scope.cancelled_caught) == (["went on"], 0, True)


async def test_all_that_wait_for_one_future_resume_in_their_order() -> None:
    waiter, wakeups = awaited()
    log: list[str] = []
    await begun(*(wait_for(waiter, log, name) for name in "abc"))

    def run() -> None:
        wakeups.run_callback(lambda: wakeups.wake(waiter))
        log.append("the loop goes on")

    await in_callback(run)
    assert log == ["a", "b", "c", "the loop goes on"]


async def test_a_future_that_is_done_or_cancelled_stays_so() -> None:
    loop = asyncio.get_running_loop()
    wakeups = InlineWakeups(loop, Ledger())
    log: list[str] = []
    done, cancelled = loop.create_future(), loop.create_future()
    tasks = await begun(wait_for(done, log), wait_for(cancelled, log))

    def wake() -> None:
        cancelled.cancel()
        for future in (done, done, cancelled):
            wakeups.wake(future)

    await in_callback(lambda: wakeups.run_callback(wake))
    wakeups.wake(done)
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert log == ["went on"]
    assert isinstance(outcomes[1], asyncio.CancelledError)


async def test_a_shielded_waiter_is_not_cancelled_with_its_task() -> None:
    waiter, wakeups = awaited()

    async def shielded() -> None:
        await asyncio.shield(waiter)

    first, second = await begun(shielded(), shielded())
    first.cancel()
    await asyncio.sleep(0)
    assert not waiter.done()
    await in_callback(lambda: wakeups.run_callback(lambda: wakeups.wake(waiter)))
    await second


async def test_a_task_sees_the_context_variables_that_it_set() -> None:
    variable: ContextVar[str] = ContextVar("variable", default="nothing")
    waiter, wakeups = awaited()
    seen: list[str] = []

    async def work() -> None:
        variable.set("the task's own")
        await waiter
        seen.append(variable.get())

    await begun(work())
    await in_callback(lambda: wakeups.run_callback(lambda: wakeups.wake(waiter)))
    assert (seen, variable.get()) == (["the task's own"], "nothing")


# -- a whole link


async def test_a_caller_resumes_in_the_turn_that_brings_its_response(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BECKET_PLAIN_LOOP", raising=False)
    ours, theirs = socket.socketpair()
    transport = FdTransport.from_socket(ours)
    with theirs:
        async with Peer.over(transport) as peer:
            (task,) = await begun(peer.call("echo"))
            transport.pause()
            theirs.send(frame(response({"id": 1}, "it is me")))
            await in_callback(lambda: peer._link.loop.run_turn(transport._read))
            assert task.done()
            assert task.result() == "it is me"


def messages(data: bytes) -> list[Any]:
    """Returns the messages in these bytes."""
    found: list[Any] = []
    while data:
        head, _, rest = data.partition(b"\r\n\r\n")
        size = int(head.split(b":")[1])
        found.append(json.loads(rest[:size]))
        data = rest[size:]
    return found


async def test_frames_of_tasks_resumed_in_one_turn_are_sent_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BECKET_PLAIN_LOOP", raising=False)
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    transport = FdTransport.from_socket(ours)

    async def call_twice() -> None:
        await peer.call("first")
        await peer.call("second")

    with theirs:
        async with Peer.over(transport) as peer:
            tasks = await begun(*[call_twice() for _ in range(3)])
            await asyncio.sleep(0)
            called = messages(theirs.recv(4096))
            writes: list[bytes] = []
            has_written = asyncio.Event()

            def write(data: bytes) -> None:
                writes.append(data)
                theirs.send(b"".join(frame(response(one)) for one in messages(data)))
                has_written.set()

            monkeypatch.setattr(transport, "write", write)
            theirs.send(b"".join(frame(response(one)) for one in called))
            await has_written.wait()
            assert [one["method"] for one in messages(b"".join(writes))] == ["second"] * 3
            assert len(writes) == 1
            await asyncio.gather(*tasks)


@pytest.mark.parametrize("is_async", [False, True], ids=["plain", "async"])
def test_messages_after_a_handler_that_exits_the_program_are_not_lost(
    is_async: bool, internal_errors: list[logging.LogRecord]
) -> None:
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)

    def leave() -> None:
        raise KeyboardInterrupt

    async def leave_later() -> None:
        raise KeyboardInterrupt

    async def connect() -> Peer:
        peer = await Peer.over(FdTransport.from_socket(ours))
        peer.handle("leave")(leave_later if is_async else leave)
        peer.handle("stay")(lambda: "stayed")
        return peer

    async def turns() -> None:
        for _ in range(10):
            await asyncio.sleep(0)

    loop = asyncio.new_event_loop()
    with theirs:
        peer = loop.run_until_complete(connect())
        call = loop.create_task(peer.call("call"))
        loop.run_until_complete(turns())
        (called,) = messages(theirs.recv(4096))
        asks = [request(id, "leave" if id % 2 else "stay") for id in range(1, 7)]
        theirs.send(b"".join(frame(one) for one in [*asks, response(called, "it is me")]))
        for _ in range(3):
            with pytest.raises(KeyboardInterrupt):
                loop.run_until_complete(turns())
        loop.run_until_complete(turns())
        responses = messages(theirs.recv(4096))
        assert [one["id"] for one in responses if "result" in one] == [2, 4, 6]
        assert call.result() == "it is me"
        loop.run_until_complete(peer.aclose())
    loop.close()
    gc.collect()
    internal_errors.clear()  # asyncio reports the exception of a task that is never awaited


async def test_an_environment_variable_makes_tasks_resume_in_the_next_iteration(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("BECKET_PLAIN_LOOP", "1")
    ours = AsyncioLoop()
    waiter = ours.create_future()
    log: list[str] = []
    (task,) = await begun(wait_for(waiter, log))

    def callback() -> None:
        ours.wake(waiter)
        ours.wake(waiter)  # has no effect
        ours.call_after_wakeups(lambda: log.append("after it"))
        log.append("callback")

    await in_callback(lambda: ours.run_turn(callback))
    await task
    await asyncio.sleep(0)
    assert log == ["callback", "went on", "after it"]


def make_python_task(loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> Any:
    return asyncio.tasks._PyTask(coroutine, loop=loop, **options)  # type: ignore[attr-defined]


@pytest.mark.parametrize("factory", [None, make_python_task, getattr(asyncio, "eager_task_factory", None)])
async def test_calls_cross_each_other_with_any_task_factory(factory: Any) -> None:
    loop = asyncio.get_running_loop()
    loop.set_task_factory(factory)
    loop.set_debug(True)
    ours, theirs = socket.socketpair()
    async with Peer.over(FdTransport.from_socket(ours)) as one, Peer.over(FdTransport.from_socket(theirs)) as other:
        for peer in (one, other):

            @peer.handle("down")
            async def go_down(params: list[int], peer: Peer = peer) -> int:
                return 0 if params[0] == 0 else 1 + sum(await asyncio.gather(peer.call("down", [params[0] - 1])))

        depths = await asyncio.gather(*[peer.call("down", [depth]) for depth in range(6) for peer in (one, other)])
        assert depths == [depth for depth in range(6) for _ in range(2)]
    loop.set_debug(False)
    loop.set_task_factory(None)
