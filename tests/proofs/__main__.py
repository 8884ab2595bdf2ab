"""Runs the long proofs and writes their tables, with the date, into docs/proof.md: `python -m tests.proofs [NAME ...]`.

Each proof owns a section of the page; those that are not named stay as they were. One that does not hold makes the
program end with 1, after the page is written."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from tests.proofs.conformance import ROLES, prove_cases_find_their_mutants
from tests.proofs.generators import prove_generators_read_the_bundle
from tests.proofs.load import prove_tests_hold_under_load
from tests.proofs.mutation import AREAS, prove_mutants_are_killed
from tests.proofs.orphans import prove_no_orphans
from tests.proofs.proof import Proof

PAGE = Path(__file__).parents[2] / "docs" / "proof.md"
HEAD = """# Proof

What takes too long for the tests, as it was measured last. `make prove` runs all of it; `make prove ARGS=orphans` runs
one section, and `make prove ARGS="mutation --areas framing"` a part of one.
"""
Prove = Callable[[argparse.Namespace, str], Proof]
"""Takes the options and the section as it was measured last."""

PROOFS: dict[str, tuple[str, Prove]] = {
    "conformance": (
        "Conformance",
        lambda options, earlier: prove_cases_find_their_mutants(options.roles, options.at_once, earlier),
    ),
    "generators": ("Code generators", lambda options, earlier: prove_generators_read_the_bundle()),
    "load": ("Tests under load", lambda options, earlier: prove_tests_hold_under_load(options.rounds, earlier)),
    "orphans": ("No orphans", lambda options, earlier: prove_no_orphans(options.kills, options.at_once)),
    "mutation": (
        "Mutation",
        lambda options, earlier: prove_mutants_are_killed(options.areas, options.at_once, earlier),
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.proofs", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *PROOFS], metavar="NAME", help=f"of: {', '.join(PROOFS)}")
    parser.add_argument("--kills", type=int, default=200, help="hosts that are ended")
    parser.add_argument("--rounds", type=int, default=20, help="of the tests under load")
    parser.add_argument("--roles", nargs="*", choices=ROLES, default=ROLES, help="whose mutants are run")
    parser.add_argument("--areas", nargs="*", choices=AREAS, default=list(AREAS), help="that are mutated")
    parser.add_argument("--at-once", type=int, default=2, help="hosts, or tests of a mutant, that run at the same time")
    options = parser.parse_args()
    sections = read_sections(PAGE.read_text(encoding="utf-8") if PAGE.exists() else "")
    failed: list[str] = []
    for name in options.names or PROOFS:
        title, prove = PROOFS[name]
        proof = prove(options, sections.get(title, ""))
        sections[title] = "\n".join([f"Measured on {datetime.now(UTC):%Y-%m-%d}.", "", *proof.lines])
        PAGE.write_text(render(sections), encoding="utf-8")
        print(f"## {title}\n\n{sections[title]}\n", flush=True)
        failed += [] if proof.holds else [title]
    if failed:
        sys.exit(f"does not hold: {', '.join(failed)}")


def read_sections(text: str) -> dict[str, str]:
    """Returns the sections of a page by their titles."""
    parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)
    return {title: body.strip() for title, body in zip(parts[1::2], parts[2::2], strict=True)}


def render(sections: dict[str, str]) -> str:
    return HEAD + "".join(f"\n## {title}\n\n{body}\n" for title, body in sections.items())


if __name__ == "__main__":
    main()
