"""Schema of the store file: creating, opening, integrity check and quarantine.

A record's key is the number of its extension above `ID_BITS` bits of its id. The records of one extension are
therefore adjacent and in order, and an append touches a single B-tree.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from zlib import crc32

from becket.errors import StoreUnavailable
from becket.stores.sqlite.disk_errors import explain, primary_code

__all__ = [
    "BUSY_TIMEOUT",
    "ID_BITS",
    "MAX_ID",
    "SCHEMA_VERSION",
    "back_up",
    "check_integrity",
    "check_schema",
    "create_store_file",
    "is_corruption",
    "is_store",
    "open_database",
    "open_raw_connection",
    "quarantine",
    "record_key",
    "seal_schema",
]

APPLICATION_ID = 0x62636B74  # "bckt": identifies a becket store in the file header
SCHEMA_VERSION = 2
OLDEST = 1  # the first version; `upgrade` converts it
ID_BITS = 40  # room for 10**12 records of each of four million extensions
MAX_ID = (1 << ID_BITS) - 1
MAGIC = b"SQLite format 3\0"
HEADER_SIZE = 100
LOGS = ("-wal", "-shm", "-journal")  # files of SQLite beside the store
FILE_SUFFIXES = ("", *LOGS, ".mark")  # all files of a store
BUSY_TIMEOUT = 5.0  # seconds to wait for another process that reads the file

# `peak_ms` is the latest time of all records up to this one, where that is not its own. It never decreases, so that a
# time range can be found by bisection; `disorder_ms` is the maximum by which a time was behind the peak. `odd` is 1
# where `text_index.has_special_folds` holds for the content.
SCHEMA = f"""
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {SCHEMA_VERSION};
CREATE TABLE extensions (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    records INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    last_id INTEGER NOT NULL,
    peak_ms INTEGER NOT NULL,
    disorder_ms INTEGER NOT NULL,
    indexed INTEGER NOT NULL,
    keys INTEGER NOT NULL,
    key_bytes INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    forgotten INTEGER NOT NULL,
    commits INTEGER NOT NULL,
    memory_sum INTEGER NOT NULL,
    config_sum INTEGER NOT NULL,
    changes_sum INTEGER NOT NULL,
    sum INTEGER NOT NULL
);
CREATE TABLE memory (
    key INTEGER PRIMARY KEY,
    time_ms INTEGER NOT NULL,
    peak_ms INTEGER,
    size INTEGER NOT NULL,
    odd INTEGER,
    content TEXT NOT NULL,
    tags TEXT,
    meta TEXT,
    idem TEXT,
    sum INTEGER NOT NULL
);
CREATE UNIQUE INDEX memory_idem ON memory (key >> {ID_BITS}, idem) WHERE idem IS NOT NULL;
CREATE TABLE config (
    extension INTEGER NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    revision INTEGER NOT NULL,
    sum INTEGER NOT NULL,
    PRIMARY KEY (extension, key)
) WITHOUT ROWID;
CREATE TABLE changes (
    extension INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    key TEXT NOT NULL,
    value TEXT,
    sum INTEGER NOT NULL,
    PRIMARY KEY (extension, revision)
) WITHOUT ROWID;
CREATE TABLE state (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
INSERT INTO state VALUES ('mended', 0), ('index', NULL), ('lost', NULL), ('noted', 0), ('schema', NULL);
"""


def record_key(number: int, id: int) -> int:
    """Returns the key of a record."""
    return number << ID_BITS | id


def is_store(path: Path, *, for_reading: bool = False) -> bool:
    """Returns whether there is a store; False if the file does not exist.

    Raises:
        StoreUnavailable: the file is something else, or a store of a later version.
    """
    try:
        # SQLite would open a file that it may not write, and fail only at the first change.
        with open(path, "rb" if for_reading else "r+b") as file:
            header = file.read(HEADER_SIZE)
    except FileNotFoundError:
        return False
    except OSError as error:
        because, hint = explain(error)
        raise StoreUnavailable(str(path), f"it cannot be opened: {because}", hint) from error
    if not header:
        return False
    application, version = (int.from_bytes(header[start : start + 4], "big") for start in (68, 60))
    if not header.startswith(MAGIC) or application != APPLICATION_ID:
        raise StoreUnavailable(str(path), "this is not a becket store", "choose another path, or move the file away")
    if not OLDEST <= version <= SCHEMA_VERSION:
        because = f"it has version {version}, this becket supports {OLDEST} to {SCHEMA_VERSION}"
        raise StoreUnavailable(str(path), because, "use the version of becket that wrote it, or a later one")
    if version != SCHEMA_VERSION and for_reading:
        because = f"it has version {version} and must be upgraded to {SCHEMA_VERSION} before it can be read"
        raise StoreUnavailable(str(path), because, "start its host once, or open the store for writing")
    return True


def create_store_file(path: Path) -> None:
    """Creates an empty store atomically. Files of another store at this path are quarantined."""
    new = path.with_name(f"{path.name}.new")
    for suffix in FILE_SUFFIXES:
        Path(f"{new}{suffix}").unlink(missing_ok=True)
    os.close(os.open(new, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))  # SQLite's files get the mode of this one
    with closing(open_raw_connection(new)) as connection:
        connection.executescript(f"BEGIN; {SCHEMA}")
        seal_schema(connection)
        connection.execute("COMMIT")
        connection.execute("PRAGMA journal_mode = WAL").fetchall()
    if any(os.path.exists(f"{path}{suffix}") for suffix in LOGS):
        quarantine(path)  # SQLite would apply the log of another store to this one
    os.replace(new, path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
    os.fsync(folder)
    os.close(folder)


def open_database(path: Path, *, for_reading: bool = False) -> sqlite3.Connection:
    """Opens the file with the settings of all connections: commits are synced to the disk."""
    connection = open_raw_connection(path)
    if for_reading:
        connection.execute("PRAGMA query_only = ON")
    else:
        connection.execute("PRAGMA journal_size_limit = 4194304")
        connection.execute("PRAGMA cache_size = -8192")
    return connection


def open_raw_connection(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw",
        uri=True,
        timeout=BUSY_TIMEOUT,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA fullfsync = ON")  # macOS only: its plain fsync does not reach the disk
        connection.execute("PRAGMA temp_store = MEMORY")
    except BaseException:
        connection.close()
        raise
    return connection


def back_up(connection: sqlite3.Connection, path: Path) -> None:
    """Writes all that a connection sees to a new file, and syncs it.

    Raises:
        FileExistsError: the path exists.
    """
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with closing(sqlite3.connect(path)) as copy:
            connection.backup(copy)
        os.fsync(file)
    except BaseException:
        path.unlink()
        raise
    finally:
        os.close(file)


# -- integrity


def seal_schema(connection: sqlite3.Connection) -> None:
    """Stores the checksum of the table definitions for `check_schema`."""
    connection.execute("UPDATE state SET value = ? WHERE name = 'schema'", (sum_schema(connection),))


def check_schema(connection: sqlite3.Connection) -> None:
    """Raises sqlite3.DatabaseError if the table definitions were changed."""
    row = connection.execute("SELECT value FROM state WHERE name = 'schema'").fetchone()
    if row != (sum_schema(connection),):
        raise damage("the definitions of its tables have changed")


def sum_schema(connection: sqlite3.Connection) -> int:
    definitions = connection.execute(
        "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE name NOT LIKE 'memory_text%' ORDER BY type, name"
    ).fetchall()
    return crc32(repr(definitions).encode())


def damage(what: str) -> sqlite3.DatabaseError:
    """Returns the error that SQLite itself raises for damage."""
    error = sqlite3.DatabaseError(what)
    error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    return error


def is_corruption(error: sqlite3.Error) -> bool:
    """Returns whether this error means that the file is damaged."""
    if primary_code(error) == 0:  # from the `sqlite3` module, for bytes that are not text
        return "UTF-8" in str(error)
    return primary_code(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def check_integrity(connection: sqlite3.Connection, seconds: float | None = None) -> None:
    """Checks the whole file, at some hundred megabytes a second, or as much as is possible in `seconds`.

    Raises:
        sqlite3.DatabaseError: the file is damaged.
    """
    until = monotonic() + (seconds or 0.0)
    if seconds is not None:
        connection.set_progress_handler(lambda: monotonic() >= until, 10_000)
    try:
        (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.OperationalError as error:
        if primary_code(error) != sqlite3.SQLITE_INTERRUPT:
            raise
        return
    finally:
        connection.set_progress_handler(None, 0)
    if verdict != "ok":
        raise damage(verdict)


def quarantine(path: Path) -> Path:
    """Renames a damaged store and its files; returns the new path."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    aside = path.with_name(f"{path.name}.damaged-{stamp}")
    number = 1
    while aside.exists():
        number += 1
        aside = path.with_name(f"{path.name}.damaged-{stamp}-{number}")
    for suffix in FILE_SUFFIXES:
        try:
            os.rename(f"{path}{suffix}", f"{aside}{suffix}")
        except FileNotFoundError:
            continue
    return aside
