"""A program on becket uses its own stdin and stdout, whatever kind of file they are."""

from __future__ import annotations

import json
import os
import pty
import socket
import subprocess
import sys
import tty
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from becket.testing.children import frame

pytestmark = pytest.mark.process

ON_A_LOOP = """
import anyio
from becket import Peer

async def main():
    async with Peer.connect_stdio() as peer:
        register(peer)
        await peer.notify("ready")
        await peer.wait_closed()

anyio.run(main, backend={backend!r}, backend_options={options!r})
"""

BLOCKING = """
from becket.blocking import connect_stdio

with connect_stdio() as peer:
    register(peer)
    peer.notify("ready")
    peer.serve()
"""

RUNTIMES = {
    "asyncio": ON_A_LOOP.format(backend="asyncio", options={}),
    "trio": ON_A_LOOP.format(backend="trio", options={}),
    "uvloop": ON_A_LOOP.format(backend="asyncio", options={"use_uvloop": True}),
    "blocking": BLOCKING,
}

HANDLERS = """
import ctypes, os, subprocess, sys

def register(peer):
    @peer.handle("echo")
    def echo(params):
        return params

    @peer.handle("prints")
    def prints():
        print("STRAY print")
        print("STRAY print, flushed", flush=True)
        sys.stdout.write("STRAY write")
        sys.__stdout__.buffer.write(b"STRAY bytes")
        sys.__stdout__.flush()

    @peer.handle("writes to descriptor 1")
    def writes():
        os.write(1, b"STRAY descriptor")

    @peer.handle("calls C")
    def calls():
        libc = ctypes.CDLL(None)
        libc.puts(b"STRAY puts")
        libc.fflush(None)

    @peer.handle("starts programs")
    def starts():
        os.system("echo STRAY system")
        subprocess.run(["echo", "STRAY grandchild"], check=True)

    @peer.handle("reads stdin")
    def reads():
        return [sys.stdin.read(), subprocess.run(["cat"], stdout=subprocess.PIPE, check=True).stdout.decode()]

    @peer.handle("descriptors")
    def descriptors():
        return [os.readlink(f"/proc/self/fd/{fd}") for fd in (0, 1)]
"""


@pytest.fixture(params=list(RUNTIMES))
def command(request: pytest.FixtureRequest) -> list[str]:
    """Returns the command line of a program on each runtime."""
    return [sys.executable, "-c", HANDLERS + RUNTIMES[request.param]]


def request_of(id: int, method: str, params: object = None) -> bytes:
    return frame({"id": id, "method": method, **({} if params is None else {"params": params})})


def messages_in(data: bytes) -> Iterator[dict[str, Any]]:
    """Yields the messages; every byte must belong to one."""
    while data:
        head, separator, rest = data.partition(b"\r\n\r\n")
        name, _, length = head.partition(b": ")
        assert (name, separator) == (b"Content-Length", b"\r\n\r\n"), data[:200]
        yield json.loads(rest[: int(length)])
        data = rest[int(length) :]


def results_in(data: bytes) -> dict[int, Any]:
    messages = list(messages_in(data))
    assert messages[0]["method"] == "ready"
    return {message["id"]: message.get("result", message.get("error")) for message in messages[1:]}


# -- the wire is safe from the program


def test_nothing_that_the_program_writes_or_reads_touches_the_wire(command: list[str]) -> None:
    methods = ["prints", "writes to descriptor 1", "calls C", "starts programs", "reads stdin", "echo"]
    requested = b"".join(request_of(number, method) for number, method in enumerate(methods))

    ended = subprocess.run(command, input=requested, capture_output=True, timeout=100, check=True)

    assert results_in(ended.stdout) == {0: None, 1: None, 2: None, 3: None, 4: ["", ""], 5: None}
    for stray in ("print", "flushed", "bytes", "descriptor", "puts", "system", "grandchild"):
        assert f"STRAY {stray}" in ended.stderr.decode() or f", {stray}" in ended.stderr.decode()


def test_buffered_output_from_before_the_link_goes_to_stderr(command: list[str]) -> None:
    # -E: a variable could make Python write every line at once.
    early = [command[0], "-E", "-c", f"print('STRAY before the link'){command[2]}"]

    ended = subprocess.run(early, input=request_of(1, "echo", [1]), capture_output=True, timeout=100, check=True)

    assert results_in(ended.stdout) == {1: [1]}
    assert ended.stderr == b"STRAY before the link\n"


@pytest.fixture
def without_uvloop(command: list[str]) -> None:
    """Leaves uvloop out: libuv itself aborts when it is given one of the first three descriptors."""
    if "use_uvloop" in command[-1]:
        pytest.skip("libuv aborts")


@pytest.mark.usefixtures("without_uvloop")
@pytest.mark.parametrize("closed", ["<&-", "2>&-", "<&- 2>&-"])
def test_a_closed_descriptor_is_never_mistaken_for_the_wire(command: list[str], closed: str) -> None:
    has_input = "<&-" not in closed
    requested = b"".join(
        request_of(number, method) for number, method in enumerate(["prints", "calls C", "descriptors"])
    )
    shell = ["/bin/sh", "-c", f'exec "$@" {closed}', "sh", *command]

    ended = subprocess.run(shell, input=requested if has_input else b"", capture_output=True, timeout=100, check=True)

    assert results_in(ended.stdout) == ({0: None, 1: None, 2: [os.devnull, os.devnull]} if has_input else {})


@pytest.mark.usefixtures("without_uvloop")
def test_a_program_whose_stdout_is_closed_reports_it(command: list[str]) -> None:
    shell = ["/bin/sh", "-c", 'exec "$@" >&-', "sh", *command]

    ended = subprocess.run(shell, input=b"", stderr=subprocess.PIPE, timeout=100, check=False)

    assert ended.returncode == 1
    assert b"LocalProtocolError: stdout is closed" in ended.stderr


# -- whatever stdin and stdout are


def test_a_file_as_stdin_is_read_to_its_end(command: list[str], tmp_path: Path) -> None:
    script = tmp_path / "requests"
    script.write_bytes(b"".join(request_of(number, "echo", ["x" * 1000]) for number in range(200)))

    with script.open("rb") as stdin:
        ended = subprocess.run(command, stdin=stdin, capture_output=True, timeout=100, check=True)

    assert results_in(ended.stdout) == {number: ["x" * 1000] for number in range(200)}


def test_the_null_device_as_stdin_ends_the_link_at_once(command: list[str]) -> None:
    ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=100, check=True)

    assert results_in(ended.stdout) == {}


def test_a_file_as_stdout_takes_the_responses(command: list[str], tmp_path: Path) -> None:
    with (tmp_path / "answers").open("wb") as stdout:
        requested = request_of(1, "echo", [1])
        subprocess.run(command, input=requested, stdout=stdout, stderr=subprocess.DEVNULL, timeout=100, check=True)

    assert results_in((tmp_path / "answers").read_bytes()) == {1: [1]}


def test_a_terminal_serves_as_stdin_and_stdout(command: list[str]) -> None:
    ours, theirs = pty.openpty()
    tty.setraw(theirs)
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL) as process:
        os.write(ours, request_of(1, "echo", ["from a terminal"]))
        received = b""
        while b"from a terminal" not in received or not received.endswith(b"}"):
            received += os.read(ours, 4096)
        assert os.get_blocking(theirs)
        os.close(theirs)
        os.close(ours)
        assert process.wait(60) == 0

    assert results_in(received) == {1: ["from a terminal"]}


def test_sockets_serve_as_stdin_and_stdout(command: list[str]) -> None:
    ours, theirs = socket.socketpair()
    with (
        ours,
        subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL) as process,
        ours.makefile("rb") as file,
    ):
        theirs.close()
        ours.sendall(request_of(1, "echo", [1]))
        ours.shutdown(socket.SHUT_WR)
        received = file.read()
        assert process.wait(60) == 0

    assert results_in(received) == {1: [1]}


# -- other processes that hold them


def test_pipes_stay_blocking_for_the_other_processes_that_hold_them(command: list[str]) -> None:
    child_in, stdin = os.pipe()
    stdout, child_out = os.pipe()
    with (
        subprocess.Popen(command, stdin=child_in, stdout=child_out, stderr=subprocess.DEVNULL) as process,
        os.fdopen(stdout, "rb") as responses,
    ):
        os.write(stdin, request_of(1, "echo", [1]))
        received = responses.read1()
        while received.count(b"jsonrpc") < 2:
            received += responses.read1()
        # These are the very files that the child holds: a flag that it sets on its own shows here.
        blocking = [os.get_blocking(child_in), os.get_blocking(child_out)]
        for fd in (child_in, child_out, stdin):
            os.close(fd)
        assert process.wait(60) == 0

    assert blocking == [True, True]


def test_a_host_that_is_gone_does_not_make_the_program_fail(command: list[str]) -> None:
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(1)
        process.stdout.close()
        process.stdin.write(request_of(1, "echo", [1]) * 10)
        process.stdin.close()
        output = process.stderr.read()

    assert (process.returncode, b"Traceback" in output) == (0, False)
