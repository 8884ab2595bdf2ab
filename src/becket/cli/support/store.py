"""Opens the store of a host for commands that write to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from becket.cli.support.options import DataDirOptions
from becket.errors import StoreInUse, StoreUnavailable

if TYPE_CHECKING:
    from becket.stores.sqlite import SqliteStore

__all__ = ["open_store"]


def open_store(options: DataDirOptions, *, make: bool = False) -> SqliteStore:
    """Opens the store of a host to change it. Unless it is to be made, it must be there already.

    Raises:
        StoreUnavailable: there is none, it cannot be opened, or a host has it.
    """
    from becket.stores.sqlite import SqliteStore
    from becket.stores.sqlite.schema import is_store

    places = options.data_dir()
    if make:
        places.create()
    elif not is_store(places.store):
        raise StoreUnavailable(str(places.store), "there is no store", "say which host is meant: --name, --data")
    try:
        return SqliteStore(places.store)
    except StoreInUse as error:
        raise StoreUnavailable(error.path, error.because, "it can be changed when that has ended") from error
