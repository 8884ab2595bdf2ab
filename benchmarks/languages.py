"""Extensions on the kits of other languages beside one in Python: their start and their calls, on the same host."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.paths import ENTRANTS, RESULTS
from benchmarks.roster import Entrant, Kind
from benchmarks.run import HostFailed, Plan, Results, Run, run_host, say
from benchmarks.workloads import WORKLOADS

__all__ = ["Languages", "measure_languages", "render_languages"]

HOST = "becket/extension_host.py"
BUILT = RESULTS / "languages"
BASE = "python"
CALLS_AT_LEAST, START_AT_MOST = 1.1, 0.35  # times the figure of BASE
START, CALLS = "W6", "W1"
BUILD_SECONDS = 600
SPEED = 0.5  # beside the asyncio floor: sets the number of calls in a run

Languages = dict[str, dict[str, float] | str]
"""Each extension: its figures and their ratios to those of `BASE`; or why there are none."""


@dataclass(frozen=True)
class Extension(Entrant):
    """An extension with the tool `echo` and the method `usage`. `build` is run in `folder`, and makes `program`."""

    program: Path | None = None
    build: tuple[str, ...] = ()
    folder: Path = field(default=ENTRANTS)

    def child_command(self) -> list[str]:
        return super().child_command() if self.program is None else [str(self.program)]


def in_python(name: str, title: str, child: str) -> Extension:
    return Extension(name, title, Kind.BECKET, HOST, child)


def built_by(name: str, title: str, *build: str, program: Path | None = None) -> Extension:
    """Returns an extension whose sources are in `entrants/<name>`; `{program}` in its build is the file to make."""
    program = program or BUILT / name
    command = tuple(word.replace("{program}", str(program)).replace("{folder}", str(BUILT)) for word in build)
    return Extension(name, title, Kind.BECKET, HOST, "", program=program, build=command, folder=ENTRANTS / name)


EXTENSIONS = (
    in_python(BASE, "Python, blocking, its tool inline", "becket/extension_child.py inline"),
    in_python("python-thread", "Python, blocking, its tool in a thread", "becket/extension_child.py"),
    built_by("go", "Go", "go", "build", "-o", "{program}", "."),
    built_by(
        "rust",
        "Rust",
        *("cargo", "build", "--quiet", "--release", "--locked", "--target-dir", "{folder}/cargo"),
        program=BUILT / "cargo" / "release" / "rust-extension",
    ),
)


def measure_languages(plan: Plan) -> Languages:
    """Returns the medians over the plan's rounds, in which the extensions take turns."""
    results, reasons = Results(), {each.name: why_not_built(each) for each in EXTENSIONS}
    present = [each for each in EXTENSIONS if reasons[each.name] is None]
    for number in range(plan.rounds):
        for workload in (START, CALLS):
            settings = WORKLOADS[workload].settings(SPEED, quick=plan.quick)
            for each in present[number % len(present) :] + present[: number % len(present)]:
                try:
                    figures = run_host(each, settings, is_pinned=WORKLOADS[workload].is_pinned, nice=plan.nice)
                except HostFailed as error:
                    reasons[each.name] = str(error)
                    continue
                results.runs.append(Run(each.name, workload, number, figures))
        say(f"round {number + 1}  languages")
    return {each.name: reasons[each.name] or figures_of(results, each.name) for each in EXTENSIONS}


def why_not_built(extension: Extension) -> str | None:
    """Builds an extension, and returns why that is not possible."""
    if not extension.build:
        return None
    if shutil.which(extension.build[0]) is None:
        return f"there is no `{extension.build[0]}`"
    BUILT.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        extension.build, cwd=extension.folder, capture_output=True, text=True, timeout=BUILD_SECONDS, check=False
    )
    return (done.stderr.strip().splitlines() or ["it cannot be built"])[-1] if done.returncode else None


def figures_of(results: Results, name: str) -> dict[str, float]:
    found = {}
    for workload in (CALLS, START):
        figure = WORKLOADS[workload].figure
        measured, ratio = results.figure(name, workload, figure), results.ratio(name, BASE, workload, figure)
        if measured is not None and ratio is not None:
            found |= {figure: measured.value, f"{figure}_ratio": ratio.value}
    return found


def render_languages(languages: Languages) -> str:
    """Returns the section as Markdown."""
    lines = [
        "## Extensions in other languages",
        "",
        "The same extension on the kit of each language, under the same host, in turns: one tool call after another",
        "(W1), and the time from the start of the process to the end of the handshake. Ratios are to the first row,",
        f"of each round; another language must reach {CALLS_AT_LEAST} of its calls, in {START_AT_MOST} of its start.",
        "",
        "| extension | calls/s | ratio | start, ms | ratio | |",
        "|---|---:|---:|---:|---:|---|",
    ]
    for each in EXTENSIONS:
        found = languages.get(each.name, "it was not measured")
        if isinstance(found, str):
            lines.append(f"| {each.title} | | | | | not measured: {found} |")
            continue
        calls, start = found["calls_s_ratio"], found["start_ms_ratio"]
        is_met = calls >= CALLS_AT_LEAST and start <= START_AT_MOST
        verdict = "" if not each.build else "met" if is_met else "**missed**"
        cells = f"{found['calls_s']:,.0f} | {calls:.2f} | {found['start_ms']:.1f} | {start:.2f} | {verdict}"
        lines.append(f"| {each.title} | {cells} |")
    return "\n".join([*lines, ""])
