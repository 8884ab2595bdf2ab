"""Clients of programs that others have written: becket's beside that of the program's own kit, with the same server."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.paths import ENTRANTS, ROOT, interpreter
from benchmarks.roster import Entrant, Kind
from benchmarks.run import HostFailed, Plan, run_host, say

__all__ = ["ClientFigures", "measure_clients", "render_clients"]

CALLS, QUICK_CALLS = 2_000, 300
BECKET = "becket"
NODE_SERVERS = ROOT / ".node_cache" / "node_modules"

ClientFigures = dict[str, dict[str, dict[str, float]] | str]
"""The figures by request and client; or why there are none."""


@dataclass(frozen=True)
class Client(Entrant):
    """A client, and the command of its server."""

    server: tuple[str, ...] = ()

    def child_command(self) -> list[str]:
        return list(self.server)


@dataclass(frozen=True)
class Errand:
    """The same request to the same server by two clients, each a script in `entrants`."""

    title: str
    server: tuple[str, ...]
    ours: str
    theirs: str
    kit: str
    needs: Path | None = None  # what must be there; `make node` installs it

    def clients(self) -> dict[str, Client]:
        scripts = {BECKET: self.ours, self.kit: self.theirs}
        return {name: Client(name, name, Kind.PEER, script, "", server=self.server) for name, script in scripts.items()}


EVERYTHING = NODE_SERVERS / "@modelcontextprotocol" / "server-everything" / "dist" / "index.js"
HOVER = ENTRANTS / "pygls" / "hover_server.py"
ERRANDS = (
    Errand(
        "a tool call, a server of the MCP SDK",
        (interpreter(), str(ENTRANTS / "mcp" / "child.py")),
        "becket/mcp_client.py echo text",
        "mcp/client.py echo text",
        "mcp SDK",
    ),
    Errand(
        "a tool call, the reference server of MCP in Node",
        ("node", str(EVERYTHING), "stdio"),
        "becket/mcp_client.py echo message",
        "mcp/client.py echo message",
        "mcp SDK",
        EVERYTHING,
    ),
    Errand(
        "a hover, a server on the stdio of pygls",
        (interpreter(), str(HOVER)),
        "becket/lsp_client.py",
        "pygls/lsp_client.py",
        "pygls",
    ),
    Errand(
        "a hover, the same server on becket's",
        (interpreter(), str(HOVER), BECKET),
        "becket/lsp_client.py",
        "pygls/lsp_client.py",
        "pygls",
    ),
)


def measure_clients(plan: Plan) -> ClientFigures:
    """Returns the medians over the plan's rounds; the clients of one server take turns."""
    settings = {"calls": QUICK_CALLS if plan.quick else CALLS, "warmup": 100}
    return {errand.title: measure_errand(errand, settings, plan) for errand in ERRANDS}


def measure_errand(errand: Errand, settings: dict[str, Any], plan: Plan) -> dict[str, dict[str, float]] | str:
    if errand.needs is not None and not errand.needs.exists():
        return "its server is not installed: run `make node`"
    rounds: dict[str, list[dict[str, float]]] = {name: [] for name in errand.clients()}
    for number in range(plan.rounds):
        for name, client in errand.clients().items():
            try:
                rounds[name].append(run_host(client, settings, is_pinned=True, nice=plan.nice))
            except HostFailed as error:
                return f"{name}: {error}"
        say(f"round {number + 1}  {errand.title}")
    return {
        name: {figure: statistics.median(one[figure] for one in runs) for figure in runs[0]}
        for name, runs in rounds.items()
    }


def render_clients(results: ClientFigures) -> str:
    """Returns the section as Markdown."""
    lines = [
        "## Clients of other programs",
        "",
        "One call after the other to the same server, on a core of its own: the median of a round trip, what it costs",
        "the client, many calls at once, and the time from the start of the server to the end of the handshake.",
        "",
        "| what | client | us a call | us CPU of the client | 64 at once, calls/s | start, ms |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for title, clients in results.items():
        if isinstance(clients, str):
            lines.append(f"| {title} | not measured: {clients} | | | | |")
            continue
        for name, figures in clients.items():
            cells = (figures["p50_us"], figures["host_cpu_us"], figures["at_once"], figures["start_ms"])
            lines.append(f"| {title} | {name} | " + " | ".join(f"{cell:,.0f}" for cell in cells) + " |")
    return "\n".join([*lines, ""])
