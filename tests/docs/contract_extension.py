"""The extensions whose conversations `docs/contract.md` shows, and the grants of their host."""

from __future__ import annotations

from typing import Any

import anyio

from becket import RemoteError
from becket.contract.config import ConfigChanged, ConfigSet
from becket.contract.handshake import HostInfo
from becket.contract.hooks import Block, HookEvent, HookResult
from becket.contract.memory import Append
from becket.contract.providers import Message, Model, ProviderRequest, ProviderResult
from becket.extension import CommandOutput, ExtensionServer, ProviderStream, command, hook, provider, tool
from becket.host.extension import Extension
from becket.host.starting.connect import ExtensionOptions
from becket.host.timeouts import Timeouts
from becket.stores.in_memory import InMemoryStore

__all__ = ["Bells", "Notes", "build_store", "options_for", "perform"]

GRANTS = ("tools.register", "providers.register", "tools.intercept", "memory.read", "config.subscribe")
THEN = 1767225600000  # when all records were stored, in milliseconds


class Notes(ExtensionServer):
    id = "notes"
    version = "1.0.0"

    @tool("Counts the notes that contain a text.")
    async def count(self, text: str, limit: int = 10) -> int:
        return len(await self.host.memory.query(text, limit=limit))

    @tool("Keeps a note.")
    async def keep(self, text: str) -> str:
        try:
            await self.host.memory.append(text)
        except RemoteError as error:
            return f"It was not kept: {error.message}."
        return "kept"

    @tool("Watches the settings.")
    async def watch(self) -> str:
        @self.host.config.on_change
        def note(change: ConfigChanged) -> None: ...

        watched = await self.host.config.subscribe(["theme"])
        return f"The settings are {watched.snapshot}."

    @command("reindex")
    async def reindex(self, args: list[str], out: CommandOutput) -> dict[str, int]:
        async with out.task("Indexing", kind="rebuild", total=2) as task:
            for name in args:
                await task.log(name)
                await task.advance()
        await out.table(["file", "lines"], [["todo.md", "12"], ["done.md", "99"]])
        return {"files": len(args)}

    @provider("local", display_name="Local", models=[Model("small", context_window=4096, streaming=True)])
    async def answer(self, request: ProviderRequest, out: ProviderStream) -> ProviderResult:
        """A model on this machine."""
        await out.text("Good ")
        await out.text("morning.")
        return ProviderResult.of_text("Good morning.")

    @hook("before_tool_call", tool="bash")
    async def guard(self, event: HookEvent) -> HookResult:
        return Block("it would delete everything")


class Bells(ExtensionServer):
    id = "bells"
    version = "1.0.0"

    @tool("Rings until it is cancelled.")
    async def ring(self) -> None:
        self.host.log("ding")
        await anyio.sleep_forever()

    @command("chime")
    async def chime(self, args: list[str], out: CommandOutput) -> None:
        async with out.task("Winding up"):
            tune = await self.host.config.get("tune")
        await out.text(tune or "dong")


# -- the host


def build_store() -> InMemoryStore:
    """Returns a store with two records of the notes."""
    store = InMemoryStore(clock=lambda: THEN)
    for content in ("buy milk", "Milk is in the fridge"):
        store.append(Append("notes", content, ("home",)))
    return store


def options_for(extension: ExtensionServer, store: InMemoryStore) -> ExtensionOptions:
    """Returns the grants and settings that the host gives an extension."""
    options: ExtensionOptions = {
        "host": HostInfo("demo", "1.0.0"),
        "grants": GRANTS,
        "store": store,
        "timeouts": Timeouts(shutdown=5),
    }
    if isinstance(extension, Notes):
        options["config"] = {"theme": "dark"}
        options["root"] = "/opt/notes"
    return options


async def perform(host: Extension, store: InMemoryStore, message: dict[str, Any]) -> None:
    """Makes the host send a message."""
    match message:
        case {"method": "tool.call", "params": {"name": name, "input": given}}:
            await host.call_tool(name, given)
        case {"method": "command.invoke", "params": {"command": name, "args": args}}:
            async with host.invoke_command(name, args) as run:
                await run.result()
        case {"method": "provider.stream", "params": {"messages": messages, "system_prompt": prompt}}:
            requested = [Message(one["role"], one["content"]) for one in messages]
            async with host.stream(
                "local", "small", messages=requested, system_prompt=prompt, max_tokens=100
            ) as answer:
                await answer.result()
        case {"method": "hook.handle", "params": {"tool_name": name, "tool_input": given}}:
            await host.handle_hook(HookEvent.before_tool_call(name, given))
        case {"method": "config.changed", "params": {"key": key, "value": value}}:
            store.set_config(host.id, ConfigSet(key, value))
        case {"method": "shutdown"}:
            await host.shutdown()
        case _:
            raise AssertionError(f"nothing is known that sends this: {message}")
