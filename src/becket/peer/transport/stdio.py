"""Opens this process's stdin and stdout as a transport and redirects later prints to stderr.

The wire gets private copies of descriptors 0 and 1. Those numbers become the null device for reading and stderr for
writing: `print`, C code and grandchildren write there, and never reach the wire.
"""

from __future__ import annotations

import fcntl
import os
import stat
import sys

from becket.errors import LocalProtocolError
from becket.peer.transport.fd import FdTransport, is_pollable

__all__ = ["open_stdio_transport", "redirect_stdio"]

STDIN, STDOUT, STDERR = 0, 1, 2


def open_stdio_transport() -> FdTransport:
    """Returns a transport over this program's stdin and stdout."""
    read_fd, write_fd = redirect_stdio()
    if read_fd >= 0:
        read_fd = make_nonblocking(read_fd, os.O_RDONLY)
    return FdTransport(read_fd, make_nonblocking(write_fd, os.O_WRONLY))


def redirect_stdio() -> tuple[int, int]:
    """Moves stdin and stdout to private descriptors and returns them; -1 stands for a stdin that is closed.

    Raises:
        LocalProtocolError: stdout is closed: nothing can be sent.
    """
    # A descriptor that was closed when this program began is not ours: its number may be the event loop's by now.
    has_stdin, has_stdout, has_stderr = (
        stream is not None and is_open(fd)
        for fd, stream in ((STDIN, sys.__stdin__), (STDOUT, sys.__stdout__), (STDERR, sys.__stderr__))
    )
    if not has_stdout:
        raise LocalProtocolError("stdout is closed: start this program with a pipe there")
    read_fd = duplicate_fd(STDIN) if has_stdin else -1
    write_fd = duplicate_fd(STDOUT)
    opened = os.open(os.devnull, os.O_RDWR)
    null = duplicate_fd(opened)
    os.close(opened)
    for fd, is_ours in ((STDIN, has_stdin), (STDERR, False)):
        if is_ours or not is_open(fd):  # left free, the number would go to the next file that is opened
            os.dup2(null, fd)
    os.dup2(STDERR if has_stderr else null, STDOUT)
    os.close(null)
    try:
        sys.stdout.flush()  # not before: earlier prints are not for the wire either
        reconfigure = getattr(sys.stdout, "reconfigure", None)
        if reconfigure is not None:  # later prints are for a person who reads along
            reconfigure(line_buffering=True)
    except (AttributeError, OSError, ValueError):
        pass  # there is none, or stderr is not read
    return read_fd, write_fd


def duplicate_fd(fd: int) -> int:
    """Returns a copy of a descriptor above the standard numbers, of which one may just be free."""
    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, STDERR + 1)


def is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def make_nonblocking(fd: int, mode: int) -> int:
    """Returns a non-blocking descriptor of the same file, without changing the mode for its other holders.

    The mode belongs to the open file, not to the descriptor: a pipe or a terminal is opened anew for it. A socket
    cannot be, and the other holders of its end are copies of ours."""
    if not is_pollable(fd):
        return fd  # a file or the null device: it never blocks for long, and cannot be polled
    if not stat.S_ISSOCK(os.fstat(fd).st_mode):
        try:
            again = os.open(f"/proc/self/fd/{fd}", mode | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
        except OSError:
            pass  # no procfs, or another user's terminal
        else:
            os.close(fd)
            return again
    os.set_blocking(fd, False)
    return fd
