"""`Host`: discovers extensions, starts and supervises them, and exposes their tools and models.

A façade: `discovery` finds extensions, the `gate` decides, the `supervisor` runs them, and `tools`, `providers` and
`hooks` hold what they offer. All of it runs in a task of its own, so a host can be closed from any task.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from signal import Signals
from typing import TYPE_CHECKING, Any, Final, TypedDict, TypeVar, Unpack, cast
from warnings import warn

import anyio
import anyio.to_thread
from msgspec import Struct

from becket._deprecated import RenamedMember
from becket._text import escape
from becket.contract.argument_checks import check_strs
from becket.contract.commands import CommandEvent
from becket.contract.handshake import Capabilities
from becket.contract.hooks import HOOKS, HookEvent, HookOutcome
from becket.contract.names import strip_whitespace
from becket.contract.providers import (
    MAX_TOOL_OUTPUT,
    Message,
    ProviderEvent,
    ProviderRequest,
    ProviderResult,
    ToolUse,
)
from becket.contract.tools import format_tool_result
from becket.conversion.suggestions import did_you_mean
from becket.dialects import DIALECTS, find_dialect
from becket.errors import BecketError, ExtensionRefused, LocalProtocolError, ProviderDisabled, RevocationNotPersistent
from becket.host.audit_log import ROTATE_AT, AuditMode
from becket.host.command_lines import CommandLines, command_lines_of
from becket.host.connection import ExtensionConnection
from becket.host.data_dir import DataDir, default_data_dir
from becket.host.diagnostics import Diagnostic, ProblemCode, Severity
from becket.host.events import (
    EventBus,
    ExtensionStateChanged,
    ExtensionToolsChanged,
    HostEvent,
    ProblemFound,
)
from becket.host.extension import Extension
from becket.host.extensions import ExtensionSet, ExtensionStatus, WatchMode
from becket.host.hook_plan import HookDeclaration, Hooks, HookSettings, narrow_hooks, order_hooks
from becket.host.hooks import ConfirmHook, HookVerdict, run_hooks
from becket.host.host_config import ExtensionConfig, HostConfig, apply_extension_configs
from becket.host.lifecycle import ExtensionState
from becket.host.persistence import Persistence, open_persistence
from becket.host.providers import ModelRoute, ProviderRegistry, ToolRunner, build_blocked_record, complete_with_tools
from becket.host.serving.audited_gate import record_event
from becket.host.serving.streams import ExtensionStream
from becket.host.signals import STOP_SIGNALS, StopSignals
from becket.host.starting.bundles import add_bundled
from becket.host.starting.candidate import Candidate, build_diagnostic
from becket.host.starting.connect import required_permissions
from becket.host.starting.consent import ConsentController, ManagedExtension
from becket.host.starting.consent_request import AskConsent
from becket.host.starting.discovery import DEFAULT_SETTINGS, DiscoveryReport, DiscoverySettings, discover_extensions
from becket.host.starting.environment import ExtensionVariables, prefer_own_python
from becket.host.starting.launch import (
    DialectSupport,
    LaunchSettings,
    WrapCommand,
    launch_extension,
    secret_keys_of,
)
from becket.host.starting.manifest import Environment, LimitOverrides
from becket.host.starting.paths import is_below
from becket.host.starting.secrets import move_secrets
from becket.host.starting.start_check import StartDecision
from becket.host.supervisor import SupervisionPolicy
from becket.host.timeouts import DEFAULT_TIMEOUTS, Timeouts
from becket.host.tool_calls import run_tool
from becket.host.tools import PLAIN_NAMING, PREFIXED_NAMING, RegisteredTool, ToolNaming, ToolRegistry
from becket.json_schema.validator import SchemaMode
from becket.jsonrpc.budget import SharedBudget
from becket.limits import DEFAULT_LIMITS, Limits
from becket.methods.registry import Registry
from becket.peer.loops.async_loops import current_loop
from becket.peer.outbound import UNSET, Unset
from becket.peer.transport.guardian import GUARDIAN, find_guarding_problem
from becket.permissions.grants import Grants
from becket.permissions.names import PERMISSIONS, parse_permission
from becket.permissions.policies import Policy
from becket.stores.store import Store

if TYPE_CHECKING:
    from becket.host.host_commands import HostCommands
    from becket.host.live_traffic import LiveTraffic
    from becket.peer.protocols import Loop

__all__ = ["ExtensionStatus", "Host", "HostKeywords", "HostSurvey"]

E = TypeVar("E", bound=HostEvent)
DEFAULT_DATA_DIR: Final = "default"
HOOK_PERMISSIONS: Final = frozenset(rule.permission for rule in HOOKS.values())
RETRY_EVERY: Final = 10.0  # seconds between two attempts to write a revocation
AUDIT_FLUSH_INTERVAL: Final = 60.0  # seconds between two writes of the audit's counts
MOST_SHOWN: Final = 64  # characters of an id that an extension reports
INACTIVE_STATES: Final = (ExtensionState.STOPPED, ExtensionState.FAILED, ExtensionState.DISABLED)
NOT_STARTED: Final = "the host was not started: `async with host`, or `await host.start()`"


class HostSurvey(Struct, frozen=True):
    """What a host finds on disk, and what it would do with each extension, by id.

    `variables` are those outside the base list that each would get. `hook_order` has those that may have hooks, in the
    order in which they are consulted."""

    report: DiscoveryReport
    start_decisions: dict[str, StartDecision]
    variables: dict[str, ExtensionVariables]
    hook_order: tuple[str, ...] = ()
    problems: tuple[Diagnostic, ...] = ()


class HostKeywords(TypedDict, total=False):
    """Keyword arguments of a host that few programs need. Those that a configuration file has are better set there.

    `name` is that of the host, and of its data directory. `config` has values by extension and key. `only` and
    `disabled` select among the discovered extensions, and `extensions` overrides the manifest of one. `confirm` prompts
    for a hook's confirmation, and `policy` must confirm every call. `watch` reports changed files, or reloads their
    extensions; with `development` these need no new consent. `environment` is for all extensions, besides what each
    requests; those of the dialects in `inherit_environment` get the variables that hosts of their own system pass on.
    `most_limits` is the maximum that an extension may request. `dialects` has the settings of adapters, by dialect.
    `wrap` puts another program in front of each command: a tracer, or a sandbox. `hooks` sets the order in which
    extensions are consulted, and which of them are required. `require_parent` refuses calls of an extension that name
    no parent request while it handles one of another extension. With `live_trace` programs of the same user may follow
    its traffic (`becket trace --follow`). `command_lines` builds the `becket` commands in hints; by default with the
    roots and the data directory of this host."""

    name: str
    config: Mapping[str, Mapping[str, object]] | None
    confirm: ConfirmHook | None
    policy: Policy | None
    only: Collection[str] | None
    disabled: Collection[str]
    watch: WatchMode | None
    development: bool
    audit: AuditMode | str
    supervision: SupervisionPolicy | None
    limits: Limits
    timeouts: Timeouts
    discovery: DiscoverySettings
    variables: Mapping[str, str] | None
    environment: Environment | None
    inherit_environment: Collection[str]
    most_limits: LimitOverrides | None
    schemas: SchemaMode | str
    audit_bytes: int
    require_parent: bool
    extensions: Mapping[str, ExtensionConfig] | None
    dialects: Mapping[str, object] | None
    wrap: WrapCommand | None
    hooks: HookSettings | None
    live_trace: bool
    command_lines: CommandLines | None


class Host:
    """A host of extensions: `async with Host(["extensions"], grants={"notes": ["memory.read"]}) as host: ...`.

    The first argument is the list of folders to search, or the configuration of a host:
    `Host(load_host_config("host.toml"))`; keyword arguments override it.

    The data directory is `data`, by default one of the user's named after `name`; with `data=None` everything is in
    memory and gone at the end. `grants` override those of the file. `store` is one of your own, which you close
    yourself. `ask` prompts a person for consent to a start or a permission: it gets the prompt as text and a
    `ConsentRequest`. `methods` are methods of your own that extensions may call. The rest are `HostKeywords`.
    """

    def __init__(
        self,
        roots: Sequence[str | os.PathLike[str]] | HostConfig = (),
        *,
        grants: Mapping[str, Iterable[str] | Grants] | None = None,
        data: str | os.PathLike[str] | None = DEFAULT_DATA_DIR,
        store: Store | None = None,
        ask: AskConsent | None = None,
        methods: Registry | None = None,
        **options: Unpack[HostKeywords],
    ) -> None:
        check_options(options)
        if isinstance(roots, HostConfig):
            configured = roots.arguments()
            self.roots: tuple[str | os.PathLike[str], ...] = configured.pop("roots")
            grants = {**configured.pop("grants"), **(grants or {})}
            configured_data = configured.pop("data")
            data = configured_data if data == DEFAULT_DATA_DIR else data
            options = cast("HostKeywords", {**configured, **options})
        else:
            self.roots = tuple(roots)
        name = self.name = options.get("name", "becket")
        self.events = EventBus()
        self.tools = ToolRegistry()
        self.providers = ProviderRegistry()
        self.hooks = Hooks(options.get("hooks"))
        self.report = DiscoveryReport()
        self.data_dir = None if data is None else DataDir(default_data_dir(name) if data == DEFAULT_DATA_DIR else data)
        self.command_lines = options.get("command_lines") or command_lines_of(
            self.roots, None if self.data_dir is None else self.data_dir.folder
        )
        self._methods = Registry() if methods is None else methods  # an empty one may be filled until the start
        self._configured_grants = {
            id: one if isinstance(one, Grants) else Grants.of(one, known=self._known)
            for id, one in (grants or {}).items()
        }
        self._configured_store = store
        self._config = dict(options.get("config") or {})
        self._ask = ask
        self._confirm = options.get("confirm")
        self._policy = options.get("policy")
        self._only = options.get("only")
        self._disabled = frozenset(options.get("disabled", ()))
        self._watch: WatchMode | None = options.get("watch")
        self._is_development = options.get("development", False)
        self._audit_mode = AuditMode(options.get("audit", AuditMode.USUAL))
        self._supervision = options.get("supervision") or SupervisionPolicy()
        self._limits = options.get("limits", DEFAULT_LIMITS)
        self._timeouts = options.get("timeouts", DEFAULT_TIMEOUTS)
        self._discovery = options.get("discovery", DEFAULT_SETTINGS)
        self._environment = options.get("environment") or Environment()
        self.inherit_environment = check_inheriting(options.get("inherit_environment", ()))
        self._max_limits = options.get("most_limits") or LimitOverrides()
        self._schemas = SchemaMode(options.get("schemas", SchemaMode.ENFORCE))
        self._audit_bytes = options.get("audit_bytes", ROTATE_AT)
        self._requires_parent = options.get("require_parent", False)
        self._overrides = dict(options.get("extensions") or {})
        self._dialect_settings = dict(options.get("dialects") or {})
        self._wrap = options.get("wrap")
        self._traffic = open_traffic(name, self.data_dir) if options.get("live_trace") else None
        self._supports: dict[str, DialectSupport] = {}
        self._host_commands: HostCommands | None = None
        variables = options.get("variables")
        self._variables = prefer_own_python(os.environ if variables is None else variables)
        self.problems: list[Diagnostic] = []
        self._unwritten: dict[str, Diagnostic] = {}  # revocations that are not persistent
        self._persistence: Persistence
        self._consent: ConsentController
        self._settings: LaunchSettings
        self._extension_set: ExtensionSet | None = None
        self._loop: Loop | None = None
        self._stop_signals: StopSignals | None = None
        self._closing = anyio.Event()
        self._closed = anyio.Event()

    @property
    def _known(self) -> frozenset[str]:
        """The permissions that exist: those of the contract, and those that the host's own methods require."""
        return PERMISSIONS | required_permissions(self._methods)

    # -- survey

    def survey(self) -> HostSurvey:
        """Returns which extensions there are and whether each may start. Starts, prompts and changes nothing.

        Blocking: it reads from the disk.

        Raises:
            BadFile: the grants cannot be read.
            StoreUnavailable: the store cannot be read.
        """
        report = self.discover()
        persistence = open_persistence(
            self.data_dir, self._configured_store, limits=self._limits, read_only=True, known=self._known
        )
        try:
            door = self._build_consent(persistence, self._build_settings(persistence))
            admissions = {one.id: door.decide(one) for one in report.candidates}
            order = order_hooks(self.hooks.settings, priorities_of(one for one in report.candidates if has_hooks(one)))
            problems = self.hooks.expect(priorities_of(report.candidates))
            variables = {one.id: door.list_variables(one) for one in report.candidates}
            return HostSurvey(report, admissions, variables, order, tuple(problems))
        finally:
            persistence.close()

    # -- lifecycle

    async def __aenter__(self) -> Host:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def start(self) -> None:
        """Opens the data directory, discovers extensions, and begins to start those that may. `ready` waits for one of
        them.

        Raises:
            StoreUnavailable, OSError: the data directory cannot be opened.
        """
        if self._loop is not None:
            raise LocalProtocolError("a host is started once")
        loop = self._loop = await current_loop()
        try:
            self._persistence = await anyio.to_thread.run_sync(self._open_persistence)
            try:
                await self._discover_and_prepare()
            except BaseException:
                await anyio.to_thread.run_sync(self._persistence.close)
                raise
        except BaseException:
            loop.close()
            raise
        started = anyio.Event()
        loop.spawn(self._run(started))
        try:
            await started.wait()
        except BaseException:  # the caller has left meanwhile, and the host would never be closed
            await self.aclose()
            raise

    def _open_persistence(self) -> Persistence:
        return open_persistence(
            self.data_dir,
            self._configured_store,
            limits=self._limits,
            audit=self._audit_mode,
            audit_bytes=self._audit_bytes,
            known=self._known,
        )

    async def _discover_and_prepare(self) -> None:
        """Discovers extensions and prepares those that may start; reports the problems of the others."""
        self.report = await anyio.to_thread.run_sync(self.discover)
        for diagnostic in self.report.diagnostics:
            self._report(diagnostic)
        for diagnostic in self.hooks.expect(priorities_of(self.report.candidates)):
            self._report(diagnostic)
        for candidate in self.report.candidates:
            self.tools.reserve(candidate.id, naming_of(candidate))
            await self._move_secrets(candidate)
        self._settings = self._build_settings(self._persistence)
        self._consent = self._build_consent(self._persistence, self._settings)
        assert self._loop is not None
        self._extension_set = ExtensionSet(
            self.name,
            self._consent,
            self._settings,
            events=self.events,
            problems=self.problems,
            watch=self._watch,
            launch=self._launch,
            register=self._register,
            offer=self._register_lazily,
            expect=self._expect,
            hooks=self.hooks,
            open_command=self._open_command,
            loop=self._loop,
        )
        await self._extension_set.add_candidates(self.report.candidates)

    async def _launch(self, managed: ManagedExtension) -> ExtensionConnection:
        """Starts a process of an extension from its approved files."""
        way = await self._consent.resolve_launch(managed)
        try:
            await self._move_secrets(managed.candidate)
            candidate, settings = managed.candidate, self._settings
            support = self._support_of(candidate)
            if support is not None:
                candidate, settings = support.prepare_launch(candidate, managed.gate.grants, settings)
            configured = self._config.get(managed.id)
            restarts = self._extensions.extensions[managed.id].restarts
            return await launch_extension(
                candidate, way, managed.gate, settings, configured=configured, restarts=restarts, ids=managed.ids
            )
        except BaseException:
            if way.working is not None:
                way.working.release()
            raise

    async def _move_secrets(self, candidate: Candidate) -> None:
        """Moves secrets out of the store, where an older version or another program has put them."""
        keys, secrets, store = secret_keys_of(candidate), self._persistence.secrets, self._persistence.store
        if not keys or secrets is None:
            return
        try:
            moved = await anyio.to_thread.run_sync(move_secrets, store, secrets, candidate.id, keys)
        except (OSError, BecketError) as error:
            problem = f"its secrets are still in the store, and cannot be moved to {secrets.path.name}: {error}"
            self._report(
                Diagnostic(
                    code=ProblemCode.SECRETS_NOT_MOVED,
                    extension=candidate.id,
                    problem=problem,
                    hint="make the data folder writable, and start the host again",
                )
            )
            return
        if moved:
            problem = f"moved out of the store, to {secrets.path.name}: {', '.join(moved)}"
            hint = "backups of the store from before still have them: change these secrets"
            self._report(
                Diagnostic(
                    code=ProblemCode.SECRETS_MOVED,
                    extension=candidate.id,
                    problem=problem,
                    hint=hint,
                    severity=Severity.NOTE,
                )
            )

    def _build_settings(self, persistence: Persistence) -> LaunchSettings:
        return LaunchSettings(
            store=persistence.store,
            audit=persistence.audit,
            data_dir=self.data_dir,
            ask=self._ask,
            policy=self._policy,
            methods=self._methods,
            limits=self._limits,
            max_limits=self._max_limits,
            timeouts=self._timeouts,
            supervision=self._supervision,
            environment=self._environment,
            inherit_environment=self.inherit_environment,
            variables=self._variables,
            schemas=self._schemas,
            require_parent=self._requires_parent,
            wrap=self._wrap,
            events=self.events,
            secrets=persistence.secrets,
            budget=SharedBudget(self._limits.host_inbound_bytes, "bytes held for all extensions"),
            guard=find_guarding_problem() is None,
            on_link=None if self._traffic is None else self._traffic.add,
        )

    def _build_consent(self, persistence: Persistence, settings: LaunchSettings) -> ConsentController:
        return ConsentController(
            persistence,
            settings,
            given=self._configured_grants,
            configured=self._config,
            in_development=self._is_development,
            events=self.events,
            complain=self._report,
            find_again=self._rediscover,
            lines=self.command_lines,
        )

    def discover(self) -> DiscoveryReport:
        """Returns which extensions there are, without reading the data directory. Blocking: it reads from the disk."""
        return discover_extensions(
            self.roots,
            settings=self._discovery,
            only=self._only,
            disabled=self._disabled,
            limits=self._limits,
            settle=self._apply_overrides,
        )

    def _rediscover(self, id: str) -> Candidate:
        """Returns the current candidate of an extension.

        Raises:
            ExtensionRefused: it is not found any more, and why.
        """
        report = self.discover()
        folder = self._extensions.candidates[id].folder
        for candidate in report.candidates:
            if candidate.id == id:
                return candidate
        reasons = [note.problem for note in report.diagnostics if note.path and is_below(note.path, folder)]
        raise ExtensionRefused(id, "; ".join(["it is not found any more", *reasons]))

    def _apply_overrides(self, found: list[Candidate], notes: list[Diagnostic]) -> list[Candidate]:
        return apply_extension_configs(self._overrides, add_bundled(found, notes), notes)

    def _register(self, candidate: Candidate, extension: Extension, copy: ExtensionConnection) -> None:
        """Publishes the declarations of a new process of an extension in place of those of its previous one."""
        declarations = narrow_hooks(copy.subscriptions, read_declared_hooks(candidate))
        found = [
            *self.tools.add(extension.id, copy.tools, naming=naming_of(candidate)),
            *self.providers.add(extension.id, copy.handshake.capabilities.providers),
            *self.hooks.add(extension.id, declarations, extension.gate.allows),
            *list_disabled(copy),
        ]
        is_named_by_operator = candidate.manifest_path == candidate.folder  # in the configuration, without a manifest
        own_id = copy.handshake.own_id
        if own_id and not is_named_by_operator:
            found.append(describe_mismatch(candidate, own_id))
        for problem in found:
            if problem not in self.problems:  # those of the previous process
                self._report(problem)
        support = self._support_of(candidate)
        if support is not None:
            support.on_ready(copy)

    def _expect(self, candidate: Candidate, extension: Extension) -> None:
        """Registers the required hooks of an extension that may start, before it runs."""
        required = [declaration for declaration in read_declared_hooks(candidate) if declaration.required]
        if required:
            self.hooks.add(candidate.id, required, extension.gate.allows)

    def _register_lazily(self, id: str, declared: Capabilities) -> None:
        self.problems += self.tools.add(id, declared.tools)

    def _open_command(
        self, extension: Extension, name: str, args: Iterable[str], options: Mapping[str, Any]
    ) -> ExtensionStream[CommandEvent, Any] | None:
        """Returns a run of a command that the manifest of an extension leaves to its host; None for any other."""
        candidate = self._extensions.candidates[extension.id]
        if not getattr(candidate.extra, "host_commands", ()):
            return None
        from becket.host.host_commands import HostCommands, find_host_command

        command = find_host_command(candidate, name)
        if command is None:
            return None
        if self._host_commands is None:
            assert self._loop is not None
            self._host_commands = HostCommands(
                self._loop, self._settings, self.hooks, call_tool=self.call_tool, consult=self.run_hooks
            )
        return self._host_commands.open(
            command, candidate, extension, check_strs(args, "the arguments of a command"), options
        )

    def _support_of(self, candidate: Candidate) -> DialectSupport | None:
        """Returns the adapter's support object of a dialect in this host, created for its first extension."""
        name = candidate.manifest.dialect
        load = find_dialect(name).load_host_support
        if load is None:
            return None
        if name not in self._supports:
            assert self._loop is not None
            make = cast("Callable[..., DialectSupport]", load())
            self._supports[name] = make(
                self._dialect_settings.get(name),
                models=self.models,
                complete=self.complete,
                current=self._current_connection,
                redeclared=self._on_tools_changed,
                spawn=self._loop.spawn,
                slices=self._settings.slices,
            )
        return self._supports[name]

    def _current_connection(self, id: str) -> ExtensionConnection | None:
        return self._extensions.extensions[id].supervisor.current()

    def _on_tools_changed(self, extension: ExtensionConnection) -> None:
        self.problems += self.tools.add(extension.id, extension.tools)
        self.events.publish(ExtensionToolsChanged(extension.id, len(extension.tools)))

    def _on_state_changed(self, event: ExtensionStateChanged) -> None:
        if event.after in INACTIVE_STATES:
            self.tools.remove(event.extension)
            self.providers.remove(event.extension)
            if event.after is ExtensionState.FAILED:  # else it was stopped on purpose
                self.hooks.suspend(event.extension)
            else:
                self.hooks.remove(event.extension)

    async def _run(self, started: anyio.Event) -> None:
        """Runs everything of this host, as one task."""
        unsubscribe = self.events.subscribe(ExtensionStateChanged, self._on_state_changed)
        GUARDIAN.hold()
        if not self._settings.guard and sys.platform == "linux":
            unguarded = (
                f"extensions that ignore their stdin outlive this host if it is killed: {find_guarding_problem()}"
            )
            hint = "stop the host with SIGTERM or Ctrl-C, not with SIGKILL"
            self._report(
                Diagnostic(code=ProblemCode.UNGUARDED, problem=unguarded, hint=hint, severity=Severity.WARNING)
            )
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._flush_audit_periodically)
                tasks.start_soon(self._keep_revocations)
                if self._traffic is not None:
                    tasks.start_soon(self._traffic.serve)
                await self._extensions.run(started, self._closing)
                tasks.cancel_scope.cancel()
        finally:
            unsubscribe()
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self._persistence.close)
                await anyio.to_thread.run_sync(GUARDIAN.release)
                await anyio.to_thread.run_sync(self._settings.folders.close)
            self._closed.set()
            if self._stop_signals is not None:
                self._stop_signals.finish()

    async def _flush_audit_periodically(self) -> None:
        while True:
            await anyio.sleep(AUDIT_FLUSH_INTERVAL)
            try:
                await anyio.to_thread.run_sync(self._persistence.audit.flush)
            except OSError as error:
                self._report(
                    Diagnostic(
                        code=ProblemCode.AUDIT_NOT_WRITABLE,
                        problem=f"the audit cannot be written: {error}",
                        hint=f"make room for it on the disk; it is tried again every {AUDIT_FLUSH_INTERVAL:g} s",
                    )
                )

    async def _keep_revocations(self) -> None:
        """Writes revocations that could not be written when they were made."""
        while True:
            await anyio.sleep(RETRY_EVERY)
            outcomes = await self._consent.retry_revocations()
            for id in {*self._unwritten, *outcomes}:
                self._note_revocation(id, outcomes.get(id))

    def _note_revocation(self, id: str, error: RevocationNotPersistent | None) -> None:
        """Keeps a problem in `problems` for as long as a revocation is not written."""
        before = self._unwritten.pop(id, None)
        if before is not None and before in self.problems:
            self.problems.remove(before)
        if error is None:
            if before is not None:
                solved = Diagnostic(
                    code=ProblemCode.REVOCATION_PERSISTENT,
                    extension=id,
                    problem="revocation is persistent now",
                    hint="nothing is left to do",
                    severity=Severity.NOTE,
                )
                self.events.publish(ProblemFound(solved))
            return
        names, reasons = ", ".join(error.permissions), "; ".join(message for _, message in error.problems)
        diagnostic = self._unwritten[id] = Diagnostic(
            code=ProblemCode.REVOCATION_NOT_PERSISTENT,
            extension=id,
            path=error.path,
            problem=f"revocation not persistent: {names}: {reasons}",
            hint=f"fix this; it is tried again every {RETRY_EVERY:g} s and at the end",
        )
        if diagnostic == before:
            self.problems.append(diagnostic)  # it was reported when it was new
        else:
            self._report(diagnostic)

    def _report(self, diagnostic: Diagnostic) -> None:
        self.problems.append(diagnostic)
        self.events.publish(ProblemFound(diagnostic))

    async def aclose(self) -> None:
        """Stops all extensions in order and closes the data directory. From any task, and twice."""
        if self._loop is None:
            return
        self._closing.set()
        with anyio.CancelScope(shield=True):
            await self._closed.wait()
        self._loop.close()

    def stop_on_signals(self, *signals: Signals) -> None:
        """Stops this host in order when the program gets SIGTERM or SIGHUP, or one of these signals.

        When the host is closed the signal has its previous effect: it ends the program, or calls the previous handler.
        A second signal does so at once. One that is ignored, as SIGHUP under `nohup`, stays ignored. Call this in the
        main thread, once the host is started.

        Raises:
            LocalProtocolError: the host was not started, or this is another thread.
        """
        if self._loop is None:
            raise LocalProtocolError(NOT_STARTED)
        loop = self._loop
        if self._stop_signals is not None:
            self._stop_signals.restore()
        self._stop_signals = StopSignals(signals or STOP_SIGNALS, lambda: loop.call_from_thread(self._closing.set))

    @property
    def store(self) -> Store:
        """Memory and configuration of all extensions, while the host runs. Its methods block: they may wait for the
        disk.

        Raises:
            LocalProtocolError: the host was not started.
        """
        if self._loop is None:
            raise LocalProtocolError(NOT_STARTED)
        return self._persistence.store

    # -- extensions

    @property
    def _extensions(self) -> ExtensionSet:
        if self._extension_set is None:
            raise LocalProtocolError(NOT_STARTED)
        return self._extension_set

    def __getitem__(self, id: str) -> Extension:
        """Returns the handle of an extension, whether it runs or not.

        Raises:
            ExtensionRefused: it was found, and must not start.
            NotDeclared: there is none.
        """
        return self._extensions[id]

    def __iter__(self) -> Iterator[str]:
        return iter(() if self._extension_set is None else self._extension_set)

    async def ready(self, id: str) -> Extension:
        """Waits until an extension runs and returns its handle.

        Raises:
            ExtensionRefused, StartFailed, HandshakeFailed, ...: why it does not.
        """
        return await self._extensions.ready(id)

    async def settled(self) -> None:
        """Waits until a start of every extension was attempted, and all prompts about them are closed."""
        await self._extensions.settled()

    def status(self) -> tuple[ExtensionStatus, ...]:
        """Returns the status of all extensions, by id. From any thread; `to_dict` of each is JSON."""
        return () if self._extension_set is None else self._extension_set.status()

    def on(self, kind: type[E]) -> Callable[[Callable[[E], Any]], Callable[[E], Any]]:
        """Registers the decorated plain function for events of a class: `@host.on(ExtensionRestarted)`."""

        def register(function: Callable[[E], Any]) -> Callable[[E], Any]:
            self.events.subscribe(kind, function)
            return function

        return register

    # -- permissions

    async def grant(self, id: str, *permissions: str) -> None:
        """Grants permissions to an extension, from now on and for its next starts. Without any: all that it requests,
        which also approves a refused extension with its current files.

        Raises:
            UnknownPermission, ReservedPermission: one of them cannot be granted.
            NotDeclared, ExtensionRefused: nothing was named, and there is no such extension, or none that could start.
            BadFile: the grants file cannot be written; nothing has changed.
        """
        names = [parse_permission(name, self._known) for name in permissions]
        if names:
            await self._consent.grant(id, names)
        else:
            await self._extensions.approve(id)
        await self._extensions.retry_refused(id)

    async def revoke(self, id: str, *permissions: str) -> None:
        """Revokes permissions at once, for the next starts too; running calls that need them end.

        Raises:
            UnknownPermission, ReservedPermission: one of them cannot be granted.
            RevocationNotPersistent: the grants file cannot be written. They are revoked in this host all the same;
                it is tried again every 10 s and at the end, and `status` reports it meanwhile.
        """
        names = [parse_permission(name, self._known) for name in permissions]
        try:
            await self._consent.revoke(id, names)
        except RevocationNotPersistent as error:
            self._note_revocation(id, error)
            raise
        self._note_revocation(id, None)

    # -- tools

    async def call_tool(
        self,
        name: str,
        input: Mapping[str, Any] | None = None,
        *,
        timeout: float | Unset | None = UNSET,
        meta: Mapping[str, Any] | None = None,
        repeat: bool = False,
        hooks: bool = True,
    ) -> str:
        """Runs a tool by the name that models use, or by `extension:tool`, and returns the text of its result.

        Extensions are consulted before and after it, unless `hooks` is false; `timeout` is for the tool alone. `meta`
        is passed to the tool beside its input, if its dialect has a field for it.

        Raises:
            NotDeclared: no running extension has it; and what `Extension.call_tool` raises.
            ToolBlocked: a hook has blocked the call. The tool has not run.
            ToolFailed: it failed, and a hook has replaced the error.
        """
        result = await self.call_tool_json(name, input, timeout=timeout, meta=meta, repeat=repeat, hooks=hooks)
        return format_tool_result(result)

    async def call_tool_json(
        self,
        name: str,
        input: Mapping[str, Any] | None = None,
        *,
        timeout: float | Unset | None = UNSET,
        meta: Mapping[str, Any] | None = None,
        repeat: bool = False,
        hooks: bool = True,
    ) -> Any:
        """Runs a tool and returns its result as JSON, or the text that a hook has replaced it by; otherwise like
        `call_tool`."""
        tool = self.tools.get(name)
        call_own = partial(
            self._extensions.extensions[tool.extension].call_tool_json, timeout=timeout, meta=meta, repeat=repeat
        )
        if not hooks or not self.hooks.has_tool_hooks:
            return await call_own(tool.tool.name, input)

        async def call(tool: RegisteredTool, input: Any) -> Any:
            return await call_own(tool.tool.name, input)

        outcome = await run_tool(tool, dict(input or {}), call, self.run_hooks, limits=self._limits)
        return outcome.unwrap()

    async def use_tool(self, use: ToolUse, *, meta: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Runs a tool that a model calls, as `call_tool` does. A confirmation is a block: a model cannot give it.

        Returns the content block with the result or the error for the model. An output of more than `MAX_TOOL_OUTPUT`
        bytes is truncated, with a note."""
        return await self._use_tool(use, MAX_TOOL_OUTPUT, meta)

    async def _use_tool(self, use: ToolUse, most_output: int, meta: Mapping[str, Any] | None) -> dict[str, Any]:
        async def call(tool: RegisteredTool, input: Any) -> str:
            return await self._extensions.extensions[tool.extension].call_tool(tool.tool.name, input, meta=meta)

        most = min(most_output, MAX_TOOL_OUTPUT)
        user = ToolRunner(self.tools, call, self._run_hooks_unattended, most_output=most, limits=self._limits)
        return await user.run(use)

    # -- hooks

    async def run_hooks(self, event: HookEvent, *, can_confirm: bool = True) -> HookVerdict:
        """Consults the extensions with a hook for an event that is about to happen or has happened.

        Unless `can_confirm`, as for what a model does on its own, a confirmation is a block."""

        async def call(id: str, event: HookEvent) -> HookOutcome:
            return await self._extensions[id].consult_hook(event)

        confirm = self._confirm if can_confirm else None
        return await run_hooks(self.hooks, event, call, confirm=confirm, limits=self._limits, complain=self._report)

    async def _run_hooks_unattended(self, event: HookEvent) -> HookVerdict:
        return await self.run_hooks(event, can_confirm=False)

    # -- providers

    def models(self) -> tuple[str, ...]:
        """Returns the ids of all models: `extension:provider:model`."""
        return self.providers.models()

    async def complete(
        self,
        model: str,
        *,
        messages: Sequence[Message],
        use_tools: bool = False,
        meta: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> ProviderResult:
        """Calls a model of an extension and returns its whole completion; the options are those of
        `Extension.complete`.

        With `use_tools` it gets the tools of all extensions, and those that it calls are run; `meta` is passed to these
        beside their inputs, as for `call_tool`. Each turn has `model_tool_calls` and `model_tool_bytes`, all of them
        together `model_seconds`; see `Limits`. The model sees what was truncated, and a tool's failure: neither is an
        error here.

        Raises:
            ValueError: `model` does not have three parts.
            NotDeclared: no running extension has such a model.
            ProviderDisabled: the provider is not trusted. Nothing was sent.
            PermissionDenied: the extension does not hold `providers.register`, or lost it before the response arrived.
            NotSupported: its dialect does not define models. Nothing was sent.
            CircuitOpen: too many of its calls have failed lately. Nothing was sent.
            NotRunning, StartFailed, HandshakeFailed, ...: it does not run, and why.
            NotSent: it does not read, or has too many calls in flight.
            LocalProtocolError: the messages cannot be encoded, or are too large for a frame with all that was added.
            RemoteError: it responded with an error.
            BadReply: its completion, or a tool call in it, cannot be decoded; or it has no content.
            CallTimeout: one completion took longer than `timeout`, or all turns longer than `model_seconds`.
            ConnectionLost: the link has ended; `PeerCrashed` with the details of its process.
            TooManyTurns: it still calls tools in its eighth turn.
        """
        route = self._route_trusted(model, tools_exposed=use_tools)
        extension = self._extensions.extensions[route.extension]
        provider, name = strip_whitespace(route.provider.id), strip_whitespace(route.model.id)
        if not use_tools:
            return await extension.complete(provider, name, messages=messages, **options)
        shown = self.tools.for_model()

        async def use(use: ToolUse, most_output: int) -> dict[str, Any]:
            return await self._use_tool(use, most_output, meta)

        async def ask(request: ProviderRequest) -> ProviderResult:
            return await extension.complete(provider, name, messages=request.messages, tools=shown, **options)

        request = ProviderRequest(route.provider.id, route.model.id, route.model_id, tuple(messages), tools=shown)
        return await complete_with_tools(extension.id, request, ask, use, limits=self._limits)

    @asynccontextmanager
    async def stream(
        self, model: str, *, messages: Sequence[Message], **options: Any
    ) -> AsyncGenerator[ExtensionStream[ProviderEvent, ProviderResult], None]:
        """Opens a completion of a model, whose parts are events: `async with host.stream(...) as answer`.

        Raises:
            NotDeclared, ProviderDisabled: as for `complete`.
        """
        route = self._route_trusted(model, tools_exposed=False, streamed=True)
        extension = self._extensions.extensions[route.extension]
        async with extension.stream(
            strip_whitespace(route.provider.id), strip_whitespace(route.model.id), messages=messages, **options
        ) as run:
            yield run

    def _route_trusted(self, model: str, *, tools_exposed: bool, streamed: bool = False) -> ModelRoute:
        route = self.providers.route(model)
        try:
            self._persistence.trust.check(route.provider_id)
        except ProviderDisabled:
            record_event(
                self._persistence.audit, build_blocked_record(route, tools_exposed=tools_exposed, streamed=streamed)
            )
            raise
        return route

    def __repr__(self) -> str:
        statuses = [self[id].state for id in self]
        running = sum(state in (ExtensionState.READY, ExtensionState.DEGRADED) for state in statuses)
        return f"<Host {self.name}: {running} of {len(statuses)} extensions run>"

    ask_hooks = RenamedMember("run_hooks")
    places = RenamedMember("data_dir")


def check_options(options: HostKeywords) -> None:
    """Raises TypeError for a keyword that `Host` does not have. Accepts `mcp` and `care`, which were some in 0.1."""
    given = cast("dict[str, Any]", options)
    if "mcp" in given:
        warn("`Host(mcp=...)` is `Host(dialects={'mcp': ...})` since becket 0.2", DeprecationWarning, stacklevel=3)
        given["dialects"] = {**(given.get("dialects") or {}), "mcp": given.pop("mcp")}
    if "care" in given:
        warn("`Host(care=...)` is `Host(supervision=...)` since becket 0.2", DeprecationWarning, stacklevel=3)
        given["supervision"] = given.pop("care")
    for name in sorted(given.keys() - HostKeywords.__annotations__.keys()):
        meant = did_you_mean(name, HostKeywords.__annotations__)
        raise TypeError(f"`Host` has no option `{name}`" + (f": {meant}" if meant else ""))


def naming_of(candidate: Candidate) -> ToolNaming:
    """Returns how the tools of an extension are named."""
    return (
        PREFIXED_NAMING if find_dialect(candidate.manifest.dialect).host_defaults.has_prefixed_tools else PLAIN_NAMING
    )


def read_declared_hooks(candidate: Candidate) -> list[HookDeclaration]:
    """Returns the hooks that a manifest requests."""
    return [HookDeclaration(hook.hook, hook.matcher, hook.required) for hook in candidate.manifest.hooks]


def list_disabled(copy: ExtensionConnection) -> list[Diagnostic]:
    """Returns a diagnostic for each disabled tool of a connection."""
    hint = "correct its `input_schema`; until then it is not offered"
    return [
        Diagnostic(
            extension=copy.id,
            problem=f"the tool `{name}` is disabled, its schema cannot be applied: {because}",
            code=ProblemCode.TOOL_LEFT_OUT,
            hint=hint,
            severity=Severity.WARNING,
        )
        for name, because in copy.tool_inputs.disabled.items()
    ]


def has_hooks(candidate: Candidate) -> bool:
    """Returns whether an extension may have hooks: its manifest names some, or requests a permission of hooks."""
    manifest = candidate.manifest
    requests_hooks = not HOOK_PERMISSIONS.isdisjoint(manifest.permissions)
    return bool(requests_hooks or manifest.hooks or getattr(candidate.extra, "hooks", ()))


def priorities_of(candidates: Iterable[Candidate]) -> dict[str, int]:
    """Returns each extension's priority at hooks, if its system has one: the lowest is consulted first."""
    found: dict[str, int] = {}
    for candidate in candidates:
        priority: object = getattr(candidate.extra, "priority", 0)
        found[candidate.id] = priority if isinstance(priority, int) else 0
    return found


def open_traffic(name: str, places: DataDir | None) -> LiveTraffic | None:
    """Returns the server of a host's traffic, None if it has no folder for a socket."""
    if places is None:
        return None
    from becket.host.live_traffic import LiveTraffic

    return LiveTraffic(name, places.folder)


def check_inheriting(dialects: Collection[str]) -> frozenset[str]:
    """Returns the dialects whose programs get the host's variables.

    Raises:
        ValueError: hosts of one of these systems pass no variables on, or there is no such dialect.
    """
    possible = sorted(name for name in DIALECTS if DIALECTS[name].host_defaults.inherited_environment != "few")
    for name in dialects:
        if name not in possible:
            raise ValueError(f"`inherit_environment` must name dialects of {', '.join(possible)}, got {name}")
    return frozenset(dialects)


def describe_mismatch(candidate: Candidate, own_id: str) -> Diagnostic:
    """Returns the warning that the code of an extension has another id than its manifest."""
    problem = f"its manifest has the id `{candidate.id}`, and its code `{escape(own_id[:MOST_SHOWN])}`"
    hint = "give both the same id; until then the manifest's is used"
    return build_diagnostic(candidate, ProblemCode.ID_MISMATCH, problem, hint, Severity.WARNING)
