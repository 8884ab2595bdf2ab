"""The writer thread: batches queued changes into transactions; recovers from disk errors.

A change is acknowledged only when it is on the disk. When a commit fails, every change in it fails and none is
stored. On a full disk only deletions are written until space is free. After another disk error, a test commit and an
integrity check must succeed before anything else is written; otherwise the store stops writing.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Lock, Thread, get_ident
from time import monotonic
from typing import Any, assert_never

from msgspec import Struct

from becket._loggers import host_logger, log_incident
from becket.errors import BecketError, Busy, LocalProtocolError, Meaning, RpcError, StoreError
from becket.limits import Limits
from becket.stores.notifications import complete_append
from becket.stores.quotas import NewRecord
from becket.stores.sqlite.commit_mark import Mark, Reached
from becket.stores.sqlite.disk_errors import DISK_FULL, FREE_SPACE, explain, primary_code
from becket.stores.sqlite.reserve import DiskReserve, free_bytes
from becket.stores.sqlite.rows import DamagedRow, hint_at_damage
from becket.stores.sqlite.schema import BUSY_TIMEOUT, check_integrity, open_database
from becket.stores.sqlite.text_index import INDEX_BATCH, TextIndex
from becket.stores.sqlite.transactions import ConfigChange, RecordDeletion, Redaction, Transactions
from becket.stores.store import Clock

__all__ = ["Accepting", "Change", "Maintenance", "StoreWriter", "as_store_error", "log_store_incident", "wal_size"]

MAX_BATCH = 512  # changes in one transaction: some milliseconds of work
BATCH_WAIT = 0.25  # of the duration of a sync: how long to wait for further changes of the same callers
INDEX_DELAY = 0.2  # seconds without a change before background work is done
CHECKPOINT_DELAY = 1.0  # seconds without a change before SQLite's log is checkpointed
# Unindexed records at most while changes arrive without a pause; scanning them takes 20 ms.
MAX_INDEX_BACKLOG = 10_000
MAX_WAL_BYTES = 32 << 20  # bytes; overlapping queries can prevent a checkpoint, and then the writer waits for them
FREE_PAGES = 16  # free pages in the file from which on records are accepted on a full disk
SHORT_BUSY_TIMEOUT = 0.05  # seconds
MIN_FREE_BYTES = 1 << 20  # with less free space on the disk, any write error counts as a full disk


class Maintenance(Struct, frozen=True):
    """Runs all background work now; stores nothing."""


class Accepting(Struct, frozen=True):
    """Stops reporting the losses that were reported so far."""


Change = NewRecord | ConfigChange | RecordDeletion | Redaction | Maintenance | Accepting


class WriteJob(Struct):
    """A queued change. `done` receives the result, or an error."""

    change: Change
    done: Callable[[Any], object]

    @property
    def is_deletion(self) -> bool:
        """Whether the change frees space: it is written even on a full disk."""
        change = self.change
        return isinstance(change, RecordDeletion | Redaction) or (
            isinstance(change, ConfigChange) and change.value is None
        )


class StoreWriter:
    """Writes changes in order, many per transaction.

    `is_intact` is False after a failure that stopped all writing; `is_damaged` is True once damage was found."""

    def __init__(
        self,
        path: Path,
        limits: Limits,
        clock: Clock,
        reserve: DiskReserve,
        *,
        has_index: bool,
        marked: Reached | None = None,
    ) -> None:
        self._path = path
        self._limits = limits
        self._clock = clock
        self._reserve = reserve
        self._has_index = has_index
        self._open(marked or Reached())
        self._mark = Mark(path)
        self._write_mark()
        self._disk_full_incident: str | None = None  # incident id since the disk is full
        self._because = (DISK_FULL, FREE_SPACE)  # cause of the last failure, and hint
        self._failure_incident: str | None = None  # incident id since writing stopped
        self.is_intact = True
        self.is_damaged = False
        if not reserve.allocate():
            self._disk_full_incident = log_store_incident(f"{path}: {DISK_FULL}, nothing is added: {FREE_SPACE}", None)
        self._jobs: SimpleQueue[WriteJob | None] = SimpleQueue()
        self._busy_timeout = BUSY_TIMEOUT  # seconds to wait for queries that prevent a checkpoint
        self._expected = 1  # batch size, if all current callers submit another change
        self._sync_seconds = 0.0
        self._submit_lock = Lock()
        self._is_closed = False
        self._thread = Thread(target=self._run, name="becket store writer", daemon=True)
        self._thread.start()

    def _open(self, marked: Reached) -> None:
        self._connection = open_database(self._path)
        try:
            index = TextIndex(self._connection) if self._has_index else None
            self._transactions = Transactions(self._connection, self._limits, self._clock, index, marked)
            self._transactions.prepare_index()
        except BaseException:
            self._connection.close()
            raise

    # -- any thread

    @property
    def index_backlog(self) -> int:
        """The number of records that are not in the index yet."""
        return self._transactions.backlog

    def submit(self, change: Change, done: Callable[[Any], object]) -> None:
        """Queues a change; `done` is called in the writer thread with the result when it is durable, or with the error.

        Raises:
            Busy: the queue is full.
            LocalProtocolError: the store is closed.
        """
        with self._submit_lock:
            if self._is_closed:
                raise LocalProtocolError("the store is closed")
            if self._jobs.qsize() >= self._limits.store_queue:
                raise Busy("changes waiting for the disk", self._limits.store_queue)
            self._jobs.put(WriteJob(change, done))

    def write(self, change: Change) -> Any:
        """Writes a change and returns its result when it is durable."""
        self._check_thread()
        waiter = BlockingResult()
        self.submit(change, waiter)
        return waiter.wait()

    def _check_thread(self) -> None:
        if get_ident() == self._thread.ident:
            raise LocalProtocolError("an append callback must not wait for the store")

    def stop(self) -> None:
        """Accepts no more changes, and returns when all queued changes are durable."""
        self._check_thread()
        with self._submit_lock:
            self._is_closed = True
            self._jobs.put(None)
        self._thread.join()

    def close(self) -> None:
        """Closes the file, after `stop`. The last connection to close removes SQLite's log."""
        self._connection.close()
        self._mark.close()

    # -- writer thread

    def _run(self) -> None:
        quiet: float | None = 0.0  # seconds without a change, after which background work is due
        while True:
            try:
                job = self._jobs.get(timeout=quiet)
            except Empty:
                quiet = self._run_maintenance(quiet or 0.0)
                continue
            if job is None:
                return
            batch, is_last = self._collect_batch(job)
            self._write_batch(batch)
            if is_last:
                return
            quiet = INDEX_DELAY

    def _collect_batch(self, first: WriteJob) -> tuple[list[WriteJob], bool]:
        """Returns the queued changes, and whether the writer is to stop after them."""
        batch = [first]
        until = monotonic() + BATCH_WAIT * self._sync_seconds
        try:
            while len(batch) < MAX_BATCH:
                left = until - monotonic() if len(batch) < self._expected else 0.0
                job = self._jobs.get(timeout=max(0.0, left))
                if job is None:
                    return batch, True
                batch.append(job)
        except Empty:
            pass
        return batch, False

    def _write_batch(self, batch: Sequence[WriteJob]) -> None:
        behind = self._transactions.backlog
        try:
            outcomes = self._commit(batch)
        except Exception as error:
            outcomes = self._recover(batch, error)
        if any(isinstance(job.change, Maintenance) for job in batch):
            while self._index_batch():
                pass
            self.checkpoint()
        elif any(isinstance(job.change, Redaction) for job in batch):
            self.checkpoint(waits=True)  # SQLite's log still has the old pages
        for job, outcome in zip(batch, outcomes, strict=True):
            complete_append(job.done, outcome)
        # With a larger backlog, as after an upgrade, each transaction reduces it by one batch.
        while (
            self._transactions.backlog > max(MAX_INDEX_BACKLOG - MAX_BATCH, behind - INDEX_BATCH)
            and self._index_batch()
        ):
            pass
        if wal_size(self._path) > MAX_WAL_BYTES:
            self.checkpoint(waits=True)
            # A long-running reader, such as `verify`, is waited for once, not with each transaction.
            self._busy_timeout = BUSY_TIMEOUT if wal_size(self._path) <= MAX_WAL_BYTES else SHORT_BUSY_TIMEOUT

    def _commit(self, batch: Sequence[WriteJob], *, makes_room: bool = False) -> list[Any]:
        """Commits these changes and returns their results. With `makes_room`, all but deletions are refused."""
        if self._failure_incident is not None:
            return [self._refuse(self._failure_incident) for _ in batch]
        if self._disk_full_incident is not None and self._reserve.reallocate():
            self._disk_full_incident = None
        takes_all = self._disk_full_incident is None or (not makes_room and self._has_free_pages())
        if self._disk_full_incident is not None:
            self._reuse_log()
        self._transactions.begin()
        outcomes = [
            self._apply(job) if takes_all or job.is_deletion else self._refuse(self._disk_full_incident, is_full=True)
            for job in batch
        ]
        began = monotonic()
        self._transactions.commit()
        self._sync_seconds = monotonic() - began
        self._write_mark()
        self._expected = len(batch) + self._jobs.qsize()
        return outcomes

    def _write_mark(self) -> None:
        """Writes the mark, before the changes are acknowledged."""
        try:
            self._mark.write(self._transactions.reached)
        except OSError as error:
            log_store_incident("the mark could not be written; the records are kept", error)

    def _has_free_pages(self) -> bool:
        """Returns whether deleted records left enough free pages in the file."""
        (pages,) = self._connection.execute("PRAGMA freelist_count").fetchone()
        return bool(pages >= FREE_PAGES)

    def _reuse_log(self) -> None:
        """Makes SQLite reuse its log instead of growing it, unless the file would need more space than is free."""
        (pages,) = self._connection.execute("PRAGMA page_count").fetchone()
        (size,) = self._connection.execute("PRAGMA page_size").fetchone()
        if pages * size - os.path.getsize(self._path) <= free_bytes(self._path):
            self.checkpoint()

    def _refuse(self, incident: str | None, *, is_full: bool = False) -> StoreError:
        because, hint = self._because
        meaning = Meaning.DISK_FULL if is_full else Meaning.INTERNAL
        return StoreError(meaning, incident or "", because, path=str(self._path), hint=hint)

    def _apply(self, job: WriteJob) -> Any:
        try:
            match job.change:
                case NewRecord():
                    return self._transactions.append(job.change)
                case ConfigChange():
                    return self._transactions.apply_config(job.change)
                case RecordDeletion():
                    return self._transactions.delete_records(job.change)
                case Redaction():
                    return self._transactions.redact(job.change)
                case Maintenance():
                    return None
                case Accepting():
                    return self._transactions.accept_losses()
                case _:
                    assert_never(job.change)
        except RpcError as refusal:
            return refusal
        except DamagedRow as damaged:
            self.is_damaged = True
            return as_store_error(self._path, damaged)

    # -- background work

    def _run_maintenance(self, waited: float) -> float | None:
        """Does one step of background work; returns the delay until the next, or None if all is done."""
        if self._index_batch():
            return 0.0
        if waited < CHECKPOINT_DELAY:
            return CHECKPOINT_DELAY
        self.checkpoint()
        return None

    def _index_batch(self) -> bool:
        if self._failure_incident is not None or self._disk_full_incident is not None:
            return False
        try:
            return self._transactions.index_batch()
        except Exception as error:
            self._recover((), error)
            return False

    def checkpoint(self, *, waits: bool = False) -> None:
        """Moves SQLite's log into the file if no query reads it; with `waits`, waits for queries first."""
        try:
            self._connection.execute(f"PRAGMA busy_timeout = {self._busy_timeout * 1000 if waits else 0:.0f}")
            # On a full disk the log keeps its space, which other programs would use up.
            mode = "TRUNCATE" if self._disk_full_incident is None else "RESTART"
            self._connection.execute(f"PRAGMA wal_checkpoint({mode})").fetchall()
            self._connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT * 1000:.0f}")
        except Exception as error:
            log_store_incident("checkpoint failed", error)

    # -- disk errors

    def _recover(self, batch: Sequence[WriteJob], error: Exception) -> list[Any]:
        """Handles a failed commit, and returns the results of its changes. On a full disk the deletions are retried.

        Always returns: no caller may wait for ever, even if recovery fails."""
        incident = log_store_incident(f"{self._path}: {len(batch)} changes were not kept", error)
        self._because = explain(error)
        try:
            if self._is_disk_full_error(primary_code(error)):
                return self._retry_deletions(batch, incident)
            self._repair(error, incident)
        except Exception as worse:
            self._give_up(incident, worse)
        return [self._refuse(incident) for _ in batch]

    def _is_disk_full_error(self, code: int) -> bool:
        return code == sqlite3.SQLITE_FULL or (code == sqlite3.SQLITE_IOERR and free_bytes(self._path) < MIN_FREE_BYTES)

    def _retry_deletions(self, batch: Sequence[WriteJob], incident: str) -> list[Any]:
        """Releases the disk reserve, and tries again with the deletions alone."""
        self._disk_full_incident = incident
        self._because = (DISK_FULL, FREE_SPACE)
        self._reserve.release()
        self._transactions.roll_back()
        try:
            return self._commit(batch, makes_room=True)
        except Exception as error:
            log_store_incident(f"after incident {incident}: the deletions were not kept either", error)
            self._transactions.roll_back()
        return [self._refuse(incident, is_full=True) for _ in batch]

    def release_reserve(self) -> None:
        """Releases the reserved space for what the host must write. It is reserved again when the disk has space."""
        self._disk_full_incident = self._disk_full_incident or log_store_incident(
            f"{self._path}: {DISK_FULL}, the reserve is given up and nothing is added: {FREE_SPACE}", None
        )
        self._reserve.release()

    def _repair(self, error: Exception, incident: str) -> None:
        """Checks after a disk error that a transaction succeeds and that the file is intact."""
        self._transactions.roll_back()
        is_others = primary_code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_READONLY)
        if is_others or not isinstance(error, sqlite3.Error):
            return
        self._transactions.overwrite_failed_commit()
        self._connection.close()
        self._open(self._transactions.reached)
        check_integrity(self._connection)
        log_store_incident(f"after incident {incident}: the file is sound, writing goes on", None)

    def _give_up(self, incident: str, error: Exception) -> None:
        log_store_incident(f"after incident {incident}: nothing more is written, until the store is reopened", error)
        self._failure_incident = incident
        self.is_intact = False


class BlockingResult:
    """Blocks until a result is available."""

    __slots__ = ("_lock", "_outcome")

    def __init__(self) -> None:
        self._lock = Lock()
        self._lock.acquire()
        self._outcome: Any = None

    def __call__(self, outcome: Any) -> None:
        self._outcome = outcome
        self._lock.release()

    def wait(self) -> Any:
        self._lock.acquire()
        if isinstance(self._outcome, BecketError):
            raise self._outcome
        return self._outcome


def as_store_error(path: Path, damaged: DamagedRow) -> StoreError:
    """Logs a damaged row, and returns the error for the caller."""
    incident = log_store_incident(f"{path}: damaged row", damaged)
    return StoreError(Meaning.INTERNAL, incident, str(damaged), path=str(path), hint=hint_at_damage(path))


def wal_size(path: Path) -> int:
    """Returns the size of SQLite's log of a store."""
    try:
        return os.stat(f"{path}-wal").st_size
    except FileNotFoundError:
        return 0


def log_store_incident(what: str, error: Exception | None) -> str:
    """Logs what happened to a store under a new incident id, which is returned."""
    return log_incident(host_logger(), f"store: {what}", error)
