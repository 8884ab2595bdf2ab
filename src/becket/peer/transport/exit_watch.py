"""Watches for a process's exit through a descriptor (pidfd or kqueue) without reaping it.

Linux has pidfds, macOS has kqueue. Until the process is reaped, no other process can get its pid or its group.
"""

from __future__ import annotations

import errno
import os
import select
import signal
from signal import Signals
from typing import Any, Final, Protocol

from becket.errors import NotSupported

__all__ = ["ExitWatch", "check_exit_watch", "has_pidfds", "pidfd_send_signal", "watch_exit"]

SIGNAL_PROCESS_GROUP: Final = 4  # of pidfd_send_signal(2), since Linux 6.9: the group is named by the pidfd
NOTE_EXITSTATUS: Final = 0x04000000  # of kevent(2) on macOS: the event holds the status, and Python has no name for it
STATUS_MASK: Final = 0xFFFF  # of the event's data

pidfd_send_signal: Any = getattr(signal, "pidfd_send_signal", None)  # mypy knows it on Linux alone
select_module: Any = select  # and kqueue only on macOS


class ExitWatch(Protocol):
    """The exit of one child process."""

    fd: int
    """Readable once the process has ended."""

    def poll(self) -> int | None:
        """Returns its exit code, or a signal as a negative number. None while it runs.

        Raises:
            ChildProcessError: something else in this program has reaped it.
        """
        ...

    def signal_group(self, number: Signals) -> None:
        """Sends a signal to the process and all of its group, if any of them are left."""
        ...

    def is_unreaped(self) -> bool:
        """Returns whether the pid is still its own."""
        ...

    def close(self) -> None: ...


def check_exit_watch() -> None:
    """Checks that the system can report the end of a process.

    Raises:
        NotSupported: it cannot.
    """
    if not has_pidfds() and not hasattr(select_module, "kqueue"):
        because = "this system has neither pidfds nor kqueue to watch it by"
        hint = "becket needs Linux 5.4 or newer; a sandbox may block pidfds"
        raise NotSupported("starting a child process", f"{because} ({hint})")


def has_pidfds() -> bool:
    """Returns whether Python and the kernel have pidfds, and no sandbox blocks them."""
    if not hasattr(os, "pidfd_open"):
        return False
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError as error:
        return error.errno not in (errno.ENOSYS, errno.EPERM)  # any other error says that it has them
    return True


def watch_exit(pid: int) -> ExitWatch:
    """Returns the exit watch of a process that was just started.

    Raises:
        OSError: no descriptor is left.
    """
    return PidfdExitWatch(pid) if hasattr(os, "pidfd_open") else KqueueExitWatch(pid)


class PidfdExitWatch:
    """On Linux."""

    __slots__ = ("_pid", "fd")

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self.fd = os.pidfd_open(pid)

    def poll(self) -> int | None:
        status = os.waitid(os.P_PIDFD, self.fd, os.WEXITED | os.WNOWAIT | os.WNOHANG)
        if status is None:
            return None
        return status.si_status if status.si_code == os.CLD_EXITED else -status.si_status

    def signal_group(self, number: Signals) -> None:
        try:
            pidfd_send_signal(self.fd, number, None, SIGNAL_PROCESS_GROUP)
        except (ProcessLookupError, PermissionError):
            pass
        except OSError:  # an older kernel: until it is reaped the pid and the group are its own
            if self.is_unreaped():
                signal_group(self._pid, number)

    def is_unreaped(self) -> bool:
        try:
            pidfd_send_signal(self.fd, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass
        return True

    def close(self) -> None:
        os.close(self.fd)


class KqueueExitWatch:
    """On macOS. A process that something else in this program has reaped goes unnoticed there."""

    __slots__ = ("_pid", "_queue", "_status", "fd")

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._status: int | None = None
        self._queue = select_module.kqueue()
        self.fd: int = self._queue.fileno()
        end = select_module.kevent(
            pid,
            select_module.KQ_FILTER_PROC,
            select_module.KQ_EV_ADD,
            fflags=select_module.KQ_NOTE_EXIT | NOTE_EXITSTATUS,
        )
        try:
            self._queue.control([end], 0)
        except ProcessLookupError:  # it has ended already, and sends no event: a timer makes the descriptor readable
            self._status = self._reap()
            now = select_module.kevent(0, select_module.KQ_FILTER_TIMER, select_module.KQ_EV_ADD, data=0)
            self._queue.control([now], 0)
        except BaseException:
            self._queue.close()
            raise

    def _reap(self) -> int:
        _, status = os.waitpid(self._pid, 0)
        self._pid = 0
        return os.waitstatus_to_exitcode(status)

    def poll(self) -> int | None:
        if self._status is None and (events := self._queue.control(None, 1, 0)):
            self._status = os.waitstatus_to_exitcode(events[0].data & STATUS_MASK)
        return self._status

    def signal_group(self, number: Signals) -> None:
        if self._pid:
            signal_group(self._pid, number)

    def is_unreaped(self) -> bool:
        return bool(self._pid)

    def close(self) -> None:
        self._queue.close()


def signal_group(leader: int, number: Signals) -> None:
    try:
        os.killpg(leader, number)
    except (ProcessLookupError, PermissionError):
        pass
