"""becket as the host of an extension. Its handshake is that of the contract."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import Any

from becket.host import Extension, connect_extension
from benchmarks.hosting.asynchronous import AsyncioLoop, run_host
from messages import Usage


class Hosted:
    """An extension after its handshake. Only starts are measured of it."""

    def __init__(self, extension: Extension) -> None:
        self.extension = extension

    async def handshake(self) -> None:
        """It was done when it was connected."""

    def echo(self, text: str) -> Awaitable[str]:
        return self.extension.call_tool("echo", {"text": text})

    def text_of(self, response: str) -> str:
        return response

    def count(self, events: int) -> Awaitable[int]:
        raise NotImplementedError

    def drive(self, calls: int) -> Awaitable[object]:
        raise NotImplementedError

    async def usage(self) -> Any:
        usage = await self.extension.peer.call("usage", returns=Usage)
        return {"pid": usage.pid, "cpu": usage.cpu}


@asynccontextmanager
async def connect(command: list[str]) -> AsyncIterator[Hosted]:
    variables = {"PYTHONPATH": os.environ["PYTHONPATH"]}
    async with connect_extension(command, id="extension", grants=["tools.register"], env=variables) as extension:
        yield Hosted(extension)


run_host(connect, AsyncioLoop())
