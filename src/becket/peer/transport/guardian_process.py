"""Ends whole sessions: that of one child, and those of all children whose host is gone.

Run as a program it is the guardian of a host: it reads the sessions of the host's children from its stdin, and kills
them when the host has ended. It must work alone, so it imports nothing of becket. Processes are named by pidfds, since
a number may be reused. Starting and feeding the guardian is done in `guardian`.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # known to type checkers; importing `typing` would double the start time of the guardian
if TYPE_CHECKING:
    import signal as kernel
    from collections.abc import Callable, Container, Mapping
    from typing import Any
else:
    import _signal as kernel  # the enums of `signal` add a millisecond to the start of an extension

__all__ = ["GRACE", "GUARD", "KILL_ROUNDS", "RELEASE", "kill_member", "kill_session", "session_members"]

GUARD, RELEASE = b"+", b"-"  # before the number of a session, each on a line
GRACE = 1.5  # seconds from the end of the host to SIGKILL: all are to be gone after three, also on a loaded machine
KILL_ROUNDS = 16  # rounds of looking for members of a session that fork while they are being killed
READ_SIZE = 64 * 1024
STDIN = 0
IGNORED = ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGUSR1", "SIGUSR2", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGALRM")

pidfd_send_signal: Any = getattr(kernel, "pidfd_send_signal", None)  # Linux alone has it


def session_members(leader: int) -> list[int]:
    """Returns the processes of this session, in any group; empty where the system has no procfs."""
    return [pid for pid, _ in members_of((leader,)) if pid != leader]


def members_of(sessions: Container[int]) -> list[tuple[int, int]]:
    """Returns each process of these sessions with its session."""
    members: list[tuple[int, int]] = []
    try:
        entries = os.listdir("/proc")
    except OSError:
        return members
    for entry in entries:
        if entry.isdigit():
            try:
                session = os.getsid(int(entry))
            except (ProcessLookupError, PermissionError):
                continue
            if session in sessions:
                members.append((int(entry), session))
    return members


def kill_member(pid: int, session: int) -> None:
    """Kills a process if it is still in this session; its pid may have been reused since it was read."""
    try:
        pidfd = os.pidfd_open(pid)
    except OSError:
        return  # it has ended; or no descriptors are left, and the next round finds it again
    try:
        if os.getsid(pid) == session:
            pidfd_send_signal(pidfd, kernel.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
    finally:
        os.close(pidfd)


def kill_session(leader: int, is_ours: Callable[[], bool]) -> None:
    """Kills all members of a session but its leader, and those that they start meanwhile."""
    seen: set[int] = set()
    for _ in range(KILL_ROUNDS):
        members = set(session_members(leader)) - seen if is_ours() else set[int]()
        if not members:
            return
        seen |= members
        for pid in members:
            kill_member(pid, leader)


# -- the guardian


def guard(host: int) -> None:
    """Reads sessions until the host, the process with this pid, ends; then ends those that are left."""
    for name in IGNORED:
        kernel.signal(getattr(kernel, name), kernel.SIG_IGN)
    raise_descriptor_limit()
    leaders = read_sessions(watch_host(host))
    if leaders:
        end_sessions(leaders)


def raise_descriptor_limit() -> None:
    """Raises the limit of descriptors for one pidfd per child of the host."""
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def watch_host(host: int) -> int:
    """Returns a pidfd of the host, the parent of this process; -1 if it is gone already."""
    try:
        pidfd = os.pidfd_open(host)
    except OSError:
        return -1
    return pidfd if os.getppid() == host else -1


def read_sessions(host: int) -> dict[int, int]:
    """Returns the sessions that the host has left, each with a pidfd of its leader, or -1 if that has ended.

    The end of stdin means the host's end too, unless a fork of the host holds the pipe."""
    import select

    poll = select.poll()
    poll.register(STDIN, select.POLLIN)
    if host >= 0:
        poll.register(host, select.POLLIN)
    leaders: dict[int, int] = {}
    rest = b""
    os.set_blocking(STDIN, False)
    is_over = host < 0
    while True:
        is_over = is_over or any(fd == host for fd, _ in poll.poll())
        try:
            data = os.read(STDIN, READ_SIZE)
        except BlockingIOError:
            if is_over:
                return leaders
            continue
        if not data:
            return leaders
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            take_line(line, leaders)


def take_line(line: bytes, leaders: dict[int, int]) -> None:
    session = int(line[1:])
    pidfd = leaders.pop(session, -1)
    if pidfd >= 0:
        os.close(pidfd)
    if line.startswith(GUARD):
        try:
            leaders[session] = os.pidfd_open(session)
        except OSError:
            leaders[session] = -1


def end_sessions(leaders: dict[int, int]) -> None:
    """Waits a moment for the leaders to end, then kills the rest of each session."""
    import select
    import time

    until = time.monotonic() + GRACE
    running = {pidfd: session for session, pidfd in leaders.items() if pidfd >= 0}
    poll = select.poll()
    for pidfd in running:
        poll.register(pidfd, select.POLLIN)
    kill_sessions({session: pidfd for session, pidfd in leaders.items() if pidfd < 0})
    while running and (remaining := until - time.monotonic()) > 0:
        ended = [pidfd for pidfd, _ in poll.poll(remaining * 1000)]
        for pidfd in ended:
            poll.unregister(pidfd)
        kill_sessions({running.pop(pidfd): pidfd for pidfd in ended})
    kill_sessions({session: pidfd for pidfd, session in running.items()})


def kill_sessions(leaders: Mapping[int, int]) -> None:
    seen: set[int] = set()
    for _ in range(KILL_ROUNDS):
        ours = {session for session, pidfd in leaders.items() if not is_reused(session, pidfd)}
        members = [(pid, session) for pid, session in members_of(ours) if pid not in seen] if ours else []
        if not members:
            return
        for pid, session in members:
            seen.add(pid)
            kill_member(pid, session)


def is_reused(session: int, pidfd: int) -> bool:
    """Returns whether the number has been reused for another process.

    It cannot be while its leader is not reaped or the session has any member: the kernel then keeps the number."""
    if pidfd >= 0:
        try:
            pidfd_send_signal(pidfd, 0)
            return False
        except PermissionError:
            return False
        except ProcessLookupError:
            pass
    try:
        os.getsid(session)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


if __name__ == "__main__":
    guard(int(sys.argv[1]))
