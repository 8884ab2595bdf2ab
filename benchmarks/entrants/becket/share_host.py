"""What is left of a host's loop to others while some of its children write more than it can read: one experiment a run.

An iteration of the loop is what it does between two polls. Its processor time is that of the thread, so other programs
do not affect it. Iterations below `LEAST` did next to nothing and are left out, so that idle ones do not hide others.
"""

from __future__ import annotations

import logging
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from typing import Any

import anyio

from becket import Peer
from becket.peer.blocking_peer import connect_process
from becket.peer.loops.thread_loop import ThreadLoop
from benchmarks.hosting.measurement import busy_seconds, load_settings, print_figures, waited_seconds

Values = dict[str, list[float]]
"""Each quantity that an experiment measures: its samples."""

LEAST = 0.1  # ms
SIBLINGS = 16
FLOODERS = 3
HANDLER_SECONDS = 0.001  # of a handler that has something to do
SETTLED = 0.5  # seconds of a flood before anything is measured

settings = load_settings()


# -- iterations


@contextmanager
def iterations(backend: str) -> Iterator[list[float]]:
    """Yields a list that grows by the processor time of each iteration of the running loop, in milliseconds."""
    took: list[float] = []
    began = time.thread_time()

    def end(*_: object) -> None:
        used = (time.thread_time() - began) * 1e3
        if used >= LEAST:
            took.append(used)

    def begin(*_: object) -> None:
        nonlocal began
        began = time.thread_time()

    if backend == "trio":
        import trio

        class Between(trio.abc.Instrument):
            before_io_wait = staticmethod(end)
            after_io_wait = staticmethod(begin)

        between = Between()
        trio.lowlevel.add_instrument(between)
        yield took
        trio.lowlevel.remove_instrument(between)
        return
    import asyncio

    loop: Any = asyncio.get_running_loop()
    if backend == "uvloop":  # its poll cannot be wrapped: a callback in each iteration separates them
        is_over = False

        def tick() -> None:
            end()
            begin()
            if not is_over:
                loop.call_soon(tick)

        loop.call_soon(tick)
        yield took
        is_over = True
        return
    selector = loop._selector
    poll = selector.select

    def select(timeout: float | None = None) -> Any:
        end()
        events = poll(timeout)
        begin()
        return events

    selector.select = select
    yield took
    del selector.select


# -- stderr


@contextmanager
def logging_on() -> Iterator[None]:
    """Has the log written as a program would, to nowhere."""
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        handler = logging.StreamHandler(nowhere)
        logger = logging.getLogger("becket")
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
        yield
        logger.removeHandler(handler)


def stderr_flood(kind: str, backend: str) -> Callable[[], Values]:
    async def flood() -> Values:
        async with Peer.connect_process([*settings["child"], kind]) as peer:
            await peer.notify("begin")
            await anyio.sleep(SETTLED)
            with iterations(backend) as took:
                await anyio.sleep(settings["seconds"])
            kill(peer)
        return {f"stderr_{kind}": took or [0.0]}

    def experiment() -> Values:
        with logging_on():
            return run(flood, backend)

    return experiment


def stderr_flood_blocking(kind: str) -> Callable[[], Values]:
    def experiment() -> Values:
        took: list[float] = []
        turn = ThreadLoop.run_once

        def timed(self: ThreadLoop, *arguments: Any) -> None:
            began = time.thread_time()
            turn(self, *arguments)
            used = (time.thread_time() - began) * 1e3
            if used >= LEAST:
                took.append(used)

        ThreadLoop.run_once = timed  # type: ignore[method-assign]
        with logging_on(), connect_process([*settings["child"], kind]) as peer:
            peer.notify("begin")
            time.sleep(settings["seconds"])
            kill(peer)
        return {f"stderr_{kind}": took or [0.0]}

    return experiment


def kill(peer: Any) -> None:
    """Ends a child that does not read its stdin."""
    assert peer.process is not None
    os.kill(peer.process.pid, signal.SIGKILL)


# -- fair share


def share(kind: str, backend: str) -> Callable[[], Values]:
    async def crowd() -> Values:
        async with AsyncExitStack() as stack:
            names = [*["echo"] * SIBLINGS, *[kind] * FLOODERS, "spin"]
            peers = [
                await stack.enter_async_context(Peer.connect_process([*settings["child"], name])) for name in names
            ]
            siblings, others = peers[:SIBLINGS], peers[SIBLINGS:]
            taken = [0] * FLOODERS
            for number, flooder in enumerate(others[:FLOODERS]):
                count(flooder, taken, number, HANDLER_SECONDS if kind == "handlers" else 0.0)
            await ping_all(siblings, SIBLINGS)
            control = await ping_all(siblings, settings["pings"])
            for flooder in others[:FLOODERS]:
                await flooder.notify("begin")
            await anyio.sleep(SETTLED)
            before, began = sum(taken), time.perf_counter()
            flooded = await ping_all(siblings, settings["pings"])
            rate = (sum(taken) - before) / (time.perf_counter() - began)
            with iterations(backend) as took:  # after that: on uvloop it takes a core
                await ping_all(siblings, settings["pings"])
            for other in others:
                if other.is_closed:
                    raise RuntimeError(f"a flooder was cut off: {await other.wait_closed()}")
                kill(other)
        name = f"share_{kind}"
        return {
            f"{name}_iteration": took,
            f"{name}_ping": [high(flooded) - high(control)],
            f"{name}_control": control,
            f"{name}_flooded": flooded,
            f"{name}_rate": [rate],
        }

    return lambda: run(crowd, backend)


def count(flooder: Peer, taken: list[int], number: int, seconds: float) -> None:
    """Counts what comes; each message takes so much processor time."""

    @flooder.on("x")
    def on_x(params: Any) -> None:
        taken[number] += 1
        until = time.thread_time() + seconds
        while seconds and time.thread_time() < until:
            pass


async def ping_all(siblings: list[Peer], pings: int) -> list[float]:
    took: list[float] = []
    for number in range(pings):
        began = time.perf_counter()
        await siblings[number % len(siblings)].call("ping")
        took.append((time.perf_counter() - began) * 1e3)
    return took


def high(values: list[float]) -> float:
    return sorted(values)[len(values) * 99 // 100]


def run(function: Callable[..., Any], backend: str) -> Values:
    if backend == "trio":
        return anyio.run(function, backend="trio")
    return anyio.run(function, backend_options={"use_uvloop": backend == "uvloop"})


def experiment_of(name: str) -> Callable[[], Values]:
    """Returns the experiment of a name such as `share_tiny`, `share_tiny trio` or `stderr_errors blocking`."""
    what, _, backend = name.partition(" ")
    section, _, kind = what.partition("_")
    if section == "share":
        return share(kind, backend or "asyncio")
    return stderr_flood_blocking(kind) if backend == "blocking" else stderr_flood(kind, backend or "asyncio")


def main() -> None:
    busy, waited, used, began = busy_seconds(), waited_seconds("self"), used_seconds(), time.perf_counter()
    values = experiment_of(settings["experiment"])()
    seconds = time.perf_counter() - began
    figures: dict[str, Any] = {
        "values": values,
        "foreign": max(0.0, busy_seconds() - busy - (used_seconds() - used)) / seconds,
        "waited": (waited_seconds("self") - waited) / seconds,
    }
    print_figures(figures)


def used_seconds() -> float:
    """Returns the processor time of this program and of its children that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


if __name__ == "__main__":
    sys.exit(main())
