"""What the store preserves when it is killed or cut off, and its speed, beside goals: a section of becket alone."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.faults import DOUBT, calm_of
from benchmarks.roster import Entrant, Kind
from benchmarks.run import RUN_SECONDS, HostFailed, Plan, run_host, say

__all__ = ["StoreFigures", "measure_store", "render_store"]

ENTRANT = Entrant("store", "becket", Kind.BECKET, "becket/store_host.py", "becket/child.py")
SIZES = {"kills": 20, "cuts": 200, "repeats": 3, "records": 100_000, "appends": 2_000, "queries": 200}
QUICK_SIZES = {**SIZES, "kills": 5, "cuts": 40, "repeats": 1, "records": 20_000, "appends": 500, "queries": 100}

StoreFigures = dict[str, dict[str, Any]]
"""Each experiment: the samples of what it measured (`values`), `foreign` and `waited`; or why it `failed`."""


def worst(values: list[float]) -> float:
    return max(values)


def late(values: list[float]) -> float:
    """Returns the 99th percentile."""
    return sorted(values)[len(values) * 99 // 100]


@dataclass(frozen=True)
class Goal:
    """One row: a quantity of an experiment, which of its samples counts, and what it may be."""

    experiment: str
    quantity: str
    title: str
    counts: Callable[[list[float]], float]
    bound: float | None
    unit: str
    is_at_least: bool = False


GOALS = (
    Goal("kills", "kills_lost", "acknowledged changes lost by programs that were killed", sum, 0, ""),
    Goal("cuts", "cuts_lost", "acknowledged changes lost by simulated power cuts", sum, 0, ""),
    Goal("syncs", "sync", "what the disk needs for one sync", late, None, "ms"),
    Goal("appends", "append_1", "append, 1 caller, p99", late, None, "ms"),
    Goal("appends", "appends_64", "appends a second, 64 callers", statistics.median, 30_000, "/s", is_at_least=True),
    Goal("appends", "append_64", "append, 64 callers, p99", late, 10, "ms"),
    Goal("appends", "appends_256", "appends a second, 256 callers", statistics.median, None, "/s", is_at_least=True),
    Goal("children", "children_1", "appends a second, one extension", statistics.median, None, "/s", is_at_least=True),
    Goal(
        "children",
        "children_4",
        "appends a second, four extensions",
        statistics.median,
        10_000,
        "/s",
        is_at_least=True,
    ),
    Goal(
        "batches",
        "batches_1",
        "appends a second, one extension, in batches",
        statistics.median,
        None,
        "/s",
        is_at_least=True,
    ),
    Goal(
        "batches",
        "batches_4",
        "appends a second, four extensions, in batches",
        statistics.median,
        30_000,
        "/s",
        is_at_least=True,
    ),
    Goal(
        "batches",
        "batches_share",
        "N7: the same, of the rate of 64 callers with as many records",
        statistics.median,
        60,
        "%",
        is_at_least=True,
    ),
    Goal("large", "append_large", "append beside {records} records, p99", late, 5, "ms"),
    Goal("large", "append_large", "append beside {records} records, worst", worst, 25, "ms"),
    Goal("large", "recent", "newest 50 of half of {records} records, p99", late, 1, "ms"),
    Goal("large", "newest", "newest 50 of them with a word, p99", late, 5, "ms"),
    Goal("large", "behind", "the same when the index is 10,000 records behind, p99", late, None, "ms"),
    Goal("large", "ranked", "best 50 of them with one or two words, p99", late, 50, "ms"),
    Goal("large", "pairs", "best 50 of them with two words, p99", late, 50, "ms"),
    Goal("large", "absent", "a text of two letters that none of them has, worst", worst, 50, "ms"),
    Goal("large", "lag", "records that the index was behind while they came, worst", worst, 10_000, ""),
    Goal("large", "open", "open beside {records} records after a kill, worst", worst, 1_000, "ms"),
    Goal("large", "verify", "read and verify all of them", worst, None, "ms"),
    Goal("large", "overrun", "a query of everything beyond its time, worst", worst, 10, "ms"),
)


def measure_store(plan: Plan, records: int | None) -> StoreFigures:
    """Returns what each experiment measured, each in a host of its own."""
    sizes = QUICK_SIZES if plan.quick else SIZES
    sizes = sizes if records is None else {**sizes, "records": records}
    seconds = RUN_SECONDS * max(1.0, sizes["records"] / SIZES["records"])  # to write them takes most of the time
    figures: StoreFigures = {}
    for experiment in dict.fromkeys(goal.experiment for goal in GOALS):
        try:
            settings = {"experiment": experiment, **sizes}
            found = run_host(ENTRANT, settings, is_pinned=False, nice=plan.nice, seconds=seconds)
            figures[experiment] = {"sizes": sizes, **found}
        except HostFailed as error:
            figures[experiment] = {"failed": str(error)}
        say(f"store  {experiment}")
    return figures


def render_store(figures: StoreFigures) -> str:
    """Returns the section as Markdown."""
    lines = [
        "## Store",
        "",
        "The store in a file, with its index. An append returns when it is on the disk, so that the time of a sync",
        "bounds the rate of one caller; many callers share one. `~` marks figures during which other programs used",
        "the machine, `?` figures from disturbed runs.",
        "",
        "| what | samples | median | measured | goal | met |",
        "|---|---:|---:|---:|---:|---|",
    ]
    lines += [row(goal, figures[goal.experiment]) for goal in GOALS if goal.experiment in figures]
    return "\n".join([*lines, ""])


def row(goal: Goal, figures: dict[str, Any]) -> str:
    sign = ">=" if goal.is_at_least else "<="
    bound = "" if goal.bound is None else f"{sign} {shown(goal.bound, goal.unit)}"
    if "failed" in figures:
        return f"| {goal.title.format(records='many')} | | | | {bound} | not measured: {figures['failed']} |"
    values = figures["values"][goal.quantity]
    counted = goal.counts(values)
    mark = DOUBT[calm_of(figures)] if goal.unit else ""  # a loss counts on a busy machine too
    met = ""
    if goal.bound is not None:
        is_met = counted >= goal.bound if goal.is_at_least else counted <= goal.bound
        met = "yes" if is_met else "**no**"
    title = goal.title.format(records=f"{figures['sizes']['records']:,}")
    middle = shown(statistics.median(values), goal.unit)
    return f"| {title} | {len(values):,} | {middle} | {shown(counted, goal.unit)}{mark} | {bound} | {met} |"


def shown(value: float, unit: str) -> str:
    digits = 0 if value >= 100 or unit != "ms" else 1 if value >= 10 else 2
    return f"{value:,.{digits}f}{unit and ' '}{unit}".replace(" /s", "/s")
