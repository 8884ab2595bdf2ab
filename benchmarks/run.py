"""Runs entrants against workloads, interleaved, and separates quiet runs from disturbed ones.

Every round goes through all workloads, and for each through all entrants, so that what is compared ran within
seconds of each other. A figure is the median of the quiet runs; a ratio is the median of the ratios of each round,
because the speed of a shared machine changes from minute to minute, and from second to second. The entrants whose
ratios are goals run at the same time and take turns of a tenth of a second, and a ratio is taken in each turn.
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
from contextlib import ExitStack
from dataclasses import dataclass, field
from enum import IntEnum
from threading import Timer
from typing import Any, Self

from benchmarks.paths import ROOT, environment, pin_to_core, spare_cores
from benchmarks.roster import ENTRANTS_BY_NAME, Entrant
from benchmarks.workloads import WORKLOADS, Workload

__all__ = ["Calm", "Figure", "HostFailed", "Plan", "Results", "Run", "measure", "run_host", "say"]

FOREIGN = 0.10  # of a core taken by others, up to which a run is quiet
WAITED = 0.10  # of the time spent ready and without a core, up to which others did not get into the way
ENOUGH = 2  # runs of a kind that a figure needs; with fewer, the next worse kind counts too
RUN_SECONDS = 240.0  # the slowest entrant takes about 70 s to start its 100 children
UNMEASURED_TURN = -1  # in which each host waits for its own start, while others may be starting


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
    """One workload of one entrant, once, or one of its turns in a round."""

    entrant: str
    workload: str
    round: int
    figures: dict[str, float]
    turn: int = 0

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
            (run.figures[name], run.calm) for run in self.best_runs(entrant, workload).values() if name in run.figures
        )

    def ratio(self, entrant: str, against: str, workload: str, name: str) -> Figure | None:
        """Returns how many times the figure of `against` the entrant reaches; None where one was not measured."""
        all_mine, all_theirs = self.best_runs(entrant, workload), self.best_runs(against, workload)
        pairs = [(in_turn(all_mine, *turn), in_turn(all_theirs, *turn)) for turn in all_mine.keys() | all_theirs.keys()]
        return median_of_calmest(
            (mine.figures[name] / theirs.figures[name], max(mine.calm, theirs.calm))
            for mine, theirs in pairs
            if mine is not None and theirs is not None and name in mine.figures and theirs.figures.get(name)
        )

    def best_runs(self, entrant: str, workload: str) -> dict[tuple[int, int], Run]:
        """Returns one run for each round and turn: the calmest, of equally calm ones the last."""
        best: dict[tuple[int, int], Run] = {}
        for run in self.runs:
            key = (run.round, run.turn)
            is_this = run.entrant == entrant and run.workload == workload
            if is_this and (key not in best or run.calm <= best[key].calm):
                best[key] = run
        return best

    def entrants(self) -> list[str]:
        present = {run.entrant for run in self.runs}
        return [name for name in ENTRANTS_BY_NAME if name in present]

    def workloads(self) -> list[str]:
        present = {run.workload for run in self.runs}
        return [name for name in WORKLOADS if name in present]


def in_turn(runs: dict[tuple[int, int], Run], number: int, turn: int) -> Run | None:
    """Returns the run of that turn, or of that round if the entrant takes no turns."""
    return runs.get((number, turn)) or runs.get((number, 0))


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
            ready = [
                entrant
                for entrant in rotated(entrants, round_number)
                if workload.name in entrant.workloads
                and f"{entrant.name} {workload.name}" not in results.failed
                and workload.takes_part(entrant.speed, round_number)
            ]
            in_turns = [entrant for entrant in ready if entrant.takes_turns and workload.turns > 1]
            take_turns(workload, in_turns, round_number, plan, results)
            alone = [entrant for entrant in ready if entrant not in in_turns]
            run_alone(workload, alone, round_number, plan, results)
        after_round()


def take_turns(workload: Workload, entrants: list[Entrant], round_number: int, plan: Plan, results: Results) -> None:
    """Runs one workload of these entrants at the same time, of which one works and the others wait."""
    with ExitStack() as stack:
        hosts: dict[Entrant, WaitingHost] = {}
        for entrant in entrants:
            settings = workload.settings(entrant.speed, quick=plan.quick, turns=workload.turns)
            nice = plan.nice if workload.may_go_first else 0
            host = WaitingHost(entrant, settings, is_pinned=workload.is_pinned, nice=nice)
            hosts[entrant] = stack.enter_context(host)
        for turn in range(UNMEASURED_TURN, workload.turns):
            for entrant in rotated(list(hosts), turn):
                try:
                    figures = hosts[entrant].take_turn()
                except HostFailed as error:
                    results.failed[f"{entrant.name} {workload.name}"] = str(error)
                    say(f"round {round_number + 1}  {entrant.name} {workload.name}: failed: {error}")
                    del hosts[entrant]
                else:
                    if turn != UNMEASURED_TURN:
                        results.runs.append(Run(entrant.name, workload.name, round_number, figures, turn))
    for entrant in hosts:
        runs = results.best_runs(entrant.name, workload.name)
        turns = [run for (number, _), run in runs.items() if number == round_number]
        say(described(sorted(turns, key=lambda run: run.figures[workload.figure])[len(turns) // 2]))


def run_alone(workload: Workload, entrants: Iterable[Entrant], round_number: int, plan: Plan, results: Results) -> None:
    """Runs one workload of each entrant, one after the other."""
    for entrant in entrants:
        cell = f"{entrant.name} {workload.name}"
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
    with start_host(entrant, settings, is_pinned=is_pinned, nice=nice, stdin=subprocess.DEVNULL) as host:
        try:
            out, err = host.communicate(timeout=seconds)
        except BaseException as error:
            os.killpg(host.pid, signal.SIGKILL)  # its children too; those in sessions of their own end with their pipes
            if isinstance(error, subprocess.TimeoutExpired):
                raise HostFailed(f"did not end within {seconds:.0f} s") from None
            raise
    return parse_figures(out.strip().rpartition("\n")[2], err, host)


def start_host(
    entrant: Entrant, settings: dict[str, Any], *, is_pinned: bool, nice: int, stdin: int
) -> subprocess.Popen[str]:
    host_core, child_core = (spare_cores() if is_pinned else None) or (None, None)
    child = pin_to_core(entrant.child_command(), child_core, nice)
    command = pin_to_core(entrant.host_command(json.dumps({**settings, "child": child})), host_core, nice)
    return subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment(),
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
    )


def parse_figures(line: str, err: str, host: subprocess.Popen[str]) -> dict[str, float]:
    try:
        figures: dict[str, float] = json.loads(line)
    except ValueError:
        raise HostFailed(last_words(err) or f"ended with status {host.returncode} and no figures") from None
    return figures


class WaitingHost:
    """The host of an entrant that takes turns: it works after each line that it gets."""

    def __init__(self, entrant: Entrant, settings: dict[str, Any], *, is_pinned: bool, nice: int) -> None:
        self._host = start_host(
            entrant, {**settings, "takes_turns": True}, is_pinned=is_pinned, nice=nice, stdin=subprocess.PIPE
        )

    def take_turn(self) -> dict[str, float]:
        """Returns the figures of its next turn.

        Raises:
            HostFailed: it has ended, or did not end this turn.
        """
        assert self._host.stdin is not None
        assert self._host.stdout is not None
        alarm = Timer(RUN_SECONDS, self._kill)
        alarm.start()
        try:
            self._host.stdin.write("\n")
            self._host.stdin.flush()
            line = self._host.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            alarm.cancel()
        err = "" if line else self._host.communicate()[1]
        return parse_figures(line, err, self._host)

    def _kill(self) -> None:
        os.killpg(self._host.pid, signal.SIGKILL)  # its child too, unless that is in a session of its own

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._host.returncode is None:
            try:
                self._host.communicate(timeout=RUN_SECONDS)  # the end of its input is its end
            except BaseException:
                self._kill()
                raise


def last_words(text: str) -> str:
    """Returns the line of an error report with the reason."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if "Error" in line and not line.startswith(("at ", "File ", "throw "))]
    return (errors or lines or [""])[-1]
