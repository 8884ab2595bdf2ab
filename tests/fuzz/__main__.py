"""The command line of the fuzzer."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from traceback import print_exception

from tests.fuzz.mutation import Failure, Report, fuzz
from tests.fuzz.registry import TARGETS
from tests.fuzz.target import Target


def main(arguments: Sequence[str] | None = None, targets: Sequence[Target] = TARGETS) -> int:
    """Runs the targets; returns 1 if one of them failed, after printing the input."""
    names = [target.name for target in targets]
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Feeds mutated inputs to the pure parts.")
    parser.add_argument("--inputs", type=int, default=100_000, help="how many in all, shared among the targets")
    parser.add_argument("--seed", type=int, default=1, help="the same seed gives the same inputs")
    parser.add_argument("--target", action="append", choices=names, metavar="NAME", help=f"one of {', '.join(names)}")
    options = parser.parse_args(arguments)
    chosen = [target for target in targets if target.name in (options.target or names)]
    share = -(-options.inputs // len(chosen))
    reports: list[Report] = []
    for target in chosen:
        try:
            reports.append(fuzz(target, share, options.seed))
        except Failure as failure:
            print_exception(failure.__cause__)
            print(f"{failure.target} failed with seed {options.seed} on this input:\n{failure.data!r}", file=sys.stderr)
            return 1
        print(reports[-1], flush=True)
    inputs, seconds = sum(report.inputs for report in reports), sum(report.seconds for report in reports)
    print(Report("all", inputs, seconds, sum(report.outcomes for report in reports)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
