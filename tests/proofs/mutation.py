"""Changes the pure parts and the host's decisions in small ways, and counts the changes that no test notices.

mutmut makes the mutants and runs the tests that reach each one. Mutants that behave as the code does stand in
`equivalent_mutants.toml`, each with its reason; they count neither way.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct, convert
from tests.proofs.proof import Proof

__all__ = ["AREAS", "Area", "Equivalent", "Mutant", "parse_diff", "parse_results", "prove_mutants_are_killed"]

ROOT = Path(__file__).parents[2]
EQUIVALENT = Path(__file__).with_name("equivalent_mutants.toml")
LEAST = 90  # per cent of the mutants of each area that tests must notice
NOTICED = {"killed", "timeout", "segfault"}
COPIED = ("src", "tests", "schemas", "docs", "examples", "pyproject.toml", "README.md", "CHANGELOG.md", "Makefile")


class Area(Struct, frozen=True):
    """Modules that are mutated together, and the tests that must notice it."""

    modules: tuple[str, ...]
    tests: tuple[str, ...]


AREAS = {
    "framing": Area(("framing/*",), ("tests/framing",)),
    "messages": Area(("jsonrpc/*",), ("tests/jsonrpc",)),
    "permissions": Area(("permissions/*",), ("tests/permissions/test_gate.py", "tests/host/test_permissions.py")),
    "consent": Area(("host/starting/start_check",), ("tests/host/starting/test_start_check.py",)),
    "restarts": Area(
        ("host/restart", "host/breaker", "host/lifecycle"),
        ("tests/host/test_restart.py", "tests/host/test_breaker.py", "tests/host/test_lifecycle.py"),
    ),
    "starts": Area(
        ("host/starting/environment", "host/starting/start_order"),
        ("tests/host/starting/test_environment.py", "tests/host/starting/test_start_order.py"),
    ),
}

# Searches of hypothesis start from one seed, so that a second run finds the same.
PYTEST = ("-p", "no:cacheprovider", "-p", "no:xdist", "-p", "tests.proofs.untimed", "--quick", "--hypothesis-seed=0")
PYTEST += ("--timeout=0", "--ignore=tests/framing/test_work.py")
SETTINGS = """
[tool.mutmut]
source_paths = ["src"]
only_mutate = {modules}
also_copy = ["schemas", "docs", "examples"]
pytest_add_cli_args = {pytest}
pytest_add_cli_args_test_selection = {tests}
use_git_change_detection = false
"""


class Mutant(Struct, frozen=True):
    """One change, as its old and new lines."""

    function: str
    was: str
    becomes: str


class Equivalent(Struct, frozen=True, forbid_unknown_fields=True):
    """A mutant that no test can notice, and why."""

    function: str
    was: str
    becomes: str
    reason: str

    @property
    def mutant(self) -> Mutant:
        return Mutant(self.function, self.was, self.becomes)


class Score(Struct, frozen=True):
    """The outcome of the mutants of one module."""

    noticed: int
    survived: int
    equivalent: int

    @property
    def per_cent(self) -> float:
        return 100 * self.noticed / max(1, self.noticed + self.survived)


def prove_mutants_are_killed(names: Iterable[str], at_once: int, earlier: str) -> Proof:
    """Returns a table with a row for each module; rows of areas that are not named stay as they were measured."""
    rows = {line.split("`")[1]: line for line in earlier.splitlines() if line.startswith("| `")}
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    holds = True
    for name in names:
        results, survivors = run_mutants(AREAS[name], at_once)
        scores = score_modules(results, survivors)
        rows |= {module: row(module, name, score, today) for module, score in scores.items()}
        total = score_all(scores.values())
        print(f"{name}: {total.per_cent:.1f} % of {total.noticed + total.survived} mutants", flush=True)
        holds = holds and total.per_cent >= LEAST
    lines = [
        "Small changes to the code (mutants), made by [mutmut](https://mutmut.readthedocs.io), that the tests of their",
        f"area notice: at least {LEAST} % in each area. Those that behave as the code does count neither way: each is",
        "listed with its reason in `tests/proofs/equivalent_mutants.toml`.",
        "",
        "| module | area | mutants | not noticed | equivalent | noticed | measured |",
        "|---|---|--:|--:|--:|--:|---|",
        *(rows[module] for module in sorted(rows)),
    ]
    return Proof(lines, holds)


def row(module: str, area: str, score: Score, day: str) -> str:
    count = score.noticed + score.survived
    return f"| `{module}` | {area} | {count} | {score.survived} | {score.equivalent} | {score.per_cent:.1f} % | {day} |"


def score_all(scores: Iterable[Score]) -> Score:
    found = list(scores)
    return Score(*(sum(getattr(one, field) for one in found) for field in Score.__struct_fields__))


# -- one run of mutmut


def run_mutants(area: Area, at_once: int) -> tuple[dict[str, str], dict[str, Mutant]]:
    """Returns the outcome of each mutant, and the changes that no test has noticed; these are printed as well."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy_project(Path(folder), area)
        with open(Path(folder) / "run.log", "w+b") as log:
            command = [sys.executable, "-m", "mutmut", "run", "--max-children", str(at_once)]
            code = subprocess.run(command, cwd=folder, stdout=log, stderr=log, check=False).returncode
            log.seek(0)
            if code:
                raise RuntimeError(f"mutmut ended with {code}:\n{log.read()[-4000:].decode(errors='replace')}")
        results = parse_results(run_tool(folder, "results", "--all", "true"))
        names = [name for name, status in results.items() if status not in NOTICED]
        with ThreadPoolExecutor(at_once) as workers:
            diffs = list(workers.map(lambda name: run_tool(folder, "show", name), names))
    for diff in diffs:
        print(diff, flush=True)
    return results, {name: parse_diff(name, diff) for name, diff in zip(names, diffs, strict=True)}


def copy_project(folder: Path, area: Area) -> None:
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, folder / name)
    modules = [f"src/becket/{module}.py" for module in area.modules]
    settings = SETTINGS.format(modules=modules, pytest=list(PYTEST), tests=list(area.tests))
    with open(folder / "pyproject.toml", "a", encoding="utf-8") as file:
        file.write(settings)


def run_tool(folder: str, *arguments: str) -> str:
    command = [sys.executable, "-m", "mutmut", *arguments]
    return subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, check=True, encoding="utf-8").stdout


# -- the output of mutmut


def parse_results(text: str) -> dict[str, str]:
    """Returns the status of each mutant by its name: `becket.framing.framing.x_name__mutmut_1: killed`."""
    found = (line.strip().rpartition(": ") for line in text.splitlines() if "__mutmut_" in line)
    return {name: status for name, _, status in found}


def parse_diff(name: str, diff: str) -> Mutant:
    """Returns what a mutant changes, without the name under which mutmut files it: that counts from one."""
    removed = [line[1:].strip() for line in diff.splitlines() if re.match(r"-(?!--)", line)]
    added = [line[1:].strip() for line in diff.splitlines() if re.match(r"\+(?!\+\+)", line)]
    return Mutant(function_of(name), " ".join(removed), " ".join(added))


def function_of(name: str) -> str:
    """Returns the dotted name of a mutant's function: `m.xǁBreakerǁadmit__mutmut_1` is one of `m.Breaker.admit`."""
    module, _, mangled = name.partition("__mutmut_")[0].rpartition(".")
    return f"{module}.{mangled.removeprefix('x_').removeprefix('xǁ').replace('ǁ', '.')}"


def module_of(name: str) -> str:
    return name.partition("__mutmut_")[0].rpartition(".")[0]


def score_modules(results: dict[str, str], survivors: dict[str, Mutant]) -> dict[str, Score]:
    known = {one.mutant for one in load_equivalent()}
    equivalent = Counter(module_of(name) for name, mutant in survivors.items() if mutant in known)
    survived = Counter(module_of(name) for name, mutant in survivors.items() if mutant not in known)
    noticed = Counter(module_of(name) for name, status in results.items() if status in NOTICED)
    modules = {module_of(name) for name in results}
    return {module: Score(noticed[module], survived[module], equivalent[module]) for module in modules}


def load_equivalent() -> list[Equivalent]:
    return convert(tomllib.loads(EQUIVALENT.read_text(encoding="utf-8")).get("mutant", []), list[Equivalent])
