"""Detects leaked descriptors, threads, processes and tasks.

An inventory is taken before and after; what is new after a grace period is a leak. Nothing is closed or killed here.
Processes need procfs; elsewhere only descriptors, threads and tasks are checked.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import os
import sys
import threading
import time
from collections.abc import AsyncGenerator, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import anyio
from msgspec import Struct

from becket.peer.transport.child_process import abandoned_processes, live_children
from becket.peer.transport.guardian import GUARDIAN

__all__ = ["Inventory", "adopt_orphans", "check_leaks", "check_task_leaks", "take_inventory"]

GRACE = 5.0  # seconds for a worker thread or a killed process to end
PAUSE = 0.005
TURNS = 50  # loop iterations for pending callbacks
TRIO_CACHE = "Trio thread"  # idle workers stay for ten seconds, by design
PR_SET_CHILD_SUBREAPER = 36  # prctl(2)


class Inventory(Struct, frozen=True):
    """What this program holds at one moment, each with a short description."""

    descriptors: dict[int, str]
    threads: dict[int, str]
    processes: dict[int, str]

    def new_since(self, before: Inventory) -> list[str]:
        """Returns a line for each item that was not there before."""
        return [
            *(f"descriptor {key}: {name}" for key, name in find_new(self.descriptors, before.descriptors)),
            *(f"thread {key}: {name}" for key, name in find_new(self.threads, before.threads)),
            *(f"process {key}: {name}" for key, name in find_new(self.processes, before.processes)),
        ]


def find_new(now: dict[int, str], before: dict[int, str]) -> list[tuple[int, str]]:
    # A number that now has another description is new. A process keeps its number until it is reaped, and may change
    # its name; a zombie that was a process before is not a new leak.
    return [(key, name) for key, name in sorted(now.items()) if key not in before or is_different(before[key], name)]


def is_different(before: str, now: str) -> bool:
    return now != before and now.startswith(("pipe:", "socket:", "anon_inode:", "/"))


def take_inventory() -> Inventory:
    """Returns what this program holds now, without the guardian of its children."""
    guardian = (GUARDIAN.pid, GUARDIAN.descriptor)  # if it exists, a host or a guarded child uses it
    return Inventory(
        descriptors={fd: name for fd, name in open_descriptors().items() if fd != guardian[1]},
        threads={
            thread.ident or 0: thread.name for thread in threading.enumerate() if not thread.name.startswith(TRIO_CACHE)
        },
        processes={pid: name for pid, name in child_processes().items() if pid != guardian[0]},
    )


@contextmanager
def check_leaks(*, grace: float = GRACE) -> Generator[None, None, None]:
    """Checks that its block leaves nothing behind in this program, after `grace` seconds.

    Raises:
        AssertionError: with a line for each leak.
    """
    before = take_inventory()
    yield
    left = take_inventory().new_since(before)
    until = time.monotonic() + grace
    while left and time.monotonic() < until:
        gc.collect()
        reap_adopted()
        time.sleep(PAUSE)
        left = take_inventory().new_since(before)
    if left:
        raise AssertionError("left behind:\n  " + "\n  ".join(left))


@asynccontextmanager
async def check_task_leaks(*, grace: float = GRACE) -> AsyncGenerator[None, None]:
    """Checks that its block leaves no task running on this asyncio or trio loop, system tasks included.

    Raises:
        AssertionError: with a line for each task.
    """
    before = running_tasks()
    yield
    for _ in range(TURNS):
        if not running_tasks() - before:
            return
        await anyio.lowlevel.checkpoint()
    with anyio.move_on_after(grace):
        while running_tasks() - before:  # noqa: ASYNC110 - there is no event for the end of any task
            await anyio.sleep(PAUSE)
    if left := running_tasks() - before:
        raise AssertionError("tasks left behind:\n  " + "\n  ".join(sorted(map(repr, left))))


def running_tasks() -> set[Any]:
    """Returns the tasks of the running loop, without the current one."""
    if "trio" in sys.modules:
        import trio

        if trio.lowlevel.in_trio_run():
            return set(tasks_below(trio.lowlevel.current_root_task())) - {trio.lowlevel.current_task()}
    return set(asyncio.all_tasks()) - {asyncio.current_task()}


def tasks_below(task: Any) -> Iterator[Any]:
    if task is not None:
        yield task
        for nursery in task.child_nurseries:
            for child in nursery.child_tasks:
                yield from tasks_below(child)


# -- state of this process


def open_descriptors() -> dict[int, str]:
    folder = "/proc/self/fd" if os.path.isdir("/proc/self/fd") else "/dev/fd"
    found: dict[int, str] = {}
    for entry in os.listdir(folder):
        try:
            found[int(entry)] = os.readlink(f"{folder}/{entry}") if folder.startswith("/proc") else entry
        except OSError:
            continue  # the descriptor by which the folder itself was read
    return found


def child_processes() -> dict[int, str]:
    found: dict[int, str] = {}
    for pid in child_pids():
        try:
            name, state = process_status(pid)
        except (OSError, ValueError):
            continue
        found[pid] = f"{name}, a zombie" if state == "Z" else name
    return found


def child_pids() -> list[int]:
    try:
        threads = os.listdir("/proc/self/task")
    except OSError:
        return []
    pids: list[int] = []
    for thread in threads:
        try:
            with open(f"/proc/self/task/{thread}/children", encoding="ascii") as file:
                pids += [int(pid) for pid in file.read().split()]
        except OSError:
            continue
    return pids


def process_status(pid: int) -> tuple[str, str]:
    """Returns the name and the state of a process."""
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        text = file.read()
    name, _, rest = text.partition("(")[2].rpartition(")")
    return name, rest.split()[0]


def adopt_orphans() -> bool:
    """Makes this program the parent of orphaned descendants, so that they are found as leaks.

    Affects the whole program; returns whether the system supports it."""
    if sys.platform != "linux":
        return False
    adopted: int = ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    return adopted == 0


def reap_adopted() -> None:
    """Reaps adopted zombies, as init would; those that becket started are left alone."""
    own = {child.pid for child in live_children} | {popen.pid for popen in abandoned_processes} | GUARDIAN.reap()
    own.add(GUARDIAN.pid or 0)
    for pid in child_pids():
        try:
            _, state = process_status(pid)
            if state == "Z" and pid not in own:
                os.waitpid(pid, os.WNOHANG)
        except (OSError, ValueError):
            continue
