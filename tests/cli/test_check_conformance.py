"""`becket check` runs the conformance cases that a valid host could send."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.cli.commands import here

from becket.cli.support.exit_codes import ExitCode

pytestmark = pytest.mark.process

EXAMPLES = Path(__file__).parents[2] / "examples"
PAGES = EXAMPLES / "other_languages" / "python" / "pages.py"
LAMP = EXAMPLES / "dialects" / "nexo" / "lamp" / "lamp.sh"
WEATHER = EXAMPLES / "dialects" / "nexo" / "weather" / "weather.py"
PATIENCE = ("--timeout", "20")


def write_changed(tmp_path: Path, source: Path, old: str, new: str) -> Path:
    """Writes a copy of an example with one change."""
    text = source.read_text(encoding="utf-8")
    assert old in text
    path = tmp_path / source.name
    path.write_text(text.replace(old, new), encoding="utf-8")
    return path


def check(*words: str) -> tuple[int, list[tuple[str, str, str]]]:
    """Returns the exit code, and level, text and hint of the findings on conformance."""
    done = here("check", "--json", *PATIENCE, *words)
    document = json.loads(done.stdout)
    findings = document["reports"][document["dialect"]]["findings"]
    return done.exit_code, [
        (one["level"], one["text"], one["hint"]) for one in findings if one["check"] == "conformance"
    ]


def test_cases_that_a_valid_host_could_send_are_run_and_faults_are_not(tmp_path: Path) -> None:
    path = write_changed(tmp_path, PAGES, "-32700", "-32000")  # found by a body that is not JSON

    code, [(level, text, _)] = check("--", sys.executable, str(path))

    assert (code, level) == (ExitCode.DONE, "ok")
    assert text.startswith("it passes ")
    assert int(text.split()[2]) > 40


def test_a_failed_case_is_an_error_with_the_command_that_shows_its_conversation(tmp_path: Path) -> None:
    path = write_changed(tmp_path, PAGES, 'params["extension_protocol_version"] != 1', "False")
    report = tmp_path / "check.xml"

    code, [(level, text, hint)] = check("--junit", str(report), "--", sys.executable, str(path))

    assert (code, level) == (ExitCode.FAILED, "error")
    assert text.startswith("N-HS-005: Another version of the contract is rejected")
    assert "`becket conform --case N-HS-005 -v -- CMD`" in hint
    (failure,) = ElementTree.parse(report).iter("failure")
    assert "N-HS-005" in failure.attrib["message"]


def test_what_is_tolerated_is_named_and_no_error(tmp_path: Path) -> None:
    path = write_changed(tmp_path, PAGES, ", supported=[1]", "")

    code, [(level, text, _)] = check("--", sys.executable, str(path))

    assert (code, level) == (ExitCode.DONE, "ok")
    assert text.endswith("; tolerated: N-HS-005")


def test_the_cases_can_be_left_out(tmp_path: Path) -> None:
    path = write_changed(tmp_path, PAGES, 'params["extension_protocol_version"] != 1', "False")

    assert check("--no-conformance", "--", sys.executable, str(path)) == (ExitCode.DONE, [])


def test_the_cases_are_not_run_after_an_error(tmp_path: Path) -> None:
    path = write_changed(tmp_path, PAGES, '"name": "count"', '"name": "a name with spaces"')

    assert check("--", sys.executable, str(path)) == (ExitCode.FAILED, [])


def test_the_cases_are_those_of_the_dialect(tmp_path: Path) -> None:
    path = write_changed(tmp_path, LAMP, """*'"name":"switch"'*)""", "*)")

    code, [(level, text, hint)] = check("--dialect", "nexo", "--", "sh", str(path))

    assert (code, level) == (ExitCode.FAILED, "error")
    assert text.startswith("NEX-RQ-002: An unknown tool is an error")
    assert "`becket conform --dialect nexo --case NEX-RQ-002 -v -- CMD`" in hint


def test_hooks_are_consulted_only_together_with_all_tools(tmp_path: Path) -> None:
    path = write_changed(
        tmp_path, WEATHER, "def handle_hook(name: str, event: Message) -> Message | None:\n", HOOK_ENDS
    )

    without = check("--dialect", "nexo", "--", sys.executable, str(path))
    with_tools = check("--dialect", "nexo", "--call-tools", "--", sys.executable, str(path))

    assert [level for level, *_ in without[1]] == ["ok"]
    assert [text.split(":")[0] for _, text, _ in with_tools[1]] == ["NEX-HK-001"]


HOOK_ENDS = """def handle_hook(name: str, event: Message) -> Message | None:
    os._exit(4)
"""
