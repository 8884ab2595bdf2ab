"""`secrets.json`: the configuration values that manifests declare as secret, in a file for its owner alone.

They are kept out of the store, which is copied, backed up and inspected. There each secret key has `***` as its value,
so that revisions, changes and lists of keys are the store's as for any other key.

The file lists secret keys also without a value: commands without manifests hide them by it. One program at a time
writes it, the one that has the store open.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from threading import RLock
from typing import Final

import msgspec
from msgspec.structs import replace

from becket._text import quote_path
from becket.contract.config import (
    ConfigChanged,
    ConfigSaved,
    ConfigSet,
    ConfigValue,
    check_config_set,
    parse_config_key,
)
from becket.conversion.files.reader import load_bytes, replace_file
from becket.errors import JSON_ERRORS, BadFile, BecketError
from becket.host.diagnostics import Diagnostic, ProblemCode, Severity
from becket.host.redaction import HIDDEN
from becket.limits import DEFAULT_LIMITS, MIB, Limits
from becket.stores.store import Snapshot, Store

__all__ = ["SecretConfig", "Secrets", "move_secrets", "move_secrets_of"]

LARGEST: Final = 64 * MIB  # bytes of the file: every value is within its own limit
SecretEntries = dict[str, dict[str, str | None]]


class Secrets:
    """The secrets of all extensions of a host. Thread-safe.

    Raises:
        BadFile: the file exists and cannot be read; defaults would be unsafe.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lock = RLock()
        self._entries = load_entries(path)

    def keys_of(self, extension: str) -> frozenset[str]:
        """Returns which keys of an extension are known to be secret."""
        return frozenset(self._entries.get(extension, {}))

    def values_of(self, extension: str) -> dict[str, str]:
        """Returns the secrets that are set for an extension."""
        return {key: value for key, value in self._entries.get(extension, {}).items() if value is not None}

    def expect(self, extension: str, keys: Iterable[str]) -> None:
        """Treats these keys as secret, without storing that."""
        with self.lock:
            known = self._entries.get(extension, {})
            self._entries = {**self._entries, extension: {**dict.fromkeys(keys), **known}}

    def declare(self, extension: str, keys: Iterable[str]) -> None:
        """Stores that these keys are secret. Raises OSError if that cannot be written."""
        with self.lock:
            new = set(keys) - self.keys_of(extension)
            if new:
                self._write(extension, {**dict.fromkeys(sorted(new)), **self._entries.get(extension, {})})

    def set(self, extension: str, key: str, value: str | None) -> None:
        """Stores a value, or removes it if it is None; on return that is on the disk.

        Raises:
            OSError: nothing was changed.
        """
        with self.lock:
            known = self._entries.get(extension, {})
            if key not in known or known[key] != value:
                self._write(extension, {**known, key: value})

    def _write(self, extension: str, keys: dict[str, str | None]) -> None:
        entries = {**self._entries, extension: keys}
        replace_file(self.path, msgspec.json.format(msgspec.json.encode(entries, order="sorted"), indent=2) + b"\n")
        self._entries = entries

    def __repr__(self) -> str:
        return f"<Secrets {self.path}: {sum(map(len, self._entries.values()))} keys>"


def load_entries(path: Path) -> SecretEntries:
    try:
        data = load_bytes(path, LARGEST, follow_links=False)
    except BadFile as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return {}
        raise
    try:
        return msgspec.json.decode(data, type=SecretEntries)
    except JSON_ERRORS as error:
        # The decoder's message may quote the file.
        raise BadFile(quote_path(path), [("", "is not what a host has written: restore it, or remove it")]) from error


# -- the configuration of one extension, with its secrets in it


class SecretConfig:
    """The configuration in a store as its extension sees it: the values of secret keys come from the secrets.

    It has those methods of a `Store` that are about configuration."""

    def __init__(
        self, store: Store, secrets: Secrets, keys: Collection[str] = (), limits: Limits = DEFAULT_LIMITS
    ) -> None:
        self._store = store
        self._secrets = secrets
        self._keys = frozenset(keys)
        self._limits = limits

    def is_secret(self, extension: str, key: str) -> bool:
        """Returns whether a key is secret: as declared here, or in the secrets."""
        return key in self._keys or key in self._secrets.keys_of(extension)

    def get_config(self, extension: str, key: str) -> ConfigValue:
        """Returns a value and its revision, as `Store.get_config` does."""
        found = self._store.get_config(extension, key)
        return replace(found, value=self._reveal(extension, parse_config_key(key, self._limits), found.value))

    def set_config(self, extension: str, change: ConfigSet) -> ConfigSaved:
        """Stores a value, as `Store.set_config` does; a secret outside of the store."""
        key = parse_config_key(change.key, self._limits)
        if not self.is_secret(extension, key):
            return self._store.set_config(extension, change)
        check_config_set(change, self._limits)
        return self._swap(extension, key, change.value, change.if_revision)

    def remove_config(self, extension: str, key: str, *, if_revision: int | None = None) -> ConfigSaved:
        """Removes a value, as `Store.remove_config` does."""
        key = parse_config_key(key, self._limits)
        if not self.is_secret(extension, key):
            return self._store.remove_config(extension, key, if_revision=if_revision)
        return self._swap(extension, key, None, if_revision)

    def _swap(self, extension: str, key: str, value: str | None, if_revision: int | None) -> ConfigSaved:
        """Stores a secret first and its revision second: a subscriber to the change finds the value."""
        with self._secrets.lock:
            revision = self._store.get_config(extension, key).revision or 0
            if if_revision is not None and if_revision != revision:
                return ConfigSaved(False, revision)
            before = self._secrets.values_of(extension).get(key)
            self._secrets.set(extension, key, value)
            try:
                if value is None:
                    return self._store.remove_config(extension, key)
                return self._store.set_config(extension, ConfigSet(key, HIDDEN))
            except BaseException:
                self._secrets.set(extension, key, before)
                raise

    def read_config(self, extension: str, keys: tuple[str, ...] | None = None) -> Snapshot:
        """Returns several values, as `Store.read_config` does."""
        found = self._store.read_config(extension, keys)
        revealed = {key: self._reveal(extension, key, value) for key, value in found.values.items()}
        return Snapshot(found.revision, {key: value for key, value in revealed.items() if value is not None})

    def read_changes(
        self, extension: str, since: int, keys: tuple[str, ...] | None = None
    ) -> list[ConfigChanged] | None:
        """Returns the changes, as `Store.read_changes` does; each of a secret with its current value."""
        found = self._store.read_changes(extension, since, keys)
        if found is None:
            return None
        return [replace(one, value=self._reveal(extension, one.key, one.value)) for one in found]

    def _reveal(self, extension: str, key: str, value: str | None) -> str | None:
        if value is None or not self.is_secret(extension, key):
            return value
        # One that is not among the secrets was put into the store by another program, and is moved at the next start.
        return self._secrets.values_of(extension).get(key, None if value == HIDDEN else value)


# -- values in the store of an older version


def move_secrets_of(store: Store, secrets: Secrets, extension: str, keys: Collection[str]) -> Diagnostic | None:
    """Moves the values of secret keys out of a store, and returns what to report about it. Blocking."""
    try:
        moved = move_secrets(store, secrets, extension, keys)
    except (OSError, BecketError) as error:
        return Diagnostic(
            code=ProblemCode.SECRETS_NOT_MOVED,
            extension=extension,
            problem=f"its secrets are still in the store, and cannot be moved to {secrets.path.name}: {error}",
            hint="make the data folder writable, and start the host again",
        )
    if not moved:
        return None
    return Diagnostic(
        code=ProblemCode.SECRETS_MOVED,
        extension=extension,
        problem=f"moved out of the store, to {secrets.path.name}: {', '.join(moved)}",
        hint="backups of the store from before still have them: change these secrets",
        severity=Severity.NOTE,
    )


def move_secrets(store: Store, secrets: Secrets, extension: str, keys: Collection[str]) -> tuple[str, ...]:
    """Moves the values of secret keys out of a store, its record of changes included, and returns which there were.

    Blocking. Raises OSError or StoreError if it fails; then the values are in both."""
    found = store.read_config(extension, tuple(keys)).values
    moved = tuple(sorted(key for key, value in found.items() if value != HIDDEN))
    new = set(keys) - secrets.keys_of(extension)  # a store may remember values that were removed, too
    for key in moved:
        secrets.set(extension, key, found[key])
    redact = getattr(store, "redact_config", None)
    for key in sorted({*moved, *new}):
        if redact is not None:
            redact(extension, key, HIDDEN)
        elif key in moved:  # a custom store: its record of changes is its own
            store.set_config(extension, ConfigSet(key, HIDDEN))
    secrets.declare(extension, keys)
    return moved
