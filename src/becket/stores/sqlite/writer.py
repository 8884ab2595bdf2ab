"""The writer thread: batches queued changes into transactions; recovers from disk errors.

An answer is given only when the disk has it. When the disk is full or fails, everybody in the transaction hears so and
nothing of it is kept. On a full disk only what makes room is written until there is some; a disk that failed is tried
and the file looked through before anything more is written, and where that fails too, nothing is written any more.
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

from becket._loggers import host_logger
from becket.errors import BecketError, Busy, LocalProtocolError, Meaning, RpcError, StoreError
from becket.limits import Limits
from becket.stores.notifications import complete_append
from becket.stores.quotas import NewRecord
from becket.stores.sqlite.causes import DISK_FULL, FREE_SPACE, explain, primary_code
from becket.stores.sqlite.mark import Mark, Reached
from becket.stores.sqlite.reserve import DiskReserve, free_bytes
from becket.stores.sqlite.rows import DamagedRow, hint_at_damage
from becket.stores.sqlite.schema import BUSY_TIMEOUT, check_integrity, open_database
from becket.stores.sqlite.text_index import INDEX_BATCH, TextIndex
from becket.stores.sqlite.transactions import ConfigChange, RecordDeletion, Redaction, Transactions
from becket.stores.store import Clock

__all__ = ["Accepting", "Change", "Maintenance", "StoreWriter", "as_store_error", "log_incident", "wal_size"]

MAX_BATCH = 512  # changes in one transaction: some milliseconds of work
BATCH_WAIT = (
    0.25  # of the time that a sync takes: so long those are waited for who just got an answer and may have more
)
INDEX_DELAY = 0.2  # seconds without a change, after which what can wait is done
CHECKPOINT_DELAY = 1.0  # and after which the log of SQLite is emptied into the file
MAX_INDEX_BACKLOG = (
    10_000  # records that the index may be behind while changes come without a pause; to look through: 20 ms
)
MAX_WAL_BYTES = 32 << 20  # bytes: queries that overlap can keep it from being emptied; then they are waited for
FREE_PAGES = 16  # in the file, from which on records are taken on a full disk
IMPATIENCE = 0.05  # seconds
MIN_FREE_BYTES = 1 << 20  # bytes of a disk on which any failure to write means that it is full


class Maintenance(Struct, frozen=True):
    """Nothing to keep, but all that can wait to be done now."""


class Accepting(Struct, frozen=True):
    """Losses that were reported are reported no more."""


Change = NewRecord | ConfigChange | RecordDeletion | Redaction | Maintenance | Accepting


class WriteJob(Struct):
    """A change that waits, and who waits for it. `done` gets what the ledger answers, or an error."""

    change: Change
    done: Callable[[Any], object]

    @property
    def is_deletion(self) -> bool:
        """Whether less is in the store after it: what may be written even on a full disk."""
        change = self.change
        return isinstance(change, RecordDeletion | Redaction) or (
            isinstance(change, ConfigChange) and change.value is None
        )


class StoreWriter:
    """Keeps changes in the order in which they come, many at once.

    `is_intact` is False after a failure that nothing was written after, `is_damaged` True when damage was met."""

    def __init__(
        self,
        path: Path,
        limits: Limits,
        clock: Clock,
        ballast: DiskReserve,
        *,
        has_index: bool,
        marked: Reached | None = None,
    ) -> None:
        self._path = path
        self._limits = limits
        self._clock = clock
        self._reserve = ballast
        self._has_index = has_index
        self._open(marked or Reached())
        self._mark = Mark(path)
        self._write_mark()
        self._disk_full_incident: str | None = None  # the incident since which the disk is full
        self._because = (DISK_FULL, FREE_SPACE)  # what the last failure was, and what to do
        self._failure_incident: str | None = None  # the incident since which nothing is written
        self.is_intact = True
        self.is_damaged = False
        if not ballast.allocate():
            self._disk_full_incident = log_incident(f"{path}: {DISK_FULL}, nothing is added: {FREE_SPACE}", None)
        self._jobs: SimpleQueue[WriteJob | None] = SimpleQueue()
        self._patience = BUSY_TIMEOUT  # seconds for queries that keep the log from being emptied
        self._expected = 1  # changes, if everybody comes again who is here now
        self._sync_seconds = 0.0
        self._submit_lock = Lock()
        self._is_closed = False
        self._thread = Thread(target=self._run, name="becket store writer", daemon=True)
        self._thread.start()

    def _open(self, marked: Reached) -> None:
        self._connection = open_database(self._path)
        try:
            index = TextIndex(self._connection) if self._has_index else None
            self._ledger = Transactions(self._connection, self._limits, self._clock, index, marked)
            self._ledger.prepare_index()
        except BaseException:
            self._connection.close()
            raise

    # -- for all threads

    @property
    def index_backlog(self) -> int:
        """How many records are not in the index yet."""
        return self._ledger.backlog

    def submit(self, change: Change, done: Callable[[Any], object]) -> None:
        """Takes a change; `done` is called in the writer's thread when it is safe, or with the error.

        Raises:
            Busy: too many wait already.
            LocalProtocolError: the store is closed.
        """
        with self._submit_lock:
            if self._is_closed:
                raise LocalProtocolError("the store is closed")
            if self._jobs.qsize() >= self._limits.store_queue:
                raise Busy("changes that wait for the disk", self._limits.store_queue)
            self._jobs.put(WriteJob(change, done))

    def write(self, change: Change) -> Any:
        """Returns the answer to a change when it is safe."""
        self._check_thread()
        waiter = BlockingResult()
        self.submit(change, waiter)
        return waiter.wait()

    def _check_thread(self) -> None:
        if get_ident() == self._thread.ident:
            raise LocalProtocolError("whoever is told that a record is safe must not wait for the store")

    def stop(self) -> None:
        """Takes no more changes, and returns when all that were taken are safe."""
        self._check_thread()
        with self._submit_lock:
            self._is_closed = True
            self._jobs.put(None)
        self._thread.join()

    def close(self) -> None:
        """Lets go of the file, after `stop`. Whoever is the last to do so leaves no log behind."""
        self._connection.close()
        self._mark.close()

    # -- the thread

    def _run(self) -> None:
        quiet: float | None = 0.0  # seconds without a change, after which there is something to do
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
        """Returns the changes that wait, and whether there will be no more."""
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
        behind = self._ledger.backlog
        try:
            outcomes = self._commit(batch)
        except Exception as error:
            outcomes = self._recover(batch, error)
        if any(isinstance(job.change, Maintenance) for job in batch):
            while self._index_batch():
                pass
            self.checkpoint()
        elif any(isinstance(job.change, Redaction) for job in batch):
            self.checkpoint(waits=True)  # it holds the pages as they were
        for job, outcome in zip(batch, outcomes, strict=True):
            complete_append(job.done, outcome)
        # Further behind, as after an upgrade, it comes nearer by a piece with each transaction.
        while self._ledger.backlog > max(MAX_INDEX_BACKLOG - MAX_BATCH, behind - INDEX_BATCH) and self._index_batch():
            pass
        if wal_size(self._path) > MAX_WAL_BYTES:
            self.checkpoint(waits=True)
            # A reader that goes on, as `verify` does, is waited for once, not with each transaction.
            self._patience = BUSY_TIMEOUT if wal_size(self._path) <= MAX_WAL_BYTES else IMPATIENCE

    def _commit(self, batch: Sequence[WriteJob], *, makes_room: bool = False) -> list[Any]:
        """Returns the answers to these changes, which are safe then. With `makes_room` all others are refused."""
        if self._failure_incident is not None:
            return [self._refuse(self._failure_incident) for _ in batch]
        if self._disk_full_incident is not None and self._reserve.reallocate():
            self._disk_full_incident = None
        takes_all = self._disk_full_incident is None or (not makes_room and self._has_free_pages())
        if self._disk_full_incident is not None:
            self._reuse_log()
        self._ledger.begin()
        outcomes = [
            self._apply(job) if takes_all or job.is_deletion else self._refuse(self._disk_full_incident, is_full=True)
            for job in batch
        ]
        began = monotonic()
        self._ledger.commit()
        self._sync_seconds = monotonic() - began
        self._write_mark()
        self._expected = len(batch) + self._jobs.qsize()
        return outcomes

    def _write_mark(self) -> None:
        """Writes down how far the store has come, before anybody hears of it."""
        try:
            self._mark.write(self._ledger.reached)
        except OSError as error:
            log_incident("the mark could not be written; the records are kept", error)

    def _has_free_pages(self) -> bool:
        """Returns whether the file has room inside: what was forgotten leaves pages that need no more of the disk."""
        (pages,) = self._connection.execute("PRAGMA freelist_count").fetchone()
        return bool(pages >= FREE_PAGES)

    def _reuse_log(self) -> None:
        """Has the log of SQLite begin anew instead of growing, unless the file would need more than is left."""
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
                    return self._ledger.append(job.change)
                case ConfigChange():
                    return self._ledger.apply_config(job.change)
                case RecordDeletion():
                    return self._ledger.delete_records(job.change)
                case Redaction():
                    return self._ledger.redact(job.change)
                case Maintenance():
                    return None
                case Accepting():
                    return self._ledger.accept_losses()
                case _:
                    assert_never(job.change)
        except RpcError as refusal:
            return refusal
        except DamagedRow as damaged:
            self.is_damaged = True
            return as_store_error(self._path, damaged)

    # -- what can wait

    def _run_maintenance(self, waited: float) -> float | None:
        """Does a little of what can wait, and returns after how many seconds more; None where all is done."""
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
            return self._ledger.index_batch()
        except Exception as error:
            self._recover((), error)
            return False

    def checkpoint(self, *, waits: bool = False) -> None:
        """Brings all that is in the log of SQLite into the file, if no query reads it, or waits until none does."""
        try:
            self._connection.execute(f"PRAGMA busy_timeout = {self._patience * 1000 if waits else 0:.0f}")
            # On a full disk the log keeps its room: others would take it.
            mode = "TRUNCATE" if self._disk_full_incident is None else "RESTART"
            self._connection.execute(f"PRAGMA wal_checkpoint({mode})").fetchall()
            self._connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT * 1000:.0f}")
        except Exception as error:
            log_incident("its log could not be emptied", error)

    # -- when the disk does not do what it should

    def _recover(self, batch: Sequence[WriteJob], error: Exception) -> list[Any]:
        """Returns the answers to changes of which nothing was kept; on a full disk those that make room are.

        It always returns: whatever goes wrong here as well, nobody must wait for ever."""
        incident = log_incident(f"{self._path}: {len(batch)} changes were not kept", error)
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
        """Gives up the ballast, and tries once more with what makes room."""
        self._disk_full_incident = incident
        self._because = (DISK_FULL, FREE_SPACE)
        self._reserve.release()
        self._ledger.roll_back()
        try:
            return self._commit(batch, makes_room=True)
        except Exception as error:
            log_incident(f"after incident {incident}: nor was what makes room", error)
            self._ledger.roll_back()
        return [self._refuse(incident, is_full=True) for _ in batch]

    def release_reserve(self) -> None:
        """Frees the reserved space for what the host must write. It is reserved again when the disk has room."""
        self._disk_full_incident = self._disk_full_incident or log_incident(
            f"{self._path}: {DISK_FULL}, the reserve is given up and nothing is added: {FREE_SPACE}", None
        )
        self._reserve.release()

    def _repair(self, error: Exception, incident: str) -> None:
        """Goes on after a failing disk only if it takes a transaction, and if the file is sound."""
        self._ledger.roll_back()
        is_others = primary_code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_READONLY)
        if is_others or not isinstance(error, sqlite3.Error):
            return
        self._ledger.overwrite_failed_commit()
        self._connection.close()
        self._open(self._ledger.reached)
        check_integrity(self._connection)
        log_incident(f"after incident {incident}: the file is sound, writing goes on", None)

    def _give_up(self, incident: str, error: Exception) -> None:
        log_incident(f"after incident {incident}: nothing more is written, until the store is opened anew", error)
        self._failure_incident = incident
        self.is_intact = False


class BlockingResult:
    """Waits for one answer."""

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
    """Returns what is told of a damaged row, and writes it down."""
    incident = log_incident(f"{path}: damage was met", damaged)
    return StoreError(Meaning.INTERNAL, incident, str(damaged), path=str(path), hint=hint_at_damage(path))


def wal_size(path: Path) -> int:
    """Returns how long SQLite's log of a store is."""
    try:
        return os.stat(f"{path}-wal").st_size
    except FileNotFoundError:
        return 0


def log_incident(what: str, error: Exception | None) -> str:
    """Writes down what happened, under an incident that is returned."""
    incident = os.urandom(6).hex()
    host_logger().error("incident %s: store: %s", incident, what, exc_info=error)
    return incident
