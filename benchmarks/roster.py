"""Who takes part: every entrant, the programs of its host and child, and about how fast it is.

A new entrant is a folder in `entrants` and a line here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from benchmarks.paths import ENTRANTS, interpreter

__all__ = ["ENTRANTS_BY_NAME", "Entrant", "Kind"]

ALL = ("W1", "W2", "W3", "W4", "W5", "W6", "W7")


class Kind(Enum):
    BECKET = "becket"
    FLOOR = "hand-written"
    PEER = "peer"


@dataclass(frozen=True)
class Entrant:
    """One row of the table. `host` and `child` are scripts in `entrants`, with arguments after a space."""

    name: str
    title: str
    kind: Kind
    host: str
    child: str
    workloads: tuple[str, ...] = ALL
    speed: float = 1.0  # about, beside the asyncio floor: slow entrants get fewer operations a run
    packages: tuple[str, ...] = field(default=())  # whose versions the report names
    takes_turns: bool = False  # with the others that do, a tenth of a second each; for the ratios that are goals

    def host_command(self, settings: str) -> list[str]:
        program, *arguments = script(self.host)
        return [*runtime(program), program, settings, *arguments]

    def child_command(self) -> list[str]:
        program, *arguments = script(self.child)
        return [*runtime(program), program, *arguments]


def script(words: str) -> list[str]:
    program, *arguments = words.split()
    return [str(ENTRANTS / program), *arguments]


def runtime(program: str) -> list[str]:
    return ["node"] if program.endswith(".js") else [interpreter()]


ENTRANTS_BY_NAME = {
    entrant.name: entrant
    for entrant in (
        Entrant("becket", "becket, asyncio", Kind.BECKET, "becket/host.py", "becket/child.py", takes_turns=True),
        Entrant(
            "becket-async-handlers",
            "becket, `async def` handlers",
            Kind.BECKET,
            "becket/host.py",
            "becket/child.py async-handlers",
            ("W1", "W2"),
            takes_turns=True,
        ),
        Entrant(
            "becket-stream",
            "becket, events as an async iterator",
            Kind.BECKET,
            "becket/host.py stream",
            "becket/child.py",
            ("W3",),
            takes_turns=True,
        ),
        Entrant("becket-uvloop", "becket, uvloop", Kind.BECKET, "becket/host.py uvloop", "becket/child.py uvloop"),
        Entrant(
            "becket-mixed",
            "becket, asyncio host, blocking child",
            Kind.BECKET,
            "becket/host.py",
            "becket/blocking_child.py",
        ),
        Entrant(
            "becket-blocking",
            "becket, blocking at both ends",
            Kind.BECKET,
            "becket/blocking_host.py",
            "becket/blocking_child.py",
        ),
        Entrant("becket-trio", "becket, trio", Kind.BECKET, "becket/host.py trio", "becket/child.py trio", speed=0.4),
        Entrant(
            "becket-extension",
            "becket, an extension of plain functions",
            Kind.BECKET,
            "becket/extension_host.py",
            "becket/extension_child.py",
            ("W6",),
            takes_turns=True,
        ),
        Entrant(
            "becket-extension-async",
            "becket, an extension of coroutines",
            Kind.BECKET,
            "becket/extension_host.py",
            "becket/extension_child.py async",
            ("W6",),
            takes_turns=True,
        ),
        Entrant(
            "becket-native",
            "becket, `native` behind a gate",
            Kind.BECKET,
            "becket/host.py native",
            "becket/native_child.py",
            ("W1", "W2", "W3", "W5"),
            takes_turns=True,
        ),
        Entrant(  # its tool is a coroutine, as that of the MCP SDK's server is
            "becket-host",
            "becket, tool calls through a host",
            Kind.BECKET,
            "becket/tool_host.py",
            "becket/extension_child.py async",
            ("W1", "W2", "N4"),
            speed=0.2,
        ),
        Entrant(
            "becket-host-threads",
            "becket, tool calls through a host to a plain function",
            Kind.BECKET,
            "becket/tool_host.py",
            "becket/extension_child.py",
            ("W1", "W2"),
            speed=0.2,
        ),
        Entrant(
            "floor", "asyncio floor", Kind.FLOOR, "floor/asyncio_host.py", "floor/asyncio_child.py", takes_turns=True
        ),
        Entrant(
            "floor-tasks",
            "asyncio floor, a task a request",
            Kind.FLOOR,
            "floor/asyncio_host.py",
            "floor/asyncio_child.py tasks",
            ("W1", "W2"),
        ),
        Entrant(
            "floor-uvloop",
            "same under uvloop",
            Kind.FLOOR,
            "floor/asyncio_host.py uvloop",
            "floor/asyncio_child.py uvloop",
            packages=("uvloop",),
        ),
        Entrant(
            "floor-mixed",
            "asyncio host, blocking child",
            Kind.FLOOR,
            "floor/asyncio_host.py",
            "floor/blocking_child.py",
        ),
        Entrant(
            "floor-blocking",
            "blocking at both ends",
            Kind.FLOOR,
            "floor/blocking_host.py",
            "floor/blocking_child.py",
            packages=("msgspec",),
        ),
        Entrant(
            "floor-trio",
            "anyio streams on trio",
            Kind.FLOOR,
            "floor/trio_host.py",
            "floor/trio_child.py",
            speed=0.4,
            packages=("anyio", "trio"),
        ),
        Entrant(
            "node",
            "Node, hand-written",
            Kind.FLOOR,
            "node/host.js",
            "node/child.js",
            speed=0.5,
        ),
        Entrant(
            "vscode-jsonrpc",
            "vscode-jsonrpc",
            Kind.PEER,
            "node/vscode_host.js",
            "node/vscode_child.js",
            speed=0.15,
        ),
        Entrant(
            "python-lsp-jsonrpc",
            "python-lsp-jsonrpc",
            Kind.PEER,
            "pylsp/host.py",
            "pylsp/child.py",
            speed=0.4,
            packages=("python-lsp-jsonrpc",),
        ),
        Entrant(
            "acp",
            "agent-client-protocol",
            Kind.PEER,
            "acp/host.py",
            "acp/child.py",
            speed=0.1,
            packages=("agent-client-protocol",),
        ),
        Entrant("pygls", "pygls", Kind.PEER, "pygls/host.py", "pygls/child.py", speed=0.03, packages=("pygls",)),
        Entrant("mcp", "mcp SDK", Kind.PEER, "mcp/host.py", "mcp/child.py", speed=0.03, packages=("mcp",)),
        Entrant(
            "mcp-tools",
            "mcp SDK, a tool with its decorator",
            Kind.PEER,
            "mcp/host.py",
            "mcp/tool_child.py",
            ("W1", "W2"),
            speed=0.03,
            packages=("mcp",),
        ),
    )
}
