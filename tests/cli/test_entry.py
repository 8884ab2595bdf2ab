"""The program `becket` with closed standard streams, without a reader, or interrupted early."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.commands import BECKET, EXTENSIONS, HOSTED, PATIENCE, write_extension

from becket.cli.entry import INTERRUPTED
from becket.cli.support.exit_codes import ExitCode

pytestmark = pytest.mark.process

LISTS_DESCRIPTORS = """
import os, stat
from becket.extension import ExtensionServer, tool
KINDS = [stat.S_ISFIFO(os.fstat(fd).st_mode) for fd in range(3)]
class Probe(ExtensionServer):
    id = "probe"
    version = "1.0.0"

    @tool
    def kinds(self) -> str:
        "Says whether each standard descriptor was a pipe at the start."
        return str(KINDS)

Probe().run()
"""


def run_closed(closed: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs a command without some of its standard streams; the others are pipes."""
    return subprocess.run(
        ["/bin/sh", "-c", f'exec "$@" {closed}', "sh", *BECKET, *words],
        input="",
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
        check=False,
    )


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&-", "<&- >&- 2>&-"])
def test_a_command_succeeds_without_some_of_its_streams(closed: str) -> None:
    done = run_closed(closed, "list", str(EXTENSIONS), "--no-data", "--json")

    assert (done.returncode, done.stderr) == (ExitCode.DONE, "")
    assert (done.stdout == "") == (">&-" in closed.split())


@pytest.mark.parametrize("closed", ["<&-", "<&- >&-", "<&- >&- 2>&-"])
def test_a_host_starts_extensions_without_its_own_streams(closed: str, tmp_path: Path) -> None:
    write_extension(tmp_path, "probe", LISTS_DESCRIPTORS, permissions=["tools.register"])
    done = run_closed(closed, "run", str(tmp_path), "--no-data", "--yes", "--once")

    assert (done.returncode, done.stderr) == (ExitCode.DONE, "")


def test_a_child_gets_pipes_where_its_host_has_no_streams(tmp_path: Path) -> None:
    write_extension(tmp_path, "probe", LISTS_DESCRIPTORS, permissions=["tools.register"])
    done = run_closed("<&- 2>&-", "call", "--root", str(tmp_path), "--no-data", "--yes", "probe", "kinds")

    assert done.returncode == ExitCode.DONE
    assert json.loads(done.stdout) == "[True, True, True]"


def test_a_file_is_never_opened_as_a_standard_descriptor() -> None:
    program = (
        "from becket.cli.entry import open_standard_streams; open_standard_streams();"
        "import os, sys; fd = os.open(sys.executable, os.O_RDONLY); os._exit(fd)"
    )
    done = subprocess.run(
        ["/bin/sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", sys.executable, "-c", program], timeout=PATIENCE, check=False
    )

    assert done.returncode > 2


def test_commands_that_need_a_pipe_report_that_there_is_none() -> None:
    done = run_closed(">&-", "mcp", "serve", *HOSTED)

    assert done.returncode == ExitCode.FAILED
    assert "stdout is closed" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("words", [["--help"], ["list", "--help"], ["list", str(EXTENSIONS), "--no-data"], ["nope"]])
def test_a_reader_that_is_gone_is_the_exit_code_of_sigpipe(words: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run([*BECKET, *words], stdout=writing, stderr=writing, timeout=PATIENCE, check=False)
    finally:
        os.close(writing)

    assert done.returncode == ExitCode.READER_GONE


def test_a_host_ends_when_the_reader_of_its_events_is_gone(tmp_path: Path) -> None:
    write_extension(tmp_path, "probe", LISTS_DESCRIPTORS, permissions=["tools.register"])
    command = [*BECKET, "run", str(tmp_path), "--no-data", "--yes", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        first = json.loads(process.stdout.readline())
        process.stdout.close()
        output = process.stderr.read()

    assert first["event"] == "extension_discovered"
    assert (process.returncode, output) == (ExitCode.READER_GONE, "")


@pytest.mark.parametrize("module", ["click", "anyio"])
def test_ctrl_c_during_imports_prints_no_traceback(module: str, tmp_path: Path) -> None:
    """The first is imported by all commands, the second by this one."""
    program = "import os, time\nos.write(1, b'importing')\ntime.sleep(60)\n"
    (tmp_path / f"{module}.py").write_text(program, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    with subprocess.Popen(
        [*BECKET, "run"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8"
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read(9) == "importing"
        process.send_signal(signal.SIGINT)
        output = process.stderr.read()

    assert (process.returncode, output.strip()) == (ExitCode.INTERRUPTED, "")


def test_the_entry_point_returns_the_exit_code_of_ctrl_c() -> None:
    assert INTERRUPTED == ExitCode.INTERRUPTED
