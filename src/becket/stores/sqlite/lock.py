"""The lock file: one process opens a store at a time."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from becket.errors import NotSupported, StoreInUse, StoreUnavailable
from becket.stores.sqlite.disk_errors import explain

__all__ = ["StoreLock"]

DAMAGED = b"damaged"


class StoreLock:
    """Holds the lock of a store. `was_unclean`: the last owner did not close the store; `was_damaged`: it found damage.

    The lock file contains the owner's process id while the store is open, and is empty after a clean close."""

    def __init__(self, store: Path) -> None:
        try:
            import fcntl
        except ImportError:
            raise NotSupported("a store in a file", "this system has no flock") from None
        path = store.with_name(f"{store.name}.lock")
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            because = f"its folder cannot be written ({error.strerror})"
            raise StoreUnavailable(str(store), because, "a store needs a folder that this user may write") from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            owner = read_pid(self._file)
            os.close(self._file)
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                raise StoreInUse(str(store), owner if is_process_alive(owner) else None) from error
            raise StoreUnavailable(str(store), f"it cannot be locked ({error.strerror})") from error
        self.was_damaged = os.pread(self._file, 32, 0).strip() == DAMAGED
        self.was_unclean = self.was_damaged or read_pid(self._file) is not None
        os.ftruncate(self._file, 0)
        try:
            os.pwrite(self._file, b"%d\n" % os.getpid(), 0)
        except OSError as error:
            os.close(self._file)
            raise StoreUnavailable(str(store), *explain(error)) from error

    def release(self, *, in_order: bool, is_damaged: bool = False) -> None:
        """Releases the lock. Unless `in_order`, the next owner checks the integrity of the file."""
        if in_order or is_damaged:
            os.ftruncate(self._file, 0)
        if is_damaged:
            os.pwrite(self._file, DAMAGED, 0)
        os.close(self._file)


def read_pid(file: int) -> int | None:
    """Returns the process id in a lock file."""
    text = os.pread(file, 32, 0).strip()
    return int(text) if text.isdigit() else None


def is_process_alive(pid: int | None) -> bool:
    """Returns whether the process exists. A forked child inherits the lock and may outlive the process named in the
    file."""
    if pid is None:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # it exists and belongs to another user
    return True
