"""How the end of a process is learnt: from the system, by a descriptor that becomes readable when it ends.

Linux has pidfds, macOS has kqueue. Neither reaps the process: until that is done its pid, and so the group that is
signalled, cannot belong to anybody else.
"""

from __future__ import annotations

import os
import select
import signal
from signal import Signals
from typing import Any, Final, Protocol

from becket.errors import NotSupported

__all__ = ["Exit", "check_exits", "pidfd_send_signal", "watch_exit"]

SIGNAL_PROCESS_GROUP: Final = 4  # of pidfd_send_signal(2), since Linux 6.9: the group is named by the pidfd
NOTE_EXITSTATUS: Final = 0x04000000  # of kevent(2) on macOS: the status comes along, and Python has no name for it
STATUS_BITS: Final = 0xFFFF  # of what comes along

pidfd_send_signal: Any = getattr(signal, "pidfd_send_signal", None)  # mypy knows it on Linux alone
kernel: Any = select  # and kqueue nowhere else than on macOS


class Exit(Protocol):
    """The end of one process, that of a child of this program."""

    fd: int
    """Readable from the end of the process on."""

    def read(self) -> int | None:
        """Returns how it has ended: its exit code, or a signal as a negative number. None while it runs.

        Raises:
            ChildProcessError: something else in this program has reaped it.
        """
        ...

    def signal_group(self, number: Signals) -> None:
        """Sends a signal to the process and all of its group, if there is anybody left of them."""
        ...

    def is_unreaped(self) -> bool:
        """Returns whether the pid is still its own."""
        ...

    def close(self) -> None: ...


def check_exits() -> None:
    """Looks whether the system can tell of the end of a process.

    Raises:
        NotSupported: it cannot.
    """
    if not hasattr(os, "pidfd_open") and not hasattr(kernel, "kqueue"):
        raise NotSupported("starting a child process", "this system has neither pidfds nor kqueue to watch it by")


def watch_exit(pid: int) -> Exit:
    """Returns the end of a process that was started just now.

    Raises:
        OSError: there is no room for a descriptor.
    """
    return PidfdExit(pid) if hasattr(os, "pidfd_open") else KqueueExit(pid)


class PidfdExit:
    """On Linux."""

    __slots__ = ("_pid", "fd")

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self.fd = os.pidfd_open(pid)

    def read(self) -> int | None:
        status = os.waitid(os.P_PIDFD, self.fd, os.WEXITED | os.WNOWAIT | os.WNOHANG)
        if status is None:
            return None
        return status.si_status if status.si_code == os.CLD_EXITED else -status.si_status

    def signal_group(self, number: Signals) -> None:
        try:
            pidfd_send_signal(self.fd, number, None, SIGNAL_PROCESS_GROUP)
        except (ProcessLookupError, PermissionError):
            pass
        except OSError:  # an older kernel: until it is reaped the pid is its own, and with it the group
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


class KqueueExit:
    """On macOS. Something else in this program that reaps its children cannot be noticed there."""

    __slots__ = ("_pid", "_queue", "_status", "fd")

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._status: int | None = None
        self._queue = kernel.kqueue()
        self.fd: int = self._queue.fileno()
        end = kernel.kevent(pid, kernel.KQ_FILTER_PROC, kernel.KQ_EV_ADD, fflags=kernel.KQ_NOTE_EXIT | NOTE_EXITSTATUS)
        try:
            self._queue.control([end], 0)
        except ProcessLookupError:  # it has ended already, and tells no more: a timer makes the descriptor readable
            self._status = self._reap()
            now = kernel.kevent(0, kernel.KQ_FILTER_TIMER, kernel.KQ_EV_ADD, data=0)
            self._queue.control([now], 0)
        except BaseException:
            self._queue.close()
            raise

    def _reap(self) -> int:
        _, status = os.waitpid(self._pid, 0)
        self._pid = 0
        return os.waitstatus_to_exitcode(status)

    def read(self) -> int | None:
        if self._status is None and (events := self._queue.control(None, 1, 0)):
            self._status = os.waitstatus_to_exitcode(events[0].data & STATUS_BITS)
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
