"""An extension as a program: serving, clean stdout, its end, and its exit codes."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import anyio
import pytest
from tests.extension.notes import Notes
from tests.extension.raw_host import build_initialize, initialize, use_tool
from tests.peer.transport.test_stdio import request_of

from becket import Peer
from becket.contract.log import LogLevel, LogRecord, parse_log_line
from becket.extension.runner import EXIT_PROTOCOL_ERROR, EXIT_REFUSED, EXIT_STOP_TIMEOUT, EXIT_STOPPED, EXIT_USAGE
from becket.jsonrpc.json_values import encode_json
from becket.testing import ProcessWatch

pytestmark = pytest.mark.process

PROGRAM = """
import os, sys
from becket import ExtensionServer
from becket.extension import tool

class Program(ExtensionServer):
    id, version = "program", "1.0"

    {define} on_start(self) -> None:
        print("started", file=sys.stderr, flush=True)

    {define} on_stop(self) -> None:
        print("stopped", file=sys.stderr, flush=True)
        {then}

    @tool("Adds one.")
    {define} add(self, number: int) -> int:
        print("a stray line")
        return number + 1

    @tool("Tells which modules are there.")
    {define} modules(self) -> list[str]:
        return list(sys.modules)

    @tool("Logs.")
    {define} log(self, level: int, message: str) -> None:
        import logging

        logging.getLogger("program.part").log(level, message)

    @tool("Logs as the author wants it.")
    {define} log_elsewhere(self) -> None:
        import logging

        logging.basicConfig(format="mine: %(message)s")
        logging.getLogger("program.part").warning("hello")

    @tool("Fails.")
    {define} fail(self) -> None:
        raise ValueError("the disk is gone")

    @tool("Never returns.")
    def hang(self) -> None:
        print("hanging", file=sys.stderr, flush=True)
        import threading

        threading.Event().wait()

{before}
if __name__ == "__main__":
    Program().run({options})
"""

RUNTIMES = {
    "blocking": {"define": "def"},
    "asyncio": {"define": "async def"},
    "trio": {"define": "async def", "options": 'loop="trio"'},
    "uvloop": {"define": "async def", "options": 'loop="uvloop"'},
    "plain on asyncio": {"define": "def", "options": 'loop="asyncio"'},
}

HELLO = request_of(1, "initialize", json.loads(encode_json(build_initialize(()))))
BYE = request_of(9, "shutdown")


def program(runtime: str, *, then: str = "pass", before: str = "") -> list[str]:
    """Returns the command line of the extension on this runtime."""
    parts = {"options": "", **RUNTIMES[runtime], "then": then, "before": before}
    return [sys.executable, "-c", PROGRAM.format(**parts)]


def use(id: int, tool: str, **input: Any) -> bytes:
    return request_of(id, "tool.call", {"name": tool, "input": input})


@pytest.fixture(params=list(RUNTIMES))
def runtime(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def converse(command: list[str], *frames: bytes, code: int = EXIT_STOPPED) -> tuple[dict[int, Any], list[str]]:
    """Sends frames to a program, closes its stdin, and returns its messages and the lines of its stderr."""
    responses: dict[int, Any] = {}
    with started(command) as (process, stdin, stderr):
        for frame in frames:
            stdin.write(frame)
            stdin.flush()
            message = receive(process)
            responses[message["id"]] = message.get("result", message.get("error"))
        stdin.close()
        assert process.wait(60) == code
        return responses, stderr.read().decode().splitlines()


def receive(process: subprocess.Popen[bytes]) -> Any:
    """Returns the next message of a program. Every byte must belong to it."""
    assert process.stdout is not None
    head = process.stdout.readline()
    assert head.startswith(b"Content-Length: "), head
    assert process.stdout.readline() == b"\r\n"
    return json.loads(process.stdout.read(int(head.partition(b": ")[2])))


@contextmanager
def started(
    command: list[str], *frames: bytes, env: dict[str, str] | None = None
) -> Iterator[tuple[subprocess.Popen[bytes], IO[bytes], IO[bytes]]]:
    """Runs a program that has received all this, and yields it with its stdin and its stderr."""
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=env) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(b"".join(frames))
        process.stdin.flush()
        yield process, process.stdin, process.stderr


# -- serving


def test_an_extension_serves_until_its_stdin_ends_and_writes_only_frames_to_stdout(runtime: str) -> None:
    responses, output = converse(program(runtime), HELLO, use(2, "add", number=1))

    assert [tool["name"] for tool in responses[1]["capabilities"]["tools"]][:2] == ["add", "modules"]
    assert responses[2] == 2
    assert output == ["started", "a stray line", "stopped"]


def test_an_extension_detects_the_framing_of_its_host(runtime: str) -> None:
    with started(program(runtime)) as (process, stdin, _):
        assert process.stdout is not None
        for number, frame in enumerate((HELLO, use(2, "add", number=1)), start=1):
            stdin.write(frame.partition(b"\r\n\r\n")[2] + b"\n")
            stdin.flush()
            assert json.loads(process.stdout.readline())["id"] == number


@pytest.mark.anyio
async def test_a_host_on_becket_starts_and_stops_an_extension(runtime: str) -> None:
    async with Peer.connect_process(program(runtime), dialect="native") as host:
        host.limit_features(())
        response = await initialize(host)
        assert await use_tool(host, "add", number=2) == 3
        assert "log" in host.features
        process = host.process

    assert response.features
    assert process is not None
    assert (process.exit_code, process.signal) == (EXIT_STOPPED, None)


@pytest.mark.parametrize("plain", [True, False], ids=["plain", "asyncio"])
def test_an_extension_imports_no_event_loop_that_it_does_not_need(plain: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BECKET_PLAIN_IMPORTS", raising=False)  # which has it import `logging` at once
    responses, _ = converse(program("blocking" if plain else "asyncio"), HELLO, use(2, "modules"))

    loops = {"asyncio", "trio", "anyio", "uvloop"} & set(responses[2])
    assert loops == (set() if plain else {"asyncio"})
    assert {"logging", "attr", "attrs", "cattrs", "jsonschema"}.isdisjoint(responses[2]) or not plain


RECORDS_COMPILED_ANNOTATIONS = """
import builtins
compiled, compile_any = [], compile

def record(source, filename, *rest, **options):
    if filename == "<string>":
        compiled.append(source)
    return compile_any(source, filename, *rest, **options)

builtins.compile = record
"""


def test_a_handshake_and_a_tool_call_compile_no_annotations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BECKET_PLAIN_IMPORTS", raising=False)
    *interpreter, text = program("blocking", then="print(compiled, file=sys.stderr)")

    responses, log = converse([*interpreter, RECORDS_COMPILED_ANNOTATIONS + text], HELLO, use(2, "add", number=2))

    assert responses[2] == 3
    assert log == ["started", "a stray line", "stopped", "[]"]


# -- the end


def test_shutdown_gets_a_response_and_ends_the_program_although_stdin_stays_open(runtime: str) -> None:
    with started(program(runtime), HELLO) as (process, stdin, stderr):
        assert receive(process)["id"] == 1
        stdin.write(BYE)
        stdin.flush()
        assert receive(process) == {"jsonrpc": "2.0", "id": 9, "result": None}
        assert process.wait(60) == EXIT_STOPPED
        assert stderr.read().splitlines() == [b"started", b"stopped"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_program_cleanly(runtime: str, number: signal.Signals) -> None:
    with started(program(runtime), HELLO) as (process, _, stderr):
        receive(process)
        process.send_signal(number)
        assert process.wait(60) == EXIT_STOPPED
        assert stderr.read().splitlines() == [b"started", b"stopped"]


def test_a_second_signal_ends_the_program_at_once(runtime: str) -> None:
    forever = "while True: __import__('time').sleep(1)"
    with started(program(runtime, then=forever), HELLO) as (process, _, stderr):
        receive(process)
        process.send_signal(signal.SIGTERM)
        assert [stderr.readline(), stderr.readline()] == [b"started\n", b"stopped\n"]
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == -signal.SIGTERM


def wait_until_asleep(pid: int) -> None:
    """Waits until the main thread of a process waits for something. Bounded by the test's own limit."""
    while Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(") ")[2][0] != "S":
        pass


RECEIVE_SIGNALS_IN_A_THREAD = """
import signal, threading
threading.Thread(target=threading.Event().wait, daemon=True).start()
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
"""
REPORT_THE_FIRST_READ = """
from becket.peer.transport.fd import FdTransport
def read(transport, *arguments, original=FdTransport.read_before_start):
    print("reading", file=sys.stderr, flush=True)
    return original(transport, *arguments)
FdTransport.read_before_start = read
"""


def test_a_signal_that_another_thread_receives_ends_the_program(runtime: str) -> None:
    with started(program(runtime, before=RECEIVE_SIGNALS_IN_A_THREAD), HELLO) as (process, _, stderr):
        receive(process)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == EXIT_STOPPED
        assert stderr.read().splitlines() == [b"started", b"stopped"]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_signal_that_another_thread_receives_ends_a_program_that_waits_for_its_host(runtime: str) -> None:
    before = RECEIVE_SIGNALS_IN_A_THREAD + REPORT_THE_FIRST_READ
    with started(program(runtime, before=before)) as (process, _, stderr):
        assert stderr.readline() == b"reading\n"
        wait_until_asleep(process.pid)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == EXIT_STOPPED


@pytest.mark.parametrize("how", ["eof", "shutdown", "signal"])
def test_a_shutdown_that_takes_too_long_is_cut_short(runtime: str, how: str) -> None:
    stuck = program(
        runtime,
        then="__import__('time').sleep(3600)",
        before="import becket.extension.runner as runner; runner.STOP_GRACE = 0.2",
    )
    with started(stuck, HELLO) as (process, stdin, stderr):
        receive(process)
        if how == "eof":
            stdin.close()
        elif how == "shutdown":
            stdin.write(BYE)
            stdin.flush()
        else:
            process.send_signal(signal.SIGTERM)
        assert process.wait(60) == EXIT_STOP_TIMEOUT
        assert b"this program did not end within 0.2 s" in stderr.read()


def test_a_function_that_never_returns_does_not_prevent_the_exit(runtime: str) -> None:
    quick = "import becket.extension.runner as runner; runner.STOP_GRACE = 0.2"
    with started(program(runtime, before=quick), HELLO) as (process, stdin, stderr):
        receive(process)
        stdin.write(use(2, "hang"))
        stdin.flush()
        assert [stderr.readline(), stderr.readline()] == [b"started\n", b"hanging\n"]
        stdin.close()
        assert process.wait(60) in (EXIT_STOPPED, EXIT_STOP_TIMEOUT)


PARENT = """
import subprocess, sys
child = subprocess.Popen({command!r}, stdin=int(sys.argv[1]), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
child.stdout.read(10)
print(child.pid, flush=True)
child.wait()
"""


@pytest.mark.anyio
async def test_an_extension_ends_with_its_parent_although_another_process_holds_its_stdin(runtime: str) -> None:
    read_end, write_end = os.pipe()
    with subprocess.Popen(  # noqa: ASYNC220
        [sys.executable, "-c", PARENT.format(command=program(runtime)), str(read_end)],
        stdout=subprocess.PIPE,
        pass_fds=[read_end],
    ) as parent:
        os.write(write_end, HELLO)
        assert parent.stdout is not None
        with ProcessWatch(int(parent.stdout.readline())) as child:
            parent.kill()
            with anyio.fail_after(60):
                await child.gone()
    os.close(read_end)
    os.close(write_end)


def test_an_invalid_message_ends_the_program_with_its_own_exit_code(runtime: str) -> None:
    with started(program(runtime), HELLO) as (process, stdin, stderr):
        receive(process)
        stdin.write(b"Content-Length: many\r\n\r\n")
        stdin.flush()
        assert process.wait(60) == EXIT_PROTOCOL_ERROR
        first, ended, last = stderr.read().splitlines()
        assert (first, last) == (b"started", b"stopped")
        assert b"the link has ended: Content-Length is not a number" in ended


def test_a_host_that_cannot_be_served_has_its_own_exit_code(runtime: str) -> None:
    words = {"protocolVersion": "9.0.0", "apiVersion": "0.1.0", "extensionId": "program", "config": {}}
    hello = {"jsonrpc": "2.0", "id": 1, "method": "extension/initialize", "params": words}

    with started(program(runtime), json.dumps(hello).encode() + b"\n") as (process, _, stderr):
        assert process.wait(60) == EXIT_REFUSED
        assert b'program speaks protocol "0.2.0" of Roder, not "9.0.0"' in stderr.read()


# -- started by hand


def test_in_a_terminal_the_program_describes_itself(runtime: str) -> None:
    ours, theirs = pty.openpty()
    ended = subprocess.run(program(runtime), stdin=theirs, capture_output=True, timeout=100, check=False)
    os.close(ours)
    os.close(theirs)

    output = ended.stdout.decode()
    assert ended.returncode == EXIT_USAGE
    assert output.startswith("program 1.0 is an extension")
    assert "  add: Adds one.\n" in output
    assert sys.executable in output
    assert ended.stderr == b""


def test_without_a_stdout_the_program_reports_that_there_is_no_host(runtime: str) -> None:
    shell = ["/bin/sh", "-c", 'exec "$@" >&-', "sh", *program(runtime)]

    ended = subprocess.run(shell, input=b"", stderr=subprocess.PIPE, timeout=100, check=False)

    assert ended.returncode == EXIT_USAGE
    assert ended.stderr.startswith(b"program: stdout is closed")


def test_the_notes_extension_explains_all_that_it_offers() -> None:
    notes = Path(__file__).parent / "notes.py"
    ours, theirs = pty.openpty()
    ended = subprocess.run([sys.executable, notes], stdin=theirs, capture_output=True, timeout=100, check=False)
    os.close(ours)
    os.close(theirs)

    assert ended.stdout.decode().split("Give a host")[0] == (
        "notes 1.2.0 is an extension: a host program starts it, and connects to it over stdin and stdout.\n\n"
        "Tools:\n  count: Counts the notes that contain a text.\n\n"
        "Commands:\n  reindex\n\n"
        "Providers:\n  local: small\n\n"
        "Hooks:\n  before_tool_call of bash\n\n"
        "Methods:\n  notes/stats\n\n"
    )


def test_an_unknown_loop_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown loop: curio"):
        Notes().run(loop="curio")  # type: ignore[arg-type]


# -- the log


def test_log_records_have_their_level(runtime: str) -> None:
    frames = [use(2, "log", level=30, message="it rains"), use(3, "log", level=45, message="two\nlines")]
    _, output = converse(program(runtime), HELLO, *frames)

    assert [record for line in output if (record := parse_log_line(line))] == [
        LogRecord(LogLevel.WARNING, "program.part", "it rains"),
        LogRecord(LogLevel.ERROR, "program.part", "two"),
        LogRecord(LogLevel.ERROR, "program.part", "lines"),
    ]


@pytest.mark.parametrize("when", ["import logging", "from logging.handlers import SocketHandler", ""])
def test_log_records_have_their_level_whenever_logging_is_imported(when: str) -> None:
    _, output = converse(program("blocking", before=when), HELLO, use(2, "log", level=50, message="now"))

    assert output == ["started", "CRITICAL:program.part:now", "stopped"]


def test_an_existing_logging_configuration_is_respected(runtime: str) -> None:
    _, output = converse(program(runtime), HELLO, use(2, "log_elsewhere"))

    assert output == ["started", "mine: hello", "stopped"]


def test_an_unexpected_error_is_in_the_log_with_its_traceback(runtime: str) -> None:
    responses, output = converse(program(runtime), HELLO, use(2, "fail"))

    records = [record for line in output if (record := parse_log_line(line))]
    assert "the disk is gone" not in json.dumps(responses)
    assert responses[2]["data"]["incident"] in records[0].message
    assert records[-1] == LogRecord(LogLevel.ERROR, "becket.peer", "ValueError: the disk is gone")
    assert {record.level for record in records} == {LogLevel.ERROR}


def test_a_log_record_that_cannot_be_written_is_dropped(runtime: str) -> None:
    broken = use(2, "log", level=30, message="%d")
    responses, _ = converse(program(runtime), HELLO, broken, use(3, "add", number=1))

    assert responses[3] == 2
