"""The MCP SDK as a child: a low-level server. Calls are tools, events are progress, a call back is sampling."""

from __future__ import annotations

import json
import os
import time
import warnings
from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

warnings.simplefilter("ignore")  # sampling is deprecated, and nothing else lets a server call its client

SCHEMA = {"type": "object"}


def text_result(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)])


async def list_tools(ctx: Any, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    names = ("echo", "count", "drive", "usage")
    return types.ListToolsResult(tools=[types.Tool(name=name, input_schema=SCHEMA) for name in names])


async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    arguments = params.arguments or {}
    match params.name:
        case "echo":
            return text_result(arguments["text"])
        case "count":
            for seq in range(arguments["count"]):
                await ctx.session.report_progress(seq, message=arguments["text"])
        case "drive":
            content = types.TextContent(type="text", text=arguments["text"])
            for _ in range(arguments["count"]):
                message = types.SamplingMessage(role="user", content=content)
                await ctx.session.create_message([message], max_tokens=100)
        case "usage":
            return text_result(json.dumps({"pid": os.getpid(), "cpu": time.process_time()}))
    return text_result("")


async def main() -> None:
    server = Server("benchmark", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


anyio.run(main)
