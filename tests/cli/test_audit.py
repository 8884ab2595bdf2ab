"""`becket audit`: verifies the chain and shows the selected events."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.commands import here

from becket.cli.support.exit_codes import ExitCode
from becket.contract.audit import (
    AuditEvent,
    CallDecided,
    CallsCounted,
    GrantChanged,
    ProcessStarted,
)
from becket.host.audit_log import AuditFile

EVENTS: list[AuditEvent] = [
    ProcessStarted("notes", ("python3", "notes.py"), "native", (), "none"),
    GrantChanged("notes", "memory.read", True, "operator"),
    CallDecided("notes", "memory.append", "memory.write", False, "it was not granted"),
    CallsCounted("guard", "config.get", None, 7, 1_000),
]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    file = AuditFile(tmp_path / "audit.jsonl")
    for number, event in enumerate(EVENTS):
        file.write(event, 1_000 * number)
    file.close()
    return tmp_path


def shown(data: Path, *words: str) -> Any:
    return json.loads(here("audit", "--data", str(data), "--json", *words).stdout)


def test_the_records_are_shown_as_a_table(data: Path) -> None:
    done = here("audit", "--data", str(data))

    header, *rows = done.stdout.splitlines()
    assert done.exit_code == ExitCode.DONE
    assert header.split() == ["SEQ", "TIME", "KIND", "EXTENSION", "WHAT"]
    assert [row.split()[:4] for row in rows] == [
        ["1", "1970-01-01T00:00:00Z", "start", "notes"],
        ["2", "1970-01-01T00:00:01Z", "grant", "notes"],
        ["3", "1970-01-01T00:00:02Z", "call", "notes"],
        ["4", "1970-01-01T00:00:03Z", "calls", "guard"],
    ]
    assert "allowed no" in rows[2]
    assert "permission none" in rows[3]
    assert "intact" in done.stderr


def test_the_records_are_json_for_programs(data: Path) -> None:
    received = shown(data)

    assert (received["ok"], received["problems"]) == (True, [])
    assert [record["event"]["kind"] for record in received["records"]] == ["start", "grant", "call", "calls"]


@pytest.mark.parametrize(
    ("words", "numbers"),
    [
        (["--last", "2"], [3, 4]),
        (["--last", "0"], [1, 2, 3, 4]),
        (["--extension", "guard"], [4]),
        (["--kind", "grant"], [2]),
        (["--denied"], [3]),
        (["--denied", "--extension", "guard"], []),
    ],
)
def test_only_the_selected_events_are_shown(data: Path, words: list[str], numbers: list[int]) -> None:
    assert [record["seq"] for record in shown(data, *words)["records"]] == numbers


def test_a_line_that_was_changed_is_found(data: Path) -> None:
    path = data / "audit.jsonl"
    path.write_text(path.read_text(encoding="utf-8").replace("memory.read", "memory.kept"), encoding="utf-8")

    done = here("audit", "--data", str(data))

    assert done.exit_code == ExitCode.FAILED
    assert f"{path}:3" in done.stderr
    assert "broken" in done.stderr
    assert shown(data)["ok"] is False


def test_verify_prints_the_missing_records(data: Path) -> None:
    path = data / "audit.jsonl"
    assert here("audit", "--data", str(data), "--verify").stdout == ""
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:2]))

    done = here("audit", "--data", str(data), "--verify")

    assert done.exit_code == ExitCode.FAILED
    assert done.stdout == f"error: {path}: records 3 to 4 are missing\n"
    received = shown(data, "--verify")
    assert received.keys() == {"file", "ok", "problems"}
    assert [problem["missing"] for problem in received["problems"]] == [[3, 4]]


def test_an_audit_of_which_only_the_anchor_is_left_is_missed(data: Path) -> None:
    (data / "audit.jsonl").unlink()

    done = here("audit", "--data", str(data))

    assert done.exit_code == ExitCode.FAILED
    assert "records 1 to 4 are missing" in done.stderr


def test_a_line_that_a_crash_cut_off_is_reported_and_not_an_error(data: Path) -> None:
    with (data / "audit.jsonl").open("ab") as file:
        file.write(b'{"seq":5,')

    done = here("audit", "--data", str(data))

    assert done.exit_code == ExitCode.DONE
    assert "warning" in done.stderr


@pytest.mark.parametrize("folder", ["", "none"])
def test_a_host_without_an_audit_log_is_reported(tmp_path: Path, folder: str) -> None:
    done = here("audit", "--data", str(tmp_path / folder))

    assert (done.exit_code, done.stdout) == (ExitCode.NOT_FOUND, "")
    assert str(tmp_path) in done.stderr
