"""The set of extensions of one host: start order, reloads, grant changes, status and shutdown.

`starting.consent` decides which may start, and a supervisor runs each. `register` and `offer` publish what they offer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

import anyio
import anyio.to_thread
import msgspec
from msgspec import Struct

from becket.contract.handshake import Capabilities
from becket.errors import BadFile, BecketError, ExtensionRefused, NotDeclared, NotRunning
from becket.host.diagnostics import REFUSAL_SEVERITIES, Diagnostic, ProblemCode, Severity, without_id
from becket.host.events import (
    EventBus,
    ExtensionChanged,
    ExtensionDiscovered,
    ExtensionRestarted,
    ExtensionStartRefused as ExtensionWasRefused,
    ProblemFound,
)
from becket.host.extension import Extension, OpenCommand
from becket.host.extension_connection import ExtensionConnection
from becket.host.heartbeat_timer import Heartbeats
from becket.host.hook_plan import Hooks, HookStatus
from becket.host.lifecycle import RUNNING_STATES, ExtensionState, Health
from becket.host.metrics import ExtensionMetrics
from becket.host.redaction import redact_command
from becket.host.restart import Stagger
from becket.host.starting.candidate import Candidate
from becket.host.starting.consent import ConsentController, ManagedExtension, writes_in_root
from becket.host.starting.launch import LaunchSettings, build_supervision_policy
from becket.host.starting.start_order import StartOrder, build_start_order, find_dependents
from becket.host.supervisor import Supervisor
from becket.host.watcher import watch_folders

if TYPE_CHECKING:
    from anyio.abc import TaskGroup

    from becket.peer.protocols import Loop

__all__ = ["ExtensionSet", "ExtensionStatus", "WatchMode"]

LOOK_AT_IT: Final = "look at it with `becket doctor`"
GRANTS_POLL_INTERVAL: Final = 0.25  # seconds between two checks of the grants file

WatchMode = Literal["report", "reload"]


class ExtensionStatus(Struct, frozen=True):
    """The status of one extension. `not_persistent` are revoked permissions that could not be stored.

    `plugin` is what it reported about itself at its start, in a system without manifests."""

    id: str
    state: ExtensionState
    health: Health
    version: str | None = None
    pid: int | None = None
    restarts: int = 0
    in_flight: int = 0
    tools: int = 0
    because: str = ""
    metrics: ExtensionMetrics = msgspec.field(default=ExtensionMetrics(), name="figures")  # its name in JSON
    dialect: str = "native"
    not_persistent: tuple[str, ...] = ()
    hooks: tuple[HookStatus, ...] = ()
    plugin: Mapping[str, Any] = {}

    def to_dict(self) -> dict[str, Any]:
        """Returns all of it as JSON values."""
        members: dict[str, Any] = msgspec.to_builtins(self)
        return members


class ExtensionSet:
    """Runs the extensions of one host.

    `launch` starts a process of one; `register` is called with each connection that is ready, `offer` with the
    declarations of one that is started on demand, and `expect` with each that may start. `hooks` returns the state of
    an extension's hooks, and `open_command` runs commands of the host. Problems are added to `problems`."""

    def __init__(
        self,
        name: str,
        consent: ConsentController,
        settings: LaunchSettings,
        *,
        events: EventBus,
        problems: list[Diagnostic],
        watch: WatchMode | None,
        launch: Callable[[ManagedExtension], Awaitable[ExtensionConnection]],
        register: Callable[[Candidate, Extension, ExtensionConnection], None],
        offer: Callable[[str, Capabilities], None],
        expect: Callable[[Candidate, Extension], None],
        hooks: Hooks,
        open_command: OpenCommand,
        loop: Loop,
    ) -> None:
        self.extensions: dict[str, Extension] = {}  # also those that were refused and may be approved later
        self.candidates: dict[str, Candidate] = {}
        self._name = name
        self._consent = consent
        self._settings = settings
        self._events = events
        self._problems = problems
        self._watch = watch
        self._launch = launch
        self._register = register
        self._register_lazily = offer
        self._expect = expect
        self._hooks = hooks
        self._open_command = open_command
        self._heartbeats = Heartbeats(loop)
        self._clock = loop.time
        self._refused: dict[str, ExtensionRefused] = {}
        self._in_start_check: set[str] = set()
        self._granted_in_start_check: set[str] = set()  # a check in progress may not have seen the grant
        self._excluded: set[str] = set()  # they need others, which may be approved later
        self._order = StartOrder(())
        self._stagger = Stagger()
        self._start_attempted: dict[
            str, anyio.Event
        ] = {}  # set once the first start of an extension was attempted, or never will be
        self._reloading: set[str] = set()
        self._pending_reloads: set[str] = set()
        self._starting = anyio.CancelScope()
        self._tasks: TaskGroup

    # -- members

    async def add_candidates(self, candidates: Iterable[Candidate]) -> None:
        """Prepares all candidates; those that cannot start are refused."""
        for candidate in candidates:
            id, manifest = candidate.id, candidate.manifest
            self._events.publish(ExtensionDiscovered(id, candidate.folder, manifest.version, manifest.dialect))
            self.candidates[id] = candidate
            try:
                self._add_extension(await self._consent.evaluate(candidate))
            except ExtensionRefused as error:
                self._refuse(id, error)

    def _add_extension(self, managed: ManagedExtension) -> None:
        """Adds the handle of an extension, which may be approved later."""
        id, manifest = managed.id, managed.candidate.manifest
        supervisor = Supervisor(
            id,
            lambda: self._start_copy(managed),
            events=self._events,
            supervision=build_supervision_policy(managed.candidate, self._settings),
            command=redact_command(managed.decision.command),  # events report it
            version=manifest.version,
            stagger=self._stagger,
            before_reload=lambda: self._prepare_reload(managed),
            heartbeats=self._heartbeats,
            clock=self._clock,
        )
        extension = self.extensions[id] = Extension(supervisor, managed.gate, self._open_command)
        supervisor.add_initializer(lambda copy: self._register(self.candidates[id], extension, copy))
        self._start_attempted[id] = anyio.Event()
        if not managed.needs_consent:
            self._expect(managed.candidate, extension)

    async def _start_copy(self, managed: ManagedExtension) -> ExtensionConnection:
        extension = await self._launch(managed)
        if writes_in_root(managed.candidate):
            self._tasks.start_soon(self._clean_up, self._consent.remove_discarded, managed.id)
        return extension

    async def _prepare_reload(self, managed: ManagedExtension) -> None:
        """Prepares an extension so that its next start uses the current files."""
        candidate = await self._consent.approve_reload(managed)
        self.candidates[managed.id] = candidate
        supervisor = self.extensions[managed.id].supervisor
        supervision = build_supervision_policy(candidate, self._settings)
        supervisor.reconfigure(supervision, command=supervisor.command, version=candidate.manifest.version)

    def _refuse(self, id: str, error: ExtensionRefused) -> None:
        code = ProblemCode(error.code)
        self._problems.append(
            Diagnostic(
                code=code,
                extension=id,
                path=self.candidates[id].folder,
                problem=error.because,
                hint=error.hint or LOOK_AT_IT,
                severity=REFUSAL_SEVERITIES.get(code, Severity.ERROR),
            )
        )
        self._refused[id] = error
        self._events.publish(ExtensionWasRefused(id, error.because, error.hint))

    def _report(self, diagnostic: Diagnostic) -> None:
        self._problems.append(diagnostic)
        self._events.publish(ProblemFound(diagnostic))

    def __getitem__(self, id: str) -> Extension:
        """Returns the handle of an extension. Raises what `Host.__getitem__` raises."""
        if id in self._refused:
            raise self._refused[id]
        if id not in self.extensions:
            raise NotDeclared(self._name, "extension", id, [*self.extensions])
        return self.extensions[id]

    def __iter__(self) -> Iterator[str]:
        return iter([id for id in self.extensions if id not in self._refused])

    async def ready(self, id: str) -> Extension:
        """Waits until an extension runs, and for the user's consent to it. Raises why it does not run."""
        extension = self[id]
        await self._start_attempted[id].wait()
        if id in self._refused:
            raise self._refused[id]
        await extension.supervisor.ready()
        return extension

    async def settled(self) -> None:
        """Waits until a start of each of them was attempted."""
        for tried in [*self._start_attempted.values()]:
            await tried.wait()

    # -- lifecycle

    async def run(self, started: anyio.Event, closing: anyio.Event) -> None:
        """Runs the extensions until `closing` is set, then stops them. Sets `started` when they can be used."""
        unsubscribe = self._events.subscribe(ExtensionRestarted, self._on_restarted)
        try:
            async with anyio.create_task_group() as tasks:
                self._tasks = tasks
                for extension in self.extensions.values():
                    tasks.start_soon(extension.supervisor.run)
                tasks.start_soon(self._start_all)
                if self._settings.data_dir is not None:
                    tasks.start_soon(self._watch_grants)
                if self._watch is not None:
                    tasks.start_soon(self._watch_files)
                started.set()
                await closing.wait()
                self._starting.cancel()
                await self._stop_in_order()
                tasks.cancel_scope.cancel()
        finally:
            unsubscribe()
            with anyio.CancelScope(shield=True):
                await self._clean_up(self._consent.remove_unused_snapshots)

    async def _clean_up(self, remove: Callable[..., object], *arguments: object) -> None:
        try:
            await anyio.to_thread.run_sync(remove, *arguments)
        except BadFile as error:
            self._report(
                Diagnostic(
                    code=ProblemCode.COPIES_NOT_REMOVED,
                    problem=str(error),
                    hint="remove it by hand",
                    severity=Severity.WARNING,
                )
            )

    async def _start_all(self) -> None:
        """Starts approved extensions at once, and the others when the user consents."""
        order = self._order = build_start_order(self._dependencies())
        for diagnostic in order.diagnostics:
            self._report(diagnostic)
        for id in order.excluded:
            self._exclude(id)
        ids = [id for wave in order.waves for id in wave]
        prompted = {id for id in ids if self._consent.extensions[id].needs_consent}
        attempted = [self._start_attempted[id] for id in ids]  # a grant that comes meanwhile begins another attempt
        try:
            with self._starting:
                async with anyio.create_task_group() as tasks:
                    for id in ids:
                        if id not in prompted:
                            tasks.start_soon(self._approve_and_start, id)
                    for id in self.candidates:  # in discovery order, one prompt at a time
                        if id in prompted:
                            await self._approve_start(id)
                            tasks.start_soon(self._start_one, id)
                await self.settled()
                await self._clean_up(self._consent.remove_unused_snapshots)
        finally:
            for event in attempted:  # also of those that were not attempted before the host ended
                event.set()

    def _dependencies(self) -> dict[str, tuple[str, ...]]:
        """Returns for each extension those that must be ready before it."""
        return {id: self.candidates[id].manifest.after for id in self.extensions}

    async def _approve_and_start(self, id: str) -> None:
        await self._approve_start(id)
        await self._start_one(id)

    async def _approve_start(self, id: str) -> None:
        self._in_start_check.add(id)
        try:
            await self._consent.approve_start(self._consent.extensions[id])
            self._expect(self.candidates[id], self.extensions[id])
        except ExtensionRefused as error:
            self._refuse(id, error)
        finally:
            self._in_start_check.discard(id)

    async def _start_one(self, id: str) -> None:
        """Begins to start an extension once those that it needs were started; `_on_start_settled` does the rest."""
        is_begun = False
        try:
            if id not in self._refused and await self._wait_for_needed(id):
                is_begun = self._begin_start(id)
        finally:
            if not is_begun:
                self._start_attempted[id].set()
        if id in self._granted_in_start_check:
            self._granted_in_start_check.discard(id)
            await self.retry_refused(id)

    async def _wait_for_needed(self, id: str) -> bool:
        """Returns whether those that an extension needs were started; excludes it if one of them was refused."""
        for needed in self.candidates[id].manifest.after:
            await self._start_attempted[needed].wait()
            if self._is_refused(needed):
                self._report(
                    Diagnostic(
                        code=ProblemCode.DEPENDENCY_MISSING,
                        extension=id,
                        problem=f"needs {needed}, which was refused",
                        hint=f"find out why with `becket doctor`, or take {needed} out of `after`",
                    )
                )
                self._exclude(id)
                return False
        return True

    def _begin_start(self, id: str) -> bool:
        """Starts an extension and returns True; or offers its declarations until it is needed."""
        supervisor, declared = self.extensions[id].supervisor, self.candidates[id].declared
        if declared is not None and supervisor.supervision.starts_on_demand:
            self._register_lazily(id, declared)
            return False
        try:
            supervisor.start_nowait(partial(self._on_start_settled, id))
        except BecketError as error:  # the host closes
            self._add_start_problem(id, error)
            return False
        return True

    def _on_start_settled(self, id: str) -> None:
        supervisor = self.extensions[id].supervisor
        if supervisor.state is ExtensionState.FAILED and supervisor.failure is not None:
            self._add_start_problem(id, supervisor.failure)
        self._start_attempted[id].set()

    def _add_start_problem(self, id: str, error: BecketError) -> None:
        self._problems.append(
            Diagnostic(
                code=ProblemCode.START_FAILED,
                extension=id,
                path=self.candidates[id].folder,
                problem=without_id(id, str(error)),
                hint="look at what it writes to stderr, and try its command with `becket check`",
            )
        )

    def _exclude(self, id: str) -> None:
        self._excluded.add(id)
        self.extensions[id].supervisor.refuse(ExtensionRefused(id, "what it needs is not there"))
        self._start_attempted[id].set()

    def _is_refused(self, id: str) -> bool:
        return id in self._refused or isinstance(self.extensions[id].supervisor.failure, ExtensionRefused)

    def _on_restarted(self, event: ExtensionRestarted) -> None:
        self._tasks.start_soon(self._restart_dependents, event.extension)

    async def _restart_dependents(self, id: str) -> None:
        """Restarts the extensions that need one which was restarted: what they knew of it is void."""
        for dependent in find_dependents(id, self._dependencies()):
            supervisor = self.extensions[dependent].supervisor
            if supervisor.state in RUNNING_STATES:
                try:
                    await supervisor.replace()
                except BecketError:
                    continue  # its own state has the reason

    async def _stop_in_order(self) -> None:
        waves = self._order.stop_waves or (tuple(self.extensions),)
        for wave in waves:
            async with anyio.create_task_group() as tasks:
                for id in wave:
                    tasks.start_soon(self._stop_one, self.extensions[id].supervisor)
        async with anyio.create_task_group() as tasks:
            for extension in self.extensions.values():
                tasks.start_soon(extension.supervisor.close)

    async def _stop_one(self, supervisor: Supervisor) -> None:
        await self._settings.slices.take_turn()
        await supervisor.close()

    # -- changes

    async def _watch_files(self) -> None:
        found = {id: self.candidates[id] for id in self.extensions}
        folders = {id: candidate.folder for id, candidate in found.items()}
        files = {id: candidate.files for id, candidate in found.items() if candidate.files is not None}
        # Closed here when the host ends within the body of the loop; otherwise the collector would find it open.
        async with aclosing(watch_folders(folders, files=files, limits=self._settings.limits)) as changes:
            async for changed in changes:
                self._events.publish(ExtensionChanged(changed.extension, changed.paths))
                if self._watch != "reload" or changed.digest is None:
                    continue
                if not await self._consent.has_only_added_files(changed.extension):
                    self._tasks.start_soon(self._reload, changed.extension)

    async def _reload(self, id: str) -> None:
        """Replaces the running files by changed ones, if they may run; further changes are one more reload."""
        self._pending_reloads.add(id)
        if id in self._reloading:
            return
        self._reloading.add(id)
        try:
            while id in self._pending_reloads:
                self._pending_reloads.discard(id)
                if self.extensions[id].supervisor.was_stopped:
                    continue  # the next start uses the current files
                try:
                    await self.extensions[id].reload()
                except NotRunning:
                    continue  # it was stopped meanwhile
                except ExtensionRefused as error:
                    problem = f"{error.because}; the running files are kept"
                    self._report(
                        Diagnostic(
                            code=ProblemCode.RELOAD_FAILED,
                            extension=id,
                            path=self.candidates[id].folder,
                            problem=problem,
                            hint=error.hint or LOOK_AT_IT,
                        )
                    )
                except BecketError as error:
                    text = without_id(id, str(error))
                    problem = f"the changed files do not start, and the running ones are kept: {text}"
                    self._report(
                        Diagnostic(
                            code=ProblemCode.RELOAD_FAILED,
                            extension=id,
                            path=self.candidates[id].folder,
                            problem=problem,
                            hint="correct them: the next change is tried again",
                        )
                    )
        finally:
            self._reloading.discard(id)

    async def _watch_grants(self) -> None:
        """Applies what another program writes into the grants file.

        Polling costs less than a watcher, and works on every file system."""
        while True:
            await anyio.sleep(GRANTS_POLL_INTERVAL)
            if not self._consent.has_grant_changes():
                continue
            try:
                changes = await self._consent.apply_grant_changes()
            except BadFile as error:
                self._report(
                    Diagnostic(
                        code=ProblemCode.GRANTS_INVALID, problem=str(error), hint="until then the previous grants apply"
                    )
                )
                continue
            for id, is_about_others in changes.items():
                if is_about_others and self._watch == "reload":
                    self._tasks.start_soon(self._reload, id)
                await self.retry_refused(id)

    async def approve(self, id: str) -> None:
        """Approves an extension with all that it requests. Raises what `Host.grant` raises."""
        if id not in self._consent.extensions:
            self[id]  # raises: it was never found, or cannot start
        await self._consent.approve(id)

    async def retry_refused(self, id: str) -> None:
        """Starts a refused extension, if it may start now, and then those that were excluded because of it."""
        managed = self._consent.extensions.get(id)
        if id in self._in_start_check:
            self._granted_in_start_check.add(id)
            return
        if id not in self._refused or managed is None:
            return
        try:
            if not await self._consent.recheck(managed):
                return
        except ExtensionRefused:
            return  # unchanged; the reason was reported
        del self._refused[id]
        self._start_attempted[id] = anyio.Event()
        for dependent in self._find_unblocked(id):
            self._excluded.discard(dependent)
            self._start_attempted[dependent] = anyio.Event()
            self._tasks.start_soon(self._start_one, dependent)  # which waits for those that it needs
        self._tasks.start_soon(self._approve_and_start, id)

    def _find_unblocked(self, id: str) -> list[str]:
        """Returns the excluded extensions that have all that they need once this one runs, also through others."""
        after, waiting = self._dependencies(), [id]
        for dependent in find_dependents(id, after):
            lacks = [needed for needed in after[dependent] if needed not in waiting and self._is_refused(needed)]
            if dependent in self._excluded and not lacks:
                waiting.append(dependent)
        return waiting[1:]

    # -- status

    def status(self) -> tuple[ExtensionStatus, ...]:
        """Returns the status of all extensions, by id. Thread-safe: it reads from copies."""
        now = self._clock()
        errors = {**self._refused}
        found = [
            self._status_of(id, extension, now) for id, extension in [*self.extensions.items()] if id not in errors
        ]
        refused = [
            ExtensionStatus(
                id,
                ExtensionState.FAILED,
                Health.FAILED_VALIDATION,
                because=f"{error.because} ({error.hint})" if error.hint else error.because,
                dialect=self.candidates[id].manifest.dialect,
                not_persistent=self._consent.unwritten_revocations(id),
            )
            for id, error in errors.items()
        ]
        return tuple(sorted([*found, *refused], key=lambda status: status.id))

    def _status_of(self, id: str, extension: Extension, now: float) -> ExtensionStatus:
        managed, supervisor = self._consent.extensions[id], extension.supervisor
        process = None if extension.is_closed else extension.peer.process
        hooks = self._hooks.status(id, now)
        because = silent_hooks(hooks) if supervisor.failure is None else str(supervisor.failure)
        return ExtensionStatus(
            id,
            extension.state,
            extension.health,
            extension.version or supervisor.version,
            None if process is None else process.pid,
            extension.restarts,
            supervisor.in_flight,
            len(extension.tools),
            "waiting for consent" if managed.needs_consent else because,
            supervisor.metrics(managed.gate.calls),
            self.candidates[id].manifest.dialect,
            self._consent.unwritten_revocations(id),
            hooks,
            extension.plugin,
        )


def silent_hooks(hooks: Iterable[HookStatus]) -> str:
    """Returns which hooks are suspended, in a sentence; empty if none is."""
    out = [f"`{hook.hook}`" for hook in hooks if hook.is_out]
    return f"not consulted for a while, since it has not responded: {', '.join(out)}" if out else ""
