"""The index finds every record with a text, in any script, indexed or not yet."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from random import Random
from threading import Event

import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st

from becket.contract.memory import Append, Query
from becket.limits import Limits
from becket.stores.query_filter import parse_query
from becket.stores.quotas import parse_append
from becket.stores.sqlite import SqliteStore, reader, text_index, writer
from becket.stores.sqlite.reader import ReaderPool, find_key_range
from becket.stores.sqlite.rows import Share
from becket.stores.sqlite.schema import create_store_file, open_database
from becket.stores.sqlite.text_index import (
    GRAMS_OF_WORD,
    MAX_GRAMS,
    NOTHING,
    SPECIAL_FOLDS,
    TextIndex,
    build_match_expression,
    can_index,
    has_special_folds,
    match_short_words,
)
from becket.stores.sqlite.transactions import RecordDeletion, Transactions

LIMITS = Limits(memory_records=1_000_000)

pytestmark = pytest.mark.skipif(not can_index(), reason="this SQLite has no FTS5 with trigrams")


# -- expressions


def test_a_word_becomes_its_trigrams() -> None:
    assert build_match_expression(["milk"]) == '"ilk" AND "mil"'


def test_a_long_word_becomes_its_rarest_trigrams() -> None:
    assert build_match_expression(["the quiz is hers"]) == '"uiz" AND "qui" AND " qu" AND "iz "'
    assert build_match_expression(["die 7 Äpfel"]) == '"Äpf" AND "7 Ä" AND " Äp" AND "pfe"'


def test_several_words_become_one_expression() -> None:
    assert build_match_expression(["tea", "x", "milk", "tea"]) == '"ilk" AND "mil" AND "tea"'


@pytest.mark.parametrize("words", [[], [""], ["te"], ["te", "x"]])
def test_short_words_become_no_expression(words: list[str]) -> None:
    assert build_match_expression(words) is None


def test_quotes_in_a_word_are_escaped() -> None:
    assert build_match_expression(['a"b']) == '"a""b"'


def test_many_and_long_words_become_a_short_expression() -> None:
    words = ["".join(map(chr, range(start, start + 5_000))) for start in range(0x4E00, 0x4E40)]

    assert (build_match_expression(words[:1]) or "").count(" AND ") == GRAMS_OF_WORD - 1
    assert (build_match_expression(words) or "").count(" AND ") == MAX_GRAMS - 1


def test_every_letter_that_is_folded_to_ascii_is_a_special_fold() -> None:
    folded = {letter for letter in map(chr, range(0x80, 0x110000)) if any(part.isascii() for part in letter.casefold())}

    assert folded | {"\0"} == SPECIAL_FOLDS
    assert [has_special_folds(text) for text in ("plain", "café, naïve", "Straße", "ﬁx", "a\0b")] == [
        False,
        False,
        True,
        True,
        True,
    ]


def test_an_sqlite_without_trigrams_is_recognised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_index, "CREATE", "CREATE VIRTUAL TABLE t USING fts5(x, tokenize='no_such_one')")

    assert not can_index()


# -- in a file, without a thread


class Shelf:
    """A store's file with its ledger and its readers, whose index is advanced by the test."""

    def __init__(self, path: Path) -> None:
        create_store_file(path)
        self.connection = open_database(path)
        self.now = 1_000
        self.ledger = Transactions(self.connection, LIMITS, lambda: self.now, TextIndex(self.connection))
        self.ledger.prepare_index()
        self.readers = ReaderPool(path, has_index=True)

    def keep(self, namespace: str, *contents: str) -> None:
        self.ledger.begin()
        for content in contents:
            self.ledger.append(parse_append(Append(namespace, content), LIMITS))
        self.ledger.commit()

    def index(self) -> None:
        while self.ledger.index_batch():
            pass

    def query(self, namespace: str, needle: str | None = None, limit: int = 1_000, **conditions: int) -> list[str]:
        wanted = parse_query(Query(namespace, needle, limit=limit, **conditions), LIMITS)
        return [record.content for record in self.readers.query(wanted, 5.0)]

    def close(self) -> None:
        self.readers.close()
        self.connection.close()


@pytest.fixture
def shelf(folder: Path) -> Iterator[Shelf]:
    with closing(Shelf(folder / "store")) as shelf:
        yield shelf


names = (f"n{number}" for number in count())
# Letters whose folding is longer, shorter or elsewhere than they are; quotes, NULs and what UTF-8 has trouble with.
letters = st.sampled_from('abAB ßẞİıŉǰΐſKﬁﬃçÇÅéE\u0301"\0%_*\ufffe\uffff😀Σςσ\n')  # noqa: RUF001
texts = st.text(letters, max_size=12) | st.text(max_size=12)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(texts, max_size=6), st.integers(0, 6), texts, st.booleans())
@example(["Straße"], 1, "STRASSE", False)
@example(["\n"], 0, "\n", False)
@example(["é\nü"], 0, "\n", False)
@example(["xÄby", "xäbby"], 0, "Äb", False)
@example(["a\0bcd", "bcd"], 2, "\0bc", False)
@example(['a"bc'], 1, '"bc', False)
def test_a_search_finds_exactly_the_records_that_contain_the_text(
    shelf: Shelf, contents: list[str], indexed: int, needle: str, is_part: bool
) -> None:
    name = next(names)
    if is_part and contents and contents[0]:
        needle = contents[0][len(contents[0]) // 3 :]
    shelf.keep(name, *contents[:indexed])
    shelf.index()
    shelf.keep(name, *contents[indexed:])

    expected = [content for content in reversed(contents) if needle.casefold() in content.casefold()]
    assert shelf.query(name, needle) == expected
    shelf.index()
    assert shelf.query(name, needle) == expected
    assert shelf.query(name, needle, limit=2) == expected[:2]


def test_the_index_is_built_in_portions_and_no_record_is_ever_missing(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("becket.stores.sqlite.transactions.INDEX_BATCH", 3)
    for number in range(10):
        shelf.keep("notes", f"milk {number}")
        shelf.keep("other", f"milk {number} of somebody else")
    expected = [f"milk {number}" for number in reversed(range(10))]
    backlogs = [shelf.ledger.backlog]

    while shelf.ledger.index_batch():
        assert shelf.query("notes", "milk") == expected
        backlogs.append(shelf.ledger.backlog)

    assert shelf.query("notes", "milk") == expected
    assert [backlog for backlog in backlogs if backlog] == [20, 17, 14, 11, 8, 5, 2]


def test_many_small_chunks_are_merged_into_few(shelf: Shelf) -> None:
    for number in range(40):
        shelf.keep("notes", f"milk {number}")
        shelf.ledger.index_batch()
    shelf.index()

    (segments,) = shelf.connection.execute("SELECT count(DISTINCT segid) FROM memory_text_idx").fetchone()
    assert segments < 8
    assert len(shelf.query("notes", "milk")) == 40


def test_an_index_of_another_form_is_built_anew(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    shelf.keep("notes", "milk")
    shelf.index()
    monkeypatch.setattr(text_index, "INDEX_VERSION", "another")

    shelf.ledger.prepare_index()
    assert shelf.ledger.backlog == 1
    assert shelf.query("notes", "milk") == ["milk"]
    shelf.index()
    shelf.ledger.prepare_index()

    assert shelf.ledger.backlog == 0
    assert shelf.query("notes", "milk") == ["milk"]


def test_forgotten_records_leave_the_index(shelf: Shelf) -> None:
    shelf.keep("notes", "milk", "tea", "Milk")
    shelf.index()
    shelf.keep("notes", "late milk")
    shelf.ledger.begin()
    assert shelf.ledger.delete_records(RecordDeletion("notes", 2)) == 2
    shelf.ledger.commit()

    def found(gram: str) -> list[int]:
        rows = shelf.connection.execute("SELECT rowid FROM memory_text WHERE memory_text MATCH ?", (gram,)).fetchall()
        return [-key & 0xFFFF for (key,) in rows]

    assert (found("tea"), found("mil")) == ([], [3])
    shelf.index()
    assert shelf.query("notes", "milk") == ["late milk", "Milk"]
    assert shelf.ledger.backlog == 0


def test_records_are_forgotten_without_an_index_too(folder: Path) -> None:
    path = folder / "store"
    create_store_file(path)
    with closing(open_database(path)) as connection:
        ledger = Transactions(connection, LIMITS, lambda: 1, None)
        ledger.prepare_index()
        ledger.begin()
        ledger.append(parse_append(Append("notes", "milk"), LIMITS))
        assert ledger.delete_records(RecordDeletion("notes", 1)) == 1
        ledger.commit()

        assert not ledger.index_batch()
        assert ledger.backlog == 0
        assert connection.execute("SELECT count(*) FROM memory").fetchone() == (0,)


# -- times


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.integers(0, 40), max_size=30),
    st.none() | st.integers(0, 45),
    st.none() | st.integers(0, 45),
    st.integers(0, 10),
)
@example([20, 30, 10, 40], None, 10, 0)
@example([5, 1, 9], 9, None, 1)
def test_records_of_a_time_are_found_whatever_the_clock_did(
    shelf: Shelf, times: list[int], since: int | None, until: int | None, forgotten: int
) -> None:
    name = next(names)
    for number, shelf.now in enumerate(times):
        shelf.keep(name, str(number))
    shelf.connection.execute("DELETE FROM memory WHERE content < ?", (str(forgotten),))  # some holes among the keys
    kept = [number for number in range(len(times)) if str(number) >= str(forgotten)]

    bounds = {name: time for name, time in {"since_ms": since, "until_ms": until}.items() if time is not None}
    expected = [
        str(number)
        for number in reversed(kept)
        if (since is None or times[number] >= since) and (until is None or times[number] <= until)
    ]
    assert shelf.query(name, None, **bounds) == expected


def test_records_of_a_time_are_found_without_looking_at_all_others(shelf: Shelf) -> None:
    for shelf.now in range(1_000, 3_000):
        shelf.ledger.begin()
        shelf.ledger.append(parse_append(Append("notes", str(shelf.now)), LIMITS))
        shelf.ledger.commit()

    def steps_of(**bounds: int) -> int:
        steps: list[None] = []
        wanted = parse_query(Query("notes", limit=1, **bounds), LIMITS)
        shelf.connection.set_progress_handler(lambda: steps.append(None), 1)
        low, high = find_key_range(shelf.connection, Share(1, "notes", last_id=2_000, peak_ms=2_999), wanted)
        shelf.connection.execute("SELECT count(*) FROM memory WHERE key BETWEEN ? AND ?", (low, high)).fetchone()
        shelf.connection.set_progress_handler(None, 0)
        return len(steps)

    assert steps_of(until_ms=1_001) < 2_000
    assert steps_of(since_ms=2_998) < 2_000
    assert steps_of(since_ms=5_000) < 100
    assert steps_of() > 4_000


@pytest.mark.parametrize("statement", [reader.SCAN_SQL, reader.INDEX_SQL])
def test_records_come_in_order_without_being_sorted(shelf: Shelf, statement: str) -> None:
    conditions, patterns = reader.build_like_filter(["milk"])
    parameters = {"match": '"mil"', "low": 1, "high": 2, "since": 0, "until": 9, "tag": None, **patterns}
    plan = shelf.connection.execute(f"EXPLAIN QUERY PLAN {statement.format(conditions)}", parameters).fetchall()

    assert [step for *_, step in plan if "TEMP" in step] == []


# -- words shorter than a trigram


LETTERS = "abc\0\uffff éß"


@pytest.mark.parametrize("seed", range(3))
def test_short_words_find_with_the_index_what_they_find_without(folder: Path, seed: int) -> None:
    chance = Random(seed)
    texts = ["".join(chance.choices(LETTERS, k=chance.randint(0, 6))) for _ in range(300)]
    with (
        SqliteStore(folder / "with", ballast=0) as indexed,
        SqliteStore(folder / "without", ballast=0, index=False) as plain,
    ):
        for text in texts:
            for store in (indexed, plain):
                store.append(Append("notes", text))
        indexed.maintain()
        for word in [first + second for first in LETTERS for second in ["", *LETTERS]]:
            query = Query("notes", word, limit=1_000)
            assert [one.id for one in indexed.query(query)] == [one.id for one in plain.query(query)], repr(word)
            assert len(indexed.search("notes", f"{word} b")) == len(plain.search("notes", f"{word} b")), repr(word)


def test_a_word_with_too_many_trigrams_is_looked_for_without_them() -> None:
    grams = [f"a{chr(97 + first)}{chr(97 + second)}" for first in range(20) for second in range(20)]

    def find(low: str, end: str) -> str | None:
        return next((gram for gram in grams if low <= gram < end), None)

    assert match_short_words(["a"], find) is None
    assert match_short_words(["ab", "a"], find) == "(" + " OR ".join(f'"{gram}"' for gram in grams[20:40]) + ")"
    assert match_short_words(["ab", "b"], find) == NOTHING


def test_an_index_stays_within_its_lag_while_records_come_without_a_pause(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "MAX_INDEX_BACKLOG", 1_000)
    with SqliteStore(folder / "store", ballast=0) as store:
        behind: list[int] = []
        is_done = Event()
        for number in range(6_000):
            store.append_nowait(Append("notes", f"note {number}"), lambda outcome: behind.append(store.index_backlog))
        store.append_nowait(Append("notes", "last"), lambda outcome: is_done.set())
        assert is_done.wait(60)

        assert 500 < max(behind) <= 1_000
