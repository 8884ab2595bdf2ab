"""Commands in hints can be pasted as they are: they have the options in use, quoted for a shell."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from tests.cli.commands import becket, write_extension

from becket.cli.support.exit_codes import ExitCode
from becket.host.command_lines import CommandLines, command_lines_of
from becket.host.host import Host

pytestmark = pytest.mark.process

GREEDY = """
from becket.extension import ExtensionServer

class Greedy(ExtensionServer):
    id, version = "greedy", "1.0.0"

Greedy().run()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_extension(tmp_path / "my extensions", "greedy", GREEDY, permissions=["memory.read"])
    (tmp_path / "host.toml").write_text('roots = ["my extensions"]\ndata = "state"\n', encoding="utf-8")
    (tmp_path / "forgetful.toml").write_text('roots = ["my extensions"]\ndata = false\n', encoding="utf-8")
    return tmp_path


def paste(hint: str, folder: Path, *more: str) -> int:
    """Runs the first command that a hint has between backticks, and returns its exit code."""
    found = re.search("`(becket .*?)`", hint)
    assert found is not None, hint
    program, *words = shlex.split(found[1])
    assert program == "becket"
    return becket(*words, *more, folder=folder).returncode


LOCATIONS = [["--data", "my data"], ["--config", "host.toml"], ["--config", "host.toml", "--data", "my data"]]


@pytest.mark.parametrize("options", LOCATIONS, ids=" ".join)
@pytest.mark.parametrize("command", ["doctor", "run", "call"])
def test_the_command_that_gives_consent_names_the_host_in_use(folder: Path, command: str, options: list[str]) -> None:
    roots = [] if options == ["--config", "host.toml"] else ["my extensions"]
    words = {
        "doctor": ["doctor", *roots, *options],
        "run": ["run", *roots, "--once", *options],
        "call": ["call", "greedy", "info.get", *[word for root in roots for word in ("--root", root)], *options],
    }[command]

    done = becket(*words, folder=folder)

    assert paste(done.stdout + done.stderr, folder, "--yes") == ExitCode.DONE  # there is no prompt
    received = json.loads(becket("doctor", *roots, *options, "--json", folder=folder).stdout)
    assert (received["would_start"], received["problems"]) == (1, [])


@pytest.mark.parametrize("options", [["my extensions", "--no-data"], ["--config", "forgetful.toml"]], ids=" ".join)
@pytest.mark.parametrize("command", [["run", "--once"], ["list", "--json"], ["doctor"]], ids=" ".join)
def test_the_hint_repeats_the_command_with_consent_where_nothing_is_stored(
    folder: Path, command: list[str], options: list[str]
) -> None:
    done = becket(*command, *options, folder=folder)

    more = [] if command[0] == "run" else ["--once"]
    assert paste(done.stdout + done.stderr, folder, *more) == ExitCode.DONE


def test_the_hint_repeats_a_call_with_consent_where_nothing_is_stored(folder: Path) -> None:
    done = becket("call", "greedy", "info.get", "null", "--root", "my extensions", "--no-data", folder=folder)

    assert done.returncode == ExitCode.DENIED
    assert paste(done.stderr, folder) == ExitCode.DONE


def test_an_extension_that_does_not_start_is_checked_in_its_own_folder(folder: Path) -> None:
    write_extension(folder / "my extensions", "broken", "import sys; sys.exit('not today')")

    done = becket("doctor", "my extensions", "--no-data", "--start", "--only", "broken", "--json", folder=folder)

    hint = next(one["hint"] for one in json.loads(done.stdout)["problems"] if one["code"] == "start_failed")
    assert paste(f"`{hint.removeprefix('try: ')}`", folder / "my extensions") == ExitCode.FAILED


@pytest.mark.parametrize("words", [["run", "--once"], ["list"]], ids=" ".join)
def test_where_nothing_is_found_the_doctor_looks_at_the_same_folders(folder: Path, words: list[str]) -> None:
    (folder / "no extensions").mkdir()

    done = becket(*words, "no extensions", "--data", "my data", folder=folder)

    assert "(try: becket doctor 'no extensions' --data 'my data')" in done.stderr


def test_a_host_in_a_program_names_its_folders(tmp_path: Path) -> None:
    host = Host([tmp_path / "a"], data=tmp_path / "my data")

    assert host.command_lines.grant("notes") == f"becket grant notes --root {tmp_path}/a --data '{tmp_path}/my data'"
    assert host.command_lines.revoke("notes", ["memory.read"]).startswith("becket revoke notes memory.read --data ")


def test_a_host_without_files_names_no_command_for_consent(tmp_path: Path) -> None:
    assert command_lines_of([tmp_path], None) == CommandLines(roots=(str(tmp_path),), keeps_consent=False)
