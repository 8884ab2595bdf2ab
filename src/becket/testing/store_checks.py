"""`check_store`: the contract of `becket.stores.store.Store` as a program, for our stores and for yours.

It knows a store only through its public face. Each rule is tried by itself with the smallest conversation that can
break it; then long random conversations are held with the store and with a naive model, and both must say the same.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from random import Random
from threading import Barrier, Thread
from typing import Any, TypeVar

from becket.contract.config import ConfigChanged, ConfigSaved, ConfigSet, ConfigValue
from becket.contract.memory import DEFAULT_QUERY_LIMIT, Append, Appended, Query, Record
from becket.errors import InvalidParams, QuotaExceeded
from becket.limits import Limits
from becket.stores.store import Snapshot, Store, StoreFactory

__all__ = ["check_store"]

ROUNDS = 20  # random conversations
STEPS = 150  # of each
THREADS = 4
TURNS = 50  # of each thread
# So small that every one of them is reached within a conversation.
LIMITS = Limits(
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
ROOMY = Limits(memory_page=60)


def check_store(factory: StoreFactory, *, seed: int = 0) -> None:
    """Proves that the stores which `factory` makes keep their contract, or says which part of it is broken.

    Each store must be new and empty. Another `seed` holds other conversations.

    Raises:
        AssertionError: with a sentence that says what is wrong.
    """
    for check in _RULES:
        _run(check.__name__.removeprefix("_check_").replace("_", " "), check, factory)
    for number in range(ROUNDS):
        which = f"seed {seed}, conversation {number}"
        _run(which, _check_conversation, factory, Random(f"{seed}/{number}"), which)


def _run(what: str, check: Callable[..., None], *arguments: object) -> None:
    try:
        check(*arguments)
    except AssertionError:
        raise
    except Exception as problem:
        raise AssertionError(f"{what}: the store raised {problem!r} where it should have answered") from problem


# -- what the checks are made of


E = TypeVar("E", bound=Exception)


class _Time:
    """A clock that a check sets."""

    def __init__(self) -> None:
        self.now = 1_000

    def __call__(self) -> int:
        return self.now


@contextmanager
def _opened(factory: StoreFactory, limits: Limits = ROOMY) -> Generator[tuple[Store, _Time]]:
    time = _Time()
    store = factory(limits, time)
    try:
        yield store, time
    finally:
        store.close()


def _expect(condition: bool, sentence: str) -> None:
    if not condition:
        raise AssertionError(sentence)


def _equal(found: object, expected: object, what: str) -> None:
    if found != expected:
        raise AssertionError(f"{what}: {_short(found)}, expected {_short(expected)}")


def _refused(kind: type[E], what: str, call: Callable[..., object], *arguments: object) -> E:
    try:
        answer = call(*arguments)
    except kind as refusal:
        return refusal
    except Exception as problem:
        raise AssertionError(f"{what} raised {problem!r}, expected {kind.__name__}") from problem
    raise AssertionError(f"{what} was answered with {_short(answer)}, expected {kind.__name__}")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 300 else f"{text[:300]}..."


def _contents(store: Store, **conditions: Any) -> list[str]:
    return [record.content for record in store.query(Query("notes", **conditions))]


def _fill(store: Store, *contents: str) -> None:
    for content in contents:
        store.append(Append("notes", content))


# -- memory, rule by rule


def _check_answers_to_append(factory: StoreFactory) -> None:
    with _opened(factory) as (store, time):
        ids: list[int] = []
        for time.now in (5, 5, 3, 9):
            answer = store.append(Append("notes", "text"))
            _expect(answer.ok, "append: the answer is not ok")
            _equal(answer.timestamp_ms, time.now, "append: the time is not that of the clock")
            _expect(answer.id is not None, "append: the answer has no id")
            ids.append(answer.id or 0)
        _equal(ids, sorted(set(ids)), "append: ids do not grow")


def _check_records(factory: StoreFactory) -> None:
    with _opened(factory) as (store, _):
        meta = {"a": [1, 2.5, None, True, "é"]}
        given = Append("notes", "é\n\x00\u2028", ("b", "a", "a"), meta)
        answer = store.append(given)
        _equal(
            store.query(Query("notes")),
            [
                Record(
                    "notes",
                    answer.timestamp_ms,
                    given.content,
                    ("b", "a", "a"),
                    {"a": [1, 2.5, None, True, "é"]},
                    answer.id,
                )
            ],
            "query: the record is not as it was appended",
        )
        meta["a"].clear()
        store.query(Query("notes"))[0].meta.clear()
        _expect(
            store.query(Query("notes"))[0].meta == {"a": [1, 2.5, None, True, "é"]},
            "query: `meta` was changed from outside, through what was appended or what was found",
        )
        store.append(Append("notes", "bare"))
        (bare,) = store.query(Query("notes", limit=1))
        _equal((bare.tags, bare.meta), ((), None), "query: tags and meta of a record that has none")


def _check_order(factory: StoreFactory) -> None:
    with _opened(factory) as (store, time):
        for time.now in (30, 10, 20, 20):
            _fill(store, str(time.now))
        _equal(_contents(store), ["20", "20", "10", "30"], "query: the latest append does not come first")


def _check_words(factory: StoreFactory) -> None:
    with _opened(factory) as (store, _):
        _fill(store, "Buy MILK", "Straße", "a_b%c", "ÅNGSTRÖM")
        for needle, expected in {
            "milk": ["Buy MILK"],
            "y M": ["Buy MILK"],
            "STRASSE": ["Straße"],
            "ångström": ["ÅNGSTRÖM"],
            "_": ["a_b%c"],
            "%": ["a_b%c"],
            "a%c": [],
            '"': [],
            "milk buy": [],
            "": ["ÅNGSTRÖM", "a_b%c", "Straße", "Buy MILK"],
        }.items():
            _equal(_contents(store, content_contains=needle), expected, f"query: content_contains {needle!r}")


def _check_tags(factory: StoreFactory) -> None:
    with _opened(factory) as (store, _):
        store.append(Append("notes", "both", ("@user", "food")))
        store.append(Append("notes", "one", ("FOOD",)))
        store.append(Append("notes", "none"))
        for prefix, expected in {
            "foo": ["both"],
            "@user": ["both"],
            "user": [],
            "FOO": ["one"],
            "%": [],
            "": ["one", "both"],
        }.items():
            _equal(_contents(store, tag_prefix=prefix), expected, f"query: tag_prefix {prefix!r}")


def _check_bounds(factory: StoreFactory) -> None:
    with _opened(factory) as (store, time):
        for time.now in (10, 20, 30):
            _fill(store, str(time.now))
        cases: list[tuple[dict[str, Any], list[str]]] = [
            ({"since_ms": 20}, ["30", "20"]),
            ({"until_ms": 20}, ["20", "10"]),
            ({"since_ms": 20, "until_ms": 20}, ["20"]),
            ({"since_ms": 21, "until_ms": 29}, []),
            ({"since_ms": 0, "until_ms": 2**53}, ["30", "20", "10"]),
            ({"since_ms": 20, "content_contains": "1"}, []),
            ({"until_ms": 20, "content_contains": "1"}, ["10"]),
        ]
        for conditions, expected in cases:
            _equal(_contents(store, **conditions), expected, f"query: {conditions}")


def _check_query_limits(factory: StoreFactory) -> None:
    with _opened(factory) as (store, _):
        _fill(store, *map(str, range(70)))
        newest = [str(number) for number in range(69, -1, -1)]
        for limit, count in {0: 0, 1: 1, 60: 60, 61: 60, 10_000: 60, None: DEFAULT_QUERY_LIMIT}.items():
            _equal(_contents(store, limit=limit), newest[:count], f"query: limit {limit}, where a page is 60")
        _equal(
            _contents(store, limit=1, content_contains="7"), ["67"], "query: a limit counts what fits, not what is read"
        )


def _check_namespaces(factory: StoreFactory) -> None:
    with _opened(factory) as (store, _):
        _fill(store, "mine")
        store.append(Append("other", "theirs"))
        _equal(_contents(store), ["mine"], "query: records of another namespace")
        _equal(store.query(Query("nobody")), [], "query: a namespace without records")
        for namespace in ("", "a/b", "a\\b", "a..b", "a b", "a\tb", "x" * 65):
            what = f"of the namespace {namespace!r}"
            _refused(InvalidParams, f"append {what}", store.append, Append(namespace, "text"))
            _refused(InvalidParams, f"query {what}", store.query, Query(namespace))


def _check_repeated_appends(factory: StoreFactory) -> None:
    with _opened(factory) as (store, time):
        first = store.append(Append("notes", "text", idem="k"))
        time.now += 1
        _equal(store.append(Append("notes", "text", idem="k")), first, "append: the answer to a repeated `idem`")
        _equal(store.append(Append("notes", "changed", idem="k")), first, "append: the answer to a repeated `idem`")
        _equal(_contents(store), ["text"], "append: a repeated `idem` added or changed a record")
        store.append(Append("notes", "text", idem="K"))
        store.append(Append("notes", "text"))
        store.append(Append("other", "text", idem="k"))
        _equal(len(_contents(store)), 3, "append: records after other keys, none, and the same key elsewhere")


def _check_sizes(factory: StoreFactory) -> None:
    with _opened(factory, LIMITS) as (store, _):
        largest = Append("notes", "é" * 32, ("éééé",) * 4, "x" * 62, "k" * 8)
        store.append(largest)
        for what, append in {
            "content": Append("notes", "é" * 32 + "x"),
            "tags": Append("notes", "x", ("a",) * 5),
            "tag": Append("notes", "x", ("ok", "éééé.")),
            "meta": Append("notes", "x", (), "x" * 63),
            "idem": Append("notes", "x", idem="k" * 9),
            "empty idem": Append("notes", "x", idem=""),
        }.items():
            _refused(InvalidParams, f"append with too large {what}", store.append, append)
        _equal(_contents(store), [largest.content], "append: a record that was refused is there")


def _check_memory_shares(factory: StoreFactory) -> None:
    with _opened(factory, LIMITS.but(memory_records=3)) as (store, _):
        first = store.append(Append("notes", "1", idem="k"))
        _fill(store, "2", "3")
        _refused(QuotaExceeded, "append of one record too many", store.append, Append("notes", "4"))
        _equal(
            store.append(Append("notes", "1", idem="k")), first, "append: a repeated `idem` where the share is used up"
        )
        _equal(_contents(store), ["3", "2", "1"], "append: a record beyond the quota is there")
        store.append(Append("other", "1"))
    with _opened(factory, LIMITS.but(memory_bytes=20)) as (store, _):
        store.append(Append("notes", "é" * 4, ("ab",), "1234"))  # 8 + 2 + 6
        _refused(QuotaExceeded, "append of one byte too many", store.append, Append("notes", "12345"))
        _fill(store, "1234")
        error = _refused(QuotaExceeded, "append of one byte too many", store.append, Append("notes", "5"))
        _equal((error.used, error.limit), (20, 20), "append: what the quota's error says of used and limit")


# -- configuration, rule by rule


def _check_values(factory: StoreFactory) -> None:
    with _opened(factory) as (store, _):
        _equal(store.get_config("notes", "mode"), ConfigValue(None, 0), "get_config: a key without a value")
        first = store.set_config("notes", ConfigSet("mode", "é\n"))
        other = store.set_config("other", ConfigSet("mode", "theirs"))
        again = store.set_config("notes", ConfigSet(" mode ", ""))
        _expect(first.ok and other.ok and again.ok, "set_config: the answer is not ok")
        revisions = [saved.revision or 0 for saved in (first, other, again)]
        _expect(0 < revisions[0] < revisions[1] < revisions[2], f"set_config: revisions do not grow: {revisions}")
        _equal(
            store.get_config("notes", "mode\t"), ConfigValue("", again.revision), "get_config: the value and revision"
        )
        _equal(
            store.get_config("other", "mode"), ConfigValue("theirs", other.revision), "get_config: another extension's"
        )


def _check_comparing(factory: StoreFactory) -> None:
    with _opened(factory) as (store, _):
        first = store.set_config("notes", ConfigSet("mode", "a", 0))
        _expect(first.ok, "set_config: if_revision 0 where there is no value is not ok")
        _equal(
            store.set_config("notes", ConfigSet("mode", "b", 0)),
            ConfigSaved(False, first.revision),
            "set_config: if_revision 0 where there is a value",
        )
        second = store.set_config("notes", ConfigSet("mode", "b", first.revision))
        _expect(second.ok, "set_config: if_revision with the key's own revision is not ok")
        _equal(
            store.set_config("notes", ConfigSet("mode", "c", first.revision)),
            ConfigSaved(False, second.revision),
            "set_config: if_revision of an older change",
        )
        _equal(
            store.set_config("notes", ConfigSet("new", "c", 7)),
            ConfigSaved(False, 0),
            "set_config: if_revision where there is no value",
        )
        _equal(store.read_config("notes").values, {"mode": "b"}, "set_config: a change that was not ok is there")
        _equal(len(store.read_changes("notes", 0) or []), 2, "read_changes: a change that was not ok is told")


def _check_removing(factory: StoreFactory) -> None:
    with _opened(factory) as (store, _):
        _equal(store.remove_config("notes", "mode"), ConfigSaved(True, 0), "remove_config: where there is no value")
        saved = store.set_config("notes", ConfigSet("mode", "a"))
        _equal(
            store.remove_config("notes", "mode", if_revision=0),
            ConfigSaved(False, saved.revision),
            "remove_config: if_revision 0 where there is a value",
        )
        removed = store.remove_config("notes", " mode", if_revision=saved.revision)
        _expect(
            removed.ok and (removed.revision or 0) > (saved.revision or 0), f"remove_config: the answer is {removed}"
        )
        _equal(store.get_config("notes", "mode"), ConfigValue(None, 0), "get_config: a key whose value was removed")
        _equal(
            store.read_changes("notes", saved.revision or 0),
            [ConfigChanged("mode", None, removed.revision or 0)],
            "read_changes: a removed value",
        )


def _check_config_rules(factory: StoreFactory) -> None:
    with _opened(factory, LIMITS) as (store, _):
        for key in ("", " ", "a.b", "a/b", "a b", "a\x00b", "é" * 8 + "x"):
            _refused(InvalidParams, f"get_config of the key {key!r}", store.get_config, "notes", key)
            _refused(InvalidParams, f"set_config of the key {key!r}", store.set_config, "notes", ConfigSet(key, "a"))
            _refused(InvalidParams, f"remove_config of the key {key!r}", store.remove_config, "notes", key)
        _refused(
            InvalidParams,
            "set_config of too large a value",
            store.set_config,
            "notes",
            ConfigSet("mode", "é" * 16 + "x"),
        )
        store.set_config("notes", ConfigSet("é" * 8, "é" * 16))
        _equal(store.read_config("notes").values, {"é" * 8: "é" * 16}, "set_config: what was refused is there")


def _check_config_shares(factory: StoreFactory) -> None:
    with _opened(factory, LIMITS.but(config_keys=2)) as (store, _):
        for key in ("a", "b"):
            store.set_config("notes", ConfigSet(key, "1"))
        _refused(QuotaExceeded, "set_config of one key too many", store.set_config, "notes", ConfigSet("c", "1"))
        store.set_config("notes", ConfigSet("a", "2"))
        store.set_config("other", ConfigSet("c", "1"))
        store.remove_config("notes", "b")
        store.set_config("notes", ConfigSet("c", "1"))
        _equal(store.read_config("notes").values, {"a": "2", "c": "1"}, "set_config: the values within the share")
    with _opened(factory, LIMITS.but(config_bytes=10)) as (store, _):
        store.set_config("notes", ConfigSet("é", "é123456"))  # 2 + 8
        store.set_config("notes", ConfigSet("é", "12345678"))
        _refused(
            QuotaExceeded, "set_config of one byte too many", store.set_config, "notes", ConfigSet("é", "123456789")
        )
        store.set_config("notes", ConfigSet("é", "1"))
        store.set_config("notes", ConfigSet("b", "123456"))
        _equal(store.read_config("notes").values, {"é": "1", "b": "123456"}, "set_config: the values within the share")


def _check_snapshots(factory: StoreFactory) -> None:
    with _opened(factory) as (store, _):
        _equal(store.read_config("notes"), Snapshot(0, {}), "read_config: of an empty store")
        store.set_config("notes", ConfigSet("a", "1"))
        store.set_config("notes", ConfigSet("b", "2"))
        last = store.set_config("other", ConfigSet("c", "3")).revision or 0
        _equal(store.read_config("notes"), Snapshot(last, {"a": "1", "b": "2"}), "read_config: of all keys")
        _equal(store.read_config("notes", ("b", "c")), Snapshot(last, {"b": "2"}), "read_config: of some keys")
        _equal(store.read_config("notes", ()), Snapshot(last, {}), "read_config: of no keys")
        store.read_config("notes").values.clear()
        _equal(
            store.read_config("notes").values, {"a": "1", "b": "2"}, "read_config: a snapshot was changed from outside"
        )


def _check_changes(factory: StoreFactory) -> None:
    with _opened(factory) as (store, _):
        _equal(store.read_changes("notes", 0), [], "read_changes: of an empty store")
        made: list[ConfigChanged] = []
        for key, value in [("a", "1"), ("b", "2"), ("a", "3"), ("a", "3")]:
            made.append(ConfigChanged(key, value, store.set_config("notes", ConfigSet(key, value)).revision or 0))
            store.set_config("other", ConfigSet(key, "theirs"))
        for index, change in enumerate(made):
            _equal(store.read_changes("notes", change.revision), made[index + 1 :], "read_changes: after each revision")
        _equal(store.read_changes("notes", 0, ("b", "c")), made[1:2], "read_changes: of some keys")
        _equal(store.read_changes("notes", 0, ()), [], "read_changes: of no keys")
        _equal(store.read_changes("nobody", 0), [], "read_changes: of an extension without any")
        last = store.read_config("notes").revision
        _equal(store.read_changes("notes", last), [], "read_changes: after the last revision")
        _equal(store.read_changes("notes", last + 1), None, "read_changes: after a revision that was never reached")


def _check_forgetting(factory: StoreFactory) -> None:
    with _opened(factory, LIMITS.but(config_log=3)) as (store, _):
        revisions = [store.set_config("notes", ConfigSet("a", str(number))).revision or 0 for number in range(5)]
        for number in range(9):
            store.set_config("other", ConfigSet("a", str(number)))
        told = [None, None, 3, 2, 1, 0]
        found = [store.read_changes("notes", since) for since in [0, *revisions]]
        _equal(
            [None if changes is None else len(changes) for changes in found],
            told,
            "read_changes: where three are remembered",
        )
        _equal(store.read_changes("notes", 0, ("b",)), None, "read_changes: of keys whose changes may be forgotten")


def _check_watching(factory: StoreFactory) -> None:
    with _opened(factory) as (store, _):
        seen: list[tuple[str, str | None]] = []
        end = store.watch(lambda extension: seen.append((extension, store.get_config(extension, "a").value)))
        store.watch(_fail)
        late: list[str] = []
        store.watch(late.append)
        saved = store.set_config("notes", ConfigSet("a", "1"))
        _expect(saved.ok, "set_config: the answer is not ok where a watcher failed")
        _equal(seen, [("notes", "1")], "watch: what a watcher finds when it is woken")
        store.set_config("notes", ConfigSet("a", "2", 0))
        _equal(len(seen), 1, "watch: a watcher was woken without a change")
        store.remove_config("other", "a")
        store.remove_config("notes", "a")
        _equal(seen[1:], [("notes", None)], "watch: what a watcher finds when a value was removed")
        end()
        end()
        store.set_config("notes", ConfigSet("a", "3"))
        _equal(len(seen), 2, "watch: a watcher was woken after it was ended")
        _equal(late, ["notes"] * 3, "watch: a watcher behind one that fails")


def _fail(extension: str) -> None:
    raise RuntimeError(f"a watcher of {extension} that fails on purpose")


def _check_threads(factory: StoreFactory) -> None:
    with _opened(factory) as (store, _):
        failures: list[BaseException] = []
        together = Barrier(THREADS)

        def work(name: int) -> None:
            try:
                together.wait(10)
                for turn in range(TURNS):
                    store.append(Append("notes", f"{name}/{turn}"))
                    while not _count_up(store):
                        pass
            except BaseException as failure:
                failures.append(failure)

        threads = [Thread(target=work, args=(name,)) for name in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise AssertionError(f"used by {THREADS} threads at once, the store raised {failures[0]!r}") from failures[
                0
            ]
        _equal(
            store.get_config("notes", "n").value, str(THREADS * TURNS), "set_config: updates were lost between threads"
        )
        for name in range(THREADS):
            mine = [f"{name}/{turn}" for turn in range(TURNS - 1, -1, -1)]
            _equal(_contents(store, content_contains=f"{name}/", limit=60), mine, "append: the records of one thread")


def _count_up(store: Store) -> bool:
    before = store.get_config("notes", "n")
    return store.set_config("notes", ConfigSet("n", str(int(before.value or 0) + 1), before.revision)).ok


def _check_closing(factory: StoreFactory) -> None:
    store = factory(ROOMY, _Time())
    end = store.watch(_fail)
    store.close()
    store.close()
    end()
    calls: list[tuple[Callable[..., object], tuple[object, ...]]] = [
        (store.append, (Append("notes", "text"),)),
        (store.query, (Query("notes"),)),
        (store.get_config, ("notes", "a")),
        (store.set_config, ("notes", ConfigSet("a", "1"))),
        (store.remove_config, ("notes", "a")),
        (store.read_config, ("notes",)),
        (store.read_changes, ("notes", 0)),
        (store.watch, (_fail,)),
    ]
    for call, arguments in calls:
        _refused(Exception, f"{call.__name__} of a closed store", call, *arguments)


_RULES = (
    _check_answers_to_append,
    _check_records,
    _check_order,
    _check_words,
    _check_tags,
    _check_bounds,
    _check_query_limits,
    _check_namespaces,
    _check_repeated_appends,
    _check_sizes,
    _check_memory_shares,
    _check_values,
    _check_comparing,
    _check_removing,
    _check_config_rules,
    _check_config_shares,
    _check_snapshots,
    _check_changes,
    _check_forgetting,
    _check_watching,
    _check_threads,
    _check_closing,
)


# -- random conversations with a naive model


class _Model:
    """What a store must answer, in the plainest way: a list of records and a list of changes."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.records: list[tuple[Record, str | None]] = []
        self.changes: list[tuple[str, ConfigChanged]] = []

    def append(self, append: Append, now: int) -> Appended | None:
        """Returns the answer, without its id; None where the share is used up."""
        own = [(record, idem) for record, idem in self.records if record.namespace == append.namespace]
        for record, idem in own:
            if idem is not None and idem == append.idem:
                return Appended(True, record.timestamp_ms)
        used = sum(self.size(record) for record, _ in own)
        record = Record(append.namespace, now, append.content, append.tags, append.meta)
        if len(own) >= self.limits.memory_records or used + self.size(record) > self.limits.memory_bytes:
            return None
        self.records.append((record, append.idem))
        return Appended(True, now)

    @staticmethod
    def size(record: Record) -> int:
        meta = "" if record.meta is None else f'"{record.meta}"'
        return sum(len(text.encode()) for text in (record.content, *record.tags, meta))

    def query(self, query: Query) -> list[Record]:
        fitting = [
            record
            for record, _ in reversed(self.records)
            if record.namespace == query.namespace
            and (query.content_contains or "").casefold() in record.content.casefold()
            and (query.tag_prefix is None or any(tag.startswith(query.tag_prefix) for tag in record.tags))
            and (query.since_ms is None or query.since_ms <= record.timestamp_ms)
            and (query.until_ms is None or record.timestamp_ms <= query.until_ms)
        ]
        limit = DEFAULT_QUERY_LIMIT if query.limit is None else query.limit
        return fitting[: min(limit, self.limits.memory_page)]

    @property
    def revision(self) -> int:
        return self.changes[-1][1].revision if self.changes else 0

    def own(self, extension: str) -> list[ConfigChanged]:
        return [change for name, change in self.changes if name == extension]

    def values(self, extension: str) -> dict[str, ConfigChanged]:
        latest = {change.key: change for change in self.own(extension)}
        return {key: change for key, change in latest.items() if change.value is not None}

    def read_changes(self, extension: str, since: int) -> list[ConfigChanged] | None:
        later = [change for change in self.own(extension) if change.revision > since]
        return None if since > self.revision or len(later) > self.limits.config_log else later

    def is_within_share(self, extension: str, key: str, value: str) -> bool:
        after = {name: change.value or "" for name, change in self.values(extension).items()} | {key: value}
        size = sum(len(name.encode()) + len(text.encode()) for name, text in after.items())
        return len(after) <= self.limits.config_keys and size <= self.limits.config_bytes


WORDS = ["milk", "MILK", "tea", "Straße", "é", " ", "%", "", "x" * 30]
TAGS = ["food", "FOOD", "@user", "foo", ""]
KEYS = ["a", "b", "mode", "é", "last", "seventh", "eighth"]
NAMES = ["notes", "other"]


def _check_conversation(factory: StoreFactory, random: Random, which: str) -> None:
    with _opened(factory, LIMITS) as (store, time):
        model = _Model(LIMITS)
        for step in range(STEPS):
            time.now = max(0, time.now + random.randint(-3, 10))
            speak = random.choice([_speak_append, _speak_append, _speak_query, _speak_set, _speak_remove, _speak_read])
            speak(store, model, random, time.now, f"{which}, step {step}")


def _speak_append(store: Store, model: _Model, random: Random, now: int, where: str) -> None:
    append = Append(
        random.choice(NAMES),
        "".join(random.choices(WORDS, k=random.randint(0, 2))),
        tuple(random.choices(TAGS, k=random.randint(0, 3))),
        random.choice([None, "é", "x" * 20]),
        random.choice([None, None, "k", "l", "m"]),
    )
    expected = model.append(append, now)
    if expected is None:
        _refused(QuotaExceeded, f"{where}: {append}", store.append, append)
        return
    answer = store.append(append)
    _equal(Appended(answer.ok, answer.timestamp_ms), expected, f"{where}: {append}")


def _speak_query(store: Store, model: _Model, random: Random, now: int, where: str) -> None:
    query = Query(
        random.choice(NAMES),
        content_contains=random.choice([None, *WORDS]),
        tag_prefix=random.choice([None, None, *TAGS]),
        since_ms=random.choice([None, None, max(0, now - random.randint(0, 300))]),
        until_ms=random.choice([None, None, max(0, now - random.randint(0, 100))]),
        limit=random.choice([None, 0, 1, 5, 100]),
    )
    found = [Record(one.namespace, one.timestamp_ms, one.content, one.tags, one.meta) for one in store.query(query)]
    _equal(found, model.query(query), f"{where}: {query}")


def _speak_set(store: Store, model: _Model, random: Random, now: int, where: str) -> None:
    extension, key = random.choice(NAMES), random.choice(KEYS)
    present = model.values(extension).get(key)
    revision = 0 if present is None else present.revision
    change = ConfigSet(key, random.choice(WORDS), random.choice([None, None, revision, 0, model.revision]))
    if change.if_revision not in (None, revision):
        _equal(store.set_config(extension, change), ConfigSaved(False, revision), f"{where}: {extension}, {change}")
    elif not model.is_within_share(extension, key, change.value):
        _refused(QuotaExceeded, f"{where}: {extension}, {change}", store.set_config, extension, change)
    else:
        _note_change(model, extension, key, change.value, store.set_config(extension, change), where)


def _speak_remove(store: Store, model: _Model, random: Random, now: int, where: str) -> None:
    extension, key = random.choice(NAMES), random.choice(KEYS)
    if key in model.values(extension):
        _note_change(model, extension, key, None, store.remove_config(extension, key), where)
    else:
        _equal(store.remove_config(extension, key), ConfigSaved(True, 0), f"{where}: remove {key}, which is not there")


def _note_change(model: _Model, extension: str, key: str, value: str | None, saved: ConfigSaved, where: str) -> None:
    revision = saved.revision or 0
    _expect(saved.ok and revision > model.revision, f"{where}: {key} of {extension}: {saved} after {model.revision}")
    model.changes.append((extension, ConfigChanged(key, value, revision)))


def _speak_read(store: Store, model: _Model, random: Random, now: int, where: str) -> None:
    extension, key = random.choice(NAMES), random.choice(KEYS)
    values = model.values(extension)
    present = values.get(key)
    expected = ConfigValue(None, 0) if present is None else ConfigValue(present.value, present.revision)
    _equal(store.get_config(extension, key), expected, f"{where}: {key} of {extension}")
    snapshot = Snapshot(model.revision, {name: change.value or "" for name, change in values.items()})
    _equal(store.read_config(extension), snapshot, f"{where}: the values of {extension}")
    since = random.randint(0, model.revision + 1)
    _equal(
        store.read_changes(extension, since), model.read_changes(extension, since), f"{where}: changes after {since}"
    )
