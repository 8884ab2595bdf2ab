"""`connect_extension`: spawns an extension, runs the handshake and returns its handle.

One start is a list of steps; if any of them fails, nothing of the extension is left.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence, Set as AbstractSet
from functools import partial
from pathlib import Path
from typing import Any, Final, TypedDict, Unpack

from msgspec.structs import replace

from becket import __version__
from becket._loggers import host_logger
from becket.contract.audit import ProcessStarted
from becket.contract.handshake import FEATURES, HostInfo, Initialize, build_initialize
from becket.contract.memory import find_namespace_problem
from becket.contract.names import find_id_problem, strip_whitespace
from becket.dialects import Dialect, find_dialect
from becket.dialects.handshake import HandshakeContext, HandshakeResult
from becket.dialects.host_defaults import STANDARD_HOST_DEFAULTS, EnvironmentContext
from becket.dialects.link_state import LinkState
from becket.errors import BadCapabilities, HandshakeFailed, RemoteError
from becket.host.extension import Extension
from becket.host.extension_connection import ExtensionConnection, SingleConnection
from becket.host.logs import ExtensionLog
from becket.host.redaction import redact_command
from becket.host.serving.audited_gate import AuditedGate, AuditSink, record_event
from becket.host.serving.client import ContractClient
from becket.host.serving.revocation import RevocableCalls
from becket.host.serving.services import ExtensionServices
from becket.host.serving.streams import ExtensionNotifications, ExtensionStreams
from becket.host.serving.tool_inputs import compile_inputs
from becket.host.starting.environment import build_default_environment, build_variable_policy, prefer_own_python
from becket.host.starting.handshake import last_stderr_line, probe_info, run_dialect_handshake, run_native_handshake
from becket.host.starting.secrets import Secrets
from becket.host.starting.temporary_folders import TemporaryFolders, make_default_variables
from becket.host.time_slices import Slices
from becket.host.timeouts import DEFAULT_TIMEOUTS, Timeouts
from becket.json_schema import SchemaMode
from becket.json_schema.validator import is_ready, preload
from becket.jsonrpc.budget import SharedBudget
from becket.limits import Limits
from becket.methods.registry import Registry
from becket.peer.dialect_handlers import map_handlers
from becket.peer.loops.async_loops import loop_for_start
from becket.peer.options import PeerOptions
from becket.peer.peer import Peer, PeerConnector
from becket.peer.permission_check import AskCallback
from becket.peer.protocols import ByteStream, Loop, Transport
from becket.peer.transport.child_process import normalize_command
from becket.permissions.gate import Gate
from becket.permissions.grants import Grants
from becket.permissions.names import PERMISSIONS
from becket.stores.in_memory import InMemoryStore
from becket.stores.store import Store

__all__ = ["ExtensionConnector", "ExtensionOptions", "connect_extension", "connect_extension_over"]

DEFAULT_HOST_INFO: Final = HostInfo("becket", __version__)
NO_CONTAINMENT: Final = "none"
INTERPRETERS = ("python", "pypy", "node", "deno", "bun", "ruby", "perl", "java", "bash", "sh", "env", "uv", "npx")


class ExtensionOptions(TypedDict, total=False):
    """Keyword arguments of an extension, however it is connected.

    `grants` are its permissions; or pass a `gate` of your own, which has its own audit. `ask` prompts a person for what
    is neither granted nor denied. `methods` are methods of your own that it may call. `schemas` decides about inputs
    that do not fit a tool: by default they are refused. `known` are the permissions that exist, if you have some of
    your own. `require_parent` refuses calls that name no parent request while the extension handles one of another
    caller. `extra` has the fields of the extension's own kind of manifest beyond the contract.

    `limits` and `timeouts` default to the dialect's. `on_log` gets each line that the extension logs, after the name of
    its level; the log has it as well. `version`, `digest`, `restarts` and `variables` are for the audit: the version of
    the extension, the digest of its files if known, how often it was restarted, and the names of its variables outside
    the base list. `budget` is shared by all extensions of a host. `slices` divides the work of many starts on one loop;
    pass the same to all of them. `on_link` is called with the new link before its first frame, `on_end` when the handle
    was closed and the process has ended."""

    config: Mapping[str, Any]
    root: str | os.PathLike[str] | None
    grants: Iterable[str] | Grants
    gate: Gate | None
    ask: AskCallback | None
    audit: AuditSink | None
    store: Store | None
    secrets: Secrets | None
    methods: Registry | None
    schemas: SchemaMode | str
    dialect: Dialect | str
    limits: Limits
    timeouts: Timeouts
    host: HostInfo
    known: AbstractSet[str]
    require_parent: bool
    extra: Any
    on_log: Callable[[str, str], object] | None
    version: str | None
    digest: str | None
    restarts: int
    budget: SharedBudget | None
    variables: Sequence[str]
    slices: Slices
    on_link: Callable[[Peer], object] | None
    on_end: Callable[[], object] | None


def connect_extension(
    command: Sequence[str | os.PathLike[str]],
    *,
    id: str | None = None,
    env: Mapping[str, str] | None = None,
    inherit_env: bool | None = False,
    cwd: str | os.PathLike[str] | None = None,
    on_stderr: Callable[[str], None] | None = None,
    guard: bool = False,
    **options: Unpack[ExtensionOptions],
) -> ExtensionConnector:
    """Starts an extension, performs the handshake and returns its handle; leaving the block ends it.

    Its id is derived from the command unless given. It runs in `root`, its own folder, unless `cwd` or the host
    defaults of its dialect say otherwise; it gets the variables of the base list of its dialect, and those of `env`, or
    all with `inherit_env`. Its stderr goes to the logger `becket.ext.<id>`, or line by line to `on_stderr`. With
    `guard` it is killed when this program is gone, as by `Peer.connect_process`.

    Raises, when entered or awaited:
        StartFailed: the program cannot be started, or ended before it was ready.
        HandshakeFailed: no response, another version, or invalid declarations.
    """
    arguments = normalize_command(command)
    id = check_id(derive_id(arguments) if id is None else id)
    log = ExtensionLog(id, options.get("on_log"))
    defaults = find_dialect(options.get("dialect", "native")).host_defaults
    works_in = options.get("root") if cwd is None and defaults.runs_in_root else cwd
    if "variables" not in options:
        seen = {**(os.environ if inherit_env else {}), **(env or {})}
        options["variables"] = [name for name in sorted(seen) if not build_variable_policy(defaults).allows(name)]
    if env is None and inherit_env is False and defaults != STANDARD_HOST_DEFAULTS:
        folders, available = TemporaryFolders(), prefer_own_python(os.environ)
        options["on_end"] = folders.close_before(options.get("on_end"))
        context = EnvironmentContext(id, options.get("host", DEFAULT_HOST_INFO), None, available)
        defaults_set = make_default_variables(defaults, context, folders)
        env = build_default_environment(id, defaults, available, defaults_set=defaults_set)
        inherit_env = None

    def connect(loop: Loop, peer_options: PeerOptions) -> PeerConnector:
        return Peer.connect_process(
            arguments,
            loop=loop,
            env=env,
            inherit_env=inherit_env,
            cwd=works_in,
            on_stderr=on_stderr or log.on_stderr_line,
            name=id,
            guard=guard,
            **peer_options,
        )

    start = ExtensionStartup(id, connect, log, tuple(arguments), options, env, None if cwd is None else os.fspath(cwd))
    return ExtensionConnector(start.run)


def connect_extension_over(
    transport: Transport | ByteStream, *, id: str = "extension", **options: Unpack[ExtensionOptions]
) -> ExtensionConnector:
    """Performs the handshake with an extension at the other end of a transport or of a byte stream, and returns its
    handle.

    Raises, when entered or awaited:
        HandshakeFailed: no response, another version, or invalid declarations.
    """
    id = check_id(id)

    def connect(loop: Loop, peer_options: PeerOptions) -> PeerConnector:
        return Peer.over(transport, name=id, loop=loop, **peer_options)

    log = ExtensionLog(id, options.get("on_log"))
    return ExtensionConnector(ExtensionStartup(id, connect, log, (), options).run)


class ExtensionConnector:
    """An extension that is not connected yet: `async with` it, or `await` it and stop it yourself.

    `open` returns the bare connection, for a supervisor."""

    def __init__(self, open: Callable[[], Awaitable[ExtensionConnection]]) -> None:
        self.open = open
        self._extension: Extension

    def __await__(self) -> Generator[Any, Any, Extension]:
        return self._connect().__await__()

    async def _connect(self) -> Extension:
        connection = await self.open()
        return Extension(SingleConnection(connection), connection.gate)

    async def __aenter__(self) -> Extension:
        self._extension = await self._connect()
        return self._extension

    async def __aexit__(self, *_: object) -> None:
        await self._extension.stop()


# -- one start


class ExtensionStartup:
    """The decisions before a start, and its steps."""

    def __init__(
        self,
        id: str,
        connect: Callable[[Loop, PeerOptions], PeerConnector],
        log: ExtensionLog,
        command: tuple[str, ...],
        options: ExtensionOptions,
        environment: Mapping[str, str] | None = None,
        cwd: str | None = None,
    ) -> None:
        self._id = id
        self._connect = connect
        self._log = log
        self._command = command
        self._environment = environment or {}
        self._cwd = cwd
        unknown = sorted(options.keys() - ExtensionOptions.__annotations__.keys())
        if unknown:  # without a type checker, a misspelt `grants` must not pass for none either
            raise TypeError(f"an extension has no such option: {', '.join(unknown)}")
        self._options = options
        self._slices = options.get("slices") or Slices()
        self._audit = options.get("audit")
        self._known = options.get("known", PERMISSIONS) | required_permissions(options.get("methods"))
        self._gate = self._build_gate()
        self._schemas = SchemaMode(options.get("schemas", SchemaMode.ENFORCE))
        self._dialect = find_dialect(options.get("dialect", "native"))
        defaults = self._dialect.host_defaults
        self._limits = options.get("limits") or self._dialect.host_limits
        self._timeouts = options.get("timeouts") or replace(DEFAULT_TIMEOUTS, **defaults.timeouts)
        if not isinstance(self._timeouts, Timeouts):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"`timeouts` must be a `Timeouts`, got {type(self._timeouts).__name__}")
        self._mapping = None if self._dialect.load_mapping is None else self._dialect.load_mapping()

    def _build_gate(self) -> Gate:
        options = self._options
        gate = options.get("gate")
        if gate is not None:
            if "grants" in options:
                raise TypeError("give `grants` or a `gate`, not both")
            if gate.extension != self._id:
                raise ValueError(f"the gate is of {gate.extension!r}, the extension is {self._id!r}")
            return gate
        grants = options.get("grants", ())
        if not isinstance(grants, Grants):
            grants = Grants.of(grants, known=self._known)
        asks, requires = options.get("ask") is not None, options.get("require_parent", False)
        if self._audit is None:
            return Gate(self._id, grants, asks=asks, known=self._known, require_parent=requires)
        return AuditedGate(self._id, grants, self._audit, asks=asks, known=self._known, require_parent=requires)

    async def run(self) -> ExtensionConnection:
        """Starts the extension and returns the connection to it."""
        loop = await loop_for_start(self._id)  # of the link, which ends it
        revocable_calls = RevocableCalls(self._gate, loop)
        ends: list[Callable[[], object]] = [revocable_calls.close]
        try:
            return await self._run(loop, revocable_calls, ends)
        except BaseException:
            for end in ends:
                end()
            loop.close()
            raise

    async def _run(
        self, loop: Loop, revocable_calls: RevocableCalls, ends: list[Callable[[], object]]
    ) -> ExtensionConnection:
        streams = ExtensionStreams(revocable_calls, loop, turn_timeout=self._timeouts.idle)
        notifications = ExtensionNotifications(streams)
        secrets = self._options.get("secrets")
        services = ExtensionServices(self._choose_store(ends), self._gate, loop, self._limits, secrets)
        ends.insert(0, services.close)
        link_state = LinkState(self._id, extra=self._options.get("extra"))
        async with self._slices:
            peer = await self._connect(
                loop,
                {
                    "dialect": self._dialect,
                    "methods": self._build_registry(services, notifications, link_state),
                    "limits": self._limits,
                    "gate": self._gate,
                    "ask": self._options.get("ask"),
                    "budget": self._options.get("budget"),
                },
            )
        revocable_calls.end_calls_of(peer)
        if (on_link := self._options.get("on_link")) is not None:
            on_link(peer)
        record_event(self._audit, self._build_start_record())
        waits_for_schemas = self._schemas is not SchemaMode.OFF and not is_ready()
        if waits_for_schemas:
            loop.spawn(self._slices.prepare(preload))  # while the extension starts
        client = ContractClient(
            peer, self._mapping, link_state, kills_at_once=self._dialect.host_defaults.kills_before_shutdown
        )
        try:
            result = await self._run_handshake(client)
            if waits_for_schemas:
                await self._slices.prepare(preload)
            async with self._slices:
                inputs = await compile_inputs(
                    self._id,
                    result.capabilities.tools,
                    self._schemas,
                    self._slices,
                    is_tolerant=result.allows_invalid_schemas,
                )
            if inputs.disabled:
                usable = tuple(
                    tool for tool in result.capabilities.tools if strip_whitespace(tool.name) not in inputs.disabled
                )
                client.link_state.capabilities = replace(result.capabilities, tools=usable)
                result = replace(result, capabilities=client.link_state.capabilities)
            if result.info is None:
                about = await probe_info(client, self._id, result.capabilities, self._timeouts.info)
                result = replace(result, info=about)
            await self._slices.take_turn()  # the caller's work on the new connection comes next
        except BaseException as error:
            try:
                if isinstance(error, BadCapabilities):  # it is healthy and waits for the first call
                    await client.request_shutdown(self._timeouts.shutdown)
            finally:
                await peer.aclose()
            if isinstance(error, HandshakeFailed) and isinstance(error.__cause__, RemoteError):
                # It has refused, and may have written why: all of its stderr is here now.
                raise HandshakeFailed(self._id, error.because + last_stderr_line(peer)) from error.__cause__
            raise
        return ExtensionConnection(
            client,
            self._gate,
            result,
            revocable_calls=revocable_calls,
            streams=streams,
            notifications=notifications,
            tool_inputs=inputs,
            timeouts=self._timeouts,
            limits=self._limits,
            audit=self._audit,
            root=self._root,
            environment=self._environment,
            cleanups=tuple(ends),
            on_end=self._options.get("on_end"),
        )

    def _build_registry(
        self, services: ExtensionServices, notifications: ExtensionNotifications, link_state: LinkState
    ) -> Registry:
        """Returns the handlers of all methods that the extension may call, under the names of its dialect."""
        # Most extensions of a host call it seldom or never: their handlers are built with the first call.
        methods = Registry(partial(register_all, (services, notifications, self._log)))
        if self._mapping is not None:
            methods = map_handlers(methods, self._mapping, link_state)
            if self._mapping.build_host_methods is not None:
                methods = methods.including(self._mapping.build_host_methods())
        own = self._options.get("methods")
        return methods.including(own) if own else methods

    async def _run_handshake(self, client: ContractClient) -> HandshakeResult:
        timeout = self._limits.handshake
        if self._mapping is None:
            arguments = self._build_initialize()
            initialized = await run_native_handshake(
                client.peer, arguments, self._gate, timeout=timeout, known=self._known, slices=self._slices
            )
            # If it announces no features, a method called `info` is its own.
            about = initialized.info if initialized.features else None
            kinds = tuple(dict.fromkeys(announced.hook for announced in initialized.capabilities.hooks))
            own_id = initialized.id if initialized.features and initialized.id != self._id else ""
            result = HandshakeResult(capabilities=initialized.capabilities, hooks=kinds, info=about, own_id=own_id)
        else:
            result = await run_dialect_handshake(
                client, self._build_handshake_context(), timeout=timeout, slices=self._slices
            )
        for note in result.warnings:
            host_logger().warning("%s: %s", self._id, note)
        client.link_state.capabilities = result.capabilities
        if result.extra is not None:
            client.link_state.extra = result.extra
        return result

    def _choose_store(self, ends: list[Callable[[], object]]) -> Store:
        store = self._options.get("store")
        if store is not None:
            return store
        own = InMemoryStore(self._limits)
        ends.append(own.close)
        return own

    def _build_start_record(self) -> ProcessStarted:
        held = sorted(name for name in self._known if self._gate.allows(name))
        return ProcessStarted(
            self._id,
            redact_command(self._command),
            self._dialect.name,
            tuple(held),
            NO_CONTAINMENT,
            version=self._options.get("version"),
            digest=self._options.get("digest") or None,
            restarts=self._options.get("restarts", 0),
            variables=tuple(self._options.get("variables", ())),
        )

    def _build_handshake_context(self) -> HandshakeContext:
        options = self._options
        return HandshakeContext(
            extension=self._id,
            host=options.get("host", DEFAULT_HOST_INFO),
            root=self._root,
            cwd=self._cwd,
            host_cwd=os.getcwd(),
            host_methods=frozenset(options.get("methods") or ()),
            config=dict(options.get("config", {})),
            grants=frozenset(name for name in self._known if self._gate.allows(name)),
            environment=self._environment,
            extra=options.get("extra"),
        )

    @property
    def _root(self) -> str | None:
        root = self._options.get("root")
        return None if root is None else str(Path(root).absolute())

    def _build_initialize(self) -> Initialize:
        return build_initialize(
            self._id,
            self._root,
            self._options.get("config", {}),
            host=self._options.get("host", DEFAULT_HOST_INFO),
            features=FEATURES if self._dialect.features else (),
        )


def register_all(parts: Iterable[ExtensionServices | ExtensionNotifications | ExtensionLog], methods: Registry) -> None:
    for part in parts:
        part.register(methods)


def required_permissions(methods: Registry | None) -> frozenset[str]:
    """Returns the permissions that a host's own methods require, and which thereby exist."""
    handlers = () if methods is None else methods.handlers()
    return frozenset(handler.requires for handler in handlers if handler.requires is not None)


# -- ids


def derive_id(command: Sequence[str]) -> str:
    """Returns an id for the program of a command: `notes` for `python -m notes` and for `./notes.py --fast`."""
    for word in command:
        name = Path(word).stem
        is_interpreter = name.rstrip("0123456789.") in INTERPRETERS
        if (
            not word.startswith("-")
            and "=" not in word
            and not is_interpreter
            and find_extension_id_problem(name) is None
        ):
            return name
    return Path(command[0]).stem


def check_id(id: str) -> str:
    """Returns a valid id of an extension.

    Raises:
        ValueError: it is not valid: it is a namespace, and a part of the names of tools and models.
    """
    problem = find_extension_id_problem(id)
    if problem is not None:
        raise ValueError(f"not a valid id of an extension: {id!r}: {problem}")
    return id


def find_extension_id_problem(id: str) -> str | None:
    problem = find_id_problem(id)
    return find_namespace_problem(id) if problem is None else problem.sentence
