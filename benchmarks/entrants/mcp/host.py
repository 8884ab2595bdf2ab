"""The MCP SDK as a host: its client session."""

from __future__ import annotations

import json
import warnings
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import mcp_types as types
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from benchmarks.hosting.asynchronous import AsyncioLoop, run_host
from benchmarks.workloads import EVENT_TEXT, MESSAGE_TEXT

warnings.simplefilter("ignore")  # sampling is deprecated, and nothing else lets a server call its client


async def sample(context: Any, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
    content: Any = params.messages[0].content
    return types.CreateMessageResult(role="assistant", content=content, model="benchmark")


class Mcp:
    def __init__(self, session: ClientSession) -> None:
        self.session = session

    def handshake(self) -> Awaitable[object]:
        return self.session.initialize()

    def echo(self, text: str) -> Awaitable[Any]:
        return self.session.call_tool("echo", {"text": text})

    def text_of(self, response: Any) -> str:
        text: str = response.content[0].text
        return text

    async def count(self, events: int) -> int:
        seen = total = 0
        all_seen = anyio.Event()

        async def on_progress(progress: float, of: float | None, message: str | None) -> None:
            nonlocal seen, total
            seen += 1
            total += int(progress)
            if seen == events:
                all_seen.set()

        await self.session.call_tool("count", {"count": events, "text": EVENT_TEXT}, progress_callback=on_progress)
        await all_seen.wait()  # the result may overtake events, which are handled in tasks of their own
        return total

    def drive(self, calls: int) -> Awaitable[object]:
        return self.session.call_tool("drive", {"count": calls, "text": MESSAGE_TEXT})

    async def usage(self) -> Any:
        return json.loads(self.text_of(await self.session.call_tool("usage", {})))


@asynccontextmanager
async def connect(command: list[str]) -> AsyncIterator[Mcp]:
    program, *arguments = command
    async with (
        stdio_client(StdioServerParameters(command=program, args=arguments)) as (reading, writing),
        ClientSession(reading, writing, sampling_callback=sample) as session,
    ):
        yield Mcp(session)


run_host(connect, AsyncioLoop())
