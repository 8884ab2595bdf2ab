"""The report of a run: tables as Markdown, the numbers as JSON."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from benchmarks.clients import ClientFigures, render_clients
from benchmarks.discovery import Discovery, render_discovery
from benchmarks.faults import Faults, render_faults
from benchmarks.goals import Goal, Verdict, figure_of, judge
from benchmarks.growth import Growth, render_growth
from benchmarks.imports import Imports, render_imports
from benchmarks.interpreters import inspect_interpreter
from benchmarks.languages import Languages, render_languages
from benchmarks.paths import NODE_MODULES, interpreter
from benchmarks.roster import ENTRANTS_BY_NAME
from benchmarks.run import Calm, Figure, Plan, Results, Run
from benchmarks.store import StoreFigures, render_store
from benchmarks.workloads import WORKLOADS

__all__ = ["Report", "load_report", "render", "save_report"]

FLOOR = "floor"
DOUBT = {Calm.QUIET: "", Calm.UNDELAYED: "~", Calm.DISTURBED: "?"}


@dataclass
class Report:
    """The results of one call of `python -m benchmarks`; a section that was not selected is None."""

    plan: Plan
    results: Results = field(default_factory=Results)
    growth: Growth | str | None = None
    discovery: Discovery | str | None = None
    faults: Faults | None = None
    store: StoreFigures | None = None
    clients: ClientFigures | None = None
    languages: Languages | None = None
    imports: Imports | None = None
    machine: dict[str, str] = field(default_factory=lambda: machine_facts())
    day: str = field(default_factory=lambda: date.today().isoformat())


# -- as JSON


def save_report(report: Report, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(asdict(report), indent=1) + "\n", encoding="utf-8")


def load_report(path: Path) -> Report:
    """Returns a report that was saved, to be rendered again."""
    stored: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    results = stored["results"]
    return Report(
        plan=Plan(**stored["plan"]),
        results=Results([Run(**run) for run in results["runs"]], results["skipped"], results["failed"]),
        growth=stored["growth"],
        discovery=stored.get("discovery"),
        faults=stored.get("faults"),  # there were none in earlier reports
        store=stored.get("store"),
        clients=stored.get("clients"),
        languages=stored.get("languages"),
        imports=stored["imports"],
        machine=stored["machine"],
        day=stored["day"],
    )


def machine_facts() -> dict[str, str]:
    """Returns what the figures depend on: the machine, the interpreters and the versions of the entrants."""
    facts = {
        "processor": f"{platform.machine()}, {os.cpu_count()} cores",
        "system": f"{platform.system()} {platform.release().split('-')[0]}",
        "Python": str(inspect_interpreter(interpreter()) or ""),
        "Node": printed(["node", "--version"]).removeprefix("v"),
    }
    for package in sorted({package for entrant in ENTRANTS_BY_NAME.values() for package in entrant.packages}):
        facts[package] = printed(
            [interpreter(), "-c", f"from importlib.metadata import version; print(version({package!r}))"]
        )
    package_json = NODE_MODULES / "vscode-jsonrpc" / "package.json"
    if package_json.exists():
        facts["vscode-jsonrpc"] = json.loads(package_json.read_text(encoding="utf-8"))["version"]
    return {name: fact for name, fact in facts.items() if fact}


def printed(command: list[str]) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


# -- as Markdown


def render(report: Report, *, picture: str | None = None) -> str:
    """Returns the whole report as Markdown, with the picture of that name on top."""
    results = report.results
    parts = ["# Benchmarks\n"]
    if results.runs:
        parts.append(introduction(report))
        if picture:
            parts.append(f"![becket beside other JSON-RPC peers]({picture})\n")
        parts += [rates_table(results), ratios_table(results), product_table(results), goals_table(results)]
        if "W7" in results.workloads():
            parts.append(children_table(results))
    if report.growth is not None:
        parts.append(render_growth(report.growth))
    if report.discovery is not None:
        parts.append(render_discovery(report.discovery))
    if report.faults is not None:
        parts.append(render_faults(report.faults))
    if report.store is not None:
        parts.append(render_store(report.store))
    if report.clients is not None:
        parts.append(render_clients(report.clients))
    if report.languages is not None:
        parts.append(render_languages(report.languages))
    if report.imports is not None:
        parts.append(render_imports(report.imports))
    parts.append(machine_list(report))
    return "\n".join(parts)


def introduction(report: Report) -> str:
    names = [f"- {name}: {WORKLOADS[name].title}" for name in shared_workloads(report.results)]
    return (
        "A host and a child, JSON-RPC over pipes. Every entrant runs the same workloads, all of them in one\n"
        "interleaved run, host and child on a core each (W6 and W7 on all cores), Python "
        f"{report.machine.get('Python', 'unknown')}.\n\n" + "\n".join(names) + "\n\n"
        "A figure is the median of the quiet runs. The asyncio floor and the entrants of becket with goals beside it\n"
        "run W1, W2, W3, W5 and W6 in turns of a tenth of a second; a ratio is taken in each turn. Other ratios are\n"
        "medians of those of the rounds, and may differ by a quarter from the quotient of two medians.\n\n"
        "`~` marks a figure with too few quiet runs: other programs used the machine, though not its cores. `?` marks\n"
        "one from disturbed runs. Absolute figures differ from machine to machine; compare the ratios.\n"
    )


def rates_table(results: Results) -> str:
    workloads = shared_workloads(results)
    head = [f"{name} {WORKLOADS[name].unit}" for name in workloads]
    rows = [
        [
            f"{ENTRANTS_BY_NAME[entrant].title} (`{entrant}`)",  # the goals use the short name
            *(rate_cell(results, entrant, name) for name in workloads),
        ]
        for entrant in results.entrants()
    ]
    return "\n".join(["## Speed", "", *table(["", *head], rows), ""])


def shared_workloads(results: Results) -> list[str]:
    """Returns the workloads of all kinds of entrants; the others are becket's own."""
    return [name for name in results.workloads() if name.startswith("W")]


def rate_cell(results: Results, entrant: str, workload: str) -> str:
    measured = results.figure(entrant, workload, WORKLOADS[workload].figure)
    if measured is None:
        return "failed" if f"{entrant} {workload}" in results.failed else ""
    text = shown(measured)
    if workload == "W1" and (latency := results.figure(entrant, workload, "p50_us")):
        text += f" ({latency.value:,.0f} us)"
    if workload == "W6" and (memory := results.figure(entrant, workload, "rss_mib")):
        text += f", {memory.value:.0f} MiB"
    return text


def ratios_table(results: Results) -> str:
    if FLOOR not in results.entrants():
        return ""
    workloads = shared_workloads(results)
    cpu = [name for name in ("W1", "W2", "W3") if name in workloads]
    head = ["", *workloads, *(f"CPU us {name}" for name in cpu)]
    rows = []
    for entrant in results.entrants():
        ratios = [results.ratio(entrant, FLOOR, name, WORKLOADS[name].figure) for name in workloads]
        costs = [results.figure(entrant, name, "cpu_us") for name in cpu]
        rows.append(
            [
                ENTRANTS_BY_NAME[entrant].title,
                *(f"{ratio.value:.2f}{DOUBT[ratio.calm]}" if ratio else "" for ratio in ratios),
                *(shown(cost) if cost else "" for cost in costs),
            ]
        )
    lines = [
        "## Beside the hand-written asyncio peer",
        "",
        "The asyncio floor is a hand-written `asyncio.Protocol` with msgspec: no cancellation, no timeouts, no limits,",
        "no error mapping. Ratios to it (of rates more is better, of the times W6 and W7 less), and the processor time",
        "of host and child for each operation.",
        "",
    ]
    return "\n".join([*lines, *table(head, rows), ""])


def product_table(results: Results) -> str:
    """Returns the goals of hosted extensions, and the parts of a tool call."""
    verdicts = [verdict for verdict in judge(results) if verdict.goal.name]
    if not verdicts:
        return ""
    lines = [
        "## The product's own path",
        "",
        "An extension of a host uses `native` behind a gate. N1 to N3 are W1 to W3 there, beside `plain`; N4 is the",
        "processor time of the host for `host.call_tool` without the validation of the input, in calls of the peer on",
        "the same link; N5 is a tool call through a host to an extension, beside client and server of the MCP SDK, all",
        "with a coroutine: `mcp-tools` declares its tool with a decorator and typed arguments, as an extension does,",
        "and `mcp` is a low-level server, without any check of the arguments. N6, the start of 200 extensions, is",
        "under Faults, and N7, appends in batches, under Store.",
        "",
    ]
    rows = [[verdict.goal.name, *goal_row(verdict)] for verdict in verdicts]
    parts = [results.figure("becket-host", "N4", name) for name in ("tool_us", "call_us", "validation_us")]
    split = ""
    if all(parts):
        tool, call, validation = (shown(part) for part in parts if part)
        split = f"N4 in us of the host: `host.call_tool` {tool}, `peer.call` {call}, the validation {validation}.\n"
    return "\n".join([*lines, *table(["", "", "measured", "must", "aim", ""], rows, left=(0, 1, 5)), "", split])


def goals_table(results: Results) -> str:
    verdicts = [verdict for verdict in judge(results) if not verdict.goal.name]
    if not verdicts:
        return ""
    missed = sum(verdict.is_missed for verdict in verdicts)
    doubtful = sum(verdict.is_doubtful for verdict in verdicts)
    text = f"{len(verdicts) - missed} of {len(verdicts)} are met."
    if doubtful:
        text += f" {doubtful} are from disturbed runs, and prove nothing."
    lines = ["## Goals", "", text, ""]
    rows = [goal_row(verdict) for verdict in verdicts]
    return "\n".join([*lines, *table(["", "measured", "must", "aim", ""], rows, left=(0, 4)), ""])


def goal_row(verdict: Verdict) -> list[str]:
    goal, measured = verdict.goal, verdict.measured
    assert measured is not None
    sign = "<=" if verdict.is_at_most else ">="
    if isinstance(goal, Goal):
        figure = "" if figure_of(goal) == WORKLOADS[goal.workload].figure else f" {goal.figure}"
        what, unit, aim = f"{goal.workload}{figure}, {goal.entrant} / {goal.against}", "", goal.aim
    else:
        figure = "" if goal.figure == WORKLOADS[goal.workload].figure else f" {goal.figure}"
        what, unit, aim = f"{goal.workload}{figure}, {goal.entrant}", f" {goal.unit}", None
    return [
        what,
        f"{number(measured.value)}{DOUBT[measured.calm]}{unit}",
        f"{sign} {number(goal.must)}{unit}",
        "" if aim is None else number(aim),
        verdict.text,
    ]


def children_table(results: Results) -> str:
    head = ["", "memory of the host a child, KiB", "threads of the host", "a call in turn, us", "CPU a child, ms"]
    rows = []
    for entrant in results.entrants():
        figures = [
            results.figure(entrant, "W7", name) for name in ("host_kib_child", "threads", "lap_call_us", "cpu_us")
        ]
        if all(figures):
            memory, threads, lap, cpu = (figure.value for figure in figures if figure)
            rows.append(
                [
                    ENTRANTS_BY_NAME[entrant].title,
                    f"{memory:,.0f}",
                    f"{threads:.0f}",
                    f"{lap:,.0f}",
                    f"{cpu / 1e3:,.0f}",
                ]
            )
    return "\n".join(["## Many children (W7)", "", *table(head, rows), ""])


def machine_list(report: Report) -> str:
    results = report.results
    facts = ", ".join(
        f"{fact}" if name in ("processor", "system") else f"{name} {fact}" for name, fact in report.machine.items()
    )
    lines = ["## The run", "", f"{report.day}: {facts}; {report.plan.rounds} rounds.", ""]
    if report.plan.quick:
        lines += ["A quick run: fewer operations, fewer children.", ""]
    lines += [f"- skipped {name}: {reason}" for name, reason in results.skipped.items()]
    lines += [f"- failed {cell}: {reason}" for cell, reason in results.failed.items()]
    return "\n".join(lines).rstrip() + "\n"


def table(head: list[str], rows: list[list[str]], left: tuple[int, ...] = (0,)) -> list[str]:
    rule = "|" + "|".join("---" if column in left else "---:" for column in range(len(head))) + "|"
    return [f"| {' | '.join(head)} |", rule, *(f"| {' | '.join(row)} |" for row in rows)]


def shown(figure: Figure) -> str:
    return number(figure.value) + DOUBT[figure.calm]


def number(value: float) -> str:
    """Returns a number with about three digits."""
    if value >= 1_000:
        return f"{value:,.0f}" if value < 10_000 else f"{round(value, -2):,.0f}"
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
