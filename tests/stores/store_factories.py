"""Ways to open a store in a file that other programs can import."""

from __future__ import annotations

from pathlib import Path

from becket.limits import Limits
from becket.stores.sqlite import SqliteStore, schema
from becket.stores.store import Clock

open_connection = schema.open_raw_connection


def light(path: Path, limits: Limits, clock: Clock) -> SqliteStore:
    """Without the ballast, whose eight megabytes take longer to write than everything else."""
    return SqliteStore(path, limits, clock, ballast=0)


def without_index(path: Path, limits: Limits, clock: Clock) -> SqliteStore:
    return SqliteStore(path, limits, clock, ballast=0, index=False)


def careless(path: Path, limits: Limits, clock: Clock) -> SqliteStore:
    """Syncs no commit, as SQLite does not in its usual mode with a log."""

    def connect(path: Path) -> object:
        connection = open_connection(path)
        connection.execute("PRAGMA synchronous = NORMAL")
        return connection

    schema.open_raw_connection = connect  # type: ignore[assignment]
    try:
        return light(path, limits, clock)
    finally:
        schema.open_raw_connection = open_connection
