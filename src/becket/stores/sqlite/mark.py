"""The mark: how far a store has come, in a small file beside it. Written after each commit is on the disk, and before
anything of it is acknowledged.

SQLite drops the end of its log without a word where that is damaged. A mark that is ahead of the store tells so.
"""

from __future__ import annotations

import os
from pathlib import Path
from zlib import crc32

from msgspec import Struct

__all__ = ["Mark", "Reached", "mark_path", "read_mark"]

FIELD = 20  # digits of a number


class Reached(Struct, frozen=True):
    """How far a store has come: its last commit, its last id and its last revision."""

    commits: int = 0
    last_id: int = 0
    revision: int = 0


class Mark:
    """Writes the mark of a store, which one program owns."""

    def __init__(self, store: Path) -> None:
        self._file = os.open(mark_path(store), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def write(self, reached: Reached) -> None:
        """Writes how far the store has come; whoever is killed later has written it.

        It is not synced: what a power cut takes of it makes it only less ahead."""
        os.pwrite(self._file, encode_mark(reached), 0)

    def close(self) -> None:
        """Lets go of the file."""
        os.close(self._file)


def mark_path(store: Path) -> Path:
    """Returns where the mark of a store is."""
    return store.with_name(f"{store.name}.mark")


def read_mark(store: Path) -> Reached | None:
    """Returns what the mark of a store says; None where there is none.

    Raises:
        ValueError: it is damaged.
    """
    try:
        data = mark_path(store).read_bytes()
    except FileNotFoundError:
        return None
    if not data:  # made, and not written before the power failed
        return None
    try:
        reached = Reached(*map(int, data.split()[:3]))
    except (ValueError, TypeError):
        reached = Reached()
    if data != encode_mark(reached):
        raise ValueError("its checksum does not fit")
    return reached


def encode_mark(reached: Reached) -> bytes:
    text = b"".join(b"%0*d " % (FIELD, number) for number in (reached.commits, reached.last_id, reached.revision))
    return b"%s%08x\n" % (text, crc32(text))
