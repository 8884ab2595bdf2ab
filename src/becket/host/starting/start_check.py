"""Start check: inspects a candidate on this machine and decides whether it may start.

`run_preflight` inspects this machine; `decide_start` is a pure function of that, the manifest and the grants. An
outcome is data. The host prompts the user, stores the response and starts the process; `permissions.Gate` decides what
a running extension may call.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set as AbstractSet
from hashlib import sha256
from typing import TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from becket._text import quote_path
from becket.contract.hooks import HOOKS
from becket.conversion.suggestions import did_you_mean
from becket.dialects import DIALECTS
from becket.errors import BadFile, ExtensionRefused, ReservedPermission, UnknownPermission
from becket.host.command_lines import NO_OPTIONS, CommandLines
from becket.host.diagnostics import REFUSAL_SEVERITIES, Diagnostic, ProblemCode
from becket.host.starting.approvals import Approval
from becket.host.starting.candidate import Candidate
from becket.host.starting.configuration import ResolvedConfig
from becket.host.starting.consent_request import START, ConsentChanges, ConsentRequest, describe_request
from becket.host.starting.env_program import find_env_variables
from becket.host.starting.environment import ExtensionVariables, is_dangerous_name, list_variables
from becket.host.starting.folder_digest import FolderDigest, digest_files, digest_folder
from becket.host.starting.grants_file import GrantEntry
from becket.host.starting.interpreters import find_code_from_cwd
from becket.host.starting.manifest import Environment, Manifest, Requirements
from becket.host.starting.paths import is_below
from becket.host.starting.programs import NoSuchProgram, find_program, resolve_command
from becket.limits import DEFAULT_LIMITS, Limits
from becket.permissions.grants import Grants
from becket.permissions.names import PERMISSIONS, parse_permission

__all__ = [
    "NeedsConsent",
    "PreflightResult",
    "StartAllowed",
    "StartDecision",
    "StartRefused",
    "choose_cwd",
    "configured_variables",
    "decide_start",
    "declared_environment",
    "digest_candidate",
    "effective_grants",
    "encode_listed",
    "find_missing",
    "find_setup",
    "list_files",
    "refuse_uncopyable",
    "run_preflight",
    "works_in_root",
]

EMPTY_ENTRY: GrantEntry = GrantEntry()
UNKNOWN = ConsentChanges(is_known=False)


# -- preflight


class PreflightResult(Struct, frozen=True, kw_only=True):
    """What this machine has for an extension: its command with an absolute program, the digest of its folder (empty if
    it has none), and all problems. `cwd` is its working directory if that is not its dialect's, and `runs_in` the
    effective one; `uncopyable` is why its folder cannot be copied. `programs` are those that the host runs for its
    commands, by the names of these."""

    command: tuple[str, ...] = ()
    cwd: str | None = None
    runs_in: str = ""
    digest: str = ""
    uncopyable: str = ""
    programs: tuple[tuple[str, tuple[str, ...]], ...] = ()
    problems: tuple[Diagnostic, ...] = ()


def run_preflight(
    candidate: Candidate,
    *,
    variables: Mapping[str, str],
    program_folders: Sequence[str],
    config: ResolvedConfig | None = None,
    data: Collection[str] = (),
    approval: Approval | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> PreflightResult:
    """Returns what this machine has for a candidate; what is missing is a problem, and nothing is raised for it.

    `variables` are those of the host's environment. `data` are paths of the extension's own data, which do not count
    for the digest; neither do files that are not in the `approval` of an extension that runs in place."""
    manifest = candidate.manifest
    problems = [*find_missing(manifest.requires, variables, program_folders)]
    problems += [
        Diagnostic(
            code=ProblemCode.SETTING_INVALID,
            problem=f"its configuration: {pointer}: {message}",
            hint="set it, or give it another value",
        )
        for pointer, message in (config or ResolvedConfig()).problems
    ]
    command: tuple[str, ...] = ()
    cwd: str | None = None
    digest = FolderDigest("", 0, 0)
    try:
        resolved = resolve_command(
            manifest.id,
            manifest.command,
            candidate.folder,
            program_folders,
            is_trusted=candidate.is_operator_defined,
            is_listed=candidate.is_listed,
        )
        cwd = choose_cwd(candidate, resolved)
        command = resolved
    except ExtensionRefused as error:
        hint = f"check `command` in {quote_path(candidate.manifest_path)}"
        if isinstance(error, NoSuchProgram) and (script := find_setup(candidate)):
            hint = f"run its setup script, {quote_path(script)}, or {hint}"
        problems.append(
            Diagnostic(code=ProblemCode.COMMAND_INVALID, problem=f"its command: {error.because}", hint=hint)
        )
    try:
        digest = measure_candidate(candidate, without=data, approval=approval, limits=limits)
    except BadFile as error:
        hint = "an extension that cannot be read whole cannot be approved"
        problems.append(Diagnostic(code=ProblemCode.FOLDER_UNREADABLE, problem=f"its folder: {error}", hint=hint))
    path = quote_path(candidate.manifest_path)
    return PreflightResult(
        command=command,
        cwd=cwd,
        runs_in=cwd or (candidate.folder if works_in_root(candidate) else os.getcwd()),
        digest=digest.digest,
        uncopyable=digest.uncopyable,
        programs=tuple(list_programs(candidate)),
        problems=tuple(replace(problem, extension=manifest.id, path=path) for problem in problems),
    )


def list_programs(candidate: Candidate) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yields the commands of an extension for which the host runs a program: the name and the arguments of each."""
    for one in getattr(candidate.extra, "host_commands", ()):
        if one.command is not None:
            yield one.name, (one.command, *one.args)


def find_setup(candidate: Candidate) -> str | None:
    """Returns the script that installs or builds the program of an extension, if its manifest names one."""
    script: str | None = getattr(candidate.extra, "setup", None)
    return None if not script else os.path.normpath(os.path.join(candidate.folder, script))


def choose_cwd(candidate: Candidate, command: Sequence[str]) -> str | None:
    """Returns the working directory of a candidate, None for the one of its dialect.

    A command that loads code from there is started in the extension's folder, whose files are approved.

    Raises:
        ExtensionRefused: it requests another one, and would load code from there.
    """
    loaded = find_code_from_cwd(command)
    if loaded is None or (candidate.cwd is None and works_in_root(candidate)):
        return candidate.cwd
    if candidate.cwd is None:
        return candidate.folder
    if not is_below(os.path.realpath(candidate.cwd), candidate.folder):
        because = (
            f"`{quote_path(loaded)}` would load code from {quote_path(candidate.cwd)}, which is not its own folder"
        )
        raise ExtensionRefused(candidate.id, because)
    return candidate.cwd


def works_in_root(candidate: Candidate) -> bool:
    """Returns whether programs of this dialect run in their own folder; otherwise they run where the host does."""
    dialect = DIALECTS.get(candidate.manifest.dialect)
    return dialect is None or dialect.host_defaults.runs_in_root


def digest_candidate(
    candidate: Candidate,
    *,
    without: Collection[str] = (),
    approval: Approval | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> str:
    """Returns the digest of all that an approval covers: its files, and its entry in a list elsewhere.

    Raises:
        BadFile: something cannot be read, or there is too much.
    """
    return measure_candidate(candidate, without=without, approval=approval, limits=limits).digest


def measure_candidate(
    candidate: Candidate,
    *,
    without: Collection[str] = (),
    approval: Approval | None = None,
    limits: Limits = DEFAULT_LIMITS,
    entries: dict[str, str] | None = None,
) -> FolderDigest:
    """Returns the digest of a candidate, and whether its folder can be copied. Raises as `digest_candidate` does.

    `entries` gets the names of its files, each with a short digest. An `approval` names the files that count, as long
    as their digest is the approved one."""
    folder, listed = candidate.folder, encode_listed(candidate)
    if approval is not None and candidate.files is None:
        approved = digest_folder(folder, without=without, names=approval.files, listed=listed, limits=limits)
        if approved.digest == approval.digest:
            return approved
    if candidate.files is None:
        return digest_folder(folder, without=without, listed=listed, limits=limits, entries=entries)
    return digest_files(folder, candidate.files, listed=listed, limits=limits, entries=entries)


def encode_listed(candidate: Candidate) -> bytes:
    """Returns a candidate's entry in a list elsewhere; empty if its manifest is among its files."""
    return msgspec.json.encode(candidate.manifest, order="deterministic") if candidate.is_listed else b""


def list_files(
    candidate: Candidate, digest: str, *, without: Collection[str] = (), limits: Limits = DEFAULT_LIMITS
) -> dict[str, str]:
    """Returns the names of the files that have this digest, each with a short one; none if the files have changed."""
    entries: dict[str, str] = {}
    try:
        found = measure_candidate(candidate, without=without, limits=limits, entries=entries)
    except BadFile:
        return {}
    return entries if found.digest == digest else {}


def find_missing(
    requires: Requirements, variables: Mapping[str, str], program_folders: Sequence[str]
) -> Iterator[Diagnostic]:
    """Yields each requirement that is missing. An empty variable is missing too."""
    for name in requires.bins:
        if find_program(name, program_folders) is None:
            yield Diagnostic(
                code=ProblemCode.PROGRAM_MISSING,
                problem=f"needs the program `{quote_path(name)}`",
                hint="install it, or add to the PATH",
            )
    for name in requires.env:
        if not variables.get(name):
            yield Diagnostic(
                code=ProblemCode.VARIABLE_MISSING,
                problem=f"needs the variable `{name}`",
                hint="set it in the environment of the host",
            )


# -- outcomes


class StartAllowed(Struct, frozen=True, kw_only=True):
    """It may start, with these grants: never more than it requests.

    `undecided` was requested, and neither granted nor denied: its first use prompts. `entry` is what `grants.toml`
    should hold for it from now on, None if nothing needs to. `bound_to` is the digest of the approved files, if no
    others may start; `approved_digest` that of those, if others were found and start all the same, in development."""

    extension: str
    command: tuple[str, ...]
    cwd: str | None = None
    digest: str
    grants: Grants
    undecided: tuple[str, ...] = ()
    entry: GrantEntry | None = None
    bound_to: str = ""
    approved_digest: str = ""


class StartRefused(Struct, frozen=True, kw_only=True):
    """It does not start, and these are all the reasons."""

    extension: str
    reasons: tuple[Diagnostic, ...]

    @property
    def because(self) -> str:
        """All reasons in one line, with what to do."""
        return "; ".join(
            f"{reason.problem} ({reason.hint})" if reason.hint else reason.problem for reason in self.reasons
        )

    @property
    def error(self) -> ExtensionRefused:
        """The error for callers of this extension."""
        because = "; ".join(reason.problem for reason in self.reasons)
        hints = dict.fromkeys(reason.hint for reason in self.reasons if reason.hint)
        codes = {reason.code for reason in self.reasons}
        code = codes.pop() if len(codes) == 1 else ProblemCode.REFUSED
        return ExtensionRefused(self.extension, because, "; ".join(hints), code)


class NeedsConsent(Struct, frozen=True, kw_only=True):
    """It may start after consent to it and to what it requests: `permissions`, and `requested` variables.

    `held` are permissions that it has already, and `variables` all that it would get outside the base list. `programs`
    are those that the host runs for its commands. `approved_digest` is that of the files approved before; empty if it
    is new. `keeps_entry` means that the earlier approval stays, and this is added. `fingerprint` is that of the whole
    request; it `is_refused` if the user has refused just this. `lines` builds the commands in the hint."""

    extension: str
    version: str
    command: tuple[str, ...]
    cwd: str | None = None
    runs_in: str = ""
    digest: str
    permissions: tuple[str, ...] = ()
    held: tuple[str, ...] = ()
    requested: tuple[str, ...] = ()
    variables: ExtensionVariables = ExtensionVariables()
    programs: tuple[tuple[str, tuple[str, ...]], ...] = ()
    approved_digest: str = ""
    entry: GrantEntry = EMPTY_ENTRY
    keeps_entry: bool = False
    fingerprint: str = ""
    is_refused: bool = False
    lines: CommandLines = NO_OPTIONS

    @property
    def prompt_text(self) -> str:
        """The prompt as text."""
        return describe_request(self.request())

    def request(self, changes: ConsentChanges | None = None) -> ConsentRequest:
        """Returns the consent request. Without `changes` only whether the files have changed is known."""
        return ConsentRequest(
            self.extension,
            START,
            None,
            None,
            "it needs consent",
            version=self.version,
            command=self.command,
            working_directory=self.runs_in,
            variables=self.variables,
            permissions=self.permissions,
            held=self.held,
            programs=self.programs,
            changes=changes or (UNKNOWN if self.approved_digest else None),
            digest=self.digest,
        )

    def approval(self, files: Mapping[str, str]) -> Approval:
        """Returns the approval that a consent gives, with the `files` of the extension."""
        return Approval.of(
            digest=self.digest,
            command=self.command,
            working_directory=self.runs_in,
            variables=self.variables.set,
            permissions=(*self.held, *self.permissions),
            files=files,
        )

    def build_approval(self, permissions: Iterable[str] | None = None) -> GrantEntry:
        """Returns the entry to store after consent: to all that it requests, or to these permissions and no others."""
        names = self.permissions if permissions is None else tuple(permissions)
        denied = [name for name in self.permissions if name not in names]
        # An approval of other files is void.
        before = self.entry if self.keeps_entry else replace(self.entry, allow=(), variables=())
        return before.with_grants(names, self.digest, self.requested).with_denials(denied)

    @property
    def build_refusal(self) -> StartRefused:
        """Returns the refusal without consent."""
        wanted = ", ".join([*self.permissions, *(f"the variable {name}" for name in self.requested)])
        changed = "its files have changed since they were approved" if self.approved_digest else ""
        requested = f"it requests what was not approved: {wanted}" if wanted else ""
        problem = ", and ".join(filter(None, [changed, requested]))
        problem = problem or "its start was not approved"
        hint = f"check it, then {self._describe_consent()}"
        if self.is_refused:
            details = ", and ".join(filter(None, [changed, f"it requests {wanted}" if wanted else ""]))
            problem = f"consent was refused: {details}" if details else "consent was refused"
            if self.lines.keeps_consent:
                grant, revoke = self.lines.grant(self.extension), self.lines.revoke(self.extension)
                hint = f"`{grant}` gives it, `{revoke}` lets a host prompt again"
        if self.held and self.permissions and self.lines.keeps_consent:
            hint += f"; `{self.lines.revoke(self.extension, self.permissions)}` starts it without"
        code = ProblemCode.CONSENT_REFUSED if self.is_refused else ProblemCode.CONSENT_MISSING
        severity = REFUSAL_SEVERITIES[code]
        reason = Diagnostic(code=code, extension=self.extension, problem=problem, hint=hint, severity=severity)
        return StartRefused(extension=self.extension, reasons=(reason,))

    def _describe_consent(self) -> str:
        if self.lines.keeps_consent:
            return f"run `{self.lines.grant(self.extension)}`"
        if self.lines.consent:
            return f"run `{self.lines.consent}`: this host stores no consent"
        return "give consent by `ask` or by `grants` of the host, which stores none without a data folder"


StartDecision: TypeAlias = StartAllowed | StartRefused | NeedsConsent


def refuse_uncopyable(extension: str, because: str) -> StartRefused:
    """Returns the refusal of an extension that must run from a copy and cannot be copied."""
    hint = f"replace it by a file, or set `in_place = true` under [extensions.{extension}] in the host's configuration"
    problem = f"its folder cannot be copied: {because}"
    return StartRefused(
        extension=extension,
        reasons=(Diagnostic(code=ProblemCode.NOT_COPYABLE, extension=extension, problem=problem, hint=hint),),
    )


# -- the decision


def decide_start(
    manifest: Manifest,
    findings: PreflightResult,
    *,
    is_enabled: bool = True,
    entry: GrantEntry | None = None,
    host_grants: Grants | None = None,
    variables: ExtensionVariables | None = None,
    in_development: bool = False,
    can_ask: bool = False,
    known: AbstractSet[str] = PERMISSIONS,
    dialects: AbstractSet[str] | None = None,
) -> StartDecision:
    """Returns whether an extension may start.

    `entry` is its entry in `grants.toml`; it applies to the files with its digest, or to any if it has none.
    `host_grants` is what the host itself grants, for any files. What either denies is denied. `variables` are those
    outside the base list, or those of the manifest alone; no grant of permissions is one of these. If the host
    `can_ask`, nothing starts without approval, even if it requests nothing: it is a program all the same. If it cannot,
    nothing starts that requests a permission which was neither granted nor denied: there would be no decision. A
    refusal holds until the files or the request change. `known` are the permissions, and `dialects` the dialects of
    this host."""
    if not is_enabled:
        return StartRefused(
            extension=manifest.id,
            reasons=(
                Diagnostic(code=ProblemCode.DISABLED, extension=manifest.id, problem="is disabled", hint="enable it"),
            ),
        )
    if variables is None:
        variables = list_variables(declared_environment(manifest), configured_variables(manifest))
    impossible = [
        replace(problem, extension=manifest.id) for problem in find_unsatisfiable(manifest, variables, known, dialects)
    ]
    if findings.problems or impossible:
        return StartRefused(extension=manifest.id, reasons=(*findings.problems, *impossible))

    written, host = entry or EMPTY_ENTRY, host_grants or Grants()
    is_other = bool(written.digest) and written.digest != findings.digest
    is_approved = bool(written.allow or written.variables or written.digest)  # a denial approves nothing
    counts = is_approved and (in_development or not is_other)
    grants = effective_grants(manifest, written if counts else replace(written, allow=()), host_grants)
    undecided = frozenset(manifest.permissions) - grants.allow - grants.deny
    requested = frozenset(variables.requested).difference(written.variables if counts else ())
    is_new = host_grants is None and not counts
    fingerprint = fingerprint_of(findings, sorted(undecided), sorted(requested), variables)
    is_refused = written.refused == fingerprint
    if requested or (undecided and not can_ask) or (is_new and (is_other or can_ask or is_refused)):
        return NeedsConsent(
            extension=manifest.id,
            version=manifest.version,
            command=findings.command,
            cwd=findings.cwd,
            runs_in=findings.runs_in,
            digest=findings.digest,
            permissions=tuple(sorted(undecided)) if is_new or not can_ask else (),
            held=() if is_new else tuple(sorted(grants.allow - grants.deny)),
            requested=tuple(sorted(requested)),
            variables=variables,
            programs=findings.programs,
            approved_digest=written.digest if is_other else "",
            entry=written,
            keeps_entry=counts,
            fingerprint=fingerprint,
            is_refused=is_refused,
        )
    # The host's own grants are for any files; the rest was approved for these alone.
    rests_on_entry = host_grants is None or bool(variables.requested or grants.allow - grants.deny - host.allow)
    return StartAllowed(
        extension=manifest.id,
        command=findings.command,
        cwd=findings.cwd,
        digest=findings.digest,
        grants=grants,
        undecided=tuple(sorted(undecided)),
        entry=replace(written, digest=findings.digest) if counts and not written.digest and findings.digest else entry,
        bound_to=findings.digest if counts and rests_on_entry and not in_development else "",
        approved_digest=written.digest if is_other and counts else "",
    )


def fingerprint_of(
    findings: PreflightResult, permissions: Sequence[str], requested: Sequence[str], variables: ExtensionVariables
) -> str:
    """Returns a digest of the files of an extension and of its whole request: a refusal is of just these."""
    request = [findings.digest, findings.command, findings.cwd, permissions, requested, sorted(variables.set.items())]
    return sha256(ascii(request).encode()).hexdigest()  # a path may not be UTF-8


def effective_grants(manifest: Manifest, entry: GrantEntry | None, host_grants: Grants | None) -> Grants:
    """Returns the grants of an extension, from an entry that applies to its files and from the host itself."""
    written, host = entry or EMPTY_ENTRY, host_grants or Grants()
    allow = host.allow | frozenset(written.allow)
    return Grants(allow & frozenset(manifest.permissions), host.deny | frozenset(written.deny))


def configured_variables(manifest: Manifest) -> tuple[str, ...]:
    """Returns the variables of the host that an extension gets as values of its configuration."""
    return tuple(entry.env for entry in manifest.config.values() if entry.env)


def declared_environment(manifest: Manifest) -> Environment:
    """Returns the variables that a manifest requests and sets, also by the program `env` in its command."""
    by_command = find_env_variables(manifest.command)
    declared = manifest.environment
    return replace(declared, set=declared.set | by_command) if by_command else declared


def find_unsatisfiable(
    manifest: Manifest, variables: ExtensionVariables, known: AbstractSet[str], dialects: AbstractSet[str] | None
) -> Iterator[Diagnostic]:
    """Yields the problems that no consent can solve on this host."""
    for name in manifest.permissions:
        try:
            parse_permission(name, known)
        except (UnknownPermission, ReservedPermission) as error:
            yield Diagnostic(
                code=ProblemCode.PERMISSION_UNKNOWN,
                problem=str(error),
                hint=did_you_mean(name, known) or "it is made for another host, or its name is misspelt",
            )
    if dialects is not None and manifest.dialect not in dialects:
        shown = ", ".join(sorted(dialects))
        meant = did_you_mean(manifest.dialect, dialects)
        yield Diagnostic(
            code=ProblemCode.DIALECT_UNKNOWN,
            problem=f"uses the dialect `{quote_path(manifest.dialect)}`",
            hint=meant or f"this host has: {shown}",
        )
    for name in sorted(set(manifest.environment.passed).difference(variables.given)):
        if is_dangerous_name(name):
            # Its value would be the host's at each start, which cannot be approved beforehand.
            problem = f"requests the variable `{name}`, which can make programs load something else"
            hint = f"take it out of `environment.pass`, or add it to that of [extensions.{manifest.id}] in host.toml"
            yield Diagnostic(code=ProblemCode.VARIABLE_FORBIDDEN, problem=problem, hint=hint)
    for what, permission in needed_permissions(manifest):
        if permission not in manifest.permissions:
            problem = f"{what} needs `{permission}`, and it does not request it"
            yield Diagnostic(
                code=ProblemCode.PERMISSION_NOT_REQUESTED,
                problem=problem,
                hint="add it to `permissions` in its manifest",
            )


def needed_permissions(manifest: Manifest) -> Iterator[tuple[str, str]]:
    for entry in manifest.hooks:
        yield f"its hook `{entry.hook}`", HOOKS[entry.hook].permission
    for capability in manifest.capabilities:
        for permission in capability.permissions:
            yield f"its capability `{quote_path(capability.name)}`", permission
