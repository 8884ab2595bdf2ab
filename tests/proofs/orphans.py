"""Kills hosts in all ways, and counts which of the processes that they have started run three seconds later."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, islice
from pathlib import Path

from msgspec import Struct
from tests.proofs.proof import Proof

__all__ = ["CASES", "ENDS", "LOOPS", "Killed", "kill_host", "prove_no_orphans"]

BOUND = 3.0  # seconds after the end of the host
START = 60.0  # seconds for all children to be busy
LOOPS = ("asyncio", "trio", "uvloop")
ENDS = {
    "SIGKILL": signal.SIGKILL,
    "SIGTERM": signal.SIGTERM,
    "SIGHUP": signal.SIGHUP,
    "os._exit": signal.SIGUSR1,  # the host calls it when it gets this
}
CASES = {
    "plain": "extension busy in a plain handler",
    "thread": "extension busy in a thread",
    "locked": "extension that holds the interpreter's lock",
    "swallows": "extension whose handler swallows cancellation",
    "family": "program that an extension started in its session",
    "deaf": "extension not on becket that never reads stdin",
    "peer_plain": "child of a peer, busy in a plain handler",
    "peer_thread": "child of a peer, busy in a thread",
    "peer_swallows": "child of a peer whose handler swallows cancellation",
    "peer_blocking": "blocking child of a peer, busy in a handler",
    "peer_family": "program that a child of a peer started in its session",
    "peer_deaf": "guarded child of a peer that never reads stdin",
}
GUARDIAN = "guardian"


class Killed(Struct, frozen=True):
    """The outcome of one kill: the cases with a process that still ran, and when the last process was gone."""

    survivors: tuple[str, ...]
    seconds: float


def kill_host(end: str, loop: str, *, bound: float = BOUND, cases: tuple[str, ...] = tuple(CASES)) -> Killed:
    """Starts a host with a child for each case, ends it when all of them are busy, and watches its processes."""
    with tempfile.TemporaryDirectory() as folder:
        fifo = os.path.join(folder, "report")
        os.mkfifo(fifo)
        reports = os.open(fifo, os.O_RDWR | os.O_NONBLOCK)
        program = Path(__file__).with_name("stubborn_host.py")
        command = [sys.executable, str(program), loop, fifo, os.path.join(folder, "extensions"), *cases]
        with open(os.path.join(folder, "log"), "w+b") as log:
            host = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
            family: dict[int, str] = {}
            try:
                family = await_reports(reports, host, len(cases), log.name)
                return end_host(host, ENDS[end], family, bound)
            finally:
                os.close(reports)
                host.kill()
                host.wait()
                for pidfd in family:
                    kill(pidfd)


def await_reports(reports: int, host: subprocess.Popen[bytes], count: int, log: str) -> dict[int, str]:
    """Returns a pidfd of each process that must be gone, with its case."""
    until = time.monotonic() + START
    text = ""
    while text.count("\n") < count:
        if time.monotonic() > until or host.poll() is not None:
            raise AssertionError(f"only these were started: {text!r}\n{Path(log).read_text(encoding='utf-8')}")
        if select.select([reports], [], [], 1.0)[0]:
            text += os.read(reports, 4096).decode("ascii")
    family = {os.pidfd_open(int(pid)): case for case, *pids in map(str.split, text.splitlines()) for pid in pids}
    known = {int(pid) for line in text.splitlines() for pid in line.split()[1:]}
    children = Path(f"/proc/{host.pid}/task/{host.pid}/children").read_text(encoding="ascii").split()
    return family | {os.pidfd_open(int(pid)): GUARDIAN for pid in children if int(pid) not in known}


def end_host(host: subprocess.Popen[bytes], number: signal.Signals, family: dict[int, str], bound: float) -> Killed:
    poll = select.poll()
    for pidfd in family:
        poll.register(pidfd, select.POLLIN)
    host.send_signal(number)
    host.wait()
    began = time.monotonic()
    left = dict(family)
    took = 0.0
    while left and (remaining := began + bound - time.monotonic()) > 0:
        for pidfd, _ in poll.poll(remaining * 1000):
            poll.unregister(pidfd)
            del left[pidfd]
            took = time.monotonic() - began
    return Killed(tuple(sorted(set(left.values()))), took)


def kill(pidfd: int) -> None:
    try:
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    except ProcessLookupError:
        pass
    os.close(pidfd)


def prove_no_orphans(kills: int, at_once: int) -> Proof:
    """Returns a table with a row for each case."""
    plan = list(islice(zip(cycle(ENDS), cycle(loop for loop in LOOPS for _ in ENDS), strict=False), kills))
    with ThreadPoolExecutor(at_once) as workers:
        killed = list(workers.map(lambda one: kill_host(*one), plan))
    survived = Counter(case for one in killed for case in one.survivors)
    longest = max(one.seconds for one in killed)
    rows = [f"| {title} | {kills} | {survived[case]} |" for case, title in {**CASES, GUARDIAN: "the guardian"}.items()]
    lines = [
        f"Hosts ended by {', '.join(ENDS)} in turn, on {', '.join(LOOPS)}: which of the processes that they have",
        f"started ran {BOUND:g} s later. The last one was gone after {longest:.2f} s.",
        "",
        "| process | hosts ended | still running |",
        "|---|--:|--:|",
        *rows,
    ]
    return Proof(lines, holds=not survived)
