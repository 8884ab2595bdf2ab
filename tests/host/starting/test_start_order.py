"""An extension starts after its requirements and stops before them; cycles are reported and left out."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from becket.host.starting.start_order import StartOrder, build_start_order, find_dependents

CHAIN = {"store": [], "index": ["store"], "notes": ["index", "store"], "clock": []}


def test_extensions_start_in_waves() -> None:
    order = build_start_order(CHAIN)

    assert order == StartOrder((("clock", "store"), ("index",), ("notes",)))
    assert order.stop_waves == (("notes",), ("index",), ("store", "clock"))


def test_without_extensions_nothing_starts() -> None:
    assert build_start_order({}) == StartOrder(())


@pytest.mark.parametrize(
    ("extension", "dependents"),
    [("store", ("index", "notes")), ("index", ("notes",)), ("notes", ()), ("clock", ()), ("unknown", ())],
)
def test_dependent_extensions_restart_after_their_requirement(extension: str, dependents: tuple[str, ...]) -> None:
    assert find_dependents(extension, CHAIN) == dependents


def test_an_extension_with_a_missing_requirement_is_left_out_with_all_that_need_it() -> None:
    order = build_start_order({"a": ["missing"], "b": ["a"], "c": []})

    assert order.waves == (("c",),)
    assert order.excluded == {"a", "b"}
    assert [found.extension for found in order.diagnostics] == ["a", "b"]
    assert order.diagnostics[0].problem == "needs missing, which is missing"
    assert "needs a, which cannot start" in order.diagnostics[1].problem
    assert all(found.hint for found in order.diagnostics)


@pytest.mark.parametrize("after", [{"a": ["a"]}, {"a": ["b"], "b": ["a"]}, {"a": ["c"], "b": ["a"], "c": ["b"]}])
def test_extensions_in_a_dependency_circle_are_left_out(after: dict[str, list[str]]) -> None:
    order = build_start_order({**after, "other": []})

    assert order.waves == (("other",),)
    assert order.excluded == set(after)
    assert len(order.diagnostics) == len(after)
    assert find_dependents("a", after) == ()


IDS = st.sampled_from("abcdefgh")


@given(st.dictionaries(IDS, st.lists(IDS)))
def test_each_extension_starts_after_its_requirements_or_not_at_all(after: dict[str, list[str]]) -> None:
    order = build_start_order(after)
    started: set[str] = set()
    for wave in order.waves:
        assert all(started >= set(after[one]) for one in wave)
        started |= set(wave)

    assert started | order.excluded == set(after)
    assert not started & order.excluded
    assert {found.extension for found in order.diagnostics} == order.excluded
    assert all(not started >= set(after[one]) for one in order.excluded)


def test_a_thousand_in_a_row_are_ordered() -> None:
    after = {str(number): [str(number - 1)] if number else [] for number in range(1_000)}

    assert [wave for (wave,) in build_start_order(after).waves] == [str(number) for number in range(1_000)]
    assert len(find_dependents("0", after)) == 999
