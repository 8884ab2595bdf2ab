"""agent-client-protocol as a host: its client."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import Any

from acp import PROTOCOL_VERSION, Client, spawn_agent_process, text_block

from benchmarks.hosting.asynchronous import AsyncioLoop, run_host
from benchmarks.workloads import EVENT_TEXT, MESSAGE_TEXT

BUFFER = 50 * 1024 * 1024  # what the agent has by default; asyncio's own is too small for a line of 1 MiB


class BenchmarkClient(Client):
    """Counts the events: the chunks of a message have no number of their own."""

    def __init__(self) -> None:
        self.seen = 0
        self.total = 0

    async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
        self.total += self.seen
        self.seen += 1

    async def ext_method(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        return {"text": params["text"]}


class AgentClientProtocol:
    def __init__(self, client: BenchmarkClient, connection: Any) -> None:
        self.client = client
        self.connection = connection

    def handshake(self) -> Awaitable[object]:
        response: Awaitable[object] = self.connection.initialize(protocol_version=PROTOCOL_VERSION)
        return response

    def echo(self, text: str) -> Awaitable[Any]:
        response: Awaitable[Any] = self.connection.ext_method("echo", {"text": text})
        return response

    def text_of(self, response: Any) -> str:
        text: str = response["text"]
        return text

    async def count(self, events: int) -> int:
        self.client.seen = self.client.total = 0
        await self.connection.prompt(session_id="benchmark", prompt=[text_block(str(events)), text_block(EVENT_TEXT)])
        return self.client.total

    def drive(self, calls: int) -> Awaitable[object]:
        response: Awaitable[object] = self.connection.ext_method("drive", {"count": calls, "text": MESSAGE_TEXT})
        return response

    def usage(self) -> Awaitable[Any]:
        response: Awaitable[Any] = self.connection.ext_method("usage", {})
        return response


@asynccontextmanager
async def connect(command: list[str]) -> AsyncIterator[AgentClientProtocol]:
    client = BenchmarkClient()
    async with spawn_agent_process(client, *command, transport_kwargs={"limit": BUFFER}) as (connection, _):
        yield AgentClientProtocol(client, connection)


run_host(connect, AsyncioLoop())
