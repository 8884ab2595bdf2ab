"""The speed goals of becket, as data, and whether a run reached them.

Ratios are what counts: `must` is the bar and `aim` the goal, both as multiples of another entrant's figure in the same
run. Bounds are absolute; they were set on one machine and give orientation on another.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

from benchmarks.roster import ENTRANTS_BY_NAME, Kind
from benchmarks.run import Calm, Figure, Results
from benchmarks.workloads import WORKLOADS

__all__ = ["GOALS", "Bound", "Goal", "Verdict", "judge"]

FASTEST_LIBRARY = "fastest library"
LIBRARIES = [entrant.name for entrant in ENTRANTS_BY_NAME.values() if entrant.kind is Kind.PEER]


@dataclass(frozen=True)
class Goal:
    """A figure of `entrant` as a multiple of the one of `against`: at least, or for times and costs at most.

    `against` is an entrant, or the fastest of the other libraries in the same run."""

    entrant: str
    workload: str
    against: str
    must: float
    aim: float | None = None
    figure: str = ""  # the workload's own, if empty
    name: str = ""  # of a goal of the product's own path
    python: tuple[int, int] = (3, 11)  # from which on it holds


@dataclass(frozen=True)
class Bound:
    """A figure that is at most so much."""

    entrant: str
    workload: str
    figure: str
    must: float
    unit: str
    name: str = ""


@dataclass(frozen=True)
class Verdict:
    goal: Goal | Bound
    measured: Figure | None

    @property
    def is_at_most(self) -> bool:
        return isinstance(self.goal, Bound) or is_cost(self.goal)

    @property
    def text(self) -> str:
        """Met, missed and by how much, or not measured."""
        if self.measured is None:
            return "not measured"
        if not reaches(self.measured.value, self.goal.must, at_most=self.is_at_most):
            return f"**missed by {abs(self.measured.value / self.goal.must - 1):.0%}**"
        aim = self.goal.aim if isinstance(self.goal, Goal) else None
        if aim is not None and reaches(self.measured.value, aim, at_most=self.is_at_most):
            return "met, the aim too"
        return "met"

    @property
    def is_missed(self) -> bool:
        return self.measured is not None and "missed" in self.text

    @property
    def is_doubtful(self) -> bool:
        return self.measured is not None and self.measured.calm is Calm.DISTURBED


def judge(results: Results) -> list[Verdict]:
    """Returns a verdict on each goal that was measured."""
    verdicts = []
    for goal in GOALS:
        if isinstance(goal, Bound):
            measured = results.figure(goal.entrant, goal.workload, goal.figure)
        elif sys.version_info < goal.python:
            continue
        else:
            rivals = LIBRARIES if goal.against == FASTEST_LIBRARY else [goal.against]
            ratios = [results.ratio(goal.entrant, rival, goal.workload, figure_of(goal)) for rival in rivals]
            known = [ratio for ratio in ratios if ratio is not None]
            worst = max if is_cost(goal) else min
            measured = worst(known, key=lambda ratio: ratio.value, default=None)
        if measured is not None:
            verdicts.append(Verdict(goal, measured))
    return verdicts


def figure_of(goal: Goal) -> str:
    return goal.figure or WORKLOADS[goal.workload].figure


def is_cost(goal: Goal) -> bool:
    return bool(goal.figure) or WORKLOADS[goal.workload].is_time


def reaches(measured: float, wanted: float, *, at_most: bool) -> bool:
    return measured <= wanted if at_most else measured >= wanted


GOALS: tuple[Goal | Bound, ...] = (
    # -- beside the hand-written asyncio peer
    Goal("becket", "W1", "floor", 0.85, 0.95),
    Goal("becket-async-handlers", "W1", "floor", 0.70, 0.80),
    Goal("becket", "W2", "floor", 0.80, 0.90),
    Goal("becket-async-handlers", "W2", "floor", 0.50, 0.58),
    Goal("becket-async-handlers", "W2", "becket", 0.90, python=(3, 12)),  # where tasks start eagerly
    Goal("becket", "W3", "floor", 0.85, 0.95),
    Goal("becket-stream", "W3", "floor", 0.50, 0.70),
    Goal("becket", "W4", "floor", 0.95, 1.25),
    Goal("becket", "W5", "floor", 0.85, 0.95),
    Goal("becket", "W6", "floor", 1.25, 1.10),
    Goal("becket-mixed", "W6", "floor", 0.70, 0.60),
    Goal("becket-extension", "W6", "floor", 0.70, 0.60),
    Goal("becket-extension-async", "W6", "floor", 1.25, 1.10),
    Goal("becket", "W7", "floor", 1.25, 1.10),
    Goal("becket-mixed", "W7", "floor", 0.70),
    Goal("becket-blocking", "W1", "floor", 1.00, 1.70),
    # -- on trio
    Goal("becket-trio", "W1", "floor-trio", 1.00),
    Goal("becket-trio", "W2", "floor-trio", 1.00),
    Goal("becket-trio", "W3", "floor-trio", 1.00),
    # -- processor time of host and child: the steadier gate on a machine that others use
    Goal("becket", "W1", "floor", 1.17, figure="cpu_us"),
    Goal("becket", "W2", "floor", 1.24, figure="cpu_us"),
    Goal("becket", "W3", "floor", 1.21, figure="cpu_us"),
    # -- the product's own path: what every hosted extension uses
    Goal("becket-native", "W1", "becket", 0.80, 0.90, name="N1"),
    Goal("becket-native", "W2", "becket", 0.80, 0.90, name="N2"),
    Goal("becket-native", "W3", "becket", 0.80, 0.90, name="N3"),
    Goal("becket-native", "W1", "becket", 1.25, 1.11, figure="cpu_us", name="N1"),
    Goal("becket-native", "W2", "becket", 1.25, 1.11, figure="cpu_us", name="N2"),
    Goal("becket-native", "W3", "becket", 1.25, 1.11, figure="cpu_us", name="N3"),
    Bound("becket-host", "N4", "times", 2.0, "calls", name="N4"),
    Goal("becket-host", "W1", "mcp-tools", 10, name="N5"),
    Goal("becket-host", "W1", "mcp", 10, name="N5"),
    # -- beside the fastest of the other libraries (Node is in the tables for orientation)
    Goal("becket", "W1", FASTEST_LIBRARY, 1.2),
    Goal("becket", "W2", FASTEST_LIBRARY, 2),
    Goal("becket", "W3", FASTEST_LIBRARY, 2),
    Goal("becket", "W4", FASTEST_LIBRARY, 1),
    Goal("becket", "W5", FASTEST_LIBRARY, 1.2),
    Goal("becket-mixed", "W6", FASTEST_LIBRARY, 1),
    Goal("becket-mixed", "W7", FASTEST_LIBRARY, 1),
    # -- absolute
    Bound("becket", "W1", "p50_us", 48, "us"),
    Bound("becket", "W1", "p99_us", 90, "us"),
    Bound("becket", "W1", "cpu_us", 54, "us"),
    Bound("becket", "W2", "cpu_us", 12.8, "us"),
    Bound("becket", "W3", "cpu_us", 4.0, "us"),
    Bound("becket", "W6", "rss_mib", 28, "MiB"),
    Bound("becket-mixed", "W6", "rss_mib", 17, "MiB"),
    Bound("becket-extension", "W6", "rss_mib", 17, "MiB"),
    Bound("becket-extension-async", "W6", "rss_mib", 28, "MiB"),
    Bound("becket", "W7", "host_kib_child", 64, "KiB"),
    Bound("becket", "W7", "threads", 2, "threads"),
    Bound("becket", "W7", "lap_call_us", 250, "us"),
)
