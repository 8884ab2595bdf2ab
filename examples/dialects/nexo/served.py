"""An extension on becket, for `mini_host.py`: tools and hooks as for any host, and a poller, which only nexo knows."""

from __future__ import annotations

from typing import Any

import anyio

from becket import Context, ExtensionServer, RemoteError, handles, hook, tool
from becket.adapters import nexo
from becket.contract.hooks import Block, Continue, HookEvent, HookResult, Inject

AGENTS_LIST = nexo.admin_method("agents/list", "agents_crud", dict[str, bool], dict[str, Any])
RELOAD = nexo.admin_method("reload", "reload", dict[str, bool], dict[str, Any])


class Served(ExtensionServer):
    """Does a little of everything that a host of nexo can request."""

    id, version = "served", "1.0.0"

    def __init__(self) -> None:
        self._hurried = anyio.Event()

    @tool("Adds two numbers.")
    async def add(self, a: int, b: int) -> int:
        return a + b

    @tool("Waits until it is cancelled.")
    async def slow(self) -> str:
        await self._hurried.wait()
        return "at last"

    @tool("Is in a hurry.")
    async def hurry(self) -> str:
        self._hurried.set()
        return "quick"

    @tool("Tells whose session this is.")
    async def whoami(self, ctx: Context) -> str:
        return str(nexo.get_session_meta(ctx).get("session_id"))

    @tool("Tells which agents the host has.")
    async def agents(self) -> str:
        response = await self.host.call(AGENTS_LIST, {"active_only": True})
        return ", ".join(agent["id"] for agent in response["agents"])

    @tool("Asks for what it may not.")
    async def reload(self) -> str:
        try:
            await self.host.call(RELOAD, {"now": True})
        except RemoteError as error:
            return f"{error.code} {error.message} {error.data}"
        return "reloaded"

    @hook("before_tool_call")
    async def guard(self, event: HookEvent) -> HookResult:
        return Block("no") if "rm -rf" in str(event.tool_input) else Continue()

    @hook("before_message")
    async def inform(self, event: HookEvent) -> HookResult:
        return Inject("It rains.")

    @hook("on_message_complete")
    async def listen(self, event: HookEvent) -> HookResult:
        return Continue()

    @handles(nexo.POLL_TICK)
    async def poll(self, tick: nexo.PollTickParams) -> nexo.PollTickResult:
        city = tick.config.get("city")
        if city is None:
            raise nexo.BadJobConfig("no city to watch")
        if city == "Atlantis":
            raise nexo.PermanentFailure("it has sunk")
        seen = int(nexo.decode_cursor(tick.cursor) or b"0") + 1
        message = nexo.Delivery("telegram", "42", {"text": f"rain in {city}, #{seen}"})
        return nexo.PollTickResult(seen, 1, (message,), nexo.encode_cursor(str(seen).encode()))

    @handles(nexo.POLL_LIST_TOOLS)
    async def poller_tools(self, requested: nexo.PollListToolsParams) -> Any:
        return [nexo.PollerTool("rain_status", "Tells how it goes.")]

    @handles(nexo.POLL_TOOL_CALL)
    async def poller_tool(self, call: nexo.PollToolCallParams) -> Any:
        return {"tool": call.tool_name, "args": call.args}


if __name__ == "__main__":
    Served().run()
