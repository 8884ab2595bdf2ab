"""A client of MCP for `becket conform --host`: does what the server of the suite orders (docs/conformance.md)."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
from typing import Any

from becket import BecketError
from becket.adapters.mcp import CreateMessageParams, CreateMessageResult, ElicitParams, McpClient, TextContent


async def carry_out(client: McpClient, order: dict[str, Any]) -> dict[str, Any]:
    """Returns the outcome of one order."""
    match order["do"]:
        case "tool":
            timeout = order.get("timeout_ms", 60_000) / 1000
            result = await client.call_tool(order["name"], order["input"], timeout=timeout)
            return {"error" if result.is_error else "result": result.text}
        case unknown:
            return {"error": f"unknown order: {unknown}"}


def sample(params: CreateMessageParams) -> CreateMessageResult:
    """Calls no model: returns the same text for every message."""
    return CreateMessageResult("assistant", TextContent("Hello"), "conform")


def elicit(params: ElicitParams) -> None:
    """Declines: there is no user."""


async def main(command: list[str]) -> None:
    async with McpClient.connect_process(command, roots=["."], sample=sample, elicit=elicit) as client:
        await client.list_tools()
        outcome: dict[str, Any] = {}
        while True:
            result = await client.call_tool("conform_next", {"outcome": outcome})
            order: dict[str, Any] = result.structured_content or {}
            if order["do"] == "stop":
                return
            try:
                outcome = await carry_out(client, order)
            except BecketError as error:
                outcome = {"error": str(error)}


if __name__ == "__main__":
    try:
        asyncio.run(main(sys.argv[1:] or shlex.split(os.environ["BECKET_CONFORM_CHILD"])))
    except BecketError as error:
        sys.exit(f"the server failed: {error}")
