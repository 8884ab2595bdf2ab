"""The rules for the memory of a store, each with the smallest sequence that can break it."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from becket.contract.memory import DEFAULT_QUERY_LIMIT, Append, Appended, Query, Record, Records
from becket.errors import InvalidParams, QueryTimeout, QuotaExceeded
from becket.limits import Limits
from becket.stores.store import StoreFactory
from becket.testing.checks.assertions import expect, expect_equal, expect_error
from becket.testing.checks.opened_store import ROOMY, TIMEOUT, Outcomes, contents_of, fail, fill, opened
from becket.testing.checks.store_model import SMALL_LIMITS

__all__ = ["MEMORY_RULES"]


def _check_append_results(factory: StoreFactory) -> None:
    with opened(factory) as (store, time):
        ids: list[int] = []
        for time.now in (5, 5, 3, 9):
            appended = store.append(Append("notes", "text"))
            expect(appended.ok, "append: the result is not ok")
            expect_equal(appended.timestamp_ms, time.now, "append: the time is not that of the clock")
            expect(appended.id is not None, "append: the result has no id")
            ids.append(appended.id or 0)
        expect_equal(ids, sorted(set(ids)), "append: ids do not grow")


def _check_records(factory: StoreFactory) -> None:
    with opened(factory) as (store, _):
        meta = {"a": [1, 2.5, None, True, "é"]}
        record = Append("notes", "é\n\x00\u2028", ("b", "a", "a"), meta)
        appended = store.append(record)
        expect_equal(
            store.query(Query("notes")),
            [
                Record(
                    "notes",
                    appended.timestamp_ms,
                    record.content,
                    ("b", "a", "a"),
                    {"a": [1, 2.5, None, True, "é"]},
                    appended.id,
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
    with opened(factory) as (store, time):
        for time.now in (30, 10, 20, 20):
            fill(store, str(time.now))
        expect_equal(contents_of(store), ["20", "20", "10", "30"], "query: the latest append does not come first")


def _check_words(factory: StoreFactory) -> None:
    with opened(factory) as (store, _):
        fill(store, "Buy MILK", "Straße", "a_b%c", "ÅNGSTRÖM")
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
            expect_equal(contents_of(store, content_contains=needle), expected, f"query: content_contains {needle!r}")


def _check_tags(factory: StoreFactory) -> None:
    with opened(factory) as (store, _):
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
            expect_equal(contents_of(store, tag_prefix=prefix), expected, f"query: tag_prefix {prefix!r}")


def _check_bounds(factory: StoreFactory) -> None:
    with opened(factory) as (store, time):
        for time.now in (10, 20, 30):
            fill(store, str(time.now))
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
            expect_equal(contents_of(store, **conditions), expected, f"query: {conditions}")


def _check_query_limits(factory: StoreFactory) -> None:
    with opened(factory) as (store, _):
        fill(store, *map(str, range(70)))
        newest = [str(number) for number in range(69, -1, -1)]
        for limit, count in {0: 0, 1: 1, 60: 60, 61: 60, 10_000: 60, None: DEFAULT_QUERY_LIMIT}.items():
            expect_equal(contents_of(store, limit=limit), newest[:count], f"query: limit {limit}, where a page is 60")
        expect_equal(
            contents_of(store, limit=1, content_contains="7"),
            ["67"],
            "query: a limit counts what fits, not what is read",
        )


def _check_pages(factory: StoreFactory) -> None:
    with opened(factory) as (store, _):
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
    with opened(factory) as (store, _):
        fill(store, "mine")
        store.append(Append("other", "theirs"))
        expect_equal(contents_of(store), ["mine"], "query: records of another namespace")
        expect_equal(store.query(Query("unknown")), [], "query: a namespace without records")
        for namespace in ("", "a/b", "a\\b", "a..b", "a b", "a\tb", "x" * 65):
            what = f"of the namespace {namespace!r}"
            expect_error(InvalidParams, f"append {what}", store.append, Append(namespace, "text"))
            expect_error(InvalidParams, f"query {what}", store.query, Query(namespace))


def _check_repeated_appends(factory: StoreFactory) -> None:
    with opened(factory) as (store, time):
        first = store.append(Append("notes", "text", idem="k"))
        time.now += 1
        expect_equal(store.append(Append("notes", "text", idem="k")), first, "append: the result of a repeated `idem`")
        expect_equal(
            store.append(Append("notes", "changed", idem="k")), first, "append: the result of a repeated `idem`"
        )
        expect_equal(contents_of(store), ["text"], "append: a repeated `idem` added or changed a record")
        store.append(Append("notes", "text", idem="K"))
        store.append(Append("notes", "text"))
        store.append(Append("other", "text", idem="k"))
        expect_equal(len(contents_of(store)), 3, "append: records after other keys, none, and the same key elsewhere")


def _check_sizes(factory: StoreFactory) -> None:
    with opened(factory, SMALL_LIMITS) as (store, _):
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
        expect_equal(contents_of(store), [largest.content], "append: a record that was refused is there")


def _check_memory_quotas(factory: StoreFactory) -> None:
    with opened(factory, SMALL_LIMITS.but(memory_records=3)) as (store, _):
        first = store.append(Append("notes", "1", idem="k"))
        fill(store, "2", "3")
        expect_error(QuotaExceeded, "append of one record too many", store.append, Append("notes", "4"))
        expect_equal(
            store.append(Append("notes", "1", idem="k")), first, "append: a repeated `idem` where the share is used up"
        )
        expect_equal(contents_of(store), ["3", "2", "1"], "append: a record beyond the quota is there")
        store.append(Append("other", "1"))
    with opened(factory, SMALL_LIMITS.but(memory_bytes=20)) as (store, _):
        store.append(Append("notes", "é" * 4, ("ab",), "1234"))  # 8 + 2 + 6
        expect_error(QuotaExceeded, "append of one byte too many", store.append, Append("notes", "12345"))
        fill(store, "1234")
        error = expect_error(QuotaExceeded, "append of one byte too many", store.append, Append("notes", "5"))
        expect_equal((error.used, error.limit), (20, 20), "append: used and limit in the quota's error")


def _check_handing_over(factory: StoreFactory) -> None:
    with opened(factory, SMALL_LIMITS.but(memory_records=3)) as (store, _):
        outcomes = Outcomes(5)
        for content in ("1", "2", "3", "4"):
            store.append_nowait(Append("notes", content), outcomes)
        store.append_nowait(Append("other", "5"), outcomes)
        results = outcomes.wait()
        kept = [outcome.id for outcome in results if isinstance(outcome, Appended)]
        expect_equal(len(kept), 4, "append_nowait: how many of five were kept, where a fourth is beyond the quota")
        expect_equal(
            [isinstance(outcome, QuotaExceeded) for outcome in results],
            [False, False, False, True, False],
            "append_nowait: the outcome of the one that is too many",
        )
        expect_equal(
            contents_of(store), ["3", "2", "1"], "append_nowait: the records, in the order in which they were given"
        )
        expect_error(
            InvalidParams, "append_nowait of too large content", store.append_nowait, Append("notes", "x" * 65), fail
        )
    with opened(factory) as (store, _):
        again = Outcomes(2)
        store.append_nowait(Append("notes", "text", idem="k"), fail)
        store.append_nowait(Append("notes", "text", idem="k"), again)
        store.append_nowait(Append("notes", "text", idem="k"), again)
        first, second = again.wait()
        expect_equal(first, second, "append_nowait: the result of a repeated `idem`")
        expect_equal(
            contents_of(store), ["text"], "append_nowait: the records after one whose `done` fails, and its repetition"
        )


def _check_searching(factory: StoreFactory) -> None:
    with opened(factory) as (store, _):
        fill(store, "tea", "Milk milk", "milk roll", "some milk with tea, and a good deal of other things", "tea")
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
    with opened(factory, ROOMY.but(search_records=2)) as (store, _):
        fill(store, "milk", "milk and tea", "milk and tea")
        found = store.search("notes", "milk")
        expect_equal(
            [record.content for record in found], ["milk and tea"] * 2, "search: where only the newest two are ranked"
        )


def _check_forgotten_records(factory: StoreFactory) -> None:
    with opened(factory, SMALL_LIMITS.but(memory_records=3, memory_bytes=30)) as (store, _):
        ids = [store.append(Append("notes", text, ("a",), "b", idem=text)).id or 0 for text in ("milk", "tea", "Milk")]
        store.append(Append("other", "milk"))
        expect_equal(store.forget("notes", up_to=ids[1]), 2, "forget: how many there were")
        expect_equal(store.forget("notes", up_to=ids[1]), 0, "forget: how many there were the second time")
        expect_equal(contents_of(store), ["Milk"], "forget: what is left")
        expect_equal(contents_of(store, content_contains="ilk"), ["Milk"], "forget: what is found of what is left")
        expect_equal(len(store.query(Query("other"))), 1, "forget: records of another namespace")
        expect_equal(store.forget("unknown"), 0, "forget: a namespace without records")
        again = [store.append(Append("notes", text, ("a",), "b", idem=text)).id or 0 for text in ("tea", "milk")]
        expect(min(again) > ids[2], f"append: ids {again} after {ids}, some of which were forgotten")
        expect_error(
            QuotaExceeded, "append of a fourth record, two being forgotten", store.append, Append("notes", "x")
        )
        expect_equal(store.forget("notes"), 3, "forget: all of them")
        expect_equal(contents_of(store), [], "forget: what is left of all")
        expect((store.append(Append("notes", "new")).id or 0) > again[1], "append: an id was used again")
        expect_error(InvalidParams, "forget in the namespace 'a/b'", store.forget, "a/b")


def _check_deadlines(factory: StoreFactory) -> None:
    with opened(factory) as (store, _):
        fill(store, *["milk"] * 10)
        for call in (
            lambda: store.query(Query("notes", "#"), timeout=0.0),
            lambda: store.search("notes", "#", timeout=0),
        ):
            expect_error(QueryTimeout, "a query without any time", call)
        expect_equal(len(store.query(Query("notes"), timeout=TIMEOUT)), 10, "query: with time enough")
    with opened(factory, ROOMY.but(query_seconds=0.0)) as (store, _):
        fill(store, "milk")
        error = expect_error(QueryTimeout, "a query where the limits leave no time", store.query, Query("notes"))
        expect_equal(error.seconds, 0.0, "query: the time in the error")


MEMORY_RULES = (
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
)
