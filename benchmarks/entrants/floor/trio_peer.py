"""The floor on anyio's streams: one task reads, the sending task writes, with all frames that are queued meanwhile."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream, TaskGroup

from endpoint import CHUNK, Endpoint

__all__ = ["StreamPeer"]


class Slot:
    """Where the reply to one call is put, and its caller woken."""

    __slots__ = ("arrived", "result")

    def __init__(self) -> None:
        self.arrived = anyio.Event()
        self.result: Any = None

    def set_result(self, result: Any, /) -> None:
        self.result = result
        self.arrived.set()


class StreamPeer(Endpoint):
    """One link over two anyio streams. `run` is its reader; asynchronous handlers live in its task group."""

    def __init__(self, receiver: ByteReceiveStream, sender: ByteSendStream, tasks: TaskGroup) -> None:
        super().__init__()
        self.receiver = receiver
        self.sender = sender
        self.tasks = tasks
        self.outgoing: list[bytes] = []
        self.is_writing = False
        self.has_written = True  # all frames are queued: a stream can only be written to by awaiting

    async def call(self, method: str, params: Any, returns: type) -> Any:
        slot = Slot()
        self.request(method, params, returns, slot)
        await self.write_out()
        await slot.arrived.wait()
        return slot.result

    async def notify_all(self, method: str, params: Any) -> None:
        """Queues a notification and waits only once a chunk is full."""
        self.notify(method, params)
        if self.outgoing:
            await self.write_out()

    async def run(self) -> None:
        while True:
            try:
                data = await self.receiver.receive(CHUNK)
            except anyio.EndOfStream:
                return
            self.receive(data)
            if self.outgoing:
                await self.write_out()

    async def write_out(self) -> None:
        self.flush()
        self.has_written = True
        if self.is_writing:
            return  # the current writer sends these too
        self.is_writing = True
        while outgoing := self.outgoing:
            data = outgoing[0] if len(outgoing) == 1 else b"".join(outgoing)
            outgoing.clear()
            await self.sender.send(data)
        self.is_writing = False

    # -- what the endpoint needs

    def write(self, data: bytes) -> None:
        self.outgoing.append(data)

    def start(self, call_id: int, coroutine: Coroutine[Any, Any, Any]) -> None:
        async def answer() -> None:
            self.reply(call_id, await coroutine)
            await self.write_out()

        self.tasks.start_soon(answer)

    def flush_soon(self) -> None:
        pass  # the sender awaits `write_out`
