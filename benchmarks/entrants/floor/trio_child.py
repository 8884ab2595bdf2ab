"""The floor on anyio's streams, on trio, as a child."""

from __future__ import annotations

import os
import time

import anyio
import trio
from anyio.abc import ByteReceiveStream, ByteSendStream

from endpoint import Count, Echo, Tick, Usage
from trio_peer import StreamPeer


class Stdin(ByteReceiveStream):
    """anyio has no stream for a descriptor of one's own; trio has."""

    def __init__(self) -> None:
        self.stream = trio.lowlevel.FdStream(0)

    async def receive(self, max_bytes: int = 65536) -> bytes:
        data = await self.stream.receive_some(max_bytes)
        if not data:
            raise anyio.EndOfStream
        return bytes(data)

    async def aclose(self) -> None:
        await self.stream.aclose()


class Stdout(ByteSendStream):
    def __init__(self) -> None:
        self.stream = trio.lowlevel.FdStream(1)

    async def send(self, item: bytes) -> None:
        await self.stream.send_all(item)

    async def aclose(self) -> None:
        await self.stream.aclose()


async def main() -> None:
    async with anyio.create_task_group() as tasks:
        peer = StreamPeer(Stdin(), Stdout(), tasks)

        async def count(params: Count) -> Count:
            for seq in range(params.count):
                await peer.notify_all("tick", Tick(seq, params.text))
            return params

        async def drive(params: Count) -> Count:
            message = Echo(params.text)
            for _ in range(params.count):
                await peer.call("host/echo", message, Echo)
            return params

        peer.handle("echo", Echo, lambda params: params)
        peer.handle("initialize", None, lambda _: {})
        peer.handle("usage", None, lambda _: Usage(os.getpid(), time.process_time()))
        peer.handle("count", Count, count, is_async=True)
        peer.handle("drive", Count, drive, is_async=True)
        await peer.run()


anyio.run(main, backend="trio")
