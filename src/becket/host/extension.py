"""`Extension`: the host's handle on one extension; calls its tools, models, commands and hooks.

A handle gets a connection for each call from its `source`: the supervisor of a host, which starts another process when
one ends, or a single connection. Notifications and streams are in `serving`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar, Unpack, cast

from msgspec import Raw
from msgspec.structs import replace

from becket._deprecated import RenamedMember
from becket._loggers import host_logger
from becket.contract.argument_checks import check_strs
from becket.contract.commands import COMMAND_INVOKE, CommandEvent, CommandInvoke
from becket.contract.handshake import Capabilities, DeclaredCapability
from becket.contract.hooks import (
    HOOK_HANDLE,
    HOOKS,
    TRANSFORM_PERMISSION,
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
from becket.contract.tools import TOOL_CALL, TOOLS_PERMISSION, Tool, ToolCall, format_tool_result
from becket.dialects.handshake import HandshakeResult
from becket.errors import BecketError, CallTimeout, ConnectionLost, NotRunning, NotSupported, PermissionDenied
from becket.host.extension_connection import ExtensionConnection
from becket.host.lifecycle import ExtensionState, Health
from becket.host.providers import build_call_record, resolve_model
from becket.host.serving.audited_gate import record_event
from becket.host.serving.streams import ExtensionStream, build_notification_handler, check_notification_types
from becket.methods.descriptors import Method
from becket.peer.outbound import UNSET, Unset
from becket.permissions.gate import Gate

if TYPE_CHECKING:
    from becket.host.supervisor import Supervisor
    from becket.peer.options import StreamOptions
    from becket.peer.peer import Peer

__all__ = ["ConnectionSource", "Extension", "OpenCommand"]

K = TypeVar("K")
P = TypeVar("P")
T = TypeVar("T")
PROVIDERS_PERMISSION = "providers.register"
NO_HANDSHAKE = HandshakeResult(capabilities=Capabilities())

OpenCommand: TypeAlias = Callable[
    ["Extension", str, Iterable[str], Mapping[str, Any]], ExtensionStream[CommandEvent, Any] | None
]
"""Returns a run of a command that the host runs itself; None if the extension runs it."""


class ConnectionSource(Protocol):
    """Where a handle gets its connection from: a `Supervisor`, or a `SingleConnection`."""

    @property
    def id(self) -> str: ...
    @property
    def supervisor(self) -> Supervisor: ...
    @property
    def state(self) -> ExtensionState: ...
    @property
    def restarts(self) -> int: ...
    @property
    def restarts_on_errors(self) -> bool: ...
    @property
    def resends_hooks(self) -> bool: ...
    def health(self) -> Health: ...
    def current(self) -> ExtensionConnection | None: ...
    def add_initializer(self, initialize: Callable[[ExtensionConnection], object], /) -> None: ...
    def acquire(self) -> AbstractAsyncContextManager[ExtensionConnection]: ...
    def call(
        self, action: Callable[[ExtensionConnection], Awaitable[T]], *, repeat: bool = False
    ) -> Coroutine[Any, Any, T]: ...
    async def replace_failed(self, connection: ExtensionConnection | None, error: BecketError, /) -> bool: ...
    async def start(self) -> ExtensionConnection: ...
    async def stop(self, reason: str = "") -> None: ...
    async def reload(self) -> None: ...
    async def aclose(self, because: str = "") -> None: ...


class Extension:
    """An extension: its tools, providers, commands and hooks, to be called.

    In a host it represents whichever process runs: a call waits for one that is starting, and with `repeat=True` it is
    made again with the next process if the current one dies. `connect_extension` returns one for a single process.

    `gate` holds the extension's permissions, and can grant and revoke them. Methods of the dialect beyond the contract
    are called by `call`, or on `peer`, the link itself. Operations that the dialect does not define raise
    `NotSupported`, and nothing is sent. Every call raises `RemoteError`, `CallTimeout`, `ConnectionLost`, `Busy` and
    `BadReply` as `Peer.call` does; in a host also `CircuitOpen` after too many failures, and `NotRunning`, or the error
    of the failed start."""

    def __init__(self, source: ConnectionSource, gate: Gate, open_command: OpenCommand | None = None) -> None:
        self.id = source.id
        self.gate = gate
        self._source = source
        self._open_command = open_command
        self._numbers = count(1)

    # -- state

    @property
    def supervisor(self) -> Supervisor:
        """Starts, watches and restarts it in a host; see `Supervisor`.

        Raises:
            NotSupported: it was connected without a host.
        """
        return self._source.supervisor

    @property
    def state(self) -> ExtensionState:
        """Its lifecycle state."""
        return self._source.state

    @property
    def health(self) -> Health:
        """Its health, in one word."""
        return self._source.health()

    @property
    def restarts(self) -> int:
        """How often it was restarted."""
        return self._source.restarts

    @property
    def is_closed(self) -> bool:
        """Whether no link to it is open."""
        current = self._source.current()
        return current is None or current.peer.is_closed

    @property
    def peer(self) -> Peer:
        """The link to the current process.

        Raises:
            NotRunning: there is none.
        """
        current = self._source.current()
        if current is None:
            raise NotRunning(self.id, self.state, "start it first")
        return current.peer

    # -- declarations: empty while it does not run

    @property
    def _handshake(self) -> HandshakeResult:
        current = self._source.current()
        return NO_HANDSHAKE if current is None else current.handshake

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools that it offers."""
        return self._handshake.capabilities.tools

    @property
    def disabled_tools(self) -> Mapping[str, str]:
        """The declared tools that cannot be called, since their schemas cannot be applied: each with the reason."""
        current = self._source.current()
        return {} if current is None else current.tool_inputs.disabled

    @property
    def providers(self) -> tuple[Provider, ...]:
        """The model providers that it offers."""
        return self._handshake.capabilities.providers

    @property
    def capabilities(self) -> tuple[DeclaredCapability, ...]:
        """Its other capabilities, in its own format."""
        return self._handshake.capabilities.capabilities

    @property
    def hooks(self) -> tuple[HookKind, ...]:
        """The kinds of hooks that it has announced."""
        return self._handshake.hooks

    @property
    def subscriptions(self) -> tuple[HookSubscription, ...]:
        """The hooks that it has announced, with their matches."""
        current = self._source.current()
        return () if current is None else current.subscriptions

    @property
    def features(self) -> frozenset[str]:
        """The features used on the link beyond the first version of the contract."""
        current = self._source.current()
        return frozenset() if current is None else current.features

    @property
    def about(self) -> ExtensionInfo | None:
        """What it has reported about its build at its start."""
        return self._handshake.info

    @property
    def own_id(self) -> str:
        """The id in its code, if that differs from `id`."""
        return self._handshake.own_id

    @property
    def version(self) -> str | None:
        """Its version, if it reports one at its start: in a system without manifests."""
        return self._handshake.version

    @property
    def plugin(self) -> Mapping[str, Any]:
        """What it has reported about itself, in a system without manifests."""
        return self._handshake.plugin

    @property
    def extra(self) -> Any:
        """The fields of the dialect's own handshake and manifest beyond the contract, in a class of that dialect."""
        current = self._source.current()
        return None if current is None else current.extra

    @property
    def root(self) -> str | None:
        """The folder that it was started from, None if there is none."""
        current = self._source.current()
        return None if current is None else current.root

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment of its process."""
        current = self._source.current()
        return {} if current is None else current.environment

    # -- lifecycle

    async def start(self) -> None:
        """Starts it, unless it runs. Raises why it cannot be started."""
        await self._source.start()

    async def stop(self, reason: str = "") -> None:
        """Requests it to end, waits a moment, and ends its process. From any task, and twice.

        In a host it stays known, and can be started again. The reason is sent if the dialect has a field for it."""
        await self._source.stop(reason)

    shutdown = stop

    async def aclose(self, because: str = "") -> None:
        """Ends its process, without a request if it is not supervised. Pending calls fail with the reason."""
        await self._source.aclose(because)

    async def reload(self) -> None:
        """Replaces the running process by a new one. Calls that are made meanwhile wait for it.

        Raises:
            NotSupported: it does not belong to a host.
        """
        await self._source.reload()

    async def __aenter__(self) -> Extension:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    # -- tools

    async def call(
        self,
        method: str | Method[Any, Any],
        params: object = None,
        *,
        returns: Any = Any,
        timeout: float | Unset | None = UNSET,
        repeat: bool = False,
    ) -> Any:
        """Calls a method of the extension's own, by its name or by a descriptor."""

        def call(connection: ExtensionConnection) -> Awaitable[Any]:
            if isinstance(method, str):
                return connection.peer.call(method, params, returns=returns, timeout=timeout)
            return connection.peer.call(method, params, timeout=timeout)

        return await self._source.call(call, repeat=repeat)

    async def call_tool(
        self,
        name: str,
        input: Mapping[str, Any] | None = None,
        *,
        timeout: float | Unset | None = UNSET,
        meta: Mapping[str, Any] | None = None,
        repeat: bool = False,
    ) -> str:
        """Runs a tool and returns the text of its result for a model.

        `meta` is passed to the tool beside its input, if its dialect has a field for it.

        Raises:
            NotDeclared: the extension has no such tool.
            NotSupported: its dialect does not define tools.
            BadValue: the input does not fit the tool's schema. Nothing was sent.
            PermissionDenied: it does not hold `tools.register`, or lost it before the tool had ended.
        """
        return format_tool_result(await self.call_tool_json(name, input, timeout=timeout, meta=meta, repeat=repeat))

    def call_tool_json(
        self,
        name: str,
        input: Mapping[str, Any] | None = None,
        *,
        timeout: float | Unset | None = UNSET,
        meta: Mapping[str, Any] | None = None,
        repeat: bool = False,
    ) -> Coroutine[Any, Any, Any]:
        """Runs a tool and returns its result unchanged; otherwise like `call_tool`."""

        async def call(connection: ExtensionConnection) -> Any:
            client = connection.client
            client.check_supported(TOOL_CALL)
            own_name = strip_whitespace(name)
            tool = connection.find_tool(own_name)
            tool_input = copy_input(input)
            await connection.tool_inputs.check(own_name, tool_input)
            params = client.attach_meta(ToolCall(tool.name, tool_input), meta)
            seconds = connection.timeouts.tool if isinstance(timeout, Unset) else timeout
            return await connection.revocable_calls.call(client, TOOL_CALL, params, TOOLS_PERMISSION, seconds)

        return self._source.call(call, repeat=repeat)

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
        repeat: bool = False,
    ) -> ProviderResult:
        """Calls a model and returns its whole completion.

        Raises:
            NotDeclared: the extension has no such provider, or the provider has no such model.
            PermissionDenied: it does not hold `providers.register`, or lost it before the result arrived.
            BadReply: as for any call, and if the result has no content.
        """
        details = (tuple(messages), system_prompt, tuple(tools), temperature, max_tokens, thinking_budget)

        async def call(connection: ExtensionConnection) -> ProviderResult:
            request = build_provider_request(connection, provider, model, *details)
            seconds = connection.timeouts.complete if isinstance(timeout, Unset) else timeout
            try:
                result = await connection.revocable_calls.call(
                    connection.client, PROVIDER_COMPLETE, request, PROVIDERS_PERMISSION, seconds
                )
                check_complete_result(self.id, result)
            except BecketError as error:
                record_completion(connection, request, None, error)
                raise
            record_completion(connection, request, result, None)
            return result

        return await self._source.call(call, repeat=repeat)

    @asynccontextmanager
    async def stream(
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
    ) -> AsyncGenerator[ExtensionStream[ProviderEvent, ProviderResult], None]:
        """Opens a completion of a model, whose parts are events: `async with ... as answer`.

        If the extension has not announced features, the events of two completions cannot be distinguished: the second
        waits until the first has ended.

        Raises:
            NotDeclared: the extension has no such provider, or the provider has no such model.
            PermissionDenied, NotSent: it cannot be opened.
        """
        details = (tuple(messages), system_prompt, tuple(tools), temperature, max_tokens, thinking_budget)
        async with self._source.acquire() as connection:
            request = build_provider_request(connection, provider, model, *details)
            add_timeouts(connection, options)
            run = ExtensionStream(
                connection.streams,
                connection.client.stream(PROVIDER_STREAM, request, **options),
                is_marked=bool(connection.features),
                permission=PROVIDERS_PERMISSION,
                ended=partial(record_completion, connection, request, streamed=True),
            )
            async with run:
                yield run

    # -- commands

    @asynccontextmanager
    async def invoke_command(
        self, name: str, args: Iterable[str] = (), **options: Unpack[StreamOptions]
    ) -> AsyncGenerator[ExtensionStream[CommandEvent, Any], None]:
        """Opens a run of a command, whose output and tasks are events: `async with ... as run`.

        `done` means that no more output follows; the run ends with the response. With `restarts_on_errors` a failed
        command is run once more by the next process, and the run continues with its events. A command that its manifest
        leaves to the host is run by the host: a program, or a tool with its hooks.

        Raises:
            TypeError: `args` is a str: it must be a list of arguments.
            NotSupported: the manifest declares it as a skill.
            StartFailed, CommandFailed: its program cannot be started, or has failed.
        """
        arguments = args if isinstance(args, str) else [*args]  # needed again for a second run
        own = None if self._open_command is None else self._open_command(self, name, arguments, options)
        if own is not None:
            async with own as run:
                yield run
            return

        async def resend(failed: ExtensionConnection, error: BecketError) -> ExtensionStream[CommandEvent, Any] | None:
            if not await self._source.replace_failed(failed, error):
                return None
            connection = await connections.enter_async_context(self._source.acquire())
            return self._build_command_run(connection, name, arguments, options)

        async with AsyncExitStack() as connections:
            connection = await connections.enter_async_context(self._source.acquire())
            run = self._build_command_run(connection, name, arguments, options)
            if self._source.restarts_on_errors:
                run.resend_with(partial(resend, connection))
            yield await connections.enter_async_context(run)

    def _build_command_run(
        self, connection: ExtensionConnection, name: str, args: Iterable[str], options: StreamOptions
    ) -> ExtensionStream[CommandEvent, Any]:
        params = CommandInvoke(name, check_strs(args, "the arguments of a command"), f"run-{next(self._numbers)}")
        add_timeouts(connection, options)
        mapped = connection.client.stream(COMMAND_INVOKE, params, **options)
        return ExtensionStream(connection.streams, mapped, is_marked=bool(connection.features))

    # -- hooks

    async def handle_hook(self, event: HookEvent) -> HookResult:
        """Consults the extension about something that the host is about to do or has done.

        A hook fails open: without a response in time, with an error, or with an invalid or forbidden result the host
        goes on, and the log has the reason. Only a malformed `modify` blocks. `consult_hook` also returns the problem.

        Raises:
            PermissionDenied: the extension lacks the permission for this kind of hook. Nothing was sent.
            NotSupported: its dialect does not define hooks, or not this kind. Nothing was sent.
        """
        return (await self.consult_hook(event)).result

    async def consult_hook(self, event: HookEvent) -> HookOutcome:
        """Consults like `handle_hook`, and returns the problem beside the result. Raises what that raises.

        If the process crashes before it responds, the next one is consulted once more, if the policy allows it."""
        send = partial(send_hook, event)
        first = await self._source.call(send)
        if not first.is_lost or not self._source.resends_hooks:
            return first
        try:
            second = await self._source.call(send)
        except (NotSupported, PermissionDenied):
            raise
        except BecketError as error:  # there is no next process
            second = HookOutcome(Continue(), f"{type(error).__name__}: {error}")
        problem = second.problem and f"{first.problem}; sent once more after a restart: {second.problem}"
        return replace(second, problem=problem, crash=first.problem)

    # -- info, sidecar, editor, notifications

    async def info(self) -> ExtensionInfo:
        """Requests what the extension reports about its build, its capabilities and its models.

        If its dialect does not define that, returns what the extension reported at its start."""

        async def call(connection: ExtensionConnection) -> ExtensionInfo:
            about = connection.handshake.info
            if about is not None and not connection.client.supports(INFO_GET):
                return about
            return await connection.client.call(INFO_GET, None, timeout=connection.timeouts.info)

        return await self._source.call(call, repeat=True)

    async def sidecar_args(self) -> SidecarArgs:
        """Requests the arguments of the extension's sidecar."""

        def call(connection: ExtensionConnection) -> Awaitable[SidecarArgs]:
            return connection.client.call(SIDECAR_SPAWN_ARGS, None, timeout=connection.timeouts.info)

        return await self._source.call(call, repeat=True)

    async def open_editor(self, category: str, field: str) -> EditorRender | None:
        """Opens the extension's own editor of a field and returns its content.

        Later content, its value and its closing arrive as notifications: see `on`."""
        return parse_render(await self._call_editor(SETTINGS_EDITOR_OPEN, EditorOpen(category, field)))

    async def press_editor_key(self, category: str, field: str, key: str) -> EditorRender | None:
        """Sends a key that was pressed in an open editor; returns the new content, None if it is unchanged."""
        return parse_render(await self._call_editor(SETTINGS_EDITOR_KEY, EditorKey(category, field, key)))

    async def commit_editor(self, category: str, field: str, value: Any) -> EditorTaken:
        """Sends the extension the value that was entered in an open editor; returns the value to store, and the
        rest."""
        return read_taken(await self._call_editor(SETTINGS_EDITOR_COMMIT, EditorCommit(category, field, value)), value)

    async def _call_editor(self, method: Method[P, Any], params: P) -> Any:
        def call(connection: ExtensionConnection) -> Awaitable[Any]:
            return connection.client.call(method, params, timeout=connection.timeouts.editor)

        return await self._source.call(call)

    def on(self, *kinds: type[K]) -> Callable[[Callable[[K], Any]], Callable[[K], Any]]:
        """Registers the decorated plain function for notifications of the extension, also for those that belong to a
        running command. All functions registered for a class receive each of them, over all restarts.

        The classes are those of tasks (`TaskUpdated`), of widgets (`WidgetUpsert`) and of the editor of a setting
        (`EditorRender`, `EditorCommitted`, `EditorClosed`).

        Raises:
            TypeError: there are no notifications of such a class, or the function is `async def`.
        """
        check_notification_types(kinds)

        def register(function: Callable[[K], Any]) -> Callable[[K], Any]:
            handler = build_notification_handler(function)
            self._source.add_initializer(lambda connection: connection.notifications.add(kinds, handler))
            return function

        return register

    def __repr__(self) -> str:
        return f"<Extension {self.id}: {self.state}, {len(self.tools)} tools, {len(self.providers)} providers>"

    particulars = RenamedMember("extra")


def build_provider_request(
    connection: ExtensionConnection, provider: str, model: str, *details: Any
) -> ProviderRequest:
    """Returns the request to a model of an extension. Raises NotSupported or NotDeclared if there is none."""
    connection.client.check_supported(PROVIDER_COMPLETE)
    declared = connection.handshake.capabilities.providers
    return ProviderRequest(*resolve_model(connection.id, declared, provider, model), *details)


def record_completion(
    connection: ExtensionConnection,
    request: ProviderRequest,
    result: ProviderResult | None,
    error: BecketError | None,
    *,
    streamed: bool = False,
) -> None:
    record_event(connection.audit, build_call_record(connection.id, request, result, error, streamed=streamed))


def add_timeouts(connection: ExtensionConnection, options: StreamOptions) -> None:
    options.setdefault("timeout", connection.timeouts.total)
    options.setdefault("idle_timeout", connection.timeouts.idle)


async def send_hook(event: HookEvent, connection: ExtensionConnection) -> HookOutcome:
    """Consults one process about an event. The outcome holds what went wrong."""
    client = connection.client
    client.check_supported(HOOK_HANDLE)
    try:
        result: Any = await connection.revocable_calls.call(
            client, HOOK_HANDLE, event, HOOKS[event.kind].permission, connection.timeouts.hook, returns=Raw
        )
    except (NotSupported, PermissionDenied):
        raise
    except BecketError as error:
        host_logger().warning("%s: hook %s: %s", connection.id, event.kind, error)
        return HookOutcome(
            Continue(),
            f"{type(error).__name__}: {error}",
            timed_out=isinstance(error, CallTimeout),
            is_lost=isinstance(error, ConnectionLost),
        )
    outcome = decode_any_result(result) if isinstance(result, Raw) else HookOutcome(result)
    may_transform = connection.gate.allows(TRANSFORM_PERMISSION)
    outcome = judge_reading(outcome, event.kind, may_transform=may_transform, limits=connection.limits)
    if outcome.problem is not None:
        host_logger().warning("%s: hook %s: %s", connection.id, event.kind, outcome.problem)
    return outcome


def copy_input(input: object) -> Any:
    """Returns the input of a tool as it is sent. From a hook of another system it may be any JSON value."""
    if input is None:
        return {}
    if type(input) is dict:  # nearly always, and cheap to check
        return cast("dict[str, Any]", input).copy()
    return dict(cast("Mapping[str, Any]", input)) if isinstance(input, Mapping) else input
