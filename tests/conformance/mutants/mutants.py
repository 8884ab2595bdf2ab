"""Loads the mutants of each dialect and runs one against its case, or against all cases of its family."""

from __future__ import annotations

import json
import sys
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from becket.conformance import (
    CaseResult,
    ConformanceCase,
    HostLink,
    ProcessLink,
    Role,
    list_suites,
    load_suite,
    run_cases,
    select_cases,
)
from becket.conformance.runner import Offers, find_offers
from becket.conformance.script import ExpectExit, ExpectGone

FOLDER = Path(__file__).parent
SHORT = 1.5  # seconds for a message that a mutant does not send
SHORT_END = 4.0  # seconds for an exit that does not happen
LONG = 20.0  # seconds for a message that it sends


class Mutant(Struct, frozen=True):
    """The defect that fails one case."""

    dialect: str
    case: ConformanceCase
    table: dict[str, Any]

    def may_fail(self, id: str) -> bool:
        also = self.table.get("also", ())
        return id == self.case.id or id in also or "*" in also


def program(dialect: str, role: Role, table: dict[str, Any]) -> list[str]:
    """Returns the command of the program with these defects; without any it is correct."""
    name = f"{dialect}_{'child' if role is Role.EXTENSION else 'host'}.py"
    # Without site-packages it starts in 30 ms.
    command = [sys.executable, "-S", "-E", str(FOLDER / name), json.dumps(table)]
    return command if role is Role.EXTENSION else [*command, "{child}"]


def open_link(dialect: str, role: Role, table: dict[str, Any]) -> ProcessLink | HostLink:
    """Starts the program with these defects."""
    command = program(dialect, role, table)
    return ProcessLink(command) if role is Role.EXTENSION else HostLink(command, load_suite(dialect).setups[role].files)


@cache
def load_tables(dialect: str) -> dict[str, Any]:
    file = FOLDER / f"{dialect}.toml"
    return tomllib.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


def load_mutants() -> list[Mutant]:
    """Returns the mutants of all dialects, in the order of the cases."""
    return [
        Mutant(dialect, case, load_tables(dialect)[case.id])
        for dialect in list_suites()
        for case in load_suite(dialect).cases
        if case.id in load_tables(dialect)
    ]


@cache
def correct_offers(dialect: str, role: Role) -> Offers:
    """Returns what the correct program offers: a mutant offers the same, and must fail rather than offer less."""
    suite = load_suite(dialect)
    wanted = {need for case in suite.cases for need in case.needs}
    return find_offers(suite, suite.setups[role], lambda: open_link(dialect, role, {}), wanted, timeout=LONG)


def shorten(case: ConformanceCase) -> ConformanceCase:
    """Returns the case with short waits for the ends of processes."""
    steps = (
        replace(step, seconds=min(step.seconds, SHORT_END)) if isinstance(step, ExpectExit | ExpectGone) else step
        for step in case.steps
    )
    return replace(case, steps=tuple(steps))


def run_mutant(mutant: Mutant, *, is_family: bool = False) -> list[CaseResult]:
    """Runs a mutant against its case, with a short timeout; `is_family` adds the other cases of the family."""
    suite, dialect, role = load_suite(mutant.dialect), mutant.dialect, mutant.case.role
    others = select_cases(suite.cases, role, families=[mutant.case.family]) if is_family else []
    results: list[CaseResult] = []
    rest = [case for case in others if case.id != mutant.case.id]
    for cases, timeout in (([shorten(mutant.case)], SHORT), (rest, LONG)):
        results += run_cases(
            suite,
            cases,
            lambda: open_link(dialect, role, mutant.table),
            timeout=timeout,
            offers=correct_offers(dialect, role),
        )
    return results
