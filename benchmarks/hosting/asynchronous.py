"""Drives the workloads through an entrant whose host is asynchronous, on asyncio, uvloop or trio."""

from __future__ import annotations

import statistics
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from benchmarks.hosting.measurement import (
    Usage,
    Window,
    latencies,
    load_settings,
    print_figures,
    resident_kib,
    thread_count,
    turns,
)
from benchmarks.workloads import MESSAGE_TEXT

__all__ = ["AsyncioLoop", "Connect", "Loop", "Subject", "TrioLoop", "run_host"]


class Subject(Protocol):
    """One connected child as the workloads see it. What it returns is awaited directly: no coroutine in between."""

    def handshake(self) -> Awaitable[object]:
        """Whatever this entrant does before a first call may be made."""
        ...

    def echo(self, text: str) -> Awaitable[Any]: ...

    def text_of(self, response: Any) -> str:
        """Returns the text in a response to `echo`."""
        ...

    def count(self, events: int) -> Awaitable[int]:
        """Has the child send that many events and returns the sum of their numbers."""
        ...

    def drive(self, calls: int) -> Awaitable[object]:
        """Has the child make that many calls to the host before it responds."""
        ...

    def usage(self) -> Awaitable[Usage]: ...


Connect = Callable[[list[str]], AbstractAsyncContextManager[Subject]]
Work = Callable[[], Coroutine[Any, Any, None]]


class Loop(Protocol):
    """What the driver needs of an event loop."""

    def run(self, work: Work) -> None: ...

    async def together(self, works: list[Work]) -> None:
        """Runs them at once and returns when all have returned."""
        ...

    def event(self) -> Any:
        """Returns a new event with `set()` and `await wait()`."""
        ...


class AsyncioLoop:
    def __init__(self, *, uvloop: bool = False) -> None:
        self.uvloop = uvloop

    def run(self, work: Work) -> None:
        import asyncio

        if self.uvloop:
            import uvloop

            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(work())
        else:
            asyncio.run(work())

    async def together(self, works: list[Work]) -> None:
        import asyncio

        await asyncio.gather(*[work() for work in works])

    def event(self) -> Any:
        import asyncio

        return asyncio.Event()


class TrioLoop:
    def run(self, work: Work) -> None:
        import trio

        trio.run(work)

    async def together(self, works: list[Work]) -> None:
        import trio

        async with trio.open_nursery() as nursery:
            for work in works:
                nursery.start_soon(work)

    def event(self) -> Any:
        import trio

        return trio.Event()


def run_host(connect: Connect, loop: Loop) -> None:
    """Runs the workload that the settings name, and prints its figures."""
    settings = load_settings()
    workload = WORKLOADS[settings["workload"]]

    async def work() -> None:
        await workload(connect, loop, settings)

    loop.run(work)


async def one_after_another(connect: Connect, loop: Loop, settings: dict[str, Any]) -> None:
    async with connect(settings["child"]) as subject:
        await subject.handshake()
        await check_echo(subject, MESSAGE_TEXT)
        echo = subject.echo
        for _ in range(settings["warmup"]):
            await echo(MESSAGE_TEXT)

        calls = settings["calls"]
        for _ in turns(settings):
            took: list[int] = []
            window = Window(await subject.usage())
            for _ in range(calls):
                began = time.perf_counter_ns()
                await echo(MESSAGE_TEXT)
                took.append(time.perf_counter_ns() - began)
            window.close()
            figures = window.figures(calls, (await subject.usage())["cpu"])
            print_figures({"calls_s": calls / window.seconds, **latencies(took), **figures})


async def many_in_flight(connect: Connect, loop: Loop, settings: dict[str, Any]) -> None:
    async with connect(settings["child"]) as subject:
        await subject.handshake()
        await check_echo(subject, MESSAGE_TEXT)
        in_flight = settings["in_flight"]
        echo = subject.echo

        async def make_calls(calls: int) -> int:
            each: int = max(calls // in_flight, 1)

            async def caller() -> None:
                for _ in range(each):
                    await echo(MESSAGE_TEXT)

            callers: list[Work] = [caller] * in_flight
            await loop.together(callers)
            return each * len(callers)

        await make_calls(settings["warmup"])
        for _ in turns(settings):
            window = Window(await subject.usage())
            calls = await make_calls(settings["calls"])
            window.close()
            figures = window.figures(calls, (await subject.usage())["cpu"])
            print_figures({"calls_s": calls / window.seconds, **figures})


async def events(connect: Connect, loop: Loop, settings: dict[str, Any]) -> None:
    async with connect(settings["child"]) as subject:
        await subject.handshake()
        await check_count(subject, settings["warmup"])

        total = settings["events"] * settings["repeats"]
        for _ in turns(settings):
            window = Window(await subject.usage())
            for _ in range(settings["repeats"]):
                await check_count(subject, settings["events"])
            window.close()
            figures = window.figures(total, (await subject.usage())["cpu"])
            print_figures({"events_s": total / window.seconds, **figures})


async def large_payload(connect: Connect, loop: Loop, settings: dict[str, Any]) -> None:
    async with connect(settings["child"]) as subject:
        await subject.handshake()
        text = "x" * settings["payload"]
        await check_echo(subject, text)
        echo = subject.echo
        for _ in range(settings["warmup"]):
            await echo(text)

        calls = settings["calls"]
        window = Window(await subject.usage())
        for _ in range(calls):
            await echo(text)
        window.close()

        mib = calls * settings["payload"] / (1 << 20)
        print_figures({"mib_s": mib / window.seconds, **window.figures(calls, (await subject.usage())["cpu"])})


async def calls_back(connect: Connect, loop: Loop, settings: dict[str, Any]) -> None:
    async with connect(settings["child"]) as subject:
        await subject.handshake()
        await subject.drive(settings["warmup"])

        calls = settings["calls"]
        for _ in turns(settings):
            window = Window(await subject.usage())
            await subject.drive(calls)
            window.close()
            figures = window.figures(calls, (await subject.usage())["cpu"])
            print_figures({"calls_s": calls / window.seconds, **figures})


async def start(connect: Connect, loop: Loop, settings: dict[str, Any]) -> None:
    for _ in turns(settings):
        took: list[float] = []
        resident: list[float] = []
        child_cpu = 0.0
        window = Window()
        for _ in range(settings["starts"]):
            began = time.perf_counter()
            async with connect(settings["child"]) as subject:
                await subject.handshake()
                took.append((time.perf_counter() - began) * 1e3)
                usage = await subject.usage()
                resident.append(resident_kib(usage["pid"]) / 1024)
                child_cpu += usage["cpu"]
        window.close()
        figures = window.figures(settings["starts"], child_cpu)
        print_figures({"start_ms": statistics.median(took), "rss_mib": statistics.median(resident), **figures})


async def many_children(connect: Connect, loop: Loop, settings: dict[str, Any]) -> None:
    children = settings["children"]
    subjects: list[Subject] = []
    figures: dict[str, float] = {}
    all_ready, release = loop.event(), loop.event()

    async def tend() -> None:
        # A task for each child, because some entrants may only be closed by the task that opened them.
        async with connect(settings["child"]) as subject:
            await subject.handshake()
            await subject.echo(MESSAGE_TEXT)
            subjects.append(subject)
            if len(subjects) == children:
                all_ready.set()
            await release.wait()

    async def watch() -> None:
        resident_before = resident_kib()
        window = Window()
        await all_ready.wait()
        window.close()
        figures.update(start_s=window.seconds, threads=thread_count())
        figures["host_kib_child"] = (resident_kib() - resident_before) / children

        child_cpu = 0.0
        for subject in subjects:
            child_cpu += (await subject.usage())["cpu"]
        figures.update(window.figures(children, child_cpu))

        laps = settings["laps"]
        began = time.perf_counter()
        for _ in range(laps):
            for subject in subjects:
                await subject.echo(MESSAGE_TEXT)
        figures["lap_call_us"] = (time.perf_counter() - began) / (laps * children) * 1e6
        release.set()

    await loop.together([watch, *[tend] * children])
    print_figures(figures)


async def check_echo(subject: Subject, text: str) -> None:
    if subject.text_of(await subject.echo(text)) != text:
        raise RuntimeError("the echo is not what was sent")


async def check_count(subject: Subject, total: int) -> None:
    if await subject.count(total) != total * (total - 1) // 2:
        raise RuntimeError("events were lost or repeated")


WORKLOADS = {
    "W1": one_after_another,
    "W2": many_in_flight,
    "W3": events,
    "W4": large_payload,
    "W5": calls_back,
    "W6": start,
    "W7": many_children,
}
