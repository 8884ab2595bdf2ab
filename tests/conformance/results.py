"""Runs programs against the conformance cases and prints the table of docs/conformance.md.

`python -m tests.conformance.results` runs those whose toolchain is there; names as arguments choose some of them."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from becket.conformance import HostLink, ProcessLink, Role, load_suite, run_cases, select_cases
from becket.conformance.manifests import MANIFEST_WRITERS
from becket.conformance.report import count_verdicts

ROOT = Path(__file__).parents[2]
EXTENSIONS = ROOT / "examples" / "extensions"
PROGRAMS: dict[str, tuple[str, Role, list[str]]] = {
    "examples/conformance/extension.py": (
        "native",
        Role.EXTENSION,
        [sys.executable, "examples/conformance/extension.py"],
    ),
    "examples/conformance/host.py": ("native", Role.HOST, [sys.executable, "examples/conformance/host.py", "{child}"]),
    **{
        f"examples/extensions/{name}": (
            "native",
            Role.EXTENSION,
            [sys.executable, str(EXTENSIONS / name / f"{name}.py")],
        )
        for name in ("notes", "eliza", "census", "guard")
    },
    "examples/extensions/dice": ("native", Role.EXTENSION, ["node", str(EXTENSIONS / "dice" / "dice.js")]),
}


def rows(chosen: list[str]) -> Iterator[str]:
    for name, (dialect, role, command) in PROGRAMS.items():
        if (chosen and name not in chosen) or shutil.which(command[0]) is None:
            continue
        suite = load_suite(dialect)

        def open_link(command: list[str] = command, role: Role = role) -> ProcessLink | HostLink:
            if role is Role.HOST:
                return HostLink(command, MANIFEST_WRITERS[dialect])  # noqa: B023
            return ProcessLink(command)

        counts = count_verdicts(run_cases(suite, select_cases(suite.cases, role), open_link, timeout=20.0))
        yield f"| `{name}` | {dialect} | {role} | {' | '.join(map(str, counts.values()))} |"


if __name__ == "__main__":
    print("| program | dialect | role | pass | tolerated | fail | not offered |\n|---|---|---|---|---|---|---|")
    for row in rows(sys.argv[1:]):
        print(row, flush=True)
