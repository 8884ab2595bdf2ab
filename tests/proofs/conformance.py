"""Proves that each conformance case is failed by its mutant, and reports which other cases of the family it fails."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial

from tests.conformance.mutants.mutants import load_mutants, run_mutant
from tests.proofs.proof import Proof

from becket.conformance import CaseVerdict

__all__ = ["prove_cases_find_their_mutants"]


def prove_cases_find_their_mutants(at_once: int) -> Proof:
    """Runs every mutant against all cases of its family."""
    mutants = load_mutants()
    with ThreadPoolExecutor(at_once) as pool:
        runs = list(pool.map(partial(run_mutant, is_family=True), mutants))
    lines = ["| dialect | role | mutants | killed | unnamed cases that they fail |", "|---|---|---|---|---|"]
    is_killed = True
    for dialect, role in sorted({(mutant.dialect, mutant.case.role) for mutant in mutants}):
        own = [
            pair for pair in zip(mutants, runs, strict=True) if (pair[0].dialect, pair[0].case.role) == (dialect, role)
        ]
        killed, unnamed = 0, set[str]()
        for mutant, results in own:
            failed = {result.case.id for result in results if result.verdict is CaseVerdict.FAIL}
            killed += mutant.case.id in failed
            unnamed |= {f"{mutant.case.id} fails {id}" for id in failed if not mutant.may_fail(id)}
        is_killed &= killed == len(own)
        lines.append(f"| {dialect} | {role} | {len(own)} | {killed} | {', '.join(sorted(unnamed)) or 'none'} |")
    return Proof(lines, is_killed)
