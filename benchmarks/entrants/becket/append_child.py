"""An extension that appends to its host's memory as fast as it can: many calls at once, or in batches."""

from __future__ import annotations

import asyncio
import time

from becket import BatchCall, Context
from becket.contract.memory import MEMORY_APPEND, Append, Appended
from becket.extension import ExtensionServer, tool
from becket.limits import DEFAULT_LIMITS

TEXT = "x" * 200
BATCH = DEFAULT_LIMITS.batch
BATCHES = DEFAULT_LIMITS.inbound_requests // BATCH  # at once: the host takes no more calls of one extension


class Appender(ExtensionServer):
    id = "appender"
    version = "1.0.0"

    @tool("Appends so many records, so many at once; returns how many that were in a second.")
    async def append(self, count: int, callers: int) -> float:
        left = iter(range(count))

        async def call() -> None:
            for _ in left:
                await self.host.memory.append(TEXT)

        began = time.perf_counter()
        await asyncio.gather(*(call() for _ in range(callers)))
        return count / (time.perf_counter() - began)

    @tool("Appends so many records in batches as large as may be; returns how many that were in a second.")
    async def append_batches(self, count: int, ctx: Context) -> float:
        batch = [BatchCall(MEMORY_APPEND.name, Append(self.host.extension, TEXT), Appended)] * BATCH
        batches = max(BATCHES, round(count / BATCH))
        left = iter(range(batches))

        async def call() -> None:
            for _ in left:
                for kept in await ctx.peer.batch(batch):
                    if isinstance(kept, BaseException):
                        raise kept

        began = time.perf_counter()
        await asyncio.gather(*(call() for _ in range(BATCHES)))
        return batches * BATCH / (time.perf_counter() - began)


if __name__ == "__main__":
    Appender().run()
