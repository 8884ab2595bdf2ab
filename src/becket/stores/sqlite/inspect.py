"""Inspects a store file read-only: usage by extension, and single records."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

from msgspec import Struct

from becket.contract.memory import Record
from becket.errors import StoreUnavailable
from becket.stores.sqlite.reader import find_share
from becket.stores.sqlite.rows import RECORD, SHARE, DamagedRow, hint_at_damage, parse_record, parse_share
from becket.stores.sqlite.schema import MAX_ID, is_store, open_database, record_key

__all__ = ["ExtensionUsage", "load_record", "load_usage"]


class ExtensionUsage(Struct, frozen=True):
    """What one extension stores. `bytes` counts its records; `newest_ms` is None where it has none."""

    extension: str
    records: int
    bytes: int
    newest_ms: int | None
    config_keys: int


def load_usage(path: Path) -> list[ExtensionUsage]:
    """Returns the usage of each extension, by name.

    Raises:
        StoreUnavailable: there is no store, it cannot be read, or the data is damaged.
    """
    with open_snapshot(path) as connection:
        rows = [parse_share(row) for row in connection.execute(f"SELECT {SHARE} FROM extensions ORDER BY name")]
        return [
            ExtensionUsage(
                row.name, row.records, row.bytes, newest_time_ms(connection, row.number, row.last_id), row.keys
            )
            for row in rows
        ]


def newest_time_ms(connection: sqlite3.Connection, number: int, last_id: int) -> int | None:
    row = connection.execute(
        "SELECT time_ms FROM memory WHERE key BETWEEN ? AND ? ORDER BY key DESC LIMIT 1",
        (record_key(number, 0), record_key(number, last_id)),
    ).fetchone()
    return None if row is None else int(row[0])


def load_record(path: Path, extension: str, id: int) -> Record | None:
    """Returns the record with this id, or None.

    Raises:
        StoreUnavailable: there is no store, it cannot be read, or the data is damaged.
    """
    if not 0 <= id <= MAX_ID:
        return None
    with open_snapshot(path) as connection:
        share = find_share(connection, extension)
        if share is None:
            return None
        row = connection.execute(
            f"SELECT {RECORD} FROM memory WHERE key = ?", (record_key(share.number, id),)
        ).fetchone()
        return None if row is None else parse_record(extension, row)


@contextmanager
def open_snapshot(path: Path) -> Generator[sqlite3.Connection]:
    """Opens a store read-only, in one snapshot."""
    if not is_store(path, for_reading=True):
        raise StoreUnavailable(str(path), "there is no store")
    try:
        with closing(open_database(path, for_reading=True)) as connection:
            connection.execute("BEGIN")
            yield connection
    except sqlite3.Error as error:
        raise StoreUnavailable(str(path), f"it cannot be read ({error})", hint_at_damage(path)) from error
    except DamagedRow as error:
        raise StoreUnavailable(str(path), str(error), hint_at_damage(path)) from error
