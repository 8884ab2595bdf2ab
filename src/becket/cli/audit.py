"""`becket audit`: verifies the audit chain of a host and prints its records."""

from __future__ import annotations

from collections import deque
from datetime import UTC, datetime
from typing import Any

import click
import msgspec

from becket.cli.support.exit_codes import ExitCode
from becket.cli.support.options import DataDirOptions, data_dir_options
from becket.cli.support.output import json_option, print_json, print_line, print_message, print_table
from becket.contract.audit import AuditRecord
from becket.host.audit_anchor import read_anchor
from becket.host.audit_log import AuditProblem, find_rotated, read_audit, verify_audit

__all__ = ["audit"]

KINDS = ("call", "calls", "grant", "start", "change", "provider", "rotate")


@click.command()
@data_dir_options
@click.option(
    "--last", "-n", default=20, show_default=True, type=click.IntRange(min=0), help="How many to show; 0: all."
)
@click.option("--extension", metavar="ID", help="Only what is about this extension.")
@click.option("--kind", type=click.Choice(KINDS), help="Only records of this kind.")
@click.option("--denied", is_flag=True, help="Only calls that were denied.")
@click.option("--verify", is_flag=True, help="Show no records, only what is missing or was changed.")
@json_option
def audit(
    options: DataDirOptions,
    last: int,
    extension: str | None,
    kind: str | None,
    denied: bool,
    verify: bool,
    as_json: bool,
) -> ExitCode:
    """Verify the audit of a host and show its last records, the oldest first.

    Each record holds the one before it in place, and the anchor beside the file the last one: a line that was changed,
    left out, moved or cut off is found, and the numbers of missing records are shown. The exit code is 1 then. What a
    crash left of a line is told, and is no fault.

    \b
    becket audit --verify
    becket audit --name demo --extension notes --denied
    becket audit --last 0 --json
    """
    path = options.data_dir().audit
    has_files = path.parent.is_dir() and (path.exists() or bool(find_rotated(path)))
    if not has_files and read_anchor(path) is None:
        print_message(f"error: there is no audit: {path} (which host do you mean? --name or --data says it)")
        return ExitCode.NOT_FOUND
    problems = verify_audit(path)
    is_whole = all(problem.is_torn_end for problem in problems)
    records: deque[AuditRecord] = deque(maxlen=last or None)
    if has_files and not verify:
        records.extend(record for record in read_audit(path) if is_wanted(record, extension, kind, denied=denied))
    if as_json:
        shown: dict[str, Any] = {} if verify else {"records": list(records)}
        print_json({"file": str(path), "ok": is_whole, "problems": problems, **shown})
    else:
        if not verify:
            print_table(("seq", "time", "kind", "extension", "what"), map(row_of, records))
        for problem in problems:
            show_problem(problem, is_asked_for=verify)
        print_message(
            "the chain is whole" if is_whole else "the chain is broken: the audit is not the one that was written"
        )
    return ExitCode.DONE if is_whole else ExitCode.FAILED


def show_problem(problem: AuditProblem, *, is_asked_for: bool) -> None:
    """Prints a problem, to stdout where the problems are what was asked for."""
    level = "warning" if problem.is_torn_end else "error"
    where = f"{problem.path}:{problem.line}" if problem.line else problem.path
    (print_line if is_asked_for else print_message)(f"{level}: {where}: {problem.problem}")


def is_wanted(record: AuditRecord, extension: str | None, kind: str | None, *, denied: bool) -> bool:
    event = record_members(record)
    return (
        (extension is None or event.get("extension") == extension)
        and (kind is None or event["kind"] == kind)
        and (not denied or event.get("allowed") is False)
    )


def record_members(record: AuditRecord) -> dict[str, Any]:
    members: dict[str, Any] = msgspec.to_builtins(record.event)
    return members


def row_of(record: AuditRecord) -> tuple[str, ...]:
    event = record_members(record)
    kind, extension = event.pop("kind"), event.pop("extension", "")
    time = datetime.fromtimestamp(record.time_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return (
        str(record.seq),
        time,
        kind,
        extension,
        ", ".join(f"{name} {format_value(value)}" for name, value in event.items()),
    )


def format_value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str | int):
        return str(value)
    return " ".join(map(str, value or ())) or "none"
