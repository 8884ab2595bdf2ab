"""A reserve file that is released on a full disk, so that deletions can still be written."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["DiskReserve", "free_bytes"]

CHUNK = bytes(1 << 20)


class DiskReserve:
    """Reserves `size` bytes of disk space for a store; nothing if that is 0."""

    def __init__(self, store: Path, size: int) -> None:
        self._path = store.with_name(f"{store.name}.ballast")
        self._size = size

    def allocate(self) -> bool:
        """Reserves the space; returns whether the disk had enough."""
        if self._size == 0 or (self._path.exists() and self._path.stat().st_size == self._size):
            return True
        try:
            with open(self._path, "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
                for start in range(0, self._size, len(CHUNK)):
                    file.write(CHUNK[: self._size - start])
        except OSError:
            self.release()
            return False
        return True

    def reallocate(self) -> bool:
        """Reserves the space if the disk has twice as much: otherwise the next record would fill the disk again."""
        return free_bytes(self._path) >= 2 * self._size and self.allocate()

    def release(self) -> None:
        """Releases the space."""
        self._path.unlink(missing_ok=True)


def free_bytes(path: Path) -> int:
    """Returns the free space of the disk that holds this file."""
    system = os.statvfs(path.parent)
    return system.f_bavail * system.f_frsize
