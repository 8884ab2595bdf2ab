"""`make demo` prints its lines, in colour on a terminal only, and fails if something is missing."""

from __future__ import annotations

import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.examples.example_programs import EXAMPLES, PATIENCE, printed_by, run_example

pytestmark = [pytest.mark.process]

TITLES = [
    "Calls in both directions",
    "A stream",
    "A cancellation",
    "Stray prints",
    "A crash",
    "A host and its extensions",
    "Tools and memory",
    "A streamed response",
    "A command with a progress bar",
    "A hook that blocks",
    "A permission that is revoked",
    "A crash and its recovery",
    "A memory that survives",
    "Five other systems",
    "Other languages",
]
COLOUR = re.compile(r"\033\[[0-9;]*m")


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Returns what it prints without a terminal; it takes a second or two, so it is run once for many tests."""
    return printed_by("demo.py", folder=tmp_path_factory.mktemp("demo"))


def test_the_demo_shows_and_checks_each_feature(lines: list[str]) -> None:
    assert [line for line in lines if line[:1].isdigit()] == [f"{n}. {title}" for n, title in enumerate(TITLES, 1)]
    assert sum(line.startswith("   ok: ") for line in lines) == len(TITLES)
    assert "Every check has passed." in lines[-1]


def test_the_demo_explains_each_section(lines: list[str]) -> None:
    text = "\n".join(lines)
    for sight in (
        "child | calls: what is 6 + 4?",
        "child | page 5 of 5  [#####]",
        "child | notifies: cancelled in the middle",
        "stderr | this is print(), with no idea of the wire",
        "host | `wait` failed: the process ended: exit code 70, last line of stderr: the printer is on fire",
        "notes | - milk the cow",
        "eliza | Why do you need a holiday?",
        "census | [####################]",
        "guard | responds: Block",
        "audit | notes may not call memory.append: memory.write required",
        "notes | counts 3 notes",
        "cigen | cigen-provider-make: plans job:build",
    ):
        assert sight in text


@pytest.mark.parametrize("language", ["typescript", "go", "rust", "java", "python", "shell"])
def test_the_demo_calls_an_extension_in_each_language_or_reports_why_not(lines: list[str], language: str) -> None:
    (line,) = [line for line in lines if line.split(" | ")[0].strip() == language]
    assert " responds: " in line or " is skipped: " in line


def test_the_demo_skips_the_languages_that_are_not_installed(tmp_path: Path) -> None:
    program = (
        "import asyncio; from demo_languages import show_languages; from demo_screen import Screen; "
        "asyncio.run(show_languages(Screen(coloured=False)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PATH": str(tmp_path), "PYTHONPATH": str(EXAMPLES)},
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
        check=True,
    )
    assert len(re.findall(r"is skipped: [\w ]+ not installed", done.stdout)) == 6


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_a_failed_build_of_an_example_is_reported_in_one_line_and_skipped(tmp_path: Path) -> None:
    go = tmp_path / "go"
    go.write_text("#!/bin/sh\necho 'no network' >&2\necho 'more' >&2\nexit 1\n", encoding="utf-8")
    go.chmod(0o755)
    done = subprocess.run(
        ["make", "--what-if", "sdk/go/example/main.go", "sdk/go/example/build/example"],
        cwd=EXAMPLES.parent,
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
        check=True,
    )
    assert done.stderr == "sdk/go/example/build/example could not be built: no network\n"


def test_no_line_is_too_wide_to_read(lines: list[str]) -> None:
    assert [line for line in lines if len(line) > 110] == []


def test_the_demo_prints_plain_text_without_a_terminal(lines: list[str]) -> None:
    assert COLOUR.search("".join(lines)) is None


def test_the_demo_is_coloured_on_a_terminal() -> None:
    assert COLOUR.search(shown_on_a_terminal(TERM="xterm")) is not None


@pytest.mark.parametrize("variables", [{"NO_COLOR": "1", "TERM": "xterm"}, {"TERM": "dumb"}])
def test_the_demo_is_plain_on_a_terminal_without_colour(variables: dict[str, str]) -> None:
    assert COLOUR.search(shown_on_a_terminal(**variables)) is None


def test_the_demo_fails_if_a_feature_of_the_child_fails(tmp_path: Path) -> None:
    for part in EXAMPLES.glob("demo*.py"):
        (tmp_path / part.name).write_text(part.read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "demo_child.py").write_text("raise SystemExit(1)", encoding="utf-8")
    done = run_example(str(tmp_path / "demo.py"), folder=tmp_path)
    assert done.returncode == 1
    assert "FAILED: the process ended: exit code 1" in done.stdout


def shown_on_a_terminal(**variables: str) -> str:
    """Returns what the demonstration prints to a terminal in its first section."""
    environment = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "TERM")} | variables
    ours, theirs = pty.openpty()
    with os.fdopen(ours, "rb", buffering=0) as screen:
        demo = subprocess.Popen([sys.executable, EXAMPLES / "demo.py"], stdin=theirs, stdout=theirs, env=environment)
        os.close(theirs)
        text = b""
        try:
            while b"2. " not in text and (chunk := screen.read(4096)):
                text += chunk
        except OSError:  # how Linux reports that the last writer has closed a terminal
            pass
        demo.terminate()
        demo.wait(PATIENCE)
    assert "ok" in text.decode()
    return text.decode()
