"""The MCP SDK as a client of an MCP server: one tool, named on the command line with its one argument."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from benchmarks.hosting.request_loop import Ask, run_client
from benchmarks.workloads import MESSAGE_TEXT

warnings.simplefilter("ignore")

TOOL, ARGUMENT = sys.argv[2:]
NOWHERE = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 (as long as the program runs)


@asynccontextmanager
async def connect(command: list[str]) -> AsyncIterator[Ask]:
    program, *arguments = command
    parameters = StdioServerParameters(command=program, args=arguments, env=dict(os.environ))
    async with (
        stdio_client(parameters, errlog=NOWHERE) as (reading, writing),
        ClientSession(reading, writing) as session,
    ):
        await session.initialize()
        yield lambda: session.call_tool(TOOL, {ARGUMENT: MESSAGE_TEXT})


run_client(connect)
