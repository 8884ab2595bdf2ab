"""The guardian: one small process beside a program, which kills the sessions of its children when it is gone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import anyio
import pytest
from tests.peer.children import QUICK, ready_child
from tests.peer.test_host_ends import all_gone

from becket import Peer, blocking
from becket.errors import NotSupported
from becket.peer.transport import guardian, guardian_process
from becket.peer.transport.guardian import GUARDIAN
from becket.testing import ProcessWatch, check_leaks, child, take_inventory

pytestmark = pytest.mark.process

HOST = """
import asyncio, os, sys, time
from becket import Peer, blocking
from becket.peer.transport.guardian import GUARDIAN
from becket.testing import child

def print_pids(params):
    fork = os.fork() if {forks} else os.getpid()
    if fork == 0:
        time.sleep(3600)
    print(params["pid"], GUARDIAN.pid, flush=True)

async def run_async():
    peer = await Peer.connect_process(child("never_reads"), guard=True)
    peer.on("ready")(print_pids)
    await asyncio.sleep(3600)

def run_blocking():
    peer = blocking.connect_process(child("never_reads"), guard=True)
    peer.on("ready")(print_pids)
    peer.serve()

{run}
"""


def guardian_pid() -> int:
    assert GUARDIAN.pid is not None
    return GUARDIAN.pid


def descriptors_of(pid: int) -> list[str]:
    found: list[str] = []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with suppress(FileNotFoundError):  # it was closed since
            found.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
    return found


def watched_by(pid: int) -> int:
    """Returns how many processes the guardian watches: its host, and the leader of each session."""
    return sum("pidfd" in name for name in descriptors_of(pid))


async def until(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(60):
        while not condition():  # noqa: ASYNC110 - another process sends no event
            await anyio.sleep(0.005)


@contextmanager
def host_of(run: str, *, forks: bool = False) -> Iterator[tuple[subprocess.Popen[bytes], list[ProcessWatch]]]:
    """Runs a host with a guarded child, and yields it with its child and its guardian."""
    command = [sys.executable, "-c", HOST.format(run=run, forks=forks)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as host:
        assert host.stdout is not None
        family = [ProcessWatch(int(pid)) for pid in host.stdout.readline().split()]
        yield host, family
        for member in family:
            member.close()


@pytest.mark.parametrize("run", ["asyncio.run(run_async())", "run_blocking()"], ids=["asyncio", "blocking"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_a_guarded_child_that_never_reads_does_not_outlive_its_host(run: str, number: signal.Signals) -> None:
    with host_of(run) as (host, family):
        host.send_signal(number)
        await all_gone(family)


async def test_a_fork_of_the_host_that_holds_all_pipes_does_not_prolong_the_life_of_the_child() -> None:
    with host_of("run_blocking()", forks=True) as (host, family):
        host.kill()
        await all_gone(family)
        os.killpg(host.pid, signal.SIGKILL)  # the fork


@pytest.mark.loops
async def test_one_guardian_serves_all_peers_and_ends_with_the_last() -> None:
    with anyio.fail_after(60):
        async with Peer.connect_process(child("echoes"), guard=True) as first:
            pid = guardian_pid()
            with ProcessWatch(pid) as process:
                async with Peer.connect_process(child("echoes"), guard=True) as second:
                    assert await second.call("x", [1]) == [1]
                    assert guardian_pid() == pid
                assert (await first.call("x", [1]), process.is_alive) == ([1], True)
                await first.aclose()
                await process.gone()
    assert GUARDIAN.pid is None


def test_a_blocking_peer_has_a_guardian_too() -> None:
    with blocking.connect_process(child("echoes"), guard=True) as peer:
        assert peer.call("x", [1]) == [1]
        pid = guardian_pid()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_threads_share_the_guardian() -> None:
    pids: list[int] = []
    together = threading.Barrier(4)

    def use() -> None:
        with blocking.connect_process(child("echoes"), guard=True) as peer:
            assert peer.call("x", [1]) == [1]
            together.wait(60)
            pids.append(guardian_pid())
            together.wait(60)

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert (len(pids), len(set(pids)), GUARDIAN.pid) == (4, 1, None)


async def test_a_child_without_the_option_has_no_guardian() -> None:
    with anyio.fail_after(60):
        async with Peer.connect_process(child("echoes")) as peer:
            assert await peer.call("x", [1]) == [1]
            assert GUARDIAN.pid is None


async def test_the_guardian_is_alone_in_its_session_and_holds_no_pipe_but_its_own() -> None:
    with anyio.fail_after(60):
        async with Peer.connect_process(child("echoes"), guard=True):
            pid = guardian_pid()
            await until(lambda: watched_by(pid) == 2)
            held = descriptors_of(pid)
            assert (os.getsid(pid), os.getpgid(pid)) == (pid, pid)
            assert sum(name.startswith("pipe:") for name in held) == 1
            assert {name for name in held if not name.startswith("pipe:")} == {"/dev/null", "anon_inode:[pidfd]"}
            assert os.readlink(f"/proc/{pid}/cwd") == "/"


@pytest.mark.parametrize("name", guardian_process.IGNORED)
async def test_the_guardian_ignores_signals_that_are_meant_for_a_whole_group(name: str) -> None:
    with anyio.fail_after(60):
        async with Peer.connect_process(child("echoes"), guard=True) as peer:
            pid = guardian_pid()
            await until(lambda: watched_by(pid) == 2)
            with ProcessWatch(pid) as process:
                os.kill(pid, signal.Signals[name])
                assert await peer.call("x", [1]) == [1]
                assert process.is_alive


async def test_a_killed_guardian_is_started_again_with_the_next_child_and_watches_all_of_them() -> None:
    with anyio.fail_after(60):
        async with ready_child("never_reads", guard=True, limits=QUICK) as (_, first):
            with ProcessWatch(guardian_pid()) as process:
                os.kill(process.pid, signal.SIGKILL)
                await process.gone()
            async with ready_child("never_reads", guard=True, limits=QUICK) as (_, second):
                pid = guardian_pid()
                assert pid != process.pid
                with ProcessWatch(first["pid"]) as one, ProcessWatch(second["pid"]) as other:
                    await until(lambda: watched_by(pid) == 3)
                    null = os.open(os.devnull, os.O_WRONLY)
                    os.dup2(null, GUARDIAN.descriptor or -1)  # which closes the pipe, as the end of this program does
                    os.close(null)
                    await one.gone()
                    await other.gone()


async def test_a_session_that_has_ended_in_order_is_removed() -> None:
    with anyio.fail_after(60):
        async with Peer.connect_process(child("echoes"), guard=True):
            pid = guardian_pid()
            async with Peer.connect_process(child("echoes"), guard=True):
                await until(lambda: watched_by(pid) == 3)
            await until(lambda: watched_by(pid) == 2)  # the host, and the child that still runs


def test_a_reused_process_id_is_not_killed() -> None:
    """A session whose leader was reaped, and whose id is that of a running process, belongs to another program."""
    other = subprocess.Popen(["sleep", "3600"], start_new_session=True)
    gone = subprocess.Popen(["true"], start_new_session=True)
    pidfds = [os.pidfd_open(gone.pid), os.pidfd_open(other.pid)]
    gone.wait()
    try:
        guardian_process.kill_sessions({other.pid: pidfds[0]})
        assert other.poll() is None
        guardian_process.kill_sessions({other.pid: pidfds[1]})
        assert other.wait(60) == -signal.SIGKILL
    finally:
        for pidfd in pidfds:
            os.close(pidfd)
        other.kill()
        other.wait()


def test_the_guardian_is_not_a_leak_while_it_is_in_use() -> None:
    before = take_inventory()
    with check_leaks(), blocking.connect_process(child("echoes"), guard=True) as peer:
        assert peer.call("x", [1]) == [1]
        with check_leaks():
            guardian_pid()
        found = take_inventory()
        assert guardian_pid() not in found.processes
        assert GUARDIAN.descriptor not in found.descriptors
    assert take_inventory().new_since(before) == []


@pytest.mark.loops
async def test_where_there_can_be_no_guardian_a_guarded_child_is_not_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guardian.sys, "frozen", True, raising=False)
    with pytest.raises(NotSupported, match="guarding a child process"):
        await Peer.connect_process(child("echoes"), guard=True)
