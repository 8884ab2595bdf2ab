"""A host as an MCP server: the tools of all its extensions, in whatever language and dialect these are, for a client
that knows nothing of becket. Permissions, hooks, restarts and the audit are the host's, as for every other use.
"""

from __future__ import annotations

from typing import Any, Final

import anyio

from becket import __version__
from becket.contract.hooks import HookEvent
from becket.contract.providers import ToolUse
from becket.contract.tools import tool_text
from becket.dialects.mcp import MCP
from becket.dialects.mcp.contents import TextContent
from becket.dialects.mcp.lifecycle import (
    INITIALIZE,
    PING,
    Implementation,
    Initialize,
    Initialized,
    ListCapability,
    ServerCapabilities,
    choose_version,
)
from becket.dialects.mcp.speech import read_given
from becket.dialects.mcp.tools import (
    TOOLS_CALL,
    TOOLS_CHANGED,
    TOOLS_LIST,
    CallTool,
    Tool,
    ToolResult,
    ToolsPage,
    annotate,
    output_schema_of,
    replace_text,
    structure,
)
from becket.dialects.mcp.words import Empty, Page
from becket.errors import BecketError, InvalidParams, Meaning, RpcError
from becket.host.events import ExtensionEvent
from becket.host.hooks import HookVerdict
from becket.host.host import Host
from becket.host.providers import ToolUser
from becket.host.tools import RegisteredTool
from becket.methods.registry import Registry
from becket.peer.peer import Peer

__all__ = ["McpFace"]

MOST_OUTPUT: Final = MCP.habits.limits["frame"]  # bytes of a tool's text: the client has the model, and may cut it
PATIENCE: Final = 10.0  # seconds for extensions to start before a client is answered: it asks for tools right then


class McpFace:
    """What one client sees of a host: `Peer.connect_stdio(dialect="mcp", methods=face.methods())`, then `follow`."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._is_ready = False
        self._told: tuple[Tool, ...] = ()

    def methods(self) -> Registry:
        """Returns what the client may call."""
        methods = Registry()
        methods.handle(INITIALIZE)(self._initialize)
        methods.handle(PING)(self._answer_ping)
        methods.handle(TOOLS_LIST)(self._list_tools)
        methods.handle(TOOLS_CALL)(self._call_tool)
        return methods

    async def follow(self, peer: Peer) -> None:
        """Tells the client when there are other tools, until it is gone."""

        def hear(event: ExtensionEvent) -> None:
            tools = self._tools()
            if self._is_ready and tools != self._told and not peer.is_closed:
                self._told = tools
                peer.notify_nowait(TOOLS_CHANGED, None)

        unsubscribe = self._host.events.subscribe(ExtensionEvent, hear)
        try:
            await peer.wait_closed()
        finally:
            unsubscribe()

    def _tools(self) -> tuple[Tool, ...]:
        tools = sorted(self._host.tools, key=lambda tool: tool.name)
        return tuple(
            Tool(
                tool.name,
                tool.input_schema,
                description=tool.description,
                output_schema=output_schema_of(tool.tool),
                annotations=annotate(tool.tool),
            )
            for tool in tools
        )

    # -- what is asked

    async def _initialize(self, params: Initialize) -> Initialized:
        with anyio.move_on_after(PATIENCE):
            for id in self._host:
                try:
                    await self._host.ready(id)
                except BecketError:
                    pass  # what it lacks stands in the host's problems; the others are there
        self._is_ready = True
        return Initialized(
            choose_version(params.protocol_version),
            ServerCapabilities(tools=ListCapability(list_changed=True)),
            Implementation(self._host.name, __version__),
        )

    def _answer_ping(self, params: Empty | None) -> Empty:
        return Empty()

    def _check_ready(self) -> None:
        if not self._is_ready:
            raise RpcError(Meaning.NOT_READY, "the client has not said initialize yet")

    def _list_tools(self, params: Page | None) -> ToolsPage:
        self._check_ready()
        self._told = self._tools()
        return ToolsPage(self._told)

    async def _call_tool(self, params: CallTool) -> ToolResult:
        """Runs a tool between its hooks. What it gave goes on as it is, unless a hook has put a text in its place."""
        self._check_ready()
        found = self._host.tools.find(params.name)
        if found is None:
            raise InvalidParams([("/name", f"there is no tool {params.name[:80]!r} here")])
        given: list[Any] = []

        async def call(tool: RegisteredTool, input: Any) -> str:
            given.append(await self._host[tool.extension].call_tool_json(tool.tool.name, input))
            return tool_text(given[0])

        user = ToolUser(self._host.tools, call, self._ask_hooks, most_output=MOST_OUTPUT)
        block = await user.use(ToolUse("mcp", params.name, params.arguments or {}))
        if given and block["content"] == tool_text(given[0]):
            return structure(read_given(given[0]), found.tool, given[0])
        text = str(block["content"])
        if block.get("is_error"):
            return ToolResult((TextContent(text),), is_error=True)
        return replace_text(text, found.tool)

    async def _ask_hooks(self, event: HookEvent) -> HookVerdict:
        return await self._host.ask_hooks(event, can_confirm=False)
