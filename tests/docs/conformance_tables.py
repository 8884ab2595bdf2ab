"""The table of the page about conformance: how many cases each family of each dialect has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from becket.conformance import Role, list_suites, load_suite

__all__ = ["PARTS", "render_conformance"]


def render_conformance() -> str:
    lines = ["| dialect | cases for extensions | cases for hosts | families |", "|---|---|---|---|"]
    for dialect in list_suites():
        cases = load_suite(dialect).cases
        counts = Counter(case.role for case in cases)
        families = ", ".join(dict.fromkeys(case.family for case in cases))
        lines.append(f"| `{dialect}` | {counts[Role.EXTENSION]} | {counts[Role.HOST] or ''} | {families} |")
    return "\n".join([*lines, ""])


PARTS: dict[str, Callable[[], str]] = {"conformance cases": render_conformance}
