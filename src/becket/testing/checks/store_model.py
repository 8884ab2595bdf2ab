"""Random operations on a store, compared with a naive in-memory model."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from becket.contract.config import ConfigChanged, ConfigSaved, ConfigSet, ConfigValue
from becket.contract.memory import DEFAULT_QUERY_LIMIT, Append, Appended, Query, Record
from becket.errors import QuotaExceeded
from becket.limits import Limits
from becket.stores.store import Store
from becket.testing.checks.assertions import expect, expect_equal, expect_error

__all__ = ["SMALL_LIMITS", "ManualClock", "StoreComparison"]

# So small that each is reached within one sequence.
SMALL_LIMITS = Limits(
    memory_content=64,
    memory_meta=64,
    memory_tags=4,
    memory_tag=8,
    memory_idem=8,
    memory_page=60,
    memory_records=12,
    memory_bytes=300,
    config_key=16,
    config_value=32,
    config_keys=5,
    config_bytes=100,
    config_log=10,
)
WORDS = ["milk", "MILK", "tea", "Straße", "é", " ", "%", "", "x" * 30, '"', "ilk", "\0"]
TAGS = ["food", "FOOD", "@user", "foo", "", 'a"foo']
KEYS = ["a", "b", "mode", "é", "last", "seventh", "eighth"]
NAMES = ["notes", "other"]


class ManualClock:
    """A clock that a check sets by hand."""

    def __init__(self) -> None:
        self.now = 1_000

    def __call__(self) -> int:
        return self.now


class StoreModel:
    """The naive implementation of a store: a list of records and a list of changes."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.records: list[tuple[Record, str | None]] = []
        self.changes: list[tuple[str, ConfigChanged]] = []

    def append(self, append: Append, now: int) -> Appended | None:
        """Returns the result without its id; None if the quota is used up."""
        own = self.records_of(append.namespace)
        for record, idem in own:
            if idem is not None and idem == append.idem:
                return Appended(True, record.timestamp_ms)
        used = sum(self.size(record) for record, _ in own)
        record = Record(append.namespace, now, append.content, append.tags, append.meta)
        if len(own) >= self.limits.memory_records or used + self.size(record) > self.limits.memory_bytes:
            return None
        self.records.append((record, append.idem))
        return Appended(True, now)

    def records_of(self, namespace: str) -> list[tuple[Record, str | None]]:
        return [(record, idem) for record, idem in self.records if record.namespace == namespace]

    @staticmethod
    def size(record: Record) -> int:
        meta = "" if record.meta is None else f'"{record.meta}"'
        return sum(len(text.encode()) for text in (record.content, *record.tags, meta))

    def query(self, query: Query) -> list[Record]:
        fitting = [
            record
            for record, _ in reversed(self.records_of(query.namespace))
            if (query.content_contains or "").casefold() in record.content.casefold()
            and (query.tag_prefix is None or any(tag.startswith(query.tag_prefix) for tag in record.tags))
            and (query.since_ms is None or query.since_ms <= record.timestamp_ms)
            and (query.until_ms is None or record.timestamp_ms <= query.until_ms)
        ]
        limit = DEFAULT_QUERY_LIMIT if query.limit is None else query.limit
        return fitting[: min(limit, self.limits.memory_page)]

    def search(self, namespace: str, words: list[str]) -> list[Record]:
        """Returns what a search finds, in any order."""
        return [
            record
            for record, _ in self.records_of(namespace)
            if words and all(word in record.content.casefold() for word in words)
        ]

    def forget(self, namespace: str, count: int) -> None:
        for stored in self.records_of(namespace)[:count]:
            self.records.remove(stored)

    @property
    def revision(self) -> int:
        return self.changes[-1][1].revision if self.changes else 0

    def changes_of(self, extension: str) -> list[ConfigChanged]:
        return [change for name, change in self.changes if name == extension]

    def values(self, extension: str) -> dict[str, ConfigChanged]:
        latest = {change.key: change for change in self.changes_of(extension)}
        return {key: change for key, change in latest.items() if change.value is not None}

    def read_changes(self, extension: str, since: int) -> list[ConfigChanged] | None:
        later = [change for change in self.changes_of(extension) if change.revision > since]
        return None if since > self.revision or len(later) > self.limits.config_log else later

    def is_within_share(self, extension: str, key: str, value: str) -> bool:
        after = {name: change.value or "" for name, change in self.values(extension).items()} | {key: value}
        size = sum(len(name.encode()) + len(text.encode()) for name, text in after.items())
        return len(after) <= self.limits.config_keys and size <= self.limits.config_bytes


class StoreComparison:
    """Applies random operations to a store and to the model; with `lasts`, also reopens the store in between."""

    def __init__(
        self, opened: Callable[[], Store], clock: ManualClock, random: Random, which: str, *, lasts: bool = False
    ) -> None:
        self._opened = opened
        self._clock = clock
        self._random = random
        self._which = which
        self._store = opened()
        self._model = StoreModel(SMALL_LIMITS)
        self._ids: dict[str, list[int]] = {name: [] for name in NAMES}
        self._kinds = [
            self._append,
            self._append,
            self._query,
            self._set,
            self._remove,
            self._read,
            self._search,
            self._forget,
            self._verify,
        ]
        if lasts:
            self._kinds.append(self._reopen)

    def run(self, steps: int) -> None:
        """Applies so many operations.

        Raises:
            AssertionError: the store differs from the model.
        """
        try:
            for step in range(steps):
                self._clock.now = max(0, self._clock.now + self._random.choice([-30, -3, 0, 1, 5, 10]))
                self._random.choice(self._kinds)(f"{self._which}, step {step}")
        finally:
            self._store.close()

    def _reopen(self, where: str) -> None:
        self._store.close()
        self._store = self._opened()

    # -- memory

    def _append(self, where: str) -> None:
        choice, choices, count = self._random.choice, self._random.choices, self._random.randint
        append = Append(
            choice(NAMES),
            "".join(choices(WORDS, k=count(0, 2))),
            tuple(choices(TAGS, k=count(0, 3))),
            choice([None, "é", "x" * 20]),
            choice([None, None, "k", "l", "m"]),
        )
        before = len(self._model.records)
        expected = self._model.append(append, self._clock.now)
        if expected is None:
            expect_error(QuotaExceeded, f"{where}: {append}", self._store.append, append)
            return
        result = self._store.append(append)
        expect_equal(Appended(result.ok, result.timestamp_ms), expected, f"{where}: {append}")
        if len(self._model.records) > before:
            self._ids[append.namespace].append(result.id or 0)

    def _query(self, where: str) -> None:
        choice, now = self._random.choice, self._clock.now
        query = Query(
            choice(NAMES),
            content_contains=choice([None, *WORDS]),
            tag_prefix=choice([None, None, *TAGS]),
            since_ms=choice([None, None, max(0, now - self._random.randint(0, 300))]),
            until_ms=choice([None, None, max(0, now - self._random.randint(0, 100))]),
            limit=choice([None, 0, 1, 5, 100]),
        )
        expect_equal(without_ids(self._store.query(query)), self._model.query(query), f"{where}: {query}")

    def _search(self, where: str) -> None:
        name, words = self._random.choice(NAMES), self._random.choices(WORDS, k=self._random.randint(0, 3))
        text = " ".join(words)
        found = without_ids(self._store.search(name, text))
        expected = self._model.search(name, text.casefold().split())
        expect_equal(sorted(found, key=repr), sorted(expected, key=repr), f"{where}: search {text!r} in {name}")

    def _forget(self, where: str) -> None:
        name = self._random.choice(NAMES)
        ids = self._ids[name]
        count = self._random.randint(0, min(3, len(ids)))
        gone = self._store.forget(name, up_to=ids[count - 1] if count else 0)
        expect_equal(gone, count, f"{where}: forget {count} records of {name}")
        self._model.forget(name, count)
        del ids[:count]

    def _verify(self, where: str) -> None:
        expect_equal(self._store.verify(), [], f"{where}: verify")

    # -- configuration

    def _set(self, where: str) -> None:
        extension, key = self._random.choice(NAMES), self._random.choice(KEYS)
        present = self._model.values(extension).get(key)
        revision = 0 if present is None else present.revision
        condition = self._random.choice([None, None, revision, 0, self._model.revision])
        change = ConfigSet(key, self._random.choice(WORDS), condition)
        what = f"{where}: {extension}, {change}"
        if change.if_revision not in (None, revision):
            expect_equal(self._store.set_config(extension, change), ConfigSaved(False, revision), what)
        elif not self._model.is_within_share(extension, key, change.value):
            expect_error(QuotaExceeded, what, self._store.set_config, extension, change)
        else:
            self._note_change(extension, key, change.value, self._store.set_config(extension, change), where)

    def _remove(self, where: str) -> None:
        extension, key = self._random.choice(NAMES), self._random.choice(KEYS)
        saved = self._store.remove_config(extension, key)
        if key in self._model.values(extension):
            self._note_change(extension, key, None, saved, where)
        else:
            expect_equal(saved, ConfigSaved(True, 0), f"{where}: remove {key}, which is not there")

    def _note_change(self, extension: str, key: str, value: str | None, saved: ConfigSaved, where: str) -> None:
        revision, before = saved.revision or 0, self._model.revision
        expect(saved.ok and revision > before, f"{where}: {key} of {extension}: {saved} after {before}")
        self._model.changes.append((extension, ConfigChanged(key, value, revision)))

    def _read(self, where: str) -> None:
        extension, key = self._random.choice(NAMES), self._random.choice(KEYS)
        values = self._model.values(extension)
        present = values.get(key)
        expected = ConfigValue(None, 0) if present is None else ConfigValue(present.value, present.revision)
        expect_equal(self._store.get_config(extension, key), expected, f"{where}: {key} of {extension}")
        snapshot = {name: change.value or "" for name, change in values.items()}
        snapshot_found = self._store.read_config(extension)
        expect_equal(
            (snapshot_found.revision, snapshot_found.values),
            (self._model.revision, snapshot),
            f"{where}: the values of {extension}",
        )
        since = self._random.randint(0, self._model.revision + 1)
        changes = self._model.read_changes(extension, since)
        expect_equal(self._store.read_changes(extension, since), changes, f"{where}: changes after {since}")


def without_ids(records: list[Record]) -> list[Record]:
    return [Record(one.namespace, one.timestamp_ms, one.content, one.tags, one.meta) for one in records]
