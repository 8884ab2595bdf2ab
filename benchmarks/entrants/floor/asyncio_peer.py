"""The floor on asyncio: a Protocol on each of two pipes, read 64 KiB at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import IO, Any

from endpoint import CHUNK, Endpoint

__all__ = ["AsyncioPeer"]


class AsyncioPeer(Endpoint, asyncio.Protocol):
    """One link. `call` returns the Future itself; `drain` is awaited only while `is_paused`."""

    data_received = Endpoint.receive

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.get_running_loop()
        self.closed: asyncio.Future[None] = self.loop.create_future()
        self.tasks: set[asyncio.Task[None]] = set()
        self.is_paused = False
        self.resumed: asyncio.Future[None] | None = None
        self.writer: asyncio.WriteTransport

    async def connect(self, readable: IO[bytes], writable: IO[bytes]) -> None:
        # The writing end first: a received request may get its response at once.
        writer, _ = await self.loop.connect_write_pipe(lambda: Writing(self), writable)
        self.writer, self.write = writer, writer.write  # type: ignore[method-assign]
        reader, _ = await self.loop.connect_read_pipe(lambda: self, readable)
        if hasattr(reader, "max_size"):  # asyncio's own; uvloop has no such attribute and needs none
            reader.max_size = CHUNK

    async def aclose(self) -> None:
        """Ends our half and returns when the other peer has ended its own."""
        self.writer.close()
        await self.closed

    def call(self, method: str, params: Any, returns: type) -> asyncio.Future[Any]:
        future = self.loop.create_future()
        self.request(method, params, returns, future)
        return future

    async def drain(self) -> None:
        if self.is_paused:
            self.resumed = self.loop.create_future()
            await self.resumed

    # -- what the endpoint needs

    def start(self, call_id: int, coroutine: Coroutine[Any, Any, Any]) -> None:
        async def answer() -> None:
            self.reply(call_id, await coroutine)

        task = self.loop.create_task(answer())
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def flush_soon(self) -> None:
        self.loop.call_soon(self.flush)

    # -- what asyncio calls

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.closed.done():
            self.closed.set_result(None)


class Writing(asyncio.Protocol):
    """The other pipe's protocol: it only reports backpressure."""

    def __init__(self, peer: AsyncioPeer) -> None:
        self.peer = peer

    def pause_writing(self) -> None:
        self.peer.is_paused = True

    def resume_writing(self) -> None:
        self.peer.is_paused = False
        if self.peer.resumed and not self.peer.resumed.done():
            self.peer.resumed.set_result(None)
