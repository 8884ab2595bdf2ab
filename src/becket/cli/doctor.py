"""`becket doctor`: reports every problem of a host's files and extensions, with a hint."""

from __future__ import annotations

import os
import shlex
import stat
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from typing import Any

import click
from msgspec.structs import replace

from becket._text import escape, quote_path
from becket.cli.run import wait_for_all
from becket.cli.support.assumed_consent import assume_consent, give_assumed
from becket.cli.support.exit_codes import ExitCode
from becket.cli.support.logs import show_logs
from becket.cli.support.options import HostOptions, host_options, run_async
from becket.cli.support.output import (
    console,
    is_terminal,
    json_option,
    pluralize,
    print_json,
    print_line,
    print_message,
)
from becket.cli.support.status_table import build_problem_objects, is_up
from becket.errors import BadFile, StoreUnavailable
from becket.host.audit_anchor import read_anchor
from becket.host.audit_log import verify_audit
from becket.host.command_lines import CommandLines
from becket.host.data_dir import DataDir
from becket.host.diagnostics import Diagnostic, ProblemCode, Severity, without_id
from becket.host.hook_plan import describe_order
from becket.host.host import HostSurvey
from becket.host.persistence import load_trust
from becket.host.redaction import redact_command
from becket.host.starting.candidate import Candidate
from becket.host.starting.pending_revocations import load_pending
from becket.host.starting.start_check import NeedsConsent, StartAllowed, StartRefused
from becket.host.starting.start_order import build_start_order

__all__ = ["doctor"]

COLOURS = {Severity.ERROR: "red", Severity.WAITING: "cyan", Severity.WARNING: "yellow", Severity.NOTE: "dim"}


@click.command()
@host_options(roots="argument")
@click.option("--start", is_flag=True, help="Also start the extensions that may start, and report how that fails.")
@json_option
def doctor(options: HostOptions, start: bool, as_json: bool) -> ExitCode:
    """Report problems of the extensions in ROOTS and of the host's files, and how to fix them.

    Each problem has its file, the reason and a hint. The exit code is 1 if there is an error: an extension that cannot
    start, or an invalid file. An extension that waits for consent is not an error. --yes assumes consent for all
    extensions, and records none.

    \b
    becket doctor extensions
    becket doctor --config host.toml --start --json
    """
    found = ProblemCollector()
    host = found.collect(options.build_host, ProblemCode.CONFIG_FILE_INVALID)
    survey = None
    if host is not None:
        if host.data_dir is not None:
            found.problems += find_file_problems(host.data_dir, host.command_lines)
        found.problems += find_problems_of_inheriting(host.inherit_environment)
        survey = found.collect(host.survey, ProblemCode.GRANTS_INVALID)
        if survey is not None:
            more = give_assumed(options.arguments(), survey) if options.yes else {"ask": None}
            survey = assume_consent(survey) if options.yes else survey
            found.problems += find_extension_problems(survey, host.command_lines)
            if start:
                found.problems += run_async(find_start_problems, options, more, found.problems)
    print_report(found.problems, survey, as_json)
    return ExitCode.FAILED if any(problem.severity is Severity.ERROR for problem in found.problems) else ExitCode.DONE


class ProblemCollector:
    """Collects problems."""

    def __init__(self) -> None:
        self.problems: list[Diagnostic] = []

    def collect(self, action: Callable[[], Any], code: ProblemCode) -> Any:
        """Returns the result of `action`; if it fails on a file, records the problems and returns None."""
        try:
            return action()
        except (BadFile, StoreUnavailable) as error:
            self.problems += build_file_diagnostics(error, code)
        return None


def build_file_diagnostics(error: BadFile | StoreUnavailable, code: ProblemCode) -> Iterator[Diagnostic]:
    if isinstance(error, StoreUnavailable):
        yield Diagnostic(code=ProblemCode.STORE_UNAVAILABLE, path=error.path, problem=error.because, hint=error.hint)
        return
    for pointer, message in error.problems:
        yield Diagnostic(
            code=code,
            path=error.path,
            problem=f"{pointer}: {message}" if pointer else message,
            hint="fix the file",
        )


# -- files of the host


def find_file_problems(data_dir: DataDir, lines: CommandLines) -> Iterator[Diagnostic]:
    """Yields problems of a host's data directory. A missing directory is not a problem: the host was never started."""
    folder = data_dir.folder
    if not folder.is_dir():
        return
    if folder.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        hint = shlex.join(["chmod", "700", str(folder)])
        problem = "other users of this machine can access it"
        yield Diagnostic(
            code=ProblemCode.DATA_EXPOSED, path=str(folder), problem=problem, hint=hint, severity=Severity.WARNING
        )
    if not os.access(folder, os.W_OK):
        yield Diagnostic(
            code=ProblemCode.DATA_NOT_WRITABLE,
            path=str(folder),
            problem="is not writable",
            hint="change its owner to the user who runs the host",
        )
    yield from find_pending_revocations(data_dir, lines)
    if data_dir.secrets.exists() and data_dir.secrets.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        hint = shlex.join(["chmod", "600", str(data_dir.secrets)])
        problem = "other users of this machine can read the secrets in it"
        yield Diagnostic(code=ProblemCode.DATA_EXPOSED, path=str(data_dir.secrets), problem=problem, hint=hint)
    trust = load_trust(data_dir)
    if trust.error is not None:
        yield Diagnostic(
            code=ProblemCode.TRUST_INVALID,
            problem=trust.error,
            hint="fix the file; until then no provider is trusted",
        )
    if data_dir.audit.exists() or read_anchor(data_dir.audit) is not None:
        for broken in verify_audit(data_dir.audit):
            hint = "the next start removes it" if broken.is_torn_end else "find out who changed it"
            severity = Severity.WARNING if broken.is_torn_end else Severity.ERROR
            where = f"{broken.path}:{broken.line}" if broken.line else broken.path
            yield Diagnostic(
                code=ProblemCode.AUDIT_BROKEN, path=where, problem=broken.problem, hint=hint, severity=severity
            )


def find_pending_revocations(data_dir: DataDir, lines: CommandLines) -> Iterator[Diagnostic]:
    try:
        pending = load_pending(data_dir.grants)
    except BadFile:
        return  # the grants are unreadable too, and reported on their own
    for extension, names in pending.items():
        problem = f"revocation not persistent: {', '.join(names)}: not written to the file yet"
        hint = f"make the file writable, then: {lines.revoke(extension, names)}"
        yield Diagnostic(
            code=ProblemCode.REVOCATION_NOT_PERSISTENT,
            extension=extension,
            path=str(data_dir.grants),
            problem=problem,
            hint=hint,
        )


# -- extensions


def find_problems_of_inheriting(dialects: Collection[str]) -> Iterator[Diagnostic]:
    """Yields a warning for each dialect whose extensions inherit the host's variables without declaring them."""
    for dialect in sorted(dialects):
        problem = f"`inherit_environment` lets every extension of `{dialect}` see variables of the host"
        hint = "remove it, and pass single variables to an extension: `environment.pass` under [extensions.ID]"
        yield Diagnostic(code=ProblemCode.VARIABLES_VISIBLE, problem=problem, hint=hint, severity=Severity.WARNING)


def find_extension_problems(survey: HostSurvey, lines: CommandLines) -> Iterator[Diagnostic]:
    """Yields why extensions do not start, and notes and warnings about those that do."""
    yield from survey.report.diagnostics
    yield from survey.problems
    if len(survey.hook_order) > 1:
        hint = "`order` under `[hooks]` in the host's configuration changes it"
        yield Diagnostic(
            code=ProblemCode.HOOK_ORDER, problem=describe_order(survey.hook_order), hint=hint, severity=Severity.NOTE
        )
    for candidate in survey.report.candidates:
        path = quote_path(candidate.manifest_path)
        match survey.start_decisions[candidate.id]:
            case StartRefused(reasons=reasons):
                yield from reasons
            case NeedsConsent() as decision:
                for reason in decision.build_refusal.reasons:
                    yield replace(reason, path=path)
            case StartAllowed(undecided=undecided) if undecided:
                names = ", ".join(undecided)
                hint = lines.grant(candidate.id, undecided)
                problem = f"requests permissions that are neither granted nor denied: {names}"
                yield Diagnostic(
                    code=ProblemCode.PERMISSION_UNDECIDED,
                    extension=candidate.id,
                    path=path,
                    problem=problem,
                    hint=hint,
                    severity=Severity.WARNING,
                )
            case StartAllowed():
                pass
        if variables := survey.variables[candidate.id].names:
            problem = f"sees variables outside the base list: {', '.join(variables)}"
            hint = f"`{lines.look('list')}` lists them too, and the audit log those of each start"
            yield Diagnostic(
                code=ProblemCode.VARIABLES_VISIBLE,
                extension=candidate.id,
                path=path,
                problem=problem,
                hint=hint,
                severity=Severity.NOTE,
            )
    yield from build_start_order({one.id: one.manifest.after for one in survey.report.candidates}).diagnostics


async def find_start_problems(
    options: HostOptions, more: dict[str, Any], known: Collection[Diagnostic]
) -> list[Diagnostic]:
    """Starts all extensions that may start and returns problems that were not known before.

    `more` are arguments of the host."""
    codes = {(problem.extension, problem.code) for problem in known}
    config = replace(options.log_config(), level="warning")
    try:
        with show_logs(config):
            async with options.build_host(**more) as host:
                await wait_for_all(host)
                up = {status.id for status in host.status() if is_up(status)}
                checks = {one.id: check_line(one) for one in host.report.candidates}
                return [
                    problem if problem.extension in up else replace(problem, hint=f"try: {checks[id]}")
                    for problem in host.problems
                    if (id := problem.extension or "") in set(host)
                    and problem.code is not ProblemCode.REFUSED
                    and (id, problem.code) not in codes
                ]
    except (BadFile, StoreUnavailable) as error:
        return [*build_file_diagnostics(error, ProblemCode.OTHER)]


def check_line(candidate: Candidate) -> str:
    """Returns the `becket check` command for an extension, with secrets redacted."""
    words = ["becket", "check", "--folder", candidate.folder]
    if candidate.manifest.dialect != "native":
        words += ["--dialect", candidate.manifest.dialect]
    return shlex.join([*words, "--", *redact_command(candidate.manifest.command)])


# -- output


def print_report(problems: list[Diagnostic], survey: HostSurvey | None, as_json: bool) -> None:
    counts = Counter(problem.severity for problem in problems)
    found = 0 if survey is None else len(survey.report.candidates)
    starting = 0 if survey is None else sum(isinstance(one, StartAllowed) for one in survey.start_decisions.values())
    if as_json:
        ok = not counts[Severity.ERROR]
        print_json(
            {"ok": ok, "extensions": found, "would_start": starting, "problems": build_problem_objects(problems)}
        )
        return
    for problem in problems:
        print_problem(problem)
    print_message(
        f"{pluralize(found, 'extension')}, {starting} would start; "
        f"{', '.join(count_severity(counts[severity], severity) for severity in Severity)}"
    )


def count_severity(number: int, severity: Severity) -> str:
    return f"{number} waiting" if severity is Severity.WAITING else pluralize(number, str(severity))


def print_problem(problem: Diagnostic) -> None:
    where = ": ".join(escape(part) for part in (problem.extension, problem.path) if part)
    text = escape(without_id(problem.extension or "", problem.problem))
    text = f": {where}: {text}" if where else f": {text}"
    hint = f"    {escape(problem.hint)}" if problem.hint else ""
    if is_terminal():
        from rich.text import Text

        line = Text(str(problem.severity), style=COLOURS[problem.severity]).append(text, style="default")
        console().print(line, soft_wrap=True)
    else:
        print_line(f"{problem.severity}{text}")
    if hint:
        print_line(hint)
