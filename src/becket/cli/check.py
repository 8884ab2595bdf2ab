"""`becket check`: is this program an extension? It is started and driven through the handshake."""

from __future__ import annotations

import os
from pathlib import Path

import click

from becket.cli.checks import CHECKS, Finding, Level, Subject, is_well, speaks
from becket.cli.exits import Exit
from becket.cli.hosting import FOLDER
from becket.cli.output import console, is_terminal, json_option, print_json, print_line, say
from becket.host.connecting import find_problem, read_id
from becket.host.environment import build_environment, build_own_variables, with_own_programs
from becket.peer.stderr import harmless

__all__ = ["check"]

AUTO = "auto"
COLOURS = {Level.OK: "green", Level.WARNING: "yellow", Level.ERROR: "red"}


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option(
    "--dialect",
    type=click.Choice([AUTO, *CHECKS]),
    default="native",
    show_default=True,
    help="What it speaks; auto tries all, each with a fresh process.",
)
@click.option("--id", "id", metavar="ID", help="The id that it is told; read from the command unless given.")
@click.option("--folder", type=FOLDER, metavar="PATH", help="Run it in this folder, its own.")
@click.option(
    "--timeout", type=click.FloatRange(min=0.1), default=3.0, show_default=True, help="Seconds for an answer."
)
@json_option
def check(
    command: tuple[str, ...], dialect: str, id: str | None, folder: Path | None, timeout: float, as_json: bool
) -> Exit:
    """Start COMMAND and look whether it is an extension: framing, handshake, answers, stray output, its end.

    It gets the environment that a host would give it. The exit code is 0 where nothing is wrong, and 1 where it is.

    \b
    becket check -- python3 notes.py
    becket check --dialect auto --json -- node dice.js
    """
    id = read_id(command) if id is None else id
    if (problem := find_problem(id)) is not None:
        raise click.UsageError(f"no extension can have the id {id!r}: {problem} (--id gives another)")
    subject = Subject(
        command=command,
        id=id,
        env=build_environment(with_own_programs(os.environ), own=build_own_variables(id, None)).variables,
        cwd=None if folder is None else str(folder.absolute()),
        timeout=timeout,
    )
    reports = {name: [*CHECKS[name](subject)] for name in (CHECKS if dialect == AUTO else [dialect])}
    best = choose(reports)
    ok = is_well(reports[best])
    if as_json:
        print_json(
            {
                "command": command,
                "ok": ok,
                "dialect": best if speaks(reports[best]) else None,
                "reports": {name: {"ok": is_well(found), "findings": found} for name, found in reports.items()},
            }
        )
    else:
        if dialect == AUTO:
            print_line("; ".join(f"{name}: {'yes' if speaks(found) else 'no'}" for name, found in reports.items()))
        for finding in reports[best]:
            print_finding(finding)
        say(f"nothing is wrong: it speaks {best}" if ok else f"it is no extension that speaks {best}, as it is")
    return Exit.DONE if ok else Exit.FAILED


def choose(reports: dict[str, list[Finding]]) -> str:
    """Returns the dialect that the program speaks best; of equals the first."""
    return max(reports, key=lambda name: (is_well(reports[name]), speaks(reports[name])))


def print_finding(finding: Finding) -> None:
    text = harmless(finding.text)
    if is_terminal():
        from rich.text import Text

        line = Text(f"{finding.level:<8}", style=COLOURS[finding.level])
        console().print(line.append(f"{finding.check:<14}{text}", style="default"), soft_wrap=True)
    else:
        print_line(f"{finding.level:<8}{finding.check:<14}{text}")
    if finding.hint:
        print_line(f"{'':22}{harmless(finding.hint)}")
