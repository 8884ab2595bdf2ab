"""`Host`: discovers extensions, starts and supervises them, and exposes their tools and models.

A façade: `discovery` finds extensions, the `gate` decides, the `supervisor` runs them, and `tools`, `providers` and
`hooks` hold what they offer. All of it runs in a task of its own, so a host can be closed from any task.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from signal import Signals
from typing import TYPE_CHECKING, Any, Final, TypeVar, Unpack, cast

import anyio
import anyio.to_thread
from msgspec import Struct

from becket._deprecated import RenamedMember
from becket.contract.argument_checks import check_list, check_strs
from becket.contract.commands import CommandEvent
from becket.contract.hooks import HookEvent, HookOutcome
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
from becket.dialects import find_dialect
from becket.errors import ExtensionRefused, LocalProtocolError, ProviderDisabled, RevocationNotPersistent
from becket.host.audit_log import AuditMode
from becket.host.command_lines import command_lines_of
from becket.host.data_dir import DataDir, default_data_dir
from becket.host.declarations import Declarations, has_hooks, naming_of, priorities_of
from becket.host.diagnostics import Diagnostic, ProblemCode, Severity
from becket.host.events import (
    EventBus,
    ExtensionStateChanged,
    HostEvent,
    ProblemFound,
)
from becket.host.extension import Extension
from becket.host.extension_connection import ExtensionConnection
from becket.host.extension_set import ExtensionSet, ExtensionStatus
from becket.host.hook_plan import Hooks, order_hooks
from becket.host.hooks import HookVerdict, run_hooks
from becket.host.host_config import HostConfig, apply_extension_configs
from becket.host.host_settings import HostKeywords, HostSettings, add_keywords, group_arguments
from becket.host.lifecycle import RUNNING_STATES
from becket.host.persistence import Persistence, open_persistence
from becket.host.providers import ModelRoute, ProviderRegistry, ToolRunner, build_blocked_record, complete_with_tools
from becket.host.revocation_retry import UnwrittenRevocations
from becket.host.serving.audited_gate import record_event
from becket.host.serving.streams import ExtensionStream
from becket.host.signals import STOP_SIGNALS, StopSignals
from becket.host.starting.bundles import add_bundled
from becket.host.starting.candidate import Candidate
from becket.host.starting.connect import required_permissions
from becket.host.starting.consent import ConsentController, ManagedExtension
from becket.host.starting.consent_request import AskConsent
from becket.host.starting.discovery import DiscoveryReport, discover_extensions
from becket.host.starting.environment import ExtensionVariables, prefer_own_python
from becket.host.starting.launch import (
    DialectSupport,
    LaunchSettings,
    launch_extension,
    secret_keys_of,
)
from becket.host.starting.paths import is_below
from becket.host.starting.secrets import move_secrets_of
from becket.host.starting.start_check import StartDecision
from becket.host.tool_calls import run_tool
from becket.host.tools import RegisteredTool, ToolRegistry
from becket.json_schema import SchemaMode
from becket.jsonrpc.budget import SharedBudget
from becket.methods.registry import Registry
from becket.peer.loops.async_loops import current_loop
from becket.peer.outbound import UNSET, Unset
from becket.peer.transport.guardian import GUARDIAN, find_guarding_problem
from becket.permissions.grants import Grants
from becket.permissions.names import PERMISSIONS, parse_permission
from becket.stores.store import Store

if TYPE_CHECKING:
    from becket.host.host_commands import HostCommands
    from becket.host.live_traffic import LiveTraffic
    from becket.peer.protocols import Loop

__all__ = ["ExtensionStatus", "Host", "HostSurvey"]

E = TypeVar("E", bound=HostEvent)
DEFAULT_DATA_DIR: Final = "default"
AUDIT_FLUSH_INTERVAL: Final = 60.0  # seconds between two writes of the audit's counts
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


class Host:
    """A host of extensions: `async with Host(["extensions"], grants={"notes": ["memory.read"]}) as host: ...`.

    The first argument is the list of folders to search, or the configuration of a host:
    `Host(load_host_config("host.toml"))`. Keyword arguments override it, and `settings` replace all settings of the
    file: `HostSettings.from_config` returns these with changes.

    The data directory is `data`, by default one of the user's named after `name`; with `data=None` everything is in
    memory and gone at the end. `grants` override those of the file. `store` is one of your own, which you close
    yourself. `ask` prompts a person for consent to a start or a permission: it gets the prompt as text and a
    `ConsentRequest`. `methods` are methods of your own that extensions may call. The rest are `settings`.
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
        settings: HostSettings | None = None,
        **keywords: Unpack[HostKeywords],
    ) -> None:
        has_config = isinstance(roots, HostConfig) and settings is None
        if isinstance(roots, HostConfig):
            configured = group_arguments(roots.arguments())
            self.roots: tuple[str | os.PathLike[str], ...] = configured["roots"]
            grants = {**configured["grants"], **(grants or {})}
            data = configured["data"] if data == DEFAULT_DATA_DIR else data
            settings = configured["settings"] if settings is None else settings
        else:
            check_list(roots, "roots", "folders")
            self.roots = tuple(roots)
        settings = add_keywords(settings or HostSettings(), keywords, has_config=has_config)
        self.settings = settings
        name = self.name = settings.name
        self.events = EventBus()
        self.tools = ToolRegistry()
        self.providers = ProviderRegistry()
        self.hooks = Hooks(settings.hooks)
        self.report = DiscoveryReport()
        self.data_dir = None if data is None else DataDir(default_data_dir(name) if data == DEFAULT_DATA_DIR else data)
        self.command_lines = settings.command_lines or command_lines_of(
            self.roots, None if self.data_dir is None else self.data_dir.folder
        )
        self.inherit_environment = frozenset(settings.inherit_environment)
        self._variables = prefer_own_python(os.environ if settings.variables is None else settings.variables)
        self._methods = Registry() if methods is None else methods  # an empty one may be filled until the start
        self._configured_grants = {
            id: one if isinstance(one, Grants) else Grants.of(one, known=self._known)
            for id, one in (grants or {}).items()
        }
        self._configured_store = store
        self._ask = ask
        self._traffic = open_traffic(name, self.data_dir) if settings.live_trace else None
        self._host_commands: HostCommands | None = None
        self.problems: list[Diagnostic] = []
        self._declarations = Declarations(
            self.tools,
            self.providers,
            self.hooks,
            events=self.events,
            problems=self.problems,
            report=self._report,
        )
        self._supports: dict[str, DialectSupport] = {}
        self._revocations = UnwrittenRevocations(self.problems, self.events, self._report)
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
            self.data_dir, self._configured_store, limits=self.settings.limits, read_only=True, known=self._known
        )
        try:
            consent = self._build_consent(persistence, self._build_settings(persistence))
            decisions = {one.id: consent.decide(one) for one in report.candidates}
            order = order_hooks(self.hooks.settings, priorities_of(one for one in report.candidates if has_hooks(one)))
            problems = self.hooks.expect(priorities_of(report.candidates))
            variables = {one.id: consent.list_variables(one) for one in report.candidates}
            return HostSurvey(report, decisions, variables, order, tuple(problems))
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
            limits=self.settings.limits,
            audit=AuditMode(self.settings.audit),
            audit_bytes=self.settings.audit_bytes,
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
            watch=self.settings.watch,
            launch=self._launch,
            register=self._register,
            offer=self._declarations.publish_unstarted,
            expect=self._declarations.expect,
            hooks=self.hooks,
            open_command=self._open_command,
            loop=self._loop,
        )
        await self._extension_set.add_candidates(self.report.candidates)

    async def _launch(self, managed: ManagedExtension) -> ExtensionConnection:
        """Starts a process of an extension from its approved files."""
        spec = await self._consent.resolve_launch(managed)
        try:
            await self._move_secrets(managed.candidate)
            candidate, settings = managed.candidate, self._settings
            support = self._support_of(candidate)
            if support is not None:
                candidate, settings = support.prepare_launch(candidate, managed.gate.grants, settings)
            configured = self.settings.config.get(managed.id)
            restarts = self._extensions.extensions[managed.id].restarts
            return await launch_extension(
                candidate, spec, managed.gate, settings, configured=configured, restarts=restarts, ids=managed.ids
            )
        except BaseException:
            if spec.working is not None:
                spec.working.release()
            raise

    async def _move_secrets(self, candidate: Candidate) -> None:
        """Moves secrets out of the store, where an older version or another program has put them."""
        keys, secrets, store = secret_keys_of(candidate), self._persistence.secrets, self._persistence.store
        if keys and secrets is not None:
            problem = await anyio.to_thread.run_sync(move_secrets_of, store, secrets, candidate.id, keys)
            if problem is not None:
                self._report(problem)

    def _build_settings(self, persistence: Persistence) -> LaunchSettings:
        return LaunchSettings(
            store=persistence.store,
            audit=persistence.audit,
            data_dir=self.data_dir,
            ask=self._ask,
            policy=self.settings.policy,
            methods=self._methods,
            limits=self.settings.limits,
            max_limits=self.settings.most_limits,
            timeouts=self.settings.timeouts,
            supervision=self.settings.supervision,
            environment=self.settings.environment,
            inherit_environment=self.inherit_environment,
            variables=self._variables,
            schemas=SchemaMode(self.settings.schemas),
            require_parent=self.settings.require_parent,
            wrap=self.settings.wrap,
            events=self.events,
            secrets=persistence.secrets,
            budget=SharedBudget(self.settings.limits.host_inbound_bytes, "bytes held for all extensions"),
            guard=find_guarding_problem() is None,
            on_link=None if self._traffic is None else self._traffic.add,
        )

    def _build_consent(self, persistence: Persistence, settings: LaunchSettings) -> ConsentController:
        return ConsentController(
            persistence,
            settings,
            host_grants=self._configured_grants,
            configured=self.settings.config,
            in_development=self.settings.development,
            events=self.events,
            complain=self._report,
            find_again=self._rediscover,
            lines=self.command_lines,
        )

    def discover(self) -> DiscoveryReport:
        """Returns which extensions there are, without reading the data directory. Blocking: it reads from the disk."""
        return discover_extensions(
            self.roots,
            settings=self.settings.discovery,
            only=self.settings.only,
            disabled=frozenset(self.settings.disabled),
            limits=self.settings.limits,
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
        return apply_extension_configs(self.settings.extensions, add_bundled(found, notes), notes)

    def _register(self, candidate: Candidate, extension: Extension, copy: ExtensionConnection) -> None:
        self._declarations.publish(candidate, extension, copy)
        support = self._support_of(candidate)
        if support is not None:
            support.on_ready(copy)

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
                self.settings.dialects.get(name),
                models=self.models,
                complete=self.complete,
                current=self._current_connection,
                redeclared=self._declarations.update_tools,
                spawn=self._loop.spawn,
                slices=self._settings.slices,
            )
        return self._supports[name]

    def _current_connection(self, id: str) -> ExtensionConnection | None:
        return self._extensions.extensions[id].supervisor.current()

    async def _run(self, started: anyio.Event) -> None:
        """Runs everything of this host, as one task."""
        unsubscribe = self.events.subscribe(ExtensionStateChanged, self._declarations.on_state_changed)
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
                tasks.start_soon(self._revocations.keep_writing, self._consent.retry_revocations)
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
            self._revocations.note(id, error)
            raise
        self._revocations.note(id, None)

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
        extension = self._extensions.extensions[tool.extension]
        if not hooks or not self.hooks.has_tool_hooks:
            return await extension.call_tool_json(tool.tool.name, input, timeout=timeout, meta=meta, repeat=repeat)

        async def call(tool: RegisteredTool, input: Any) -> Any:
            return await extension.call_tool_json(tool.tool.name, input, timeout=timeout, meta=meta, repeat=repeat)

        outcome = await run_tool(tool, dict(input or {}), call, self.run_hooks, limits=self.settings.limits)
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
        user = ToolRunner(self.tools, call, self._run_hooks_unattended, most_output=most, limits=self.settings.limits)
        return await user.run(use)

    # -- hooks

    async def run_hooks(self, event: HookEvent, *, can_confirm: bool = True) -> HookVerdict:
        """Consults the extensions with a hook for an event that is about to happen or has happened.

        Unless `can_confirm`, as for what a model does on its own, a confirmation is a block."""

        async def call(id: str, event: HookEvent) -> HookOutcome:
            return await self._extensions[id].consult_hook(event)

        confirm = self.settings.confirm if can_confirm else None
        return await run_hooks(
            self.hooks, event, call, confirm=confirm, limits=self.settings.limits, complain=self._report
        )

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
        return await complete_with_tools(extension.id, request, ask, use, limits=self.settings.limits)

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
        running = sum(state in RUNNING_STATES for state in statuses)
        return f"<Host {self.name}: {running} of {len(statuses)} extensions run>"

    ask_hooks = RenamedMember("run_hooks")
    places = RenamedMember("data_dir")


def open_traffic(name: str, data_dir: DataDir | None) -> LiveTraffic | None:
    """Returns the server of a host's traffic, None if it has no folder for a socket."""
    if data_dir is None:
        return None
    from becket.host.live_traffic import LiveTraffic

    return LiveTraffic(name, data_dir.folder)
