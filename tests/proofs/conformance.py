"""Proves that each conformance case is failed by its mutant, and that a mutant fails only the cases that it names."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial

from tests.conformance.mutants.mutants import Mutant, load_mutants, run_mutant
from tests.proofs.proof import Proof

from becket.conformance import CaseResult, CaseVerdict, Role

__all__ = ["ROLES", "prove_cases_find_their_mutants"]

ROLES = [str(role) for role in Role]
MIN_AT_ONCE = 8  # mutants wait most of their time
Runs = list[tuple[Mutant, list[CaseResult]]]


def prove_cases_find_their_mutants(roles: Collection[str], at_once: int, earlier: str) -> Proof:
    """Runs every mutant of these roles against all cases of its family; other rows stay as they were measured."""
    mutants = [mutant for mutant in load_mutants() if mutant.case.role in roles]
    with ThreadPoolExecutor(max(at_once, MIN_AT_ONCE)) as pool:
        runs: Runs = list(zip(mutants, pool.map(partial(run_mutant, is_family=True), mutants), strict=True))
    rows = {row_key(line): line for line in earlier.splitlines() if line.startswith("| `")}
    holds = True
    for dialect, role in sorted({(mutant.dialect, mutant.case.role) for mutant in mutants}):
        own = [pair for pair in runs if (pair[0].dialect, pair[0].case.role) == (dialect, role)]
        killed = sum(mutant.case.id in failures(results) for mutant, results in own)
        unnamed = ", ".join(list_unnamed(own))
        holds &= killed == len(own) and not unnamed
        cells = [f"`{dialect}`", role, str(len(own)), str(killed), unnamed or "none", f"{datetime.now(UTC):%Y-%m-%d}"]
        row = f"| {' | '.join(cells)} |"
        rows[row_key(row)] = row
    lines = [
        "Each conformance case has a mutant, a program with one defect, which must fail it. All mutants are run",
        "against all cases of their family; the cases that a mutant fails too are named beside it.",
        "",
        "| dialect | role | mutants | killed | unnamed cases that they fail | measured |",
        "|---|---|--:|--:|---|---|",
        *(rows[key] for key in sorted(rows)),
    ]
    return Proof(lines, holds)


def row_key(row: str) -> tuple[str, str]:
    _, dialect, role, *_ = (cell.strip() for cell in row.split("|"))
    return role, dialect


def failures(results: list[CaseResult]) -> set[str]:
    return {result.case.id for result in results if result.verdict is CaseVerdict.FAIL}


def list_unnamed(runs: Runs) -> Iterator[str]:
    for mutant, results in runs:
        for id in sorted(failures(results)):
            if not mutant.may_fail(id):
                yield f"{mutant.case.id} fails {id}"
