"""`python -m benchmarks`: runs becket and its peers from the project's root and writes the report."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from benchmarks.clients import measure_clients
from benchmarks.discovery import measure_discovery
from benchmarks.faults import measure_faults
from benchmarks.growth import measure_growth
from benchmarks.imports import measure_imports
from benchmarks.install import install
from benchmarks.languages import measure_languages
from benchmarks.paths import RESULTS, ROOT, take_snapshot
from benchmarks.picture import draw
from benchmarks.report import Report, load_report, render, save_report
from benchmarks.roster import ENTRANTS_BY_NAME
from benchmarks.run import Plan, measure, say
from benchmarks.store import measure_store
from benchmarks.workloads import WORKLOADS

SECTIONS = ("speed", "growth", "discovery", "faults", "store", "clients", "languages", "imports")
PICTURE = "benchmark.svg"
LATEST = RESULTS / "latest.json"


def main() -> int:
    options = parse_arguments()
    if options.install:
        install(options.python)
        return 0
    if options.load:
        report = load_report(options.load)
    else:
        rounds = options.rounds or (3 if options.quick else 5)
        plan = Plan(
            entrants=options.only or tuple(ENTRANTS_BY_NAME),
            workloads=options.workloads or tuple(WORKLOADS),
            rounds=rounds,
            retries=options.retries,
            nice=options.nice,
            quick=options.quick,
        )
        report = Report(plan)
        take_snapshot()
        say(f"Python {report.machine['Python']}")
        is_part = options.only is not None or options.workloads is not None
        sections = options.sections or (("speed",) if is_part else SECTIONS)
        if "speed" in sections:
            measure(plan, report.results, after_round=lambda: save_report(report, LATEST))
        if "growth" in sections:
            report.growth = measure_growth(plan)
        if "discovery" in sections:
            report.discovery = measure_discovery(plan)
        if "faults" in sections:
            report.faults = measure_faults()
        if "store" in sections:
            report.store = measure_store(plan, options.records)
        if "clients" in sections:
            report.clients = measure_clients(plan)
        if "languages" in sections:
            report.languages = measure_languages(plan)
        if "imports" in sections:
            report.imports = measure_imports(plan)
        save_report(report, LATEST)
        say(f"numbers: {LATEST.relative_to(ROOT)}")
    print(render(report))
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        (options.out.parent / PICTURE).write_text(draw(report.results), encoding="utf-8")
        options.out.write_text(render(report, picture=PICTURE), encoding="utf-8")
    return 0


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    add = parser.add_argument
    add(
        "--install", action="store_true", help="installs what the entrants need into .venv-bench, and does nothing else"
    )
    add("--python", metavar="PATH", help="with --install: the Python to use; an optimised one that is on the PATH")
    add("--only", type=names_of(ENTRANTS_BY_NAME), metavar="becket,floor", help="these entrants; all")
    add("--workloads", type=names_of(WORKLOADS), metavar="W1,W2", help="these workloads; all")
    sections = f"of {', '.join(SECTIONS)}; all, or speed with --only or --workloads"
    add("--sections", type=names_of(SECTIONS), metavar="speed,growth", help=sections)
    add("--rounds", type=int, help="5, or 3 if quick")
    add("--retries", type=int, default=1, help="of a run that others disturbed; 1")
    add("--quick", action="store_true", help="fewer operations and children")
    add("--nice", type=int, default=0, help="priority of W1 to W6: -20 (as root) on a machine that others use too")
    add(
        "--records",
        type=int,
        metavar="N",
        help="in the store, for what is measured beside many; 100000, or 20000 if quick",
    )
    add("--out", type=Path, metavar="FILE", help=f"writes the report there as Markdown, and {PICTURE} beside it")
    add("--load", type=Path, metavar="JSON", help="renders the numbers of an earlier run instead of running")
    return parser.parse_args()


def names_of(known: Iterable[str]) -> Callable[[str], tuple[str, ...]]:
    """Returns a parser of comma-separated names."""

    def names(text: str) -> tuple[str, ...]:
        chosen = tuple(text.split(","))
        for name in chosen:
            if name not in known:
                raise argparse.ArgumentTypeError(f"no `{name}` here, but: {', '.join(known)}")
        return chosen

    return names


if __name__ == "__main__":
    sys.exit(main())
