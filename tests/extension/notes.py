"""The notes extension of the blueprint, as an author would write it: it is served in memory and as a program."""

from __future__ import annotations

from msgspec import Struct

from becket import Context, ExtensionServer
from becket.contract.hooks import Block, Continue, HookEvent, HookResult
from becket.contract.providers import Model, ProviderRequest, ProviderResult
from becket.extension import CommandOutput, ProviderStream, command, handles, hook, provider, tool


class StatsParams(Struct):
    since: int


class Stats(Struct):
    notes: int


class Notes(ExtensionServer):
    id, version = "notes", "1.2.0"

    @tool("Counts the notes that contain a text.")
    async def count(self, text: str, limit: int = 10) -> int:
        return len(await self.host.memory.query(content_contains=text, limit=limit))

    @command("reindex")
    async def reindex(self, args: list[str], out: CommandOutput) -> None:
        async with out.task("Indexing", kind="rebuild", total=300) as task:
            for _ in range(300):
                await task.advance()
        await out.table(["file", "lines"], [["todo.md", "12"]])

    @provider("local", models=[Model("small", context_window=4096, streaming=True)])
    async def answer(self, request: ProviderRequest, out: ProviderStream) -> ProviderResult:
        await out.text("hel")
        await out.text("lo")
        return ProviderResult.of_text("hello")

    @hook("before_tool_call", tool="bash")
    async def guard(self, event: HookEvent) -> HookResult:
        return Block("no") if "rm -rf" in str(event.tool_input) else Continue()

    @handles("notes/stats")
    async def stats(self, params: StatsParams, ctx: Context) -> Stats:
        return Stats(params.since)


if __name__ == "__main__":
    Notes().run()
