"""becket as a client of an MCP server: one tool, named on the command line with its one argument."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from becket.adapters.mcp import McpClient
from becket.limits import DEFAULT_LIMITS
from benchmarks.hosting.request_loop import Ask, run_client
from benchmarks.workloads import MESSAGE_TEXT

TOOL, ARGUMENT = sys.argv[2:]


@asynccontextmanager
async def connect(command: list[str]) -> AsyncIterator[Ask]:
    limits = DEFAULT_LIMITS.but(stdin_grace=0.1)  # some servers do not end by themselves, and that is not measured
    async with McpClient.connect_process(command, inherit_env=True, limits=limits, on_stderr=lambda _: None) as client:
        yield lambda: client.call_tool(TOOL, {ARGUMENT: MESSAGE_TEXT})


run_client(connect)
