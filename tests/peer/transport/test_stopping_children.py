"""How a child is ended: orderly if it reads its stdin, killed otherwise, and no other process is hit."""

from __future__ import annotations

import os
import resource
import signal
import threading

import anyio
import pytest
from tests.peer.children import QUICK, ready_child

from becket import CallTimeout, ConnectionLost, DisconnectReason, Limits, Peer, PeerCrashed
from becket.peer.transport import child_process, exit_watch, guardian_process
from becket.peer.transport.child_process import ChildProcess
from becket.testing import ProcessWatch, check_leaks, child

pytestmark = [pytest.mark.loops, pytest.mark.process]


def process_of(peer: Peer) -> ChildProcess:
    assert peer.process is not None
    return peer.process


# -- the order


async def test_a_child_that_reads_its_stdin_ends_by_itself() -> None:
    patient = Limits(stdin_grace=60, term_grace=60)  # so that no signal is ever sent
    with anyio.fail_after(60):
        async with Peer.connect_process(child("echoes"), limits=patient) as peer:
            assert await peer.call("x", [1]) == [1]

    assert (process_of(peer).exit_code, process_of(peer).signal) == (0, None)


async def test_a_child_that_ignores_the_end_of_its_stdin_gets_sigterm() -> None:
    with anyio.fail_after(60):
        async with ready_child("ignores_eof", limits=QUICK.but(term_grace=60)) as (peer, _):
            pass

    assert process_of(peer).signal == "SIGTERM"


@pytest.mark.parametrize("name", ["ignores_sigterm", "masks_every_signal"])
async def test_a_child_that_ignores_everything_is_killed(name: str) -> None:
    with anyio.fail_after(60):
        async with ready_child(name) as (peer, _):
            pass

    assert process_of(peer).signal == "SIGKILL"


async def test_closing_is_not_a_crash() -> None:
    with anyio.fail_after(60):
        async with ready_child("ignores_sigterm") as (peer, _):
            pass
        lost = await peer.wait_closed()

    assert (lost.reason, isinstance(lost, PeerCrashed)) == (DisconnectReason.LOCAL_CLOSE, False)


async def test_a_child_that_is_flooding_can_still_be_closed() -> None:
    with anyio.fail_after(60):
        async with Peer.connect_process(child("floods_stdout"), limits=QUICK) as peer:
            first = anyio.Event()
            peer.on("tick")(lambda _: first.set())
            await first.wait()

    assert process_of(peer).has_exited


# -- pipes that end before the child does


async def test_a_child_that_closes_its_stdout_is_lost_and_ended() -> None:
    limits = QUICK.but(drain_grace=0.01)
    with anyio.fail_after(60):
        async with ready_child("closes_stdout_when_called", limits=limits) as (peer, _):
            with pytest.raises(ConnectionLost) as caught:
                await peer.call("x")

    assert caught.value.reason is DisconnectReason.REMOTE_CLOSE
    assert process_of(peer).has_exited


async def test_a_child_that_closes_its_stdin_is_read_until_a_write_fails_and_then_ended() -> None:
    ticks: list[int] = []
    received = anyio.Event()
    with anyio.fail_after(60):
        async with Peer.connect_process(child("closes_stdin"), limits=QUICK.but(drain_grace=0.01)) as peer:

            @peer.on("tick")
            def tick(params: dict[str, int]) -> None:
                ticks.append(params["n"])
                if len(ticks) == 3:
                    received.set()

            await received.wait()
            with pytest.raises(ConnectionLost) as caught:
                await peer.call("x")

    assert caught.value.reason is DisconnectReason.STREAM_ERROR
    assert ticks[:3] == [0, 1, 2]
    assert process_of(peer).has_exited


# -- children that are there and do nothing


async def test_a_stopped_child_lets_a_call_time_out_and_is_killed_when_it_is_closed() -> None:
    with anyio.fail_after(60):
        async with ready_child("stops_when_called") as (peer, _):
            with pytest.raises(CallTimeout):
                await peer.call("x", timeout=0.05)
            assert not peer.is_closed

    assert process_of(peer).signal == "SIGKILL"


async def test_a_child_that_cannot_be_killed_is_abandoned_and_reaped_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A process in the kernel's hands survives SIGKILL for a while; one that is never signalled looks the same.
    monkeypatch.setattr(exit_watch, "pidfd_send_signal", lambda *_: None)
    monkeypatch.setattr(guardian_process, "session_members", lambda _: [])
    with anyio.fail_after(60):
        async with ready_child("ignores_sigterm", limits=QUICK.but(kill_grace=0.01)) as (peer, output):
            watch = ProcessWatch(output["pid"])
    stuck = process_of(peer)
    monkeypatch.undo()

    with watch:
        assert (stuck.is_abandoned, stuck.has_exited, watch.is_alive) == (True, False, True)
        os.kill(stuck.pid, signal.SIGKILL)  # the kernel releases it
        with anyio.fail_after(60):
            await watch.gone()
            async with Peer.connect_process(child("echoes")) as other:  # the next start reaps it
                assert await other.call("x", [1]) == [1]


# -- child processes of the child


async def test_nothing_of_the_session_is_left_whatever_group_it_moved_to() -> None:
    with anyio.fail_after(60):
        async with ready_child("starts_a_family", limits=QUICK.but(stdin_grace=30)) as (peer, output):
            family = [ProcessWatch(pid) for pid in output["family"]]
            assert all(member.is_alive for member in family)
            assert len({os.getpgid(member.pid) for member in family}) == 2
        for member in family:
            with member:
                await member.gone()

    # It ended by itself when its stdin did, and its own children had to be killed.
    assert process_of(peer).exit_code == 0


async def test_nothing_of_the_session_is_left_when_a_child_crashes() -> None:
    with anyio.fail_after(60):
        async with ready_child("starts_a_family") as (peer, output):
            family = [ProcessWatch(pid) for pid in output["family"]]
            os.kill(process_of(peer).pid, signal.SIGKILL)
            assert isinstance(await peer.wait_closed(), PeerCrashed)
            for member in family:
                with member:
                    await member.gone()  # without waiting for the peer to be closed


async def test_a_fork_of_this_program_that_holds_the_pipes_does_not_prolong_the_life_of_a_child() -> None:
    with anyio.fail_after(60):
        async with ready_child("ignores_eof") as (peer, _):
            read, write = os.pipe()
            fork = os.fork()
            if fork == 0:  # a library that forks without exec: it holds our end of the stdin of the child
                os.close(write)
                os.read(read, 1)
                os._exit(0)
            os.close(read)
            await peer.aclose()
            assert process_of(peer).has_exited
            os.close(write)
            os.waitpid(fork, 0)  # noqa: ASYNC222 - it has been signalled


# -- no other process


async def test_no_signal_is_sent_once_a_child_is_reaped(monkeypatch: pytest.MonkeyPatch) -> None:
    with anyio.fail_after(60):
        async with ready_child("never_answers") as (peer, _):
            pass

    def fail(*arguments: object) -> None:
        pytest.fail(f"a signal was sent: {arguments}")

    for name in ("kill", "killpg"):
        monkeypatch.setattr(os, name, fail)
    monkeypatch.setattr(exit_watch, "pidfd_send_signal", fail)
    process_of(peer).terminate()
    process_of(peer).kill()
    process_of(peer).reap()


async def test_a_child_that_was_reaped_elsewhere_is_not_signalled_by_its_pid(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    signalled: list[object] = []
    with anyio.fail_after(60):
        async with ready_child("never_answers") as (peer, output):
            os.kill(output["pid"], signal.SIGKILL)
            os.waitpid(output["pid"], 0)  # noqa: ASYNC222 - as a SIGCHLD handler that waits for everybody
            monkeypatch.setattr(os, "kill", lambda *arguments: signalled.append(arguments))
            monkeypatch.setattr(os, "killpg", lambda *arguments: signalled.append(arguments))
            lost = await peer.wait_closed()

    assert isinstance(lost, PeerCrashed)
    assert (lost.exit_code, signalled) == (None, [])


async def test_with_sigchld_ignored_the_end_is_noticed_without_the_exit_code() -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the system then reaps them by itself
    try:
        with anyio.fail_after(60):
            async with ready_child("exits_when_called", 3) as (peer, _):
                with pytest.raises(PeerCrashed) as caught:
                    await peer.call("x")
    finally:
        signal.signal(signal.SIGCHLD, before)

    assert caught.value.exit_code is None


async def test_an_older_kernel_is_served_by_the_number_of_the_group_while_it_cannot_be_reused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    send = signal.pidfd_send_signal

    def send_as_before(pidfd: int, number: int, info: None = None, flags: int = 0) -> None:
        if flags:
            raise OSError(22, "Invalid argument")
        send(pidfd, number)

    monkeypatch.setattr(exit_watch, "pidfd_send_signal", send_as_before)
    with anyio.fail_after(60):
        async with ready_child("starts_a_family") as (peer, output):
            family = [ProcessWatch(pid) for pid in output["family"]]
            process_of(peer).kill()
            for member in family:
                with member:
                    await member.gone()

    assert process_of(peer).signal == "SIGKILL"


# -- many at once


async def test_a_hundred_children_need_no_thread_each() -> None:
    before = threading.active_count()
    async with anyio.create_task_group() as tasks:
        everybody = anyio.Event()
        count = 0

        async def live() -> None:
            nonlocal count
            async with Peer.connect_process(["cat"]) as peer:
                assert process_of(peer).pid
                count += 1
                if count == 100:
                    assert threading.active_count() <= before  # a thread of an earlier test may end
                    everybody.set()
                await everybody.wait()

        with anyio.fail_after(60):
            for _ in range(100):
                tasks.start_soon(live)
            await everybody.wait()


def test_descriptors_above_1024_work() -> None:
    # `select` cannot take such numbers: nothing here may use it.
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < 1200:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
    held = [os.dup(0) for _ in range(1100)]
    try:
        with check_leaks():
            opened, pipes = child_process.open_child(child("ignores_sigterm"))
            opened.kill_and_wait()
            assert opened.has_exited
            opened.reap()
            for fd in (pipes.stdin, pipes.stdout, pipes.stderr):
                os.close(fd)
    finally:
        for fd in held:
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
