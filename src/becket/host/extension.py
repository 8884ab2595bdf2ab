"""`Extension`: the host's handle on one extension; calls its tools, models, commands and hooks.

A façade: what runs on which permission is `permitted`'s, events are those of `runs`, memory and configuration are
`services`. It never starts anything; that is `connecting`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, cast

from msgspec import Raw, Struct
from msgspec.structs import replace

from becket._deprecated import RenamedMember
from becket._loggers import host_logger
from becket.contract.argument_checks import check_strs
from becket.contract.commands import COMMAND_INVOKE, CommandEvent, CommandInvoke
from becket.contract.handshake import Capabilities, DeclaredCapability
from becket.contract.hooks import (
    HOOK_HANDLE,
    HOOKS,
    Continue,
    HookEvent,
    HookKind,
    HookOutcome,
    HookResult,
    HookSubscription,
    decode_any_result,
    judge_reading,
)
from becket.contract.info import INFO_GET, SIDECAR_SPAWN_ARGS, ExtensionInfo, SidecarArgs
from becket.contract.names import strip_whitespace
from becket.contract.providers import (
    PROVIDER_COMPLETE,
    PROVIDER_STREAM,
    Message,
    Provider,
    ProviderEvent,
    ProviderRequest,
    ProviderResult,
    check_complete_result,
)
from becket.contract.settings import (
    SETTINGS_EDITOR_COMMIT,
    SETTINGS_EDITOR_KEY,
    SETTINGS_EDITOR_OPEN,
    EditorCommit,
    EditorKey,
    EditorOpen,
    EditorRender,
    EditorTaken,
    parse_render,
    read_taken,
)
from becket.contract.tools import TOOL_CALL, Tool, ToolCall, format_tool_result
from becket.dialects.handshake import HandshakeResult
from becket.errors import BecketError, CallTimeout, ConnectionLost, NotDeclared, NotSupported, PermissionDenied
from becket.host.asking import build_call_record, resolve_model
from becket.host.serving.audited_gate import AuditSink, record_event
from becket.host.serving.client import ContractClient
from becket.host.serving.revocation import RevocableCalls
from becket.host.serving.stream_state import ExtensionNotifications
from becket.host.serving.streams import ExtensionStream, ExtensionStreams
from becket.host.serving.tool_inputs import ToolInputSchemas
from becket.host.timeouts import Timeouts
from becket.limits import Limits
from becket.methods.descriptors import Method
from becket.peer.outbound import UNSET, Unset
from becket.permissions.gate import Gate

if TYPE_CHECKING:
    from becket.peer.options import StreamOptions
    from becket.peer.peer import Peer

__all__ = ["Extension", "ExtensionParts"]

K = TypeVar("K")
P = TypeVar("P")
TOOLS_PERMISSION = "tools.register"
PROVIDERS_PERMISSION = "providers.register"
TRANSFORM_PERMISSION = "tools.transform_output"


class ExtensionParts(Struct, frozen=True, kw_only=True):
    """What an extension's handle is made of."""

    client: ContractClient
    gate: Gate
    revocable_calls: RevocableCalls
    streams: ExtensionStreams
    notifications: ExtensionNotifications
    handshake: HandshakeResult
    tool_inputs: ToolInputSchemas
    timeouts: Timeouts
    limits: Limits
    audit: AuditSink | None
    root: str | None = None
    environment: Mapping[str, str] = {}
    cleanups: tuple[Callable[[], object], ...] = ()
    on_end: Callable[[], object] | None = None


class Extension:
    """A running extension: its tools, providers, commands and hooks, to be called.

    `peer` is the link itself, for methods of your own; `gate` holds what the extension may do, and can grant and revoke
    it; `about` is what the extension told of itself at its start, `own_id` the id in its code where that is another
    than `id`, and `hooks` the kinds of hooks that it has announced. `version` and `plugin` are what it said of itself
    in a system without manifests. What its dialect has no word for raises `NotSupported`, and nothing is sent."""

    def __init__(self, parts: ExtensionParts) -> None:
        self.id = parts.gate.extension
        self.peer: Peer = parts.client.peer
        self.gate = parts.gate
        self.about: ExtensionInfo | None = parts.handshake.info
        self.hooks: tuple[HookKind, ...] = parts.handshake.hooks
        self.own_id = parts.handshake.own_id
        self.version: str | None = parts.handshake.version
        self.plugin: Mapping[str, Any] = parts.handshake.plugin
        self._parts = parts
        self._client = parts.client
        self._permitted = parts.revocable_calls
        self._timeouts = parts.timeouts
        self._tools = {strip_whitespace(tool.name): tool for tool in parts.handshake.capabilities.tools}
        self._numbers = count(1)

    # -- what it has declared

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools that it offers."""
        return self._parts.handshake.capabilities.tools

    @property
    def disabled_tools(self) -> Mapping[str, str]:
        """The tools that it declares and nobody can call, since their schemas cannot be applied: each with why."""
        return self._parts.tool_inputs.disabled

    @property
    def providers(self) -> tuple[Provider, ...]:
        """The providers of models that it offers."""
        return self._parts.handshake.capabilities.providers

    @property
    def capabilities(self) -> tuple[DeclaredCapability, ...]:
        """What else it can do, in words of its own."""
        return self._parts.handshake.capabilities.capabilities

    @property
    def subscriptions(self) -> tuple[HookSubscription, ...]:
        """The hooks that it has announced, with the events of each that it wants."""
        announced = self._parts.handshake.capabilities.hooks
        return announced or tuple(HookSubscription(kind) for kind in self.hooks)

    @property
    def features(self) -> frozenset[str]:
        """What is used on the link beyond the contract of old."""
        return self.peer.features

    @property
    def extra(self) -> Any:
        """What its dialect's own handshake and manifest have told, in a class of that dialect's."""
        return self._client.link_state.extra

    @property
    def root(self) -> str | None:
        """The folder that it was started from, None where it has none."""
        return self._parts.root

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables that its process was given."""
        return self._parts.environment

    @property
    def inputs(self) -> ToolInputSchemas:
        """The schemas that inputs of its tools are checked against."""
        return self._parts.tool_inputs

    def replace_tools(self, declared: Capabilities, inputs: ToolInputSchemas) -> None:
        """Puts other tools in the place of those that it has offered so far: it has said that they have changed."""
        self._parts = replace(
            self._parts, handshake=replace(self._parts.handshake, capabilities=declared), tool_inputs=inputs
        )
        self._tools = {strip_whitespace(tool.name): tool for tool in declared.tools}
        self._client.link_state.capabilities = declared

    # -- tools

    async def call_tool(
        self,
        name: str,
        input: Mapping[str, Any] | None = None,
        *,
        timeout: float | Unset | None = UNSET,
        meta: Mapping[str, Any] | None = None,
    ) -> str:
        """Runs a tool and returns what a model reads of its result.

        `meta` is what you tell the tool about the call beside its input, where its dialect has a place for that.

        Raises:
            NotDeclared: the extension has no such tool.
            NotSupported: its dialect has no word for tools.
            BadValue: the input does not fit the tool's schema. Nothing was sent.
            PermissionDenied: it does not hold `tools.register`, or lost it before the tool had ended.
            RemoteError, CallTimeout, ConnectionLost, Busy, BadReply: as for any call.
        """
        return format_tool_result(await self.call_tool_json(name, input, timeout=timeout, meta=meta))

    async def call_tool_json(
        self,
        name: str,
        input: Mapping[str, Any] | None = None,
        *,
        timeout: float | Unset | None = UNSET,
        meta: Mapping[str, Any] | None = None,
    ) -> Any:
        """Runs a tool and returns its result as it came; otherwise like `call_tool`."""
        self._client.check_supported(TOOL_CALL)
        tool = self._tools.get(strip_whitespace(name))
        if tool is None:
            raise NotDeclared(self.id, "tool", name, [*self._tools])
        given = copy_input(input)
        await self._parts.tool_inputs.check(strip_whitespace(name), given)
        seconds = self._timeouts.tool if isinstance(timeout, Unset) else timeout
        params = self._client.attach_meta(ToolCall(tool.name, given), meta)
        return await self._permitted.call(
            TOOL_CALL.name, TOOLS_PERMISSION, lambda: self._client.call(TOOL_CALL, params, timeout=seconds)
        )

    # -- providers

    async def complete(
        self,
        provider: str,
        model: str,
        *,
        messages: Sequence[Message],
        system_prompt: str | None = None,
        tools: Sequence[dict[str, Any]] = (),
        temperature: float | None = None,
        max_tokens: int | None = None,
        thinking_budget: int = 0,
        timeout: float | Unset | None = UNSET,
    ) -> ProviderResult:
        """Asks a model and returns its whole answer.

        Raises:
            NotDeclared: the extension has no such provider, or that no such model.
            PermissionDenied: it does not hold `providers.register`, or lost it before the answer came.
            RemoteError, CallTimeout, ConnectionLost, Busy, BadReply: as for any call; the last too without content.
        """
        request = ProviderRequest(
            *self._resolve_model(provider, model),
            tuple(messages),
            system_prompt,
            tuple(tools),
            temperature,
            max_tokens,
            thinking_budget,
        )
        seconds = self._timeouts.complete if isinstance(timeout, Unset) else timeout
        try:
            result = await self._permitted.call(
                PROVIDER_COMPLETE.name,
                PROVIDERS_PERMISSION,
                lambda: self._client.call(PROVIDER_COMPLETE, request, timeout=seconds),
            )
            check_complete_result(self.id, result)
        except BecketError as error:
            self._record(request, None, error, streamed=False)
            raise
        self._record(request, result, None, streamed=False)
        return result

    def stream(
        self,
        provider: str,
        model: str,
        *,
        messages: Sequence[Message],
        system_prompt: str | None = None,
        tools: Sequence[dict[str, Any]] = (),
        temperature: float | None = None,
        max_tokens: int | None = None,
        thinking_budget: int = 0,
        **options: Unpack[StreamOptions],
    ) -> ExtensionStream[ProviderEvent, ProviderResult]:
        """Returns an answer of a model to be opened, whose pieces come as events: `async with ... as answer`.

        Where the extension has not announced features, the events of two answers cannot be told apart: the second waits
        until the first has ended.

        Raises:
            NotDeclared: the extension has no such provider, or that no such model.
            PermissionDenied, NotSent: when entered.
        """
        request = ProviderRequest(
            *self._resolve_model(provider, model),
            tuple(messages),
            system_prompt,
            tuple(tools),
            temperature,
            max_tokens,
            thinking_budget,
        )
        self._add_timeouts(options)
        return ExtensionStream(
            self._parts.streams,
            self._client.stream(PROVIDER_STREAM, request, **options),
            is_marked=bool(self.features),
            permission=PROVIDERS_PERMISSION,
            ended=lambda result, error: self._record(request, result, error, streamed=True),
        )

    def _resolve_model(self, provider: str, model: str) -> tuple[str, str, str]:
        self._client.check_supported(PROVIDER_COMPLETE)
        return resolve_model(self.id, self.providers, provider, model)

    def _record(
        self, request: ProviderRequest, result: ProviderResult | None, error: BecketError | None, *, streamed: bool
    ) -> None:
        record_event(self._parts.audit, build_call_record(self.id, request, result, error, streamed=streamed))

    # -- commands

    def invoke_command(
        self, name: str, args: Iterable[str] = (), **options: Unpack[StreamOptions]
    ) -> ExtensionStream[CommandEvent, Any]:
        """Returns a run of a command to be opened, whose output and tasks come as events: `async with ... as run`.

        `done` says that no more output will come; the run ends with the answer.

        Raises:
            TypeError: `args` are one text: they are a list of words.
        """
        params = CommandInvoke(name, check_strs(args, "the words of a command"), f"run-{next(self._numbers)}")
        self._add_timeouts(options)
        spoken = self._client.stream(COMMAND_INVOKE, params, **options)
        return ExtensionStream(self._parts.streams, spoken, is_marked=bool(self.features))

    def _add_timeouts(self, options: StreamOptions) -> None:
        options.setdefault("timeout", self._timeouts.total)
        options.setdefault("idle_timeout", self._timeouts.idle)

    # -- hooks

    async def handle_hook(self, event: HookEvent) -> HookResult:
        """Asks the extension about something that the host is about to do or has done.

        A hook fails open: no answer in time, an error, or an answer that cannot be understood or is not allowed lets
        things go on, and the log says why. Only a malformed `modify` blocks. `consult_hook` also returns what was
        wrong.

        Raises:
            PermissionDenied: the extension does not hold what this kind of hook needs. Nothing was sent.
            NotSupported: its dialect has no word for hooks, or for those of this kind. Nothing was sent.
        """
        return (await self.consult_hook(event)).result

    async def consult_hook(self, event: HookEvent) -> HookOutcome:
        """Asks like `handle_hook`, and returns beside the result what was wrong. Raises what that raises."""
        self._client.check_supported(HOOK_HANDLE)
        permission = HOOKS[event.kind].permission
        try:
            answer: Any = await self._permitted.call(
                HOOK_HANDLE.name,
                permission,
                lambda: self._client.call(HOOK_HANDLE, event, returns=Raw, timeout=self._timeouts.hook),
            )
        except (NotSupported, PermissionDenied):
            raise
        except BecketError as error:
            self._warn("hook %s: %s", event.kind, error)
            return HookOutcome(
                Continue(),
                f"{type(error).__name__}: {error}",
                timed_out=isinstance(error, CallTimeout),
                is_lost=isinstance(error, ConnectionLost),
            )
        reading = decode_any_result(answer) if isinstance(answer, Raw) else HookOutcome(answer)
        may_transform = self.gate.allows(TRANSFORM_PERMISSION)
        reading = judge_reading(reading, event.kind, may_transform=may_transform, limits=self._parts.limits)
        if reading.problem is not None:
            self._warn("hook %s: %s", event.kind, reading.problem)
        return reading

    def _warn(self, text: str, *parts: object) -> None:
        host_logger().warning(f"%s: {text}", self.id, *parts)

    # -- the rest

    async def info(self) -> ExtensionInfo:
        """Asks the extension about its build, its capabilities and its models.

        Where its dialect has no word for that, it is what the extension told at its start."""
        if self.about is not None and not self._client.supports(INFO_GET):
            return self.about
        return await self._client.call(INFO_GET, None, timeout=self._timeouts.info)

    async def sidecar_args(self) -> SidecarArgs:
        """Asks how the extension's sidecar is to be started."""
        return await self._client.call(SIDECAR_SPAWN_ARGS, None, timeout=self._timeouts.info)

    async def open_editor(self, category: str, field: str) -> EditorRender | None:
        """Opens the extension's own editor of a field and returns what it shows.

        What it shows later, which value it has and that it is to be closed, the extension tells by itself: see `on`."""
        return await self._call_editor(SETTINGS_EDITOR_OPEN, EditorOpen(category, field))

    async def press_editor_key(self, category: str, field: str, key: str) -> EditorRender | None:
        """Passes on a key that was pressed in an open editor; returns what that shows now, None if nothing new."""
        return await self._call_editor(SETTINGS_EDITOR_KEY, EditorKey(category, field, key))

    async def commit_editor(self, category: str, field: str, value: Any) -> EditorTaken:
        """Gives the extension the value that was taken in an open editor; returns the value to store, and the rest."""
        params = EditorCommit(category, field, value)
        response = await self._client.call(SETTINGS_EDITOR_COMMIT, params, timeout=self._timeouts.editor)
        return read_taken(response, value)

    async def _call_editor(self, method: Method[P, Any], params: P) -> EditorRender | None:
        return parse_render(await self._client.call(method, params, timeout=self._timeouts.editor))

    def on(self, *kinds: type[K]) -> Callable[[Callable[[K], Any]], Callable[[K], Any]]:
        """Registers the decorated plain function for notifications of the extension, also for those that belong to a
        running command. All functions that are registered for a class receive each of them.

        The classes are those of tasks (`TaskUpdated`), of widgets (`WidgetUpsert`) and of the editor of a setting
        (`EditorRender`, `EditorCommitted`, `EditorClosed`)."""
        return self._parts.notifications.on(*kinds)

    # -- the end

    @property
    def is_closed(self) -> bool:
        """Whether the link has ended."""
        return self.peer.is_closed

    async def shutdown(self, reason: str = "") -> None:
        """Asks the extension to end, gives it a moment, and ends its process. From any task, and twice.

        The reason is told where the dialect has a place for it."""
        self._client.link_state.shutdown_reason = reason
        try:
            await self._client.request_shutdown(self._timeouts.shutdown)
        finally:
            await self.aclose()

    async def aclose(self, because: str = "") -> None:
        """Ends the link and the process behind it, without asking. Calls that are pending fail with the reason."""
        for end in self._parts.cleanups:
            end()
        try:
            await self.peer.aclose(because)
        finally:
            if self._parts.on_end is not None:
                self._parts.on_end()

    async def __aenter__(self) -> Extension:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.shutdown()

    def __repr__(self) -> str:
        state = "closed" if self.is_closed else "open"
        return f"<Extension {self.id}: {len(self.tools)} tools, {len(self.providers)} providers, {state}>"

    particulars = RenamedMember("extra")


def copy_input(input: object) -> Any:
    """Returns the input of a tool as it is sent. From a hook of another system it may be any JSON value."""
    if input is None:
        return {}
    return dict(cast("Mapping[str, Any]", input)) if isinstance(input, Mapping) else input
