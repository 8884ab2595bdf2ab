"""Programs that are run against the conformance cases; as a program it prints the table of docs/conformance.md.

`python -m tests.conformance.results` runs those that are installed; names as arguments choose some of them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from becket.conformance import (
    CaseResult,
    ConformanceCase,
    HostLink,
    ProcessLink,
    Role,
    load_suite,
    run_cases,
    select_cases,
)
from becket.conformance.report import count_verdicts

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
JAVA = EXAMPLES / "other_languages" / "java"
TRANSFORMER = EXAMPLES / "dialects" / "morphir" / "transformer"
NODE_MODULES = ROOT / ".node_cache" / "node_modules"
MCP_SERVERS = NODE_MODULES / "@modelcontextprotocol"
TYPESCRIPT_SERVER = NODE_MODULES / "typescript-language-server" / "lib" / "cli.mjs"
LANGUAGE_SERVERS = ROOT / ".venv-lsp" / "bin"
MCP_KIT = ROOT / ".venv-mcp" / "bin"
CLIENTS = ROOT / "tests" / "conformance" / "clients"
KITS = ROOT / "sdk"
CONFORM = "examples/conformance/extension.py"
HOST = "examples/conformance/host.py"
CORE = "examples/conformance/cigen_core.py"
MCP_CLIENT = "examples/conformance/mcp_client.py"
LANGUAGE_CLIENT = "examples/conformance/language_client.py"


class Program(Struct, frozen=True):
    """A program under test."""

    name: str
    command: tuple[str, ...]
    dialect: str = "native"
    role: Role = Role.EXTENSION
    id: str = "conform"
    """What a host calls the extension."""
    made: str = ""
    """A file that the build makes."""
    build: tuple[str, ...] = ()
    """The command of the build, in the folder of the program."""

    def find_missing(self) -> str:
        """Returns what the program lacks here, or an empty text; builds it first if that is possible."""
        made = ROOT / self.made
        if self.made and not made.exists() and shutil.which(self.build[0]):
            folder = made.parents[1] if self.build[0] == "go" else JAVA
            subprocess.run(self.build, cwd=folder, check=False)
        files = [self.made, *(word for word in self.command if word.startswith(str(ROOT)) and ":" not in word)]
        missing = [str(file) for file in files if file and not (ROOT / file).exists()]
        if shutil.which(self.command[0]) is None:
            missing.insert(0, self.command[0])
        return f"not installed or not built: {', '.join(missing)}" if missing else ""

    def run(self, cases: Sequence[ConformanceCase], *, timeout: float, workers: int) -> list[CaseResult]:
        """Runs cases of its dialect and role against the program."""
        suite = load_suite(self.dialect)
        files = suite.setups[Role.HOST].files

        def open_link() -> ProcessLink | HostLink:
            if self.role is Role.HOST:
                return HostLink(self.command, files)
            return ProcessLink(self.command, cwd=str(ROOT))

        return run_cases(suite, cases, open_link, variables={"plugin_id": self.id}, timeout=timeout, workers=workers)


def python(*words: str) -> tuple[str, ...]:
    return (sys.executable, *words)


def example(path: str, *command: str, dialect: str = "native", id: str = "conform") -> Program:
    """Returns an example: the program of this file, with the interpreter of its command."""
    return Program(f"examples/{path}", (*command, str(EXAMPLES / path)), dialect, id=id)


def on_becket(path: str, dialect: str = "native", id: str = "conform") -> Program:
    return example(path, sys.executable, dialect=dialect, id=id)


ON_BECKET = [
    *(on_becket(f"extensions/{name}/{name}.py") for name in ("notes", "eliza", "census", "guard")),
    on_becket("dialects/synaps/served.py", "synaps"),
    on_becket("dialects/nexo/served.py", "nexo"),
    on_becket("dialects/roder/served/served.py", "roder", "served"),
    on_becket("dialects/morphir/served.py", "morphir"),
]
"""Examples that use becket."""

WITHOUT_BECKET = [
    example("extensions/dice/dice.js", "node"),
    example("other_languages/python/pages.py", sys.executable),
    example("other_languages/shell/uptime.sh", "bash"),
    Program(
        "examples/other_languages/java",
        (
            *("java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"),
            *("-cp", f"{JAVA}/target/classes:{JAVA}/target/dependency/*", "Words"),
        ),
        made=str(JAVA / "target" / "classes" / "Words.class"),
        build=("mvn", "-o", "-q", "-B", "package"),
    ),
    example("dialects/synaps/clock/clock.js", "node", dialect="synaps"),
    example("dialects/synaps/guard/guard.sh", "sh", dialect="synaps"),
    example("dialects/synaps/journal/journal.py", sys.executable, dialect="synaps"),
    example("dialects/nexo/lamp/lamp.sh", "sh", dialect="nexo"),
    example("dialects/nexo/weather/weather.py", sys.executable, dialect="nexo"),
    example("dialects/roder/dice/dice.js", "node", dialect="roder", id="dice"),
    example("dialects/roder/workshop/workshop.py", sys.executable, dialect="roder", id="workshop"),
    example("dialects/morphir/validator.py", sys.executable, dialect="morphir"),
    Program(
        "examples/dialects/morphir/transformer",
        (str(TRANSFORMER / "build" / "transformer"),),
        "morphir",
        made=str(TRANSFORMER / "build" / "transformer"),
        build=("go", "build", "-o", "build/transformer", "main.go"),
    ),
    example("dialects/cigen/provider.py", sys.executable, dialect="cigen"),
    example("agent/clock_server.py", sys.executable, dialect="mcp"),
]
"""Examples that use nothing of becket."""

PROGRAMS = [
    Program(CONFORM, python(CONFORM)),
    Program(HOST, python(HOST, "{child}"), role=Role.HOST),
    Program("the kit for TypeScript", ("node", str(KITS / "typescript" / "build" / "test" / "conform.js"))),
    Program("the kit for Go", (str(KITS / "go" / "build" / "conform"),)),
    Program("the kit for Rust", (str(KITS / "rust" / "target" / "debug" / "examples" / "conform"),)),
    *(Program(CONFORM, python(CONFORM), dialect) for dialect in ("synaps", "nexo", "morphir", "roder")),
    *ON_BECKET,
    on_becket("dialects/cigen/served.py", "cigen"),
    on_becket("lsp/spelling_server.py", "lsp"),
    *WITHOUT_BECKET,
    Program(f"becket mcp serve {CONFORM}", python("-m", "becket", "mcp", "serve", CONFORM), "mcp"),
    *(
        Program(
            f"@modelcontextprotocol/server-{name}",
            ("node", str(MCP_SERVERS / f"server-{name}" / "dist" / "index.js"), *words),
            "mcp",
        )
        for name, words in (("everything", ()), ("memory", ()), ("filesystem", ("examples",)))
    ),
    Program("ruff server", (str(LANGUAGE_SERVERS / "ruff"), "server"), "lsp"),
    Program("pylsp", (str(LANGUAGE_SERVERS / "pylsp"),), "lsp"),
    Program("jedi-language-server", (str(LANGUAGE_SERVERS / "jedi-language-server"),), "lsp"),
    Program("typescript-language-server", ("node", str(TYPESCRIPT_SERVER), "--stdio"), "lsp"),
    *(
        Program(HOST, python(HOST, "--dialect", dialect, "{child}"), dialect, Role.HOST)
        for dialect in ("synaps", "nexo", "morphir", "mcp")
    ),
    Program(HOST, python(HOST, "{manifest}"), "roder", Role.HOST),
    Program(CORE, python(CORE, "{child}"), "cigen", Role.HOST),
    Program(MCP_CLIENT, python(MCP_CLIENT, "{child}"), "mcp", Role.HOST),
    Program(LANGUAGE_CLIENT, python(LANGUAGE_CLIENT, "{child}"), "lsp", Role.HOST),
    Program(
        "the official client of MCP",
        (str(MCP_KIT / "python"), str(CLIENTS / "official_mcp.py"), "{child}"),
        "mcp",
        Role.HOST,
    ),
    Program(
        "the client of pygls",
        (str(LANGUAGE_SERVERS / "python"), str(CLIENTS / "pygls_client.py"), "{child}"),
        "lsp",
        Role.HOST,
    ),
]


def rows(chosen: list[str]) -> Iterator[str]:
    for program in PROGRAMS:
        if (chosen and program.name not in chosen) or program.find_missing():
            continue
        cases = select_cases(load_suite(program.dialect).cases, program.role)
        counts = count_verdicts(program.run(cases, timeout=20.0, workers=4))
        cells = [f"`{program.name}`", program.dialect, program.role, *map(str, counts.values())]
        yield f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    print("| program | dialect | role | pass | tolerated | fail | not offered |\n|---|---|---|---|---|---|---|")
    for row in rows(sys.argv[1:]):
        print(row, flush=True)
