"""Reads a whole store and reports what was lost or changed: every row, its counters, its index and its mark.

A changed record is detected by its checksum; a missing one, or one that reappeared after its removal, by the sum of
checksums in the extension's row. For each trigram, the index must have the sum of the keys of the records that
contain it.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from becket.errors import JSON_ERRORS
from becket.stores.sqlite.commit_mark import Reached, read_mark
from becket.stores.sqlite.rows import (
    CHANGE,
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
from becket.stores.sqlite.schema import ID_BITS, MAX_ID, check_schema, open_database
from becket.stores.sqlite.text_index import INDEX_VERSION, VOCABULARY, grams_of
from becket.stores.store import Damage

__all__ = ["find_loss", "keep_losses", "verify"]

MAX_FINDINGS = 100  # findings of SQLite's own check
PRIME = 2**31 - 1  # sums of keys are modulo this, so that they do not overflow
TYPES = (
    "typeof(time_ms) = 'integer' AND typeof(size) = 'integer' AND typeof(content) = 'text'"
    " AND typeof(peak_ms) IN ('integer', 'null') AND typeof(odd) IN ('integer', 'null')"
    " AND typeof(tags) IN ('text', 'null') AND typeof(meta) IN ('text', 'null') AND typeof(idem) IN ('text', 'null')"
)


def verify(path: Path, *, has_index: bool) -> list[Damage]:
    """Returns what is damaged in the store at this path, in one snapshot."""
    try:
        marked = read_mark(path)
    except ValueError as error:
        return [
            Damage(None, "the mark", f"{error}; it is rewritten with the next change"),
            *look(path, None, has_index),
        ]
    return look(path, marked, has_index)


def look(path: Path, marked: Reached | None, has_index: bool) -> list[Damage]:
    try:
        with closing(open_database(path)) as connection:
            connection.execute("BEGIN")
            return [*Examination(connection, has_index=has_index).run(marked)]
    except sqlite3.Error as error:
        return [Damage(None, "the file", str(error))]


class Examination:
    """One verification, through a connection with one snapshot of the store."""

    def __init__(self, connection: sqlite3.Connection, *, has_index: bool) -> None:
        self._connection = connection
        self._has_index = has_index
        self._shares: dict[int, Share] = {}
        self._grams: defaultdict[str, int] = defaultdict(int)  # for each trigram the expected sum of keys
        self._are_all_known = True  # whether all rows of `extensions` are intact
        self._is_sound = True  # whether all records are intact

    def run(self, marked: Reached | None) -> Iterator[Damage]:
        """Yields all damage. What SQLite cannot read ends one part, not all of them."""
        parts = (self._file(), self._extensions(), self._records(), self._values(), self._index(), self._loss(marked))
        for part in parts:
            try:
                yield from part
            except DamagedRow as damaged:
                yield damaged.as_damage()
            except sqlite3.Error as error:
                self._is_sound = False
                yield Damage(None, "the file", str(error))

    def _file(self) -> Iterator[Damage]:
        check_schema(self._connection)
        for (verdict,) in self._connection.execute(f"PRAGMA integrity_check({MAX_FINDINGS})"):
            if verdict != "ok":
                yield Damage(None, "the file", verdict)

    def _extensions(self) -> Iterator[Damage]:
        for row in self._connection.execute(f"SELECT {SHARE} FROM extensions ORDER BY number").fetchall():
            try:
                share = parse_share(row)
            except DamagedRow as damaged:
                self._are_all_known = False
                yield damaged.as_damage()
            else:
                self._shares[share.number] = share

    # -- records

    def _records(self) -> Iterator[Damage]:
        counted = {number: [0, 0, 0] for number in self._shares}
        for row in read(self._connection, f"SELECT {RECORD}, {TYPES} FROM memory ORDER BY key"):
            key, size, row_sum, has_types = row[0], row[3], row[-2], row[-1]
            share = self._shares.get(key >> ID_BITS)
            if share is None:
                self._is_sound = False
                yield Damage(None, f"record {key & MAX_ID}", "it belongs to no known extension")
                continue
            try:
                record = parse_record(share.name, row[:-1])
                if not has_types:
                    raise DamagedRow(share.name, f"record {record.id}", "a column has the wrong type")
            except DamagedRow as damaged:
                self._is_sound = False
                yield damaged.as_damage()
            else:
                if self._has_index and key & MAX_ID <= share.indexed:
                    part = key % PRIME
                    for gram in grams_of(record.content):
                        self._grams[gram] += part
            for column, more in enumerate((1, size, row_sum)):
                counted[share.number][column] += more if isinstance(more, int) else 0
        for number, (records, size, total) in counted.items():
            share = self._shares[number]
            if records != share.records:
                self._is_sound = False
                yield Damage(share.name, "records", f"{share.records} were stored, {records} were found")
            elif (size, total) != (share.bytes, share.memory_sum):
                self._is_sound = False
                yield Damage(share.name, "records", "they are not those that were stored")

    # -- configuration

    def _values(self) -> Iterator[Damage]:
        for table, columns, name in (("config", VALUE, "config_sum"), ("changes", CHANGE, "changes_sum")):
            counted = dict.fromkeys(self._shares, 0)
            keys = dict.fromkeys(self._shares, 0)
            rows = self._connection.execute(f"SELECT extension, {columns} FROM {table}").fetchall()
            for number, *row in rows:
                share = self._shares.get(number)
                if share is None:
                    yield Damage(None, f"a row of {table}", "it belongs to no known extension")
                    continue
                keys[number] += 1
                try:
                    parse_value(share.name, number, row)
                except DamagedRow as damaged:
                    yield damaged.as_damage()
                counted[number] += row[-1] if isinstance(row[-1], int) else 0
            for number, total in counted.items():
                share = self._shares[number]
                if table == "config" and keys[number] != share.keys:
                    yield Damage(
                        share.name, "configuration", f"{share.keys} values were stored, {keys[number]} were found"
                    )
                elif total != getattr(share, name):
                    what = "configuration" if table == "config" else "the log of configuration changes"
                    yield Damage(share.name, what, "its rows are not those that were stored")

    # -- the index

    def _index(self) -> Iterator[Damage]:
        if not self._has_index or not self._is_sound:
            return  # the index can only be compared with all records
        if self._connection.execute("SELECT value FROM state WHERE name = 'index'").fetchone() != (INDEX_VERSION,):
            return  # no index yet
        self._connection.execute(VOCABULARY)
        try:
            found = read(self._connection, f"SELECT term, sum(-doc % {PRIME}) FROM temp.grams GROUP BY term")
            wrong = sum(self._grams.pop(gram, None) != total for gram, total in found) + len(self._grams)
        except sqlite3.Error as error:
            yield Damage(None, "the index of texts", f"{error}; it is rebuilt when the store is next opened")
            return
        if wrong:
            problem = f"{wrong} of its entries do not match the records; it is rebuilt when the store is next opened"
            yield Damage(None, "the index of texts", problem)

    # -- losses

    def _loss(self, marked: Reached | None) -> Iterator[Damage]:
        fresh: list[Damage] = []
        if marked is not None and self._are_all_known:
            fresh = find_loss(self._connection, marked, measure(self._shares.values()))
        yield from fresh
        row = self._connection.execute("SELECT CAST(value AS BLOB) FROM state WHERE name = 'lost'").fetchone()
        if row is None:
            yield Damage(None, "the table `state`", "its rows are not those that were stored")
        elif row[0] is not None:
            yield from parse_losses(row[0])


def find_loss(connection: sqlite3.Connection, marked: Reached, reached: Reached) -> list[Damage]:
    """Returns what a store with the progress `reached` has lost of what its mark counts, if not recorded yet."""
    (noted,) = connection.execute("SELECT value FROM state WHERE name = 'noted'").fetchone() or (0,)
    if marked.commits <= reached.commits or marked.commits == noted:
        return []
    commits = f"commits {reached.commits + 1} to {marked.commits}"
    parts: list[str] = []
    if marked.last_id > reached.last_id:
        parts.append(f"records {reached.last_id + 1} to {marked.last_id}")
    if marked.revision > reached.revision:
        parts.append(f"configuration changes {reached.revision + 1} to {marked.revision}")
    what = " and ".join(parts) or commits
    problem = f"acknowledged and lost ({commits}); data that they removed may have reappeared"
    return [Damage(None, what, problem)]


def parse_losses(data: bytes) -> list[Damage]:
    """Returns the losses recorded when the store was opened."""
    try:
        return msgspec.json.decode(data, type=list[Damage])
    except JSON_ERRORS:
        return [Damage(None, "the list of earlier losses", "it cannot be read")]


def keep_losses(connection: sqlite3.Connection, losses: Iterable[Damage], marked: Reached | None) -> None:
    """Records losses in the store, up to this mark: `verify` reports them until they are accepted."""
    connection.execute("BEGIN IMMEDIATE")
    (data,) = connection.execute("SELECT CAST(value AS BLOB) FROM state WHERE name = 'lost'").fetchone()
    known = [] if data is None else parse_losses(data)
    known += [loss for loss in losses if loss not in known]
    connection.execute("UPDATE state SET value = ? WHERE name = 'lost'", (msgspec.json.encode(known).decode(),))
    if marked is not None:
        connection.execute("UPDATE state SET value = ? WHERE name = 'noted'", (marked.commits,))
    connection.execute("COMMIT")


def read(connection: sqlite3.Connection, statement: str) -> Generator[Any, None, None]:
    with closing(connection.execute(statement)) as cursor:
        yield from cursor
