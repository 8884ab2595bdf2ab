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
from becket.host.starting.configuration import resolve_config
from becket.host.starting.connect import DEFAULT_HOST_INFO, derive_id, find_extension_id_problem
from becket.host.starting.environment import build_default_environment, prefer_own_python
from becket.host.starting.manifest import CommandEntry, Environment, Manifest
from becket.host.starting.temporary_folders import TemporaryFolders, make_habitual_variables
from becket.permissions.names import PERMISSIONS

if TYPE_CHECKING:
    from becket.host.starting.discovery import Candidate

__all__ = ["check"]

AUTO = "auto"
AUTO_TIMEOUT = 3.0  # seconds for each dialect: most of the silence there is that of the wrong one
CALL_TIMEOUT = 30.0  # seconds for every response after the handshake, unless given: far more than a tool should take
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
    help="What it speaks; auto tries all, each with a fresh process.",
)
@click.option("--id", "id", metavar="ID", help="The id that it is told; read from its manifest or the command.")
@click.option("--folder", type=FOLDER, metavar="PATH", help="Run it in this folder, its own; its manifest counts too.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0.1),
    metavar="SECONDS",
    help=f"Wait so long for a response; as long as a host of the dialect unless given, {AUTO_TIMEOUT:g} s with auto.",
)
@click.option("--call-tools", is_flag=True, help="Call all tools, also those that are not marked as read-only.")
@click.option(
    "--command",
    "line",
    metavar="LINE",
    help="Run this command of it, with arguments; one that is marked as read-only unless given.",
)
@click.option("--junit", type=FILE, metavar="FILE", help="Write the findings to this file too, as JUnit XML.")
@click.option("--no-data", is_flag=True, help="Accepted as by other commands: nothing is ever kept.")
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
    junit: Path | None,
    no_data: bool,
    as_json: bool,
) -> ExitCode:
    """Start CMD and check whether it is an extension: framing, handshake, responses, stray output, its end.

    Tools that are marked as read-only are called, one of the calls is cancelled, and a command that is marked as
    read-only is run. It gets the environment that a host would give it, and its manifest counts where it lies beside
    the program or in --folder. The exit code is 0 where nothing is wrong, and 1 where something is.

    \b
    becket check -- python3 notes.py
    becket check --call-tools --command "show all" --junit check.xml -- ./notes/run
    becket check --dialect nexo --folder weather -- ./weather/main.py
    becket check --dialect auto --json -- node dice.js
    """
    command = find_program(words, program)
    if timeout is None and dialect == AUTO:
        timeout = AUTO_TIMEOUT
    asked = CheckRequest(command, id, folder, timeout, calls_tools=call_tools, line=split_line(line))
    names = list_dialects() if dialect == AUTO else [dialect]
    reports = {name: [*run_checks(name, asked.build_subject(name))] for name in names}
    best = choose_dialect(reports)
    if junit is not None:
        from becket.cli.support.junit import write_junit

        write_junit(junit, command, reports if dialect != AUTO else {best: reports[best]})
    ok = has_no_errors(reports[best])
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
            print_line(
                "; ".join(f"{name}: {'yes' if has_responded(found) else 'no'}" for name, found in reports.items())
            )
        for finding in reports[best]:
            print_finding(finding)
        print_message(format_conclusion(best, reports))
    return ExitCode.DONE if ok else ExitCode.FAILED


def find_program(words: tuple[str, ...], program: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the command line to check: what follows `--`, or all words where there is no `--`.

    Raises:
        click.UsageError: there is none, or an option is not known.
    """
    ctx = click.get_current_context()
    unknown = words[:1] if program or (words and words[0].startswith("-")) else ()
    if unknown:
        raise click.UsageError(f"No such option: {unknown[0]}; the program to check follows `--`", ctx)
    if not program and not words:
        raise click.UsageError("There must be a program, behind `--`: ... -- python3 notes.py", ctx)
    return program or words


def format_conclusion(best: str, reports: dict[str, list[Finding]]) -> str:
    if has_no_errors(reports[best]):
        return f"nothing is wrong: it speaks {best}"
    if len(reports) > 1 and not has_responded(reports[best]):
        return "it is no extension: it speaks none of these"
    return f"it is no extension that speaks {best}, as it is"


class CheckRequest:
    """What somebody wants to know."""

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
        """Returns what is checked in one dialect: where its folder has a manifest of it, that tells more."""
        folders = folders_of(self._command) if self._folder is None else [self._folder]
        found, root = next(
            ((found, folder) for folder in folders if (found := find_manifest(folder, dialect)) is not None),
            (None, self._folder or os.getcwd()),
        )
        id = self._id or (derive_id(self._command) if found is None else found.id)
        if (problem := find_extension_id_problem(id)) is not None:
            raise click.UsageError(f"no extension can have the id {id!r}: {problem} (--id gives another)")
        variables = prefer_own_python(os.environ)
        habits = DIALECTS[dialect].host_defaults
        manifest = None if found is None else found.manifest
        return CheckSubject(
            command=self._command,
            id=id,
            env=build_default_environment(
                id,
                habits,
                variables,
                Environment() if manifest is None else manifest.environment,
                habitual=make_habitual_variables(
                    habits, EnvironmentContext(id, DEFAULT_HOST_INFO, None, variables), self._folders
                ),
            ),
            cwd=self._folder,
            root=root,
            timeout=DIALECTS[dialect].host_limits.handshake if self._timeout is None else self._timeout,
            manifest_id=None if found is None else found.id,
            permissions=PERMISSIONS if manifest is None else manifest.permissions,
            config={} if manifest is None else resolve_check_config(id, manifest, variables, habits),
            call_timeout=CALL_TIMEOUT if self._timeout is None else self._timeout,
            extra=None if found is None else found.extra,
            calls_tools=self._calls_tools,
            line=self._line or find_read_only(() if manifest is None else manifest.commands),
            has_commands=manifest is not None and bool(manifest.commands),
        )


def split_line(line: str | None) -> tuple[str, ...] | None:
    """Returns the words of `--command`.

    Raises:
        click.BadParameter: it has none, or a quotation mark is missing.
    """
    if line is None:
        return None
    try:
        words = tuple(shlex.split(line))
    except ValueError as error:
        raise click.BadParameter(f"{error}: {line}", param_hint="--command") from error
    if not words:
        raise click.BadParameter("it must be the name of a command, and its arguments", param_hint="--command")
    return words


def find_read_only(commands: Iterable[CommandEntry]) -> tuple[str, ...] | None:
    return next(((command.name,) for command in commands if command.read_only), None)


def folders_of(command: tuple[str, ...]) -> list[str]:
    """Returns the folders of files that a command line names; a manifest may lie beside them."""
    return [str(Path(word).absolute().parent) for word in command if os.path.isfile(word)]


def resolve_check_config(
    id: str, manifest: Manifest, variables: Mapping[str, str], habits: HostDefaults
) -> Mapping[str, Any]:
    """Returns what is known of its configuration without a host that keeps some."""
    return resolve_config(id, manifest.config, variables=variables, habits=habits).values


def find_manifest(folder: str, dialect: str) -> Candidate | None:
    """Returns the extension that a folder is by its manifest; None where it has none of this dialect, or several."""
    from becket.host.starting.discovery import DiscoverySettings, discover_extensions
    from becket.host.starting.manifest_formats import MANIFEST_READERS

    readers = [reader for reader in MANIFEST_READERS if reader.dialect == dialect]
    found: Any = discover_extensions([folder], settings=DiscoverySettings(depth=0), readers=readers).candidates
    return found[0] if len(found) == 1 else None


def choose_dialect(reports: dict[str, list[Finding]]) -> str:
    """Returns the dialect that the program speaks best; of equals the first."""
    return max(
        reports,
        key=lambda name: (
            has_no_errors(reports[name]),
            has_responded(reports[name]),
            is_conclusive(name, reports[name]),
        ),
    )


def is_conclusive(name: str, findings: list[Finding]) -> bool:
    """Returns whether no other dialect is meant: what answers and declares nothing of its own may mean another."""
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
