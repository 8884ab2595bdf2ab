"""The watchdog of a child on becket: it ends a program whose host is gone and whose handler does not return."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest

from becket.framing.content_length import ContentLength
from becket.peer.watchdog import EXIT_STOP_TIMEOUT

pytestmark = pytest.mark.process

HEAD = """
import sys, time
import becket.peer.watchdog as watchdog
watchdog.GRACE = 0.3

def say(word):
    print(word, file=sys.stderr, flush=True)

def stay(params):
    say("busy")
    time.sleep(3600)

def nap(params):
    time.sleep(0.2)
    return "rested"
"""
BLOCKING = """
from becket.blocking import connect_stdio

with connect_stdio() as peer:
    peer.handle("stay")(stay)
    peer.handle("nap")(nap)
    peer.serve()
"""
LOOPED = """
import anyio
from becket import Peer

async def main():
    async with Peer.connect_stdio() as peer:
        peer.handle("stay", thread={thread})(stay)
        peer.handle("nap")(nap)
        await peer.wait_closed()

anyio.run(main, backend={backend!r})
"""
CHILDREN = {
    "blocking": BLOCKING,
    "asyncio": LOOPED.format(backend="asyncio", thread=False),
    "trio": LOOPED.format(backend="trio", thread=False),
    "asyncio thread": LOOPED.format(backend="asyncio", thread=True),
    "trio thread": LOOPED.format(backend="trio", thread=True),
}


def request(id: int, method: str) -> bytes:
    return ContentLength().encode(msgspec.json.encode({"jsonrpc": "2.0", "id": id, "method": method}))


@contextmanager
def started(code: str, *, leads: bool = True) -> Iterator[Any]:
    command = [sys.executable, "-c", HEAD + code]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=leads) as process:
        yield process
        process.kill()


@pytest.mark.parametrize("kind", CHILDREN)
def test_a_handler_that_does_not_return_is_ended_with_its_program_after_stdin(kind: str) -> None:
    with started(CHILDREN[kind]) as process:
        process.stdin.write(request(1, "stay"))
        process.stdin.flush()
        assert process.stderr.readline() == b"busy\n"
        process.stdin.close()
        assert process.wait(60) == EXIT_STOP_TIMEOUT
        assert b"did not return within 0.3 s" in process.stderr.read()


def test_requests_that_came_before_the_end_of_stdin_are_served_although_all_of_them_take_longer() -> None:
    with started(BLOCKING) as process:
        process.stdin.write(b"".join(request(number, "nap") for number in range(1, 9)))
        process.stdin.close()
        assert process.stdout.read().count(b"rested") == 8
        assert process.wait(60) == 0


def test_a_program_that_continues_without_a_handler_when_its_link_has_ended_is_left_alone() -> None:
    code = BLOCKING + "\ntime.sleep(1.5)\nsay('done')\n"
    with started(code) as process:
        process.stdin.close()
        assert process.stderr.read() == b"done\n"
        assert process.wait(60) == 0


def test_processes_that_the_program_has_started_in_its_own_session_end_with_it() -> None:
    code = "import subprocess\nsubprocess.Popen(['sleep', '3600'])\n" + BLOCKING
    with started(code) as process:
        process.stdin.write(request(1, "stay"))
        process.stdin.flush()
        assert process.stderr.readline() == b"busy\n"
        process.stdin.close()
        assert b"killed" in process.stderr.read()  # which ends when no process holds stderr any more
        process.wait(60)


def test_a_session_that_is_not_its_own_is_left_alone() -> None:
    code = f"""
import subprocess, sys
other = subprocess.Popen(["sleep", "3600"])
child = subprocess.Popen([sys.executable, "-c", {HEAD + BLOCKING!r}], stdin=subprocess.PIPE)
child.stdin.write({request(1, "stay")!r})
child.stdin.close()
print(child.wait(), other.poll(), flush=True)
other.kill()
"""
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, timeout=100, start_new_session=True)
    assert done.stdout == f"{EXIT_STOP_TIMEOUT} None\n".encode()


def test_a_host_that_reads_stderr_no_more_and_has_closed_stdin_is_gone() -> None:
    with started(BLOCKING) as process:
        process.stdin.write(request(1, "stay"))
        process.stdin.flush()
        assert process.stderr.readline() == b"busy\n"
        process.stderr.close()
        process.stdin.close()
        assert process.wait(60) == EXIT_STOP_TIMEOUT
