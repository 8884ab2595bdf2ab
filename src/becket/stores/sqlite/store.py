"""`SqliteStore`: all extensions in one file; acknowledged writes survive a power cut."""

from __future__ import annotations

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
from becket.stores.notifications import ChangeNotifier
from becket.stores.query_filter import check_namespace, parse_query, parse_search
from becket.stores.quotas import parse_append
from becket.stores.sqlite.commit_mark import Reached, read_mark
from becket.stores.sqlite.disk_errors import explain
from becket.stores.sqlite.lock import StoreLock
from becket.stores.sqlite.reader import ReaderPool
from becket.stores.sqlite.reserve import DiskReserve
from becket.stores.sqlite.rows import SHARE, DamagedRow, Share, hint_at_damage, measure, parse_share
from becket.stores.sqlite.schema import (
    MAX_ID,
    back_up,
    check_integrity,
    check_schema,
    create_store_file,
    is_corruption,
    is_store,
    open_database,
    quarantine,
)
from becket.stores.sqlite.text_index import can_index
from becket.stores.sqlite.transactions import ConfigChange, RecordDeletion, Redaction
from becket.stores.sqlite.upgrade import upgrade
from becket.stores.sqlite.verification import find_loss, keep_losses, verify
from becket.stores.sqlite.writer import (
    Accepting,
    Maintenance,
    StoreWriter,
    as_store_error,
    log_store_incident,
    wal_size,
)
from becket.stores.store import AppendCallback, Clock, Damage, Snapshot, now_ms

__all__ = ["SqliteStore"]

RESERVE_BYTES = 8 << 20  # enough to remove some ten thousand records

GLANCE = 0.3  # seconds for an integrity check after the owner was killed; later damage is found by reads

T = TypeVar("T")


class SqliteStore:
    """A store in the file at `path`, locked until it is closed; the semantics are those of `Store`.

    Acknowledged changes are on the disk. A damaged file is renamed to `quarantined`, and an empty one is created.
    `damage` lists what was found lost at opening. Beside the file there are `.lock`, `.mark`, `.ballast` (a reserve of
    `ballast` bytes, released when the disk is full; 0 for none) and, while it is open, two files of SQLite.

    Without an `index`, or where SQLite has no trigram tokenizer, queries return the same more slowly. With `read_only`
    another process may own the store, and everything that writes raises LocalProtocolError.

    Raises:
        StoreInUse: another process has it open.
        StoreUnavailable: it cannot be opened, and why.
    """

    def __init__(
        self,
        path: Path | str,
        limits: Limits = DEFAULT_LIMITS,
        clock: Clock = now_ms,
        *,
        index: bool = True,
        ballast: int = RESERVE_BYTES,
        read_only: bool = False,
    ) -> None:
        self.path = Path(path)
        self.quarantined: Path | None = None
        self.damage: tuple[Damage, ...] = ()
        self._limits = limits
        self._clock = clock
        self._reserve = ballast
        self._has_index = index and can_index()
        self._watchers = ChangeNotifier(limits.call_depth)
        self._closing = Lock()
        self._is_closed = False
        self._is_damaged = False
        self._store_lock: StoreLock | None = None
        self._writer: StoreWriter | None = None
        if not read_only:
            self._store_lock, self._writer = self._open()
        elif not is_store(self.path, for_reading=True):
            raise StoreUnavailable(str(self.path), "there is no store")
        self._readers = ReaderPool(self.path, has_index=self._has_index)

    # -- opening

    def _open(self) -> tuple[StoreLock, StoreWriter]:
        if not self.path.parent.is_dir():
            raise StoreUnavailable(str(self.path), "its folder does not exist", "create the folder first")
        owner = StoreLock(self.path)
        was_left = owner.was_unclean or wal_size(self.path) > 0
        try:
            return owner, self._open_file(owner, was_left)
        except BaseException as error:
            owner.release(in_order=not was_left, is_damaged=owner.was_damaged)
            if isinstance(error, sqlite3.Error | OSError):
                raise StoreUnavailable(str(self.path), *explain(error)) from error
            raise

    def _open_file(self, owner: StoreLock, was_left: bool) -> StoreWriter:
        is_there = is_store(self.path)
        marked = self._read_mark()
        if not is_there:
            create_store_file(self.path)
        try:
            upgrade(self.path)
            with closing(open_database(self.path)) as connection:
                check_schema(connection)
                if was_left:
                    check_integrity(connection, None if owner.was_damaged else GLANCE)
                self._note_loss(connection, marked)
                if owner.was_damaged:
                    connection.execute("UPDATE state SET value = NULL WHERE name = 'index'")
            return self._start_writer(marked)
        except sqlite3.DatabaseError as error:
            if not is_corruption(error):
                raise
            self.quarantined = quarantine(self.path)
            problem = f"damaged; it was renamed to {self.quarantined}, and an empty store was created"
            self._report(Damage(None, "the file", problem), error)
        create_store_file(self.path)
        with closing(open_database(self.path)) as connection:
            keep_losses(connection, self.damage, None)
        return self._start_writer(None)

    def _start_writer(self, marked: Reached | None) -> StoreWriter:
        ballast = DiskReserve(self.path, self._reserve)
        return StoreWriter(self.path, self._limits, self._clock, ballast, has_index=self._has_index, marked=marked)

    def _read_mark(self) -> Reached | None:
        try:
            return read_mark(self.path)
        except ValueError as error:
            self._report(Damage(None, "the mark", f"{error}; losses cannot be determined"), None)
            return None

    def _note_loss(self, connection: sqlite3.Connection, marked: Reached | None) -> None:
        """Reports what the mark counts and the store lacks, now and in each later `verify`."""
        shares: list[Share] = []
        rows = connection.execute(f"SELECT {SHARE} FROM extensions").fetchall()
        for row in rows:
            try:
                shares.append(parse_share(row))
            except DamagedRow as damaged:
                self._report(damaged.as_damage(), damaged)
        if marked is None or len(shares) < len(rows):
            return  # the progress of the store is unknown
        losses = find_loss(connection, marked, measure(shares))
        for loss in losses:
            self._report(loss, None)
        if losses:
            keep_losses(connection, losses, marked)

    def _report(self, damage: Damage, error: Exception | None) -> None:
        log_store_incident(f"{self.path}: {damage}", error)
        self.damage = (*self.damage, damage)

    # -- memory

    def append(self, append: Append) -> Appended:
        appended: Appended = self._get_writer().write(parse_append(append, self._limits))
        return appended

    def append_nowait(self, append: Append, done: AppendCallback) -> None:
        self._get_writer().submit(parse_append(append, self._limits), done)

    def query(self, query: Query, *, timeout: float | None = None) -> list[Record]:
        return self._run_read(
            self._readers.query, parse_query(query, self._limits), seconds=self._query_timeout(timeout)
        )

    def query_page(self, query: Query, most_bytes: int) -> Records:
        return self._run_read(self._readers.query_page, parse_query(query, self._limits), most_bytes)

    def search(
        self, namespace: str, text: str, *, limit: int = DEFAULT_QUERY_LIMIT, timeout: float | None = None
    ) -> list[Record]:
        criteria = parse_search(namespace, text, self._limits)
        if not criteria.words:
            return []
        limit = max(0, min(limit, self._limits.memory_page))
        return self._run_read(self._readers.search, criteria, limit, seconds=self._query_timeout(timeout))

    def _query_timeout(self, timeout: float | None) -> float:
        most = self._limits.query_seconds
        return most if timeout is None else min(timeout, most)

    def forget(self, namespace: str, *, up_to: int | None = None) -> int:
        check_namespace(namespace)
        last = MAX_ID if up_to is None else min(max(up_to, 0), MAX_ID)
        count: int = self._get_writer().write(RecordDeletion(namespace, last))
        return count

    # -- configuration

    def get_config(self, extension: str, key: str) -> ConfigValue:
        return self._run_read(self._readers.get_config, extension, parse_config_key(key, self._limits))

    def set_config(self, extension: str, change: ConfigSet) -> ConfigSaved:
        check_config_set(change, self._limits)
        key = parse_config_key(change.key, self._limits)
        return self._change(ConfigChange(extension, key, change.value, change.if_revision))

    def remove_config(self, extension: str, key: str, *, if_revision: int | None = None) -> ConfigSaved:
        return self._change(ConfigChange(extension, parse_config_key(key, self._limits), None, if_revision))

    def _change(self, change: ConfigChange) -> ConfigSaved:
        self._watchers.check_depth()
        saved: ConfigSaved = self._get_writer().write(change)
        if saved.ok and saved.revision:
            self._watchers.notify(change.extension)
        return saved

    def redact_config(self, extension: str, key: str, shown: str) -> None:
        """Overwrites the value of a key, and its values in the log of changes, with another text.

        It is not a change: no revision is used and no callback is called. The old values are erased from the file."""
        self._get_writer().write(Redaction(extension, parse_config_key(key, self._limits), shown))

    def read_config(self, extension: str, keys: tuple[str, ...] | None = None) -> Snapshot:
        return self._run_read(self._readers.read_config, extension, keys)

    def read_changes(
        self, extension: str, since: int, keys: tuple[str, ...] | None = None
    ) -> list[ConfigChanged] | None:
        return self._run_read(self._readers.read_changes, extension, since, keys)

    def watch(self, wake: Callable[[str], object]) -> Callable[[], None]:
        self._check_open()
        return self._watchers.subscribe(wake)

    # -- all of it

    @property
    def index_backlog(self) -> int:
        """The number of records that are not in the text index yet; queries still find them, more slowly."""
        return self._get_writer().index_backlog

    def maintain(self) -> None:
        """Runs the background work now: fills the index and empties SQLite's log. Writers wait meanwhile."""
        self._get_writer().write(Maintenance())

    def back_up(self, path: Path | str) -> None:
        """Copies the store to a new file, which is a store itself. The store may be in use meanwhile.

        Raises:
            FileExistsError: the path exists.
        """
        self._check_open()
        with closing(open_database(self.path, for_reading=True)) as source:
            back_up(source, Path(path))

    def verify(self) -> list[Damage]:
        self._check_open()
        found = verify(self.path, has_index=self._has_index)
        self._is_damaged = self._is_damaged or bool(found)
        return found

    def accept_losses(self) -> None:
        """Makes `verify` no longer report what was found lost when the store was opened."""
        self._get_writer().write(Accepting())

    def release_reserve(self) -> None:
        """Releases the reserved space, for what a host must write on a full disk.

        Nothing is added to the store until the disk has space again."""
        self._get_writer().release_reserve()

    def close(self) -> None:
        with self._closing:
            if self._is_closed:
                return
            if self._writer is not None:
                self._writer.stop()
            self._is_closed = True
            self._readers.close()
            self._watchers.clear()
            if self._writer is not None and self._store_lock is not None:
                self._writer.close()
                is_damaged = self._is_damaged or self._writer.is_damaged
                self._store_lock.release(in_order=self._writer.is_intact and not is_damaged, is_damaged=is_damaged)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    # -- helpers

    def _check_open(self) -> None:
        if self._is_closed:
            raise LocalProtocolError("the store is closed")

    def _get_writer(self) -> StoreWriter:
        if self._writer is None:
            raise LocalProtocolError(f"{self.path} is open for reading only: open it without `read_only` to change it")
        return self._writer

    def _run_read(self, read: Callable[..., T], *arguments: Any, seconds: float | None = None) -> T:
        self._check_open()
        try:
            return read(*arguments, self._limits.query_seconds if seconds is None else seconds)
        except DamagedRow as damaged:
            self._is_damaged = True
            raise as_store_error(self.path, damaged) from damaged
        except sqlite3.Error as error:
            because, hint = explain(error)
            if is_corruption(error):
                self._is_damaged = True
                because, hint = "the file is damaged", hint_at_damage(self.path)
            raise StoreError(
                Meaning.INTERNAL, log_store_incident("a query failed", error), because, path=str(self.path), hint=hint
            ) from error
