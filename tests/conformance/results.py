"""Runs programs against the conformance cases and prints the table of docs/conformance.md.

`python -m tests.conformance.results` runs those that are installed; names as arguments choose some of them."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from becket.conformance import HostLink, ProcessLink, Role, load_suite, run_cases, select_cases
from becket.conformance.report import count_verdicts

ROOT = Path(__file__).parents[2]
EXTENSIONS = ROOT / "examples" / "extensions"
MCP_SERVERS = ROOT / ".node_cache" / "node_modules" / "@modelcontextprotocol"
LANGUAGE_SERVERS = ROOT / ".venv-lsp" / "bin"
KITS = ROOT / "sdk"
CONFORM = "examples/conformance/extension.py"
HOST = "examples/conformance/host.py"
CORE = "examples/conformance/cigen_core.py"
MCP_CLIENT = "examples/conformance/mcp_client.py"
LANGUAGE_CLIENT = "examples/conformance/language_client.py"


class Program(Struct, frozen=True):
    """A program under test; it is skipped if a file of it does not exist."""

    name: str
    command: tuple[str, ...]
    dialect: str = "native"
    role: Role = Role.EXTENSION

    @property
    def is_installed(self) -> bool:
        files = [word for word in self.command if word.startswith(str(ROOT))]
        return shutil.which(self.command[0]) is not None and all(Path(file).exists() for file in files)


def python(*words: str) -> tuple[str, ...]:
    return (sys.executable, *words)


PROGRAMS = [
    Program(CONFORM, python(CONFORM)),
    Program(HOST, python(HOST, "{child}"), role=Role.HOST),
    *(
        Program(f"examples/extensions/{name}", python(str(EXTENSIONS / name / f"{name}.py")))
        for name in ("notes", "eliza", "census", "guard")
    ),
    Program("examples/extensions/dice", ("node", str(EXTENSIONS / "dice" / "dice.js"))),
    Program("the kit for TypeScript", ("node", str(KITS / "typescript" / "build" / "test" / "conform.js"))),
    Program("the kit for Go", (str(KITS / "go" / "build" / "conform"),)),
    Program("the kit for Rust", (str(KITS / "rust" / "target" / "debug" / "examples" / "conform"),)),
    *(Program(CONFORM, python(CONFORM), dialect) for dialect in ("synaps", "nexo", "morphir", "roder")),
    Program("examples/dialects/cigen/served.py", python("examples/dialects/cigen/served.py"), "cigen"),
    Program("examples/dialects/cigen/provider.py", python("examples/dialects/cigen/provider.py"), "cigen"),
    Program(f"becket mcp serve {CONFORM}", python("-m", "becket", "mcp", "serve", CONFORM), "mcp"),
    *(
        Program(
            f"@modelcontextprotocol/server-{name}",
            ("node", str(MCP_SERVERS / f"server-{name}" / "dist" / "index.js"), *words),
            "mcp",
        )
        for name, words in (("everything", ()), ("memory", ()), ("filesystem", ("examples",)))
    ),
    Program("examples/lsp/spelling_server.py", python("examples/lsp/spelling_server.py"), "lsp"),
    Program("ruff server", (str(LANGUAGE_SERVERS / "ruff"), "server"), "lsp"),
    Program("pylsp", (str(LANGUAGE_SERVERS / "pylsp"),), "lsp"),
    Program("jedi-language-server", (str(LANGUAGE_SERVERS / "jedi-language-server"),), "lsp"),
    *(
        Program(HOST, python(HOST, "--dialect", dialect, "{child}"), dialect, Role.HOST)
        for dialect in ("synaps", "nexo", "morphir", "mcp")
    ),
    Program(HOST, python(HOST, "{manifest}"), "roder", Role.HOST),
    Program(CORE, python(CORE, "{child}"), "cigen", Role.HOST),
    Program(MCP_CLIENT, python(MCP_CLIENT, "{child}"), "mcp", Role.HOST),
    Program(LANGUAGE_CLIENT, python(LANGUAGE_CLIENT, "{child}"), "lsp", Role.HOST),
]


def rows(chosen: list[str]) -> Iterator[str]:
    for program in PROGRAMS:
        if (chosen and program.name not in chosen) or not program.is_installed:
            continue
        suite = load_suite(program.dialect)

        def open_link(program: Program = program) -> ProcessLink | HostLink:
            if program.role is Role.HOST:
                return HostLink(program.command, load_suite(program.dialect).setups[Role.HOST].files)
            return ProcessLink(program.command, cwd=str(ROOT))

        cases = select_cases(suite.cases, program.role)
        counts = count_verdicts(run_cases(suite, cases, open_link, variables={"plugin_id": "conform"}, timeout=10.0))
        cells = [f"`{program.name}`", program.dialect, program.role, *map(str, counts.values())]
        yield f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    print("| program | dialect | role | pass | tolerated | fail | not offered |\n|---|---|---|---|---|---|---|")
    for row in rows(sys.argv[1:]):
        print(row, flush=True)
