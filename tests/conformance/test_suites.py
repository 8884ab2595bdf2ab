"""The conformance cases as data: complete, numbered once, and with clauses that exist."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from becket.conformance import Role, list_suites, load_suite, select_cases

DOCS = Path(__file__).parents[2] / "docs"
CASES = [case for dialect in list_suites() for case in load_suite(dialect).cases]


@cache
def anchors(page: str) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", (DOCS / page).read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("dialect", list_suites())
def test_a_case_is_complete_and_its_clause_exists(dialect: str) -> None:
    for case in load_suite(dialect).cases:
        assert re.fullmatch(r"[A-Z]+-[A-Z]{2}-\d{3}", case.id)
        assert case.title[0].isupper() or case.title[0] == "`", case.id
        assert not case.title.endswith("."), case.id
        assert case.steps, case.id
        page, _, anchor = case.clause.partition("#")
        if page.endswith(".md"):  # otherwise it is a clause of another specification
            assert anchor in anchors(page), case.id


def test_no_id_is_used_twice_in_all_dialects() -> None:
    ids = [case.id for case in CASES]

    assert len(ids) == len(set(ids))


def test_native_comes_first_and_has_cases_for_extensions() -> None:
    assert list_suites()[0] == "native"
    assert len(select_cases(load_suite("native").cases, Role.EXTENSION)) >= 150


def test_cases_are_selected_by_id_prefix_and_family() -> None:
    cases = load_suite("native").cases

    chosen = select_cases(cases, Role.EXTENSION, ["N-FR-00*"], ["shutdown"])

    assert {case.family for case in chosen} == {"framing", "shutdown"}
    assert len([case for case in chosen if case.family == "framing"]) == 9
    for ids, families in ((["N-XX-1"], []), ([], ["weather"])):
        with pytest.raises(LookupError):
            select_cases(cases, Role.EXTENSION, ids, families)


def test_an_unknown_dialect_is_refused_with_the_known_ones() -> None:
    with pytest.raises(LookupError, match="native"):
        load_suite("klingon")


@pytest.mark.parametrize("dialect", list_suites())
def test_a_case_that_ends_its_host_has_a_process_of_its_own(dialect: str) -> None:
    cases = select_cases(load_suite(dialect).cases, Role.HOST)

    assert [case.id for case in cases if '"stop"' in case.script and not case.is_alone] == []
