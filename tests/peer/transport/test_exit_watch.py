"""Where the system has kqueue and no pidfds, children are watched by that.

Elsewhere a stand-in plays it, whose descriptor becomes readable and whose events have the status as in kqueue.
"""

from __future__ import annotations

import errno
import os
import select
import signal
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import anyio
import pytest
from tests.peer.children import QUICK, ready_child

from becket import Peer, PeerCrashed
from becket.errors import NotSupported
from becket.peer.transport import child_process, exit_watch
from becket.peer.transport.exit_watch import KqueueExitWatch
from becket.peer.transport.guardian import find_guarding_problem
from becket.testing import ProcessWatch, child

pytestmark = pytest.mark.process

PROC, TIMER = -5, -7


class Queue:
    """kqueue, as far as it reports the end of processes; made of what Linux has."""

    def __init__(self) -> None:
        self._ready = select.epoll()
        self._watched = -1
        self._pid = 0

    def fileno(self) -> int:
        return self._ready.fileno()

    def control(self, changes: list[Any] | None, most: int, timeout: float | None = None) -> list[Any]:
        for change in changes or ():
            if change.filter == TIMER:
                self._watched = os.eventfd(1)
            elif os.waitid(os.P_PID, change.ident, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None:
                raise ProcessLookupError(3, "No such process")
            else:
                assert change.fflags == (0x80000000 | exit_watch.NOTE_EXITSTATUS)
                self._pid, self._watched = change.ident, os.pidfd_open(change.ident)
            self._ready.register(self._watched, select.EPOLLIN)
        if most == 0 or not self._ready.poll(0):
            return []
        ended = os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOWAIT)
        assert ended is not None
        status = ended.si_status << 8 if ended.si_code == os.CLD_EXITED else ended.si_status
        return [SimpleNamespace(data=status)]

    def close(self) -> None:
        self._ready.close()
        if self._watched >= 0:
            os.close(self._watched)


def event(ident: int, filter: int, flags: int, fflags: int = 0, data: int = 0) -> Any:
    return SimpleNamespace(ident=ident, filter=filter, flags=flags, fflags=fflags, data=data)


STAND_IN = SimpleNamespace(
    kqueue=Queue, kevent=event, KQ_FILTER_PROC=PROC, KQ_FILTER_TIMER=TIMER, KQ_EV_ADD=1, KQ_NOTE_EXIT=0x80000000
)


@pytest.fixture(autouse=True)
def watched_by_kqueue(monkeypatch: pytest.MonkeyPatch) -> None:
    if not hasattr(select, "kqueue"):
        monkeypatch.setattr(exit_watch, "select_module", STAND_IN)
    monkeypatch.setattr(child_process, "watch_exit", KqueueExitWatch)


@pytest.mark.loops
@pytest.mark.parametrize("code", [0, 3, 255])
async def test_the_exit_code_of_a_child_is_available(code: int) -> None:
    with anyio.fail_after(60):
        async with Peer.connect_process(child("exits", code)) as peer:
            lost = await peer.wait_closed()
    assert isinstance(lost, PeerCrashed)
    assert (lost.exit_code, lost.signal) == (code, None)


@pytest.mark.loops
@pytest.mark.parametrize("name", ["SIGSEGV", "SIGKILL"])
async def test_the_signal_that_ended_a_child_is_available(name: str) -> None:
    with anyio.fail_after(60):
        async with Peer.connect_process(child("dies_when_called", name)) as peer:
            with pytest.raises(PeerCrashed) as crash:
                await peer.call("x")
    assert (crash.value.signal, crash.value.exit_code) == (name, -signal.Signals[name])


@pytest.mark.loops
async def test_a_stubborn_child_and_what_it_has_started_are_gone_when_the_peer_is_closed() -> None:
    with anyio.fail_after(60):
        async with ready_child("ignores_sigterm", limits=QUICK) as (peer, _):
            assert peer.process is not None
            with ProcessWatch(peer.process.pid) as watch:
                await peer.aclose()
                await watch.gone()
    assert (peer.process.has_exited, peer.process.signal) == (True, "SIGKILL")


def test_the_exit_of_a_process_that_ended_before_it_was_watched_is_reported_at_once() -> None:
    ended = subprocess.Popen([sys.executable, "-I", "-S", "-c", "raise SystemExit(7)"])
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
    exit = KqueueExitWatch(ended.pid)
    try:
        assert select.select([exit.fd], [], [], 5)[0] == [exit.fd]
        assert (exit.poll(), exit.is_unreaped()) == (7, False)
        exit.signal_group(signal.SIGKILL)  # its pid may belong to another process by now: no signal is sent
    finally:
        exit.close()
        ended.returncode = 7


def test_a_running_process_has_no_exit_and_its_group_can_be_signalled() -> None:
    running = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True
    )
    exit = KqueueExitWatch(running.pid)
    try:
        assert (exit.poll(), exit.is_unreaped()) == (None, True)
        exit.signal_group(signal.SIGKILL)
        assert select.select([exit.fd], [], [], 5)[0] == [exit.fd]
        assert (exit.poll(), exit.poll()) == (-signal.SIGKILL, -signal.SIGKILL)
    finally:
        exit.close()
        running.communicate()


def test_no_queue_is_left_open_where_the_process_cannot_be_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(Queue):
        def control(self, *_: Any) -> list[Any]:
            raise OSError(12, "no room")

    monkeypatch.setattr(exit_watch, "select_module", SimpleNamespace(**{**vars(STAND_IN), "kqueue": Full}))
    with pytest.raises(OSError, match="no room"):
        KqueueExitWatch(os.getpid())


async def test_a_system_without_pidfds_and_kqueue_starts_nothing_and_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    monkeypatch.setattr(exit_watch, "select_module", SimpleNamespace())
    with pytest.raises(NotSupported, match="neither pidfds nor kqueue"):
        async with Peer.connect_process(child("echoes")):
            pytest.fail("it was started")


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.EPERM])
async def test_a_kernel_or_sandbox_without_pidfds_is_named_as_the_reason(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(pid: int) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "pidfd_open", refuse)
    monkeypatch.setattr(exit_watch, "select_module", SimpleNamespace())
    with pytest.raises(NotSupported, match=r"becket needs Linux 5\.4 or newer; a sandbox may block pidfds"):
        async with Peer.connect_process(child("echoes")):
            pytest.fail("it was started")

    assert find_guarding_problem() == "this system has no pidfds or no procfs"
