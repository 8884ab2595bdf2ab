"""What it costs to find extensions among many folders, and how it grows: a section of its own, of becket alone."""

from __future__ import annotations

import statistics
from typing import Any

from benchmarks.roster import Entrant, Kind
from benchmarks.run import HostFailed, Plan, run_host, say

__all__ = ["Discovery", "measure_discovery", "render_discovery"]

GROWS = 1.25  # times the cost of a folder at the smallest size, from which on it counts as growing
SIZES = (100, 1_000, 10_000)
QUICK_SIZES = (100, 1_000)
ENTRANT = Entrant("discovery", "becket", Kind.BECKET, "becket/discovery_host.py", "becket/child.py")

Discovery = dict[str, dict[str, float]]
"""What was done, how many folders, the microseconds of processor time that each took: the median."""


def measure_discovery(plan: Plan) -> Discovery | str:
    """Returns the medians over the plan's rounds, or why there are none."""
    settings = {"sizes": QUICK_SIZES if plan.quick else SIZES, "repeats": 3}
    rounds: list[Any] = []
    for number in range(plan.rounds):
        try:
            rounds.append(run_host(ENTRANT, settings, is_pinned=True, nice=plan.nice))
        except HostFailed as error:
            return str(error)
        say(f"round {number + 1}  discovery")
    return {
        task: {size: statistics.median(one[task][size] for one in rounds) for size in sizes}
        for task, sizes in rounds[0].items()
    }


def render_discovery(discovery: Discovery | str) -> str:
    """Returns the section as Markdown."""
    lines = ["## Finding extensions", ""]
    if isinstance(discovery, str):
        return "\n".join([*lines, f"Not measured: {discovery}", ""])
    sizes = list(next(iter(discovery.values())))
    lines += [
        "Microseconds of processor time for each folder, with its names in the cache of the system.",
        "",
        "| folders | " + " | ".join(f"{int(size):,}" for size in sizes) + " | growth |",
        "|---|" + "---:|" * (len(sizes) + 1),
    ]
    for task, by_size in discovery.items():
        values = [by_size[size] for size in sizes]
        factor = values[-1] / values[0]
        verdict = f"{factor:.2f}" if factor <= GROWS else f"**{factor:.2f}**"
        lines.append(f"| {task} | " + " | ".join(f"{value:.1f}" for value in values) + f" | {verdict} |")
    return "\n".join([*lines, ""])
