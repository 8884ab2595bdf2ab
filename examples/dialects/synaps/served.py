"""An extension on becket, for `mini_host.py`: nothing in it is about SynapsCLI."""

from __future__ import annotations

from becket import ExtensionServer, RemoteError, command, hook, provider, tool
from becket.contract.hooks import Block, Continue, HookEvent, HookResult
from becket.contract.info import SidecarArgs
from becket.contract.providers import Model, ProviderRequest, ProviderResult
from becket.extension import CommandOutput, ProviderStream


class Served(ExtensionServer):
    """Does a little of everything."""

    id, version = "served", "1.0.0"

    @tool("Keeps a note, and tells how many there are.")
    async def note(self, text: str) -> str:
        await self.host.memory.append(text, tags=["note"])
        return f"{len(await self.host.memory.query(text))} of {text}"

    @provider("local", models=[Model("small", streaming=True)], display_name="Local", description="Says hello.")
    async def answer(self, request: ProviderRequest, out: ProviderStream) -> ProviderResult:
        await out.text("hel")
        await out.text("lo")
        return ProviderResult.of_text("hello")

    @command("tidy")
    async def tidy(self, args: list[str], out: CommandOutput) -> str:
        async with out.task("Tidying", kind="rebuild", total=2) as task:
            await task.advance(2)
        try:
            await self.host.config.set("mood", "merry")
        except RemoteError as error:
            await out.error(error.message)
        await out.table(["what"], [[arg] for arg in args])
        return str(await self.host.config.get("mood"))

    @hook("before_tool_call")
    async def guard(self, event: HookEvent) -> HookResult:
        return Block("no") if "rm -rf" in str(event.tool_input) else Continue()

    async def sidecar_args(self) -> SidecarArgs:
        """Returns how a sidecar would be started."""
        return SidecarArgs(("--fast",))


if __name__ == "__main__":
    Served().run()
