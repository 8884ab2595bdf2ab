"""`SqliteStore`: memory and configuration of all extensions in one file; what it acknowledged survives a power cut."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any, Self, TypeVar

from becket.contract.config import (
    ConfigChanged,
    ConfigSaved,
    ConfigSet,
    ConfigValue,
    check_config_set,
    parse_config_key,
)
from becket.contract.memory import DEFAULT_QUERY_LIMIT, Append, Appended, Query, Record, Records
from becket.errors import LocalProtocolError, Meaning, StoreError, StoreUnavailable
from becket.limits import DEFAULT_LIMITS, Limits
from becket.stores.matching import check_namespace, parse_query, parse_search
from becket.stores.shares import parse_append
from becket.stores.sqlite.ballast import Ballast
from becket.stores.sqlite.file import HIGHEST_ID, check_sound, connect, create, is_damage, is_ours, set_aside
from becket.stores.sqlite.ledger import ConfigChange, Forgetting
from becket.stores.sqlite.owner import Ownership
from becket.stores.sqlite.reader import Readers
from becket.stores.sqlite.text_index import can_index
from becket.stores.sqlite.writer import Tidying, Writer, log_bytes, note
from becket.stores.store import Clock, Done, Snapshot, now_ms
from becket.stores.watchers import Watchers

__all__ = ["SqliteStore"]

BALLAST = 8 << 20  # bytes: room to remove some ten thousand records

T = TypeVar("T")


class SqliteStore:
    """A store in the file at `path`, which this program owns until it closes it; the semantics are those of `Store`.

    What was acknowledged is on the disk. A file that turns out to be damaged is given another name, which `set_aside`
    tells, and an empty one is begun. Beside the file there are `.lock`, `.ballast` (bytes that are given up when the
    disk is full; 0 for none) and, while it is open, two of SQLite's own.

    `index=False` does without the index of texts: queries find the same, more slowly. So it is too where SQLite has no
    trigrams. With `read_only` another program may own it, and everything that writes is refused.

    Raises:
        StoreInUse: another program has it open.
        StoreUnavailable: it cannot be opened, and why.
    """

    def __init__(
        self,
        path: Path | str,
        limits: Limits = DEFAULT_LIMITS,
        clock: Clock = now_ms,
        *,
        index: bool = True,
        ballast: int = BALLAST,
        read_only: bool = False,
    ) -> None:
        self.path = Path(path)
        self.set_aside: Path | None = None
        self._limits = limits
        self._clock = clock
        self._ballast = ballast
        self._has_index = index and can_index()
        self._watchers = Watchers(limits.call_depth)
        self._closing = Lock()
        self._is_closed = False
        self._is_damaged = False
        self._owner: Ownership | None = None
        self._writer: Writer | None = None
        if not read_only:
            self._owner, self._writer = self._open()
        elif not is_ours(self.path, for_reading=True):
            raise StoreUnavailable(str(self.path), "there is no store")
        self._readers = Readers(self.path, has_index=self._has_index)

    # -- opening

    def _open(self) -> tuple[Ownership, Writer]:
        if not self.path.parent.is_dir():
            raise StoreUnavailable(str(self.path), "its folder does not exist", "make the folder first")
        owner = Ownership(self.path)
        was_left = owner.was_left or log_bytes(self.path) > 0
        try:
            return owner, self._open_file(was_left)
        except BaseException as error:
            owner.release(in_order=not was_left)
            if isinstance(error, sqlite3.Error | OSError):
                raise StoreUnavailable(str(self.path), f"it cannot be opened ({error})") from error
            raise

    def _open_file(self, was_left: bool) -> Writer:
        if not is_ours(self.path):
            create(self.path)
        try:
            if was_left:
                with closing(connect(self.path)) as connection:
                    check_sound(connection)
            return self._start_writer()
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            self.set_aside = set_aside(self.path)
            note(f"{self.path} is damaged; it is now {self.set_aside}, and the store begins anew", error)
        create(self.path)
        return self._start_writer()

    def _start_writer(self) -> Writer:
        ballast = Ballast(self.path, self._ballast)
        return Writer(self.path, self._limits, self._clock, ballast, has_index=self._has_index)

    # -- memory

    def append(self, append: Append) -> Appended:
        answer: Appended = self._write().keep(parse_append(append, self._limits))
        return answer

    def append_nowait(self, append: Append, done: Done) -> None:
        self._write().submit(parse_append(append, self._limits), done)

    def query(self, query: Query, *, timeout: float | None = None) -> list[Record]:
        return self._read(self._readers.query, parse_query(query, self._limits), seconds=self._seconds(timeout))

    def query_page(self, query: Query, most_bytes: int) -> Records:
        return self._read(self._readers.query_page, parse_query(query, self._limits), most_bytes)

    def search(
        self, namespace: str, text: str, *, limit: int = DEFAULT_QUERY_LIMIT, timeout: float | None = None
    ) -> list[Record]:
        wanted = parse_search(namespace, text, self._limits)
        if not wanted.words:
            return []
        limit = max(0, min(limit, self._limits.memory_page))
        return self._read(self._readers.search, wanted, limit, seconds=self._seconds(timeout))

    def _seconds(self, timeout: float | None) -> float:
        most = self._limits.query_seconds
        return most if timeout is None else min(timeout, most)

    def forget(self, namespace: str, *, up_to: int | None = None) -> int:
        check_namespace(namespace)
        last = HIGHEST_ID if up_to is None else min(max(up_to, 0), HIGHEST_ID)
        count: int = self._write().keep(Forgetting(namespace, last))
        return count

    # -- configuration

    def get_config(self, extension: str, key: str) -> ConfigValue:
        return self._read(self._readers.get_config, extension, parse_config_key(key, self._limits))

    def set_config(self, extension: str, change: ConfigSet) -> ConfigSaved:
        check_config_set(change, self._limits)
        key = parse_config_key(change.key, self._limits)
        return self._change(ConfigChange(extension, key, change.value, change.if_revision))

    def remove_config(self, extension: str, key: str, *, if_revision: int | None = None) -> ConfigSaved:
        return self._change(ConfigChange(extension, parse_config_key(key, self._limits), None, if_revision))

    def _change(self, change: ConfigChange) -> ConfigSaved:
        self._watchers.check_depth()
        saved: ConfigSaved = self._write().keep(change)
        if saved.ok and saved.revision:
            self._watchers.tell(change.extension)
        return saved

    def read_config(self, extension: str, keys: tuple[str, ...] | None = None) -> Snapshot:
        return self._read(self._readers.read_config, extension, keys)

    def read_changes(
        self, extension: str, since: int, keys: tuple[str, ...] | None = None
    ) -> list[ConfigChanged] | None:
        return self._read(self._readers.read_changes, extension, since, keys)

    def watch(self, wake: Callable[[str], object]) -> Callable[[], None]:
        self._check_open()
        return self._watchers.add(wake)

    # -- all of it

    @property
    def unindexed(self) -> int:
        """How many records the index of texts is behind; they are found all the same, more slowly."""
        return self._write().unindexed

    def tidy(self) -> None:
        """Does now what the store does by itself when nobody uses it: fills its index, and empties SQLite's log.

        Whoever writes meanwhile waits."""
        self._write().keep(Tidying())

    def back_up(self, path: Path | str) -> None:
        """Writes the store as it is now to a new file, which is a store itself. It may be in use meanwhile.

        Raises:
            FileExistsError: there is something at that path.
        """
        self._check_open()
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        with closing(connect(self.path, for_reading=True)) as source, closing(sqlite3.connect(path)) as copy:
            source.backup(copy)

    def release_reserve(self) -> None:
        """Frees the space that the store reserves, for what a host must write on a full disk.

        Nothing is added to the store until the disk has room for it again."""
        self._write().release_reserve()

    def close(self) -> None:
        with self._closing:
            if self._is_closed:
                return
            if self._writer is not None:
                self._writer.stop()
            self._is_closed = True
            self._readers.close()
            self._watchers.clear()
            if self._writer is not None and self._owner is not None:
                self._writer.close()
                self._owner.release(in_order=self._writer.is_sound and not self._is_damaged)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    # -- what every call goes through

    def _check_open(self) -> None:
        if self._is_closed:
            raise LocalProtocolError("the store is closed")

    def _write(self) -> Writer:
        if self._writer is None:
            raise LocalProtocolError("the store is open for reading only")
        return self._writer

    def _read(self, read: Callable[..., T], *arguments: Any, seconds: float | None = None) -> T:
        self._check_open()
        try:
            return read(*arguments, self._limits.query_seconds if seconds is None else seconds)
        except sqlite3.Error as error:
            self._is_damaged = self._is_damaged or is_damage(error)
            raise StoreError(Meaning.INTERNAL, note("a query failed", error)) from error
