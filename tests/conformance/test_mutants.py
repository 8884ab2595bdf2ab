"""Each conformance case finds something: its mutant fails it, and a correct program passes all cases."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.conformance.mutants.mutants import Mutant, load_mutants, load_tables, open_link, run_mutant

from becket.conformance import CaseVerdict, Role, list_suites, load_suite, run_cases, select_cases

FOLDER = Path(__file__).parent / "mutants"
AT_ONCE = 8  # mutants wait most of their time
TRIES = 5  # on a busy machine a mutant that needs bytes one by one may receive them together
FAMILIES = sorted({(one.dialect, one.case.role, one.case.family) for one in load_mutants()})
PROGRAMS = sorted({(one.dialect, one.case.role) for one in load_mutants()})


@pytest.mark.parametrize("dialect", list_suites())
def test_every_case_has_a_mutant_and_every_mutant_a_case(dialect: str) -> None:
    assert {case.id for case in load_suite(dialect).cases} == set(load_tables(dialect))


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.parametrize(("dialect", "role"), PROGRAMS)
def test_the_program_without_a_defect_passes_every_case(dialect: str, role: Role) -> None:
    suite = load_suite(dialect)

    results = run_cases(suite, select_cases(suite.cases, role), lambda: open_link(dialect, role, {}), timeout=20.0)

    assert [(one.case.id, one.verdict, one.reason) for one in results if one.verdict is not CaseVerdict.PASS] == []


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.parametrize(("dialect", "role", "family"), FAMILIES)
def test_each_mutant_fails_its_case(dialect: str, role: Role, family: str) -> None:
    mutants = [
        one for one in load_mutants() if (one.dialect, one.case.role, one.case.family) == (dialect, role, family)
    ]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        survivors = [id for id in pool.map(find_survivor, mutants) if id]

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
