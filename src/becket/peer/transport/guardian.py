"""Starts and feeds the guardian: a small process that kills the sessions of children when this program is gone.

One guardian serves a whole program, from the first guarded child until none is left. It gets the numbers of sessions
over a pipe and nothing else, in particular no descriptor of a child.
"""

from __future__ import annotations

import os
import subprocess
import sys
from _thread import allocate_lock

from becket.errors import NotSupported
from becket.peer.transport import guardian_process
from becket.peer.transport.exit_watch import has_pidfds
from becket.peer.transport.guardian_process import GUARD, RELEASE

__all__ = ["GUARDIAN", "Guardian", "check_guarding", "find_guarding_problem"]

REAP_GRACE = 0.05  # seconds for a guardian that was killed; it is reaped later if it takes longer


def find_guarding_problem() -> str | None:
    """Returns why this program can have no guardian, None if it can."""
    if not has_pidfds() or not os.path.isdir("/proc/self"):
        return "this system has no pidfds or no procfs"
    if not sys.executable or getattr(sys, "frozen", False):
        return "this program is not a Python interpreter that could be started again"
    if not os.path.isfile(guardian_process.__file__):
        return "becket is not installed as files"
    return None


def check_guarding() -> None:
    """Raises NotSupported where this program can have no guardian."""
    problem = find_guarding_problem()
    if problem is not None:
        raise NotSupported("guarding a child process", problem)


class Guardian:
    """The guardian of this program. Its methods may be called from any thread."""

    def __init__(self) -> None:
        self._ended: list[subprocess.Popen[bytes]] = []
        self._begin()

    def _begin(self) -> None:
        self._lock = allocate_lock()
        self._holders = 0
        self._sessions: set[int] = set()
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe = -1

    def begin_again(self) -> None:
        """Starts over in a fork of this program: the process and the sessions are the parent's."""
        if self._process is not None:
            os.close(self._pipe)
            inherited.append(self._process)
        inherited.extend(self._ended)
        self._ended.clear()
        self._begin()

    @property
    def pid(self) -> int | None:
        """The pid of the process, None if there is none."""
        return None if self._process is None else self._process.pid

    @property
    def descriptor(self) -> int | None:
        """The descriptor of its pipe, None if there is none."""
        return None if self.pid is None else self._pipe

    def hold(self) -> None:
        """Keeps the process, once it is started, until `release`."""
        with self._lock:
            self._holders += 1

    def release(self) -> None:
        """Releases a `hold`."""
        with self._lock:
            self._holders -= 1
            self._end_if_unused()

    def watch(self, session: int) -> None:
        """Has this session killed when this program is gone.

        Raises:
            OSError: the process cannot be started.
        """
        with self._lock:
            self._sessions.add(session)
            try:
                if self._process is None:
                    self._start()
                elif not self._send(GUARD, session):
                    self._end()
                    self._start()  # the process was killed: the next one gets all sessions
            except BaseException:
                self._sessions.discard(session)
                raise

    def forget(self, session: int) -> None:
        """Removes a session that has ended, since its number may be reused."""
        with self._lock:
            if session in self._sessions:
                self._sessions.discard(session)
                self._send(RELEASE, session)
                self._end_if_unused()

    def reap(self) -> set[int]:
        """Reaps processes that were ended, and returns the pids of those that have not ended yet."""
        self._ended[:] = [process for process in self._ended if process.poll() is None]
        return {process.pid for process in self._ended}

    def _start(self) -> None:
        self.reap()
        read_end, self._pipe = os.pipe()
        try:
            os.set_blocking(self._pipe, False)
            self._send_all()
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", guardian_process.__file__, str(os.getpid())],
                stdin=read_end,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={},
                start_new_session=True,
            )
        except BaseException:
            os.close(self._pipe)
            raise
        finally:
            os.close(read_end)

    def _send_all(self) -> None:
        for session in self._sessions:
            self._send(GUARD, session)

    def _send(self, word: bytes, session: int) -> bool:
        """Returns whether the message was written: not so if the process was killed, or does not read any more."""
        try:
            os.write(self._pipe, b"%b%d\n" % (word, session))
        except OSError:
            return False
        return True

    def _end_if_unused(self) -> None:
        if self._process is not None and not self._sessions and not self._holders:
            self._end()

    def _end(self) -> None:
        process, self._process = self._process, None
        os.close(self._pipe)
        if process is None:
            return
        process.kill()
        try:
            process.wait(REAP_GRACE)
        except subprocess.TimeoutExpired:
            self._ended.append(process)


inherited: list[subprocess.Popen[bytes]] = []  # by a fork, which must neither wait for them nor warn of them
GUARDIAN = Guardian()
"""The guardian of this program: its sessions are those of a whole process, not of one host."""
os.register_at_fork(after_in_child=GUARDIAN.begin_again)
