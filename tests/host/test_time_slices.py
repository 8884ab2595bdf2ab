"""Long work of many tasks takes turns on the loop, so that other tasks run between them."""

from __future__ import annotations

import threading
import time

import anyio
import anyio.lowlevel
import pytest
from tests.host.stand_ins import initialized

from becket import Peer
from becket.host.starting.connect import connect_extension_over
from becket.host.time_slices import Slices
from becket.testing import memory_transports

pytestmark = pytest.mark.loops


class Turns:
    """Counts the iterations of the loop."""

    def __init__(self) -> None:
        self.count = 0

    async def run(self) -> None:
        while True:
            self.count += 1
            await anyio.lowlevel.checkpoint()


async def test_each_of_many_tasks_has_an_iteration_of_its_own() -> None:
    slices, turns = Slices(), Turns()
    taken: list[int] = []

    async def work() -> None:
        async with slices:
            taken.append(turns.count)

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(turns.run)
            async with anyio.create_task_group() as workers:
                for _ in range(50):
                    workers.start_soon(work)
            tasks.cancel_scope.cancel()
    assert len(set(taken)) >= 25  # trio runs the tasks of an iteration in any order, so that two may see one count


async def test_a_task_that_waits_for_its_turn_may_be_cancelled() -> None:
    slices = Slices()
    with anyio.fail_after(60):
        async with slices, anyio.create_task_group() as tasks:
            tasks.start_soon(slices.take_turn)
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
        await slices.take_turn()


async def test_long_work_pauses_and_short_work_does_not() -> None:
    slices, turns = Slices(), Turns()
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(turns.run)
            await anyio.lowlevel.checkpoint()
            async with slices:
                before = turns.count
                await slices.pause()
                assert turns.count == before
                for _ in range(5):  # of two tasks in one iteration, either may come first
                    until = time.thread_time() + 0.01
                    while time.thread_time() < until:
                        pass
                    await slices.pause()
                assert turns.count >= before + 3
            tasks.cancel_scope.cancel()


async def test_work_that_cannot_be_divided_runs_once_in_a_thread_for_all_callers() -> None:
    slices = Slices()
    threads: list[int] = []

    def load() -> None:
        threads.append(threading.get_ident())

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            for _ in range(10):
                tasks.start_soon(slices.prepare, load)
    assert len(threads) == 1
    assert threads[0] != threading.get_ident()


async def test_a_start_that_is_cancelled_while_it_waits_for_its_turn_leaves_no_link() -> None:
    class Stuck(Slices):
        async def take_turn(self) -> None:
            waits.set()
            await anyio.sleep_forever()

    waits = anyio.Event()
    ours, theirs = memory_transports()

    async def start() -> None:
        await connect_extension_over(ours, id="notes", slices=Stuck())

    with anyio.fail_after(60):
        async with Peer.over(theirs, dialect="native") as child:
            child.handle("initialize")(lambda params: initialized(features=["ping"]))
            child.limit_features(())
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(start)
                await waits.wait()
                tasks.cancel_scope.cancel()
            await child.wait_closed()
