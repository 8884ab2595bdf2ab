"""Ends this program and its session when its host is gone and a handler does not return.

A thread waits for the end of stdin and of the host: the parent process, or the reader of our stderr. No parent-death
signal is used: it is bound to the thread that started us, which may end before its process. A function that holds the
interpreter's lock stops this thread too: for that case a host has its guardian.
"""

from __future__ import annotations

import atexit
import os
from typing import TYPE_CHECKING, Final

from becket._threads import start_daemon_thread
from becket.peer.transport.guardian_process import GRACE, kill_session, session_members

if TYPE_CHECKING:
    import select
    from collections.abc import Callable
    from typing import NoReturn

    from becket.peer.link import Link

__all__ = ["EXIT_STOP_TIMEOUT", "end_program", "observe_link", "watch_host"]

EXIT_STOP_TIMEOUT: Final = 4  # exit code: the end took too long
STDERR: Final = 2
ORPHANED: Final = 0.2  # seconds from the end of stdin to the end of a killed host
LOOKS: Final = (0, 0.01, 0.02, 0.03)  # pauses between checks of a blocking runtime


def watch_host(
    stdin: int,
    observe: Callable[[], Callable[[], bool]],
    *,
    on_host_gone: Callable[[], object] | None = None,
) -> None:
    """Watches the host in a thread of its own.

    `observe` is called when stdin or the host has ended; the function it returns is called `GRACE` seconds later and
    reports whether this program is stuck. `on_host_gone` begins the end of the program, which must then be over
    within `GRACE` seconds after the end of the host."""
    host = open_host()
    atexit.register(end_orphaned_session, host)

    def watch() -> None:
        import select
        from time import sleep

        poll = select.poll()
        if stdin >= 0:
            poll.register(stdin, getattr(select, "POLLRDHUP", 0))  # poll reports the end of a pipe in any case
        if host >= 0:
            poll.register(host, select.POLLIN)
        if [fd for fd, _ in poll.poll()] == [stdin]:
            poll.unregister(stdin)
            outwait_handlers(poll, observe)
        is_stuck = observe()
        if on_host_gone is not None:
            on_host_gone()
        sleep(GRACE)
        if on_host_gone is not None or is_stuck():
            end_program(f"the host is gone, and this program did not end within {GRACE:g} s: killed")

    start_daemon_thread(watch)


def outwait_handlers(poll: select.poll, observe: Callable[[], Callable[[], bool]]) -> None:
    """Ends this program if a handler does not return after the end of stdin; returns when the host is gone.

    Requests that came before the end of stdin may take longer in all."""
    poll.register(STDERR, 0)  # a host that reads neither of the two pipes is gone
    is_stuck = observe()
    while not poll.poll(GRACE * 1000):
        if is_stuck():
            end_program(f"stdin has ended, and a handler did not return within {GRACE:g} s: killed")
        is_stuck = observe()


def observe_link(link: Link) -> Callable[[], bool]:
    """Returns a function that reports later whether the link's loop has not run meanwhile, or a handler of now still
    runs."""
    before = link.running()
    if link.loop.is_reentrant:  # no loop runs by itself there; between two polls it looks as if a handler ran
        return lambda: all(runs_after(link, before, pause) for pause in LOOKS)
    turned: list[bool] = []
    try:
        link.loop.call_from_thread(lambda: turned.append(True))
    except RuntimeError:
        turned.append(True)  # it has ended
    return lambda: not turned or runs_after(link, before, 0)


def runs_after(link: Link, before: list[object], pause: float) -> bool:
    from time import sleep

    sleep(pause)
    return any(one is other for one in link.running() for other in before)


def end_program(because: str) -> NoReturn:
    """Ends this process at once, and its session if it leads one."""
    try:
        os.write(STDERR, f"{because}\n".encode())
    except OSError:
        pass  # stderr is closed
    end_session()
    os._exit(EXIT_STOP_TIMEOUT)


def end_orphaned_session(host: int) -> None:
    """Ends the processes that this program has started, if no host is left to do it.

    A host that is being killed closes its pipes a little before it is gone: that is waited for."""
    if is_leader() and session_members(os.getpid()):
        import select

        poll = select.poll()
        poll.register(STDERR, 0)  # which the host reads
        if host >= 0:
            poll.register(host, select.POLLIN)
        if any(events & (select.POLLIN | select.POLLERR) for _, events in poll.poll(ORPHANED * 1000)):
            end_session()


def end_session() -> None:
    if is_leader():
        kill_session(os.getpid(), lambda: True)


def is_leader() -> bool:
    """Returns whether the session is this program's own, and not a terminal's."""
    return os.getsid(0) == os.getpid()


def open_host() -> int:
    """Returns a pidfd of the parent process, -1 if it is gone or cannot be watched."""
    parent = os.getppid()
    if parent <= 1 or not hasattr(os, "pidfd_open"):
        return -1
    try:
        pidfd = os.pidfd_open(parent)
    except OSError:
        return -1
    if os.getppid() == parent:
        return pidfd
    os.close(pidfd)
    return -1
