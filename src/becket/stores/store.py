"""What a store can do. The host offers it to extensions; who may use what is decided before it gets here.

A store is plain and blocking: each method returns when its work is done, and what was acknowledged is kept as safely as
the store can keep anything. Methods may be called from any thread. Each call is whole: it happens entirely or not at
all, and an error means that nothing was changed.

Names of extensions and keys come from whoever called; a store refuses what breaks the rules of the contract with
`InvalidParams`, and what goes beyond an extension's share with `QuotaExceeded`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from becket.contract.config import ConfigChanged, ConfigSaved, ConfigSet, ConfigValue
from becket.contract.memory import Append, Appended, Query, Record
from becket.limits import Limits

__all__ = ["Clock", "Snapshot", "Store", "StoreFactory"]

Clock = Callable[[], int]
"""Returns the time in milliseconds since 1970."""


class Snapshot(Struct, frozen=True):
    """The values of an extension at one revision."""

    revision: int
    values: dict[str, str]


class Store(Protocol):
    """Memory and configuration of all extensions. See `becket.testing.check_store`, which proves one."""

    def append(self, append: Append) -> Appended:
        """Keeps a record, with the store's own time and an id larger than all before it.

        With an `idem` that its namespace has seen, nothing is kept and the answer is the first one again."""
        ...

    def query(self, query: Query) -> list[Record]:
        """Returns the records that fit, the latest appended first, whatever the clock did in between.

        There are at most as many as the query's limit, 50 where it has none, and never more than a page of them."""
        ...

    def get_config(self, extension: str, key: str) -> ConfigValue:
        """Returns a value and the revision of its last change; None and 0 where there is none."""
        ...

    def set_config(self, extension: str, change: ConfigSet) -> ConfigSaved:
        """Keeps a value under a new revision, larger than all before it of any extension.

        Where `if_revision` is not the revision of the key, nothing is kept, and the answer is not `ok` and tells the
        revision that it has."""
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
        is logged; the change stands and others are called. What has changed is told by `read_changes`."""
        ...

    def close(self) -> None:
        """Lets go of all that the store holds. It may be called twice; a closed store refuses everything else."""
        ...


StoreFactory = Callable[[Limits, Clock], Store]
"""Returns a new, empty store that keeps these limits and reads this clock."""
