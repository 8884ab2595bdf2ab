"""The `Store` protocol: thread-safe, blocking, atomic storage of memory and configuration.

A store is plain and blocking: each method returns when its work is done, and what was acknowledged is kept as safely as
the store can keep anything. Methods may be called from any thread. Each call is whole: it happens entirely or not at
all, and an error means that nothing was changed.

Whoever must not wait, an event loop above all, hands records over with `append_nowait`, and calls the other methods in
a worker thread. A store may keep together what many hand over at the same time.

Names of extensions and keys come from whoever called; a store refuses what breaks the rules of the contract with
`InvalidParams`, what goes beyond an extension's share with `QuotaExceeded`, what comes faster than it can be kept with
`Busy`, and what takes longer than a query may with `QueryTimeout`. Where the disk does not do what it should, there is
a `StoreError`, with the meaning DISK_FULL or INTERNAL.
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
    """Returns the time of the machine, as a `Clock` does."""
    return time_ns() // 1_000_000


AppendCallback = Callable[[Appended | BecketError], object]
"""Gets the answer to an append when the record is safe, or the error when it was not kept."""


class Snapshot(Struct, frozen=True):
    """The values of an extension at one revision."""

    revision: int
    values: dict[str, str]


class Damage(Struct, frozen=True):
    """Something in a store that was lost or changed: of which extension (None: of the store), what, and how."""

    extension: str | None
    what: str
    problem: str

    def __str__(self) -> str:
        return f"{self.extension or 'the store'}: {self.what}: {self.problem}"


class Store(Protocol):
    """Memory and configuration of all extensions. See `becket.testing.check_store`, which proves one."""

    def append(self, append: Append) -> Appended:
        """Keeps a record, with the store's own time and an id larger than all before it.

        With an `idem` that its namespace has seen, nothing is kept and the answer is the first one again."""
        ...

    def append_nowait(self, append: Append, done: AppendCallback) -> None:
        """Keeps a record as `append` does, and returns at once; `done` is called when it is safe, exactly once.

        Records that one thread hands over are kept in that order. What is wrong with the record itself is raised here,
        and `done` is not called. It may be called before this returns, and in any thread; it must be quick, and may
        hand over further records but not wait for the store. Where it fails, that is logged."""
        ...

    def query(self, query: Query, *, timeout: float | None = None) -> list[Record]:
        """Returns the records that fit, the latest appended first, whatever the clock did in between.

        There are at most as many as the query's limit, 50 where it has none, and never more than a page of them. It is
        given up after `timeout` seconds, and after those of the limits in any case."""
        ...

    def query_page(self, query: Query, most_bytes: int) -> Records:
        """Returns what `query` returns as far as its JSON fits into so many bytes, one record at least, and whether
        there is more. `meta` stays JSON text (`msgspec.Raw`).

        This is what an extension gets. However large the records are, no more of them are in memory than fit."""
        ...

    def search(
        self, namespace: str, text: str, *, limit: int = DEFAULT_QUERY_LIMIT, timeout: float | None = None
    ) -> list[Record]:
        """Returns the records that have all words of a text, the best first, of equally good ones the latest.

        A word is found in any case and within other words. Better is what has the words more often and little else.
        Only the newest `search_records` that have all words are looked at. Limit and timeout are as in `query`."""
        ...

    def forget(self, namespace: str, *, up_to: int | None = None) -> int:
        """Removes the records of a namespace up to this id, or all of them, and returns how many there were.

        Their ids are never used again; their `idem` is as new."""
        ...

    def get_config(self, extension: str, key: str) -> ConfigValue:
        """Returns a value and the revision of its last change; None and 0 where there is none."""
        ...

    def set_config(self, extension: str, change: ConfigSet) -> ConfigSaved:
        """Keeps a value under a new revision, larger than all before it of any extension.

        Where `if_revision` is not the revision of the key, nothing is kept, and the answer is not `ok` and tells the
        revision that it has. Without it the last writer wins."""
        ...

    def remove_config(self, extension: str, key: str, *, if_revision: int | None = None) -> ConfigSaved:
        """Removes a value under a new revision, which the answer tells; without a value there is nothing to do.

        A later `get_config` tells 0. `if_revision` is as in `set_config`."""
        ...

    def read_config(self, extension: str, keys: tuple[str, ...] | None = None) -> Snapshot:
        """Returns the values of these keys, or of all, as they are together at one revision."""
        ...

    def read_changes(
        self, extension: str, since: int, keys: tuple[str, ...] | None = None
    ) -> list[ConfigChanged] | None:
        """Returns the changes after a revision in their order, without a gap; None where some are forgotten.

        None too for a revision that the store has not reached: whoever saw it saw another store."""
        ...

    def watch(self, wake: Callable[[str], object]) -> Callable[[], None]:
        """Calls `wake` with the name of an extension after a change of its configuration is kept; returns what ends it.

        It is called in the thread that made the change, with nothing locked: it may use the store. Where it fails, that
        is logged; the change stands and others are called. What has changed is told by `read_changes`. One that makes
        changes itself is told of these too; beyond `call_depth` of them within each other they are refused as `Busy`.
        """
        ...

    def verify(self) -> list[Damage]:
        """Reads everything, and returns what was lost or changed since it was acknowledged; nothing where all is well.

        It takes as long as it takes, and may be called while the store is in use."""
        ...

    def close(self) -> None:
        """Lets go of all that the store holds, when all that was handed over is kept.

        It may be called twice; a closed store refuses everything else."""
        ...


StoreFactory = Callable[[Limits, Clock], Store]
"""Returns a new, empty store that keeps these limits and reads this clock."""

StoreOpener = Callable[[Path, Limits, Clock], Store]
"""Returns the store that is kept at this path, a new one where there is none."""
