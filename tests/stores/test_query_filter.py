"""The conditions of a query, and the ranking of a search."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from becket.contract.memory import Query
from becket.errors import InvalidParams
from becket.limits import Limits
from becket.stores.query_filter import RecordFilter, parse_query, parse_search, rank_texts

LIMITS = Limits(memory_page=60, search_words=3, search_records=7)


def test_an_empty_query_returns_the_newest_fifty() -> None:
    assert parse_query(Query("notes"), LIMITS) == RecordFilter("notes", (), None, 0, None, 50)


def test_a_query_folds_its_text_and_is_limited_to_a_page() -> None:
    query = Query("notes", "STRASSE ", "foo", 3, 4, 1_000)

    assert parse_query(query, LIMITS) == RecordFilter("notes", ("strasse ",), "foo", 3, 4, 60)


def test_an_empty_text_is_not_a_condition() -> None:
    assert parse_query(Query("notes", ""), LIMITS).words == ()


def test_a_search_looks_up_each_word_once() -> None:
    assert parse_search("notes", " Milk\nmilk  TEA ", LIMITS) == RecordFilter(
        "notes", ("milk", "tea"), None, 0, None, 7
    )


def test_a_search_for_too_many_words_is_refused() -> None:
    parse_search("notes", "a b c", LIMITS)

    with pytest.raises(InvalidParams) as caught:
        parse_search("notes", "a b c d", LIMITS)
    assert caught.value.problems == (("/text", "too many words: 4 (max 3)"),)


@pytest.mark.parametrize("namespace", ["", "a/b", "a b"])
def test_a_query_needs_a_namespace(namespace: str) -> None:
    with pytest.raises(InvalidParams):
        parse_query(Query(namespace), LIMITS)
    with pytest.raises(InvalidParams):
        parse_search(namespace, "milk", LIMITS)


@pytest.mark.parametrize(
    ("changed", "fits"),
    [
        ({}, True),
        ({"time_ms": 9}, False),
        ({"time_ms": 21}, False),
        ({"folded": "tea"}, False),
        ({"folded": "milk"}, False),
        ({"tags": ()}, False),
        ({"tags": ("a", "food")}, True),
    ],
)
def test_all_conditions_must_hold(changed: dict[str, object], fits: bool) -> None:
    wanted = RecordFilter("notes", ("milk", "tea"), "foo", 10, 20, 1)
    record = {"time_ms": 10, "folded": "milk and tea", "tags": ("foo",)} | changed

    assert wanted.matches(**record) is fits  # type: ignore[arg-type]


# -- the best first


def best(*texts: str, words: str = "milk") -> list[str]:
    return [texts[place] for place in rank_texts(texts, words.split())]


def test_a_text_with_more_occurrences_of_a_word_is_ranked_first() -> None:
    assert best("a milk and a tea", "a milk, more milk") == ["a milk, more milk", "a milk and a tea"]


def test_a_text_with_less_other_content_is_ranked_first() -> None:
    assert best("milk, and much else besides", "milk") == ["milk", "milk, and much else besides"]


def test_all_words_count() -> None:
    assert best("milk milk milk tea xx", "milk tea milk tea xx", words="milk tea")[0] == "milk tea milk tea xx"


def test_equally_good_ones_stay_in_their_order() -> None:
    assert rank_texts(["milk a", "milk b", "milk c"], ["milk"]) == [0, 1, 2]


def test_nothing_and_empty_texts_can_be_ranked() -> None:
    assert rank_texts([], ["milk"]) == []
    assert rank_texts(["", ""], []) == [0, 1]


@given(
    st.lists(st.text("milk tea", max_size=20), max_size=8), st.lists(st.sampled_from(["milk", "t", "ea"]), max_size=3)
)
def test_every_text_is_ranked_once(texts: list[str], words: list[str]) -> None:
    assert sorted(rank_texts(texts, words)) == [*range(len(texts))]
