"""Opens the store of a host for commands that change it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from becket.cli.hosting import PlaceOptions
from becket.errors import StoreInUse, StoreUnavailable

if TYPE_CHECKING:
    from becket.stores.sqlite import SqliteStore

__all__ = ["open_store"]


def open_store(options: PlaceOptions, *, make: bool = False) -> SqliteStore:
    """Opens the store of a host to change it. Unless it is to be made, it must be there already.

    Raises:
        StoreUnavailable: there is none, it cannot be opened, or a host has it.
    """
    from becket.stores.sqlite import SqliteStore
    from becket.stores.sqlite.file import is_ours

    places = options.places()
    if make:
        places.make()
    elif not is_ours(places.store):
        raise StoreUnavailable(str(places.store), "there is no store", "say which host is meant: --name, --data")
    try:
        return SqliteStore(places.store)
    except StoreInUse as error:
        raise StoreUnavailable(error.path, error.because, "it can be changed when that has ended") from error
