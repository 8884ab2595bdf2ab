"""Opens the store of a host for commands that write to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from becket.cli.support.options import DataDirOptions
from becket.errors import StoreInUse, StoreUnavailable

if TYPE_CHECKING:
    from becket.stores.sqlite import SqliteStore

__all__ = ["open_store"]


def open_store(options: DataDirOptions, *, make: bool = False) -> SqliteStore:
    """Opens the store of a host for writing; `make` creates it if it does not exist.

    Raises:
        StoreUnavailable: it does not exist, cannot be opened, or is in use by a host.
    """
    from becket.stores.sqlite import SqliteStore
    from becket.stores.sqlite.schema import is_store

    data_dir = options.data_dir()
    if make:
        data_dir.create()
    elif not is_store(data_dir.store):
        raise StoreUnavailable(str(data_dir.store), "there is no store", "select a host with --name or --data")
    try:
        return SqliteStore(data_dir.store)
    except StoreInUse as error:
        raise StoreUnavailable(error.path, error.because, "stop that process first") from error
