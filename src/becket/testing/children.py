"""Child programs that misbehave in one way each, run by name as a script.

The docstring of a function says what its program does wrong. They use only the standard library and JSON-RPC in
Content-Length frames. Each reports its `pid` in a notification sent by `announce_ready`.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, NoReturn

__all__ = ["PROGRAMS"]

JsonMessage = dict[str, Any]
Program = Callable[..., None]

PROGRAMS: dict[str, Program] = {}
"""Each program by its name."""

CHUNK = 64 * 1024


def program(function: Program) -> Program:
    PROGRAMS[function.__name__] = function
    return function


# -- messages


def frame(message: JsonMessage) -> bytes:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def send(message: JsonMessage) -> None:
    sys.stdout.buffer.write(frame(message))
    sys.stdout.buffer.flush()


def notify(method: str, params: object = None) -> None:
    send({"method": method, "params": params})


def respond(request: JsonMessage, result: object = None) -> None:
    send({"id": request["id"], "result": result})


def read_message() -> JsonMessage | None:
    """Returns the next message; None when stdin has ended."""
    length = 0
    while line := sys.stdin.buffer.readline().strip():
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    if not length:
        return None
    message: JsonMessage = json.loads(sys.stdin.buffer.read(length))
    return message


def read_request() -> JsonMessage:
    """Returns the next request; exits at the end of stdin."""
    while (message := read_message()) is not None:
        if "id" in message and "method" in message:
            return message
    sys.exit(0)


def announce_ready(**more: object) -> None:
    notify("ready", {"pid": os.getpid(), **more})


def wait_forever() -> NoReturn:
    """Runs until it is killed."""
    while True:
        time.sleep(3600)


# -- programs that behave


@program
def echoes() -> None:
    """Behaves: responds to every request with its params until stdin ends."""
    while True:
        request = read_request()
        respond(request, request.get("params"))


@program
def describes_itself(*_: str) -> None:
    """Behaves: responds with its environment, descriptors, arguments, folder, ids and signal mask."""
    descriptors = sorted(int(name) for name in os.listdir("/proc/self/fd"))
    opened = [fd for fd in descriptors if is_open(fd)]
    while True:
        respond(
            read_request(),
            {
                "environment": dict(os.environ),
                "descriptors": opened,
                "arguments": sys.orig_argv,
                "folder": os.getcwd(),
                "pid": os.getpid(),
                "group": os.getpgid(0),
                "session": os.getsid(0),
                "blocking": [os.get_blocking(fd) for fd in (0, 1, 2)],
                "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
            },
        )


def is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


@program
def ticks(count: str = "3", size: str = "0") -> None:
    """Behaves: sends `count` notifications `tick`, with `n` and `size` bytes of padding, before each response."""
    while True:
        request = read_request()
        for number in range(int(count)):
            notify("tick", {"n": number, "padding": "x" * int(size)})
        respond(request, int(count))


# -- programs that exit


@program
def exits(code: str = "0") -> None:
    """Exits at once with this exit code, before it sends anything."""
    os._exit(int(code))


@program
def fails() -> None:
    """Exits with a traceback on stderr, like a program with a failing import."""
    raise ModuleNotFoundError("No module named 'notes_of_the_day'")


@program
def exits_when_called(code: str = "3") -> None:
    """Exits with this exit code instead of responding to its first request."""
    announce_ready()
    read_request()
    os._exit(int(code))


@program
def dies_when_called(name: str = "SIGSEGV") -> None:
    """Kills itself by this signal instead of responding to its first request."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    announce_ready()
    read_request()
    os.kill(os.getpid(), signal.Signals[name])
    wait_forever()


@program
def dies_in_mid_frame() -> None:
    """Responds to the first request, and dies in the middle of its second response."""
    respond(read_request(), "whole")
    request = read_request()
    half = frame({"id": request["id"], "result": "x" * 100})
    os.write(1, half[: len(half) // 2])
    os._exit(3)


@program
def dies_in_mid_stream(count: str = "3") -> None:
    """Sends `count` notifications `tick` for its first request and dies before the response."""
    read_request()
    for number in range(int(count)):
        notify("tick", {"n": number, "padding": ""})
    os._exit(4)


@program
def dies_while_it_is_written_to() -> None:
    """Reads the beginning of a large request and dies."""
    announce_ready()
    os.read(0, 1024)
    os._exit(5)


# -- programs that do not exit


@program
def ignores_eof() -> None:
    """Keeps running when its stdin has ended; SIGTERM ends it."""
    announce_ready()
    while read_message() is not None:
        pass
    wait_forever()


@program
def ignores_sigterm() -> None:
    """Keeps running when its stdin has ended, and ignores SIGTERM too."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    announce_ready()
    wait_forever()


@program
def masks_every_signal() -> None:
    """Keeps running when its stdin has ended, with every signal blocked that can be."""
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    announce_ready()
    wait_forever()


@program
def stops_when_called() -> None:
    """Stops (SIGSTOP) instead of responding to its first request."""
    announce_ready()
    read_request()
    os.kill(os.getpid(), signal.SIGSTOP)
    wait_forever()


@program
def never_answers() -> None:
    """Reads everything and never responds; exits when its stdin ends."""
    announce_ready()
    while read_message() is not None:
        pass


# -- programs that misuse their pipes


@program
def never_reads() -> None:
    """Never reads a byte of its stdin."""
    announce_ready()
    wait_forever()


@program
def closes_stdout_when_called() -> None:
    """Closes its stdout instead of responding to its first request, and keeps running."""
    announce_ready()
    read_request()
    os.close(1)
    wait_forever()


@program
def closes_stdin() -> None:
    """Closes its stdin and keeps sending `tick` until its stdout is closed."""
    os.close(0)
    announce_ready()
    number = 0
    while True:
        os.write(1, frame({"method": "tick", "params": {"n": number}}))
        number += 1
        time.sleep(0.001)


@program
def writes_before_it_reads(size: str = "1000000") -> None:
    """Fills its stdout with notifications before it reads a byte, then echoes; both pipes are full in between."""
    note = frame({"method": "tick", "params": {"padding": "x" * 1000}})
    for _ in range(int(size) // len(note) + 1):
        sys.stdout.buffer.write(note)
    sys.stdout.buffer.flush()
    echoes()


@program
def floods_stdout(at_once: str = "500") -> None:
    """Sends `tick` without end and never reads."""
    notes = frame({"method": "tick", "params": {"n": 0}}) * int(at_once)
    while True:
        os.write(1, notes)


@program
def asks_without_reading() -> None:
    """Sends requests `ask` without end and never reads a response."""
    number = 0
    while True:
        number += 1
        os.write(1, frame({"id": number, "method": "ask"}))


@program
def prints_to_stdout(text: str = "hello") -> None:
    """Prints a line to stdout, between the frames, before each response."""
    while True:
        request = read_request()
        sys.stdout.buffer.write(f"{text}\n".encode())
        respond(request)


@program
def writes_to_stdout(encoded: str, rest: str = "") -> None:
    """Writes these bytes (given in hexadecimal) to stdout, whatever they are, and those of `rest` over and over."""
    os.write(1, bytes.fromhex(encoded))
    block = bytes.fromhex(rest) * (CHUNK // max(1, len(rest)))
    while block:
        os.write(1, block)
    wait_forever()


@program
def floods_stderr(size: str = "4000000", kind: str = "lines") -> None:
    """Writes this many bytes to stderr before each response: in `lines`, `unbroken`, or with carriage `returns`."""
    pattern = {"lines": b"a" * 79 + b"\n", "unbroken": b"a" * 80, "returns": b"50 % done...\r"}[kind]
    while True:
        request = read_request()
        left = int(size)
        block = pattern * (CHUNK // len(pattern))
        while left > 0:
            left -= os.write(2, block[:left])
        respond(request, request.get("params"))


@program
def writes_to_stderr(encoded: str) -> None:
    """Writes these bytes (given in hexadecimal) to stderr before each response."""
    while True:
        request = read_request()
        os.write(2, bytes.fromhex(encoded))
        respond(request)


# -- programs with wrong messages


@program
def answers_twice() -> None:
    """Responds to every request twice."""
    while True:
        request = read_request()
        respond(request, 1)
        respond(request, 2)


@program
def ticks_after_the_answer(count: str = "3") -> None:
    """Sends `count` notifications `tick` of a call after its response, and then `over`."""
    while True:
        respond(read_request(), "answered")
        for number in range(int(count)):
            notify("tick", {"n": number, "padding": ""})
        notify("over")


# -- programs with grandchildren


@program
def starts_a_family() -> None:
    """Starts a grandchild in its group and one in another group of its session, sends their pids, and echoes."""
    sleeper = [sys.executable, "-I", "-S", __file__, "ignores_sigterm"]
    quiet: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    same = subprocess.Popen(sleeper, **quiet)
    other = subprocess.Popen(sleeper, **quiet, process_group=0)
    for grandchild in (same, other):  # each is ready, and ignores SIGTERM from then on
        assert grandchild.stdout is not None
        grandchild.stdout.read(1)
    announce_ready(family=[same.pid, other.pid])
    echoes()


@program
def leaves_a_grandchild_with_its_pipes() -> None:
    """Starts a grandchild that holds stdout and stderr open, and exits with code 7."""
    grandchild = subprocess.Popen([sys.executable, "-I", "-S", __file__, "holds_on"], stdin=subprocess.DEVNULL)
    announce_ready(family=[grandchild.pid])
    read_request()
    os._exit(7)


@program
def responds_and_leaves_a_grandchild(size: str = "1") -> None:
    """Starts a grandchild that holds stdout and stderr, and exits right after its first response, of `size` bytes."""
    grandchild = subprocess.Popen([sys.executable, "-I", "-S", __file__, "holds_on"], stdin=subprocess.DEVNULL)
    announce_ready(family=[grandchild.pid])
    respond(read_request(), "x" * int(size))
    os._exit(7)


@program
def holds_on() -> None:
    """Holds its inherited descriptors open, and never exits."""
    wait_forever()


@program
def leaves_a_grandchild_that_floods() -> None:
    """Starts a grandchild that writes to stdout and stderr without end, and exits with code 7 when it is called."""
    read_request()
    grandchild = subprocess.Popen([sys.executable, "-I", "-S", __file__, "floods_all"], stdin=subprocess.DEVNULL)
    announce_ready(family=[grandchild.pid])
    os._exit(7)


@program
def floods_all() -> None:
    """Sends `tick` on stdout without end, while its own child fills stderr."""
    if os.fork():
        floods_stdout("50")  # less than PIPE_BUF bytes: a longer write can be cut in two by a frame of its parent
    while True:
        os.write(2, b"a" * CHUNK)


def main(name: str, *arguments: str) -> None:
    PROGRAMS[name](*arguments)


if __name__ == "__main__":
    main(*sys.argv[1:])
