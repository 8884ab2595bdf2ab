"""An `ExtensionServer` for the tests; as a program it is an MCP server, by argument or by detection."""

from __future__ import annotations

import sys
from typing import Any

import anyio

from becket.adapters.mcp import (
    ELICITATION_CREATE,
    RESOURCES_LIST,
    RESOURCES_READ,
    SAMPLING_CREATE_MESSAGE,
    CreateMessageParams,
    ElicitParams,
    ImageContent,
    ListResourcesResult,
    PaginatedParams,
    ReadResourceResult,
    Resource,
    ResourceContents,
    ResourceParams,
    SamplingMessage,
    TextContent,
)
from becket.errors import RpcError
from becket.extension import CommandOutput, ExtensionServer, command, handles, tool
from becket.peer.context import Context


class Notebook(ExtensionServer):
    """Notes that are stored as long as the program runs."""

    id = "notebook"
    version = "2.1.0"

    def __init__(self) -> None:
        self.notes: list[str] = ["buy milk"]
        self.has_begun = anyio.Event()
        self.was_cancelled = anyio.Event()

    @tool("Adds a note and returns how many there are.")
    async def add(self, text: str) -> dict[str, int]:
        self.notes.append(text)
        self.host.log(f"added {text}", level="info")
        self.host.log("nobody needs to know", level="debug")
        return {"notes": len(self.notes)}

    @tool("Finds notes.", read_only=True)
    def find(self, text: str = "") -> str:
        print("a print never reaches the wire")
        return "\n".join(note for note in self.notes if text in note)

    @tool("Draws a note.")
    async def draw(self) -> list[Any]:
        return [TextContent("a note:"), ImageContent("aGk=", "image/png")]

    @tool("Fails.")
    async def fail(self, how: str) -> str:
        if how == "told":
            raise RpcError(7, "there is no such note", {"left": 0})
        raise ValueError("a secret of the program")

    @tool("Counts slowly.")
    async def count(self, ctx: Context, to: int = 3) -> str:
        for step in range(1, to + 1):
            await ctx.progress({"progress": step, "total": to, "message": f"step {step}"})
        return f"counted to {to}"

    @tool("Never ends.")
    async def wait(self) -> None:
        self.has_begun.set()
        try:
            await anyio.sleep_forever()
        finally:
            self.was_cancelled.set()

    @tool("Asks a model and a person.")
    async def ask(self) -> str:
        messages = (SamplingMessage("user", TextContent("hi")),)
        sampled = await self.host.call(SAMPLING_CREATE_MESSAGE, CreateMessageParams(messages, 10))
        elicited = await self.host.call(
            ELICITATION_CREATE, ElicitParams("your name?", {"type": "object", "properties": {}})
        )
        return f"{sampled.text} {elicited.content}"

    @command("summary")
    async def summary(self, args: list[str], out: CommandOutput) -> None:
        """Sums the notes up."""
        async with out.task("Reading", total=2) as task:
            await task.advance()
            await task.advance()
        await out.text(f"{len(self.notes)} notes, asked for with {args}")
        await out.table(["number", "note"], [[str(number), note] for number, note in enumerate(self.notes)])

    @handles(RESOURCES_LIST)
    async def list_resources(self, params: PaginatedParams | None) -> ListResourcesResult:
        return ListResourcesResult(tuple(Resource(f"note://{number}", note) for number, note in enumerate(self.notes)))

    @handles(RESOURCES_READ)
    async def read_resource(self, params: ResourceParams) -> ReadResourceResult:
        return ReadResourceResult(
            (ResourceContents(params.uri, text=self.notes[int(params.uri.removeprefix("note://"))]),)
        )


if __name__ == "__main__":
    Notebook().run(mcp="--heard" not in sys.argv)
