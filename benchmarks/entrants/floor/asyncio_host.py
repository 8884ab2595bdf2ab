"""The asyncio floor as a host. Argument after the settings: `uvloop` for that loop."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import Any

from asyncio_peer import AsyncioPeer
from benchmarks.hosting.asynchronous import AsyncioLoop, run_host
from benchmarks.workloads import EVENT_TEXT, MESSAGE_TEXT
from endpoint import Count, Echo, Tick, Usage


class Floor:
    def __init__(self, peer: AsyncioPeer) -> None:
        self.peer = peer
        self.total = 0
        peer.handle("tick", Tick, self.on_tick)
        peer.handle("host/echo", Echo, lambda params: params)

    def on_tick(self, tick: Tick) -> None:
        self.total += tick.seq

    def handshake(self) -> Awaitable[object]:
        return self.peer.call("initialize", None, dict)

    def echo(self, text: str) -> Awaitable[Echo]:
        return self.peer.call("echo", Echo(text), Echo)

    def text_of(self, response: Echo) -> str:
        return response.text

    async def count(self, events: int) -> int:
        self.total = 0
        await self.peer.call("count", Count(events, EVENT_TEXT), Count)
        return self.total

    def drive(self, calls: int) -> Awaitable[object]:
        return self.peer.call("drive", Count(calls, MESSAGE_TEXT), Count)

    async def usage(self) -> Any:
        usage: Usage = await self.peer.call("usage", None, Usage)
        return {"pid": usage.pid, "cpu": usage.cpu}


@asynccontextmanager
async def connect(command: list[str]) -> AsyncIterator[Floor]:
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    peer = AsyncioPeer()
    await peer.connect(process.stdout, process.stdin)
    yield Floor(peer)
    await peer.aclose()
    process.wait()


run_host(connect, AsyncioLoop(uvloop="uvloop" in sys.argv))
