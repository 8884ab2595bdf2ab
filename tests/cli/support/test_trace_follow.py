"""`becket trace --follow`: the traffic of a running `becket run`, line by line, until one of the two ends."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from signal import SIGINT, SIGTERM

import pytest
from tests.cli.commands import BECKET, EXTENSIONS, PATIENCE, becket, here

from becket.cli.support.exit_codes import ExitCode

pytestmark = pytest.mark.process

Process = subprocess.Popen[str]


@contextmanager
def started(*words: str) -> Generator[Process]:
    """Runs a command whose output is read line by line, and ends it if it has not ended."""
    process = subprocess.Popen(
        [*BECKET, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", stdin=subprocess.DEVNULL
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=PATIENCE)


@contextmanager
def running(folder: Path) -> Generator[Process]:
    """Runs a host of an example until its extension is ready."""
    options = ("--data", str(folder), "--yes", "--json")
    with started("run", str(EXTENSIONS / "notes"), *options) as host:
        read_until(host, '"extension_started"')
        yield host


def read_until(process: Process, text: str) -> str:
    """Returns the first line with this text; the test's own timeout bounds the wait."""
    assert process.stdout is not None
    for line in process.stdout:
        if text in line:
            return line
    raise AssertionError(f"no line with {text}")


def test_the_traffic_of_a_running_host_is_shown_until_the_host_ends(tmp_path: Path) -> None:
    with running(tmp_path) as host, started("trace", "--follow", "--full", "--data", str(tmp_path)) as follower:
        call = read_until(follower, "$/ping")
        response = read_until(follower, "response $/ping")
        host.send_signal(SIGTERM)
        shown = read_until(follower, "shutdown")
        _, output = follower.communicate(timeout=PATIENCE)

    assert " notes -> call $/ping #" in call
    assert " notes <- response $/ping #" in response
    assert " notes -> call shutdown #" in shown
    assert output.splitlines() == ["following becket: notes", "the host has ended"]
    assert follower.returncode == ExitCode.DONE


def test_for_programs_each_message_is_an_object_a_line(tmp_path: Path) -> None:
    words = ("trace", "-f", "--json", "--full", "-e", "notes", "--data", str(tmp_path))
    with running(tmp_path), started(*words) as follower:
        step = json.loads(read_until(follower, '"response"'))
        follower.send_signal(SIGINT)
        follower.communicate(timeout=PATIENCE)

    assert (step["extension"], step["method"], step["to"]) == ("notes", "$/ping", "host")
    assert follower.returncode == ExitCode.INTERRUPTED


def test_the_command_ends_when_the_reader_of_its_output_is_gone(tmp_path: Path) -> None:
    with running(tmp_path), started("trace", "--follow", "--full", "--data", str(tmp_path)) as follower:
        read_until(follower, "$/ping")
        assert follower.stdout is not None
        follower.stdout.close()
        assert follower.wait(PATIENCE) == ExitCode.READER_GONE


def test_where_no_host_runs_the_error_shows_how_to_start_one(tmp_path: Path) -> None:
    done = becket("trace", "--follow", "--data", str(tmp_path))

    assert done.returncode == ExitCode.NOT_RUNNING
    assert f"try: becket run --data {tmp_path}" in done.stderr.splitlines()
    assert str(tmp_path) in done.stderr
    assert "becket run" in done.stderr


def test_a_host_whose_configuration_leaves_it_out_cannot_be_followed(tmp_path: Path) -> None:
    config = tmp_path / "host.toml"
    config.write_text(f'roots = ["{EXTENSIONS / "notes"}"]\ndata = "state"\nlive_trace = false\n', encoding="utf-8")
    with started("run", "--config", str(config), "--yes", "--json") as host:
        read_until(host, '"extension_started"')

        assert becket("trace", "--follow", "--config", str(config)).returncode == ExitCode.NOT_RUNNING


def test_follow_is_refused_with_other_commands(tmp_path: Path) -> None:
    assert here("trace", "--follow", "show", str(tmp_path)).exit_code == ExitCode.USAGE


def test_without_a_command_and_without_follow_the_help_is_printed() -> None:
    done = here("trace")

    assert done.exit_code == ExitCode.DONE
    assert "--follow" in done.stdout
