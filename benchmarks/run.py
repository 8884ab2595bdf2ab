"""Runs entrants against workloads, interleaved, and separates quiet runs from disturbed ones.

Every round goes through all workloads, and for each through all entrants, so that what is compared ran within
seconds of each other. A figure is the median of the quiet runs; a ratio is the median of the ratios of each round,
because the speed of a shared machine changes from minute to minute.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from benchmarks.paths import ROOT, environment, pin_to_core, spare_cores
from benchmarks.roster import ENTRANTS_BY_NAME, Entrant
from benchmarks.workloads import WORKLOADS, Workload

__all__ = ["Calm", "Figure", "HostFailed", "Plan", "Results", "Run", "measure", "run_host", "say"]

FOREIGN = 0.10  # of a core taken by others, up to which a run is quiet
WAITED = 0.10  # of the time spent ready and without a core, up to which others did not get into the way
ENOUGH = 2  # runs of a kind that a figure needs; with fewer, the next worse kind counts too
RUN_SECONDS = 240.0  # the slowest entrant takes about 70 s to start its 100 children


class Calm(IntEnum):
    """How far others disturbed a run."""

    QUIET = 0
    UNDELAYED = 1  # others ran, and took no core that was wanted; a shared cache or core may still have cost time
    DISTURBED = 2


@dataclass(frozen=True)
class Plan:
    """What to run."""

    entrants: tuple[str, ...] = tuple(ENTRANTS_BY_NAME)
    workloads: tuple[str, ...] = tuple(WORKLOADS)
    rounds: int = 5
    retries: int = 1  # of a disturbed run, at once
    nice: int = 0
    quick: bool = False


@dataclass(frozen=True)
class Run:
    """One workload of one entrant, once."""

    entrant: str
    workload: str
    round: int
    figures: dict[str, float]

    @property
    def calm(self) -> Calm:
        if self.figures["foreign"] <= FOREIGN:
            return Calm.QUIET
        # A start is many processes, whose waiting is not known.
        if WORKLOADS[self.workload].is_pinned and self.figures["waited"] <= WAITED:
            return Calm.UNDELAYED
        return Calm.DISTURBED


@dataclass(frozen=True)
class Figure:
    """A median, and the calm of the worst run in it."""

    value: float
    calm: Calm
    runs: int


@dataclass
class Results:
    """All that was measured."""

    runs: list[Run] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)  # "entrant workload" to the reason

    def figure(self, entrant: str, workload: str, name: str) -> Figure | None:
        """Returns the median of a figure; None where it was not measured."""
        return median_of_calmest(
            (run.figures[name], run.calm)
            for run in self.best_of_rounds(entrant, workload).values()
            if name in run.figures
        )

    def ratio(self, entrant: str, against: str, workload: str, name: str) -> Figure | None:
        """Returns how many times the figure of `against` the entrant reaches; None where one was not measured."""
        mine, theirs = self.best_of_rounds(entrant, workload), self.best_of_rounds(against, workload)
        return median_of_calmest(
            (mine[number].figures[name] / theirs[number].figures[name], max(mine[number].calm, theirs[number].calm))
            for number in mine.keys() & theirs.keys()
            if name in mine[number].figures and theirs[number].figures.get(name)
        )

    def best_of_rounds(self, entrant: str, workload: str) -> dict[int, Run]:
        """Returns one run for each round: the calmest, of equally calm ones the last."""
        best: dict[int, Run] = {}
        for run in self.runs:
            is_this = run.entrant == entrant and run.workload == workload
            if is_this and (run.round not in best or run.calm <= best[run.round].calm):
                best[run.round] = run
        return best

    def entrants(self) -> list[str]:
        present = {run.entrant for run in self.runs}
        return [name for name in ENTRANTS_BY_NAME if name in present]

    def workloads(self) -> list[str]:
        present = {run.workload for run in self.runs}
        return [name for name in WORKLOADS if name in present]


def median_of_calmest(values: Iterable[tuple[float, Calm]]) -> Figure | None:
    known = list(values)
    for calm in Calm:
        counted = [value for value, its_calm in known if its_calm <= calm]
        if len(counted) >= min(ENOUGH, len(known)) and counted:
            return Figure(statistics.median(counted), calm, len(counted))
    return None


# -- running


class HostFailed(Exception):
    """The program of a host ended without figures. Its last line is the text."""


def say(line: str) -> None:
    """Prints the progress of a run, apart from its report."""
    print(line, file=sys.stderr, flush=True)


def measure(plan: Plan, results: Results, after_round: Callable[[], None]) -> None:
    """Runs the plan into `results`; an entrant that cannot run here is skipped with a reason."""
    entrants = []
    for name in plan.entrants:
        reason = why_not(ENTRANTS_BY_NAME[name])
        if reason is None:
            entrants.append(ENTRANTS_BY_NAME[name])
        else:
            results.skipped[name] = reason
            say(f"skipped {name}: {reason}")

    for round_number in range(plan.rounds):
        for workload in (WORKLOADS[name] for name in plan.workloads):
            run_workload(workload, rotated(entrants, round_number), round_number, plan, results)
        after_round()


def run_workload(
    workload: Workload, entrants: Iterable[Entrant], round_number: int, plan: Plan, results: Results
) -> None:
    for entrant in entrants:
        cell = f"{entrant.name} {workload.name}"
        if workload.name not in entrant.workloads or cell in results.failed:
            continue
        if not workload.takes_part(entrant.speed, round_number):
            continue
        settings = workload.settings(entrant.speed, quick=plan.quick)
        nice = plan.nice if workload.may_go_first else 0
        for _ in range(1 + plan.retries):
            try:
                figures = run_host(entrant, settings, is_pinned=workload.is_pinned, nice=nice)
            except HostFailed as error:
                results.failed[cell] = str(error)
                say(f"round {round_number + 1}  {cell}: failed: {error}")
                break
            run = Run(entrant.name, workload.name, round_number, figures)
            results.runs.append(run)
            say(described(run))
            if run.calm < Calm.DISTURBED:
                break


def described(run: Run) -> str:
    workload, figures = WORKLOADS[run.workload], run.figures
    return (
        f"round {run.round + 1}  {run.workload}  {run.entrant:22}"
        f" {figures[workload.figure]:12,.1f} {workload.unit:8} cpu {figures['cpu_us']:10,.1f} us"
        f"  others {figures['foreign']:4.0%}, waited {figures['waited']:4.0%}  {run.calm.name.lower()}"
    )


def rotated(entrants: list[Entrant], by: int) -> list[Entrant]:
    """Returns them from another start in each round, so that no entrant is always the first of a workload."""
    by = by % len(entrants) if entrants else 0
    return entrants[by:] + entrants[:by]


def why_not(entrant: Entrant) -> str | None:
    """Returns why an entrant cannot run here, having tried; None if it can. Also warms the caches of byte code."""
    sizes = {"calls": 128, "warmup": 64, "in_flight": 64, "events": 100, "repeats": 1, "starts": 1}
    program = entrant.host_command("")[0]
    if shutil.which(program) is None:
        return f"there is no `{program}`"
    try:
        run_host(entrant, {"workload": entrant.workloads[0], **sizes}, is_pinned=False)
    except HostFailed as error:
        return str(error)
    return None


def run_host(
    entrant: Entrant, settings: dict[str, Any], *, is_pinned: bool, nice: int = 0, seconds: float = RUN_SECONDS
) -> dict[str, float]:
    """Runs one workload of one entrant in processes of its own and returns the figures. It has `seconds` for it.

    Raises:
        HostFailed: it ended without figures, or did not end.
    """
    host_core, child_core = (spare_cores() if is_pinned else None) or (None, None)
    child = pin_to_core(entrant.child_command(), child_core, nice)
    command = pin_to_core(entrant.host_command(json.dumps({**settings, "child": child})), host_core, nice)
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
    ) as host:
        try:
            out, err = host.communicate(timeout=seconds)
        except BaseException as error:
            os.killpg(host.pid, signal.SIGKILL)  # its children too; those in sessions of their own end with their pipes
            if isinstance(error, subprocess.TimeoutExpired):
                raise HostFailed(f"did not end within {seconds:.0f} s") from None
            raise
    try:
        figures: dict[str, float] = json.loads(out.strip().rpartition("\n")[2])
    except ValueError:
        raise HostFailed(last_words(err) or f"ended with status {host.returncode} and no figures") from None
    return figures


def last_words(text: str) -> str:
    """Returns the line of an error report with the reason."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if "Error" in line and not line.startswith(("at ", "File ", "throw "))]
    return (errors or lines or [""])[-1]
