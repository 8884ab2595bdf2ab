"""Runs queries on pooled read-only connections, each in one snapshot and within a deadline.

No cursor stays open when a query has been answered: an open one would keep the file from being tidied.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Lock, Semaphore
from time import monotonic
from typing import Any

import msgspec
from msgspec import Raw

from becket.contract.config import ConfigChanged, ConfigValue
from becket.contract.memory import Record, Records
from becket.errors import LocalProtocolError, QueryTimeout
from becket.stores.query_filter import RecordFilter, fill_page, rank_texts
from becket.stores.sqlite.causes import primary_code
from becket.stores.sqlite.rows import (
    CHANGE,
    RECORD,
    SHARE,
    VALUE,
    Share,
    parse_record,
    parse_share,
    parse_text,
    parse_value,
)
from becket.stores.sqlite.schema import MAX_ID, open_database, record_key
from becket.stores.sqlite.text_index import NOTHING, VOCABULARY, build_match_expression, match_short_words
from becket.stores.store import Snapshot

__all__ = ["ReaderPool"]

MAX_CONNECTIONS = 4
PROGRESS_STEPS = 10_000  # of SQLite between two looks at the time: a millisecond
DEADLINE_INTERVAL = 256  # records between two looks at the time
MAX_TIME_MS = 2**63 - 1

Row = Sequence[Any]  # of the columns of RECORD
CONTENT = 5  # its place in it
FILTER_SQL = "memory.time_ms BETWEEN :since AND :until AND (:tag IS NULL OR instr(memory.tags, :tag))"
SCAN_SQL = f"SELECT {RECORD} FROM memory WHERE key BETWEEN :low AND :high AND {FILTER_SQL}{{}} ORDER BY key DESC"
INDEX_SQL = f"""
SELECT {RECORD} FROM memory_text CROSS JOIN memory ON memory.key = -memory_text.rowid
WHERE memory_text MATCH :match AND memory_text.rowid BETWEEN -:high AND -:low AND {FILTER_SQL}{{}}
ORDER BY memory_text.rowid
"""
HAS_MORE_THAN_ASCII = "length(memory.content) < length(CAST(memory.content AS BLOB))"


class QueryDeadline:
    """When a query is given up."""

    __slots__ = ("_until", "seconds")

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._until = monotonic() + seconds

    def has_passed(self) -> bool:
        return monotonic() >= self._until

    @property
    def remaining(self) -> float:
        return max(0.0, self._until - monotonic())

    def check(self) -> None:
        """Raises QueryTimeout when it has passed."""
        if self.has_passed():
            raise QueryTimeout(self.seconds)


class ReaderPool:
    """A few connections that only read, lent to whoever asks."""

    def __init__(self, path: Path, *, has_index: bool) -> None:
        self._path = path
        self._has_index = has_index
        self._free: list[sqlite3.Connection] = []
        self._lock = Lock()
        self._permits = Semaphore(MAX_CONNECTIONS)
        self._is_closed = False

    def close(self) -> None:
        """Closes all connections, when those that are lent have come back."""
        for _ in range(MAX_CONNECTIONS):
            self._permits.acquire()
        self._is_closed = True
        for connection in self._free:
            connection.close()
        self._permits.release(MAX_CONNECTIONS)

    def _connect(self) -> sqlite3.Connection:
        connection = open_database(self._path)
        if self._has_index:
            connection.execute(VOCABULARY)
        connection.execute("PRAGMA query_only = ON")
        return connection

    @contextmanager
    def acquire(self, seconds: float) -> Generator[tuple[sqlite3.Connection, QueryDeadline]]:
        """Lends a connection within a transaction, for so many seconds."""
        deadline = QueryDeadline(seconds)
        if not self._permits.acquire(timeout=deadline.remaining):
            raise QueryTimeout(seconds)
        try:
            if self._is_closed:
                raise LocalProtocolError("the store is closed")
            with self._lock:
                free = self._free.pop() if self._free else None
            connection = free or self._connect()
            connection.set_progress_handler(deadline.has_passed, PROGRESS_STEPS)
            try:
                connection.execute("BEGIN")
                yield connection, deadline
            except sqlite3.OperationalError as error:
                if primary_code(error) == sqlite3.SQLITE_INTERRUPT:
                    raise QueryTimeout(seconds) from error
                raise
            finally:
                connection.set_progress_handler(None, 0)
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                with self._lock:
                    self._free.append(connection)
        finally:
            self._permits.release()

    # -- memory

    def query(self, wanted: RecordFilter, seconds: float) -> list[Record]:
        """Returns the newest records that are wanted.

        Raises:
            QueryTimeout: it took longer than `seconds`.
        """
        with self._find(wanted, seconds) as found:
            return [parse_record(wanted.namespace, row) for row in found]

    def query_page(self, wanted: RecordFilter, most_bytes: int, seconds: float) -> Records:
        """Returns the newest records that are wanted, as far as they fit into a response. Their `meta` is JSON text.

        Raises:
            QueryTimeout: it took longer than `seconds`.
        """
        with self._find(wanted, seconds) as found:  # read one by one: all of them may be 20 times as much as fits
            return fill_page((parse_record(wanted.namespace, row, read_meta=as_json) for row in found), most_bytes)

    def search(self, wanted: RecordFilter, limit: int, seconds: float) -> list[Record]:
        """Returns the best of the newest records that are wanted.

        Raises:
            QueryTimeout: it took longer than `seconds`.
        """
        with self._find(wanted, seconds) as rows:
            found = [*rows]
        best = rank_texts([content_of(row, wanted).casefold() for row in found], wanted.words)[:limit]
        return [parse_record(wanted.namespace, found[place]) for place in best]

    @contextmanager
    def _find(self, wanted: RecordFilter, seconds: float) -> Generator[Iterator[Row]]:
        with self.acquire(seconds) as (connection, deadline):
            deadline.check()
            share = find_share(connection, wanted.namespace)
            if share is None:
                yield iter(())
                return
            # Closed before the transaction ends: else the rest of the rows would keep it open.
            found = self._candidates(connection, share, wanted)
            try:
                yield filter_rows(found, wanted, deadline)
            finally:
                found.close()

    def _candidates(
        self, connection: sqlite3.Connection, place: Share, wanted: RecordFilter
    ) -> Generator[Row, None, None]:
        """Yields records that may be wanted, and all that are, the newest first."""
        low, high = find_key_range(connection, place, wanted)
        parameters: dict[str, object] = {
            "since": min(wanted.since_ms, MAX_TIME_MS),
            "until": MAX_TIME_MS if wanted.until_ms is None else min(wanted.until_ms, MAX_TIME_MS),
            "tag": None if wanted.tag_prefix is None else tag_prefix_json(wanted.tag_prefix),
            "low": low,
            "high": high,
        }
        conditions, patterns = build_like_filter(wanted.words)
        parameters |= patterns
        match = self._match(connection, wanted) if self._has_index and place.indexed else None
        if match is None:
            yield from iter_rows(connection, SCAN_SQL.format(conditions), parameters)
            return
        indexed = record_key(place.number, place.indexed)
        yield from iter_rows(connection, SCAN_SQL.format(conditions), parameters | {"low": max(low, indexed + 1)})
        if match == NOTHING:
            return
        parameters |= {"high": min(high, indexed), "match": match}
        yield from iter_rows(connection, INDEX_SQL.format(conditions), parameters)

    def _match(self, connection: sqlite3.Connection, wanted: RecordFilter) -> str | None:
        """Returns an expression for the index, None where it is of no use."""
        words = build_match_expression(wanted.words)
        return words if words is not None else match_short_words(wanted.words, partial(find_gram, connection))

    # -- configuration

    def get_config(self, extension: str, key: str, seconds: float) -> ConfigValue:
        """Returns a value and its revision."""
        with self.acquire(seconds) as (connection, _):
            share = find_share(connection, extension)
            rows = [] if share is None else read_values(connection, share, "config.key = ?", key)
        return ConfigValue(*rows[0][1:]) if rows else ConfigValue(None, 0)

    def read_config(self, extension: str, keys: tuple[str, ...] | None, seconds: float) -> Snapshot:
        """Returns all values, or those of some keys, at one revision."""
        with self.acquire(seconds) as (connection, _):
            share = find_share(connection, extension)
            rows = [] if share is None else read_values(connection, share, "TRUE")
            revision = read_revision(connection)
        return Snapshot(revision, {key: value for key, value, _ in rows if keys is None or key in keys})

    def read_changes(
        self, extension: str, since: int, keys: tuple[str, ...] | None, seconds: float
    ) -> list[ConfigChanged] | None:
        """Returns the changes after a revision, None where some are forgotten."""
        with self.acquire(seconds) as (connection, _):
            if since > read_revision(connection):
                return None
            share = find_share(connection, extension)
            if share is None:
                return []
            if since < share.forgotten:
                return None
            rows = connection.execute(
                f"SELECT {CHANGE} FROM changes WHERE extension = ? AND revision > ? ORDER BY revision",
                (share.number, since),
            ).fetchall()
            changes = [ConfigChanged(*parse_value(extension, share.number, row)) for row in rows]
        return [change for change in changes if keys is None or change.key in keys]


def find_share(connection: sqlite3.Connection, name: str) -> Share | None:
    """Returns the row of an extension; None where it has nothing.

    Raises:
        DamagedRow: it is damaged.
    """
    row = connection.execute(f"SELECT {SHARE} FROM extensions WHERE name = ?", (name,)).fetchone()
    return None if row is None else parse_share(row)


def read_values(
    connection: sqlite3.Connection, share: Share, condition: str, *arguments: str
) -> list[tuple[str, str, int]]:
    """Returns keys, values and revisions of an extension."""
    statement = f"SELECT {VALUE} FROM config WHERE extension = ? AND {condition}"
    rows = connection.execute(statement, (share.number, *arguments)).fetchall()
    return [parse_value(share.name, share.number, row) for row in rows]


def iter_rows(
    connection: sqlite3.Connection, statement: str, parameters: Mapping[str, object]
) -> Generator[Row, None, None]:
    """Yields the rows of a statement, and closes it whenever it is left."""
    cursor = connection.execute(statement, parameters)
    try:
        yield from cursor
    finally:
        cursor.close()


def build_like_filter(words: Sequence[str]) -> tuple[str, dict[str, str]]:
    """Returns conditions that all records hold which have these folded words, and what they need of the words.

    SQLite sorts out most others by them. Python would do it too, and be held up meanwhile."""
    conditions = ""
    patterns: dict[str, str] = {}
    for number, word in enumerate(words):
        ascii_part = longest_ascii(word)
        if ascii_part:
            conditions += f" AND (memory.odd OR memory.content LIKE :word{number} ESCAPE '\\')"
            patterns[f"word{number}"] = f"%{escape_like(ascii_part)}%"
        else:
            conditions += f" AND {HAS_MORE_THAN_ASCII}"
    return conditions, patterns


def longest_ascii(word: str) -> str:
    """Returns a part of a word that `LIKE` compares as folding does, unless a text is odd."""
    return max("".join(letter if letter.isascii() else "\x80" for letter in word).split("\x80"), key=len)


def escape_like(word: str) -> str:
    return word.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def find_gram(connection: sqlite3.Connection, low: str, end: str) -> str | None:
    """Returns the first trigram of the index from `low` on, None where there is none before `end`."""
    row = connection.execute("SELECT term FROM temp.grams WHERE term >= ? AND term < ? LIMIT 1", (low, end)).fetchone()
    return None if row is None else str(row[0])


def read_revision(connection: sqlite3.Connection) -> int:
    (revision,) = connection.execute("SELECT coalesce(max(revision), 0) FROM extensions").fetchone()
    return int(revision)


def filter_rows(rows: Iterable[Row], wanted: RecordFilter, deadline: QueryDeadline) -> Iterator[Row]:
    """Yields the rows that are wanted, as many as there is room for."""
    room = wanted.limit
    for number, row in enumerate(rows):
        if room == 0:
            return
        if number % DEADLINE_INTERVAL == 0:
            deadline.check()
        if wanted.words and not wanted.matches_text(content_of(row, wanted).casefold()):
            continue
        if wanted.tag_prefix is not None and not wanted.matches_tags(parse_record(wanted.namespace, row).tags):
            continue
        room -= 1
        yield row


def as_json(text: str) -> Raw:
    return Raw(text.encode())


def content_of(row: Row, wanted: RecordFilter) -> str:
    content: str = parse_text(row[CONTENT], wanted.namespace, f"record {row[0] & MAX_ID}")
    return content


def tag_prefix_json(prefix: str) -> str:
    """Returns what the JSON of tags has where one of them begins so. It may have it elsewhere too."""
    return msgspec.json.encode(prefix).decode()[:-1]


# -- the records of a time


def find_key_range(connection: sqlite3.Connection, place: Share, wanted: RecordFilter) -> tuple[int, int]:
    """Returns two keys between which all records of the wanted time are; most others are not."""
    low, high = record_key(place.number, 0), record_key(place.number, place.last_id)
    if wanted.until_ms is not None:
        # What is not later than this has no peak later than this plus the disorder.
        high = find_first_key_at(connection, low, high, wanted.until_ms + place.disorder_ms + 1) - 1
    if wanted.since_ms > place.peak_ms:
        return high + 1, high
    if wanted.since_ms > 0:
        low = find_first_key_at(connection, low, high, wanted.since_ms)
    return low, high


def find_first_key_at(connection: sqlite3.Connection, low: int, high: int, time_ms: int) -> int:
    """Returns the first key from `low` on behind which every peak is this time or later; beyond `high` if none is."""
    end = high + 1
    while low < end:
        middle = (low + end) // 2
        row = connection.execute(
            "SELECT key, coalesce(peak_ms, time_ms) FROM memory WHERE key BETWEEN ? AND ? ORDER BY key LIMIT 1",
            (middle, high),
        ).fetchone()
        if row is None or row[1] >= time_ms:
            end = middle
        else:
            low = row[0] + 1
    return end
