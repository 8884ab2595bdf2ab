"""Makes the same request of one client many times and prints its figures as one line of JSON."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager

from benchmarks.hosting.measurement import Window, latencies, load_settings, print_figures

__all__ = ["Ask", "run_client"]

Ask = Callable[[], Awaitable[object]]
AT_ONCE = 64


def run_client(connect: Callable[[list[str]], AbstractAsyncContextManager[Ask]]) -> None:
    """Runs a client on asyncio; connecting returns a function that makes one request."""
    asyncio.run(measure(connect))


async def measure(connect: Callable[[list[str]], AbstractAsyncContextManager[Ask]]) -> None:
    settings = load_settings()
    began = time.perf_counter()
    async with connect(settings["child"]) as ask:
        start_ms = (time.perf_counter() - began) * 1e3
        for _ in range(settings["warmup"]):
            await ask()
        calls: int = settings["calls"]
        times: list[int] = []
        window = Window()
        for _ in range(calls):
            before = time.perf_counter_ns()
            await ask()
            times.append(time.perf_counter_ns() - before)
        window.close()
        began = time.perf_counter()
        for _ in range(max(1, calls // AT_ONCE)):
            await asyncio.gather(*(ask() for _ in range(AT_ONCE)))
        at_once = max(1, calls // AT_ONCE) * AT_ONCE / (time.perf_counter() - began)
        figures = {**window.figures(calls, 0.0), **latencies(times), "at_once": at_once, "start_ms": start_ms}
        print_figures(figures)
