"""Handlers with `thread=True` have worker threads of their own link: as many as requests may run at once."""

from __future__ import annotations

import threading

import anyio
import anyio.from_thread
import anyio.to_thread
import pytest

from becket import Context, Limits
from becket.testing import memory_pair

pytestmark = pytest.mark.loops

NESTED = 50  # more than the 40 threads that anyio has for a whole program


@pytest.mark.parametrize("limits", [Limits(), Limits(inbound_requests=NESTED, worker_threads=1)])
async def test_nested_calls_of_handlers_in_threads_do_not_wait_for_each_others_threads(limits: Limits) -> None:
    all_run = threading.Barrier(NESTED)
    results: list[int] = []
    async with memory_pair(limits=limits) as (left, right):

        @right.handle("outer", thread=True)
        def outer(params: list[int], ctx: Context) -> int:
            all_run.wait(60)
            return anyio.from_thread.run(ctx.call, "inner", params)  # type: ignore[no-any-return]

        @left.handle("inner", thread=True)
        def inner(params: list[int]) -> int:
            return params[0]

        async def call(number: int) -> None:
            results.append(await left.call("outer", [number]))

        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                for number in range(NESTED):
                    tasks.start_soon(call, number)

    assert sorted(results) == list(range(NESTED))


async def test_handlers_leave_the_threads_of_the_program_alone() -> None:
    async with memory_pair() as (left, right):
        borrowed: list[float] = []

        @right.handle("work", thread=True)
        def work() -> None:
            limiter = anyio.from_thread.run_sync(anyio.to_thread.current_default_thread_limiter)
            borrowed.append(anyio.from_thread.run_sync(lambda: limiter.borrowed_tokens))

        with anyio.fail_after(60):
            await left.call("work")

    assert borrowed == [0]
