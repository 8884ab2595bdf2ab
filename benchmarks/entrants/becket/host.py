"""becket as a host, on the loop that the arguments name (`uvloop`, `trio`, else asyncio).

With `stream` the events are taken by an async iterator, else by a function. With `native` the child is an extension
behind a gate.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import Any

from becket import Peer
from becket.host import connect_extension
from benchmarks.hosting.asynchronous import AsyncioLoop, TrioLoop, run_host
from benchmarks.workloads import EVENT_TEXT, MESSAGE_TEXT
from messages import Count, Echo, Tick, Usage

VARIABLES = {"PYTHONPATH": os.environ["PYTHONPATH"]}


class Becket:
    def __init__(self, peer: Peer) -> None:
        self.peer = peer

        @peer.handle("host/echo")
        def host_echo(params: Echo) -> Echo:
            return params

    def handshake(self) -> Awaitable[object]:
        return self.peer.call("initialize")

    def echo(self, text: str) -> Awaitable[Echo]:
        return self.peer.call("echo", Echo(text), returns=Echo)

    def text_of(self, response: Echo) -> str:
        return response.text

    async def count(self, events: int) -> int:
        total = 0

        def on_tick(tick: Tick) -> None:
            nonlocal total
            total += tick.seq

        await self.peer.call("count", Count(events, EVENT_TEXT), on={"tick": on_tick})
        return total

    def drive(self, calls: int) -> Awaitable[object]:
        return self.peer.call("drive", Count(calls, MESSAGE_TEXT))

    async def usage(self) -> Any:
        usage = await self.peer.call("usage", returns=Usage)
        return {"pid": usage.pid, "cpu": usage.cpu}


class BecketStream(Becket):
    async def count(self, events: int) -> int:
        total = 0
        async with self.peer.stream("count", Count(events, EVENT_TEXT), events={"tick": Tick}) as run:
            async for tick in run:
                total += tick.seq
            await run.result()
        return total


class BecketNative(Becket):
    async def handshake(self) -> None:
        """Done by `connect_extension`."""


@asynccontextmanager
async def connect(command: list[str]) -> AsyncIterator[Becket]:
    async with Peer.connect_process(command, env=VARIABLES) as peer:
        yield BecketStream(peer) if "stream" in sys.argv else Becket(peer)


@asynccontextmanager
async def connect_native(command: list[str]) -> AsyncIterator[Becket]:
    async with connect_extension(command, id="native", env=VARIABLES) as extension:
        yield BecketNative(extension.peer)


run_host(
    connect_native if "native" in sys.argv else connect,
    TrioLoop() if "trio" in sys.argv else AsyncioLoop(uvloop="uvloop" in sys.argv),
)
