"""`McpClient`: speaks with an MCP server, a program that is started for it.

A façade over a `Peer` in the dialect `mcp`; settlement, limits, cancellation and the end of the process are the peer's.
How both meet is `connecting`'s. What the server asks in return is answered by its `Duties`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from msgspec.structs import replace

from becket.dialects.mcp import MCP
from becket.dialects.mcp.asking import ROOTS_CHANGED
from becket.dialects.mcp.contents import ResourceContents
from becket.dialects.mcp.greeting import MOST_PAGES
from becket.dialects.mcp.lifecycle import PING, VERSIONS, Initialized, ServerCapabilities
from becket.dialects.mcp.notices import (
    LOGGING_SET_LEVEL,
    LoggingLevel,
    Progress,
    SetLevel,
    with_progress,
)
from becket.dialects.mcp.prompts import (
    COMPLETION_COMPLETE,
    PROMPTS_GET,
    PROMPTS_LIST,
    ArgumentSoFar,
    Complete,
    CompletionContext,
    GetPrompt,
    Prompt,
    PromptReference,
    PromptText,
    Proposals,
    TemplateReference,
)
from becket.dialects.mcp.resources import (
    RESOURCES_LIST,
    RESOURCES_READ,
    RESOURCES_SUBSCRIBE,
    RESOURCES_TEMPLATES_LIST,
    RESOURCES_UNSUBSCRIBE,
    ReadResource,
    Resource,
    ResourceTemplate,
)
from becket.dialects.mcp.tools import TOOLS_CALL, TOOLS_LIST, CallTool, Tool, ToolResult
from becket.dialects.mcp.words import Empty, Page, Words, meta_with_token
from becket.errors import Meaning, NotSupported, RemoteError
from becket.interop.mcp.connecting import TOLD, ClientOptions, ConnectingClient
from becket.interop.mcp.duties import Duties, RootLike, root_of
from becket.interop.settling import settled
from becket.methods.descriptors import Method
from becket.peer.outbound import DEFAULT, Unset
from becket.peer.peer import Peer
from becket.peer.streams import CallStream

if TYPE_CHECKING:
    from becket.peer.roles import ByteStream, Transport

__all__ = ["McpClient", "OnProgress"]

E = TypeVar("E")
P = TypeVar("P", bound=Words | None)
R = TypeVar("R")

OnProgress = Callable[[Progress], Any]


class McpClient:
    """A client of one MCP server: `async with McpClient.connect_process(["npx", "-y", "..."]) as client: ...`.

    `server` is what the server has told of itself in the handshake."""

    def __init__(self, peer: Peer, duties: Duties, server: Initialized) -> None:
        self.peer = peer
        self.server = server
        self._duties = duties
        self._tokens = count(1)
        self._listeners: dict[type[Any], list[Callable[[Any], Any]]] = {kind: [] for kind in TOLD}

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
    ) -> ConnectingClient:
        """Starts a server and shakes hands with it; closing the client ends its process.

        The server sees a short list of environment variables and `env`, or all with `inherit_env`.

        Raises:
            StartFailed: when entered or awaited, if the program cannot be started.
            VersionMismatch: it speaks no version of MCP that is spoken here.
            HandshakeFailed: it refused, or its answer cannot be read.
            CallTimeout, ConnectionLost: it did not answer, or has ended.
        """
        return ConnectingClient(
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
    ) -> ConnectingClient:
        """Shakes hands with a server over a byte stream of anyio, or over a transport of becket's own kind."""
        return ConnectingClient(
            cls,
            lambda methods, limits: Peer.over(transport, name=name, dialect=MCP, methods=methods, limits=limits),
            options,
        )

    # -- what is known of the server

    @property
    def offers(self) -> ServerCapabilities:
        """What the server offers. A list that it does not offer is empty here, and a call to it is refused."""
        return self.server.capabilities

    @property
    def version(self) -> str:
        """The version of MCP that is spoken."""
        return self.server.protocol_version

    # -- calls

    async def call(
        self,
        method: Method[P, R],
        params: P,
        *,
        timeout: float | Unset | None = DEFAULT,
        on_progress: OnProgress | None = None,
    ) -> R:
        """Calls a method of the server. With `on_progress` the server is asked to tell how far it has come, and
        `timeout` is the longest time between two such words.

        Raises:
            RemoteError, CallTimeout, ConnectionLost, NotSent, BadReply: as for any call.
        """
        if on_progress is None:
            return await self.peer.call(method, params, timeout=timeout)
        async with self.stream(method, params, idle_timeout=method.timeout if timeout is DEFAULT else timeout) as run:
            async for event in run:
                if isinstance(event, Progress):
                    await settled(on_progress(event))
            return await run.result()

    def stream(
        self, method: Method[P, R], params: P, *, idle_timeout: float | Unset | None = DEFAULT
    ) -> CallStream[Progress, R]:
        """Returns a call to be opened, with its progress as events: `async with ... as run: async for event in run`."""
        given: Words = Empty() if params is None else params
        asked = replace(given, meta={**(given.meta or {}), **meta_with_token(next(self._tokens))})
        return self.peer.stream(with_progress(method), asked, idle_timeout=idle_timeout)

    async def ping(self, *, timeout: float = 5.0) -> None:
        """Asks whether the server is there."""
        await self.peer.call(PING, None, timeout=timeout)

    # -- tools

    async def list_tools(self) -> tuple[Tool, ...]:
        """Returns all tools of the server, from all pages."""
        return () if self.offers.tools is None else await self._list(TOOLS_LIST, lambda page: page.tools)

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | Unset | None = DEFAULT,
        on_progress: OnProgress | None = None,
    ) -> ToolResult:
        """Runs a tool. One that has failed returns a result, too: look at its `is_error`.

        Raises:
            RemoteError: the server has no such tool, or could not run it at all.
        """
        params = CallTool(name, dict(arguments or {}))
        return await self.call(TOOLS_CALL, params, timeout=timeout, on_progress=on_progress)

    def stream_tool(self, name: str, arguments: Mapping[str, Any] | None = None) -> CallStream[Progress, ToolResult]:
        """Returns a run of a tool to be opened, with its progress as events."""
        return self.stream(TOOLS_CALL, CallTool(name, dict(arguments or {})), idle_timeout=TOOLS_CALL.timeout)

    # -- resources

    async def list_resources(self) -> tuple[Resource, ...]:
        """Returns all resources of the server, from all pages."""
        return () if self.offers.resources is None else await self._list(RESOURCES_LIST, lambda page: page.resources)

    async def list_resource_templates(self) -> tuple[ResourceTemplate, ...]:
        """Returns all templates of resources, from all pages; none where the server does not know the method."""
        if self.offers.resources is None:
            return ()
        try:
            return await self._list(RESOURCES_TEMPLATES_LIST, lambda page: page.resource_templates)
        except RemoteError as error:
            if error.meaning is Meaning.UNKNOWN_METHOD:  # a server may have resources and no templates
                return ()
            raise

    async def read_resource(self, uri: str) -> tuple[ResourceContents, ...]:
        """Returns what a resource holds."""
        self._check(self.offers.resources, RESOURCES_READ)
        return (await self.peer.call(RESOURCES_READ, ReadResource(uri))).contents

    async def subscribe(self, uri: str) -> None:
        """Watches a resource: `on(ResourceUpdated)` hears of its changes."""
        resources = self.offers.resources
        self._check(None if resources is None else resources.subscribe, RESOURCES_SUBSCRIBE)
        await self.peer.call(RESOURCES_SUBSCRIBE, ReadResource(uri))

    async def unsubscribe(self, uri: str) -> None:
        """Watches a resource no longer."""
        resources = self.offers.resources
        self._check(None if resources is None else resources.subscribe, RESOURCES_UNSUBSCRIBE)
        await self.peer.call(RESOURCES_UNSUBSCRIBE, ReadResource(uri))

    # -- prompts

    async def list_prompts(self) -> tuple[Prompt, ...]:
        """Returns all prompts of the server, from all pages."""
        return () if self.offers.prompts is None else await self._list(PROMPTS_LIST, lambda page: page.prompts)

    async def get_prompt(self, name: str, arguments: Mapping[str, str] | None = None) -> PromptText:
        """Returns a prompt with its places filled in."""
        self._check(self.offers.prompts, PROMPTS_GET)
        return await self.peer.call(PROMPTS_GET, GetPrompt(name, None if arguments is None else dict(arguments)))

    async def complete(
        self,
        of: Prompt | PromptReference | ResourceTemplate | TemplateReference,
        argument: str,
        value: str,
        *,
        arguments: Mapping[str, str] | None = None,
    ) -> Proposals:
        """Returns what could be filled in for an argument that begins with `value`; `arguments` are those filled in."""
        if self.version != VERSIONS[0]:  # which had no word for it
            self._check(self.offers.completions, COMPLETION_COMPLETE)
        context = None if arguments is None else CompletionContext(dict(arguments))
        asked = Complete(reference_to(of), ArgumentSoFar(argument, value), context)
        return (await self.peer.call(COMPLETION_COMPLETE, asked)).completion

    # -- what the server tells

    async def set_log_level(self, level: LoggingLevel | str) -> None:
        """Says from which level on the server is to tell what is for the log: `on(LogMessage)` hears of it.

        Raises:
            ValueError: there is no such level.
        """
        self._check(self.offers.logging, LOGGING_SET_LEVEL)
        await self.peer.call(LOGGING_SET_LEVEL, SetLevel(LoggingLevel(level)))

    def on(self, kind: type[E]) -> Callable[[Callable[[E], Any]], Callable[[E], Any]]:
        """Registers the decorated function, plain or `async def`, for what the server tells outside of calls.

        The classes are `LogMessage`, `ResourceUpdated`, `ToolsChanged`, `ResourcesChanged`, `PromptsChanged` and
        `ElicitationCompleted`. Events are handed on one at a time, in order."""
        if kind not in self._listeners:
            raise TypeError(f"a server tells nothing of the class {kind!r}")

        def register(function: Callable[[E], Any]) -> Callable[[E], Any]:
            self._listeners[kind].append(function)
            return function

        return register

    async def hear(self, event: Words) -> None:
        """Hands an event to the functions that are registered for it."""
        for function in tuple(self._listeners[type(event)]):
            await settled(function(event))

    async def set_roots(self, roots: Sequence[RootLike]) -> None:
        """Says that the client is about other folders now.

        Raises:
            NotSupported: it was connected without any, and the server was told so.
        """
        if self._duties.roots is None:
            raise NotSupported("roots", "the client was connected without: give `roots=[]` then")
        self._duties.roots = tuple(map(root_of, roots))
        await self.peer.notify(ROOTS_CHANGED, None)

    # -- the end

    async def aclose(self) -> None:
        """Ends the link, and the process behind it. From any task, twice, and in the middle of anything."""
        await self.peer.aclose()

    async def __aenter__(self) -> McpClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        state = "closed" if self.peer.is_closed else "open"
        return f"<McpClient of {self.server.server_info.name} ({self.version}): {state}>"

    # -- within

    def _check(self, offered: object, method: Method[Any, Any]) -> None:
        if offered is None or offered is False:
            raise NotSupported(f"`{method.name}`", f"{self.server.server_info.name} does not offer it")

    async def _list(self, method: Method[Any, Any], take: Callable[[Any], tuple[E, ...]]) -> tuple[E, ...]:
        found: list[E] = []
        cursor: str | None = None
        for _ in range(MOST_PAGES):
            page = await self.peer.call(method, None if cursor is None else Page(cursor))
            found += take(page)
            if not page.next_cursor or page.next_cursor == cursor:
                return tuple(found)
            cursor = page.next_cursor
        raise NotSupported(f"`{method.name}`", f"it has more than {MOST_PAGES} pages")


def reference_to(
    of: Prompt | PromptReference | ResourceTemplate | TemplateReference,
) -> PromptReference | TemplateReference:
    match of:
        case Prompt():
            return PromptReference(of.name)
        case ResourceTemplate():
            return TemplateReference(of.uri_template)
        case _:
            return of
