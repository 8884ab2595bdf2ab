"""The mark: a small file beside the store with its last commit, id and revision.

It is written after each commit is on the disk and before the commit is acknowledged. SQLite silently drops the end
of a damaged log; a mark ahead of the store reveals that.
"""

from __future__ import annotations

import os
from pathlib import Path
from zlib import crc32

from msgspec import Struct

__all__ = ["Mark", "Reached", "mark_path", "read_mark"]

FIELD = 20  # digits of each number


class Reached(Struct, frozen=True):
    """The progress of a store: its last commit, last id and last revision."""

    commits: int = 0
    last_id: int = 0
    revision: int = 0


class Mark:
    """Writes the mark of a store."""

    def __init__(self, store: Path) -> None:
        self._file = os.open(mark_path(store), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def write(self, reached: Reached) -> None:
        """Writes the progress of the store; it survives if the process is killed.

        It is not synced: after a power cut the mark may only be less ahead."""
        os.pwrite(self._file, encode_mark(reached), 0)

    def close(self) -> None:
        """Closes the file."""
        os.close(self._file)


def mark_path(store: Path) -> Path:
    """Returns the path of a store's mark."""
    return store.with_name(f"{store.name}.mark")


def read_mark(store: Path) -> Reached | None:
    """Returns the content of a store's mark; None if there is no mark.

    Raises:
        ValueError: the mark is damaged.
    """
    try:
        data = mark_path(store).read_bytes()
    except FileNotFoundError:
        return None
    if not data:  # created, and not written before the power failed
        return None
    try:
        reached = Reached(*map(int, data.split()[:3]))
    except (ValueError, TypeError):
        reached = Reached()
    if data != encode_mark(reached):
        raise ValueError("its checksum does not match")
    return reached


def encode_mark(reached: Reached) -> bytes:
    text = b"".join(b"%0*d " % (FIELD, number) for number in (reached.commits, reached.last_id, reached.revision))
    return b"%s%08x\n" % (text, crc32(text))
