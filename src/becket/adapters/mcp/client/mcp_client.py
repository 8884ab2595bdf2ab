"""Provides McpClient: typed tools, resources, prompts and logging of one MCP server.

A façade over a `Peer` in the dialect `mcp`, which owns pending calls, limits, cancellation and the process. `connector`
opens the connection; `ClientCallbacks` handles requests of the server.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from msgspec.structs import replace

from becket._deprecated import RenamedMember
from becket.adapters._awaitable import maybe_await
from becket.adapters.mcp.client.callbacks import ClientCallbacks, RootLike, parse_root
from becket.adapters.mcp.client.connector import SERVER_NOTIFICATIONS, ClientOptions, McpConnector
from becket.adapters.mcp.client_handshake import MAX_PAGES
from becket.adapters.mcp.dialect import MCP
from becket.adapters.mcp.messages.base import EmptyMessage, McpMessage, PaginatedParams, build_progress_meta
from becket.adapters.mcp.messages.client_features import ROOTS_CHANGED
from becket.adapters.mcp.messages.content import ResourceContents
from becket.adapters.mcp.messages.lifecycle import PING, PROTOCOL_VERSIONS, McpInitializeResult, ServerCapabilities
from becket.adapters.mcp.messages.notifications import (
    LOGGING_SET_LEVEL,
    LoggingLevel,
    Progress,
    SetLevelParams,
    with_progress,
)
from becket.adapters.mcp.messages.prompts import (
    COMPLETION_COMPLETE,
    PROMPTS_GET,
    PROMPTS_LIST,
    CompleteParams,
    Completion,
    CompletionArgument,
    CompletionContext,
    GetPromptParams,
    GetPromptResult,
    Prompt,
    PromptReference,
    ResourceTemplateReference,
)
from becket.adapters.mcp.messages.resources import (
    RESOURCES_LIST,
    RESOURCES_READ,
    RESOURCES_SUBSCRIBE,
    RESOURCES_TEMPLATES_LIST,
    RESOURCES_UNSUBSCRIBE,
    Resource,
    ResourceParams,
    ResourceTemplate,
)
from becket.adapters.mcp.messages.tools import TOOLS_CALL, TOOLS_LIST, CallToolParams, McpTool, ToolResult
from becket.errors import Meaning, NotSupported, RemoteError
from becket.methods.descriptors import Method
from becket.peer.outbound import UNSET, Unset
from becket.peer.peer import Peer
from becket.peer.streams import CallStream

if TYPE_CHECKING:
    from becket.peer.protocols import ByteStream, Transport

__all__ = ["McpClient", "OnProgress"]

E = TypeVar("E")
P = TypeVar("P", bound=McpMessage | None)
R = TypeVar("R")

OnProgress = Callable[[Progress], Any]


class McpClient:
    """A client of one MCP server: `async with McpClient.connect_process(["npx", "-y", "..."]) as client: ...`.

    `server` is the result of the handshake."""

    def __init__(self, peer: Peer, callbacks: ClientCallbacks, server: McpInitializeResult) -> None:
        self.peer = peer
        self.server = server
        self._callbacks = callbacks
        self._tokens = count(1)
        self._event_handlers: dict[type[Any], list[Callable[[Any], Any]]] = {kind: [] for kind in SERVER_NOTIFICATIONS}

    # -- opening

    @classmethod
    def connect_process(
        cls,
        command: Sequence[str | os.PathLike[str]],
        *,
        env: Mapping[str, str] | None = None,
        inherit_env: bool = False,
        cwd: str | os.PathLike[str] | None = None,
        on_stderr: Callable[[str], None] | None = None,
        name: str | None = None,
        **options: Unpack[ClientOptions],
    ) -> McpConnector[McpClient]:
        """Starts and initializes a server; closing the client ends its process.

        The server gets a short list of environment variables and `env`, or all variables with `inherit_env`.

        Raises, when entered or awaited:
            StartFailed: the program cannot be started.
            VersionMismatch: the server supports none of our versions of MCP.
            HandshakeFailed: the server returned an error or an invalid result.
            CallTimeout, ConnectionLost: the server did not respond, or has exited.
        """
        return McpConnector(
            cls,
            lambda methods, limits: Peer.connect_process(
                command,
                env=env,
                inherit_env=inherit_env,
                cwd=cwd,
                on_stderr=on_stderr,
                name=name,
                dialect=MCP,
                methods=methods,
                limits=limits,
            ),
            options,
        )

    @classmethod
    def over(
        cls, transport: Transport | ByteStream, *, name: str = "server", **options: Unpack[ClientOptions]
    ) -> McpConnector[McpClient]:
        """Initializes a server at the other end of an anyio byte stream or a becket transport."""
        return McpConnector(
            cls,
            lambda methods, limits: Peer.over(transport, name=name, dialect=MCP, methods=methods, limits=limits),
            options,
        )

    # -- the server

    @property
    def server_capabilities(self) -> ServerCapabilities:
        """The server's capabilities. Lists of missing capabilities are empty; other calls raise `NotSupported`."""
        return self.server.capabilities

    @property
    def version(self) -> str:
        """The negotiated version of MCP."""
        return self.server.protocol_version

    # -- calls

    async def call(
        self,
        method: Method[P, R],
        params: P,
        *,
        timeout: float | Unset | None = UNSET,
        on_progress: OnProgress | None = None,
    ) -> R:
        """Calls a method of the server. `on_progress` requests progress notifications; `timeout` is then the longest
        time between two of them.

        Raises:
            RemoteError, CallTimeout, ConnectionLost, NotSent, BadReply: as for any call.
        """
        if on_progress is None:
            return await self.peer.call(method, params, timeout=timeout)
        async with self.stream(method, params, idle_timeout=method.timeout if timeout is UNSET else timeout) as run:
            async for event in run:
                if isinstance(event, Progress):
                    await maybe_await(on_progress(event))
            return await run.result()

    def stream(
        self, method: Method[P, R], params: P, *, idle_timeout: float | Unset | None = UNSET
    ) -> CallStream[Progress, R]:
        """Returns an unopened call with progress as events: `async with ... as run: async for event in run`."""
        message: McpMessage = EmptyMessage() if params is None else params
        with_token = replace(message, meta={**(message.meta or {}), **build_progress_meta(next(self._tokens))})
        return self.peer.stream(with_progress(method), with_token, idle_timeout=idle_timeout)

    async def ping(self, *, timeout: float = 5.0) -> None:
        """Pings the server."""
        await self.peer.call(PING, None, timeout=timeout)

    # -- tools

    async def list_tools(self) -> tuple[McpTool, ...]:
        """Returns all tools of the server, from all pages."""
        return (
            ()
            if self.server_capabilities.tools is None
            else await self._list_all_pages(TOOLS_LIST, lambda page: page.tools)
        )

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | Unset | None = UNSET,
        on_progress: OnProgress | None = None,
    ) -> ToolResult:
        """Calls a tool. A failed tool also returns a result: check its `is_error`.

        Raises:
            RemoteError: the server has no such tool, or could not run it.
        """
        params = CallToolParams(name, dict(arguments or {}))
        return await self.call(TOOLS_CALL, params, timeout=timeout, on_progress=on_progress)

    def stream_tool(self, name: str, arguments: Mapping[str, Any] | None = None) -> CallStream[Progress, ToolResult]:
        """Returns an unopened call of a tool with progress as events."""
        return self.stream(TOOLS_CALL, CallToolParams(name, dict(arguments or {})), idle_timeout=TOOLS_CALL.timeout)

    # -- resources

    async def list_resources(self) -> tuple[Resource, ...]:
        """Returns all resources of the server, from all pages."""
        return (
            ()
            if self.server_capabilities.resources is None
            else await self._list_all_pages(RESOURCES_LIST, lambda page: page.resources)
        )

    async def list_resource_templates(self) -> tuple[ResourceTemplate, ...]:
        """Returns all resource templates, from all pages; none if the server does not know the method."""
        if self.server_capabilities.resources is None:
            return ()
        try:
            return await self._list_all_pages(RESOURCES_TEMPLATES_LIST, lambda page: page.resource_templates)
        except RemoteError as error:
            if error.meaning is Meaning.UNKNOWN_METHOD:  # a server may have resources but no templates
                return ()
            raise

    async def read_resource(self, uri: str) -> tuple[ResourceContents, ...]:
        """Returns the contents of a resource."""
        self._require_capability(self.server_capabilities.resources, RESOURCES_READ)
        return (await self.peer.call(RESOURCES_READ, ResourceParams(uri))).contents

    async def subscribe(self, uri: str) -> None:
        """Subscribes to changes of a resource, which arrive as `ResourceUpdated` events."""
        resources = self.server_capabilities.resources
        self._require_capability(None if resources is None else resources.subscribe, RESOURCES_SUBSCRIBE)
        await self.peer.call(RESOURCES_SUBSCRIBE, ResourceParams(uri))

    async def unsubscribe(self, uri: str) -> None:
        """Ends the subscription to a resource."""
        resources = self.server_capabilities.resources
        self._require_capability(None if resources is None else resources.subscribe, RESOURCES_UNSUBSCRIBE)
        await self.peer.call(RESOURCES_UNSUBSCRIBE, ResourceParams(uri))

    # -- prompts

    async def list_prompts(self) -> tuple[Prompt, ...]:
        """Returns all prompts of the server, from all pages."""
        return (
            ()
            if self.server_capabilities.prompts is None
            else await self._list_all_pages(PROMPTS_LIST, lambda page: page.prompts)
        )

    async def get_prompt(self, name: str, arguments: Mapping[str, str] | None = None) -> GetPromptResult:
        """Returns a prompt with its arguments filled in."""
        self._require_capability(self.server_capabilities.prompts, PROMPTS_GET)
        return await self.peer.call(PROMPTS_GET, GetPromptParams(name, None if arguments is None else dict(arguments)))

    async def complete(
        self,
        of: Prompt | PromptReference | ResourceTemplate | ResourceTemplateReference,
        argument: str,
        value: str,
        *,
        arguments: Mapping[str, str] | None = None,
    ) -> Completion:
        """Returns completions of an argument that begins with `value`; `arguments` are the other arguments."""
        if self.version != PROTOCOL_VERSIONS[0]:  # the first version has no such capability
            self._require_capability(self.server_capabilities.completions, COMPLETION_COMPLETE)
        context = None if arguments is None else CompletionContext(dict(arguments))
        params = CompleteParams(build_reference(of), CompletionArgument(argument, value), context)
        return (await self.peer.call(COMPLETION_COMPLETE, params)).completion

    # -- events

    async def set_log_level(self, level: LoggingLevel | str) -> None:
        """Sets the minimum level of log messages, which arrive as `LogMessage` events.

        Raises:
            ValueError: there is no such level.
        """
        self._require_capability(self.server_capabilities.logging, LOGGING_SET_LEVEL)
        await self.peer.call(LOGGING_SET_LEVEL, SetLevelParams(LoggingLevel(level)))

    def on(self, kind: type[E]) -> Callable[[Callable[[E], Any]], Callable[[E], Any]]:
        """Registers the decorated function, plain or `async def`, as a handler of notifications outside of calls.

        The classes are `LogMessage`, `ResourceUpdated`, `ToolsChanged`, `ResourcesChanged`, `PromptsChanged` and
        `ElicitationCompleted`. Events are handled one at a time, in order."""
        if kind not in self._event_handlers:
            raise TypeError(f"not an event class of a server: {kind!r}")

        def register(function: Callable[[E], Any]) -> Callable[[E], Any]:
            self._event_handlers[kind].append(function)
            return function

        return register

    async def dispatch_event(self, event: McpMessage) -> None:
        """Calls the handlers of an event."""
        for function in tuple(self._event_handlers[type(event)]):
            await maybe_await(function(event))

    async def set_roots(self, roots: Sequence[RootLike]) -> None:
        """Changes the roots and notifies the server.

        Raises:
            NotSupported: the client was connected without `roots`, so it has not announced the capability.
        """
        if self._callbacks.roots is None:
            raise NotSupported("roots", "the client was connected without roots: connect it with `roots=[]`")
        self._callbacks.roots = tuple(map(parse_root, roots))
        await self.peer.notify(ROOTS_CHANGED, None)

    # -- closing

    async def aclose(self) -> None:
        """Closes the connection and ends the process. May be called from any task, repeatedly and at any time."""
        await self.peer.aclose()

    async def __aenter__(self) -> McpClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        state = "closed" if self.peer.is_closed else "open"
        return f"<McpClient of {self.server.server_info.name} ({self.version}): {state}>"

    # -- internals

    def _require_capability(self, offered: object, method: Method[Any, Any]) -> None:
        if offered is None or offered is False:
            raise NotSupported(f"`{method.name}`", f"{self.server.server_info.name} does not offer it")

    async def _list_all_pages(self, method: Method[Any, Any], take: Callable[[Any], tuple[E, ...]]) -> tuple[E, ...]:
        found: list[E] = []
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            page = await self.peer.call(method, None if cursor is None else PaginatedParams(cursor))
            found += take(page)
            if not page.next_cursor or page.next_cursor == cursor:
                return tuple(found)
            cursor = page.next_cursor
        raise NotSupported(f"`{method.name}`", f"it has more than {MAX_PAGES} pages")

    offers = RenamedMember("server_capabilities")


def build_reference(
    of: Prompt | PromptReference | ResourceTemplate | ResourceTemplateReference,
) -> PromptReference | ResourceTemplateReference:
    match of:
        case Prompt():
            return PromptReference(of.name)
        case ResourceTemplate():
            return ResourceTemplateReference(of.uri_template)
        case _:
            return of
