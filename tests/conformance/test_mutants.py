"""Conformance cases find defects: the mutant of a case fails it, and the program without a defect passes it.

One case of each family runs here; `BECKET_ALL_MUTANTS=1` runs all of them, as `.ci/run` and `make prove` do."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.conformance.mutants.mutants import Mutant, load_mutants, load_tables, open_link, run_mutant

from becket.conformance import CaseVerdict, Role, list_suites, load_suite, run_cases

FOLDER = Path(__file__).parent / "mutants"
AT_ONCE = 8  # mutants wait most of their time
TRIES = 5  # on a busy machine a mutant that needs bytes one by one may receive them together
ALL = load_mutants()
FIRST = {(one.dialect, one.case.role, one.case.family): one for one in reversed(ALL)}
CHOSEN = ALL if os.environ.get("BECKET_ALL_MUTANTS") else [one for one in ALL if one in FIRST.values()]
PROGRAMS = sorted({(one.dialect, one.case.role) for one in ALL})


def chosen_mutants(dialect: str, role: Role) -> list[Mutant]:
    return [one for one in CHOSEN if (one.dialect, one.case.role) == (dialect, role)]


@pytest.mark.parametrize("dialect", list_suites())
def test_every_case_has_a_mutant_and_every_mutant_a_case(dialect: str) -> None:
    assert {case.id for case in load_suite(dialect).cases} == set(load_tables(dialect))


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.parametrize(("dialect", "role"), PROGRAMS)
def test_the_program_without_a_defect_passes_the_cases(dialect: str, role: Role) -> None:
    cases = [one.case for one in chosen_mutants(dialect, role)]

    results = run_cases(load_suite(dialect), cases, lambda: open_link(dialect, role, {}), timeout=20.0, workers=2)

    assert [(one.case.id, one.verdict, one.reason) for one in results if one.verdict is not CaseVerdict.PASS] == []


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.parametrize(("dialect", "role"), PROGRAMS)
def test_each_mutant_fails_its_case(dialect: str, role: Role) -> None:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        survivors = [id for id in pool.map(find_survivor, chosen_mutants(dialect, role)) if id]

    assert survivors == []


def find_survivor(mutant: Mutant) -> str:
    """Returns the id and the verdict of a mutant that its case does not find."""
    verdict = CaseVerdict.PASS
    for _ in range(TRIES):
        (result,) = run_mutant(mutant)
        verdict = result.verdict
        if verdict is CaseVerdict.FAIL:
            return ""
    return f"{mutant.case.id}: {verdict}"
