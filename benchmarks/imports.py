"""What it costs to import becket and its peers: a section of its own."""

from __future__ import annotations

import os
import statistics
import subprocess
import time

from benchmarks.paths import ROOT, environment, interpreter
from benchmarks.run import Plan, say

__all__ = ["Imports", "measure_imports", "render_imports"]

STATEMENTS = {
    "nothing": "pass",
    "becket": "import becket",
    "becket.Peer": "from becket import Peer",
    "becket.blocking": "import becket.blocking",
    "msgspec": "import msgspec",
    "asyncio": "import asyncio",
    "anyio with its backend": "import anyio._backends._asyncio",
    "pygls": "from pygls.lsp.server import LanguageServer",
    "acp": "import acp",
    "mcp": "from mcp.server.lowlevel import Server",
}

Imports = dict[str, dict[str, float]]
"""What is imported to its figures: `ms`, `cpu_ms`."""


def measure_imports(plan: Plan) -> Imports:
    """Returns the medians of several starts of the interpreter, interleaved; what cannot be imported is left out."""
    known = {name: statement for name, statement in STATEMENTS.items() if start(statement) is not None}
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in known}
    for number in range(max(plan.rounds, 3)):
        for name, statement in known.items():
            figures = start(statement)
            if figures is not None:
                runs[name].append(figures)
        say(f"round {number + 1}  imports")
    return {
        name: {figure: statistics.median(one[figure] for one in figures) for figure in figures[0]}
        for name, figures in runs.items()
        if figures
    }


def start(statement: str) -> dict[str, float] | None:
    began = time.perf_counter()
    process = subprocess.Popen(
        [interpreter(), "-c", statement],
        cwd=ROOT,
        env=environment(),
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    took = time.perf_counter() - began
    process.returncode = status
    if status:
        return None
    return {"ms": took * 1e3, "cpu_ms": (usage.ru_utime + usage.ru_stime) * 1e3}


def render_imports(imports: Imports) -> str:
    """Returns the section as Markdown."""
    bare = imports["nothing"]
    lines = [
        "## Import",
        "",
        f"Over a bare interpreter ({bare['ms']:.0f} ms, {bare['cpu_ms']:.0f} ms CPU). becket may take 120 ms.",
        "",
        "| import | ms | ms CPU |",
        "|---|---:|---:|",
    ]
    for name, figures in imports.items():
        if name != "nothing":
            extra, cpu = figures["ms"] - bare["ms"], figures["cpu_ms"] - bare["cpu_ms"]
            lines.append(f"| {name} | {extra:.0f} | {cpu:.0f} |")
    return "\n".join([*lines, ""])
