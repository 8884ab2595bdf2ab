"""Opens and closes the data of a host: its store, audit log, grants, trust and secrets.

In a folder they survive its end; without one they are gone with it. Opening and closing may wait for a disk: do it in a
thread.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Set as AbstractSet
from pathlib import Path
from threading import Lock

from becket._loggers import host_logger
from becket._text import quote_path
from becket.contract.audit import AuditEvent
from becket.conversion.files.reader import load_bytes
from becket.errors import BadFile, RevocationNotPersistent
from becket.host.audit_log import ROTATE_AT, AuditFile, AuditLog, AuditMode
from becket.host.data_dir import DataDir
from becket.host.providers import ProviderTrust, parse_trust
from becket.host.starting.approvals import Approval, load_approval, save_approval
from becket.host.starting.grants_file import GrantEntry, edit_grants, load_grants
from becket.host.starting.pending_revocations import add_pending, load_pending
from becket.host.starting.secrets import Secrets
from becket.limits import DEFAULT_LIMITS, Limits
from becket.permissions.names import PERMISSIONS
from becket.stores.in_memory import InMemoryStore
from becket.stores.store import Store, now_ms

__all__ = ["Persistence", "open_persistence"]

MAX_MEMORY_AUDIT = 10_000  # events of an audit that is in memory alone
FULL = (errno.ENOSPC, errno.EDQUOT)


class Persistence:
    """The data of one host. `close` it in the end. `release_reserve` frees space on a full disk, for a revocation."""

    def __init__(
        self,
        data_dir: DataDir | None,
        store: Store,
        audit: AuditLog,
        ends: list[Callable[[], object]],
        release_reserve: Callable[[], object] | None = None,
        known: AbstractSet[str] = PERMISSIONS,
    ) -> None:
        self.data_dir = data_dir
        self.store = store
        self.audit = audit
        self.trust = load_trust(data_dir)
        self.secrets = None if data_dir is None else Secrets(data_dir.secrets)
        self._cleanups = ends
        self._lock = Lock()  # reading and changing the file happen in different threads
        self._seen = self._stat_grants()
        self._unreported: dict[
            str, GrantEntry | None
        ] = {}  # entries before a change of this host, to detect changes by others
        self._known = known
        self._entries: dict[str, GrantEntry] = {} if data_dir is None else load_grants(data_dir.grants, known=known)
        self._approvals: dict[str, Approval] = {}  # if there is no folder for them
        self._release_reserve = release_reserve
        self._revoking = Lock()
        self._revoked: dict[str, frozenset[str]] = {}  # revocations that are not in the grants file yet

    def get_grants(self, extension: str) -> GrantEntry | None:
        """Returns the approved grants of an extension, None if there are none."""
        return self._without_revoked(extension, self._entries.get(extension))

    def approved_digests(self) -> frozenset[str]:
        """Returns the digests of all approved files."""
        return frozenset(entry.digest for entry in self._entries.values() if entry.digest)

    def approved_extensions(self) -> frozenset[str]:
        """Returns the extensions with approved files."""
        return frozenset(id for id, entry in self._entries.items() if entry.digest)

    def change_grants(self, extension: str, change: Callable[[GrantEntry], GrantEntry]) -> GrantEntry:
        """Changes the grants of an extension, in the file too; on return it is safe on disk.

        Raises:
            BadFile: the file cannot be read or written.
        """
        known = self.get_grants(extension)
        revoked = self._revoked.get(extension, frozenset())

        def change_what_is_there(found: GrantEntry) -> GrantEntry:
            found = found.with_denials(revoked) if revoked else found
            if found != (known or GrantEntry()):
                self._unreported.setdefault(extension, known)
            return change(found)

        with self._lock:
            if self.data_dir is None:
                entry = change(known or GrantEntry())
            else:
                path, known_names = self.data_dir.grants, self._known
                entry = edit_grants(path, extension, change_what_is_there, known=known_names) or GrantEntry()
            self._entries[extension] = entry
        self._forget_revoked(extension, revoked)
        return entry

    # -- approvals

    def approval_of(self, extension: str) -> Approval | None:
        """Returns the last approval of an extension, if it is stored."""
        if self.data_dir is None:
            return self._approvals.get(extension)
        return load_approval(self.data_dir.approval_of(extension))

    def keep_approval(self, extension: str, approval: Approval) -> None:
        """Stores an approval.

        Raises:
            OSError: it cannot be written.
        """
        if self.data_dir is None:
            self._approvals[extension] = approval
        else:
            save_approval(self.data_dir.approval_of(extension), approval)

    # -- revocations

    def revoke(self, extension: str, names: Iterable[str]) -> None:
        """Denies permissions from now on, in memory, without waiting. `write_revocations` makes it persistent."""
        with self._revoking:
            self._revoked[extension] = self._revoked.get(extension, frozenset()) | {*names}

    def unwritten_revocations(self, extension: str) -> tuple[str, ...]:
        """Returns the permissions of an extension whose revocation is not written yet."""
        return tuple(sorted(self._revoked.get(extension, ())))

    def write_revocations(self, extension: str) -> None:
        """Writes revocations, into the reserved space if the disk is full.

        Raises:
            RevocationNotPersistent: they could not be written; the next attempt includes them.
        """
        names = self.unwritten_revocations(extension)
        try:
            try:
                self.change_grants(extension, unchanged)
            except BadFile as error:
                if not is_full(error) or self._release_reserve is None:
                    raise
                self._release_reserve()
                self.change_grants(extension, unchanged)
        except BadFile as error:
            assert self.data_dir is not None
            note_pending(self.data_dir, extension, names)
            raise RevocationNotPersistent(extension, names, error.path, error.problems) from error

    def retry_revocations(self) -> dict[str, RevocationNotPersistent | None]:
        """Tries again to write revocations; returns the outcome by extension."""
        outcomes: dict[str, RevocationNotPersistent | None] = {}
        for extension in [*self._revoked]:
            try:
                self.write_revocations(extension)
                outcomes[extension] = None
            except RevocationNotPersistent as error:
                outcomes[extension] = error
        return outcomes

    def resume_revocations(self) -> None:
        """Resumes the revocations that the previous host could not write.

        Raises:
            BadFile: they cannot be read.
        """
        if self.data_dir is not None:
            self._revoked = {id: frozenset(names) for id, names in load_pending(self.data_dir.grants).items()}

    def _without_revoked(self, extension: str, entry: GrantEntry | None) -> GrantEntry | None:
        revoked = self._revoked.get(extension)
        return (entry or GrantEntry()).with_denials(revoked) if revoked else entry

    def _forget_revoked(self, extension: str, written: frozenset[str]) -> None:
        with self._revoking:
            left = self._revoked.pop(extension, frozenset()) - written
            if left:
                self._revoked[extension] = left

    # -- changes by other programs

    def has_grant_changes(self) -> bool:
        """Returns whether the grants file may have changed since it was last read."""
        return self._stat_grants() != self._seen

    def _stat_grants(self) -> tuple[int, ...]:
        if self.data_dir is None:
            return ()
        try:
            found = os.stat(self.data_dir.grants)
        except OSError:
            return ()
        return found.st_ino, found.st_size, found.st_mtime_ns

    def reload_grants(self) -> dict[str, tuple[GrantEntry | None, GrantEntry | None]]:
        """Reads the grants file again; returns the entries that another program has changed, before and after.

        Raises:
            BadFile: it cannot be read; the previous grants apply.
        """
        with self._lock:
            self._seen = self._stat_grants()  # first: what is written while it is read is read again
            after = {} if self.data_dir is None else load_grants(self.data_dir.grants, known=self._known)
            for id, revoked in [*self._revoked.items()]:
                after[id] = after.get(id, GrantEntry()).with_denials(revoked)
            before = {**self._entries, **self._unreported}
            self._entries = after
            self._unreported.clear()
        changed = [id for id in {**before, **after} if before.get(id) != after.get(id)]
        return {id: (before.get(id), after.get(id)) for id in changed}

    def close(self) -> None:
        """Writes the audit's counts and the revocations, and closes everything."""
        try:
            for error in self.retry_revocations().values():
                if error is not None:
                    log_error("%s", error)
            self.audit.flush()
        finally:
            for end in self._cleanups:
                end()


def open_persistence(
    data_dir: DataDir | None,
    store: Store | None = None,
    *,
    limits: Limits = DEFAULT_LIMITS,
    audit: AuditMode = AuditMode.USUAL,
    audit_bytes: int = ROTATE_AT,
    read_only: bool = False,
    known: AbstractSet[str] = PERMISSIONS,
) -> Persistence:
    """Opens the data of a host. A `store` of the caller's own is used and not closed.

    `audit_bytes` is the size at which a file of the audit is rotated. With `read_only` nothing is created or written,
    and another host may have it all open. `known` are the permissions that exist.

    Raises:
        StoreUnavailable: the store cannot be opened, or another host has it.
        BadFile: the grants or the secrets cannot be read; defaults would be unsafe.
        OSError: the folder or the audit cannot be opened.
    """
    ends: list[Callable[[], object]] = []
    release_reserve: Callable[[], object] | None = None
    if data_dir is None or read_only:
        remembered: list[tuple[AuditEvent, int]] = []

        def remember(event: AuditEvent, time_ms: int) -> None:
            if len(remembered) < MAX_MEMORY_AUDIT:
                remembered.append((event, time_ms))

        own = store or open_read_only(data_dir, limits)
        log = AuditLog(remember, now=now_ms, mode=audit)
        return Persistence(data_dir, own, log, [] if store is not None else [own.close], known=known)
    data_dir.create()
    if store is None:
        from becket.stores.sqlite import SqliteStore  # sqlite3 is imported only for a data directory

        store = own_store = SqliteStore(data_dir.store, limits)
        release_reserve = own_store.release_reserve
        ends.append(store.close)
    try:
        file = AuditFile(data_dir.audit, rotate_at=audit_bytes)
        ends.append(file.close)
        persistence = Persistence(
            data_dir, store, AuditLog(file.write, now=now_ms, mode=audit), ends, release_reserve, known
        )
        persistence.resume_revocations()
        return persistence
    except BaseException:
        for end in ends:
            end()
        raise


def unchanged(entry: GrantEntry) -> GrantEntry:
    return entry


def is_full(error: BadFile) -> bool:
    return isinstance(error.__cause__, OSError) and error.__cause__.errno in FULL


def note_pending(data_dir: DataDir, extension: str, names: Iterable[str]) -> None:
    """Stores beside the grants file what could not be written there, if that is possible."""
    try:
        add_pending(data_dir.grants, extension, names)
    except (BadFile, OSError) as error:
        log_error("%s: the revocation could not be written beside it either: %s", quote_path(data_dir.grants), error)


def log_error(text: str, *parts: object) -> None:
    host_logger().error(text, *parts)


def open_read_only(data_dir: DataDir | None, limits: Limits) -> Store:
    """Returns the store of a host, or an empty one if there is none."""
    if data_dir is None or not data_dir.store.exists():
        return InMemoryStore(limits)
    from becket.stores.sqlite import SqliteStore

    return SqliteStore(data_dir.store, limits, read_only=True)


def load_trust(data_dir: DataDir | None) -> ProviderTrust:
    """Returns which providers are trusted. A file that cannot be read trusts none."""
    path: Path | None = None if data_dir is None else data_dir.trust
    if path is None or not path.exists():
        return ProviderTrust()
    try:
        return parse_trust(load_bytes(path))
    except BadFile as error:
        return ProviderTrust(error=str(error))
