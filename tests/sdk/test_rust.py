"""The example of the kit for Rust in a real host, the end of its process, and the conformance cases."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.sdk.example import PATIENCE, ExampleTests

KIT = Path(__file__).parents[2] / "sdk" / "rust"
EXAMPLE = KIT / "example"
PROGRAM = EXAMPLE / "build" / "bin" / "rust-example"
CONFORM = KIT / "target" / "debug" / "examples" / "conform"


def find_missing() -> str:
    if shutil.which("cargo") is None:
        return "cargo is not installed"
    return "" if PROGRAM.exists() and CONFORM.exists() else "the example is not built: run `make sdk-ready-rust`"


pytestmark = [
    pytest.mark.process,
    pytest.mark.loops,
    pytest.mark.skipif(bool(find_missing()), reason=find_missing() or "it is built"),
]


class TestExample(ExampleTests):
    """The example in a host."""

    language = "rust"

    @pytest.fixture
    def example(self) -> Path:
        return EXAMPLE


def test_an_extension_ends_with_its_host_while_a_tool_waits() -> None:
    initialize = '{"extension_protocol_version":1,"plugin_id":"rust","plugin_root":null,"config":{}}'
    requests = [
        f'{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{initialize}}}',
        '{"jsonrpc":"2.0","id":2,"method":"tool.call","params":{"name":"wait","input":{}}}',
    ]
    frames = "".join(f"Content-Length: {len(request)}\r\n\r\n{request}" for request in requests)
    done = subprocess.run([PROGRAM], input=frames.encode(), capture_output=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0
    assert b'"id":1,"result"' in done.stdout


def test_an_extension_ends_when_its_host_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "host.py"
    script.write_text(
        "import os, subprocess, sys, time\n"
        f"child = subprocess.Popen([{str(PROGRAM)!r}], stdin=subprocess.PIPE)\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(600)\n",
        encoding="utf-8",
    )
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE) as host:
        assert host.stdout is not None
        assert int(host.stdout.readline()) > 0
        host.send_signal(signal.SIGKILL)
        assert host.stdout.read() == b""  # which the extension has inherited: it ends when the extension has
        host.wait(PATIENCE)


def test_an_extension_passes_the_conformance_cases() -> None:
    command = [sys.executable, "-m", "becket", "conform", "--", str(CONFORM)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=300, check=False)
    assert done.returncode == 0, done.stdout
    assert ", 0 fail, 0 not offered" in done.stdout + done.stderr


@pytest.mark.slow
def test_a_new_project_compiles_without_a_network(tmp_path: Path) -> None:
    project = tmp_path / "greeter"
    subprocess.run([sys.executable, "-m", "becket", "new", "--language", "rust", project], check=True, timeout=PATIENCE)
    command = ["cargo", "check", "--quiet", "--offline", "--tests", "--target-dir", KIT / "target"]
    subprocess.run(command, cwd=project, check=True, timeout=280)
    assert (project / "build").stat().st_mode & 0o100
