"""Runs queries on pooled read-only connections, each in one snapshot and within a deadline.

No cursor stays open after a query: it would prevent checkpoints.
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
from becket.stores.sqlite.disk_errors import primary_code
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
PROGRESS_STEPS = 10_000  # SQLite instructions between two checks of the deadline: a millisecond
DEADLINE_INTERVAL = 256  # records between two checks of the deadline
MAX_TIME_MS = 2**63 - 1

Row = Sequence[Any]  # of the columns of RECORD
CONTENT = 5  # its index in a row
FILTER_SQL = "memory.time_ms BETWEEN :since AND :until AND (:tag IS NULL OR instr(memory.tags, :tag))"
SCAN_SQL = f"SELECT {RECORD} FROM memory WHERE key BETWEEN :low AND :high AND {FILTER_SQL}{{}} ORDER BY key DESC"
INDEX_SQL = f"""
SELECT {RECORD} FROM memory_text CROSS JOIN memory ON memory.key = -memory_text.rowid
WHERE memory_text MATCH :match AND memory_text.rowid BETWEEN -:high AND -:low AND {FILTER_SQL}{{}}
ORDER BY memory_text.rowid
"""
HAS_MORE_THAN_ASCII = "length(memory.content) < length(CAST(memory.content AS BLOB))"


class QueryDeadline:
    """The time at which a query is stopped."""

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
        """Raises QueryTimeout if the deadline has passed."""
        if self.has_passed():
            raise QueryTimeout(self.seconds)


class ReaderPool:
    """A pool of a few read-only connections."""

    def __init__(self, path: Path, *, has_index: bool) -> None:
        self._path = path
        self._has_index = has_index
        self._free: list[sqlite3.Connection] = []
        self._lock = Lock()
        self._permits = Semaphore(MAX_CONNECTIONS)
        self._is_closed = False

    def close(self) -> None:
        """Closes all connections, once those in use are returned."""
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
        """Yields a connection within a transaction, for `seconds`."""
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

    def query(self, criteria: RecordFilter, seconds: float) -> list[Record]:
        """Returns the newest matching records.

        Raises:
            QueryTimeout: it took longer than `seconds`.
        """
        with self._find(criteria, seconds) as found:
            return [parse_record(criteria.namespace, row) for row in found]

    def query_page(self, criteria: RecordFilter, most_bytes: int, seconds: float) -> Records:
        """Returns the newest matching records that fit into a response. Their `meta` is JSON text.

        Raises:
            QueryTimeout: it took longer than `seconds`.
        """
        with self._find(criteria, seconds) as found:  # read one by one: all may be 20 times as much as fits
            return fill_page((parse_record(criteria.namespace, row, read_meta=as_json) for row in found), most_bytes)

    def search(self, criteria: RecordFilter, limit: int, seconds: float) -> list[Record]:
        """Returns the best of the newest matching records.

        Raises:
            QueryTimeout: it took longer than `seconds`.
        """
        with self._find(criteria, seconds) as rows:
            found = [*rows]
        best = rank_texts([content_of(row, criteria).casefold() for row in found], criteria.words)[:limit]
        return [parse_record(criteria.namespace, found[index]) for index in best]

    @contextmanager
    def _find(self, criteria: RecordFilter, seconds: float) -> Generator[Iterator[Row]]:
        with self.acquire(seconds) as (connection, deadline):
            deadline.check()
            share = find_share(connection, criteria.namespace)
            if share is None:
                yield iter(())
                return
            # Closed before the transaction ends; unread rows would keep it open.
            found = self._candidates(connection, share, criteria)
            try:
                yield filter_rows(found, criteria, deadline)
            finally:
                found.close()

    def _candidates(
        self, connection: sqlite3.Connection, share: Share, criteria: RecordFilter
    ) -> Generator[Row, None, None]:
        """Yields all matching records, and some others, newest first."""
        low, high = find_key_range(connection, share, criteria)
        parameters: dict[str, object] = {
            "since": min(criteria.since_ms, MAX_TIME_MS),
            "until": MAX_TIME_MS if criteria.until_ms is None else min(criteria.until_ms, MAX_TIME_MS),
            "tag": None if criteria.tag_prefix is None else tag_prefix_json(criteria.tag_prefix),
            "low": low,
            "high": high,
        }
        conditions, patterns = build_like_filter(criteria.words)
        parameters |= patterns
        match = self._match(connection, criteria) if self._has_index and share.indexed else None
        if match is None:
            yield from iter_rows(connection, SCAN_SQL.format(conditions), parameters)
            return
        indexed = record_key(share.number, share.indexed)
        yield from iter_rows(connection, SCAN_SQL.format(conditions), parameters | {"low": max(low, indexed + 1)})
        if match == NOTHING:
            return
        parameters |= {"high": min(high, indexed), "match": match}
        yield from iter_rows(connection, INDEX_SQL.format(conditions), parameters)

    def _match(self, connection: sqlite3.Connection, criteria: RecordFilter) -> str | None:
        """Returns a match expression for the index, or None where the index does not help."""
        words = build_match_expression(criteria.words)
        return words if words is not None else match_short_words(criteria.words, partial(find_gram, connection))

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
        """Returns the changes after a revision; None if some are no longer in the log."""
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
    """Returns the row of an extension, or None.

    Raises:
        DamagedRow: the row is damaged.
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
    """Yields the rows of a statement, and closes its cursor in any case."""
    cursor = connection.execute(statement, parameters)
    try:
        yield from cursor
    finally:
        cursor.close()


def build_like_filter(words: Sequence[str]) -> tuple[str, dict[str, str]]:
    """Returns SQL conditions that every record with these folded words meets, and their parameters.

    They let SQLite exclude most other records without holding Python's lock."""
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
    """Returns the longest part of a word for which `LIKE` agrees with case folding, unless a text is odd."""
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


def filter_rows(rows: Iterable[Row], criteria: RecordFilter, deadline: QueryDeadline) -> Iterator[Row]:
    """Yields the rows that match, up to the limit."""
    room = criteria.limit
    for number, row in enumerate(rows):
        if room == 0:
            return
        if number % DEADLINE_INTERVAL == 0:
            deadline.check()
        if criteria.words and not criteria.matches_text(content_of(row, criteria).casefold()):
            continue
        if criteria.tag_prefix is not None and not criteria.matches_tags(parse_record(criteria.namespace, row).tags):
            continue
        room -= 1
        yield row


def as_json(text: str) -> Raw:
    return Raw(text.encode())


def content_of(row: Row, criteria: RecordFilter) -> str:
    content: str = parse_text(row[CONTENT], criteria.namespace, f"record {row[0] & MAX_ID}")
    return content


def tag_prefix_json(prefix: str) -> str:
    """Returns text that the JSON of tags contains if a tag has this prefix. It may occur elsewhere too."""
    return msgspec.json.encode(prefix).decode()[:-1]


# -- time ranges


def find_key_range(connection: sqlite3.Connection, share: Share, criteria: RecordFilter) -> tuple[int, int]:
    """Returns a key range that contains all records of the filter's time range, and few others."""
    low, high = record_key(share.number, 0), record_key(share.number, share.last_id)
    if criteria.until_ms is not None:
        # A record up to this time has a peak of at most this time plus the disorder.
        high = find_first_key_at(connection, low, high, criteria.until_ms + share.disorder_ms + 1) - 1
    if criteria.since_ms > share.peak_ms:
        return high + 1, high
    if criteria.since_ms > 0:
        low = find_first_key_at(connection, low, high, criteria.since_ms)
    return low, high


def find_first_key_at(connection: sqlite3.Connection, low: int, high: int, time_ms: int) -> int:
    """Returns the first key from `low` on after which every peak is at or after `time_ms`; beyond `high` if none is."""
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
