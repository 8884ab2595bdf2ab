"""The default store: one SQLite file, a lock file and a disk reserve.

`store` is the public class. One thread writes (`writer`), applying changes with `transactions`; `text_index` is
filled in the background. `reader` runs queries on its own connections. `schema` creates and opens the file, `lock`
excludes other processes, `reserve` keeps space for a full disk.
"""

from __future__ import annotations

from becket.stores.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
