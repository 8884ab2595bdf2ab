"""Reads a whole store and tells what in it was lost or changed: every row, its counters, its index, and its mark.

A record is known by its checksum; one that is missing, or there again after it was removed, by the sum of them that the
extension's row has. The index must give for each trigram the sum of the keys of the records that have it.
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
from becket.stores.sqlite.mark import Reached, read_mark
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

MOST = 100  # findings of SQLite itself
PRIME = 2**31 - 1  # keys count modulo this, so that no sum of them overflows
TYPES = (
    "typeof(time_ms) = 'integer' AND typeof(size) = 'integer' AND typeof(content) = 'text'"
    " AND typeof(peak_ms) IN ('integer', 'null') AND typeof(odd) IN ('integer', 'null')"
    " AND typeof(tags) IN ('text', 'null') AND typeof(meta) IN ('text', 'null') AND typeof(idem) IN ('text', 'null')"
)


def verify(path: Path, *, has_index: bool) -> list[Damage]:
    """Returns what is damaged in the store at this path, as it is at one moment."""
    try:
        marked = read_mark(path)
    except ValueError as error:
        return [
            Damage(None, "the mark", f"{error}; it is written anew with the next change"),
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
    """One look at everything, through a connection that sees one moment of the store."""

    def __init__(self, connection: sqlite3.Connection, *, has_index: bool) -> None:
        self._connection = connection
        self._has_index = has_index
        self._shares: dict[int, Share] = {}
        self._grams: defaultdict[str, int] = defaultdict(int)  # each trigram: the sum that its keys should have
        self._are_all_known = True  # all extensions
        self._is_sound = True  # all records

    def run(self, marked: Reached | None) -> Iterator[Damage]:
        """Yields what is damaged. What SQLite cannot read ends a part, not all of it."""
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
        for (verdict,) in self._connection.execute(f"PRAGMA integrity_check({MOST})"):
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
            key, size, kept, has_types = row[0], row[3], row[-2], row[-1]
            share = self._shares.get(key >> ID_BITS)
            if share is None:
                self._is_sound = False
                yield Damage(None, f"record {key & MAX_ID}", "it belongs to no extension that is known")
                continue
            try:
                record = parse_record(share.name, row[:-1])
                if not has_types:
                    raise DamagedRow(share.name, f"record {record.id}", "a column has another type")
            except DamagedRow as damaged:
                self._is_sound = False
                yield damaged.as_damage()
            else:
                if self._has_index and key & MAX_ID <= share.indexed:
                    part = key % PRIME
                    for gram in grams_of(record.content):
                        self._grams[gram] += part
            for place, more in enumerate((1, size, kept)):
                counted[share.number][place] += more if isinstance(more, int) else 0
        for number, (records, size, total) in counted.items():
            share = self._shares[number]
            if records != share.records:
                self._is_sound = False
                yield Damage(share.name, "records", f"{share.records} were kept, and {records} are there")
            elif (size, total) != (share.bytes, share.memory_sum):
                self._is_sound = False
                yield Damage(share.name, "records", "they are not those that were kept")

    # -- configuration

    def _values(self) -> Iterator[Damage]:
        for table, columns, name in (("config", VALUE, "config_sum"), ("changes", CHANGE, "changes_sum")):
            counted = dict.fromkeys(self._shares, 0)
            keys = dict.fromkeys(self._shares, 0)
            rows = self._connection.execute(f"SELECT extension, {columns} FROM {table}").fetchall()
            for number, *row in rows:
                share = self._shares.get(number)
                if share is None:
                    yield Damage(None, f"a row of {table}", "it belongs to no extension that is known")
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
                        share.name, "configuration", f"{share.keys} values were kept, {keys[number]} are there"
                    )
                elif total != getattr(share, name):
                    what = "configuration" if table == "config" else "the log of changes of the configuration"
                    yield Damage(share.name, what, "it has not the rows that were kept")

    # -- the index

    def _index(self) -> Iterator[Damage]:
        if not self._has_index or not self._is_sound:
            return  # without all records there is nothing to compare it with
        if self._connection.execute("SELECT value FROM state WHERE name = 'index'").fetchone() != (INDEX_VERSION,):
            return  # there is none yet
        self._connection.execute(VOCABULARY)
        try:
            found = read(self._connection, f"SELECT term, sum(-doc % {PRIME}) FROM temp.grams GROUP BY term")
            wrong = sum(self._grams.pop(gram, None) != total for gram, total in found) + len(self._grams)
        except sqlite3.Error as error:
            yield Damage(None, "the index of texts", f"{error}; it is made anew when the store is opened again")
            return
        if wrong:
            problem = f"{wrong} of its entries do not fit the records; it is made anew when the store is opened again"
            yield Damage(None, "the index of texts", problem)

    # -- what is not there

    def _loss(self, marked: Reached | None) -> Iterator[Damage]:
        fresh: list[Damage] = []
        if marked is not None and self._are_all_known:
            fresh = find_loss(self._connection, marked, measure(self._shares.values()))
        yield from fresh
        row = self._connection.execute("SELECT CAST(value AS BLOB) FROM state WHERE name = 'lost'").fetchone()
        if row is None:
            yield Damage(None, "the table `state`", "it has not the rows that were kept")
        elif row[0] is not None:
            yield from parse_losses(row[0])


def find_loss(connection: sqlite3.Connection, marked: Reached, reached: Reached) -> list[Damage]:
    """Returns what a store that has come as far as `reached` has lost of what its mark counts, if not noted yet."""
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
    problem = f"acknowledged and lost ({commits}); what was removed by them may be there again"
    return [Damage(None, what, problem)]


def parse_losses(data: bytes) -> list[Damage]:
    """Returns the losses that were noted when the store was opened."""
    try:
        return msgspec.json.decode(data, type=list[Damage])
    except JSON_ERRORS:
        return [Damage(None, "the note of earlier losses", "it cannot be read")]


def keep_losses(connection: sqlite3.Connection, losses: Iterable[Damage], marked: Reached | None) -> None:
    """Notes losses in the store, up to this mark: `verify` reports them until somebody accepts them."""
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
