"""Runs the long proofs and writes their tables, with the date, into docs/proof.md: `python -m tests.proofs [NAME ...]`.

Each proof owns a section of the page; those that are not named stay as they were."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from tests.proofs.orphans import prove_no_orphans

PAGE = Path(__file__).parents[2] / "docs" / "proof.md"
HEAD = """# Proof

What takes too long for the tests, as it was measured last. `make prove` runs all of it; `make prove ARGS=orphans` runs
one section.
"""
PROOFS: dict[str, tuple[str, Callable[[argparse.Namespace], list[str]]]] = {
    "orphans": ("No orphans", lambda options: prove_no_orphans(options.kills, options.at_once)),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.proofs", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *PROOFS], metavar="NAME", help=f"of: {', '.join(PROOFS)}")
    parser.add_argument("--kills", type=int, default=200, help="hosts that are ended")
    parser.add_argument("--at-once", type=int, default=2, help="hosts that run at the same time")
    options = parser.parse_args()
    sections = read_sections(PAGE.read_text(encoding="utf-8") if PAGE.exists() else "")
    for name in options.names or PROOFS:
        title, prove = PROOFS[name]
        lines = prove(options)
        sections[title] = "\n".join([f"Measured on {datetime.now(UTC):%Y-%m-%d}.", "", *lines])
        PAGE.write_text(render(sections), encoding="utf-8")
        print(f"## {title}\n\n{sections[title]}\n", flush=True)


def read_sections(text: str) -> dict[str, str]:
    """Returns the sections of a page by their titles."""
    parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)
    return {title: body.strip() for title, body in zip(parts[1::2], parts[2::2], strict=True)}


def render(sections: dict[str, str]) -> str:
    return HEAD + "".join(f"\n## {title}\n\n{body}\n" for title, body in sections.items())


if __name__ == "__main__":
    main()
