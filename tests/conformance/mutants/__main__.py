"""Runs mutants against the cases of their family: `python -m tests.conformance.mutants [--family] [ID...]`."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from tests.conformance.mutants.mutants import load_mutants, run_mutant

from becket.conformance import CaseVerdict


def main() -> None:
    words = [word for word in sys.argv[1:] if not word.startswith("-")]
    mutants = [one for one in load_mutants() if not words or any(one.case.id.startswith(word) for word in words)]
    run = partial(run_mutant, is_family="--family" in sys.argv)
    with ThreadPoolExecutor(8) as pool:
        outcomes = pool.map(run, mutants)
    for mutant, results in zip(mutants, outcomes, strict=True):
        failed = [result.case.id for result in results if result.verdict is CaseVerdict.FAIL]
        is_killed = mutant.case.id in failed
        others = [id for id in failed if id != mutant.case.id and not mutant.may_fail(id)]
        print(f"{mutant.case.id} {'killed' if is_killed else 'SURVIVES'} {' '.join(others)}", flush=True)


if __name__ == "__main__":
    main()
