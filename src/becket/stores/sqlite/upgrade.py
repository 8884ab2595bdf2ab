"""Upgrades a store of an older version, in one transaction. A copy is kept beside it until that has succeeded."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from becket.stores.sqlite.checksum import checksum
from becket.stores.sqlite.rows import Share
from becket.stores.sqlite.schema import MAX_ID, SCHEMA_VERSION, back_up, open_raw_connection, record_key, seal_schema

__all__ = ["copy_path", "upgrade"]

NO_SUM = -1  # matches nothing: a row that was damaged before stays damaged
COLUMNS = {
    "extensions": ("commits", "memory_sum", "config_sum", "changes_sum", "sum"),
    "memory": ("sum",),
    "config": ("sum",),
    "changes": ("sum",),
}
SUMS = {
    "memory": "key, time_ms, peak_ms, size, odd, CAST(content AS BLOB), CAST(tags AS BLOB), CAST(meta AS BLOB),"
    " CAST(idem AS BLOB)",
    "config": "extension, CAST(key AS BLOB), CAST(value AS BLOB), revision",
    "changes": "extension, CAST(key AS BLOB), CAST(value AS BLOB), revision",
}


def copy_path(path: Path) -> Path:
    """Returns the path of the temporary copy."""
    return path.with_name(f"{path.name}.before-upgrade")


def upgrade(path: Path) -> None:
    """Upgrades a store to the current version, if it has an older one.

    Raises:
        sqlite3.Error: the upgrade failed. The store is unchanged, and the copy still exists.
        OSError: the same.
    """
    copy = copy_path(path)
    with closing(open_raw_connection(path)) as connection:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version != SCHEMA_VERSION:
            copy.unlink(missing_ok=True)
            back_up(connection, copy)
            # Not through SQLite's log: an older becket reads the version from the file alone, and must see the new one.
            connection.execute("PRAGMA journal_mode = DELETE").fetchall()
            connection.create_function("checksum", -1, sum_raw, deterministic=True)
            connection.execute("BEGIN IMMEDIATE")
            add_checksums(connection)
            connection.execute("COMMIT")
            connection.execute("PRAGMA journal_mode = WAL").fetchall()
    copy.unlink(missing_ok=True)


def add_checksums(connection: sqlite3.Connection) -> None:
    execute = connection.execute
    for table, columns in COLUMNS.items():
        for column in columns:
            execute(f"ALTER TABLE {table} ADD COLUMN {column} INTEGER NOT NULL DEFAULT 0")
    for table, fields in SUMS.items():
        execute(f"UPDATE {table} SET sum = checksum({fields})")
    fields = ", ".join(Share.__struct_fields__)
    for share in [Share(*row) for row in execute(f"SELECT {fields} FROM extensions").fetchall()]:
        share.memory_sum = total(
            execute(
                "SELECT sum(sum) FROM memory WHERE key BETWEEN ? AND ?",
                (record_key(share.number, 0), record_key(share.number, MAX_ID)),
            )
        )
        share.config_sum = total(execute("SELECT sum(sum) FROM config WHERE extension = ?", (share.number,)))
        share.changes_sum = total(execute("SELECT sum(sum) FROM changes WHERE extension = ?", (share.number,)))
        *_, memory_sum, config_sum, changes_sum, row_sum = share.as_row()
        execute(
            "UPDATE extensions SET memory_sum = ?, config_sum = ?, changes_sum = ?, sum = ? WHERE number = ?",
            (memory_sum, config_sum, changes_sum, row_sum, share.number),
        )
    execute("INSERT INTO state VALUES ('lost', NULL), ('noted', 0), ('schema', NULL)")
    seal_schema(connection)
    execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def total(cursor: sqlite3.Cursor) -> int:
    (value,) = cursor.fetchone()
    return value or 0


def sum_raw(*fields: object) -> int:
    """Returns the checksum of a row whose texts are bytes."""
    try:
        return checksum(tuple(field.decode() if isinstance(field, bytes) else field for field in fields))
    except UnicodeDecodeError:
        return NO_SUM
