"""Whether a call costs more when much is open or registered: a section of its own, of becket alone."""

from __future__ import annotations

import statistics
from typing import Any

from benchmarks.roster import Entrant, Kind
from benchmarks.run import HostFailed, Plan, run_host, say
from benchmarks.workloads import GROWTH_SIZES

__all__ = ["Growth", "measure_growth", "render_growth"]

GROWS = 1.15  # times the cost at the smallest size, from which on it counts as growing
ENTRANT = Entrant("growth", "becket", Kind.BECKET, "becket/growth_host.py", "becket/growth_child.py")

Growth = dict[str, dict[str, dict[str, float]]]
"""Of what there is more, how many, which figure: the median."""


def measure_growth(plan: Plan) -> Growth | str:
    """Returns the medians over the plan's rounds, or why there are none."""
    settings = {"calls": 1_000 if plan.quick else 4_000, "events": 20_000, "sizes": GROWTH_SIZES}
    rounds: list[Any] = []
    for number in range(plan.rounds):
        try:
            rounds.append(run_host(ENTRANT, settings, is_pinned=True, nice=plan.nice))
        except HostFailed as error:
            return str(error)
        say(f"round {number + 1}  growth")
    return {
        kind: {
            size: {name: statistics.median(one[kind][size][name] for one in rounds) for name in figures}
            for size, figures in sizes.items()
        }
        for kind, sizes in rounds[0].items()
    }


def render_growth(growth: Growth | str) -> str:
    """Returns the section as Markdown."""
    lines = ["## Cost of a call beside others", ""]
    if isinstance(growth, str):
        return "\n".join([*lines, f"Not measured: {growth}", ""])
    sizes = list(next(iter(growth.values())))
    lines += [
        "becket on asyncio, one call after another: median time, and processor time of host and child. With streams",
        "also the time that an event of another call takes.",
        "",
        "| beside | " + " | ".join(f"{int(size):,}" for size in sizes) + " | growth |",
        "|---|" + "---:|" * (len(sizes) + 1),
    ]
    for kind, by_size in growth.items():
        for name, unit in (("call_us", "us"), ("cpu_us", "us CPU"), ("event_us", "us an event")):
            values = [by_size[size][name] for size in sizes if name in by_size[size]]
            if values:
                factor = values[-1] / values[0]
                verdict = f"{factor:.2f}" if factor <= GROWS else f"**{factor:.2f}**"
                lines.append(
                    f"| {kind}, {unit} | " + " | ".join(f"{value:.1f}" for value in values) + f" | {verdict} |"
                )
    return "\n".join([*lines, ""])
