"""The default store: one SQLite file, a lock file and a disk reserve.

`store` is the public face. One thread writes (`writer`), what it writes into one transaction is worked out by `ledger`,
and `text_index` follows behind it. `reader` answers queries from connections of its own. `file` opens the file and
knows what it looks like, `owner` keeps a second program out, `ballast` keeps room on a full disk.
"""

from __future__ import annotations

from becket.stores.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
