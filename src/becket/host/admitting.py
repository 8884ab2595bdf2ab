"""Who comes in: decides whether an extension may start, asks a person where it takes one, writes the answer down, and
sees to it that what runs is what was agreed to.

What may be decided is the gate's (`host.gate`); here it is brought to the files, the grants and the people of one host.
Starting what may start is the supervisor's.
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

from becket.contract.audit import ConsentRefused, ExtensionChanged
from becket.dialects import DIALECTS, find_dialect
from becket.errors import BadFile, ExtensionRefused, RevocationNotPersistent, StartFailed
from becket.host.approvals import Approval, find_changes
from becket.host.command_lines import NO_OPTIONS, CommandLines
from becket.host.connecting import required_by
from becket.host.consent import AskConsent, ConsentRequest, describe_request
from becket.host.diagnostics import Diagnostic, ProblemCode, Severity
from becket.host.digests import FolderCopy, copy_folder, find_copy, remove_copies
from becket.host.discovery import Candidate
from becket.host.environment import ExtensionVariables
from becket.host.events import Events, GrantGiven, GrantTaken
from becket.host.gate import (
    Admission,
    Admitted,
    NeedsConsent,
    Skipped,
    decide_admission,
    digest_candidate,
    list_files,
    look_at,
    refuse_uncopyable,
    settle_grants,
)
from becket.host.grants_file import FILE_NAME, GrantEntry
from becket.host.kept import Kept
from becket.host.launching import LaunchSettings, Way, list_launch_variables, read_config
from becket.host.manifest import is_below
from becket.host.programs import list_program_folders, move_command, move_path
from becket.host.recording import RecordingGate, record
from becket.host.working_copies import open_working_copy, remove_discarded, remove_working_copies
from becket.methods.permissions import MOST_QUESTIONS, PERMISSIONS, Grants
from becket.methods.policies import is_async
from becket.rpc.records import Ids

__all__ = ["Doorkeeper", "Guest", "writes_in_root"]

T = TypeVar("T")

MAKE_WRITABLE: Final = "make the data folder writable, and make room on its disk"
CONSENT_PATIENCE: Final = 60.0  # seconds for a person to agree; no answer is no
MOST_LOOKS: Final = 3  # at files that change while somebody looks at them
ANSWER: Final = "answer"
HOST: Final = "host"


class Agreed(Struct, frozen=True):
    """What was agreed to: these files of an extension, started by this way.

    `digest` is that of the files. It `is_bound` to them where no others may start; by a way in a copy, which is the
    host's, no others can."""

    candidate: Candidate
    way: Way
    digest: str
    by: str
    is_bound: bool = False


class Guest:
    """An extension at the door, or in the house. Its gate is the same from the beginning to the end of the host."""

    def __init__(self, candidate: Candidate, outcome: Admitted | NeedsConsent, gate: RecordingGate) -> None:
        self.candidate = candidate
        self.outcome = outcome
        self.gate = gate
        self.agreed: Agreed | None = None  # None until it may start
        self.next: Agreed | None = None  # what its next start is to be of
        self.ids = Ids()  # of what its copies are asked, in some dialects

    @property
    def id(self) -> str:
        """The id of the extension."""
        return self.candidate.id

    @property
    def needs_consent(self) -> bool:
        """Whether somebody has to agree before it may start."""
        return self.agreed is None and isinstance(self.outcome, NeedsConsent)


class Doorkeeper:
    """Lets extensions into one host. `given` are the grants of the host's own program, `configured` its values for the
    configuration of extensions. `find_again` looks for an extension whose files may have changed, and `complain` takes
    what an operator should know of. `lines` are the commands that hints name."""

    def __init__(
        self,
        kept: Kept,
        settings: LaunchSettings,
        *,
        given: Mapping[str, Grants],
        configured: Mapping[str, Mapping[str, object]],
        in_development: bool,
        events: Events,
        complain: Callable[[Diagnostic], None],
        find_again: Callable[[str], Candidate],
        lines: CommandLines = NO_OPTIONS,
    ) -> None:
        self.guests: dict[str, Guest] = {}
        self._kept = kept
        self._settings = settings
        self._given = given
        self._configured = configured
        self._in_development = in_development
        self._events = events
        self._complain = complain
        self._find_again = find_again
        self._lines = lines
        self._known = PERMISSIONS | required_by(settings.methods)
        self._data = () if settings.places is None else (str(settings.places.folder),)
        self._asking = anyio.Lock()  # a person answers one question at a time
        self._asked: Counter[str] = Counter()

    # -- deciding

    def decide(self, candidate: Candidate) -> Admission:
        """Returns whether an extension may start, as things are. It reads all of its files: not for a loop."""
        settings = self._settings
        findings = look_at(
            candidate,
            variables=settings.variables,
            program_folders=list_program_folders(settings.variables.get("PATH", "")),
            config=read_config(candidate, settings, self._configured.get(candidate.id)),
            data=self._data,
            limits=settings.limits,
        )
        outcome = decide_admission(
            candidate.manifest,
            findings,
            entry=self._kept.grants_of(candidate.id),
            given=self._given.get(candidate.id),
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
        """Returns whether an extension runs from a copy once somebody has agreed to its files."""
        return self._settings.places is not None and is_alone(candidate) and not candidate.operator.in_place

    def _is_bound(self, outcome: Admission) -> bool:
        """Returns whether only files that somebody agreed to would start."""
        match outcome:
            case Admitted():
                return bool(outcome.bound_to)
            case NeedsConsent():
                return not self._in_development
            case Skipped():
                return False

    async def meet(self, candidate: Candidate) -> Guest:
        """Looks at an extension that was found, and returns it as a guest, who may have to be agreed to.

        Raises:
            ExtensionRefused: it cannot start, whoever agrees to it.
        """
        outcome = await in_thread(self.decide, candidate)
        if isinstance(outcome, Skipped):
            raise outcome.error
        settings = self._settings
        gate = RecordingGate(
            candidate.id,
            outcome.grants if isinstance(outcome, Admitted) else self._held_by(candidate, ""),
            settings.audit,
            policy=settings.policy,
            asks=settings.ask is not None,
            known=self._known,
            require_parent=settings.require_parent,
        )
        guest = self.guests[candidate.id] = Guest(candidate, outcome, gate)
        return guest

    def _held_by(self, candidate: Candidate, digest: str) -> Grants:
        """Returns what an extension with these files holds by what is written and given now."""
        entry = self._count(self._kept.grants_of(candidate.id), digest)
        return settle_grants(candidate.manifest, entry, self._given.get(candidate.id))

    def _count(self, entry: GrantEntry | None, digest: str) -> GrantEntry:
        """Returns what of an entry holds for these files: denials do in any case."""
        if entry is None:
            return GrantEntry()
        return entry if self._is_about(entry, digest) else replace(entry, allow=())

    def _is_about(self, entry: GrantEntry, digest: str) -> bool:
        return self._in_development or entry.digest in ("", digest)

    # -- letting in

    async def admit(self, guest: Guest) -> None:
        """Settles that a guest may start, with the files that it has; a person is asked where it takes one.

        Raises:
            ExtensionRefused: it may not, and why.
        """
        self._adopt(guest, await self._agree(guest.candidate, guest.outcome))

    async def readmit(self, guest: Guest) -> Candidate:
        """Settles that a guest may start next with the files that it has now, and returns how it was found.

        Raises:
            ExtensionRefused: it may not, and why. What runs stays.
        """
        guest.next = await self._agree(await in_thread(self._find_again, guest.id))
        return guest.next.candidate

    async def look_again(self, guest: Guest) -> bool:
        """Returns whether a guest that was refused may start now without a question. `admit` it then.

        Raises:
            ExtensionRefused: it cannot start, whoever agrees to it.
        """
        candidate = await in_thread(self._find_again, guest.id)
        outcome = await in_thread(self.decide, candidate)
        if isinstance(outcome, Skipped):
            raise outcome.error
        guest.candidate, guest.outcome = candidate, outcome
        return isinstance(outcome, Admitted)

    async def enter(self, guest: Guest) -> Way:
        """Returns by which way a guest is started now. Where its files are others than those that were agreed to, and
        no copy of these is there, it is asked about again. A working copy is to be released by the caller.

        Raises:
            ExtensionRefused: it may not start any more, and why.
            StartFailed: its working copy cannot be made.
        """
        if guest.next is not None:
            agreed, guest.next = guest.next, None
            self._adopt(guest, agreed)
        elif guest.agreed is None:
            await self.admit(guest)
        assert guest.agreed is not None
        agreed = guest.agreed
        entry = self._kept.grants_of(guest.id)
        wanted = agreed.digest if agreed.is_bound else entry.digest if entry and self._in_development else ""
        if agreed.way.is_copy:
            return await self._enter_copy(guest)
        if not wanted:
            return agreed.way
        try:
            found = await in_thread(self._digest, agreed.candidate)
        except BadFile as error:
            raise ExtensionRefused(guest.id, f"its folder: {error}") from error
        if found == wanted:
            return agreed.way
        if agreed.is_bound:
            self._adopt(guest, await self._agree(await in_thread(self._find_again, guest.id)))
            return guest.agreed.way
        record(self._settings.audit, ExtensionChanged(guest.id, wanted, found))
        return agreed.way

    async def _enter_copy(self, guest: Guest) -> Way:
        """Returns the way in the host's copy of the files, or in a working copy of that where the program may write."""
        for _ in range(MOST_LOOKS):
            assert guest.agreed is not None
            agreed = guest.agreed
            if not (agreed.way.is_copy and writes_in_root(agreed.candidate)):
                return agreed.way
            try:
                way = await in_thread(self._open_working_copy, agreed)
            except BadFile as error:
                raise StartFailed(guest.id, f"its working copy cannot be made: {error}") from error
            if way is not None:
                return way
            # Another program has changed the host's copy: it is made anew of the files that were agreed to.
            self._adopt(guest, await self._agree(await in_thread(self._find_again, guest.id)))
        raise ExtensionRefused(guest.id, "its files change all the time")

    def _digest(self, candidate: Candidate) -> str:
        return digest_candidate(candidate, without=self._data, limits=self._settings.limits)

    def _adopt(self, guest: Guest, agreed: Agreed) -> None:
        """From now on this is what was agreed to; the gate lets pass what goes with it."""
        is_other = guest.agreed is None or guest.agreed.digest != agreed.digest
        guest.candidate, guest.agreed = agreed.candidate, agreed
        if is_other:
            now = self._held_by(agreed.candidate, agreed.digest)
            self._change_gate(guest, guest.gate.grants, now, agreed.by)

    # -- agreeing

    async def _agree(self, candidate: Candidate, outcome: Admission | None = None) -> Agreed:
        """Returns what was agreed to. Files that change while somebody is asked about them are looked at again."""
        id = candidate.id
        for _ in range(MOST_LOOKS):
            if outcome is None:
                outcome = await in_thread(self.decide, candidate)
            match outcome:
                case Skipped():
                    raise outcome.error
                case NeedsConsent():
                    await self._ask_for_consent(candidate, outcome)
                    bound_to, by = "" if self._in_development else outcome.digest, ANSWER
                case Admitted():
                    if outcome.entry is not None and outcome.entry != self._kept.grants_of(id):
                        await self._bind(id, outcome.digest)
                    bound_to, by = outcome.bound_to, HOST
            way = Way(outcome.command, candidate.folder, outcome.cwd, bound_to or None)
            agreed = Agreed(candidate, way, outcome.digest, by, is_bound=bool(bound_to))
            if not bound_to or not self._is_copied(candidate):
                return agreed
            try:
                copy = await in_thread(self._copy, candidate, bound_to)
            except BadFile as error:
                raise refuse_uncopyable(id, str(error)).error from error
            if copy is not None:
                return replace(agreed, way=move_way(way, copy))
            candidate, outcome = await in_thread(self._find_again, id), None
        raise ExtensionRefused(id, "its files change all the time")

    async def _ask_for_consent(self, candidate: Candidate, consent: NeedsConsent) -> None:
        """Asks a person, and writes the answer down. What was refused already is not asked for again.

        Raises:
            ExtensionRefused: it is a no, cannot be written down, or was asked too often.
        """
        id = consent.extension
        entry = self._kept.grants_of(id)
        if entry is not None and entry.refused == consent.fingerprint:
            raise replace(consent, is_refused=True).refusal.error
        ask = self._settings.ask
        if ask is None:  # at once: a grant that comes meanwhile finds it refused, and starts it
            raise consent.refusal.error
        self._asked[id] += 1
        if self._asked[id] > MOST_QUESTIONS:
            raise ExtensionRefused(id, "its files have changed too often: nobody is asked any more")
        approval = await in_thread(self._describe, candidate, consent)
        answer = await self._ask_person(ask, await in_thread(self._request, consent, approval))
        if answer is False:
            consent = await self._keep_refusal(consent)
        if answer is not True:
            raise consent.refusal.error

        def agree(entry: GrantEntry) -> GrantEntry:
            undenied = [name for name in consent.permissions if name not in entry.deny]  # somebody may have, meanwhile
            return replace(consent, entry=entry).agreed_to(undenied)

        await self._write(id, agree)
        await self._keep_approval(id, approval)

    def _describe(self, candidate: Candidate, consent: NeedsConsent) -> Approval:
        """Returns what a consent would be about."""
        return consent.approval(list_files(candidate, consent.digest, without=self._data, limits=self._settings.limits))

    def _request(self, consent: NeedsConsent, approval: Approval) -> ConsentRequest:
        """Returns what a person is asked, with what has changed since the last consent."""
        before = self._kept.approval_of(consent.extension)
        return consent.request(find_changes(before, approval, digest=consent.entry.digest))

    async def _keep_approval(self, id: str, approval: Approval) -> None:
        try:
            await in_thread(self._kept.keep_approval, id, approval)
        except OSError as error:
            problem = f"what was agreed to cannot be kept, so the next prompt cannot tell what has changed: {error}"
            self._complain(
                Diagnostic(
                    code=ProblemCode.CONSENT_NOT_PERSISTENT,
                    extension=id,
                    problem=problem,
                    hint=MAKE_WRITABLE,
                    severity=Severity.WARNING,
                )
            )

    async def _keep_refusal(self, consent: NeedsConsent) -> NeedsConsent:
        """Keeps a refusal until the files or what they ask for are others, and returns the consent that was refused."""
        id = consent.extension
        record(
            self._settings.audit,
            ConsentRefused(id, ANSWER, consent.digest or None, consent.permissions, consent.requested),
        )
        try:
            await self._change_grants(id, lambda entry: replace(entry, refused=consent.fingerprint))
        except BadFile as error:
            problem = f"the refusal cannot be written down, and the next start asks again: {error}"
            self._complain(
                Diagnostic(code=ProblemCode.CONSENT_NOT_PERSISTENT, extension=id, problem=problem, hint=MAKE_WRITABLE)
            )
            return consent
        return replace(consent, is_refused=True)

    async def _bind(self, id: str, digest: str) -> None:
        """Binds what was granted without a word about files to these."""
        await self._write(id, lambda entry: replace(entry, digest=entry.digest or digest))

    async def _write(self, id: str, change: Callable[[GrantEntry], GrantEntry]) -> None:
        try:
            await self._change_grants(id, change)
        except BadFile as error:
            raise ExtensionRefused(id, f"what was agreed to cannot be written down: {error}") from error

    async def _ask_person(self, ask: AskConsent, request: ConsentRequest) -> bool | None:
        """Asks a person whether an extension may run with all that it asks for; None where nobody answers in time."""
        answer: Any = None
        async with self._asking:
            with anyio.move_on_after(CONSENT_PATIENCE):
                try:
                    question = describe_request(request)
                    if is_async(ask):
                        asked: Any = ask(question, request)
                        answer = await asked
                    else:
                        # A thread that waits for a person may wait for ever: it is left.
                        answer = await anyio.to_thread.run_sync(ask, question, request, abandon_on_cancel=True)
                except Exception as error:
                    problem = f"asking has failed: {error}"
                    self._complain(
                        Diagnostic(
                            code=ProblemCode.CONSENT_FAILED,
                            extension=request.extension,
                            problem=problem,
                            hint="look at the function that the host has for `ask`",
                        )
                    )
        return answer if isinstance(answer, bool) else None

    # -- copies

    def _copy(self, candidate: Candidate, digest: str) -> str | None:
        """Returns the folder of a copy with this digest; None where the extension has other files by now."""
        places, limits = self._settings.places, self._settings.limits
        assert places is not None
        copy = find_copy(places.copies, digest, limits=limits)
        if copy is None:
            copy = copy_folder(candidate.folder, places.copies, without=self._data, limits=limits)
        return copy.folder if copy.digest == digest else None

    def _open_working_copy(self, agreed: Agreed) -> Way | None:
        """Returns the way in a fresh working copy; None where the copy of what was agreed to is not what it was."""
        places, way = self._settings.places, agreed.way
        assert places is not None
        working = open_working_copy(
            places.working,
            agreed.candidate.id,
            FolderCopy(way.folder, agreed.digest),
            name=os.path.basename(agreed.candidate.folder),
            limits=self._settings.limits,
        )
        return None if working is None else replace(move_way(way, working.folder), working=working)

    def remove_unused_copies(self) -> None:
        """Removes the copies that nobody runs and that nobody has agreed to any more. Not for a loop.

        Raises:
            BadFile: one cannot be removed.
        """
        if self._settings.places is None:
            return
        used = {agreed.digest for guest in self.guests.values() for agreed in (guest.agreed, guest.next) if agreed}
        remove_copies(self._settings.places.copies, used | self._kept.agreed_digests())
        remove_working_copies(self._settings.places.working, self.guests.keys() | self._kept.agreed_extensions())

    def remove_discarded(self, id: str) -> None:
        """Removes what earlier starts of an extension have written. Not for a loop.

        Raises:
            BadFile: its folder cannot be read.
        """
        if self._settings.places is not None:
            remove_discarded(self._settings.places.working, id)

    # -- grants

    async def grant(self, id: str, names: Iterable[str]) -> None:
        """Gives an extension permissions, from now on and for its next starts.

        Raises:
            BadFile: the file of grants cannot be written; nothing has changed.
        """
        names = [*names]
        await self._change_grants(id, lambda entry: entry.granting(names))
        if id in self.guests:
            for name in names:
                self._give(self.guests[id], name, HOST)

    async def agree_to(self, id: str) -> None:
        """Gives an extension all that it asks for. One that may not start yet is agreed to, with the files it has now.

        Raises:
            ExtensionRefused: it cannot start, whoever agrees to it.
            BadFile: the file of grants cannot be written; nothing has changed.
        """
        guest = self.guests[id]
        if guest.agreed is not None:
            await self.grant(id, guest.candidate.manifest.permissions)
            return
        await self.look_again(guest)
        candidate, outcome = guest.candidate, guest.outcome
        asked, digest = candidate.manifest.permissions, outcome.digest
        variables = self.list_variables(candidate).requested
        before = self._kept.grants_of(id)
        await self._change_grants(id, lambda entry: entry.granting(asked, digest, variables))
        if isinstance(outcome, NeedsConsent):
            await self._keep_approval(id, await in_thread(self._describe, candidate, outcome))
        if before is not None and before.refused:
            record(self._settings.audit, ConsentRefused(id, HOST, withdrawn=True))

    async def revoke(self, id: str, names: Iterable[str]) -> None:
        """Revokes permissions at once; what runs on them ends. Writing that down comes second.

        Raises:
            RevocationNotPersistent: the file of grants cannot be written; they are revoked in this host all the same.
        """
        names = [*names]
        self._kept.revoke(id, names)
        if id in self.guests:
            for name in names:
                self._take(self.guests[id], name, HOST)
        await in_thread(self._kept.write_revocations, id)

    async def retry_revocations(self) -> dict[str, RevocationNotPersistent | None]:
        """Tries again to write revocations that could not be written; returns what came of it, by extension."""
        return await in_thread(self._kept.retry_revocations)

    def unwritten_revocations(self, id: str) -> tuple[str, ...]:
        """Returns the permissions of an extension that were revoked and are not written as such."""
        return self._kept.unwritten_revocations(id)

    def has_new_grants(self) -> bool:
        """Returns whether somebody may have written something else into the file of grants."""
        return self._kept.has_new_grants()

    async def take_over(self) -> dict[str, bool]:
        """Takes over what another program has changed in the file of grants; what runs on what was taken away ends.

        Returns whose entries have changed, and whether each is about other files than those that run.

        Raises:
            BadFile: it cannot be read; what held before holds on.
        """
        changes = await in_thread(self._kept.reload_grants)
        return {id: self._take_over(id, before, after) for id, (before, after) in changes.items()}

    def _take_over(self, id: str, before: GrantEntry | None, after: GrantEntry | None) -> bool:
        guest = self.guests.get(id)
        if guest is None or guest.agreed is None:
            return False
        manifest, given = guest.candidate.manifest, self._given.get(id)
        was, now = (self._count(entry, guest.agreed.digest) for entry in (before, after))
        is_about_others = after is not None and not self._is_about(after, guest.agreed.digest)
        if is_about_others:  # what was agreed to for those that run stands, but for denials
            now = replace(now, allow=was.allow)
        self._change_gate(guest, settle_grants(manifest, was, given), settle_grants(manifest, now, given), FILE_NAME)
        return is_about_others

    async def _change_grants(self, id: str, change: Callable[[GrantEntry], GrantEntry]) -> None:
        await in_thread(self._kept.change_grants, id, change)

    def _change_gate(self, guest: Guest, before: Grants, now: Grants, by: str) -> None:
        for name in sorted(before.allow | before.deny | now.allow | now.deny):
            if now.allows(name) and not before.allows(name):
                self._give(guest, name, by)
            elif (before.allows(name) and not now.allows(name)) or name in now.deny - before.deny:
                self._take(guest, name, by)

    def _give(self, guest: Guest, name: str, by: str) -> None:
        guest.gate.grant(name, by=by)
        self._events.publish(GrantGiven(guest.id, name, by))

    def _take(self, guest: Guest, name: str, by: str) -> None:
        guest.gate.revoke(name, by=by)
        self._events.publish(GrantTaken(guest.id, name, by))


def is_alone(candidate: Candidate) -> bool:
    """Returns whether a folder is an extension's own, with its manifest in it: then it can be run from a copy."""
    return candidate.files is None and not candidate.is_listed and is_below(candidate.manifest_path, candidate.folder)


def writes_in_root(candidate: Candidate) -> bool:
    """Returns whether programs of this dialect may write in their own folder."""
    return find_dialect(candidate.manifest.dialect).habits.writes_in_root


def move_way(way: Way, copy: str) -> Way:
    """Returns the same way in a copy of its folder."""
    cwd = None if way.cwd is None else move_path(way.cwd, way.folder, copy)
    return Way(move_command(way.command, way.folder, copy), copy, cwd, way.digest, is_copy=True)


async def in_thread(function: Callable[..., T], *arguments: Any) -> T:
    """Does something that waits for a disk."""
    return await anyio.to_thread.run_sync(function, *arguments)
