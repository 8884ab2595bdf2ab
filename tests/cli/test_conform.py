"""`becket conform`: its options, output and exit codes."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep

import pytest
from tests.cli.commands import BECKET, becket
from tests.conformance.mutants.mutants import program

from becket.conformance import Role

CHOSEN = ("--case", "N-FR-00*", "--timeout", "20")
CORRECT = ("--", *program("native", Role.EXTENSION, {}))
BROKEN = ("--", *program("native", Role.EXTENSION, {"flags": ["no lower case"]}))

PATIENCE = 60  # seconds

pytestmark = pytest.mark.process


def test_a_correct_extension_passes_with_a_row_for_each_family() -> None:
    done = becket("conform", *CHOSEN, *CORRECT)

    assert done.returncode == 0
    assert done.stdout.split()[-5:] == ["framing", "9", "-", "-", "-"]
    assert "9 pass, 0 tolerated, 0 fail, 0 not offered" in done.stderr


def test_a_failure_has_its_case_and_reason_and_exit_code_1(tmp_path: Path) -> None:
    page, junit = tmp_path / "conform.html", tmp_path / "conform.xml"

    done = becket("conform", *CHOSEN, "-v", "--report", str(page), "--junit", str(junit), *BROKEN)

    assert done.returncode == 1
    assert "fail        N-FR-004" in done.stdout
    assert "content-length: 65" in done.stdout  # the conversation
    assert "N-FR-004" in page.read_text(encoding="utf-8")
    assert "N-FR-004" in junit.read_text(encoding="utf-8")


def test_a_chosen_case_that_passes_is_shown_with_its_conversation() -> None:
    done = becket("conform", "--case", "N-FR-001", "-v", *CORRECT)

    assert "pass        N-FR-001" in done.stdout
    assert '"method":"becket.conform/no_such_method"' in done.stdout


def test_a_known_failure_is_no_error_and_a_known_failure_that_passes_is(tmp_path: Path) -> None:
    known = tmp_path / "known.txt"
    known.write_text("N-FR-004 # upper case only\n", encoding="utf-8")

    broken = becket("conform", *CHOSEN, "--expect", str(known), *BROKEN)
    mended = becket("conform", *CHOSEN, "--expect", str(known), *CORRECT)

    assert broken.returncode == 0
    assert "(known)" in broken.stdout
    assert mended.returncode == 1
    assert "N-FR-004: passed, but is expected to fail" in mended.stderr


def test_json_has_every_case_with_its_conversation() -> None:
    done = becket("conform", "--json", *CHOSEN, *BROKEN)

    document = json.loads(done.stdout)
    assert document["ok"] is False
    assert document["counts"] == {"pass": 8, "tolerated": 0, "fail": 1, "not offered": 0}
    assert document["unexpected"] == {"failures": ["N-FR-004"], "passes": []}
    assert document["cases"][0]["conversation"][0]["sender"] == "suite"


def test_a_case_whose_requirement_is_not_offered_never_counts_as_passed(tmp_path: Path) -> None:
    empty = tmp_path / "empty.py"
    empty.write_text(
        "from becket.extension import ExtensionServer\n\n\nclass Empty(ExtensionServer):\n"
        "    id, version = 'empty', '1.0.0'\n\n\nEmpty().run()\n",
        encoding="utf-8",
    )

    done = becket("conform", "--family", "hooks", "--", sys.executable, str(empty))

    assert done.returncode == 1  # nothing was tested
    assert "0 pass, 0 tolerated, 0 fail, 7 not offered" in done.stderr


def test_a_handshake_that_fails_is_shown_once_with_the_stderr_of_the_program() -> None:
    done = becket("conform", "--family", "framing", "--", sys.executable, "-c", "raise SystemExit('no key')")

    assert done.returncode == 1
    assert done.stdout.count("the handshake failed") == 1
    assert "24 cases: the handshake failed" in done.stdout
    assert "stderr: no key" in done.stdout


def test_a_tolerated_case_reports_what_was_expected_instead() -> None:
    without_versions = {"out": [['{"error": {"code": 1008}}', '{"error": {"data": "$absent"}}']]}

    done = becket("conform", "--case", "N-HS-005", "--", *program("native", Role.EXTENSION, without_versions))

    assert done.returncode == 0
    assert "tolerated   N-HS-005" in done.stdout
    assert "/error/data: is missing" in done.stdout


def test_the_program_may_follow_the_options_without_dashes() -> None:
    assert becket("conform", *CHOSEN, *CORRECT[1:]).returncode == 0


def test_an_interrupt_ends_the_run_and_its_programs(tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    silent = program("native", Role.EXTENSION, {"ignore": ['{"method": "becket.conform/no_such_method"}']})
    command = f"echo $$ >> {starts}; exec {shlex.join(silent)}"
    running = subprocess.Popen(
        [*BECKET, "conform", "--case", "N-FR-001", "--timeout", "100", "--", "sh", "-c", command]
    )

    pids = wait_for_lines(starts, 2)  # what it offers, and the case, which now waits
    running.send_signal(signal.SIGINT)

    assert running.wait(PATIENCE) == 130
    assert not any(is_running(int(pid)) for pid in pids)


def wait_for_lines(path: Path, count: int) -> list[str]:
    end = monotonic() + PATIENCE
    while monotonic() < end:
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        if len(lines) >= count:
            return lines
        sleep(0.05)
    raise AssertionError(f"{path} has fewer than {count} lines")


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_program_that_cannot_be_started_has_its_exit_code() -> None:
    done = becket("conform", "--", "/nowhere/program")

    assert done.returncode == 5
    assert "/nowhere/program" in done.stderr


def test_cases_are_listed_without_a_program() -> None:
    done = becket("conform", "--list", "--family", "shutdown")

    assert done.returncode == 0
    assert "N-SD-001" in done.stdout


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("--case", "N-XX-1", "--", "true"), "no case `N-XX-1`"),
        (("--family", "weather", "--", "true"), "no family `weather`"),
        ((), "A program is missing"),
    ],
)
def test_a_wrong_command_line_is_explained(words: tuple[str, ...], hint: str) -> None:
    done = becket("conform", *words)

    assert done.returncode == 2
    assert hint in done.stderr


@pytest.mark.parametrize("dialect", ["native", "nexo", "mcp"])
def test_a_correct_host_of_any_dialect_passes(dialect: str) -> None:
    chosen = {"native": "NH-HS-001", "nexo": "NEXH-RQ-003", "mcp": "MCPH-TL-002"}[dialect]

    done = becket("conform", "--dialect", dialect, "--host", "--case", chosen, "--", *program(dialect, Role.HOST, {}))

    assert "1 pass, 0 tolerated, 0 fail, 0 not offered" in done.stderr
    assert done.returncode == 0
