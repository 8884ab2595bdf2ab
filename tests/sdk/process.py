"""How the program of every kit ends, without a host of becket: a class to derive tests from."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest
from tests.sdk.example import PATIENCE

__all__ = ["ProcessTests"]

PARAMS = {"extension_protocol_version": 1, "plugin_id": "conform", "plugin_root": None, "config": {}, "features": []}
SLEEP = {"name": "conform_sleep", "input": {"ms": 600_000}}


@pytest.mark.process
class ProcessTests:
    """The tests of a program: `command` is a fixture of its command line. It offers what `becket conform` needs, and
    prints `on_stop` when it ends."""

    @pytest.fixture
    def command(self) -> list[str]:
        """Returns the command line of the program."""
        raise NotImplementedError

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_a_signal_cancels_running_tools_and_runs_on_stop(self, command: list[str], number: signal.Signals) -> None:
        with started(command) as program:
            send(program, 2, "tool.call", SLEEP)
            send(program, 3, "info.get")
            assert receive(program)["id"] == 3
            program.send_signal(number)
            assert receive(program)["error"]["code"] == -32800
            output, log = program.communicate(timeout=PATIENCE)
        assert (program.returncode, log.count(b"on_stop")) == (0, 1)
        assert b"on_stop" not in output

    def test_an_extension_ends_with_stdin_while_a_tool_waits(self, command: list[str]) -> None:
        with started(command) as program:
            send(program, 2, "tool.call", SLEEP)
            _, log = program.communicate(timeout=PATIENCE)
        assert (program.returncode, log.count(b"on_stop")) == (0, 1)

    def test_an_extension_ends_without_a_host(self, command: list[str]) -> None:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE, check=False)
        assert (done.returncode, done.stdout) == (0, b""), done.stderr

    def test_stdin_and_stdout_may_be_files(self, command: list[str], tmp_path: Path) -> None:
        requests, responses = tmp_path / "requests", tmp_path / "responses"
        requests.write_bytes(encode(1, "initialize", PARAMS) + encode(2, "shutdown"))
        with requests.open("rb") as stdin, responses.open("wb") as stdout:
            done = subprocess.run(command, stdin=stdin, stdout=stdout, timeout=PATIENCE, check=False)
        assert done.returncode == 0
        with responses.open("rb") as frames:
            assert [decode(frames)["id"], decode(frames)["id"], frames.read()] == [1, 2, b""]

    def test_an_extension_ends_when_its_host_is_killed(self, command: list[str], tmp_path: Path) -> None:
        script = tmp_path / "host.py"
        script.write_text(
            "import subprocess, time\n"
            f"child = subprocess.Popen({command!r}, stdin=subprocess.PIPE)\n"
            "print(child.pid, flush=True)\n"
            "time.sleep(600)\n",
            encoding="utf-8",
        )
        with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as host:
            assert host.stdout is not None
            assert int(host.stdout.readline()) > 0
            host.send_signal(signal.SIGKILL)
            assert host.stdout.read() == b""  # which the extension has inherited: it ends when the extension has
            host.wait(PATIENCE)


@contextmanager
def started(command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """Starts a program and completes the handshake; kills it at the end if it still runs."""
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as program:
        try:
            send(program, 1, "initialize", PARAMS)
            assert "result" in receive(program)
            yield program
        finally:
            program.kill()


def send(program: subprocess.Popen[bytes], id: int, method: str, params: dict[str, Any] | None = None) -> None:
    """Sends a request."""
    assert program.stdin is not None
    program.stdin.write(encode(id, method, params))
    program.stdin.flush()


def receive(program: subprocess.Popen[bytes]) -> dict[str, Any]:
    """Returns the next message."""
    assert program.stdout is not None
    return decode(program.stdout)


def encode(id: int, method: str, params: dict[str, Any] | None = None) -> bytes:
    """Returns the frame of a request."""
    body = json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}}).encode()
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


def decode(frames: IO[bytes]) -> dict[str, Any]:
    """Returns the message of the next frame."""
    size = int(frames.readline().partition(b":")[2])
    assert frames.readline() == b"\r\n"
    message: dict[str, Any] = json.loads(frames.read(size))
    return message
