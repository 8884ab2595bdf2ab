"""`becket check`: starts a program and reports whether it is a valid extension."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from becket._text import escape
from becket.cli.support.checks import list_dialects, run_checks
from becket.cli.support.exit_codes import ExitCode
from becket.cli.support.findings import (
    NOTHING_DECLARED,
    CheckSubject,
    Finding,
    FindingLevel,
    has_no_errors,
    has_responded,
)
from becket.cli.support.options import FILE, FOLDER
from becket.cli.support.output import console, is_terminal, json_option, print_json, print_line, print_message
from becket.cli.support.passthrough import PassthroughCommand
from becket.dialects import DIALECTS, NATIVE
from becket.dialects.host_defaults import EnvironmentContext, HostDefaults
from becket.errors import MissingExtra
from becket.host.starting.configuration import resolve_config
from becket.host.starting.connect import DEFAULT_HOST_INFO, derive_id, find_extension_id_problem
from becket.host.starting.environment import build_default_environment, prefer_own_python
from becket.host.starting.manifest import CommandEntry, Environment, Manifest
from becket.host.starting.temporary_folders import TemporaryFolders, make_default_variables
from becket.permissions.names import PERMISSIONS

if TYPE_CHECKING:
    from becket.host.starting.candidate import Candidate

__all__ = ["check"]

AUTO = "auto"
AUTO_TIMEOUT = 3.0  # seconds for each dialect; short, because programs do not respond to most of the other dialects
CALL_TIMEOUT = 30.0  # default seconds for every response after the handshake: far more than a tool should take
COLOURS = {
    FindingLevel.OK: "green",
    FindingLevel.WARNING: "yellow",
    FindingLevel.ERROR: "red",
    FindingLevel.SKIPPED: "dim",
}


@click.command(cls=PassthroughCommand, needs_program=False, context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="")
@click.option(
    "--dialect",
    type=click.Choice([AUTO, *list_dialects()]),
    default=NATIVE.name,
    show_default=True,
    help="Dialect of the program; auto tries each with a new process.",
)
@click.option("--id", "id", metavar="ID", help="Id of the extension; derived from its manifest or command by default.")
@click.option("--folder", type=FOLDER, metavar="PATH", help="Folder of the extension: run it there, read its manifest.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0.1),
    metavar="SECONDS",
    help=f"Timeout for a response; default: that of the dialect's hosts, {AUTO_TIMEOUT:g} s with auto.",
)
@click.option("--call-tools", is_flag=True, help="Call all tools, not only those that are marked as read-only.")
@click.option(
    "--command",
    "line",
    metavar="LINE",
    help="Command of the extension to run, with arguments; default: one that is marked as read-only.",
)
@click.option(
    "--conformance/--no-conformance",
    default=True,
    show_default=True,
    help="Also run the conformance cases of the dialect that a valid host could send.",
)
@click.option("--junit", type=FILE, metavar="FILE", help="Also write the findings to this file, as JUnit XML.")
@click.option("--no-data", is_flag=True, help="No effect, as no data is ever saved; accepted as by other commands.")
@json_option
def check(
    words: tuple[str, ...],
    program: tuple[str, ...],
    dialect: str,
    id: str | None,
    folder: Path | None,
    timeout: float | None,
    call_tools: bool,
    line: str | None,
    conformance: bool,
    junit: Path | None,
    no_data: bool,
    as_json: bool,
) -> ExitCode:
    """Start CMD and check whether it is a valid extension: framing, handshake, responses, stray output, shutdown.

    Tools that are marked as read-only are called, one of the calls is cancelled, and a command that is marked as
    read-only is run. If there is no error so far, the conformance cases of the dialect follow: all that a valid host
    could send, in about twenty processes. CMD gets the environment that a host would give it. A manifest beside the
    program or in --folder is used. The exit code is 1 if there is an error.

    \b
    becket check -- python3 notes.py
    becket check --call-tools --command "show all" --junit check.xml -- ./notes/run
    becket check --dialect nexo --folder weather -- ./weather/main.py
    becket check --dialect auto --json -- node dice.js
    """
    command = find_program(words, program)
    if timeout is None and dialect == AUTO:
        timeout = AUTO_TIMEOUT
    request = CheckRequest(command, id, folder, timeout, calls_tools=call_tools, line=split_line(line))
    names = list_dialects() if dialect == AUTO else [dialect]
    reports: dict[str, list[Finding]] = {}
    untried: dict[str, MissingExtra] = {}
    for name in names:
        try:
            reports[name] = [*run_checks(name, request.build_subject(name))]
        except MissingExtra as error:
            if dialect != AUTO:
                raise
            untried[name] = error
    best = choose_dialect(reports)
    if conformance and has_no_errors(reports[best]):
        from becket.cli.support.conformance_check import check_conformance

        reports[best] += check_conformance(best, request.build_subject(best))
    if junit is not None:
        from becket.cli.support.junit import write_junit

        write_junit(junit, command, reports if dialect != AUTO else {best: reports[best]})
    ok = has_no_errors(reports[best])
    for name, missing in untried.items():
        print_message(f"{name} was not tried: {missing}")
    if as_json:
        print_json(
            {
                "command": command,
                "ok": ok,
                "dialect": best if has_responded(reports[best]) else None,
                "reports": {name: {"ok": has_no_errors(found), "findings": found} for name, found in reports.items()},
            }
        )
    else:
        if dialect == AUTO:
            tried = {name: "yes" if has_responded(found) else "no" for name, found in reports.items()}
            print_line("; ".join(f"{name}: {tried.get(name, 'not tried')}" for name in names))
        for finding in reports[best]:
            print_finding(finding)
        print_message(format_conclusion(best, reports))
    return ExitCode.DONE if ok else ExitCode.FAILED


def find_program(words: tuple[str, ...], program: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the command line to check: the words after `--`, or all words without `--`.

    Raises:
        click.UsageError: there is none, or an option is unknown.
    """
    ctx = click.get_current_context()
    unknown = words[:1] if program or (words and words[0].startswith("-")) else ()
    if unknown:
        raise click.UsageError(f"No such option: {unknown[0]}; the program follows `--`", ctx)
    if not program and not words:
        raise click.UsageError("A program is missing after `--`, such as: ... -- python3 notes.py", ctx)
    return program or words


def format_conclusion(best: str, reports: dict[str, list[Finding]]) -> str:
    if has_no_errors(reports[best]):
        return f"no errors: a valid {best} extension"
    if len(reports) > 1 and not has_responded(reports[best]):
        return "not an extension: responds to none of these dialects"
    return f"not a valid {best} extension: see the errors above"


class CheckRequest:
    """Arguments of `becket check`."""

    def __init__(
        self,
        command: tuple[str, ...],
        id: str | None,
        folder: Path | None,
        timeout: float | None,
        *,
        calls_tools: bool = False,
        line: tuple[str, ...] | None = None,
    ) -> None:
        self._command = command
        self._id = id
        self._folder = None if folder is None else str(folder.absolute())
        self._timeout = timeout
        self._calls_tools = calls_tools
        self._line = line
        self._folders = TemporaryFolders()

    def build_subject(self, dialect: str) -> CheckSubject:
        """Returns the subject of the checks in one dialect, with data of its manifest if there is one."""
        folders = folders_of(self._command) if self._folder is None else [self._folder]
        found, root = next(
            ((found, folder) for folder in folders if (found := find_manifest(folder, dialect)) is not None),
            (None, self._folder or os.getcwd()),
        )
        id = self._id or (derive_id(self._command) if found is None else found.id)
        if (problem := find_extension_id_problem(id)) is not None:
            raise click.UsageError(f"invalid id {id!r}: {problem} (give another one with --id)")
        variables = prefer_own_python(os.environ)
        defaults = DIALECTS[dialect].host_defaults
        manifest = None if found is None else found.manifest
        return CheckSubject(
            command=self._command,
            id=id,
            env=build_default_environment(
                id,
                defaults,
                variables,
                Environment() if manifest is None else manifest.environment,
                defaults_set=make_default_variables(
                    defaults, EnvironmentContext(id, DEFAULT_HOST_INFO, None, variables), self._folders
                ),
            ),
            cwd=self._folder,
            root=root,
            timeout=DIALECTS[dialect].host_limits.handshake if self._timeout is None else self._timeout,
            manifest_id=None if found is None else found.id,
            permissions=PERMISSIONS if manifest is None else manifest.permissions,
            config={} if manifest is None else resolve_check_config(id, manifest, variables, defaults),
            call_timeout=CALL_TIMEOUT if self._timeout is None else self._timeout,
            extra=None if found is None else found.extra,
            calls_tools=self._calls_tools,
            line=self._line or find_read_only(() if manifest is None else manifest.commands),
            has_commands=manifest is not None and bool(manifest.commands),
        )


def split_line(line: str | None) -> tuple[str, ...] | None:
    """Returns the words of `--command`.

    Raises:
        click.BadParameter: it is empty, or a quotation mark is missing.
    """
    if line is None:
        return None
    try:
        words = tuple(shlex.split(line))
    except ValueError as error:
        raise click.BadParameter(f"{error}: {line}", param_hint="--command") from error
    if not words:
        raise click.BadParameter("must be the name of a command and its arguments", param_hint="--command")
    return words


def find_read_only(commands: Iterable[CommandEntry]) -> tuple[str, ...] | None:
    return next(((command.name,) for command in commands if command.read_only), None)


def folders_of(command: tuple[str, ...]) -> list[str]:
    """Returns the folders of the files in a command line: they may have a manifest."""
    return [str(Path(word).absolute().parent) for word in command if os.path.isfile(word)]


def resolve_check_config(
    id: str, manifest: Manifest, variables: Mapping[str, str], defaults: HostDefaults
) -> Mapping[str, Any]:
    """Returns the configuration of an extension without stored values."""
    return resolve_config(id, manifest.config, variables=variables, defaults=defaults).values


def find_manifest(folder: str, dialect: str) -> Candidate | None:
    """Returns the extension in a folder, or None unless there is exactly one manifest of this dialect."""
    from becket.host.starting.discovery import DiscoverySettings, discover_extensions
    from becket.host.starting.manifest_formats import MANIFEST_READERS

    readers = [reader for reader in MANIFEST_READERS if reader.dialect == dialect]
    found: Any = discover_extensions([folder], settings=DiscoverySettings(depth=0), readers=readers).candidates
    return found[0] if len(found) == 1 else None


def choose_dialect(reports: dict[str, list[Finding]]) -> str:
    """Returns the dialect with the best report; the first of equals."""
    return max(
        reports,
        key=lambda name: (
            has_no_errors(reports[name]),
            has_responded(reports[name]),
            is_conclusive(name, reports[name]),
        ),
    )


def is_conclusive(name: str, findings: list[Finding]) -> bool:
    """Returns whether the findings are specific to this dialect: a program that declares nothing may speak another."""
    if name == NATIVE.name:
        return any(finding.check == "handshake" and "; features " in finding.text for finding in findings)
    return all(finding.text != NOTHING_DECLARED for finding in findings)


def print_finding(finding: Finding) -> None:
    text = escape(finding.text)
    if is_terminal():
        from rich.text import Text

        line = Text(f"{finding.level:<8}", style=COLOURS[finding.level])
        console().print(line.append(f"{finding.check:<14}{text}", style="default"), soft_wrap=True)
    else:
        print_line(f"{finding.level:<8}{finding.check:<14}{text}")
    if finding.hint:
        print_line(f"{'':22}{escape(finding.hint)}")
