"""Consent: decides which extensions may start, prompts the user, stores approvals, applies grant changes.

The start check decides (`start_check`); this module applies it to the files, the grants and the users of one host. The
supervisor starts what may start.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

import anyio
import anyio.to_thread
from msgspec import Struct
from msgspec.structs import replace

from becket.contract.audit import ConsentRefused, FilesChanged
from becket.dialects import DIALECTS, find_dialect
from becket.errors import BadFile, ExtensionRefused, RevocationNotPersistent, StartFailed
from becket.host.command_lines import NO_OPTIONS, CommandLines
from becket.host.diagnostics import Diagnostic, ProblemCode, Severity
from becket.host.events import EventBus, PermissionGranted, PermissionRevoked
from becket.host.persistence import Persistence
from becket.host.serving.audited_gate import AuditedGate, record_event
from becket.host.starting.approvals import Approval, find_changes
from becket.host.starting.candidate import Candidate
from becket.host.starting.connect import required_permissions
from becket.host.starting.consent_request import AskConsent, ConsentRequest, describe_request
from becket.host.starting.environment import ExtensionVariables
from becket.host.starting.grants_file import FILE_NAME, GrantEntry
from becket.host.starting.launch import LaunchSettings, LaunchSpec, list_launch_variables, resolve_extension_config
from becket.host.starting.paths import is_below
from becket.host.starting.programs import list_program_folders, relocate_command, relocate_path
from becket.host.starting.snapshot import FolderSnapshot, create_snapshot, find_snapshot, remove_snapshots
from becket.host.starting.start_check import (
    NeedsConsent,
    StartAllowed,
    StartDecision,
    StartRefused,
    decide_start,
    digest_candidate,
    effective_grants,
    encode_listed,
    list_files,
    refuse_uncopyable,
    run_preflight,
)
from becket.host.starting.working_copies import open_working_copy, remove_discarded, remove_working_copies
from becket.jsonrpc.calls import IdCounter
from becket.permissions.gate import MAX_PROMPTS
from becket.permissions.grants import Grants
from becket.permissions.names import PERMISSIONS
from becket.permissions.policies import is_async

__all__ = ["ConsentController", "ManagedExtension", "writes_in_root"]

T = TypeVar("T")

MAKE_WRITABLE: Final = "make the data folder writable, and make room on its disk"
CONSENT_TIMEOUT: Final = 60.0  # seconds for the user's consent; no response refuses
MAX_RECHECKS: Final = 3  # attempts with files that change during the check
BY_USER: Final = "answer"
BY_HOST: Final = "host"


class ApprovedStart(Struct, frozen=True):
    """What was approved: these files of an extension, with this launch.

    `digest` is that of the files. It `is_bound` to them if no others may start; with a launch from the host's own copy,
    no others can."""

    candidate: Candidate
    launch: LaunchSpec
    digest: str
    by: str
    is_bound: bool = False


class ManagedExtension:
    """An extension of a host, approved or not. It has the same gate for the whole life of the host."""

    def __init__(self, candidate: Candidate, outcome: StartAllowed | NeedsConsent, gate: AuditedGate) -> None:
        self.candidate = candidate
        self.decision = outcome
        self.gate = gate
        self.approval: ApprovedStart | None = None  # None until it may start
        self.next_approval: ApprovedStart | None = None  # what its next start uses
        self.ids = IdCounter()  # state of its requests, in some dialects

    @property
    def id(self) -> str:
        """The id of the extension."""
        return self.candidate.id

    @property
    def needs_consent(self) -> bool:
        """Whether it needs consent before it may start."""
        return self.approval is None and isinstance(self.decision, NeedsConsent)


class ConsentController:
    """Decides about the extensions of one host. `host_grants` are the grants of the host's own program,
    `configured` its values for the configuration of extensions. `find_again` returns the current candidate of an
    extension whose files may have changed, and `complain` reports a diagnostic to the operator. `lines` builds the
    commands in hints."""

    def __init__(
        self,
        persistence: Persistence,
        settings: LaunchSettings,
        *,
        host_grants: Mapping[str, Grants],
        configured: Mapping[str, Mapping[str, object]],
        in_development: bool,
        events: EventBus,
        complain: Callable[[Diagnostic], None],
        find_again: Callable[[str], Candidate],
        lines: CommandLines = NO_OPTIONS,
    ) -> None:
        self.extensions: dict[str, ManagedExtension] = {}
        self._persistence = persistence
        self._settings = settings
        self._host_grants = host_grants
        self._configured_values = configured
        self._in_development = in_development
        self._events = events
        self._report = complain
        self._rediscover = find_again
        self._lines = lines
        self._known = PERMISSIONS | required_permissions(settings.methods)
        self._data = () if settings.data_dir is None else (str(settings.data_dir.folder),)
        self._prompt_lock = anyio.Lock()  # one prompt at a time
        self._prompt_counts: Counter[str] = Counter()

    # -- deciding

    def decide(self, candidate: Candidate) -> StartDecision:
        """Returns whether an extension may start, as things are. Blocking: it reads all of its files."""
        settings = self._settings
        findings = run_preflight(
            candidate,
            variables=settings.variables,
            program_folders=list_program_folders(settings.variables.get("PATH", "")),
            config=resolve_extension_config(candidate, settings, self._configured_values.get(candidate.id)),
            data=self._data,
            approval=self._approval_in_place(candidate),
            limits=settings.limits,
        )
        outcome = decide_start(
            candidate.manifest,
            findings,
            entry=self._persistence.get_grants(candidate.id),
            host_grants=self._host_grants.get(candidate.id),
            variables=self.list_variables(candidate),
            in_development=self._in_development,
            can_ask=settings.ask is not None,
            known=self._known,
            dialects=frozenset(DIALECTS),
        )
        if findings.uncopyable and self._is_copied(candidate) and self._is_bound(outcome):
            return refuse_uncopyable(candidate.id, findings.uncopyable)
        return replace(outcome, lines=self._lines) if isinstance(outcome, NeedsConsent) else outcome

    def list_variables(self, candidate: Candidate) -> ExtensionVariables:
        """Returns the variables outside the base list that an extension would get."""
        return list_launch_variables(candidate, self._settings)

    def _is_copied(self, candidate: Candidate) -> bool:
        """Returns whether an extension runs from a copy of its approved files."""
        return self._settings.data_dir is not None and owns_folder(candidate) and not candidate.operator.in_place

    def _is_bound(self, outcome: StartDecision) -> bool:
        """Returns whether only approved files would start."""
        match outcome:
            case StartAllowed():
                return bool(outcome.bound_to)
            case NeedsConsent():
                return not self._in_development
            case StartRefused():
                return False

    async def evaluate(self, candidate: Candidate) -> ManagedExtension:
        """Checks a discovered extension, and returns it; it may still need consent.

        Raises:
            ExtensionRefused: it cannot start, with or without consent.
        """
        outcome = await run_in_thread(self.decide, candidate)
        if isinstance(outcome, StartRefused):
            raise outcome.error
        settings = self._settings
        gate = AuditedGate(
            candidate.id,
            outcome.grants if isinstance(outcome, StartAllowed) else self._effective_grants(candidate, ""),
            settings.audit,
            policy=settings.policy,
            asks=settings.ask is not None,
            known=self._known,
            require_parent=settings.require_parent,
        )
        managed = self.extensions[candidate.id] = ManagedExtension(candidate, outcome, gate)
        return managed

    def _effective_grants(self, candidate: Candidate, digest: str) -> Grants:
        """Returns the current grants of an extension with these files."""
        entry = self._filter_entry(self._persistence.get_grants(candidate.id), digest)
        return effective_grants(candidate.manifest, entry, self._host_grants.get(candidate.id))

    def _filter_entry(self, entry: GrantEntry | None, digest: str) -> GrantEntry:
        """Returns the part of an entry that applies to these files: denials do in any case."""
        if entry is None:
            return GrantEntry()
        return entry if self._covers(entry, digest) else replace(entry, allow=())

    def _covers(self, entry: GrantEntry, digest: str) -> bool:
        return self._in_development or entry.digest in ("", digest)

    # -- starts

    async def approve_start(self, managed: ManagedExtension) -> None:
        """Approves the start of an extension with its current files; prompts the user if needed.

        Raises:
            ExtensionRefused: it may not start, and why.
        """
        self._apply_approval(managed, await self._obtain_approval(managed.candidate, managed.decision))

    async def approve_reload(self, managed: ManagedExtension) -> Candidate:
        """Approves the current files of an extension for its next start, and returns the candidate.

        Raises:
            ExtensionRefused: they may not start, and why. The running process stays.
        """
        managed.next_approval = await self._obtain_approval(await run_in_thread(self._rediscover, managed.id))
        return managed.next_approval.candidate

    async def recheck(self, managed: ManagedExtension) -> bool:
        """Returns whether a refused extension may start now without a prompt. Call `approve_start` then.

        Raises:
            ExtensionRefused: it cannot start, with or without consent.
        """
        candidate = await run_in_thread(self._rediscover, managed.id)
        outcome = await run_in_thread(self.decide, candidate)
        if isinstance(outcome, StartRefused):
            raise outcome.error
        managed.candidate, managed.decision = candidate, outcome
        return isinstance(outcome, StartAllowed)

    async def resolve_launch(self, managed: ManagedExtension) -> LaunchSpec:
        """Returns how an extension is launched now. If its files differ from the approved ones, and there is no copy of
        these, it needs consent again. The caller must release a working copy.

        Raises:
            ExtensionRefused: it may not start any more, and why.
            StartFailed: its working copy cannot be created.
        """
        if managed.next_approval is not None:
            approved, managed.next_approval = managed.next_approval, None
            self._apply_approval(managed, approved)
        elif managed.approval is None:
            await self.approve_start(managed)
        assert managed.approval is not None
        approved = managed.approval
        entry = self._persistence.get_grants(managed.id)
        wanted = approved.digest if approved.is_bound else entry.digest if entry and self._in_development else ""
        if approved.launch.is_snapshot:
            return await self._enter_copy(managed)
        if not wanted:
            return approved.launch
        try:
            found = await run_in_thread(self._digest, approved.candidate)
        except BadFile as error:
            raise ExtensionRefused(managed.id, f"its folder: {error}") from error
        if found == wanted:
            return approved.launch
        if approved.is_bound:
            self._apply_approval(
                managed, await self._obtain_approval(await run_in_thread(self._rediscover, managed.id))
            )
            return managed.approval.launch
        record_event(self._settings.audit, FilesChanged(managed.id, wanted, found))
        return approved.launch

    async def _enter_copy(self, managed: ManagedExtension) -> LaunchSpec:
        """Returns the launch in the host's copy of the files, or in a working copy of that if the program may write."""
        for _ in range(MAX_RECHECKS):
            assert managed.approval is not None
            approved = managed.approval
            if not (approved.launch.is_snapshot and writes_in_root(approved.candidate)):
                return approved.launch
            try:
                spec = await run_in_thread(self._open_working_copy, approved)
            except BadFile as error:
                raise StartFailed(managed.id, f"its working copy cannot be created: {error}") from error
            if spec is not None:
                return spec
            # Another program has changed the host's copy: it is created anew from the approved files.
            self._apply_approval(
                managed, await self._obtain_approval(await run_in_thread(self._rediscover, managed.id))
            )
        raise ExtensionRefused(managed.id, "its files keep changing")

    async def has_only_added_files(self, id: str) -> bool:
        """Returns whether an extension that runs in place has the files that it was started with, and maybe others."""
        managed = self.extensions[id]
        if managed.approval is None or not managed.candidate.operator.in_place:
            return False
        try:
            return await run_in_thread(self._digest, managed.candidate) == managed.approval.digest
        except BadFile:
            return False

    def _digest(self, candidate: Candidate) -> str:
        approval = self._approval_in_place(candidate)
        return digest_candidate(candidate, without=self._data, approval=approval, limits=self._settings.limits)

    def _approval_in_place(self, candidate: Candidate) -> Approval | None:
        """Returns the valid approval of an extension that runs in place and may add files."""
        entry = self._persistence.get_grants(candidate.id) if candidate.operator.in_place else None
        approval = None if entry is None else self._persistence.approval_of(candidate.id)
        return approval if entry and approval and approval.digest == entry.digest else None

    def _apply_approval(self, managed: ManagedExtension, approved: ApprovedStart) -> None:
        """Applies an approval, including its grants to the gate."""
        is_other = managed.approval is None or managed.approval.digest != approved.digest
        managed.candidate, managed.approval = approved.candidate, approved
        if is_other:
            now = self._effective_grants(approved.candidate, approved.digest)
            self._change_gate(managed, managed.gate.grants, now, approved.by)

    # -- approval

    async def _obtain_approval(self, candidate: Candidate, outcome: StartDecision | None = None) -> ApprovedStart:
        """Returns the approved start. Files that change during a prompt are checked again."""
        id = candidate.id
        for _ in range(MAX_RECHECKS):
            if outcome is None:
                outcome = await run_in_thread(self.decide, candidate)
            match outcome:
                case StartRefused():
                    raise outcome.error
                case NeedsConsent():
                    await self._obtain_consent(candidate, outcome)
                    bound_to, by = "" if self._in_development else outcome.digest, BY_USER
                case StartAllowed():
                    if outcome.entry is not None and outcome.entry != self._persistence.get_grants(id):
                        await self._bind_to_digest(id, outcome.digest)
                    bound_to, by = outcome.bound_to, BY_HOST
            spec = LaunchSpec(outcome.command, candidate.folder, outcome.cwd, bound_to or None)
            approved = ApprovedStart(candidate, spec, outcome.digest, by, is_bound=bool(bound_to))
            if not bound_to or not self._is_copied(candidate):
                return approved
            try:
                copy = await run_in_thread(self._snapshot, candidate, bound_to)
            except BadFile as error:
                raise refuse_uncopyable(id, str(error)).error from error
            if copy is not None:
                return replace(approved, launch=relocate_launch(spec, copy))
            candidate, outcome = await run_in_thread(self._rediscover, id), None
        raise ExtensionRefused(id, "its files keep changing")

    async def _obtain_consent(self, candidate: Candidate, consent: NeedsConsent) -> None:
        """Prompts the user, and stores the response. What was refused already does not prompt again.

        Raises:
            ExtensionRefused: the user refused, it cannot be stored, or there were too many prompts.
        """
        id = consent.extension
        entry = self._persistence.get_grants(id)
        if entry is not None and entry.refused == consent.fingerprint:
            raise replace(consent, is_refused=True).build_refusal.error
        ask = self._settings.ask
        if ask is None:  # at once: a grant that comes meanwhile finds it refused, and starts it
            raise consent.build_refusal.error
        self._prompt_counts[id] += 1
        if self._prompt_counts[id] > MAX_PROMPTS:
            raise ExtensionRefused(id, "its files have changed too often: there are no further prompts")
        approval = await run_in_thread(self._describe, candidate, consent)
        response = await self._prompt_user(ask, await run_in_thread(self._request, consent, approval))
        if response is False:
            consent = await self._keep_refusal(consent)
        if response is not True:
            raise consent.build_refusal.error

        def agree(entry: GrantEntry) -> GrantEntry:
            undenied = [name for name in consent.permissions if name not in entry.deny]  # may be denied meanwhile
            return replace(consent, entry=entry).build_approval(undenied)

        await self._store_approval(id, agree)
        await self._keep_approval(id, approval)

    def _describe(self, candidate: Candidate, consent: NeedsConsent) -> Approval:
        """Returns the approval that a consent would give."""
        return consent.approval(list_files(candidate, consent.digest, without=self._data, limits=self._settings.limits))

    def _request(self, consent: NeedsConsent, approval: Approval) -> ConsentRequest:
        """Returns the request for a prompt, with the changes since the last consent."""
        before = self._persistence.approval_of(consent.extension)
        return consent.request(find_changes(before, approval, digest=consent.entry.digest))

    async def _keep_approval(self, id: str, approval: Approval) -> None:
        try:
            await run_in_thread(self._persistence.keep_approval, id, approval)
        except OSError as error:
            problem = f"the approval cannot be stored, so the next prompt cannot show what has changed: {error}"
            self._report(
                Diagnostic(
                    code=ProblemCode.CONSENT_NOT_PERSISTENT,
                    extension=id,
                    problem=problem,
                    hint=MAKE_WRITABLE,
                    severity=Severity.WARNING,
                )
            )

    async def _keep_refusal(self, consent: NeedsConsent) -> NeedsConsent:
        """Stores a refusal until the files or their requests change, and returns the refused consent."""
        id = consent.extension
        record_event(
            self._settings.audit,
            ConsentRefused(id, BY_USER, consent.digest or None, consent.permissions, consent.requested),
        )
        try:
            await self._change_grants(id, lambda entry: replace(entry, refused=consent.fingerprint))
        except BadFile as error:
            problem = f"the refusal cannot be stored, and the next start prompts again: {error}"
            self._report(
                Diagnostic(code=ProblemCode.CONSENT_NOT_PERSISTENT, extension=id, problem=problem, hint=MAKE_WRITABLE)
            )
            return consent
        return replace(consent, is_refused=True)

    async def _bind_to_digest(self, id: str, digest: str) -> None:
        """Binds grants without a digest to these files."""
        await self._store_approval(id, lambda entry: replace(entry, digest=entry.digest or digest))

    async def _store_approval(self, id: str, change: Callable[[GrantEntry], GrantEntry]) -> None:
        try:
            await self._change_grants(id, change)
        except BadFile as error:
            raise ExtensionRefused(id, f"the approval cannot be stored: {error}") from error

    async def _prompt_user(self, ask: AskConsent, request: ConsentRequest) -> bool | None:
        """Prompts a person whether an extension may run with all that it requests; None without a response in time."""
        response: Any = None
        async with self._prompt_lock:
            with anyio.move_on_after(CONSENT_TIMEOUT):
                try:
                    question = describe_request(request)
                    if is_async(ask):
                        requested: Any = ask(question, request)
                        response = await requested
                    else:
                        # A thread that waits for a person may wait for ever: it is abandoned.
                        response = await anyio.to_thread.run_sync(ask, question, request, abandon_on_cancel=True)
                except Exception as error:
                    problem = f"the prompt has failed: {error}"
                    self._report(
                        Diagnostic(
                            code=ProblemCode.CONSENT_FAILED,
                            extension=request.extension,
                            problem=problem,
                            hint="check the host's `ask` function",
                        )
                    )
        return response if isinstance(response, bool) else None

    # -- copies

    def _snapshot(self, candidate: Candidate, digest: str) -> str | None:
        """Returns the folder of a copy with this digest; None if the extension has other files by now."""
        data_dir, limits = self._settings.data_dir, self._settings.limits
        assert data_dir is not None
        listed = encode_listed(candidate)
        copy = find_snapshot(data_dir.snapshots, digest, listed=listed, limits=limits)
        if copy is None:
            copy = create_snapshot(
                candidate.folder, data_dir.snapshots, without=self._data, listed=listed, limits=limits
            )
        return copy.folder if copy.digest == digest else None

    def _open_working_copy(self, approved: ApprovedStart) -> LaunchSpec | None:
        """Returns the launch in a fresh working copy; None if the copy of the approved files was changed."""
        data_dir, spec = self._settings.data_dir, approved.launch
        assert data_dir is not None
        working = open_working_copy(
            data_dir.working,
            approved.candidate.id,
            FolderSnapshot(spec.folder, approved.digest, encode_listed(approved.candidate)),
            name=os.path.basename(approved.candidate.folder),
            limits=self._settings.limits,
        )
        return None if working is None else replace(relocate_launch(spec, working.folder), working=working)

    def remove_unused_snapshots(self) -> None:
        """Removes the copies that are neither in use nor approved any more. Blocking.

        Raises:
            BadFile: one cannot be removed.
        """
        if self._settings.data_dir is None:
            return
        used = {
            approved.digest
            for managed in self.extensions.values()
            for approved in (managed.approval, managed.next_approval)
            if approved
        }
        remove_snapshots(self._settings.data_dir.snapshots, used | self._persistence.approved_digests())
        remove_working_copies(
            self._settings.data_dir.working, self.extensions.keys() | self._persistence.approved_extensions()
        )

    def remove_discarded(self, id: str) -> None:
        """Removes what earlier starts of an extension have written. Blocking.

        Raises:
            BadFile: its folder cannot be read.
        """
        if self._settings.data_dir is not None:
            remove_discarded(self._settings.data_dir.working, id)

    # -- grants

    async def grant(self, id: str, names: Iterable[str]) -> None:
        """Grants permissions to an extension, from now on and for its next starts.

        Raises:
            BadFile: the grants file cannot be written; nothing has changed.
        """
        names = [*names]
        await self._change_grants(id, lambda entry: entry.with_grants(names))
        if id in self.extensions:
            for name in names:
                self._grant(self.extensions[id], name, BY_HOST)

    async def approve(self, id: str) -> None:
        """Grants an extension all that it requests. One that may not start yet is approved, with its current files.

        Raises:
            ExtensionRefused: it cannot start, with or without consent.
            BadFile: the grants file cannot be written; nothing has changed.
        """
        managed = self.extensions[id]
        if managed.approval is not None:
            await self.grant(id, managed.candidate.manifest.permissions)
            return
        await self.recheck(managed)
        candidate, outcome = managed.candidate, managed.decision
        requested, digest = candidate.manifest.permissions, outcome.digest
        variables = self.list_variables(candidate).requested
        before = self._persistence.get_grants(id)
        await self._change_grants(id, lambda entry: entry.with_grants(requested, digest, variables))
        if isinstance(outcome, NeedsConsent):
            await self._keep_approval(id, await run_in_thread(self._describe, candidate, outcome))
        if before is not None and before.refused:
            record_event(self._settings.audit, ConsentRefused(id, BY_HOST, withdrawn=True))

    async def revoke(self, id: str, names: Iterable[str]) -> None:
        """Revokes permissions at once, ends the calls that need them, and then stores the revocation.

        Raises:
            RevocationNotPersistent: the grants file cannot be written; they are revoked in this host all the same.
        """
        names = [*names]
        self._persistence.revoke(id, names)
        if id in self.extensions:
            for name in names:
                self._revoke(self.extensions[id], name, BY_HOST)
        await run_in_thread(self._persistence.write_revocations, id)

    async def retry_revocations(self) -> dict[str, RevocationNotPersistent | None]:
        """Tries again to write revocations; returns the outcome by extension."""
        return await run_in_thread(self._persistence.retry_revocations)

    def unwritten_revocations(self, id: str) -> tuple[str, ...]:
        """Returns the permissions of an extension whose revocation is not written yet."""
        return self._persistence.unwritten_revocations(id)

    def has_grant_changes(self) -> bool:
        """Returns whether another program may have changed the grants file."""
        return self._persistence.has_grant_changes()

    async def apply_grant_changes(self) -> dict[str, bool]:
        """Applies what another program has changed in the grants file; calls without a permission end.

        Returns which entries have changed, and whether each is about other files than those that run.

        Raises:
            BadFile: it cannot be read; the previous grants apply.
        """
        changes = await run_in_thread(self._persistence.reload_grants)
        return {id: self._apply_change(id, before, after) for id, (before, after) in changes.items()}

    def _apply_change(self, id: str, before: GrantEntry | None, after: GrantEntry | None) -> bool:
        managed = self.extensions.get(id)
        if managed is None or managed.approval is None:
            return False
        manifest, host_grants = managed.candidate.manifest, self._host_grants.get(id)
        was, now = (self._filter_entry(entry, managed.approval.digest) for entry in (before, after))
        is_about_others = after is not None and not self._covers(after, managed.approval.digest)
        if is_about_others:  # the approval of running files stands, except for denials
            now = replace(now, allow=was.allow)
        self._change_gate(
            managed,
            effective_grants(manifest, was, host_grants),
            effective_grants(manifest, now, host_grants),
            FILE_NAME,
        )
        return is_about_others

    async def _change_grants(self, id: str, change: Callable[[GrantEntry], GrantEntry]) -> None:
        await run_in_thread(self._persistence.change_grants, id, change)

    def _change_gate(self, managed: ManagedExtension, before: Grants, now: Grants, by: str) -> None:
        for name in sorted(before.allow | before.deny | now.allow | now.deny):
            if now.allows(name) and not before.allows(name):
                self._grant(managed, name, by)
            elif (before.allows(name) and not now.allows(name)) or name in now.deny - before.deny:
                self._revoke(managed, name, by)

    def _grant(self, managed: ManagedExtension, name: str, by: str) -> None:
        managed.gate.grant(name, by=by)
        self._events.publish(PermissionGranted(managed.id, name, by))

    def _revoke(self, managed: ManagedExtension, name: str, by: str) -> None:
        managed.gate.revoke(name, by=by)
        self._events.publish(PermissionRevoked(managed.id, name, by))


def owns_folder(candidate: Candidate) -> bool:
    """Returns whether a folder is an extension's own, with its manifest in it: then it can be run from a copy."""
    is_alone = candidate.files is None and (candidate.owns_folder or not candidate.is_listed)
    return is_alone and is_below(candidate.manifest_path, candidate.folder)


def writes_in_root(candidate: Candidate) -> bool:
    """Returns whether programs of this dialect may write in their own folder."""
    return find_dialect(candidate.manifest.dialect).host_defaults.writes_in_root


def relocate_launch(spec: LaunchSpec, copy: str) -> LaunchSpec:
    """Returns the same launch in a copy of its folder."""
    cwd = None if spec.cwd is None else relocate_path(spec.cwd, spec.folder, copy)
    return LaunchSpec(relocate_command(spec.command, spec.folder, copy), copy, cwd, spec.digest, is_snapshot=True)


async def run_in_thread(function: Callable[..., T], *arguments: Any) -> T:
    """Runs a function that waits for a disk."""
    return await anyio.to_thread.run_sync(function, *arguments)
