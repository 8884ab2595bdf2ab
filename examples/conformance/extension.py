"""Offers everything that the cases of `becket conform` need: docs/conformance.md describes each tool and command."""

from __future__ import annotations

import sys
import time
from typing import Any

import anyio

from becket import Context, RemoteError, RpcError
from becket.contract import (
    Block,
    BuildInfo,
    EditorOpen,
    EditorRender,
    EditorRow,
    ExtensionInfo,
    HookEvent,
    HookResult,
    Model,
    Modify,
    ProviderRequest,
    ProviderResult,
)
from becket.extension import CommandOutput, ExtensionServer, ProviderStream, command, hook, provider, tool


class Conform(ExtensionServer):
    id = "conform"
    version = "1.0.0"

    @tool("Returns its input.", name="conform_echo")
    async def echo(self, value: Any) -> Any:
        return value

    @tool("Adds two integers.", name="conform_add")
    async def add(self, a: int, b: int) -> int:
        return a + b

    @tool("Waits, and can be cancelled.", name="conform_sleep")
    async def sleep(self, ms: int) -> str:
        await anyio.sleep(ms / 1000)
        return "slept"

    @tool("Blocks its thread.", name="conform_block")
    def block(self, ms: int) -> str:
        time.sleep(ms / 1000)
        return "blocked"

    @tool("Fails with an unexpected exception.", name="conform_fail")
    async def fail(self, text: str) -> None:
        raise LookupError(text)

    @tool("Rejects the call with this error.", name="conform_reject")
    async def reject(self, code: int, message: str) -> None:
        raise RpcError(code, message)

    @tool("Calls a method of the host.", name="conform_call")
    async def call(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        try:
            return {"result": await self.host.call(method, params)}
        except RemoteError as error:
            return {"error": {"code": error.code, "message": error.message}}

    @tool("Writes a line to the host's log.", name="conform_log")
    async def log(self, message: str) -> None:
        self.host.log(message, level="warning")

    @tool("Reports progress.", name="conform_progress")
    async def progress(self, count: int, ctx: Context) -> int:
        for number in range(1, count + 1):
            await ctx.progress(number)
        return count

    @tool("Prints to stdout.", name="conform_print")
    async def print(self, text: str) -> str:
        print(text, flush=True)
        return "printed"

    @tool("Writes to stderr.", name="conform_stderr")
    async def stderr(self, size: int) -> str:
        print("x" * size, file=sys.stderr, flush=True)
        return "written"

    @tool("Returns a text of this many characters.", name="conform_text")
    async def text(self, size: int) -> str:
        return "x" * size

    @command("conform_count")
    async def count(self, args: list[str], out: CommandOutput) -> dict[str, int]:
        last = int(args[0])
        for number in range(1, last + 1):
            await out.text(str(number))
        return {"count": last}

    @command("conform_task")
    async def task(self, args: list[str], out: CommandOutput) -> None:
        async with out.task("Working", kind="rebuild", total=2) as task:
            await task.advance()
            await task.log("half")
            await task.advance()
            if args:
                raise RuntimeError("stopped")

    @provider("conform", models=[Model("words", context_window=4096, streaming=True)])
    async def model(self, request: ProviderRequest, out: ProviderStream) -> ProviderResult:
        """Repeats the last message, word by word."""
        text = str(request.messages[-1].content)
        for word in text.split():
            await out.text(word)
        return ProviderResult.of_text(text)

    @hook("before_tool_call", tool="conform_guarded")
    async def guard(self, event: HookEvent) -> HookResult | None:
        match event.tool_input:
            case {"decision": "block"}:
                return Block("blocked by the case")
            case {"decision": "modify"}:
                return Modify({"decision": "modified"})
            case _:
                return None

    def info(self) -> ExtensionInfo:
        return ExtensionInfo(BuildInfo("cpu", version=self.version))

    def on_editor_open(self, opened: EditorOpen) -> EditorRender:
        return EditorRender((EditorRow("white", data="white"),), cursor=0)


if __name__ == "__main__":
    Conform().run()
