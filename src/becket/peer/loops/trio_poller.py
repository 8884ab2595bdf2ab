"""Calls functions when descriptors are ready: one task and one epoll for all links of a run of trio.

With a task for each descriptor trio would schedule a task, and register the descriptor anew, for every message. trio
polls the epoll itself. A link without waiting tasks is also less work for the garbage collector.
"""

from __future__ import annotations

import select
import signal
import sys
from collections.abc import Callable
from contextvars import Context
from typing import TYPE_CHECKING

from becket.methods.error_mapping import log_internal_error

if TYPE_CHECKING:
    import trio

__all__ = ["TrioPoller", "find_poller"]

pollers: trio.lowlevel.RunVar[TrioPoller | None] | None = None  # trio is imported only where it runs


def find_poller() -> TrioPoller | None:
    """Returns the poller of this run of trio, created on first use; None where the system has no epoll."""
    if sys.platform != "linux":
        return None
    import trio

    global pollers
    if pollers is None:
        pollers = trio.lowlevel.RunVar("becket poller")
    poller = pollers.get(None)
    if poller is None or poller.is_ended:
        poller = TrioPoller()
        pollers.set(poller)
    return poller


class Watched:
    """The functions of one descriptor, and the contexts that they run in."""

    __slots__ = ("reader", "writer")

    def __init__(self) -> None:
        self.reader: tuple[Context, Callable[[], object]] | None = None
        self.writer: tuple[Context, Callable[[], object]] | None = None

    @property
    def events(self) -> int:
        return (select.EPOLLIN if self.reader else 0) | (select.EPOLLOUT if self.writer else 0)


class TrioPoller:
    """Watches descriptors until none is left; then it ends, and the next watch creates another."""

    def __init__(self) -> None:
        import trio

        self.is_ended = False
        self._trio = trio
        self._call = trio.lowlevel.disable_ki_protection(call)
        self._epoll = select.epoll()
        self._watched: dict[int, Watched] = {}
        self._scope = trio.CancelScope()
        trio.lowlevel.spawn_system_task(self._run, name="becket poller")

    def watch(self, fd: int, writes: bool, context: Context, function: Callable[[], object]) -> None:
        """Calls a function, which raises nothing, in this context whenever a descriptor can be read or written."""
        watched = self._watched.get(fd)
        is_new = watched is None
        if watched is None:
            watched = Watched()
        if writes:
            watched.writer = (context, function)
        else:
            watched.reader = (context, function)
        if is_new:
            self._epoll.register(fd, watched.events)
            self._watched[fd] = watched
        else:
            self._epoll.modify(fd, watched.events)

    def unwatch(self, fd: int, writes: bool) -> None:
        """Stops calling that function, also if its descriptor is ready already."""
        watched = self._watched.get(fd)
        if watched is None or self.is_ended:
            return
        if writes:
            watched.writer = None
        else:
            watched.reader = None
        if watched.events:
            self._epoll.modify(fd, watched.events)
            return
        del self._watched[fd]
        self._epoll.unregister(fd)
        if not self._watched:
            self.is_ended = True
            self._scope.cancel()

    async def _run(self) -> None:
        try:
            with self._scope:
                while True:
                    await self._trio.lowlevel.wait_readable(self._epoll.fileno())
                    self._call_ready()
        finally:
            self.is_ended = True
            self._epoll.close()

    def _call_ready(self) -> None:
        # Looked up first: a number that one function closes and another one opens again is another descriptor.
        ready = [(self._watched.get(fd), events) for fd, events in self._epoll.poll(0)]
        for watched, events in ready:
            if watched is not None and watched.reader is not None and events & ~select.EPOLLOUT:
                self._take_turn(*watched.reader)
            if watched is not None and watched.writer is not None and events & ~select.EPOLLIN:
                self._take_turn(*watched.writer)

    def _take_turn(self, context: Context, function: Callable[[], object]) -> None:
        try:
            context.run(self._call, function)
        except KeyboardInterrupt:
            signal.raise_signal(signal.SIGINT)  # no task of its own has it: trio hands it to the main task
        except Exception as error:  # it would end the whole program
            log_internal_error(error)


def call(function: Callable[[], object]) -> None:
    """Calls a function that a Ctrl-C may interrupt, other than the task itself."""
    function()
