"""An extension that appends to its host's memory as fast as it can, many calls at once."""

from __future__ import annotations

import asyncio
import time

from becket.extension import ExtensionServer, tool

TEXT = "x" * 200


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


if __name__ == "__main__":
    Appender().run()
