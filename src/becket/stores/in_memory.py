"""A store that forgets everything when it is closed: for tests, and for hosts that keep nothing."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import islice
from threading import Lock
from time import time_ns

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from becket.contract.config import (
    ConfigChanged,
    ConfigSaved,
    ConfigSet,
    ConfigValue,
    check_config_set,
    parse_config_key,
)
from becket.contract.memory import (
    DEFAULT_QUERY_LIMIT,
    Append,
    Appended,
    Query,
    Record,
    find_append_problems,
    find_namespace_problem,
)
from becket.errors import InvalidParams, LocalProtocolError, QuotaExceeded
from becket.limits import DEFAULT_LIMITS, Limits
from becket.stores.store import Clock, Snapshot

__all__ = ["InMemoryStore"]


def now_ms() -> int:
    return time_ns() // 1_000_000


class Kept(Struct, frozen=True):
    """A record beside what a query looks at. Its `meta` is kept as JSON, so that nobody can change it from outside."""

    record: Record
    folded: str
    meta: bytes | None


class Memory:
    """The records of one namespace."""

    __slots__ = ("answers", "bytes", "records")

    def __init__(self) -> None:
        self.records: list[Kept] = []
        self.answers: dict[str, Appended] = {}
        self.bytes = 0


class Config:
    """The values of one extension, and its last changes."""

    __slots__ = ("bytes", "forgotten", "log", "values")

    def __init__(self) -> None:
        self.values: dict[str, tuple[str, int]] = {}
        self.bytes = 0
        self.log: deque[ConfigChanged] = deque()
        self.forgotten = 0  # changes up to this revision are no longer told


class InMemoryStore:
    """Keeps the records and values of each extension within its share; the semantics are those of `Store`."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS, clock: Clock = now_ms) -> None:
        self._limits = limits
        self._clock = clock
        self._lock = Lock()
        self._memories: dict[str, Memory] = {}
        self._configs: dict[str, Config] = {}
        self._watchers: dict[object, Callable[[str], object]] = {}
        self._last_id = 0
        self._revision = 0
        self._is_closed = False

    # -- memory

    def append(self, append: Append) -> Appended:
        problems = find_append_problems(append, self._limits)
        if problems:
            raise InvalidParams(problems)
        meta = None if append.meta is None else msgspec.json.encode(append.meta)
        with self._lock:
            self._check_open()
            memory = self._memories.get(append.namespace) or Memory()
            if append.idem is not None and append.idem in memory.answers:
                return memory.answers[append.idem]
            size = size_of(append, meta)
            self._check_share(append.namespace, memory, size)
            answer = Appended(True, self._clock(), self._last_id + 1)
            record = Record(append.namespace, answer.timestamp_ms, append.content, append.tags, id=answer.id)
            memory.records.append(Kept(record, append.content.casefold(), meta))
            memory.bytes += size
            if append.idem is not None:
                memory.answers[append.idem] = answer
            self._memories[append.namespace] = memory
            self._last_id += 1
            return answer

    def _check_share(self, namespace: str, memory: Memory, size: int) -> None:
        limits = self._limits
        if len(memory.records) >= limits.memory_records:
            raise QuotaExceeded(namespace, "records", used=len(memory.records), limit=limits.memory_records)
        if memory.bytes + size > limits.memory_bytes:
            raise QuotaExceeded(namespace, "bytes", used=memory.bytes, limit=limits.memory_bytes)

    def query(self, query: Query) -> list[Record]:
        problem = find_namespace_problem(query.namespace)
        if problem is not None:
            raise InvalidParams([("/namespace", problem)])
        limit = DEFAULT_QUERY_LIMIT if query.limit is None else query.limit
        room = min(limit, self._limits.memory_page)
        needle = None if query.content_contains is None else query.content_contains.casefold()
        with self._lock:
            self._check_open()
            memory = self._memories.get(query.namespace) or Memory()
            fitting = (kept for kept in reversed(memory.records) if fits(kept, query, needle))
            found = [*islice(fitting, room)]
        return [whole(kept) for kept in found]

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
        with self._lock:
            self._check_open()
            config = self._configs.get(extension) or Config()
            present, revision = config.values.get(key, (None, 0))
            if if_revision is not None and if_revision != revision:
                return ConfigSaved(False, revision)
            if value is None and present is None:
                return ConfigSaved(True, 0)
            size = config.bytes + size_of_value(key, value) - size_of_value(key, present)
            self._check_config_share(extension, config, len(config.values) + (present is None), size)
            self._revision += 1
            if value is None:
                del config.values[key]
            else:
                config.values[key] = (value, self._revision)
            config.bytes = size
            config.log.append(ConfigChanged(key, value, self._revision))
            if len(config.log) > self._limits.config_log:
                config.forgotten = config.log.popleft().revision
            self._configs[extension] = config
            saved = ConfigSaved(True, self._revision)
            watchers = [*self._watchers.values()]
        for wake in watchers:
            tell(wake, extension)
        return saved

    def _check_config_share(self, extension: str, config: Config, keys: int, size: int) -> None:
        limits = self._limits
        if keys > limits.config_keys:
            raise QuotaExceeded(extension, "keys", used=len(config.values), limit=limits.config_keys)
        if size > limits.config_bytes:
            raise QuotaExceeded(extension, "bytes", used=config.bytes, limit=limits.config_bytes)

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
            if since > self._revision or (config is not None and since < config.forgotten):
                return None
            changes = [] if config is None else [change for change in config.log if change.revision > since]
            return [change for change in changes if keys is None or change.key in keys]

    def _values(self, extension: str) -> dict[str, tuple[str, int]]:
        config = self._configs.get(extension)
        return {} if config is None else config.values

    def watch(self, wake: Callable[[str], object]) -> Callable[[], None]:
        key = object()
        with self._lock:
            self._check_open()
            self._watchers[key] = wake

        def end() -> None:
            with self._lock:
                self._watchers.pop(key, None)

        return end

    # -- the end

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            self._memories.clear()
            self._configs.clear()
            self._watchers.clear()

    def _check_open(self) -> None:
        if self._is_closed:
            raise LocalProtocolError("the store is closed")


def size_of(append: Append, meta: bytes | None) -> int:
    tags = sum(len(tag.encode()) for tag in append.tags)
    return len(append.content.encode()) + tags + len(meta or b"")


def size_of_value(key: str, value: str | None) -> int:
    return 0 if value is None else len(key.encode()) + len(value.encode())


def whole(kept: Kept) -> Record:
    return kept.record if kept.meta is None else replace(kept.record, meta=msgspec.json.decode(kept.meta))


def fits(kept: Kept, query: Query, needle: str | None) -> bool:
    record = kept.record
    return (
        (query.since_ms is None or record.timestamp_ms >= query.since_ms)
        and (query.until_ms is None or record.timestamp_ms <= query.until_ms)
        and (needle is None or needle in kept.folded)
        and (query.tag_prefix is None or any(tag.startswith(query.tag_prefix) for tag in record.tags))
    )


def tell(wake: Callable[[str], object], extension: str) -> None:
    try:
        wake(extension)
    except Exception as error:  # the change stands, and whoever made it must not hear that it failed
        import logging

        logging.getLogger("becket.host").error("a watcher of the store failed", exc_info=error)
