"""What one transaction writes: records, values and removals, each within its extension's share.

Used by one thread. What is known of each extension is held in memory beside the file; whoever rolls back loads it anew.
"""

from __future__ import annotations

import sqlite3
from itertools import chain

import msgspec
from msgspec import Struct

from becket.contract.config import ConfigSaved
from becket.contract.memory import Appended
from becket.limits import Limits
from becket.stores.shares import Entry, check_config_share, check_memory_share, size_of_value
from becket.stores.sqlite.file import HIGHEST_ID, ID_BITS, key_of
from becket.stores.sqlite.text_index import PIECE, TextIndex, is_odd
from becket.stores.store import Clock

__all__ = ["ConfigChange", "Forgetting", "Ledger"]


class ConfigChange(Struct, frozen=True):
    """A value to keep, or to remove where it is None."""

    extension: str
    key: str
    value: str | None
    if_revision: int | None


class Forgetting(Struct, frozen=True):
    """Records to remove: those up to an id."""

    namespace: str
    up_to: int


class Share(Struct):
    """A row of `extensions`."""

    number: int
    name: str
    records: int = 0
    bytes: int = 0
    last_id: int = 0
    peak_ms: int = 0
    disorder_ms: int = 0
    indexed: int = 0
    keys: int = 0
    key_bytes: int = 0
    revision: int = 0
    forgotten: int = 0


Row = tuple[int, int, int | None, int, int | None, str, str | None, str | None, str | None]

COLUMNS = ", ".join(Share.__struct_fields__)
SAVE = f"""
INSERT INTO extensions ({COLUMNS}) VALUES ({", ".join("?" * len(Share.__struct_fields__))})
ON CONFLICT (number) DO UPDATE SET {", ".join(f"{name} = excluded.{name}" for name in Share.__struct_fields__[2:])}
"""
KNOWN = f"SELECT time_ms, key & {HIGHEST_ID} FROM memory WHERE key >> {ID_BITS} = ? AND idem = ?"
INSERT = "INSERT INTO memory (key, time_ms, peak_ms, size, odd, content, tags, meta, idem) VALUES "
ROW = "(?, ?, ?, ?, ?, ?, ?, ?, ?)"
# Rows in one statement: for each of these Python lets go of its lock, and may wait 5 ms to have it back.
ROWS = 64


class Ledger:
    """Works changes into a transaction. `backlog` is how many records are not in the index yet."""

    def __init__(self, connection: sqlite3.Connection, limits: Limits, clock: Clock, index: TextIndex | None) -> None:
        self._connection = connection
        self._limits = limits
        self._clock = clock
        self._index = index
        self._load()

    def _load(self) -> None:
        rows = self._connection.execute(f"SELECT {COLUMNS} FROM extensions ORDER BY number").fetchall()
        self._shares = {share.name: share for share in (Share(*row) for row in rows)}
        self._last_id = max((share.last_id for share in self._shares.values()), default=0)
        self._revision = max((share.revision for share in self._shares.values()), default=0)
        self.backlog = sum(self._count_unindexed(share) for share in self._shares.values())
        self._rows: list[Row] = []
        self._touched: dict[int, Share] = {}
        self._answers: dict[tuple[int, str], Appended] = {}

    # -- one transaction

    def begin(self) -> None:
        """Opens a transaction."""
        self._connection.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        """Makes all since `begin` safe: when it returns, it is on the disk."""
        self._insert()
        self._connection.executemany(SAVE, [msgspec.structs.astuple(share) for share in self._touched.values()])
        self._touched.clear()
        self._answers.clear()
        self._connection.execute("COMMIT")

    def roll_back(self) -> None:
        """Takes back all since `begin`."""
        if self._connection.in_transaction:  # SQLite may have done it already
            self._connection.execute("ROLLBACK")
        self._load()

    def _insert(self) -> None:
        rows, self._rows = self._rows, []
        for start in range(0, len(rows), ROWS):
            some = rows[start : start + ROWS]
            self._connection.execute(INSERT + ", ".join([ROW] * len(some)), [*chain.from_iterable(some)])
        if self._index is not None:
            self.backlog += len(rows)

    def _share(self, name: str) -> Share:
        """Returns the share of an extension, which will be saved."""
        share = self._shares.get(name)
        if share is None:
            share = self._shares[name] = Share(len(self._shares) + 1, name)
        self._touched[share.number] = share
        return share

    # -- memory

    def append(self, entry: Entry) -> Appended:
        """Keeps a record.

        Raises:
            QuotaExceeded: the share is used up.
        """
        share = self._shares.get(entry.namespace)
        if share is None:
            check_memory_share(entry.namespace, self._limits, records=0, used=0, more=entry.size)
            share = self._share(entry.namespace)
        else:
            known = None if entry.idem is None else self._find_answer(share, entry.idem)
            if known is not None:
                return known
            check_memory_share(entry.namespace, self._limits, records=share.records, used=share.bytes, more=entry.size)
            self._touched[share.number] = share
        return self._add(share, entry)

    def _add(self, share: Share, entry: Entry) -> Appended:
        now = max(0, self._clock())
        self._last_id += 1
        answer = Appended(True, now, self._last_id)
        is_peak = now >= share.peak_ms
        share.records += 1
        share.bytes += entry.size
        share.last_id = self._last_id
        if is_peak:
            share.peak_ms = now
        else:
            share.disorder_ms = max(share.disorder_ms, share.peak_ms - now)
        self._rows.append(
            (
                key_of(share.number, self._last_id),
                now,
                None if is_peak else share.peak_ms,
                entry.size,
                1 if is_odd(entry.content) else None,
                entry.content,
                msgspec.json.encode(entry.tags).decode() if entry.tags else None,
                None if entry.meta is None else entry.meta.decode(),
                entry.idem,
            )
        )
        if entry.idem is not None:
            self._answers[share.number, entry.idem] = answer
        return answer

    def _find_answer(self, share: Share, idem: str) -> Appended | None:
        known = self._answers.get((share.number, idem))
        if known is not None:
            return known
        row = self._connection.execute(KNOWN, (share.number, idem)).fetchone()
        return None if row is None else Appended(True, *row)

    def forget(self, forgetting: Forgetting) -> int:
        """Removes records and returns how many there were."""
        self._insert()
        share = self._shares.get(forgetting.namespace)
        if share is None:
            return 0
        self._touched[share.number] = share
        first, last = key_of(share.number, 0), key_of(share.number, forgetting.up_to)
        if self._index is not None:
            indexed = min(last, key_of(share.number, share.indexed))
            self._index.remove(
                self._connection.execute("SELECT key, content FROM memory WHERE key BETWEEN ? AND ?", (first, indexed))
            )
        unindexed = self._count_unindexed(share)
        (size,) = self._connection.execute(
            "SELECT coalesce(sum(size), 0) FROM memory WHERE key BETWEEN ? AND ?", (first, last)
        ).fetchone()
        count = self._connection.execute("DELETE FROM memory WHERE key BETWEEN ? AND ?", (first, last)).rowcount
        share.records -= count
        share.bytes -= size
        self.backlog -= unindexed - self._count_unindexed(share)
        return count

    # -- configuration

    def change(self, change: ConfigChange) -> ConfigSaved:
        """Keeps or removes a value.

        Raises:
            QuotaExceeded: the share is used up.
        """
        share = self._shares.get(change.extension) or Share(0, change.extension)
        where = (share.number, change.key)
        row = self._connection.execute(
            "SELECT value, revision FROM config WHERE extension = ? AND key = ?", where
        ).fetchone()
        present, revision = row or (None, 0)
        if change.if_revision is not None and change.if_revision != revision:
            return ConfigSaved(False, revision)
        if change.value is None and present is None:
            return ConfigSaved(True, 0)
        more = size_of_value(change.key, change.value) - size_of_value(change.key, present)
        more_keys = (change.value is not None) - (present is not None)
        if change.value is not None:
            check_config_share(
                change.extension, self._limits, keys=share.keys, used=share.key_bytes, more_keys=more_keys, more=more
            )
        share = self._share(change.extension)
        share.keys += more_keys
        share.key_bytes += more
        self._revision += 1
        share.revision = self._revision
        self._write_value(share, change)
        self._write_change(share, change)
        return ConfigSaved(True, self._revision)

    def _write_value(self, share: Share, change: ConfigChange) -> None:
        if change.value is None:
            self._connection.execute("DELETE FROM config WHERE extension = ? AND key = ?", (share.number, change.key))
        else:
            self._connection.execute(
                "INSERT OR REPLACE INTO config (extension, key, value, revision) VALUES (?, ?, ?, ?)",
                (share.number, change.key, change.value, share.revision),
            )

    def _write_change(self, share: Share, change: ConfigChange) -> None:
        execute = self._connection.execute
        execute(
            "INSERT INTO changes (extension, revision, key, value) VALUES (?, ?, ?, ?)",
            (share.number, share.revision, change.key, change.value),
        )
        oldest = execute(
            "SELECT revision FROM changes WHERE extension = ? ORDER BY revision DESC LIMIT 1 OFFSET ?",
            (share.number, self._limits.config_log),
        ).fetchone()
        if oldest is not None:
            (share.forgotten,) = oldest
            execute("DELETE FROM changes WHERE extension = ? AND revision <= ?", (share.number, share.forgotten))

    # -- the index, behind the records

    def prepare_index(self) -> None:
        """Makes the index, where there is none or one of another form."""
        if self._index is not None:
            self.begin()
            if self._index.prepare():
                self._connection.execute("UPDATE extensions SET indexed = 0")
            self._connection.execute("COMMIT")
            self._load()

    def index_some(self) -> bool:
        """Puts a few records more into the index; returns whether there was anything to do."""
        if self._index is None:
            return False
        if self.backlog == 0:
            return self._index.merge()
        self.begin()
        rows: list[tuple[int, str]] = []
        for share in self._shares.values():
            if share.indexed < share.last_id and len(rows) < PIECE:
                rows += self._take_unindexed(share, PIECE - len(rows))
        self._index.add(rows)
        self.backlog -= len(rows)
        self.commit()
        self._index.merge()
        return True

    def _take_unindexed(self, share: Share, count: int) -> list[tuple[int, str]]:
        rows = self._connection.execute(
            "SELECT key, content FROM memory WHERE key > ? AND key <= ? ORDER BY key LIMIT ?",
            (key_of(share.number, share.indexed), key_of(share.number, HIGHEST_ID), count),
        ).fetchall()
        share.indexed = rows[-1][0] & HIGHEST_ID if len(rows) == count else share.last_id
        self._touched[share.number] = share
        return rows

    def _count_unindexed(self, share: Share) -> int:
        if self._index is None or share.indexed == share.last_id:
            return 0
        (count,) = self._connection.execute(
            "SELECT count(*) FROM memory WHERE key > ? AND key <= ?",
            (key_of(share.number, share.indexed), key_of(share.number, HIGHEST_ID)),
        ).fetchone()
        return int(count)

    def mend(self) -> None:
        """Writes over what a commit that failed may have left behind the last good one, so that it cannot come back."""
        self.begin()
        self._connection.execute("UPDATE state SET value = value + 1 WHERE name = 'mended'")
        self._connection.execute("COMMIT")
