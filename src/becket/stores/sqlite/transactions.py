"""Applies changes within one SQLite transaction, each checked against its quota.

Used by one thread. The rows of `extensions` are cached in memory; a rollback reloads them. Checksums of all rows are
computed here.
"""

from __future__ import annotations

import sqlite3
from itertools import chain

import msgspec
from msgspec import Struct

from becket.contract.config import ConfigSaved
from becket.contract.memory import Appended
from becket.limits import Limits
from becket.stores.quotas import NewRecord, check_config_quota, check_memory_quota, config_value_size
from becket.stores.sqlite.checksum import checksum
from becket.stores.sqlite.commit_mark import Reached
from becket.stores.sqlite.rows import (
    RECORD,
    SHARE,
    VALUE,
    DamagedRow,
    Share,
    measure,
    parse_record,
    parse_share,
    parse_value,
)
from becket.stores.sqlite.schema import ID_BITS, MAX_ID, record_key
from becket.stores.sqlite.text_index import INDEX_BATCH, TextIndex, has_special_folds
from becket.stores.store import Clock

__all__ = ["ConfigChange", "RecordDeletion", "Redaction", "Transactions"]


class ConfigChange(Struct, frozen=True):
    """Sets a value, or removes it if `value` is None."""

    extension: str
    key: str
    value: str | None
    if_revision: int | None


class RecordDeletion(Struct, frozen=True):
    """Removes the records up to an id."""

    namespace: str
    up_to: int


class Redaction(Struct, frozen=True):
    """Overwrites a value wherever it is stored, as if it had always been this one."""

    extension: str
    key: str
    value: str


InsertedRow = tuple[int, int, int | None, int, int | None, str, str | None, str | None, str | None, int]

FIELDS = (*Share.__struct_fields__, "sum")
UPSERT_EXTENSION = f"""
INSERT INTO extensions ({", ".join(FIELDS)}) VALUES ({", ".join("?" * len(FIELDS))})
ON CONFLICT (number) DO UPDATE SET {", ".join(f"{name} = excluded.{name}" for name in FIELDS[2:])}
"""
SELECT_BY_IDEM = f"SELECT time_ms, key & {MAX_ID} FROM memory WHERE key >> {ID_BITS} = ? AND idem = ?"
COUNT_VALUES = """
SELECT count(*), coalesce(sum(length(CAST(key AS BLOB)) + length(CAST(value AS BLOB))), 0), coalesce(sum(sum), 0)
FROM config WHERE extension = ?
"""
INSERT_RECORDS = "INSERT INTO memory (key, time_ms, peak_ms, size, odd, content, tags, meta, idem, sum) VALUES "
ROW_PLACEHOLDERS = "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
# Rows per statement: for each statement Python releases its lock, and may wait 5 ms to get it back.
ROWS_PER_INSERT = 64


class Transactions:
    """Applies changes within a transaction. `backlog` is the number of records that are not in the index yet."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        limits: Limits,
        clock: Clock,
        index: TextIndex | None,
        marked: Reached = Reached(),  # noqa: B008 - frozen
    ) -> None:
        self._connection = connection
        self._limits = limits
        self._clock = clock
        self._index = index
        self._marked = marked
        self._load()
        self._marked = Reached(self._commits, self._last_id, self._revision)

    def _load(self) -> None:
        rows = self._connection.execute(f"SELECT {SHARE} FROM extensions ORDER BY number").fetchall()
        self._last_number = max((row[0] for row in rows), default=0)
        self._shares: dict[str, Share] = {}
        self._damaged: list[DamagedRow] = []  # extensions that cannot be changed until they are repaired
        for row in rows:
            try:
                share = parse_share(row)
            except DamagedRow as damaged:
                self._damaged.append(damaged)
            else:
                self._shares[share.name] = share
        # Never below the mark, even if what it counts was lost: an acknowledged id or revision is not reused.
        reached = measure(self._shares.values())
        self._commits = max(reached.commits, self._marked.commits)
        self._last_id = max(reached.last_id, self._marked.last_id)
        self._revision = max(reached.revision, self._marked.revision)
        self._has_changed = False
        self.backlog = sum(self._count_unindexed(share) for share in self._shares.values())
        self._rows: list[InsertedRow] = []
        self._touched: dict[int, Share] = {}
        self._results: dict[tuple[int, str], Appended] = {}
        self._is_thorough = False  # whether freed bytes are overwritten

    # -- transaction

    def begin(self) -> None:
        """Opens a transaction."""
        self._connection.execute("BEGIN IMMEDIATE")

    @property
    def reached(self) -> Reached:
        """The progress of the store with all that was committed."""
        return self._marked

    def commit(self) -> None:
        """Commits all changes since `begin`; they are on the disk when it returns."""
        self._insert()
        if self._has_changed:
            self._commits += 1
            for share in self._touched.values():
                share.commits = self._commits
        self._connection.executemany(UPSERT_EXTENSION, [share.as_row() for share in self._touched.values()])
        self._touched.clear()
        self._results.clear()
        self._connection.execute("COMMIT")
        self._has_changed = False
        self._marked = Reached(self._commits, self._last_id, self._revision)
        if self._is_thorough:
            self._connection.execute("PRAGMA secure_delete = OFF")
            self._is_thorough = False

    def roll_back(self) -> None:
        """Reverts all changes since `begin`."""
        if self._connection.in_transaction:  # SQLite may have done it already
            self._connection.execute("ROLLBACK")
        self._load()

    def _insert(self) -> None:
        rows, self._rows = self._rows, []
        for start in range(0, len(rows), ROWS_PER_INSERT):
            some = rows[start : start + ROWS_PER_INSERT]
            self._connection.execute(
                INSERT_RECORDS + ", ".join([ROW_PLACEHOLDERS] * len(some)), [*chain.from_iterable(some)]
            )
        if self._index is not None:
            self.backlog += len(rows)

    def _find(self, name: str) -> Share | None:
        """Returns the row of an extension; None if it has stored nothing yet.

        Raises:
            DamagedRow: the row may be one of the damaged ones.
        """
        share = self._shares.get(name)
        if share is None and self._damaged:
            raise self._damaged[0]
        return share

    def _get_row(self, name: str) -> Share:
        """Returns the row of an extension, creating it if needed."""
        share = self._find(name)
        if share is None:
            self._last_number += 1
            share = self._shares[name] = Share(self._last_number, name)
        self._touch(share)
        return share

    def _touch(self, share: Share) -> None:
        self._touched[share.number] = share
        self._has_changed = True

    # -- memory

    def append(self, entry: NewRecord) -> Appended:
        """Stores a record.

        Raises:
            QuotaExceeded: the quota is used up.
        """
        share = self._find(entry.namespace)
        if share is None:
            check_memory_quota(entry.namespace, self._limits, records=0, used=0, more=entry.size)
            share = self._get_row(entry.namespace)
        else:
            known = None if entry.idem is None else self._find_by_idem(share, entry.idem)
            if known is not None:
                return known
            check_memory_quota(entry.namespace, self._limits, records=share.records, used=share.bytes, more=entry.size)
            self._touch(share)
        return self._add(share, entry)

    def _add(self, share: Share, entry: NewRecord) -> Appended:
        now = max(0, self._clock())
        self._last_id += 1
        result = Appended(True, now, self._last_id)
        is_peak = now >= share.peak_ms
        share.records += 1
        share.bytes += entry.size
        share.last_id = self._last_id
        if is_peak:
            share.peak_ms = now
        else:
            share.disorder_ms = max(share.disorder_ms, share.peak_ms - now)
        row = (
            record_key(share.number, self._last_id),
            now,
            None if is_peak else share.peak_ms,
            entry.size,
            1 if has_special_folds(entry.content) else None,
            entry.content,
            msgspec.json.encode(entry.tags).decode() if entry.tags else None,
            None if entry.meta is None else entry.meta.decode(),
            entry.idem,
        )
        row_sum = checksum(row)
        share.memory_sum += row_sum
        self._rows.append((*row, row_sum))
        if entry.idem is not None:
            self._results[share.number, entry.idem] = result
        return result

    def _find_by_idem(self, share: Share, idem: str) -> Appended | None:
        known = self._results.get((share.number, idem))
        if known is not None:
            return known
        row = self._connection.execute(SELECT_BY_IDEM, (share.number, idem)).fetchone()
        return None if row is None else Appended(True, *row)

    def delete_records(self, deletion: RecordDeletion) -> int:
        """Removes records and returns how many were removed."""
        self._insert()
        share = self._find(deletion.namespace)
        if share is None:
            return 0
        self._touch(share)
        first, last = record_key(share.number, 0), record_key(share.number, deletion.up_to)
        unindexed = self._count_unindexed(share)
        is_sound = self._index is None or self._remove_from_index(share, first, last)
        count, size, total = self._count(first, last)
        self._connection.execute("DELETE FROM memory WHERE key BETWEEN ? AND ?", (first, last))
        if is_sound and deletion.up_to < share.last_id:
            share.records -= count
            share.bytes -= size
            share.memory_sum -= total
        else:  # the rest is counted, so that removed damage is not counted for ever
            share.records, share.bytes, share.memory_sum = self._count(last + 1, record_key(share.number, MAX_ID))
        if is_sound:
            self.backlog -= unindexed - self._count_unindexed(share)
        else:
            self.backlog = sum(self._count_unindexed(one) for one in self._shares.values())
        return count

    def _count(self, first: int, last: int) -> tuple[int, int, int]:
        """Returns number, bytes and sum of checksums of the records between two keys."""
        counts: tuple[int, int, int] = self._connection.execute(
            "SELECT count(*), coalesce(sum(size), 0), coalesce(sum(sum), 0) FROM memory WHERE key BETWEEN ? AND ?",
            (first, last),
        ).fetchone()
        return counts

    def _remove_from_index(self, share: Share, first: int, last: int) -> bool:
        """Removes records from the index; returns False if one is damaged, and the index was rebuilt.

        What was indexed for a damaged record is unknown."""
        assert self._index is not None
        indexed = min(last, record_key(share.number, share.indexed))
        rows = self._connection.execute(f"SELECT {RECORD} FROM memory WHERE key BETWEEN ? AND ?", (first, indexed))
        try:
            self._index.remove((row[0], parse_record(share.name, row).content) for row in rows)
        except DamagedRow:
            rows.close()
            self._index.begin_anew()
            for one in self._shares.values():
                one.indexed = 0
                self._touched[one.number] = one
            return False
        return True

    # -- configuration

    def apply_config(self, change: ConfigChange) -> ConfigSaved:
        """Sets or removes a value.

        Raises:
            QuotaExceeded: the quota is used up.
        """
        share = self._find(change.extension) or Share(0, change.extension)
        present, revision = self._read_value(share, change)
        if change.if_revision is not None and change.if_revision != revision:
            return ConfigSaved(False, revision)
        if change.value is None and present is None:
            return ConfigSaved(True, 0)
        more = config_value_size(change.key, change.value) - config_value_size(change.key, present)
        more_keys = (change.value is not None) - (present is not None)
        if change.value is not None:
            check_config_quota(
                change.extension, self._limits, keys=share.keys, used=share.key_bytes, more_keys=more_keys, more=more
            )
        share = self._get_row(change.extension)
        share.keys += more_keys
        share.key_bytes += more
        self._revision += 1
        share.revision = self._revision
        self._write_value(share, change)
        self._write_change(share, change)
        return ConfigSaved(True, self._revision)

    def _read_value(self, share: Share, change: ConfigChange) -> tuple[str | None, int]:
        """Returns the value that a change replaces, and its revision. A damaged value is removed first.

        Raises:
            DamagedRow: the value is damaged, and the change depends on it.
        """
        where = "config WHERE extension = ? AND key = ?"
        row = self._connection.execute(f"SELECT {VALUE} FROM {where}", (share.number, change.key)).fetchone()
        if row is None:
            return None, 0
        try:
            _, present, revision = parse_value(share.name, share.number, row)
        except DamagedRow:
            if change.if_revision is not None:
                raise
            self._connection.execute(f"DELETE FROM {where}", (share.number, change.key))
            share.keys, share.key_bytes, share.config_sum = self._connection.execute(
                COUNT_VALUES, (share.number,)
            ).fetchone()
            self._touch(share)
            return None, 0
        return present, revision

    def _write_value(self, share: Share, change: ConfigChange) -> None:
        execute, where = self._connection.execute, (share.number, change.key)
        (row_sum,) = execute("SELECT sum FROM config WHERE extension = ? AND key = ?", where).fetchone() or (0,)
        share.config_sum -= row_sum
        if change.value is None:
            execute("DELETE FROM config WHERE extension = ? AND key = ?", where)
            return
        row_sum = checksum((share.number, change.key, change.value, share.revision))
        share.config_sum += row_sum
        execute(
            "INSERT OR REPLACE INTO config (extension, key, value, revision, sum) VALUES (?, ?, ?, ?, ?)",
            (share.number, change.key, change.value, share.revision, row_sum),
        )

    def _write_change(self, share: Share, change: ConfigChange) -> None:
        execute = self._connection.execute
        row_sum = checksum((share.number, change.key, change.value, share.revision))
        share.changes_sum += row_sum
        execute(
            "INSERT INTO changes (extension, revision, key, value, sum) VALUES (?, ?, ?, ?, ?)",
            (share.number, share.revision, change.key, change.value, row_sum),
        )
        oldest = execute(
            "SELECT revision FROM changes WHERE extension = ? ORDER BY revision DESC LIMIT 1 OFFSET ?",
            (share.number, self._limits.config_log),
        ).fetchone()
        if oldest is not None:
            (share.forgotten,) = oldest
            old = "FROM changes WHERE extension = ? AND revision <= ?"
            where = (share.number, share.forgotten)
            (gone,) = execute(f"SELECT coalesce(sum(sum), 0) {old}", where).fetchone()
            share.changes_sum -= gone
            execute(f"DELETE {old}", where)

    def redact(self, redaction: Redaction) -> None:
        """Overwrites the current and logged values of a key, and their bytes in the file. No revision changes."""
        share = self._find(redaction.extension)
        if share is None:
            return
        execute, key, shown = self._connection.execute, redaction.key, redaction.value
        execute("PRAGMA secure_delete = ON")
        self._is_thorough = True
        present, revision = self._read_value(share, ConfigChange(share.name, key, shown, None))
        if present is not None:
            share.key_bytes += config_value_size(key, shown) - config_value_size(key, present)
            share.config_sum += self._overwrite("config", share, key, revision, shown)
        changes = "SELECT revision FROM changes WHERE extension = ? AND key = ? AND value IS NOT NULL"
        for (revision,) in execute(changes, (share.number, key)).fetchall():
            share.changes_sum += self._overwrite("changes", share, key, revision, shown)
        self._touch(share)

    def _overwrite(self, table: str, share: Share, key: str, revision: int, value: str) -> int:
        """Replaces a value; returns the difference between the new and the old checksum."""
        where = f"{table} WHERE extension = ? AND key = ? AND revision = ?"
        (before,) = self._connection.execute(f"SELECT sum FROM {where}", (share.number, key, revision)).fetchone()
        after = checksum((share.number, key, value, revision))
        self._connection.execute(
            f"UPDATE {where.replace(' WHERE', ' SET value = ?, sum = ? WHERE')}",
            (value, after, share.number, key, revision),
        )
        return int(after - before)

    def accept_losses(self) -> None:
        """Removes the list of losses."""
        self._connection.execute("UPDATE state SET value = NULL WHERE name = 'lost'")

    # -- text index

    def prepare_index(self) -> None:
        """Creates the index, where there is none or one of another version."""
        if self._index is not None:
            self.begin()
            if self._index.prepare():
                for share in self._shares.values():
                    share.indexed = 0
                    self._touched[share.number] = share
            self.commit()
            self._load()

    def index_batch(self) -> bool:
        """Indexes a few more records; returns whether there was anything to do."""
        if self._index is None:
            return False
        if self.backlog == 0:
            return self._index.merge()
        self.begin()
        rows: list[tuple[int, str]] = []
        for share in self._shares.values():
            if share.indexed < share.last_id and len(rows) < INDEX_BATCH:
                rows += self._read_unindexed(share, INDEX_BATCH - len(rows))
        self._index.add(rows)
        self.backlog -= len(rows)
        self.commit()
        self._index.merge()
        return True

    def _read_unindexed(self, share: Share, count: int) -> list[tuple[int, str]]:
        rows = self._connection.execute(
            "SELECT key, CAST(content AS BLOB) FROM memory WHERE key > ? AND key <= ? ORDER BY key LIMIT ?",
            (record_key(share.number, share.indexed), record_key(share.number, MAX_ID), count),
        ).fetchall()
        share.indexed = rows[-1][0] & MAX_ID if len(rows) == count else share.last_id
        self._touched[share.number] = share
        return [(key, content.decode(errors="replace")) for key, content in rows]

    def _count_unindexed(self, share: Share) -> int:
        if self._index is None or share.indexed == share.last_id:
            return 0
        (count,) = self._connection.execute(
            "SELECT count(*) FROM memory WHERE key > ? AND key <= ?",
            (record_key(share.number, share.indexed), record_key(share.number, MAX_ID)),
        ).fetchone()
        return int(count)

    def overwrite_failed_commit(self) -> None:
        """Overwrites what a failed commit may have left after the last good one, so that it cannot reappear."""
        self.begin()
        self._connection.execute("UPDATE state SET value = value + 1 WHERE name = 'mended'")
        self._connection.execute("COMMIT")
