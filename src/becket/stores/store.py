"""The `Store` protocol: thread-safe, blocking, atomic storage of memory and configuration.

Each method blocks until its work is done; what was acknowledged is as durable as the store can make it. Methods may be
called from any thread. Each call is atomic: an error means that nothing was changed.

Code that must not block, such as an event loop, appends with `append_nowait` and calls the other methods in a worker
thread. A store may commit concurrent appends together.

Errors: `InvalidParams` where arguments violate the contract, `QuotaExceeded` beyond an extension's quota, `Busy`
when changes arrive faster than they can be stored, `QueryTimeout` when a query takes too long, and `StoreError` with
the meaning DISK_FULL or INTERNAL when the disk fails.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import time_ns
from typing import Protocol

from msgspec import Struct

from becket.contract.config import ConfigChanged, ConfigSaved, ConfigSet, ConfigValue
from becket.contract.memory import DEFAULT_QUERY_LIMIT, Append, Appended, Query, Record, Records
from becket.errors import BecketError
from becket.limits import Limits

__all__ = ["AppendCallback", "Clock", "Damage", "Snapshot", "Store", "StoreFactory", "StoreOpener", "now_ms"]

Clock = Callable[[], int]
"""Returns the time in milliseconds since 1970."""


def now_ms() -> int:
    """The `Clock` of the system."""
    return time_ns() // 1_000_000


AppendCallback = Callable[[Appended | BecketError], object]
"""Receives the result of an append when the record is durable, or the error when it was not stored."""


class Snapshot(Struct, frozen=True):
    """The values of an extension at one revision."""

    revision: int
    values: dict[str, str]


class Damage(Struct, frozen=True):
    """Something that was lost or changed in a store. `extension` is None where the store as a whole is affected."""

    extension: str | None
    what: str
    problem: str

    def __str__(self) -> str:
        return f"{self.extension or 'the store'}: {self.what}: {self.problem}"


class Store(Protocol):
    """Memory and configuration of all extensions. `becket.testing.check_store` tests an implementation."""

    def append(self, append: Append) -> Appended:
        """Stores a record with the store's own timestamp and an id larger than all before it.

        With an `idem` that the namespace has already seen, nothing is stored and the first result is returned again."""
        ...

    def append_nowait(self, append: Append, done: AppendCallback) -> None:
        """Stores a record as `append` does, without blocking; `done` is called exactly once, when the record is
        durable.

        Records from one thread are stored in order. An invalid record raises here, and `done` is not called. `done`
        may be called before this method returns, and in any thread. It must be quick, and may append further records
        but not wait for the store. Its exceptions are logged."""
        ...

    def query(self, query: Query, *, timeout: float | None = None) -> list[Record]:
        """Returns matching records, the last appended first, whatever the clock did in between.

        Returns at most the query's limit (default 50), and never more than `memory_page`. Raises QueryTimeout after
        `timeout` seconds, and after `query_seconds` in any case."""
        ...

    def query_page(self, query: Query, most_bytes: int) -> Records:
        """Returns what `query` returns as far as its JSON fits into `most_bytes`, at least one record, and whether
        there are more. `meta` stays JSON text (`msgspec.Raw`).

        This serves extensions. However large the records are, only those that fit are in memory."""
        ...

    def search(
        self, namespace: str, text: str, *, limit: int = DEFAULT_QUERY_LIMIT, timeout: float | None = None
    ) -> list[Record]:
        """Returns the records that contain all words of a text, best first; of equally good ones the newest first.

        Words match in any case and inside other words. A record ranks higher the more often it has the words and the
        less other text. Only the newest `search_records` matches are ranked. `limit` and `timeout` are as in
        `query`."""
        ...

    def forget(self, namespace: str, *, up_to: int | None = None) -> int:
        """Removes the records of a namespace up to this id, or all of them, and returns how many were removed.

        Ids are never reused; an `idem` of a removed record counts as new."""
        ...

    def get_config(self, extension: str, key: str) -> ConfigValue:
        """Returns a value and the revision of its last change; None and 0 if it is not set."""
        ...

    def set_config(self, extension: str, change: ConfigSet) -> ConfigSaved:
        """Stores a value under a new revision, larger than all before it of any extension.

        If `if_revision` differs from the key's revision, nothing is stored and the result is not `ok` and has the
        current revision. Without it the last writer wins."""
        ...

    def remove_config(self, extension: str, key: str, *, if_revision: int | None = None) -> ConfigSaved:
        """Removes a value under a new revision, which is returned; does nothing if it is not set.

        `get_config` returns revision 0 afterwards. `if_revision` is as in `set_config`."""
        ...

    def read_config(self, extension: str, keys: tuple[str, ...] | None = None) -> Snapshot:
        """Returns the values of these keys, or of all, at one revision."""
        ...

    def read_changes(
        self, extension: str, since: int, keys: tuple[str, ...] | None = None
    ) -> list[ConfigChanged] | None:
        """Returns the changes after a revision in order and without a gap; None if some are no longer in the log.

        Also None for a revision that the store has not reached, which must come from another store."""
        ...

    def watch(self, wake: Callable[[str], object]) -> Callable[[], None]:
        """Calls `wake` with the name of an extension after each change of its configuration; returns a function that
        ends it.

        `wake` is called in the thread that made the change, without a lock held, and may use the store;
        `read_changes` returns the changes. Its exceptions are logged and do not affect the change or other
        callbacks. Changes that it makes cause further calls; beyond `call_depth` nested ones they raise `Busy`."""
        ...

    def verify(self) -> list[Damage]:
        """Reads everything, and returns what was lost or changed since it was acknowledged.

        Takes as long as needed, and may be called while the store is in use."""
        ...

    def close(self) -> None:
        """Completes all pending changes and releases all resources.

        May be called twice. All other methods raise LocalProtocolError afterwards."""
        ...


StoreFactory = Callable[[Limits, Clock], Store]
"""Returns a new, empty store with these limits and this clock."""

StoreOpener = Callable[[Path, Limits, Clock], Store]
"""Opens the store at this path, or creates it."""
