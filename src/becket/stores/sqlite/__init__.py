"""The store that hosts use by default: one SQLite file, and beside it a lock file and a ballast file.

`store` is the public face. One thread writes (`writer`), what it writes into one transaction is worked out by `ledger`,
and `text_index` follows behind it. `reader` answers queries from connections of its own. `file` opens the file and
knows what it looks like, `owner` keeps a second program out, `ballast` keeps room on a full disk.
"""

from __future__ import annotations

from becket.stores.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
