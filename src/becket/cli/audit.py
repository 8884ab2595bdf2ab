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
    "--last", "-n", default=20, show_default=True, type=click.IntRange(min=0), help="Number of records to show; 0: all."
)
@click.option("--extension", metavar="ID", help="Only records about this extension.")
@click.option("--kind", type=click.Choice(KINDS), help="Only records of this kind.")
@click.option("--denied", is_flag=True, help="Only calls that were denied.")
@click.option("--verify", is_flag=True, help="Show no records, only missing and changed ones.")
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
    """Verify the audit log of a host and show its last records, oldest first.

    Each record has the digest of the one before, and the anchor beside the file has that of the last: changed, removed,
    moved and truncated lines are detected, and the numbers of missing records are shown. The exit code is then 1. An
    incomplete last line, left by a crash, is only a warning.

    \b
    becket audit --verify
    becket audit --name demo --extension notes --denied
    becket audit --last 0 --json
    """
    path = options.data_dir().audit
    has_files = path.parent.is_dir() and (path.exists() or bool(find_rotated(path)))
    if not has_files and read_anchor(path) is None:
        print_message(f"error: no audit log: {path} (select a host with --name or --data)")
        return ExitCode.NOT_FOUND
    problems = verify_audit(path)
    is_whole = all(problem.is_torn_end for problem in problems)
    records: deque[AuditRecord] = deque(maxlen=last or None)
    if has_files and not verify:
        records.extend(record for record in read_audit(path) if matches(record, extension, kind, denied=denied))
    if as_json:
        shown: dict[str, Any] = {} if verify else {"records": list(records)}
        print_json({"file": str(path), "ok": is_whole, "problems": problems, **shown})
    else:
        if not verify:
            print_table(("seq", "time", "kind", "extension", "what"), map(row_of, records))
        for problem in problems:
            show_problem(problem, on_stdout=verify)
        print_message(
            "the chain is intact" if is_whole else "the chain is broken: the audit log was changed after it was written"
        )
    return ExitCode.DONE if is_whole else ExitCode.FAILED


def show_problem(problem: AuditProblem, *, on_stdout: bool) -> None:
    level = "warning" if problem.is_torn_end else "error"
    where = f"{problem.path}:{problem.line}" if problem.line else problem.path
    (print_line if on_stdout else print_message)(f"{level}: {where}: {problem.problem}")


def matches(record: AuditRecord, extension: str | None, kind: str | None, *, denied: bool) -> bool:
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
