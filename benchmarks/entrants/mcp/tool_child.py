"""The MCP SDK as a child, with its decorator: tools with typed arguments, as extensions of becket have them."""

from __future__ import annotations

import os
import time

from mcp.server.mcpserver import MCPServer

server = MCPServer("benchmark")


@server.tool()
async def echo(text: str) -> str:
    """Returns the text that it is given."""
    return text


@server.tool()
async def usage() -> dict[str, float]:
    """Returns the process and its processor time."""
    return {"pid": os.getpid(), "cpu": time.process_time()}


server.run("stdio")
