"""Makes stores as becket 0.1 made them: version 1 of the file, without checksums and without a mark."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

SCHEMA = """
PRAGMA application_id = 1650682740;
PRAGMA user_version = 1;
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
    forgotten INTEGER NOT NULL
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
    idem TEXT
);
CREATE UNIQUE INDEX memory_idem ON memory (key >> 40, idem) WHERE idem IS NOT NULL;
CREATE TABLE config (
    extension INTEGER NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    revision INTEGER NOT NULL,
    PRIMARY KEY (extension, key)
) WITHOUT ROWID;
CREATE TABLE changes (
    extension INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    key TEXT NOT NULL,
    value TEXT,
    PRIMARY KEY (extension, revision)
) WITHOUT ROWID;
CREATE TABLE state (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
INSERT INTO state VALUES ('mended', 0), ('index', NULL);
INSERT INTO extensions VALUES (1, 'notes', 2, 19, 3, 20, 0, 0, 1, 8, 2, 0), (2, 'other', 1, 3, 2, 15, 0, 0, 0, 0, 0, 0);
INSERT INTO memory VALUES
    (1099511627777, 10, NULL, 15, NULL, 'Milk', '["food"]', '{"a":1}', 'k'),
    (1099511627779, 20, NULL, 4, NULL, 'tea ', NULL, NULL, NULL),
    (2199023255554, 15, NULL, 3, NULL, 'six', NULL, NULL, NULL);
INSERT INTO config VALUES (1, 'mode', 'dark', 2);
INSERT INTO changes VALUES (1, 1, 'mode', 'light'), (1, 2, 'mode', 'dark');
"""


def make_first_version(path: Path) -> None:
    """Makes a store of version 1 with three records and a value."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.executescript(f"BEGIN; {SCHEMA} COMMIT;")
        connection.execute("PRAGMA journal_mode = WAL")


def version_of(path: Path) -> int:
    """Returns the version in the header of a file, which is what an older becket checks."""
    return int.from_bytes(path.read_bytes()[60:64], "big")
