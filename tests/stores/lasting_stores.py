"""Stores in one small file: one that is correct, and some that each break one guarantee."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

from becket.contract.config import ConfigSaved
from becket.contract.memory import Appended
from becket.limits import Limits
from becket.stores.in_memory import InMemoryStore, NamespaceRecords
from becket.stores.quotas import NewRecord
from becket.stores.sqlite.lock import StoreLock
from becket.stores.store import Clock

STATE = ("_memories", "_configs", "_last_id", "_revision")


class PickleStore(InMemoryStore):
    """Writes all data after each change to a second file, and then renames it."""

    def __init__(self, path: Path, limits: Limits, clock: Clock) -> None:
        super().__init__(limits, clock)
        self._path = path
        self._owner = self._own()
        if path.exists():
            for name, value in pickle.loads(path.read_bytes()).items():
                setattr(self, name, value)

    def _own(self) -> StoreLock | None:
        return StoreLock(self._path)

    def _insert(self, entry: NewRecord) -> Appended:
        response = super()._insert(entry)
        self._write()
        return response

    def _change(self, extension: str, key: str, value: str | None, if_revision: int | None) -> ConfigSaved:
        saved = super()._change(extension, key, value, if_revision)
        self._write()
        return saved

    def forget(self, namespace: str, *, up_to: int | None = None) -> int:
        count = super().forget(namespace, up_to=up_to)
        self._write()
        return count

    def _write(self) -> None:
        with self._lock:
            content = pickle.dumps(self.state())
            new = self._path.with_suffix(".new")
            with open(new, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.rename(new, self._path)

    def state(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in STATE}

    def close(self) -> None:
        if self._owner is not None:
            self._owner.release(in_order=True)
            self._owner = None
        super().close()


class AllowsSeveralProcesses(PickleStore):
    def _own(self) -> StoreLock | None:
        return None


class CountsAnew(PickleStore):
    """Begins with the ids of the records that it finds."""

    def __init__(self, path: Path, limits: Limits, clock: Clock) -> None:
        super().__init__(path, limits, clock)
        ids = [kept.record.id or 0 for memory in self._memories.values() for kept in memory.records]
        self._last_id = max(ids, default=0)


class ForgetsKeysWhenItIsClosed(PickleStore):
    def __init__(self, path: Path, limits: Limits, clock: Clock) -> None:
        super().__init__(path, limits, clock)
        for memory in self._memories.values():
            memory.by_idem.clear()


class ForgetsChangesWhenItIsClosed(PickleStore):
    def __init__(self, path: Path, limits: Limits, clock: Clock) -> None:
        super().__init__(path, limits, clock)
        for config in self._configs.values():
            config.log.clear()


class ForgetsSharesWhenItIsClosed(PickleStore):
    def __init__(self, path: Path, limits: Limits, clock: Clock) -> None:
        super().__init__(path, limits.but(memory_records=10**6) if path.exists() else limits, clock)


class LosesTheOldestWhenItIsClosed(PickleStore):
    """Loses a record when it has many: only many calls show it."""

    def __init__(self, path: Path, limits: Limits, clock: Clock) -> None:
        super().__init__(path, limits, clock)
        for memory in self._memories.values():
            if len(memory.records) > 5:
                memory.records.pop(0)


class WritesWhenItIsClosed(PickleStore):
    """Acknowledges at once, and writes every tenth time and at the end."""

    changes = 0

    def _write(self) -> None:
        self.changes += 1
        if self.changes % 10 == 0:
            super()._write()

    def close(self) -> None:
        if self._owner is not None:
            super()._write()
        super().close()


class StoresTwice(PickleStore):
    """Forgets keys from before the last tenth write, and so stores their records again."""

    def state(self) -> dict[str, Any]:
        return {**super().state(), "_memories": {name: without_keys(one) for name, one in self._memories.items()}}

    def __init__(self, path: Path, limits: Limits, clock: Clock) -> None:
        was_left = path.with_name(f"{path.name}.lock").exists() and path.with_name(f"{path.name}.lock").stat().st_size
        super().__init__(path, limits, clock)
        if not was_left:
            for memory in self._memories.values():
                memory.by_idem = {kept.idem: as_appended(kept) for kept in memory.records if kept.idem is not None}


def without_keys(memory: NamespaceRecords) -> NamespaceRecords:
    copy = NamespaceRecords()
    copy.records, copy.bytes = memory.records, memory.bytes
    return copy


def as_appended(kept: Any) -> Appended:
    return Appended(True, kept.record.timestamp_ms, kept.record.id)
