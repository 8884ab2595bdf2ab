"""Calls that go wrong, and links that end in the middle of something, leave no memory behind."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from tests.peer.scripted import request, scripted

from becket import BecketError, Context, Peer, RpcError
from becket.testing import memory_pair

pytestmark = pytest.mark.loops

ROUNDS = 25
MOST = 256  # bytes that a round may leave, such as the list of the last abandoned ids


async def growth_of(round: Callable[[], Awaitable[object]]) -> float:
    """Returns the bytes that each round leaves behind."""
    sizes: list[int] = []
    tracemalloc.start()
    try:
        for _ in range(4):
            for _ in range(ROUNDS):
                await round()
            gc.collect()
            sizes.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    # A leak shows in every part; what a cache takes shows in one.
    return min(after - before for before, after in pairwise(sizes)) / ROUNDS


def serve(peer: Peer) -> None:
    @peer.handle("echo")
    async def echo(params: Any) -> Any:
        return params

    @peer.handle("fails")
    async def fails() -> None:
        raise RpcError(1, "as asked")

    @peer.handle("fails at once")
    def fails_at_once() -> None:
        raise RpcError(1, "as asked")

    @peer.handle("never")
    async def never() -> None:
        await anyio.sleep_forever()

    @peer.handle("ticks")
    async def ticks(_: Any, ctx: Context) -> None:
        for number in range(3):
            await ctx.progress(number)


async def call(peer: Peer, method: str, timeout: float = 5) -> None:
    try:
        await peer.call(method, timeout=timeout)
    except BecketError:
        pass


async def call_and_time_out(peer: Peer) -> None:
    await call(peer, "never", timeout=0.0001)
    await peer.call("echo")  # the other peer has seen the cancellation


async def call_and_leave(peer: Peer) -> None:
    with anyio.move_on_after(0):
        await peer.call("never")
    await peer.call("echo")  # the other peer has seen all of it then


async def stream(peer: Peer) -> None:
    async with peer.stream("ticks") as run:
        async for _ in run:
            pass


async def stream_and_fail(peer: Peer) -> None:
    try:
        async with peer.stream("fails") as run:
            await run.result()
    except BecketError:
        pass


@pytest.mark.parametrize(
    "round",
    [
        lambda peer: call(peer, "echo"),
        lambda peer: call(peer, "fails"),
        lambda peer: call(peer, "fails at once"),
        lambda peer: call(peer, "no such method"),
        call_and_time_out,
        call_and_leave,
        stream,
        stream_and_fail,
    ],
    ids=["answered", "failed", "failed at once", "unknown", "timed out", "cancelled", "streamed", "stream failed"],
)
async def test_calls_leave_no_memory_behind_however_they_end(round: Callable[[Peer], Awaitable[None]]) -> None:
    async with memory_pair() as (left, right):
        serve(right)
        growth = await growth_of(lambda: round(left))

    assert growth < MOST


async def test_progress_under_tokens_leaves_no_memory_behind() -> None:
    async with memory_pair(dialect="mcp") as (left, right):
        serve(right)

        async def stream_often() -> None:
            for _ in range(4):
                await stream(left)

        growth = await growth_of(stream_often)

    assert growth < MOST


async def test_links_that_end_in_the_middle_of_calls_leave_no_memory_behind() -> None:
    async def live_and_end() -> None:
        async with memory_pair() as (left, right), anyio.create_task_group() as tasks:
            serve(right)
            for _ in range(3):
                tasks.start_soon(call, left, "never")
            await call(left, "echo")
            await left.aclose()

    assert await growth_of(live_and_end) < 4 * MOST


async def test_an_event_that_is_abandoned_while_it_waits_for_credit_leaves_nothing_behind() -> None:
    async with scripted(dialect="native") as (peer, script):
        grown: list[float] = []

        @peer.handle("ticks")
        async def ticks(_: Any, ctx: Context) -> None:
            async def send_and_leave() -> None:
                with anyio.CancelScope() as scope:
                    async with anyio.create_task_group() as tasks:
                        tasks.start_soon(send, ctx)
                        await anyio.lowlevel.checkpoint()
                        scope.cancel()

            grown.append(await growth_of(send_and_leave))

        script.send(request(1, "ticks", {"_meta": {"becket": {"credit": 0}}}))
        assert (await script.receive())["id"] == 1
    assert grown[0] < MOST / 4


async def send(ctx: Context) -> None:
    await ctx.notify("tick", {})
