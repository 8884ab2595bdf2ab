"""An extension on becket, for `mini_host.py`: its tools, provider and command are those of any becket extension.

What only Roder has, agents and events, it serves by the descriptors of that dialect. Its manifest lies beside it.
"""

from __future__ import annotations

import anyio

from becket import Context, ExtensionServer, RpcError, command, handles, provider, tool
from becket.adapters import roder
from becket.contract.providers import Model, ProviderRequest, ProviderResult
from becket.extension import CommandOutput, ProviderStream

AGENT = roder.SubagentDefinition(
    agent_type="helper", description="Helps.", tools=(), permission_mode=roder.SubagentPermissionMode.DEFAULT
)


class Served(ExtensionServer):
    """Does a little of everything."""

    id, version = "served", "1.0.0"

    @tool("Says it loudly.")
    async def shout(self, text: str) -> str:
        if not text:
            raise RpcError(4, "there is nothing to shout")
        return text.upper()

    @tool("Tells how long a text is.")
    async def measure(self, text: str) -> dict[str, int]:
        return {"letters": len(text)}

    @provider("local", models=[Model("small", "Small", 4096)], display_name="Local", description="Says hello.")
    async def answer(self, request: ProviderRequest, out: ProviderStream) -> ProviderResult:
        prompt = request.messages[-1].content
        if prompt == "whole":
            return ProviderResult(
                ({"type": "text", "text": "all at once"},), "stop", {"input_tokens": 1, "output_tokens": 3}
            )
        if prompt == "fail":
            raise RpcError(5, "no answer today")
        await out.thinking("let me see")
        for word in ("hel", "lo"):
            await out.text(word)
        await out.usage({"prompt_tokens": 2, "completion_tokens": 2})
        return ProviderResult.of_text("hello")

    @command("tidy")
    async def tidy(self, args: list[str], out: CommandOutput) -> dict[str, list[str]]:
        """Tidies a folder."""
        if args == ["forever"]:
            await out.text("tidying")
            await anyio.sleep_forever()
        async with out.task("Tidying", total=len(args)) as task:
            for arg in args:
                await out.text(f"tidied {arg}")
                await task.advance()
        await out.error("one thing was lost")
        return {"tidied": args}

    @handles(roder.SUBAGENTS_DEFINITIONS)
    async def list_agents(self, requested: roder.ListDefinitionsParams) -> roder.ListDefinitionsResult:
        return roder.ListDefinitionsResult((AGENT,))

    @handles(roder.SUBAGENTS_DISPATCH)
    async def dispatch(self, work: roder.DispatchParams, ctx: Context) -> roder.SubagentResult:
        status = roder.SubagentStatus("RUNNING")
        await ctx.notify(roder.SUBAGENTS_EVENT, roder.SubagentEventParams(work.dispatch_id, status))
        return roder.SubagentResult(
            thread_id="t",
            turn_id="u",
            agent_type="helper",
            final_message=f"helped: {work.request.prompt}",
            exit_reason=roder.SubagentExitReason.COMPLETED,
        )

    @handles(roder.EVENTS_HANDLE)
    async def handle_event(self, params: roder.EventsHandleParams, ctx: Context) -> None:
        event = roder.RoderExtensionEvent(
            extension_id=self.id, event_kind="served.heard", schema_version=1, payload={"kind": params.envelope.kind}
        )
        await ctx.peer.notify(roder.EXTENSION_EVENT, event)


if __name__ == "__main__":
    Served().run()
