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
from becket.dialects.link_state import WireRequest
from becket.errors import BecketError, InvalidParams, Meaning, RpcError
from becket.host.extension_connection import ExtensionConnection
from becket.host.serving.tool_inputs import compile_inputs
from becket.host.starting.candidate import Candidate
from becket.host.starting.launch import LaunchSettings
from becket.host.time_slices import Slices
from becket.methods.registry import Registry
from becket.peer.context import Context
from becket.peer.peer import Peer
from becket.permissions.grants import Grants

__all__ = ["HOST_SUPPORT", "SAMPLING_PERMISSION", "HostedMcpServers", "McpSettings"]

LIST_EVERY: Final = 1.0  # seconds between two listings of one server, however often it reports a change
SAMPLING_PERMISSION: Final = "session.drive"
"""The permission of a server for sampling and elicitation."""


class McpSettings(Struct, frozen=True, kw_only=True):
    """Features that a host offers to MCP servers.

    Servers with `session.drive` may sample: with `sample`, or the host's `model`, or one that matches their hints. With
    `elicit` they may also prompt the user. `roots` are available to all servers."""

    model: str | None = None
    sample: SamplingCallback | None = None
    elicit: ElicitationCallback | None = None
    roots: tuple[RootLike, ...] | None = None


class HostedMcpServers:
    """Client features of one host for its MCP servers.

    `complete` calls one of its `models`, `current` returns the connection of a running extension, and `redeclared` is
    called when its tools have changed."""

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
        self._stale: WeakSet[Peer] = WeakSet()  # peers whose tools have changed since they were listed
        self._refreshing: set[str] = set()

    def prepare_launch(
        self, candidate: Candidate, grants: Grants, settings: LaunchSettings
    ) -> tuple[Candidate, LaunchSettings]:
        """Returns a server and its settings with the client features that it may use."""
        is_allowed = grants.allows(SAMPLING_PERMISSION)
        mcp_settings = self._settings
        callbacks = ClientCallbacks(
            roots=mcp_settings.roots,
            sample=(mcp_settings.sample or self._sample) if is_allowed else None,
            elicit=mcp_settings.elicit if is_allowed else None,
        )
        methods = settings.methods.including(callbacks.methods(requires=SAMPLING_PERMISSION)).including(
            self._build_handlers()
        )
        return replace(candidate, extra=callbacks.capabilities()), replace(settings, methods=methods)

    # -- changed tools

    def _build_handlers(self) -> Registry:
        methods = Registry()

        @methods.on(TOOLS_CHANGED)
        def changed(params: ToolsChanged | None, ctx: Context) -> None:
            self._stale.add(ctx.peer)
            if ctx.caller is not None:
                self._schedule_refresh(ctx.caller)

        return methods

    def on_ready(self, extension: ExtensionConnection) -> None:
        """Refreshes the tools of a server that has reported a change during its start."""
        if extension.peer in self._stale:
            self._schedule_refresh(extension.id)

    def _schedule_refresh(self, id: str) -> None:
        if id not in self._refreshing and self._current(id) is not None:
            self._refreshing.add(id)
            self._spawn(self._refresh_while_stale(id))

    async def _refresh_while_stale(self, id: str) -> None:
        """Lists the tools of a server until no change is pending; servers often report several changes at once.

        All changes reported within `LIST_EVERY` seconds after a listing cause one more."""
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
            host_logger().warning("%s: its tools have changed and cannot be listed: %s", extension.id, error)
        else:
            self._redeclared(extension)

    # -- models

    async def _sample(self, params: CreateMessageParams) -> CreateMessageResult:
        """Calls a model of the host for a server."""
        model = self._choose_model(params)
        result = await self._complete(
            model,
            messages=[Message(one.role, tuple(map(to_provider_block, one.blocks))) for one in params.messages],
            system_prompt=params.system_prompt,
            temperature=params.temperature,
            max_tokens=params.max_tokens,
        )
        return CreateMessageResult.from_text(result.text, model, STOP_REASONS.get(result.stop_reason or "", "endTurn"))

    def _choose_model(self, params: CreateMessageParams) -> str:
        models = self._models() if self._settings.model is None else (self._settings.model,)
        if not models:
            raise RpcError(Meaning.NOT_SUPPORTED, "there is no model here")
        hints = () if params.model_preferences is None else params.model_preferences.hints or ()
        names = [hint.name.casefold() for hint in hints if hint.name]
        matches = (model for name in names for model in models if name in model.casefold())
        return next(matches, models[0])


HOST_SUPPORT: Final = HostedMcpServers

STOP_REASONS: Final[Mapping[str, str]] = {
    "end_turn": "endTurn",
    "max_tokens": "maxTokens",
    "stop_sequence": "stopSequence",
}


def to_provider_block(block: SamplingContent) -> dict[str, Any]:
    """Returns MCP content as a content block of a provider message."""
    match block:
        case TextContent(text=text):
            return {"type": "text", "text": text}
        case ImageContent(data=data, mime_type=kind):
            return {"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}
        case _:
            raise InvalidParams([("/messages", "only texts and pictures can be given to a model here")])


async def refresh_tools(extension: ExtensionConnection, slices: Slices) -> None:
    """Lists the tools of a running server and replaces the known ones.

    Raises:
        RemoteError, CallTimeout, ConnectionLost, BadCapabilities: the listing failed.
    """
    server: McpServerInfo = extension.extra
    steps = request_tools(extension.id, server.capabilities)
    response: Any = None  # starts the generator
    while True:
        try:
            async with slices:
                step = steps.send(response)
        except StopIteration as stop:
            async with slices:
                tools, names = convert_tools(stop.value)
                before = extension.tool_inputs
                inputs = await compile_inputs(extension.id, tools, before.mode, slices, is_tolerant=True, before=before)
            break
        assert isinstance(step, WireRequest)  # there are no notifications
        response = await extension.peer.call(step.method.name, step.params, returns=Raw)
    server.names.clear()
    server.names.update(names)
    extension.replace_tools(Capabilities(tools), inputs)
