"""Servers for the tests: small ones in memory, and the reference servers where Node and they are installed."""

from __future__ import annotations

import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Unpack

import pytest

from becket.adapters.mcp import (
    INITIALIZE,
    LATEST_VERSION,
    Implementation,
    McpClient,
    McpInitializeResult,
    ServerCapabilities,
)
from becket.adapters.mcp.client.connector import ClientOptions
from becket.adapters.mcp.dialect import MCP
from becket.limits import DEFAULT_LIMITS, Limits
from becket.methods.registry import Registry
from becket.peer.peer import Peer
from becket.testing.pairs import memory_transports

ROOT = Path(__file__).resolve().parents[3]
SERVERS = ROOT / ".node_cache" / "node_modules" / "@modelcontextprotocol"
NODE = shutil.which("node")
KIT = ROOT / ".venv-mcp" / "bin" / "python"

HASTY: Limits = DEFAULT_LIMITS.but(stdin_grace=0.05)
"""The reference servers do not end with their stdin: there is no use in waiting for it."""

needs_node = pytest.mark.skipif(
    NODE is None or not (SERVERS / "server-everything").exists(),
    reason="the reference servers are not here: run `make node`, with Node installed",
)
needs_kit = pytest.mark.skipif(
    not (ROOT / ".venv-mcp" / ".ready").exists(), reason="the official kit is not here: run `make mcp-kit`"
)


def reference_server(name: str, *arguments: str) -> list[str]:
    """Returns the command of one of the reference servers."""
    return [str(NODE), str(SERVERS / f"server-{name}" / "dist" / "index.js"), *arguments]


def initialized_by(version: str = LATEST_VERSION, **offers: Any) -> Registry:
    """Returns the methods of a server that completes the handshake and offers this."""
    methods = Registry()

    @methods.handle(INITIALIZE.name)
    def initialize(params: dict[str, Any]) -> McpInitializeResult:
        return McpInitializeResult(version, ServerCapabilities(**offers), Implementation("small", "1"))

    return methods


@asynccontextmanager
async def served(methods: Registry, **options: Unpack[ClientOptions]) -> AsyncGenerator[tuple[McpClient, Peer], None]:
    """Yields a client and the peer of its server, in memory."""
    ours, theirs = memory_transports()
    async with (
        Peer.over(theirs, dialect=MCP, methods=methods, name="client") as server,
        McpClient.over(ours, **options) as client,
    ):
        yield client, server
