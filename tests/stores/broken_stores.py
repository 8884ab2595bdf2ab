"""Stores that break the contract, each in one way, which `check_store` must find. All else is the store in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec.structs import replace

from becket.contract.config import ConfigChanged, ConfigSaved, ConfigSet, ConfigValue
from becket.contract.memory import Append, Appended, Query, Record, Records
from becket.errors import BecketError, InvalidParams, QuotaExceeded, RpcError
from becket.limits import Limits
from becket.stores.in_memory import InMemoryStore
from becket.stores.store import AppendCallback, Clock, Damage, Snapshot


class AcknowledgesWithoutAnId(InMemoryStore):
    def append(self, append: Append) -> Appended:
        return replace(super().append(append), id=None)


class CountsForEachTime(InMemoryStore):
    def append(self, append: Append) -> Appended:
        response = super().append(append)
        return replace(response, id=response.timestamp_ms)


class UsesItsOwnTime(InMemoryStore):
    def append(self, append: Append) -> Appended:
        return replace(super().append(append), timestamp_ms=0)


class SortsTags(InMemoryStore):
    def query(self, query: Query) -> list[Record]:
        return [replace(record, tags=tuple(sorted(set(record.tags)))) for record in super().query(query)]


class LendsItsMeta(InMemoryStore):
    def __init__(self, limits: Limits, clock: Clock) -> None:
        super().__init__(limits, clock)
        self.lent: dict[int, Any] = {}

    def query(self, query: Query) -> list[Record]:
        found = super().query(query)
        return [replace(record, meta=self.lent.setdefault(record.id or 0, record.meta)) for record in found]


class SortsByTime(InMemoryStore):
    def query(self, query: Query) -> list[Record]:
        return sorted(super().query(query), key=lambda record: -record.timestamp_ms)


class GivesTheOldestFirst(InMemoryStore):
    def query(self, query: Query) -> list[Record]:
        return super().query(query)[::-1]


class MindsCase(InMemoryStore):
    def query(self, query: Query) -> list[Record]:
        return [record for record in super().query(query) if (query.content_contains or "") in record.content]


class FoldsAscii(InMemoryStore):
    """As SQLite's LIKE does."""

    def query(self, query: Query) -> list[Record]:
        needle = (query.content_contains or "").encode().lower()
        return [record for record in super().query(query) if needle in record.content.encode().lower()]


class FoldsTags(InMemoryStore):
    def query(self, query: Query) -> list[Record]:
        prefix = (query.tag_prefix or "").lower()
        found = super().query(replace(query, tag_prefix=None))
        return [
            record
            for record in found
            if query.tag_prefix is None or any(tag.lower().startswith(prefix) for tag in record.tags)
        ]


class ExcludesTheUpperBound(InMemoryStore):
    def query(self, query: Query) -> list[Record]:
        return [record for record in super().query(query) if record.timestamp_ms != query.until_ms]


class CutsBeforeItLooks(InMemoryStore):
    def query(self, query: Query) -> list[Record]:
        newest = super().query(Query(query.namespace, limit=query.limit))
        fitting = super().query(query)
        return [record for record in newest if record in fitting]


class HasNoPages(InMemoryStore):
    def __init__(self, limits: Limits, clock: Clock) -> None:
        super().__init__(limits.but(memory_page=1_000_000), clock)


class TakesAnyNamespace(InMemoryStore):
    def query(self, query: Query) -> list[Record]:
        try:
            return super().query(query)
        except InvalidParams:
            return []


class RaisesAnything(InMemoryStore):
    def query(self, query: Query) -> list[Record]:
        try:
            return super().query(query)
        except InvalidParams as error:
            raise OSError("no such table") from error


class ForgetsRepetitions(InMemoryStore):
    def append(self, append: Append) -> Appended:
        return super().append(replace(append, idem=None))


class RepeatsForAll(InMemoryStore):
    """One table of keys for all namespaces."""

    def __init__(self, limits: Limits, clock: Clock) -> None:
        super().__init__(limits, clock)
        self.answers: dict[str, Appended] = {}

    def append(self, append: Append) -> Appended:
        if append.idem is None or append.namespace == "notes":
            return super().append(append)
        return self.answers.setdefault(append.idem, Appended(True, 0, 10**6))


class CountsCharacters(InMemoryStore):
    def append(self, append: Append) -> Appended:
        try:
            return super().append(append)
        except InvalidParams:
            return super().append(replace(append, content=append.content[:1], tags=(), meta=None, idem=None))


class StoresBeforeItChecks(InMemoryStore):
    """Counts what it has refused."""

    def append(self, append: Append) -> Appended:
        try:
            return super().append(append)
        except InvalidParams:
            if append.namespace == "notes" and len(append.content) > 32:
                super().append(Append("notes", append.content[:1]))
            raise


class HasNoQuota(InMemoryStore):
    def __init__(self, limits: Limits, clock: Clock) -> None:
        super().__init__(limits.but(memory_records=10**6, memory_bytes=10**9), clock)


class CountsNoBytes(InMemoryStore):
    def __init__(self, limits: Limits, clock: Clock) -> None:
        super().__init__(limits.but(memory_bytes=10**9), clock)


class IsVagueAboutQuotas(InMemoryStore):
    def append(self, append: Append) -> Appended:
        try:
            return super().append(append)
        except QuotaExceeded as error:
            raise QuotaExceeded(error.extension, error.what, used=0, limit=error.limit) from error


class RefusesRepetitionsWhenFull(InMemoryStore):
    def append(self, append: Append) -> Appended:
        if len(self.query(Query(append.namespace, limit=1_000))) >= self._limits.memory_records:
            raise QuotaExceeded(append.namespace, "records", used=3, limit=3)
        return super().append(append)


class SharesOneConfig(InMemoryStore):
    def get_config(self, extension: str, key: str) -> ConfigValue:
        return super().get_config("all", key)

    def set_config(self, extension: str, change: ConfigSet) -> ConfigSaved:
        return super().set_config("all", change)


class CountsRevisionsForEach(InMemoryStore):
    """A counter for each extension instead of one for all."""

    def __init__(self, limits: Limits, clock: Clock) -> None:
        super().__init__(limits, clock)
        self.stores: dict[str, InMemoryStore] = {}

    def set_config(self, extension: str, change: ConfigSet) -> ConfigSaved:
        store = self.stores.setdefault(extension, InMemoryStore(self._limits, self._clock))
        return store.set_config(extension, change)


class NeverCompares(InMemoryStore):
    def set_config(self, extension: str, change: ConfigSet) -> ConfigSaved:
        return super().set_config(extension, replace(change, if_revision=None))


class ComparesWithTheStore(InMemoryStore):
    """With the last revision of all instead of the key's own."""

    def set_config(self, extension: str, change: ConfigSet) -> ConfigSaved:
        # A key that several threads change would show it as well, but not each time.
        if change.if_revision == self._revision and change.key != "n":
            change = replace(change, if_revision=None)
        return super().set_config(extension, change)


class RaisesOnConflict(InMemoryStore):
    def set_config(self, extension: str, change: ConfigSet) -> ConfigSaved:
        saved = super().set_config(extension, change)
        if not saved.ok:
            raise RpcError(1, "somebody was faster")
        return saved


class RetainsRevisionsOfDeletedKeys(InMemoryStore):
    def remove_config(self, extension: str, key: str, *, if_revision: int | None = None) -> ConfigSaved:
        saved = super().remove_config(extension, key, if_revision=if_revision)
        return replace(saved, revision=self._revision) if saved.revision == 0 and self._revision else saved


class RemovesInSilence(InMemoryStore):
    def read_changes(
        self, extension: str, since: int, keys: tuple[str, ...] | None = None
    ) -> list[ConfigChanged] | None:
        changes = super().read_changes(extension, since, keys)
        return changes and [change for change in changes if change.value is not None]


class TakesAnyKey(InMemoryStore):
    def get_config(self, extension: str, key: str) -> ConfigValue:
        try:
            return super().get_config(extension, key)
        except InvalidParams:
            return ConfigValue(None, 0)


class HasNoConfigQuota(InMemoryStore):
    def __init__(self, limits: Limits, clock: Clock) -> None:
        super().__init__(limits.but(config_keys=10**6, config_bytes=10**9), clock)


class GivesTheRevisionOfTheExtension(InMemoryStore):
    def read_config(self, extension: str, keys: tuple[str, ...] | None = None) -> Snapshot:
        snapshot = super().read_config(extension, keys)
        own = [self.get_config(extension, key).revision or 0 for key in snapshot.values]
        return replace(snapshot, revision=max(own, default=0))


class MergesChanges(InMemoryStore):
    """Reports only the last change of each key."""

    def read_changes(
        self, extension: str, since: int, keys: tuple[str, ...] | None = None
    ) -> list[ConfigChanged] | None:
        changes = super().read_changes(extension, since, keys)
        return changes and [*{change.key: change for change in changes}.values()]


class RepeatsTheLastChange(InMemoryStore):
    def read_changes(
        self, extension: str, since: int, keys: tuple[str, ...] | None = None
    ) -> list[ConfigChanged] | None:
        return super().read_changes(extension, max(0, since - 1), keys)


class LeavesGaps(InMemoryStore):
    """Reports the changes that it still has as if they were all."""

    def read_changes(
        self, extension: str, since: int, keys: tuple[str, ...] | None = None
    ) -> list[ConfigChanged] | None:
        for later in range(since, self._revision + 1):
            changes = super().read_changes(extension, later, keys)
            if changes is not None:
                return changes
        return None


class BelievesInTheFuture(InMemoryStore):
    def read_changes(
        self, extension: str, since: int, keys: tuple[str, ...] | None = None
    ) -> list[ConfigChanged] | None:
        return super().read_changes(extension, min(since, self._revision), keys)


class WakesTooEarly(InMemoryStore):
    def __init__(self, limits: Limits, clock: Clock) -> None:
        super().__init__(limits, clock)
        self.early: list[Callable[[str], object]] = []

    def watch(self, wake: Callable[[str], object]) -> Callable[[], None]:
        self.early.append(wake)
        return lambda: self.early.remove(wake) if wake in self.early else None

    def set_config(self, extension: str, change: ConfigSet) -> ConfigSaved:
        for wake in self.early:
            try:
                wake(extension)
            except RuntimeError:
                pass
        return super().set_config(extension, change)


class DiesWithItsWatchers(WakesTooEarly):
    def set_config(self, extension: str, change: ConfigSet) -> ConfigSaved:
        saved = InMemoryStore.set_config(self, extension, change)
        for wake in self.early:
            wake(extension)
        return saved


class NeverStopsWaking(InMemoryStore):
    def watch(self, wake: Callable[[str], object]) -> Callable[[], None]:
        super().watch(wake)
        return lambda: None


class LosesUpdates(InMemoryStore):
    """Acknowledges every fortieth change without storing it, as a store without locks may."""

    changes = 0

    def set_config(self, extension: str, change: ConfigSet) -> ConfigSaved:
        self.changes += 1
        if self.changes % 40 == 0:
            return ConfigSaved(True, self._revision)
        return super().set_config(extension, change)


class DiesOfThreads(InMemoryStore):
    """Belongs to the thread that used it first, as a connection of SQLite does."""

    owner: int | None = None

    def append(self, append: Append) -> Appended:
        from threading import get_ident

        self.owner = self.owner or get_ident()
        if self.owner != get_ident():
            raise RuntimeError("used by another thread")
        return super().append(append)


class IsNeverClosed(InMemoryStore):
    def close(self) -> None:
        pass


class ForgetsARecord(InMemoryStore):
    """Loses a record when it has eleven: only many calls show it."""

    def append(self, append: Append) -> Appended:
        response = super().append(append)
        memory = self._memories[append.namespace]
        if len(memory.records) == 11:
            memory.records.pop(3)
        return response


class StoresTuples(InMemoryStore):
    """Gives back what was put in instead of JSON."""

    def query(self, query: Query) -> list[Record]:
        found = super().query(query)
        return [replace(record, meta=record.meta and msgspec.json.encode(record.meta)) for record in found]


class NeverCallsBack(InMemoryStore):
    def append_nowait(self, append: Append, done: AppendCallback) -> None:
        super().append_nowait(append, lambda outcome: None)


class CallsBackTwice(InMemoryStore):
    def append_nowait(self, append: Append, done: AppendCallback) -> None:
        super().append_nowait(append, lambda outcome: (done(outcome), done(outcome)))


class RaisesInsteadOfCallingBack(InMemoryStore):
    def append_nowait(self, append: Append, done: AppendCallback) -> None:
        done(self.append(append))


class FailsWithItsSubscriber(InMemoryStore):
    def append_nowait(self, append: Append, done: AppendCallback) -> None:
        outcomes: list[Appended | BecketError] = []
        super().append_nowait(append, outcomes.append)
        done(outcomes[0])


class FindsOnlyPhrases(InMemoryStore):
    def search(self, namespace: str, text: str, **options: Any) -> list[Record]:
        found = super().search(namespace, text, **options)
        return [record for record in found if text.casefold() in record.content.casefold()]


class FindsTheNewest(InMemoryStore):
    def search(self, namespace: str, text: str, **options: Any) -> list[Record]:
        return sorted(super().search(namespace, text, **options), key=lambda record: -(record.id or 0))


class RanksEverything(InMemoryStore):
    def __init__(self, limits: Limits, clock: Clock) -> None:
        super().__init__(limits.but(search_records=1_000), clock)


class TakesAnyNumberOfWords(InMemoryStore):
    def search(self, namespace: str, text: str, **options: Any) -> list[Record]:
        return super().search(namespace, " ".join(text.split()[:64]), **options)


class OnlyPretendsToForget(InMemoryStore):
    def forget(self, namespace: str, *, up_to: int | None = None) -> int:
        return len([record for record in self.query(Query(namespace)) if up_to is None or (record.id or 0) <= up_to])


class UsesIdsAgain(InMemoryStore):
    def forget(self, namespace: str, *, up_to: int | None = None) -> int:
        count = super().forget(namespace, up_to=up_to)
        left = [kept.record.id or 0 for memory in self._memories.values() for kept in memory.records]
        self._last_id = max(left, default=0)
        return count


class GivesNoShareBack(InMemoryStore):
    def forget(self, namespace: str, *, up_to: int | None = None) -> int:
        used = self._memories[namespace].bytes if namespace in self._memories else 0
        count = super().forget(namespace, up_to=up_to)
        if namespace in self._memories:
            self._memories[namespace].bytes = used
        return count


class RemembersForgottenKeys(InMemoryStore):
    def forget(self, namespace: str, *, up_to: int | None = None) -> int:
        answers = {**self._memories[namespace].by_idem} if namespace in self._memories else {}
        count = super().forget(namespace, up_to=up_to)
        if namespace in self._memories:
            self._memories[namespace].by_idem.update(answers)
        return count


class FillsNoPage(InMemoryStore):
    def query_page(self, query: Query, most_bytes: int) -> Records:
        return super().query_page(query, 1_000_000)


class DecodesPages(InMemoryStore):
    def query_page(self, query: Query, most_bytes: int) -> Records:
        return Records(tuple(self.query(query)))


class HasAllTheTime(InMemoryStore):
    def __init__(self, limits: Limits, clock: Clock) -> None:
        super().__init__(limits.but(query_seconds=60.0), clock)

    def query(self, query: Query, **options: Any) -> list[Record]:
        return super().query(query)


class EchoesForEver(InMemoryStore):
    def __init__(self, limits: Limits, clock: Clock) -> None:
        super().__init__(limits.but(call_depth=100), clock)


class CriesWolf(InMemoryStore):
    """Reports forgotten records as lost."""

    def verify(self) -> list[Damage]:
        kept = sum(len(memory.records) for memory in self._memories.values())
        return super().verify() if kept == self._last_id else [Damage(None, "records", "some are lost")]


class ClosesTooSoon(InMemoryStore):
    """Drops the latest records when it is closed."""

    def __init__(self, limits: Limits, clock: Clock) -> None:
        super().__init__(limits, clock)
        self.last: tuple[Append, AppendCallback] | None = None

    def append_nowait(self, append: Append, done: AppendCallback) -> None:
        if append.content == "49":  # as a thread does that comes to it later
            self.last = (append, done)
        else:
            super().append_nowait(append, done)
