"""`check_store`: verifies the contract of a store.

It uses only the public interface. Each rule is checked with the smallest sequence that can break it; then long
random sequences are applied to the store and to a naive model, and the results must be equal.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from random import Random
from threading import Barrier, Event, Thread
from typing import Any

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from becket.contract.config import ConfigChanged, ConfigSaved, ConfigSet, ConfigValue
from becket.contract.memory import DEFAULT_QUERY_LIMIT, Append, Appended, Query, Record, Records
from becket.errors import BecketError, Busy, InvalidParams, QueryTimeout, QuotaExceeded
from becket.limits import Limits
from becket.stores.store import Snapshot, Store, StoreFactory
from becket.testing.checks.assertions import expect, expect_equal, expect_error
from becket.testing.checks.store_model import SMALL_LIMITS, ManualClock, StoreComparison

__all__ = ["check_store", "run_check"]

ROUNDS = 20  # random sequences
STEPS = 150  # operations in each
THREADS = 4
TURNS = 50  # operations of each thread
TIMEOUT = 10.0  # seconds for what should return at once
ROOMY = Limits(memory_page=60)


def check_store(factory: StoreFactory, *, seed: int = 0) -> None:
    """Checks that the stores of `factory` keep their contract; raises with the rule that is broken.

    Each store must be new and empty. Another `seed` produces other sequences.

    Raises:
        AssertionError: with a sentence that says what is wrong.
    """
    for check in _RULES:
        run_check(check.__name__.removeprefix("_check_").replace("_", " "), check, factory)
    for number in range(ROUNDS):
        which = f"seed {seed}, conversation {number}"
        clock = ManualClock()
        conversation = StoreComparison(partial(factory, SMALL_LIMITS, clock), clock, Random(f"{seed}/{number}"), which)
        run_check(which, conversation.run, STEPS)


def run_check(what: str, check: Callable[..., None], *arguments: object) -> None:
    """Runs one check; turns an unexpected exception of the store into an AssertionError."""
    try:
        check(*arguments)
    except AssertionError:
        raise
    except Exception as problem:
        raise AssertionError(f"{what}: the store raised {problem!r} where it should have answered") from problem


# -- helpers


@contextmanager
def _opened(factory: StoreFactory, limits: Limits = ROOMY) -> Generator[tuple[Store, ManualClock]]:
    time = ManualClock()
    store = factory(limits, time)
    try:
        yield store, time
    finally:
        store.close()


def _contents(store: Store, **conditions: Any) -> list[str]:
    return [record.content for record in store.query(Query("notes", **conditions))]


def _fill(store: Store, *contents: str) -> None:
    for content in contents:
        store.append(Append("notes", content))


# -- memory, rule by rule


def _check_append_results(factory: StoreFactory) -> None:
    with _opened(factory) as (store, time):
        ids: list[int] = []
        for time.now in (5, 5, 3, 9):
            answer = store.append(Append("notes", "text"))
            expect(answer.ok, "append: the answer is not ok")
            expect_equal(answer.timestamp_ms, time.now, "append: the time is not that of the clock")
            expect(answer.id is not None, "append: the answer has no id")
            ids.append(answer.id or 0)
        expect_equal(ids, sorted(set(ids)), "append: ids do not grow")


def _check_records(factory: StoreFactory) -> None:
    with _opened(factory) as (store, _):
        meta = {"a": [1, 2.5, None, True, "é"]}
        given = Append("notes", "é\n\x00\u2028", ("b", "a", "a"), meta)
        answer = store.append(given)
        expect_equal(
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
        expect(
            store.query(Query("notes"))[0].meta == {"a": [1, 2.5, None, True, "é"]},
            "query: `meta` was changed from outside, through what was appended or what was found",
        )
        store.append(Append("notes", "bare"))
        (bare,) = store.query(Query("notes", limit=1))
        expect_equal((bare.tags, bare.meta), ((), None), "query: tags and meta of a record that has none")


def _check_order(factory: StoreFactory) -> None:
    with _opened(factory) as (store, time):
        for time.now in (30, 10, 20, 20):
            _fill(store, str(time.now))
        expect_equal(_contents(store), ["20", "20", "10", "30"], "query: the latest append does not come first")


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
            expect_equal(_contents(store, content_contains=needle), expected, f"query: content_contains {needle!r}")


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
            expect_equal(_contents(store, tag_prefix=prefix), expected, f"query: tag_prefix {prefix!r}")


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
            expect_equal(_contents(store, **conditions), expected, f"query: {conditions}")


def _check_query_limits(factory: StoreFactory) -> None:
    with _opened(factory) as (store, _):
        _fill(store, *map(str, range(70)))
        newest = [str(number) for number in range(69, -1, -1)]
        for limit, count in {0: 0, 1: 1, 60: 60, 61: 60, 10_000: 60, None: DEFAULT_QUERY_LIMIT}.items():
            expect_equal(_contents(store, limit=limit), newest[:count], f"query: limit {limit}, where a page is 60")
        expect_equal(
            _contents(store, limit=1, content_contains="7"), ["67"], "query: a limit counts what fits, not what is read"
        )


def _check_pages(factory: StoreFactory) -> None:
    with _opened(factory) as (store, _):
        query = Query("notes", limit=3)
        expect_equal(store.query_page(query, 1_000), Records(()), "query_page: nothing is there")
        for number in range(4):
            store.append(Append("notes", f"{number}" * 1_000, meta={"a": [number]}))
        expected = store.query(query)
        expect_equal(
            _decoded(store.query_page(query, 1_000_000)), Records(tuple(expected)), "query_page: all that is expected"
        )
        expect_equal(
            _decoded(store.query_page(query, 2_500)),
            Records(tuple(expected[:2]), more=True),
            "query_page: two of three",
        )
        expect_equal(
            _decoded(store.query_page(query, 1)), Records(tuple(expected[:1]), more=True), "query_page: one at least"
        )


def _decoded(page: Records) -> Records:
    expect(
        all(isinstance(record.meta, Raw) for record in page.records), "query_page: `meta` is not JSON text but a value"
    )
    return replace(
        page, records=tuple(replace(record, meta=msgspec.json.decode(record.meta)) for record in page.records)
    )


def _check_namespaces(factory: StoreFactory) -> None:
    with _opened(factory) as (store, _):
        _fill(store, "mine")
        store.append(Append("other", "theirs"))
        expect_equal(_contents(store), ["mine"], "query: records of another namespace")
        expect_equal(store.query(Query("unknown")), [], "query: a namespace without records")
        for namespace in ("", "a/b", "a\\b", "a..b", "a b", "a\tb", "x" * 65):
            what = f"of the namespace {namespace!r}"
            expect_error(InvalidParams, f"append {what}", store.append, Append(namespace, "text"))
            expect_error(InvalidParams, f"query {what}", store.query, Query(namespace))


def _check_repeated_appends(factory: StoreFactory) -> None:
    with _opened(factory) as (store, time):
        first = store.append(Append("notes", "text", idem="k"))
        time.now += 1
        expect_equal(store.append(Append("notes", "text", idem="k")), first, "append: the answer to a repeated `idem`")
        expect_equal(
            store.append(Append("notes", "changed", idem="k")), first, "append: the answer to a repeated `idem`"
        )
        expect_equal(_contents(store), ["text"], "append: a repeated `idem` added or changed a record")
        store.append(Append("notes", "text", idem="K"))
        store.append(Append("notes", "text"))
        store.append(Append("other", "text", idem="k"))
        expect_equal(len(_contents(store)), 3, "append: records after other keys, none, and the same key elsewhere")


def _check_sizes(factory: StoreFactory) -> None:
    with _opened(factory, SMALL_LIMITS) as (store, _):
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
            expect_error(InvalidParams, f"append with too large {what}", store.append, append)
        expect_equal(_contents(store), [largest.content], "append: a record that was refused is there")


def _check_memory_quotas(factory: StoreFactory) -> None:
    with _opened(factory, SMALL_LIMITS.but(memory_records=3)) as (store, _):
        first = store.append(Append("notes", "1", idem="k"))
        _fill(store, "2", "3")
        expect_error(QuotaExceeded, "append of one record too many", store.append, Append("notes", "4"))
        expect_equal(
            store.append(Append("notes", "1", idem="k")), first, "append: a repeated `idem` where the share is used up"
        )
        expect_equal(_contents(store), ["3", "2", "1"], "append: a record beyond the quota is there")
        store.append(Append("other", "1"))
    with _opened(factory, SMALL_LIMITS.but(memory_bytes=20)) as (store, _):
        store.append(Append("notes", "é" * 4, ("ab",), "1234"))  # 8 + 2 + 6
        expect_error(QuotaExceeded, "append of one byte too many", store.append, Append("notes", "12345"))
        _fill(store, "1234")
        error = expect_error(QuotaExceeded, "append of one byte too many", store.append, Append("notes", "5"))
        expect_equal((error.used, error.limit), (20, 20), "append: used and limit in the quota's error")


def _check_handing_over(factory: StoreFactory) -> None:
    with _opened(factory, SMALL_LIMITS.but(memory_records=3)) as (store, _):
        outcomes = _Outcomes(5)
        for content in ("1", "2", "3", "4"):
            store.append_nowait(Append("notes", content), outcomes)
        store.append_nowait(Append("other", "5"), outcomes)
        answers = outcomes.wait()
        kept = [outcome.id for outcome in answers if isinstance(outcome, Appended)]
        expect_equal(len(kept), 4, "append_nowait: how many of five were kept, where a fourth is beyond the quota")
        expect_equal(
            [isinstance(outcome, QuotaExceeded) for outcome in answers],
            [False, False, False, True, False],
            "append_nowait: the outcome of the one that is too many",
        )
        expect_equal(
            _contents(store), ["3", "2", "1"], "append_nowait: the records, in the order in which they were given"
        )
        expect_error(
            InvalidParams, "append_nowait of too large content", store.append_nowait, Append("notes", "x" * 65), _fail
        )
    with _opened(factory) as (store, _):
        again = _Outcomes(2)
        store.append_nowait(Append("notes", "text", idem="k"), _fail)
        store.append_nowait(Append("notes", "text", idem="k"), again)
        store.append_nowait(Append("notes", "text", idem="k"), again)
        first, second = again.wait()
        expect_equal(first, second, "append_nowait: the answer to a repeated `idem`")
        expect_equal(
            _contents(store), ["text"], "append_nowait: the records after one whose `done` fails, and its repetition"
        )


class _Outcomes:
    """Collects the outcomes passed to `done`."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._outcomes: list[Appended | BecketError] = []
        self._are_all_here = Event()

    def __call__(self, outcome: Appended | BecketError) -> None:
        self._outcomes.append(outcome)
        if len(self._outcomes) >= self._count:
            self._are_all_here.set()

    @property
    def is_complete(self) -> bool:
        return self._are_all_here.is_set()

    def wait(self) -> list[Appended | BecketError]:
        expect(self._are_all_here.wait(TIMEOUT), f"append_nowait: `done` was not called {self._count} times")
        expect_equal(len(self._outcomes), self._count, "append_nowait: how often `done` was called")
        return self._outcomes


def _check_searching(factory: StoreFactory) -> None:
    with _opened(factory) as (store, _):
        _fill(store, "tea", "Milk milk", "milk roll", "some milk with tea, and a good deal of other things", "tea")
        store.append(Append("other", "milk"))
        for text, expected in {
            "MILK": ["Milk milk", "milk roll", "some milk with tea, and a good deal of other things"],
            "tea": ["tea", "tea", "some milk with tea, and a good deal of other things"],
            "tea milk": ["some milk with tea, and a good deal of other things"],
            "il ea": ["some milk with tea, and a good deal of other things"],
            "milk coffee": [],
            "": [],
            " \n": [],
        }.items():
            found = store.search("notes", text)
            expect_equal([record.content for record in found], expected, f"search: {text!r}")
        first, second = (record.id or 0 for record in store.search("notes", "tea", limit=2))
        expect(first > second, "search: of two that are equally good the latest does not come first")
        expect_equal(len(store.search("notes", "milk", limit=1)), 1, "search: where one record is expected")
        for text in ('"', 'a" OR "b', "NEAR(", "tea AND NOT", "content:milk", "*", "^milk", "-", "(", "\x00", "%", "'"):
            expect_equal(store.search("notes", text), [], f"search: {text!r}, which means nothing but itself")
        expect_error(InvalidParams, "search in the namespace 'a/b'", store.search, "a/b", "milk")
        words = " ".join(map(str, range(store_words := Limits().search_words)))
        expect_equal(store.search("notes", words), [], "search: of as many words as there may be")
        expect_error(InvalidParams, "search of one word too many", store.search, "notes", f"{words} {store_words}")
    with _opened(factory, ROOMY.but(search_records=2)) as (store, _):
        _fill(store, "milk", "milk and tea", "milk and tea")
        found = store.search("notes", "milk")
        expect_equal(
            [record.content for record in found], ["milk and tea"] * 2, "search: where only the newest two are ranked"
        )


def _check_forgotten_records(factory: StoreFactory) -> None:
    with _opened(factory, SMALL_LIMITS.but(memory_records=3, memory_bytes=30)) as (store, _):
        ids = [store.append(Append("notes", text, ("a",), "b", idem=text)).id or 0 for text in ("milk", "tea", "Milk")]
        store.append(Append("other", "milk"))
        expect_equal(store.forget("notes", up_to=ids[1]), 2, "forget: how many there were")
        expect_equal(store.forget("notes", up_to=ids[1]), 0, "forget: how many there were the second time")
        expect_equal(_contents(store), ["Milk"], "forget: what is left")
        expect_equal(_contents(store, content_contains="ilk"), ["Milk"], "forget: what is found of what is left")
        expect_equal(len(store.query(Query("other"))), 1, "forget: records of another namespace")
        expect_equal(store.forget("unknown"), 0, "forget: a namespace without records")
        again = [store.append(Append("notes", text, ("a",), "b", idem=text)).id or 0 for text in ("tea", "milk")]
        expect(min(again) > ids[2], f"append: ids {again} after {ids}, some of which were forgotten")
        expect_error(
            QuotaExceeded, "append of a fourth record, two being forgotten", store.append, Append("notes", "x")
        )
        expect_equal(store.forget("notes"), 3, "forget: all of them")
        expect_equal(_contents(store), [], "forget: what is left of all")
        expect((store.append(Append("notes", "new")).id or 0) > again[1], "append: an id was used again")
        expect_error(InvalidParams, "forget in the namespace 'a/b'", store.forget, "a/b")


def _check_deadlines(factory: StoreFactory) -> None:
    with _opened(factory) as (store, _):
        _fill(store, *["milk"] * 10)
        for call in (
            lambda: store.query(Query("notes", "#"), timeout=0.0),
            lambda: store.search("notes", "#", timeout=0),
        ):
            expect_error(QueryTimeout, "a query without any time", call)
        expect_equal(len(store.query(Query("notes"), timeout=TIMEOUT)), 10, "query: with time enough")
    with _opened(factory, ROOMY.but(query_seconds=0.0)) as (store, _):
        _fill(store, "milk")
        error = expect_error(QueryTimeout, "a query where the limits leave no time", store.query, Query("notes"))
        expect_equal(error.seconds, 0.0, "query: the time in the error")


# -- configuration, rule by rule


def _check_values(factory: StoreFactory) -> None:
    with _opened(factory) as (store, _):
        expect_equal(store.get_config("notes", "mode"), ConfigValue(None, 0), "get_config: a key without a value")
        first = store.set_config("notes", ConfigSet("mode", "é\n"))
        other = store.set_config("other", ConfigSet("mode", "theirs"))
        again = store.set_config("notes", ConfigSet(" mode ", ""))
        expect(first.ok and other.ok and again.ok, "set_config: the answer is not ok")
        revisions = [saved.revision or 0 for saved in (first, other, again)]
        expect(0 < revisions[0] < revisions[1] < revisions[2], f"set_config: revisions do not grow: {revisions}")
        expect_equal(
            store.get_config("notes", "mode\t"), ConfigValue("", again.revision), "get_config: the value and revision"
        )
        expect_equal(
            store.get_config("other", "mode"), ConfigValue("theirs", other.revision), "get_config: another extension's"
        )


def _check_comparing(factory: StoreFactory) -> None:
    with _opened(factory) as (store, _):
        first = store.set_config("notes", ConfigSet("mode", "a", 0))
        expect(first.ok, "set_config: if_revision 0 where there is no value is not ok")
        expect_equal(
            store.set_config("notes", ConfigSet("mode", "b", 0)),
            ConfigSaved(False, first.revision),
            "set_config: if_revision 0 where there is a value",
        )
        second = store.set_config("notes", ConfigSet("mode", "b", first.revision))
        expect(second.ok, "set_config: if_revision with the key's own revision is not ok")
        expect_equal(
            store.set_config("notes", ConfigSet("mode", "c", first.revision)),
            ConfigSaved(False, second.revision),
            "set_config: if_revision of an older change",
        )
        expect_equal(
            store.set_config("notes", ConfigSet("new", "c", 7)),
            ConfigSaved(False, 0),
            "set_config: if_revision where there is no value",
        )
        expect_equal(store.read_config("notes").values, {"mode": "b"}, "set_config: a change that was not ok is there")
        expect_equal(
            len(store.read_changes("notes", 0) or []), 2, "read_changes: a change that was not ok is in the log"
        )


def _check_removing(factory: StoreFactory) -> None:
    with _opened(factory) as (store, _):
        expect_equal(
            store.remove_config("notes", "mode"), ConfigSaved(True, 0), "remove_config: where there is no value"
        )
        saved = store.set_config("notes", ConfigSet("mode", "a"))
        expect_equal(
            store.remove_config("notes", "mode", if_revision=0),
            ConfigSaved(False, saved.revision),
            "remove_config: if_revision 0 where there is a value",
        )
        removed = store.remove_config("notes", " mode", if_revision=saved.revision)
        expect(
            removed.ok and (removed.revision or 0) > (saved.revision or 0), f"remove_config: the answer is {removed}"
        )
        expect_equal(
            store.get_config("notes", "mode"), ConfigValue(None, 0), "get_config: a key whose value was removed"
        )
        expect_equal(
            store.read_changes("notes", saved.revision or 0),
            [ConfigChanged("mode", None, removed.revision or 0)],
            "read_changes: a removed value",
        )


def _check_config_rules(factory: StoreFactory) -> None:
    with _opened(factory, SMALL_LIMITS) as (store, _):
        for key in ("", " ", "a.b", "a/b", "a b", "a\x00b", "é" * 8 + "x"):
            expect_error(InvalidParams, f"get_config of the key {key!r}", store.get_config, "notes", key)
            expect_error(
                InvalidParams, f"set_config of the key {key!r}", store.set_config, "notes", ConfigSet(key, "a")
            )
            expect_error(InvalidParams, f"remove_config of the key {key!r}", store.remove_config, "notes", key)
        expect_error(
            InvalidParams,
            "set_config of too large a value",
            store.set_config,
            "notes",
            ConfigSet("mode", "é" * 16 + "x"),
        )
        store.set_config("notes", ConfigSet("é" * 8, "é" * 16))
        expect_equal(store.read_config("notes").values, {"é" * 8: "é" * 16}, "set_config: what was refused is there")


def _check_config_quotas(factory: StoreFactory) -> None:
    with _opened(factory, SMALL_LIMITS.but(config_keys=2)) as (store, _):
        for key in ("a", "b"):
            store.set_config("notes", ConfigSet(key, "1"))
        expect_error(QuotaExceeded, "set_config of one key too many", store.set_config, "notes", ConfigSet("c", "1"))
        store.set_config("notes", ConfigSet("a", "2"))
        store.set_config("other", ConfigSet("c", "1"))
        store.remove_config("notes", "b")
        store.set_config("notes", ConfigSet("c", "1"))
        expect_equal(store.read_config("notes").values, {"a": "2", "c": "1"}, "set_config: the values within the share")
    with _opened(factory, SMALL_LIMITS.but(config_bytes=10)) as (store, _):
        store.set_config("notes", ConfigSet("é", "é123456"))  # 2 + 8
        store.set_config("notes", ConfigSet("é", "12345678"))
        expect_error(
            QuotaExceeded, "set_config of one byte too many", store.set_config, "notes", ConfigSet("é", "123456789")
        )
        store.set_config("notes", ConfigSet("é", "1"))
        store.set_config("notes", ConfigSet("b", "123456"))
        expect_equal(
            store.read_config("notes").values, {"é": "1", "b": "123456"}, "set_config: the values within the share"
        )


def _check_snapshots(factory: StoreFactory) -> None:
    with _opened(factory) as (store, _):
        expect_equal(store.read_config("notes"), Snapshot(0, {}), "read_config: of an empty store")
        store.set_config("notes", ConfigSet("a", "1"))
        store.set_config("notes", ConfigSet("b", "2"))
        last = store.set_config("other", ConfigSet("c", "3")).revision or 0
        expect_equal(store.read_config("notes"), Snapshot(last, {"a": "1", "b": "2"}), "read_config: of all keys")
        expect_equal(store.read_config("notes", ("b", "c")), Snapshot(last, {"b": "2"}), "read_config: of some keys")
        expect_equal(store.read_config("notes", ()), Snapshot(last, {}), "read_config: of no keys")
        store.read_config("notes").values.clear()
        expect_equal(
            store.read_config("notes").values, {"a": "1", "b": "2"}, "read_config: a snapshot was changed from outside"
        )


def _check_changes(factory: StoreFactory) -> None:
    with _opened(factory) as (store, _):
        expect_equal(store.read_changes("notes", 0), [], "read_changes: of an empty store")
        made: list[ConfigChanged] = []
        for key, value in [("a", "1"), ("b", "2"), ("a", "3"), ("a", "3")]:
            made.append(ConfigChanged(key, value, store.set_config("notes", ConfigSet(key, value)).revision or 0))
            store.set_config("other", ConfigSet(key, "theirs"))
        for index, change in enumerate(made):
            expect_equal(
                store.read_changes("notes", change.revision), made[index + 1 :], "read_changes: after each revision"
            )
        expect_equal(store.read_changes("notes", 0, ("b", "c")), made[1:2], "read_changes: of some keys")
        expect_equal(store.read_changes("notes", 0, ()), [], "read_changes: of no keys")
        expect_equal(store.read_changes("unknown", 0), [], "read_changes: of an extension without any")
        last = store.read_config("notes").revision
        expect_equal(store.read_changes("notes", last), [], "read_changes: after the last revision")
        expect_equal(
            store.read_changes("notes", last + 1), None, "read_changes: after a revision that was never reached"
        )


def _check_forgetting(factory: StoreFactory) -> None:
    with _opened(factory, SMALL_LIMITS.but(config_log=3)) as (store, _):
        revisions = [store.set_config("notes", ConfigSet("a", str(number))).revision or 0 for number in range(5)]
        for number in range(9):
            store.set_config("other", ConfigSet("a", str(number)))
        counts = [None, None, 3, 2, 1, 0]
        found = [store.read_changes("notes", since) for since in [0, *revisions]]
        expect_equal(
            [None if changes is None else len(changes) for changes in found],
            counts,
            "read_changes: where three are remembered",
        )
        expect_equal(
            store.read_changes("notes", 0, ("b",)), None, "read_changes: of keys whose changes may be forgotten"
        )


def _check_watching(factory: StoreFactory) -> None:
    with _opened(factory) as (store, _):
        seen: list[tuple[str, str | None]] = []
        end = store.watch(lambda extension: seen.append((extension, store.get_config(extension, "a").value)))
        store.watch(_fail)
        late: list[str] = []
        store.watch(late.append)
        saved = store.set_config("notes", ConfigSet("a", "1"))
        expect(saved.ok, "set_config: the answer is not ok where a watcher failed")
        expect_equal(seen, [("notes", "1")], "watch: what a watcher finds when it is woken")
        store.set_config("notes", ConfigSet("a", "2", 0))
        expect_equal(len(seen), 1, "watch: a watcher was woken without a change")
        store.remove_config("other", "a")
        store.remove_config("notes", "a")
        expect_equal(seen[1:], [("notes", None)], "watch: what a watcher finds when a value was removed")
        end()
        end()
        store.set_config("notes", ConfigSet("a", "3"))
        expect_equal(len(seen), 2, "watch: a watcher was woken after it was ended")
        expect_equal(late, ["notes"] * 3, "watch: a watcher behind one that fails")


def _fail(_: object) -> None:
    raise RuntimeError("on purpose")


def _check_watchers_that_change(factory: StoreFactory) -> None:
    with _opened(factory, ROOMY.but(call_depth=3)) as (store, _):
        problems: list[BaseException] = []

        def count_up(extension: str) -> None:
            value = int(store.get_config(extension, "n").value or 0)
            try:
                store.set_config(extension, ConfigSet("n", str(value + 1)))
            except BaseException as problem:
                problems.append(problem)

        store.watch(count_up)
        store.set_config("notes", ConfigSet("n", "0"))
        expect_equal(
            [type(problem) for problem in problems], [Busy], "watch: a watcher that makes a change for each change"
        )
        expect_equal(
            store.get_config("notes", "n").value,
            "2",
            "watch: how far one counts, where three changes may be within each other",
        )
        store.set_config("notes", ConfigSet("n", "0"))
        expect_equal(len(problems), 2, "watch: the same once more")


def _check_threads(factory: StoreFactory) -> None:
    with _opened(factory) as (store, _):
        failures: list[BaseException] = []
        together = Barrier(THREADS)

        def work(name: int) -> None:
            try:
                together.wait(10)
                handed = _Outcomes(TURNS)
                for turn in range(TURNS):
                    store.append(Append("notes", f"{name}/{turn}"))
                    store.append_nowait(Append("other", f"{name}/{turn}"), handed)
                    while not _count_up(store):
                        pass
                handed.wait()
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
        expect_equal(
            store.get_config("notes", "n").value, str(THREADS * TURNS), "set_config: updates were lost between threads"
        )
        for name in range(THREADS):
            mine = [f"{name}/{turn}" for turn in range(TURNS - 1, -1, -1)]
            for namespace, way in {"notes": "append", "other": "append_nowait"}.items():
                found = store.query(Query(namespace, f"{name}/", limit=60))
                expect_equal([record.content for record in found], mine, f"{way}: the records of one thread")


def _count_up(store: Store) -> bool:
    before = store.get_config("notes", "n")
    return store.set_config("notes", ConfigSet("n", str(int(before.value or 0) + 1), before.revision)).ok


def _check_verifying(factory: StoreFactory) -> None:
    with _opened(factory, SMALL_LIMITS) as (store, time):
        expect_equal(store.verify(), [], "verify: of an empty store")
        _fill(store, "Milk", "\0 \ufffe \uffff", "", "x")
        time.now = 5  # backwards
        last = store.append(Append("notes", "é", ("a",), {"b": 1}, "k"))
        for value in map(str, range(SMALL_LIMITS.config_log + 2)):
            store.set_config("notes", ConfigSet("mode", value))
        store.remove_config("notes", "mode")
        expect_equal(store.verify(), [], "verify: of a store to which nothing has happened")
        store.forget("notes", up_to=(last.id or 0) - 2)
        expect_equal(store.verify(), [], "verify: after records were forgotten")


def _check_closing(factory: StoreFactory) -> None:
    store = factory(ROOMY, ManualClock())
    end = store.watch(_fail)
    handed = _Outcomes(TURNS)
    for turn in range(TURNS):
        store.append_nowait(Append("notes", str(turn)), handed)
    store.close()
    expect(handed.is_complete, "close: what was handed over was not kept before it returned")
    store.close()
    end()
    calls: list[tuple[Callable[..., object], tuple[object, ...]]] = [
        (store.append, (Append("notes", "text"),)),
        (store.append_nowait, (Append("notes", "text"), _fail)),
        (store.query, (Query("notes"),)),
        (store.search, ("notes", "text")),
        (store.forget, ("notes",)),
        (store.get_config, ("notes", "a")),
        (store.set_config, ("notes", ConfigSet("a", "1"))),
        (store.remove_config, ("notes", "a")),
        (store.read_config, ("notes",)),
        (store.read_changes, ("notes", 0)),
        (store.watch, (_fail,)),
        (store.verify, ()),
    ]
    for call, arguments in calls:
        expect_error(Exception, f"{call.__name__} of a closed store", call, *arguments)


_RULES = (
    _check_append_results,
    _check_records,
    _check_order,
    _check_words,
    _check_tags,
    _check_bounds,
    _check_query_limits,
    _check_pages,
    _check_namespaces,
    _check_repeated_appends,
    _check_sizes,
    _check_memory_quotas,
    _check_handing_over,
    _check_searching,
    _check_forgotten_records,
    _check_deadlines,
    _check_values,
    _check_comparing,
    _check_removing,
    _check_config_rules,
    _check_config_quotas,
    _check_snapshots,
    _check_changes,
    _check_forgetting,
    _check_watching,
    _check_watchers_that_change,
    _check_threads,
    _check_verifying,
    _check_closing,
)
