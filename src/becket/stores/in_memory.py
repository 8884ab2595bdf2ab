"""A store in memory, for tests and for hosts that persist nothing."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import Lock
from time import monotonic

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from becket.contract.config import (
    ConfigChanged,
    ConfigSaved,
    ConfigSet,
    ConfigValue,
    check_config_set,
    parse_config_key,
)
from becket.contract.memory import DEFAULT_QUERY_LIMIT, Append, Appended, Query, Record, Records
from becket.errors import BecketError, LocalProtocolError, QueryTimeout
from becket.limits import DEFAULT_LIMITS, Limits
from becket.stores.notifications import ChangeNotifier, complete_append
from becket.stores.query_filter import RecordFilter, check_namespace, fill_page, parse_query, parse_search, rank_texts
from becket.stores.quotas import NewRecord, check_config_quota, check_memory_quota, config_value_size, parse_append
from becket.stores.store import AppendCallback, Clock, Damage, Snapshot, now_ms

__all__ = ["InMemoryStore"]

DEADLINE_INTERVAL = 512  # records between two checks of the deadline: a millisecond of work


class StoredRecord(Struct, frozen=True):
    """A record without its `meta`, with its folded text, encoded `meta` and size."""

    record: Record
    folded: str
    meta: bytes | None
    idem: str | None
    size: int


class NamespaceRecords:
    """The records of one namespace."""

    __slots__ = ("by_idem", "bytes", "records")

    def __init__(self) -> None:
        self.records: list[StoredRecord] = []
        self.by_idem: dict[str, Appended] = {}
        self.bytes = 0


class ConfigValues:
    """The config values of one extension, and its latest changes."""

    __slots__ = ("bytes", "dropped_revision", "log", "values")

    def __init__(self) -> None:
        self.values: dict[str, tuple[str, int]] = {}
        self.bytes = 0
        self.log: deque[ConfigChanged] = deque()
        self.dropped_revision = 0  # changes up to this revision are no longer in the log


class InMemoryStore:
    """A store in memory; enforces the quotas of each extension. The semantics are those of `Store`."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS, clock: Clock = now_ms) -> None:
        self._limits = limits
        self._clock = clock
        self._lock = Lock()
        self._memories: dict[str, NamespaceRecords] = {}
        self._configs: dict[str, ConfigValues] = {}
        self._notifier = ChangeNotifier(limits.call_depth)
        self._last_id = 0
        self._revision = 0
        self._is_closed = False

    # -- memory

    def append(self, append: Append) -> Appended:
        return self._insert(parse_append(append, self._limits))

    def append_nowait(self, append: Append, done: AppendCallback) -> None:
        entry = parse_append(append, self._limits)
        outcome: Appended | BecketError
        try:
            outcome = self._insert(entry)
        except LocalProtocolError:
            raise
        except BecketError as error:
            outcome = error
        complete_append(done, outcome)

    def _insert(self, entry: NewRecord) -> Appended:
        with self._lock:
            self._check_open()
            memory = self._memories.get(entry.namespace) or NamespaceRecords()
            if entry.idem is not None and entry.idem in memory.by_idem:
                return memory.by_idem[entry.idem]
            check_memory_quota(
                entry.namespace, self._limits, records=len(memory.records), used=memory.bytes, more=entry.size
            )
            appended = Appended(True, max(0, self._clock()), self._last_id + 1)
            record = Record(entry.namespace, appended.timestamp_ms, entry.content, entry.tags, id=appended.id)
            memory.records.append(StoredRecord(record, entry.content.casefold(), entry.meta, entry.idem, entry.size))
            memory.bytes += entry.size
            if entry.idem is not None:
                memory.by_idem[entry.idem] = appended
            self._memories[entry.namespace] = memory
            self._last_id += 1
            return appended

    def query(self, query: Query, *, timeout: float | None = None) -> list[Record]:
        return [to_record(stored) for stored in self._find(parse_query(query, self._limits), timeout)]

    def query_page(self, query: Query, most_bytes: int) -> Records:
        found = self._find(parse_query(query, self._limits), None)
        return fill_page((with_meta_text(stored) for stored in found), most_bytes)

    def search(
        self, namespace: str, text: str, *, limit: int = DEFAULT_QUERY_LIMIT, timeout: float | None = None
    ) -> list[Record]:
        criteria = parse_search(namespace, text, self._limits)
        found = self._find(criteria, timeout) if criteria.words else []
        most = max(0, min(limit, self._limits.memory_page))
        best = rank_texts([stored.folded for stored in found], criteria.words)[:most]
        return [to_record(found[place]) for place in best]

    def _find(self, criteria: RecordFilter, timeout: float | None) -> list[StoredRecord]:
        seconds = self._limits.query_seconds if timeout is None else min(timeout, self._limits.query_seconds)
        until = monotonic() + seconds
        found: list[StoredRecord] = []
        with self._lock:
            self._check_open()
            memory = self._memories.get(criteria.namespace) or NamespaceRecords()
            for number, stored in enumerate(reversed(memory.records)):
                if number % DEADLINE_INTERVAL == 0 and monotonic() >= until:
                    raise QueryTimeout(seconds)
                if len(found) == criteria.limit:
                    break
                if criteria.matches(stored.record.timestamp_ms, stored.folded, stored.record.tags):
                    found.append(stored)
        return found

    def forget(self, namespace: str, *, up_to: int | None = None) -> int:
        check_namespace(namespace)
        with self._lock:
            self._check_open()
            memory = self._memories.get(namespace) or NamespaceRecords()
            gone = [stored for stored in memory.records if up_to is None or (stored.record.id or 0) <= up_to]
            del memory.records[: len(gone)]
            memory.bytes -= sum(stored.size for stored in gone)
            for stored in gone:
                if stored.idem is not None:
                    del memory.by_idem[stored.idem]
            return len(gone)

    # -- configuration

    def get_config(self, extension: str, key: str) -> ConfigValue:
        key = parse_config_key(key, self._limits)
        with self._lock:
            self._check_open()
            value, revision = self._values(extension).get(key, (None, 0))
            return ConfigValue(value, revision)

    def set_config(self, extension: str, change: ConfigSet) -> ConfigSaved:
        check_config_set(change, self._limits)
        return self._change(extension, parse_config_key(change.key, self._limits), change.value, change.if_revision)

    def remove_config(self, extension: str, key: str, *, if_revision: int | None = None) -> ConfigSaved:
        return self._change(extension, parse_config_key(key, self._limits), None, if_revision)

    def _change(self, extension: str, key: str, value: str | None, if_revision: int | None) -> ConfigSaved:
        self._notifier.check_depth()
        with self._lock:
            self._check_open()
            config = self._configs.get(extension) or ConfigValues()
            present, revision = config.values.get(key, (None, 0))
            if if_revision is not None and if_revision != revision:
                return ConfigSaved(False, revision)
            if value is None and present is None:
                return ConfigSaved(True, 0)
            more = config_value_size(key, value) - config_value_size(key, present)
            if value is not None:
                check_config_quota(
                    extension,
                    self._limits,
                    keys=len(config.values),
                    used=config.bytes,
                    more_keys=int(present is None),
                    more=more,
                )
            self._revision += 1
            if value is None:
                del config.values[key]
            else:
                config.values[key] = (value, self._revision)
            config.bytes += more
            config.log.append(ConfigChanged(key, value, self._revision))
            if len(config.log) > self._limits.config_log:
                config.dropped_revision = config.log.popleft().revision
            self._configs[extension] = config
            saved = ConfigSaved(True, self._revision)
        self._notifier.notify(extension)
        return saved

    def read_config(self, extension: str, keys: tuple[str, ...] | None = None) -> Snapshot:
        with self._lock:
            self._check_open()
            values = self._values(extension)
            chosen = values if keys is None else values.keys() & set(keys)
            return Snapshot(self._revision, {key: values[key][0] for key in chosen})

    def read_changes(
        self, extension: str, since: int, keys: tuple[str, ...] | None = None
    ) -> list[ConfigChanged] | None:
        with self._lock:
            self._check_open()
            config = self._configs.get(extension)
            if since > self._revision or (config is not None and since < config.dropped_revision):
                return None
            later = [] if config is None else [change for change in config.log if change.revision > since]
            return [change for change in later if keys is None or change.key in keys]

    def _values(self, extension: str) -> dict[str, tuple[str, int]]:
        config = self._configs.get(extension)
        return {} if config is None else config.values

    def watch(self, wake: Callable[[str], object]) -> Callable[[], None]:
        with self._lock:
            self._check_open()
            return self._notifier.subscribe(wake)

    def verify(self) -> list[Damage]:
        with self._lock:
            self._check_open()
            return []  # there is no file that could be damaged

    # -- closing

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            self._memories.clear()
            self._configs.clear()
            self._notifier.clear()

    def _check_open(self) -> None:
        if self._is_closed:
            raise LocalProtocolError("the store is closed")


def to_record(stored: StoredRecord) -> Record:
    return stored.record if stored.meta is None else replace(stored.record, meta=msgspec.json.decode(stored.meta))


def with_meta_text(stored: StoredRecord) -> Record:
    return stored.record if stored.meta is None else replace(stored.record, meta=Raw(stored.meta))
