"""Serves the tools of a host's extensions to one MCP client."""

from __future__ import annotations

from typing import Any, Final

import anyio

from becket import __version__
from becket._text import truncate
from becket.adapters.mcp.dialect import MCP
from becket.adapters.mcp.mapping import parse_tool_result
from becket.adapters.mcp.messages.base import EmptyMessage, PaginatedParams
from becket.adapters.mcp.messages.content import TextContent
from becket.adapters.mcp.messages.lifecycle import (
    INITIALIZE,
    PING,
    Implementation,
    ListCapability,
    McpInitializeParams,
    McpInitializeResult,
    ServerCapabilities,
    choose_version,
)
from becket.adapters.mcp.messages.tools import (
    TOOLS_CALL,
    TOOLS_CHANGED,
    TOOLS_LIST,
    CallToolParams,
    ListToolsResult,
    McpTool,
    ToolResult,
    annotate,
    output_schema_of,
    replace_text,
    structure,
)
from becket.contract.hooks import HookEvent
from becket.contract.providers import ToolUse
from becket.contract.tools import format_tool_result
from becket.errors import BecketError, InvalidParams, Meaning, RpcError
from becket.host.events import ExtensionEvent
from becket.host.hooks import HookVerdict
from becket.host.host import Host
from becket.host.providers import ToolRunner
from becket.host.tools import RegisteredTool
from becket.methods.registry import Registry
from becket.peer.peer import Peer

__all__ = ["McpHostServer"]

MAX_OUTPUT: Final = MCP.host_defaults.limits[
    "frame"
]  # bytes of a tool's text; the client may truncate it for its model
START_TIMEOUT: Final = 10.0  # seconds that `initialize` waits for extensions, because clients list tools right after


class McpHostServer:
    """Serves one client: `Peer.connect_stdio(dialect="mcp", methods=server.build_registry())`, then
    `notify_tool_changes`."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._is_ready = False
        self._announced_tools: tuple[McpTool, ...] = ()

    def build_registry(self) -> Registry:
        """Returns the handlers for the client."""
        methods = Registry()
        methods.handle(INITIALIZE)(self._handle_initialize)
        methods.handle(PING)(self._handle_ping)
        methods.handle(TOOLS_LIST)(self._handle_list_tools)
        methods.handle(TOOLS_CALL)(self._handle_call_tool)
        return methods

    async def notify_tool_changes(self, peer: Peer) -> None:
        """Notifies the client of changed tools until it disconnects."""

        def on_event(event: ExtensionEvent) -> None:
            tools = self._list_host_tools()
            if self._is_ready and tools != self._announced_tools and not peer.is_closed:
                self._announced_tools = tools
                peer.notify_nowait(TOOLS_CHANGED, None)

        unsubscribe = self._host.events.subscribe(ExtensionEvent, on_event)
        try:
            await peer.wait_closed()
        finally:
            unsubscribe()

    def _list_host_tools(self) -> tuple[McpTool, ...]:
        tools = sorted(self._host.tools, key=lambda tool: tool.name)
        return tuple(
            McpTool(
                tool.name,
                tool.input_schema,
                description=tool.description,
                output_schema=output_schema_of(tool.tool),
                annotations=annotate(tool.tool),
            )
            for tool in tools
        )

    # -- handlers

    async def _handle_initialize(self, params: McpInitializeParams) -> McpInitializeResult:
        with anyio.move_on_after(START_TIMEOUT):
            for id in self._host:
                try:
                    await self._host.ready(id)
                except BecketError:
                    pass  # reported in the host's problems; the other extensions are served
        self._is_ready = True
        return McpInitializeResult(
            choose_version(params.protocol_version),
            ServerCapabilities(tools=ListCapability(list_changed=True)),
            Implementation(self._host.name, __version__),
        )

    def _handle_ping(self, params: EmptyMessage | None) -> EmptyMessage:
        return EmptyMessage()

    def _check_ready(self) -> None:
        if not self._is_ready:
            raise RpcError(Meaning.NOT_READY, "the client has not sent `initialize` yet")

    def _handle_list_tools(self, params: PaginatedParams | None) -> ListToolsResult:
        self._check_ready()
        self._announced_tools = self._list_host_tools()
        return ListToolsResult(self._announced_tools)

    async def _handle_call_tool(self, params: CallToolParams) -> ToolResult:
        """Calls a tool with its hooks. Returns the result unchanged unless a hook has replaced it."""
        self._check_ready()
        found = self._host.tools.find(params.name)
        if found is None:
            raise InvalidParams([("/name", f"there is no tool {truncate(params.name)!r} here")])
        results: list[Any] = []

        async def call(tool: RegisteredTool, input: Any) -> str:
            results.append(await self._host[tool.extension].call_tool_json(tool.tool.name, input))
            return format_tool_result(results[0])

        user = ToolRunner(self._host.tools, call, self._run_hooks, most_output=MAX_OUTPUT)
        block = await user.run(ToolUse("mcp", params.name, params.arguments or {}))
        if results and block["content"] == format_tool_result(results[0]):
            return structure(parse_tool_result(results[0]), found.tool, results[0])
        text = str(block["content"])
        if block.get("is_error"):
            return ToolResult((TextContent(text),), is_error=True)
        return replace_text(text, found.tool)

    async def _run_hooks(self, event: HookEvent) -> HookVerdict:
        return await self._host.run_hooks(event, can_confirm=False)
