"""pygls as a host: its language client."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import Any

from lsprotocol import types
from pygls.lsp.client import LanguageClient

from benchmarks.hosting.asynchronous import AsyncioLoop, run_host
from benchmarks.workloads import EVENT_TEXT, MESSAGE_TEXT


class Pygls:
    def __init__(self) -> None:
        self.client = LanguageClient("benchmark", "1")
        self.send_request = self.client.protocol.send_request_async
        self.total = 0

        @self.client.feature("bench/tick")
        def on_tick(params: Any) -> None:
            self.total += params.seq

        @self.client.feature("bench/hostEcho")
        def host_echo(params: Any) -> dict[str, Any]:
            return {"text": params.text}

    async def handshake(self) -> object:
        await self.client.initialize_async(types.InitializeParams(capabilities=types.ClientCapabilities()))
        self.client.initialized(types.InitializedParams())
        return None

    def echo(self, text: str) -> Awaitable[Any]:
        return self.send_request("bench/echo", {"text": text})

    def text_of(self, response: Any) -> str:
        text: str = response.text
        return text

    async def count(self, events: int) -> int:
        self.total = 0
        await self.send_request("bench/count", {"count": events, "text": EVENT_TEXT})
        return self.total

    def drive(self, calls: int) -> Awaitable[object]:
        return self.send_request("bench/drive", {"count": calls, "text": MESSAGE_TEXT})

    async def usage(self) -> Any:
        usage = await self.send_request("bench/usage", {})
        return {"pid": usage.pid, "cpu": usage.cpu}


@asynccontextmanager
async def connect(command: list[str]) -> AsyncIterator[Pygls]:
    subject = Pygls()
    await subject.client.start_io(*command)
    yield subject
    await subject.client.shutdown_async(None)
    subject.client.exit(None)
    await subject.client.stop()


run_host(connect, AsyncioLoop())
