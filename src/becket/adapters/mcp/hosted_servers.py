"""Runs MCP servers as extensions of a host: sampling, roots and tool list changes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, Final
from weakref import WeakSet

import anyio
from msgspec import Raw, Struct
from msgspec.structs import replace

from becket._loggers import host_logger
from becket.adapters.mcp.client.callbacks import ClientCallbacks, ElicitationCallback, RootLike, SamplingCallback
from becket.adapters.mcp.client_handshake import McpServerInfo, convert_tools, request_tools
from becket.adapters.mcp.messages.client_features import CreateMessageParams, CreateMessageResult
from becket.adapters.mcp.messages.content import ImageContent, SamplingContent, TextContent
from becket.adapters.mcp.messages.tools import TOOLS_CHANGED, ToolsChanged
from becket.contract.handshake import Capabilities
from becket.contract.providers import Message, ProviderResult
from becket.dialects.mapping import WireRequest
from becket.errors import BecketError, InvalidParams, Meaning, RpcError
from becket.host.connection import ExtensionConnection
from becket.host.serving.tool_inputs import compile_inputs
from becket.host.slices import Slices
from becket.host.starting.discovery import Candidate
from becket.host.starting.launch import LaunchSettings
from becket.methods.registry import Registry
from becket.peer.context import Context
from becket.peer.peer import Peer
from becket.permissions.grants import Grants

__all__ = ["HOST_SUPPORT", "SAMPLING_PERMISSION", "HostedMcpServers", "McpSettings"]

LIST_EVERY: Final = 1.0  # seconds between two listings of one server, however often it reports a change
SAMPLING_PERMISSION: Final = "session.drive"
"""The permission of a server that asks the host's models, or a person."""


class McpSettings(Struct, frozen=True, kw_only=True):
    """What a host does for MCP servers. Those that hold `session.drive` may ask its models: `model`, or one that fits
    what they wish for; or whatever `sample` asks. With `elicit` they may ask a person. `roots` are told to all."""

    model: str | None = None
    sample: SamplingCallback | None = None
    elicit: ElicitationCallback | None = None
    roots: tuple[RootLike, ...] | None = None


class HostedMcpServers:
    """What one host does for its MCP servers. `complete` asks one of its `models`; `current` returns the
    connection of an extension that runs; `redeclared` is told that its tools are others now."""

    def __init__(
        self,
        settings: McpSettings | None,
        *,
        models: Callable[[], Sequence[str]],
        complete: Callable[..., Awaitable[ProviderResult]],
        current: Callable[[str], ExtensionConnection | None],
        redeclared: Callable[[ExtensionConnection], None],
        spawn: Callable[[Coroutine[Any, Any, None]], object],
        slices: Slices,
    ) -> None:
        self._settings = settings or McpSettings()
        self._models = models
        self._complete = complete
        self._current = current
        self._redeclared = redeclared
        self._spawn = spawn
        self._slices = slices
        self._stale: WeakSet[Peer] = WeakSet()  # those whose tools have changed since they were listed
        self._refreshing: set[str] = set()

    def prepare_launch(
        self, candidate: Candidate, grants: Grants, settings: LaunchSettings
    ) -> tuple[Candidate, LaunchSettings]:
        """Returns a server and its settings with what it may ask for."""
        may_ask = grants.allows(SAMPLING_PERMISSION)
        given = self._settings
        duties = ClientCallbacks(
            roots=given.roots,
            sample=(given.sample or self._sample) if may_ask else None,
            elicit=given.elicit if may_ask else None,
        )
        methods = settings.methods.including(duties.methods(requires=SAMPLING_PERMISSION)).including(
            self._build_handlers()
        )
        return replace(candidate, extra=duties.capabilities()), replace(settings, methods=methods)

    # -- tools that change

    def _build_handlers(self) -> Registry:
        methods = Registry()

        @methods.on(TOOLS_CHANGED)
        def changed(params: ToolsChanged | None, ctx: Context) -> None:
            self._stale.add(ctx.peer)
            if ctx.caller is not None:
                self._schedule_refresh(ctx.caller)

        return methods

    def on_ready(self, extension: ExtensionConnection) -> None:
        """A copy of a server is ready: what it has told while it was starting is looked after now."""
        if extension.peer in self._stale:
            self._schedule_refresh(extension.id)

    def _schedule_refresh(self, id: str) -> None:
        if id not in self._refreshing and self._current(id) is not None:
            self._refreshing.add(id)
            self._spawn(self._refresh_while_stale(id))

    async def _refresh_while_stale(self, id: str) -> None:
        """Lists the tools of a server until they have not changed meanwhile: it often reports several changes at once.

        What it reports within `LIST_EVERY` seconds of one listing is one more."""
        try:
            while (extension := self._current(id)) is not None and extension.peer in self._stale:
                self._stale.discard(extension.peer)
                await self._refresh(extension)
                await anyio.sleep(LIST_EVERY)
        finally:
            self._refreshing.discard(id)

    async def _refresh(self, extension: ExtensionConnection) -> None:
        try:
            await refresh_tools(extension, self._slices)
        except BecketError as error:
            told = "%s: its tools have changed and cannot be listed: %s"
            host_logger().warning(told, extension.id, error)
        else:
            self._redeclared(extension)

    # -- models

    async def _sample(self, asked: CreateMessageParams) -> CreateMessageResult:
        """Asks a model of the host's own for a server."""
        model = self._choose_model(asked)
        result = await self._complete(
            model,
            messages=[Message(one.role, tuple(map(to_provider_block, one.blocks))) for one in asked.messages],
            system_prompt=asked.system_prompt,
            temperature=asked.temperature,
            max_tokens=asked.max_tokens,
        )
        return CreateMessageResult.from_text(result.text, model, STOP_REASONS.get(result.stop_reason or "", "endTurn"))

    def _choose_model(self, asked: CreateMessageParams) -> str:
        models = self._models() if self._settings.model is None else (self._settings.model,)
        if not models:
            raise RpcError(Meaning.NOT_SUPPORTED, "there is no model here")
        hints = () if asked.model_preferences is None else asked.model_preferences.hints or ()
        wishes = [hint.name.casefold() for hint in hints if hint.name]
        fitting = (model for wish in wishes for model in models if wish in model.casefold())
        return next(fitting, models[0])


HOST_SUPPORT: Final = HostedMcpServers

STOP_REASONS: Final[Mapping[str, str]] = {
    "end_turn": "endTurn",
    "max_tokens": "maxTokens",
    "stop_sequence": "stopSequence",
}


def to_provider_block(piece: SamplingContent) -> dict[str, Any]:
    """Returns a piece of content as providers of models have it."""
    match piece:
        case TextContent(text=text):
            return {"type": "text", "text": text}
        case ImageContent(data=data, mime_type=kind):
            return {"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}
        case _:
            raise InvalidParams([("/messages", "only texts and pictures can be given to a model here")])


async def refresh_tools(extension: ExtensionConnection, slices: Slices) -> None:
    """Asks a running server for its tools, and puts them in the place of those that it had.

    Raises:
        RemoteError, CallTimeout, ConnectionLost, BadCapabilities: it does not tell.
    """
    server: McpServerInfo = extension.extra
    steps = request_tools(extension.id, server.capabilities)
    answer: Any = None  # what a generator is begun with
    while True:
        try:
            async with slices:
                step = steps.send(answer)
        except StopIteration as stop:
            async with slices:
                tools, names = convert_tools(stop.value)
                before = extension.tool_inputs
                inputs = await compile_inputs(extension.id, tools, before.mode, slices, is_tolerant=True, before=before)
            break
        assert isinstance(step, WireRequest)  # nothing is told
        answer = await extension.peer.call(step.method.name, step.params, returns=Raw)
    server.names.clear()
    server.names.update(names)
    extension.replace_tools(Capabilities(tools), inputs)
