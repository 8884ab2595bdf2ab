"""What a call costs becket beside so many open calls, registered methods or open streams."""

from __future__ import annotations

import asyncio
import os
import statistics
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from becket import Limits, Peer, Registry
from benchmarks.hosting.measurement import load_settings, print_figures
from benchmarks.workloads import EVENT_TEXT, MESSAGE_TEXT
from messages import Count, Echo, Tick, Usage

settings = load_settings()


@asynccontextmanager
async def connect(methods: int = 0) -> AsyncIterator[Peer]:
    def idle() -> None:
        pass

    registry = Registry()
    for number in range(methods):
        registry.handle(f"idle/{number}")(idle)
    async with Peer.connect_process(
        [*settings["child"], f"methods={methods}"],
        env={"PYTHONPATH": os.environ["PYTHONPATH"]},
        methods=registry,
        limits=Limits(outbound_calls=100_000),
    ) as peer:
        yield peer


async def beside_open_calls(size: int) -> dict[str, float]:
    async with connect() as peer:
        calls = [asyncio.create_task(peer.call("park", timeout=None)) for _ in range(size)]
        await until_parked(peer, size)
        figures = await cost_of_a_call(peer)
        await peer.notify("release")
        await asyncio.gather(*calls)
        return figures


async def beside_methods(size: int) -> dict[str, float]:
    async with connect(methods=size) as peer:
        return await cost_of_a_call(peer)


async def beside_open_streams(size: int) -> dict[str, float]:
    async with connect() as peer:
        async with AsyncExitStack() as stack:
            for _ in range(size):
                await stack.enter_async_context(peer.stream("park", idle_timeout=None))
            await until_parked(peer, size)
            figures = await cost_of_a_call(peer)
            figures["event_us"] = await cost_of_an_event(peer)
            await peer.notify("release")
        return figures


async def until_parked(peer: Peer, size: int) -> None:
    while await peer.call("parked", returns=int) < size:
        pass


async def cost_of_a_call(peer: Peer) -> dict[str, float]:
    message, calls = Echo(MESSAGE_TEXT), settings["calls"]
    for _ in range(calls // 10):
        await peer.call("echo", message, returns=Echo)
    took: list[int] = []
    before = time.process_time() + (await peer.call("usage", returns=Usage)).cpu
    for _ in range(calls):
        began = time.perf_counter_ns()
        await peer.call("echo", message, returns=Echo)
        took.append(time.perf_counter_ns() - began)
    used = time.process_time() + (await peer.call("usage", returns=Usage)).cpu - before
    return {"call_us": statistics.median(took) / 1e3, "cpu_us": used / calls * 1e6}


async def cost_of_an_event(peer: Peer) -> float:
    events = settings["events"]
    seen = 0

    def on_tick(tick: Tick) -> None:
        nonlocal seen
        seen += 1

    began = time.perf_counter()
    await peer.call("count", Count(events, EVENT_TEXT), on={"tick": on_tick})
    if seen != events:
        raise RuntimeError("events were lost or repeated")
    return (time.perf_counter() - began) / events * 1e6


async def main() -> None:
    costs: dict[str, Any] = {}
    for kind, cost in {
        "open calls": beside_open_calls,
        "registered methods": beside_methods,
        "open streams": beside_open_streams,
    }.items():
        costs[kind] = {str(size): await cost(size) for size in settings["sizes"]}
    print_figures(costs)


asyncio.run(main())
