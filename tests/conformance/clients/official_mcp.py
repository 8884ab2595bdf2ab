"""The official client of MCP, which carries out the orders of `becket conform --host`.

It runs on an interpreter that has the official kit, and knows nothing of becket.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import anyio
import mcp_types as types
from mcp import StdioServerParameters
from mcp.client.client import Client

warnings.simplefilter("ignore")  # the kit finds sampling old-fashioned


async def sample(context: Any, params: Any) -> types.CreateMessageResult:
    content = types.TextContent(type="text", text="hello")
    return types.CreateMessageResult(role="assistant", content=content, model="small", stop_reason="endTurn")


async def elicit(context: Any, params: Any) -> types.ElicitResult:
    return types.ElicitResult(action="decline")


async def list_roots(context: Any) -> types.ListRootsResult:
    return types.ListRootsResult(roots=[types.Root(uri="file:///project")])


async def list_tools(client: Client) -> None:
    cursor = None
    while True:
        page = await client.list_tools(cursor=cursor)
        cursor = page.next_cursor
        if not cursor:
            return


async def carry_out(client: Client, order: dict[str, Any]) -> dict[str, Any]:
    timeout = order.get("timeout_ms", 60_000) / 1000
    try:
        result = await client.call_tool(order["name"], order["input"], read_timeout_seconds=timeout)
    except Exception as error:
        return {"error": str(error)}
    text = "".join(getattr(block, "text", "") for block in result.content)
    return {"error" if result.is_error else "result": text}


async def main(command: list[str]) -> None:
    program, *arguments = command
    async with Client(
        StdioServerParameters(command=program, args=arguments),
        mode="legacy",
        sampling_callback=sample,
        elicitation_callback=elicit,
        list_roots_callback=list_roots,
    ) as client:
        if client.server_capabilities.tools:
            await list_tools(client)
        outcome: dict[str, Any] = {}
        while True:
            order = (await client.call_tool("conform_next", {"outcome": outcome})).structured_content
            if order["do"] == "stop":
                return
            outcome = await carry_out(client, order)


anyio.run(main, sys.argv[1:])
