"""Looks at a store from outside: who keeps how much in it, and single records. Nothing is changed, nobody owns it."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

from msgspec import Struct

from becket.contract.memory import Record
from becket.errors import StoreUnavailable
from becket.stores.sqlite.file import HIGHEST_ID, connect, is_ours, key_of
from becket.stores.sqlite.reader import COLUMNS, as_record

__all__ = ["Share", "find_record", "survey"]


class Share(Struct, frozen=True):
    """What one extension keeps. `bytes` counts its records; `newest_ms` is None where it has none."""

    extension: str
    records: int
    bytes: int
    newest_ms: int | None
    config_keys: int


def survey(path: Path) -> list[Share]:
    """Returns what each extension keeps, by name.

    Raises:
        StoreUnavailable: there is no store, or it cannot be read.
    """
    with looking_into(path) as connection:
        rows = connection.execute(
            "SELECT name, records, bytes, keys, number, last_id FROM extensions ORDER BY name"
        ).fetchall()
        return [
            Share(name, records, size, newest(connection, number, last_id), keys)
            for name, records, size, keys, number, last_id in rows
        ]


def newest(connection: sqlite3.Connection, number: int, last_id: int) -> int | None:
    row = connection.execute(
        "SELECT time_ms FROM memory WHERE key BETWEEN ? AND ? ORDER BY key DESC LIMIT 1",
        (key_of(number, 0), key_of(number, last_id)),
    ).fetchone()
    return None if row is None else int(row[0])


def find_record(path: Path, extension: str, id: int) -> Record | None:
    """Returns the record with this id, None where there is none.

    Raises:
        StoreUnavailable: there is no store, or it cannot be read.
    """
    if not 0 <= id <= HIGHEST_ID:
        return None
    with looking_into(path) as connection:
        found = connection.execute("SELECT number FROM extensions WHERE name = ?", (extension,)).fetchone()
        if found is None:
            return None
        row = connection.execute(f"SELECT {COLUMNS} FROM memory WHERE key = ?", (key_of(found[0], id),)).fetchone()
        return None if row is None else as_record(extension, row)


@contextmanager
def looking_into(path: Path) -> Generator[sqlite3.Connection]:
    """Opens a store for one look, which sees one moment of it."""
    if not is_ours(path):
        raise StoreUnavailable(str(path), "there is no store")
    try:
        with closing(connect(path, for_reading=True)) as connection:
            connection.execute("BEGIN")
            yield connection
    except sqlite3.Error as error:
        raise StoreUnavailable(str(path), f"it cannot be read ({error})") from error
