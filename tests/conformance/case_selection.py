"""The cases that `make test` runs where all of them would take long: those that share a process, and of the others the
first of each family; all of them in a dialect whose cases share none. `BECKET_ALL_MUTANTS=1` chooses all cases, as
`.ci/run` does."""

from __future__ import annotations

import os

from becket.conformance import ConformanceCase, Role, load_suite, select_cases

__all__ = ["IS_COMPLETE", "choose_cases"]

IS_COMPLETE = bool(os.environ.get("BECKET_ALL_MUTANTS"))


def choose_cases(dialect: str, role: Role) -> list[ConformanceCase]:
    """Returns cases of a dialect."""
    cases = select_cases(load_suite(dialect).cases, role)
    first = {case.family: case for case in reversed(cases) if case.is_alone}
    if IS_COMPLETE or all(case.is_alone for case in cases):
        return cases
    return [case for case in cases if not case.is_alone or case is first[case.family]]
