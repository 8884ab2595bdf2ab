"""Working copies: writable copies of approved files, one for each start of a program, discarded at the next start.

Each extension has numbered slots; the first is free unless a reload has two of its processes at once, or another host
uses the same data folder. A slot is locked as long as its process runs. The system releases the lock of a host that
dies, so that the next start discards what a crash leaves. Discarding is a rename: removing folders takes some file
systems many times as long as creating them. `consent` decides which files are approved.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import Final

from becket._loggers import host_logger
from becket.conversion.files.reader import writing
from becket.host.starting.snapshot import FolderSnapshot, clone_snapshot, remove_tree
from becket.limits import DEFAULT_LIMITS, Limits

__all__ = ["WorkingCopy", "open_working_copy", "remove_discarded", "remove_working_copies"]

DISCARDED: Final = ".discarded-"  # begins the names of folders that are to be removed


class WorkingCopy:
    """A folder that one process may write to, locked until `release`."""

    def __init__(self, folder: str, slot: Slot) -> None:
        self.folder = folder
        self._slot = slot

    def release(self) -> None:
        """Lets the next start discard it. May be called twice."""
        self._slot.unlock()


def open_working_copy(
    working: str | os.PathLike[str],
    extension: str,
    approved: FolderSnapshot,
    *,
    name: str = "",
    limits: Limits = DEFAULT_LIMITS,
) -> WorkingCopy | None:
    """Returns a fresh copy of approved files in a folder called `name`, by default as the extension.

    What earlier starts have written is discarded, except for processes that may still run: call `remove_discarded` when
    there is time. Returns None if the files to copy are not the approved ones any more.

    Raises:
        BadFile: the copy cannot be written.
    """
    slots = os.path.join(working, extension)
    with writing(slots):
        slot = lock_free_slot(slots)
    try:
        folder = os.path.join(slot.folder, name or extension)
        if clone_snapshot(approved, folder, limits=limits):
            return WorkingCopy(folder, slot)
    except BaseException:
        slot.unlock()
        raise
    slot.unlock()
    return None


def remove_discarded(working: str | os.PathLike[str], extension: str) -> None:
    """Removes what was discarded of an extension. If a process that still runs writes there, that is logged and tried
    again the next time.

    Raises:
        BadFile: the folder cannot be read.
    """
    slots = os.path.join(working, extension)
    with writing(slots):
        for number in list_names(slots):
            for name in list_names(os.path.join(slots, number)):
                if name.startswith(DISCARDED):
                    remove_logged(os.path.join(slots, number, name))


def remove_working_copies(working: str | os.PathLike[str], keep: Collection[str]) -> None:
    """Removes the working copies of all extensions but these, except for processes that may still run.

    Raises:
        BadFile: their folder cannot be changed.
    """
    with writing(working):
        for extension in set(list_names(working)).difference(keep):
            slots = os.path.join(working, extension)
            for number in list_names(slots):
                discard_slot(os.path.join(slots, number), slots)
            for name in list_names(slots):
                if name.startswith(DISCARDED):
                    remove_logged(os.path.join(slots, name))
            remove_empty(slots)


# -- slots


class Slot:
    """A folder that this program has locked."""

    def __init__(self, folder: str, lock: int) -> None:
        self.folder = folder
        self._lock: int | None = lock

    def unlock(self) -> None:
        lock, self._lock = self._lock, None
        if lock is not None:
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_UN)  # a fork of this program may have the descriptor too
            os.close(lock)


def lock_free_slot(slots: str) -> Slot:
    """Returns the first free slot, emptied. The other free ones are removed."""
    number, slot = 1, None
    while slot is None:
        slot = lock_slot(os.path.join(slots, str(number)))
        number += 1
    try:
        discard(slot.folder, slot.folder)
        for other in list_names(slots):
            if os.path.join(slots, other) != slot.folder:
                discard_slot(os.path.join(slots, other), slot.folder)
    except BaseException:
        slot.unlock()
        raise
    return slot


def lock_slot(folder: str) -> Slot | None:
    """Returns a slot, created if needed; None if another process has it."""
    import fcntl  # not on Windows

    while True:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        try:
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            continue  # another host has removed it meanwhile
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if is_at(lock, folder):
                return Slot(folder, lock)
        except BlockingIOError:
            os.close(lock)
            return None
        except BaseException:
            os.close(lock)
            raise
        os.close(lock)  # of a folder that was removed meanwhile


def is_at(descriptor: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path, follow_symlinks=False))
    except FileNotFoundError:
        return False


def discard_slot(folder: str, to: str) -> None:
    """Removes a slot, unless a process has it; its content is discarded."""
    slot = lock_slot(folder)
    if slot is not None:
        try:
            discard(folder, to)
            remove_empty(folder)
        finally:
            slot.unlock()


def discard(folder: str, to: str) -> None:
    """Moves the content of a folder to another, or renames it there, for `remove_discarded`."""
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if name.startswith(DISCARDED) and folder == to:
            continue
        if folder != to and not os.path.islink(path):
            os.chmod(path, 0o700)  # else it cannot be moved
        os.rename(path, os.path.join(to, f"{DISCARDED}{os.urandom(8).hex()}"))


def remove_logged(path: str) -> None:
    try:
        remove_tree(path)
    except FileNotFoundError:
        pass  # another host removes it too
    except OSError as error:
        host_logger().warning("%s cannot be removed, remove it by hand: %s", path, error)


def remove_empty(folder: str) -> None:
    try:
        os.rmdir(folder)
    except OSError:
        pass  # it is not empty


def list_names(folder: str | os.PathLike[str]) -> list[str]:
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []
