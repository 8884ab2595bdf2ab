"""The asyncio floor as a child. Arguments: `uvloop` for that loop, `tasks` for a coroutine and a task a call."""

from __future__ import annotations

import asyncio
import os
import sys
import time

from asyncio_peer import AsyncioPeer
from endpoint import Count, Echo, Tick, Usage


async def main() -> None:
    peer = AsyncioPeer()

    def echo(params: Echo) -> Echo:
        return params

    async def echo_async(params: Echo) -> Echo:
        return params

    async def count(params: Count) -> Count:
        notify, text = peer.notify, params.text
        for seq in range(params.count):
            notify("tick", Tick(seq, text))
            if peer.is_paused:
                await peer.drain()
        return params

    async def drive(params: Count) -> Count:
        message = Echo(params.text)
        for _ in range(params.count):
            await peer.call("host/echo", message, Echo)
        return params

    if "tasks" in sys.argv:
        peer.handle("echo", Echo, echo_async, is_async=True)
    else:
        peer.handle("echo", Echo, echo)
    peer.handle("initialize", None, lambda _: {})
    peer.handle("usage", None, lambda _: Usage(os.getpid(), time.process_time()))
    peer.handle("count", Count, count, is_async=True)
    peer.handle("drive", Count, drive, is_async=True)
    await peer.connect(sys.stdin.buffer, sys.stdout.buffer)
    await peer.closed


if "uvloop" in sys.argv:
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
else:
    asyncio.run(main())
