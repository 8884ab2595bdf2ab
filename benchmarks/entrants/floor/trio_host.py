"""The floor on anyio's streams, on trio, as a host."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import Any

import anyio

from benchmarks.hosting.asynchronous import TrioLoop, run_host
from benchmarks.workloads import EVENT_TEXT, MESSAGE_TEXT
from endpoint import Count, Echo, Tick, Usage
from trio_peer import StreamPeer


class Floor:
    def __init__(self, peer: StreamPeer) -> None:
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
    async with await anyio.open_process(command, stderr=None) as process, anyio.create_task_group() as tasks:
        assert process.stdin is not None
        assert process.stdout is not None
        peer = StreamPeer(process.stdout, process.stdin, tasks)
        tasks.start_soon(peer.run)
        yield Floor(peer)
        await process.stdin.aclose()
        await process.wait()


run_host(connect, TrioLoop())
