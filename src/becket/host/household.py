"""The extensions of one host, from the first start to the last stop: who starts after whom, what changes meanwhile on
disk and in the grants, and how each of them does.

Who may start is the doorkeeper's (`admitting`), the life of each the supervisor's. What they offer is whoever is told
of their copies.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal

import anyio
import anyio.to_thread
import msgspec
from msgspec import Struct

from becket.contract.handshake import Capabilities
from becket.errors import BadFile, BecketError, ExtensionRefused, NotDeclared, NotRunning
from becket.host.admitting import Doorkeeper, Guest, writes_in_root
from becket.host.diagnostics import Diagnostic, ProblemCode, Severity, without_id
from becket.host.discovery import Candidate
from becket.host.events import Events, ExtensionChanged, ExtensionDiscovered, ExtensionRestarted, ProblemFound
from becket.host.events import ExtensionRefused as ExtensionWasRefused
from becket.host.extension import Extension
from becket.host.heartbeats import Heartbeats
from becket.host.hook_plan import Hooks, HookStatus
from becket.host.launching import LaunchSettings, build_care
from becket.host.lifecycle import Health, State
from becket.host.meter import Figures
from becket.host.order import StartOrder, find_dependents, order_starts
from becket.host.redaction import redact_command
from becket.host.restart import Stagger
from becket.host.supervised import OpenCommand, Supervised
from becket.host.supervisor import Supervisor

if TYPE_CHECKING:
    from anyio.abc import TaskGroup

    from becket.peer.roles import Loop

__all__ = ["ExtensionStatus", "Household", "Watching"]

LOOK_AT_IT: Final = "look at it with `becket doctor`"
LOOK_EVERY: Final = 0.25  # seconds between two looks at the file of grants
RUNNING: Final = (State.READY, State.DEGRADED)

Watching = Literal["report", "reload"]


class ExtensionStatus(Struct, frozen=True):
    """How one extension does, at a glance. `not_persistent` are revoked permissions that could not be written down.

    `plugin` is what it said of itself at its start, in a system that has no manifests (cigen)."""

    id: str
    state: State
    health: Health
    version: str | None = None
    pid: int | None = None
    restarts: int = 0
    in_flight: int = 0
    tools: int = 0
    because: str = ""
    figures: Figures = Figures()
    dialect: str = "native"
    not_persistent: tuple[str, ...] = ()
    hooks: tuple[HookStatus, ...] = ()
    plugin: Mapping[str, Any] = {}

    def to_dict(self) -> dict[str, Any]:
        """Returns all of it as JSON has it: texts, numbers, lists and dictionaries."""
        members: dict[str, Any] = msgspec.to_builtins(self)
        return members


class Household:
    """Keeps the extensions of one host. `launch` starts a copy of one; `register` is told of each copy that is ready,
    `offer` of what one has that is not started before it is needed, and `expect` of each that may start. `hooks` tells
    how those of an extension do, and `open_command` runs what the host runs itself. What is wrong is added to
    `problems`."""

    def __init__(
        self,
        name: str,
        door: Doorkeeper,
        settings: LaunchSettings,
        *,
        events: Events,
        problems: list[Diagnostic],
        watch: Watching | None,
        launch: Callable[[Guest], Awaitable[Extension]],
        register: Callable[[Candidate, Supervised, Extension], None],
        offer: Callable[[str, Capabilities], None],
        expect: Callable[[Candidate, Supervised], None],
        hooks: Hooks,
        open_command: OpenCommand,
        loop: Loop,
    ) -> None:
        self.extensions: dict[str, Supervised] = {}  # also those that were refused and may be agreed to later
        self.candidates: dict[str, Candidate] = {}
        self._name = name
        self._door = door
        self._settings = settings
        self._events = events
        self._problems = problems
        self._watch = watch
        self._launch = launch
        self._register = register
        self._offer = offer
        self._expect = expect
        self._hooks = hooks
        self._open_command = open_command
        self._heartbeats = Heartbeats(loop)
        self._clock = loop.time
        self._refused: dict[str, ExtensionRefused] = {}
        self._in_start_check: set[str] = set()
        self._granted_in_start_check: set[str] = set()  # the check under way may not have seen the grant
        self._left_out: set[str] = set()  # for want of others, which may be agreed to later
        self._order = StartOrder(())
        self._stagger = Stagger()
        self._tried: dict[str, anyio.Event] = {}  # whether it was tried to start an extension, or never will be
        self._reloading: set[str] = set()
        self._to_reload: set[str] = set()
        self._starting = anyio.CancelScope()
        self._tasks: TaskGroup

    # -- who is there

    async def receive(self, candidates: Iterable[Candidate]) -> None:
        """Prepares all that were found; those that cannot start are refused."""
        for candidate in candidates:
            id, manifest = candidate.id, candidate.manifest
            self._events.publish(ExtensionDiscovered(id, candidate.folder, manifest.version, manifest.dialect))
            self.candidates[id] = candidate
            try:
                self._adopt(await self._door.meet(candidate))
            except ExtensionRefused as error:
                self._refuse(id, error)

    def _adopt(self, guest: Guest) -> None:
        """From now on there is a handle on an extension, which may be agreed to later."""
        id, manifest = guest.id, guest.candidate.manifest
        supervisor = Supervisor(
            id,
            lambda: self._start_copy(guest),
            events=self._events,
            care=build_care(guest.candidate, self._settings),
            command=redact_command(guest.outcome.command),  # it is told in events
            version=manifest.version,
            stagger=self._stagger,
            renew=lambda: self._renew(guest),
            heartbeats=self._heartbeats,
            clock=self._clock,
        )
        extension = self.extensions[id] = Supervised(supervisor, guest.gate, self._open_command)
        supervisor.arrange(lambda copy: self._register(self.candidates[id], extension, copy))
        self._tried[id] = anyio.Event()
        if not guest.needs_consent:
            self._expect(guest.candidate, extension)

    async def _start_copy(self, guest: Guest) -> Extension:
        extension = await self._launch(guest)
        if writes_in_root(guest.candidate):
            self._tasks.start_soon(self._clean_up, self._door.remove_discarded, guest.id)
        return extension

    async def _renew(self, guest: Guest) -> None:
        """Lets an extension be started next with the files that it has now."""
        candidate = await self._door.readmit(guest)
        self.candidates[guest.id] = candidate
        supervisor = self.extensions[guest.id].supervisor
        care = build_care(candidate, self._settings)
        supervisor.adopt(care, command=supervisor.command, version=candidate.manifest.version)

    def _refuse(self, id: str, error: ExtensionRefused) -> None:
        self._problems.append(
            Diagnostic(
                code=ProblemCode.REFUSED,
                extension=id,
                path=self.candidates[id].folder,
                problem=error.because,
                hint=error.hint or LOOK_AT_IT,
            )
        )
        self._refused[id] = error
        self._events.publish(ExtensionWasRefused(id, error.because, error.hint))

    def _complain(self, diagnostic: Diagnostic) -> None:
        self._problems.append(diagnostic)
        self._events.publish(ProblemFound(diagnostic))

    def __getitem__(self, id: str) -> Supervised:
        """Returns the handle on an extension. Raises what `Host.__getitem__` raises."""
        if id in self._refused:
            raise self._refused[id]
        if id not in self.extensions:
            raise NotDeclared(self._name, "extension", id, [*self.extensions])
        return self.extensions[id]

    def __iter__(self) -> Iterator[str]:
        return iter([id for id in self.extensions if id not in self._refused])

    async def ready(self, id: str) -> Supervised:
        """Waits until an extension runs, also until somebody has agreed to it. Raises why it does not run."""
        extension = self[id]
        await self._tried[id].wait()
        if id in self._refused:
            raise self._refused[id]
        await extension.supervisor.ready()
        return extension

    async def settled(self) -> None:
        """Waits until it was tried to start all of them."""
        for tried in [*self._tried.values()]:
            await tried.wait()

    # -- life

    async def run(self, started: anyio.Event, closing: anyio.Event) -> None:
        """Keeps the extensions until `closing` is set, and stops them then. Sets `started` when others may use them."""
        unsubscribe = self._events.subscribe(ExtensionRestarted, self._hear_of_restart)
        try:
            async with anyio.create_task_group() as tasks:
                self._tasks = tasks
                for extension in self.extensions.values():
                    tasks.start_soon(extension.supervisor.run)
                tasks.start_soon(self._start_all)
                if self._settings.places is not None:
                    tasks.start_soon(self._follow_grants)
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
                await self._clean_up(self._door.remove_unused_copies)

    async def _clean_up(self, remove: Callable[..., object], *arguments: object) -> None:
        try:
            await anyio.to_thread.run_sync(remove, *arguments)
        except BadFile as error:
            self._complain(
                Diagnostic(
                    code=ProblemCode.COPIES_NOT_REMOVED,
                    problem=str(error),
                    hint="remove it by hand",
                    severity=Severity.WARNING,
                )
            )

    async def _start_all(self) -> None:
        """Starts all that may: those that nobody need be asked about at once, the others as they are agreed to."""
        order = self._order = order_starts(self._after())
        for diagnostic in order.diagnostics:
            self._complain(diagnostic)
        for id in order.left_out:
            self._leave_out(id)
        ids = [id for wave in order.waves for id in wave]
        admitted = {id: anyio.Event() for id in ids}
        with self._starting:
            async with anyio.create_task_group() as tasks:
                for id in ids:
                    tasks.start_soon(self._start_one, id, admitted[id])
                    if not self._door.guests[id].needs_consent:
                        tasks.start_soon(self._admit, id, admitted[id])
                for id in self.candidates:  # in the order in which they were found
                    if id in admitted and self._door.guests[id].needs_consent:
                        await self._admit(id, admitted[id])
            await self._clean_up(self._door.remove_unused_copies)

    def _after(self) -> dict[str, tuple[str, ...]]:
        """Returns for each extension those that must be ready before it."""
        return {id: self.candidates[id].manifest.after for id in self.extensions}

    async def _admit(self, id: str, done: anyio.Event) -> None:
        self._in_start_check.add(id)
        try:
            await self._door.admit(self._door.guests[id])
            self._expect(self.candidates[id], self.extensions[id])
        except ExtensionRefused as error:
            self._refuse(id, error)
        finally:
            self._in_start_check.discard(id)
            done.set()
        if id in self._granted_in_start_check:
            self._granted_in_start_check.discard(id)
            await self._tried[id].wait()
            await self.reconsider(id)

    async def _start_one(self, id: str, admitted: anyio.Event) -> None:
        try:
            await admitted.wait()
            if id in self._refused:
                return
            for needed in self.candidates[id].manifest.after:
                await self._tried[needed].wait()
                if self._is_refused(needed):
                    self._complain(
                        Diagnostic(
                            code=ProblemCode.DEPENDENCY_MISSING,
                            extension=id,
                            problem=f"needs {needed}, which was refused",
                            hint=f"find out why with `becket doctor`, or take {needed} out of `after`",
                        )
                    )
                    self._leave_out(id)
                    return
            await self._start_or_offer(id)
        except BecketError as error:  # one bad extension never stops the others; its own state tells why
            self._problems.append(
                Diagnostic(
                    code=ProblemCode.START_FAILED,
                    extension=id,
                    path=self.candidates[id].folder,
                    problem=without_id(id, str(error)),
                    hint="look at what it writes to stderr, and try its command with `becket check`",
                )
            )
        finally:
            self._tried[id].set()

    async def _start_or_offer(self, id: str) -> None:
        """Starts an extension, or offers what it is known to have until somebody needs it."""
        extension, declared = self.extensions[id], self.candidates[id].declared
        if declared is None or not extension.supervisor.care.starts_when_needed:
            await extension.start()
        else:
            self._offer(id, declared)

    def _leave_out(self, id: str) -> None:
        self._left_out.add(id)
        self.extensions[id].supervisor.refuse(ExtensionRefused(id, "what it needs is not there"))
        self._tried[id].set()

    def _is_refused(self, id: str) -> bool:
        return id in self._refused or isinstance(self.extensions[id].supervisor.failure, ExtensionRefused)

    def _hear_of_restart(self, event: ExtensionRestarted) -> None:
        self._tasks.start_soon(self._restart_dependents, event.extension)

    async def _restart_dependents(self, id: str) -> None:
        """Starts anew those that need an extension which was: what they knew of the one before it is void."""
        for dependent in find_dependents(id, self._after()):
            supervisor = self.extensions[dependent].supervisor
            if supervisor.state in RUNNING:
                try:
                    await supervisor.replace()
                except BecketError:
                    continue  # its own state tells why

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

    # -- what changes

    async def _watch_files(self) -> None:
        from becket.host.watcher import watch_folders

        found = {id: self.candidates[id] for id in self.extensions}
        folders = {id: candidate.folder for id, candidate in found.items()}
        files = {id: candidate.files for id, candidate in found.items() if candidate.files is not None}
        async for changed in watch_folders(folders, files=files, limits=self._settings.limits):
            self._events.publish(ExtensionChanged(changed.extension, changed.paths))
            if self._watch == "reload" and changed.digest is not None:
                self._tasks.start_soon(self._reload, changed.extension)

    async def _reload(self, id: str) -> None:
        """Puts changed files in the place of those that run, if they may; changes meanwhile are one more reload."""
        self._to_reload.add(id)
        if id in self._reloading:
            return
        self._reloading.add(id)
        try:
            while id in self._to_reload:
                self._to_reload.discard(id)
                if self.extensions[id].supervisor.was_stopped:
                    continue  # whoever starts it again starts what is there then
                try:
                    await self.extensions[id].reload()
                except NotRunning:
                    continue  # it was stopped meanwhile
                except ExtensionRefused as error:
                    problem = f"{error.because}; the files that run stay"
                    self._complain(
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
                    problem = f"the changed files do not start, and those that run stay: {text}"
                    self._complain(
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

    async def _follow_grants(self) -> None:
        """Takes over what another program writes into the file of grants.

        A look costs less than somebody who watches, and works on every kind of disk."""
        while True:
            await anyio.sleep(LOOK_EVERY)
            if not self._door.has_new_grants():
                continue
            try:
                changes = await self._door.take_over()
            except BadFile as error:
                self._complain(
                    Diagnostic(
                        code=ProblemCode.GRANTS_INVALID, problem=str(error), hint="until then what held before holds on"
                    )
                )
                continue
            for id, is_about_others in changes.items():
                if is_about_others and self._watch == "reload":
                    self._tasks.start_soon(self._reload, id)
                await self.reconsider(id)

    async def agree_to(self, id: str) -> None:
        """Says yes to an extension and to all that it asks for. Raises what `Host.grant` raises."""
        if id not in self._door.guests:
            self[id]  # raises: it was never found, or is none that could start
        await self._door.agree_to(id)

    async def reconsider(self, id: str) -> None:
        """Starts an extension that was refused, where it may start now, and then those that were left out for it."""
        guest = self._door.guests.get(id)
        if id in self._in_start_check:
            self._granted_in_start_check.add(id)
            return
        if id not in self._refused or guest is None:
            return
        try:
            if not await self._door.look_again(guest):
                return
        except ExtensionRefused:
            return  # as before; it was told why
        del self._refused[id]
        admitted = anyio.Event()
        for one in (id, *self._find_waiting_for(id)):
            self._left_out.discard(one)
            self._tried[one] = anyio.Event()
            self._tasks.start_soon(self._start_one, one, admitted)  # each waits for those that it needs
        self._tasks.start_soon(self._admit, id, admitted)

    def _find_waiting_for(self, id: str) -> list[str]:
        """Returns those that were left out and have all that they need once this one runs, also through others."""
        after, waiting = self._after(), [id]
        for dependent in find_dependents(id, after):
            lacks = [needed for needed in after[dependent] if needed not in waiting and self._is_refused(needed)]
            if dependent in self._left_out and not lacks:
                waiting.append(dependent)
        return waiting[1:]

    # -- how they do

    def status(self) -> tuple[ExtensionStatus, ...]:
        """Returns how all extensions do, by id. Any thread may ask: what changes meanwhile is read from copies."""
        now = self._clock()
        errors = {**self._refused}
        found = [
            self._status_of(id, extension, now) for id, extension in [*self.extensions.items()] if id not in errors
        ]
        refused = [
            ExtensionStatus(
                id,
                State.FAILED,
                Health.FAILED_VALIDATION,
                because=f"{error.because} ({error.hint})" if error.hint else error.because,
                dialect=self.candidates[id].manifest.dialect,
                not_persistent=self._door.unwritten_revocations(id),
            )
            for id, error in errors.items()
        ]
        return tuple(sorted([*found, *refused], key=lambda status: status.id))

    def _status_of(self, id: str, extension: Supervised, now: float) -> ExtensionStatus:
        peer = extension.peer
        process = None if peer is None else peer.process
        guest, supervisor = self._door.guests[id], extension.supervisor
        copy = supervisor.current()
        hooks = self._hooks.status(id, now)
        because = silent_hooks(hooks) if supervisor.failure is None else str(supervisor.failure)
        return ExtensionStatus(
            id,
            extension.state,
            extension.health,
            supervisor.version if copy is None or copy.version is None else copy.version,
            None if process is None else process.pid,
            extension.restarts,
            supervisor.in_flight,
            len(extension.tools),
            "somebody is asked whether it may start" if guest.needs_consent else because,
            supervisor.figures(guest.gate.calls),
            self.candidates[id].manifest.dialect,
            self._door.unwritten_revocations(id),
            hooks,
            {} if copy is None else copy.plugin,
        )


def silent_hooks(hooks: Iterable[HookStatus]) -> str:
    """Returns which hooks are out of use, in a sentence; nothing where none is."""
    out = [f"`{hook.hook}`" for hook in hooks if hook.is_out]
    return f"not consulted for a while, since it has not responded: {', '.join(out)}" if out else ""
