"""Tasks of asyncio go on at the end of the callback that wakes them, and all that asyncio does with a future works."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextvars import ContextVar

import anyio
import pytest

from becket import Peer
from becket.peer.transport import FdTransport
from becket.peer.wakeups import Awaited, Wakeups


def awaited() -> tuple[Awaited, Wakeups]:
    loop = asyncio.get_running_loop()
    wakeups = Wakeups(loop)
    return Awaited(loop, wakeups), wakeups


async def wait_for(waiter: Awaited, log: list[str], name: str = "went on") -> None:
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


async def test_a_task_goes_on_when_the_callback_that_wakes_it_is_done() -> None:
    waiter, wakeups = awaited()
    log: list[str] = []
    (task,) = await begun(wait_for(waiter, log))

    def callback() -> None:
        waiter.set_result(None)
        wakeups.call_after(lambda: log.append("after it"))
        log.append("callback")

    def run() -> None:
        wakeups.run(callback)
        log.append("the loop goes on")

    await in_callback(run)
    assert log == ["callback", "went on", "after it", "the loop goes on"]
    await task


async def test_a_task_that_is_woken_from_another_task_waits_for_its_turn() -> None:
    waiter, wakeups = awaited()
    log: list[str] = []
    await begun(wait_for(waiter, log))
    waiter.set_result(None)
    wakeups.call_after(lambda: log.append("after it"))
    assert log == []
    await asyncio.sleep(0)
    assert log == ["went on", "after it"]


async def test_what_was_done_before_somebody_waits_is_not_waited_for() -> None:
    waiter, _ = awaited()
    waiter.set_result(None)
    log: list[str] = []
    await wait_for(waiter, log)
    assert (log, waiter.done(), waiter.cancelled(), waiter.exception()) == (["went on"], True, False, None)


async def test_a_task_that_wakes_another_as_it_goes_on_does_not_run_it_within_itself() -> None:
    first, wakeups = awaited()
    second = Awaited(asyncio.get_running_loop(), wakeups)
    log: list[str] = []

    async def wake() -> None:
        await first
        second.set_result(None)
        log.append("woke the other")

    await begun(wake(), wait_for(second, log, "the other"))
    await in_callback(lambda: wakeups.run(lambda: first.set_result(None)))
    await asyncio.sleep(0)
    assert log == ["woke the other", "the other"]


async def test_a_task_that_ends_the_program_takes_nobody_along() -> None:
    loop = asyncio.get_running_loop()
    wakeups = Wakeups(loop)
    waiters = [Awaited(loop, wakeups) for _ in range(3)]
    log: list[str] = []

    async def leave() -> None:
        await waiters[0]
        raise KeyboardInterrupt

    leaving, *_ = await begun(leave(), wait_for(waiters[1], log, "second"), wait_for(waiters[2], log, "third"))

    def wake() -> None:
        for waiter in waiters:
            waiter.set_result(None)
        wakeups.call_after(lambda: log.append("after them"))

    def run() -> None:
        with pytest.raises(KeyboardInterrupt):
            wakeups.run(wake)

    await in_callback(run)
    await asyncio.sleep(0)
    assert log == ["after them", "second", "third"]
    with pytest.raises(KeyboardInterrupt):
        leaving.result()


async def test_a_callback_that_raises_wakes_whom_it_has_woken_before() -> None:
    waiter, wakeups = awaited()
    log: list[str] = []
    await begun(wait_for(waiter, log))

    def callback() -> None:
        waiter.set_result(None)
        raise ValueError("late")

    def run() -> None:
        with pytest.raises(ValueError, match="late"):
            wakeups.run(callback)

    await in_callback(run)
    assert log == ["went on"]


# -- what asyncio and anyio do with futures


async def test_a_cancelled_task_leaves_with_the_message_of_who_cancelled_it() -> None:
    waiter, _ = awaited()
    (task,) = await begun(wait_for(waiter, []))
    task.cancel("too slow")
    with pytest.raises(asyncio.CancelledError, match="too slow"):
        await task
    assert (waiter.cancelled(), waiter.cancel()) == (True, False)
    with pytest.raises(asyncio.CancelledError):
        waiter.result()


async def test_a_waiter_that_nobody_awaits_can_be_cancelled() -> None:
    waiter, _ = awaited()
    assert waiter.cancel()
    (task,) = await begun(asyncio.wait_for(asyncio.shield(waiter), 1))
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_task_that_is_cancelled_after_it_was_woken_is_cancelled_at_its_next_wait() -> None:
    waiter, _ = awaited()
    log: list[str] = []
    (task,) = await begun(wait_for(waiter, log))
    waiter.set_result(None)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert log == []  # as with asyncio's own futures: its next step raises


async def test_timeouts_of_asyncio_and_of_anyio_end_a_wait() -> None:
    waiter, _ = awaited()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.001):
            await waiter
    other, _ = awaited()
    with anyio.move_on_after(0.001) as scope:
        await other
    assert scope.cancelled_caught


async def test_a_shielded_waiter_is_not_cancelled_with_its_task() -> None:
    waiter, wakeups = awaited()

    async def shielded() -> None:
        await asyncio.shield(waiter)

    first, second = await begun(shielded(), shielded())
    first.cancel()
    await asyncio.sleep(0)
    assert not waiter.done()
    await in_callback(lambda: wakeups.run(lambda: waiter.set_result(None)))
    await second


async def test_a_callback_that_was_taken_back_is_not_called() -> None:
    waiter, _ = awaited()
    log: list[str] = []

    def first(_: object) -> None:
        log.append("first")

    def second(_: object) -> None:
        log.append("second")

    waiter.add_done_callback(first)
    waiter.add_done_callback(second)
    assert (waiter.remove_done_callback(first), waiter.remove_done_callback(first)) == (1, 0)
    waiter.set_result(None)
    waiter.add_done_callback(first)
    await asyncio.sleep(0)
    assert log == ["second", "first"]


async def test_it_is_a_future_of_its_loop_for_asyncio() -> None:
    waiter, _ = awaited()
    assert asyncio.isfuture(waiter)
    assert waiter.get_loop() is asyncio.get_running_loop()


async def test_a_context_variable_is_what_the_task_has_set() -> None:
    variable: ContextVar[str] = ContextVar("variable", default="nothing")
    waiter, wakeups = awaited()
    seen: list[str] = []

    async def work() -> None:
        variable.set("the task's own")
        await waiter
        seen.append(variable.get())

    await begun(work())
    await in_callback(lambda: wakeups.run(lambda: waiter.set_result(None)))
    assert (seen, variable.get()) == (["the task's own"], "nothing")


# -- a whole link


async def test_whoever_waits_for_an_answer_goes_on_in_the_turn_that_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    theirs, our_write = os.pipe()
    our_read, their_write = os.pipe()
    for fd in (our_read, our_write):
        os.set_blocking(fd, False)
    late: list[Awaited] = []
    async with Peer.over(FdTransport(our_read, our_write)) as peer:
        (task,) = await begun(peer.call("echo"))
        monkeypatch.setattr(Awaited, "go_on_soon", late.append)
        body = b'{"jsonrpc":"2.0","id":1,"result":"it is me"}'
        os.write(their_write, b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        assert await task == "it is me"  # type: ignore[func-returns-value]
        assert late == []
        monkeypatch.undo()
        os.close(theirs)
        os.close(their_write)
