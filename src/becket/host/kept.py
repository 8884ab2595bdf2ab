"""What a host holds open while it runs: the store, the audit, the grants and the trust in providers.

In a folder they survive its end; without one they are gone with it. Opening and closing may wait for a disk: do it in a
thread.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from threading import Lock

from becket.contract.audit import AuditEvent
from becket.errors import BadFile
from becket.host.audit_log import ROTATE_AT, AuditFile, AuditLog, AuditMode
from becket.host.grants_file import GrantEntry, edit_grants, load_grants
from becket.host.places import Places
from becket.host.providers import Trust, parse_trust
from becket.limits import DEFAULT_LIMITS, Limits
from becket.stores.in_memory import InMemoryStore
from becket.stores.store import Store, now_ms
from becket.typed.small_files import read_small_file

__all__ = ["Kept", "open_kept"]

MOST_REMEMBERED = 10_000  # events of an audit that is kept in memory alone


class Kept:
    """What one host keeps. `close` it in the end."""

    def __init__(self, places: Places | None, store: Store, audit: AuditLog, ends: list[Callable[[], object]]) -> None:
        self.places = places
        self.store = store
        self.audit = audit
        self.trust = load_trust(places)
        self._ends = ends
        self._lock = Lock()  # who reads the file and who changes it are in threads of their own
        self._seen = self._look_at_grants()
        self._unheard: dict[str, GrantEntry | None] = {}  # entries before a change of ours, to what others had changed
        self._entries: dict[str, GrantEntry] = {} if places is None else load_grants(places.grants)

    def grants_of(self, extension: str) -> GrantEntry | None:
        """Returns what was agreed to for an extension, None where nothing was."""
        return self._entries.get(extension)

    def agreed_digests(self) -> frozenset[str]:
        """Returns the digests of all files that were agreed to."""
        return frozenset(entry.digest for entry in self._entries.values() if entry.digest)

    def change_grants(self, extension: str, change: Callable[[GrantEntry], GrantEntry]) -> GrantEntry:
        """Changes what an extension may do, in the file too; on return it is safe on disk.

        Raises:
            BadFile: the file cannot be read or written.
        """
        known = self._entries.get(extension)

        def change_what_is_there(found: GrantEntry) -> GrantEntry:
            if found != (known or GrantEntry()):
                self._unheard.setdefault(extension, known)
            return change(found)

        with self._lock:
            if self.places is None:
                entry = change(known or GrantEntry())
            else:
                entry = edit_grants(self.places.grants, extension, change_what_is_there) or GrantEntry()
            self._entries[extension] = entry
        return entry

    def has_new_grants(self) -> bool:
        """Returns whether the file of grants may hold something else than it did when it was last read."""
        return self._look_at_grants() != self._seen

    def _look_at_grants(self) -> tuple[int, ...]:
        if self.places is None:
            return ()
        try:
            found = os.stat(self.places.grants)
        except OSError:
            return ()
        return found.st_ino, found.st_size, found.st_mtime_ns

    def reload_grants(self) -> dict[str, tuple[GrantEntry | None, GrantEntry | None]]:
        """Reads the file of grants again; returns the entries that somebody else has changed, before and after.

        Raises:
            BadFile: it cannot be read; what was there before holds on.
        """
        with self._lock:
            self._seen = self._look_at_grants()  # first: what is written while it is read is looked at again
            after = {} if self.places is None else load_grants(self.places.grants)
            before = {**self._entries, **self._unheard}
            self._entries = after
            self._unheard.clear()
        changed = [id for id in {**before, **after} if before.get(id) != after.get(id)]
        return {id: (before.get(id), after.get(id)) for id in changed}

    def close(self) -> None:
        """Writes what was only counted so far, and lets go of everything."""
        try:
            self.audit.flush()
        finally:
            for end in self._ends:
                end()


def open_kept(
    places: Places | None,
    store: Store | None = None,
    *,
    limits: Limits = DEFAULT_LIMITS,
    audit: AuditMode = AuditMode.USUAL,
    audit_bytes: int = ROTATE_AT,
    read_only: bool = False,
) -> Kept:
    """Opens what a host keeps. A `store` of the caller's own is used and not closed.

    `audit_bytes` is the size at which a file of the audit is rotated. With `read_only` nothing is made or written, and
    another host may have it all open.

    Raises:
        StoreUnavailable: the store cannot be opened, or another host has it.
        BadFile: the grants cannot be read; nobody has any then, and that is not decided in silence.
        OSError: the folder or the audit cannot be opened.
    """
    ends: list[Callable[[], object]] = []
    if places is None or read_only:
        remembered: list[tuple[AuditEvent, int]] = []

        def remember(event: AuditEvent, time_ms: int) -> None:
            if len(remembered) < MOST_REMEMBERED:
                remembered.append((event, time_ms))

        own = store or open_for_reading(places, limits)
        return Kept(places, own, AuditLog(remember, now=now_ms, mode=audit), [] if store is not None else [own.close])
    places.make()
    if store is None:
        from becket.stores.sqlite import SqliteStore  # sqlite3 is there only where something is kept

        store = SqliteStore(places.store, limits)
        ends.append(store.close)
    try:
        file = AuditFile(places.audit, rotate_at=audit_bytes)
        ends.append(file.close)
        return Kept(places, store, AuditLog(file.write, now=now_ms, mode=audit), ends)
    except BaseException:
        for end in ends:
            end()
        raise


def open_for_reading(places: Places | None, limits: Limits) -> Store:
    """Returns the store of a host, or an empty one where there is none."""
    if places is None or not places.store.exists():
        return InMemoryStore(limits)
    from becket.stores.sqlite import SqliteStore

    return SqliteStore(places.store, limits, read_only=True)


def load_trust(places: Places | None) -> Trust:
    """Returns which providers are trusted. A file that is there and cannot be read trusts nobody."""
    path: Path | None = None if places is None else places.trust
    if path is None or not path.exists():
        return Trust()
    try:
        return parse_trust(read_small_file(path))
    except BadFile as error:
        return Trust(broken=str(error))
