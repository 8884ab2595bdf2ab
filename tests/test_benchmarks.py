"""The benchmarks can run, and take ratios of what ran at the same time.

Without the check of names, a rename would break a section unnoticed."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from benchmarks.roster import ENTRANTS_BY_NAME
from benchmarks.run import Plan, Results, Run, measure

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
NOT_OURS = {"results", "node", "__pycache__"}


def becket_imports(file: Path) -> Iterator[tuple[str, str]]:
    """Yields each module of becket and each name that a file imports from it; an empty name for the module itself."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        match node:
            case ast.ImportFrom(module=str(module), names=names) if module.split(".")[0] == "becket":
                yield from ((module, each.name) for each in names)
            case ast.Import(names=names):
                yield from ((each.name, "") for each in names if each.name.split(".")[0] == "becket")


def is_importable(module: str, name: str) -> bool:
    try:
        found = import_module(module)
        return not name or hasattr(found, name) or bool(import_module(f"{module}.{name}"))
    except ImportError:
        return False


def test_each_name_that_the_benchmarks_import_from_becket_exists() -> None:
    files = [file for file in BENCHMARKS.rglob("*.py") if not NOT_OURS.intersection(file.relative_to(BENCHMARKS).parts)]
    wanted = {(file.name, *each) for file in files for each in becket_imports(file)}
    assert wanted
    missing = sorted(f"{file}: {module}.{name}" for file, module, name in wanted if not is_importable(module, name))
    assert not missing


def run(entrant: str, rate: float, number: int, turn: int = 0, foreign: float = 0.0) -> Run:
    return Run(entrant, "W1", number, {"calls_s": rate, "foreign": foreign, "waited": foreign}, turn)


def ratio(results: Results) -> float | None:
    found = results.ratio("becket", "floor", "W1", "calls_s")
    return None if found is None else found.value


def test_a_ratio_is_taken_of_runs_in_the_same_turn() -> None:
    slow_machine = [run("becket", 0.9, 0, turn=0), run("floor", 1.0, 0, turn=0)]
    fast_machine = [run("becket", 5.0, 0, turn=1), run("floor", 10.0, 0, turn=1)]
    faster_machine = [run("becket", 80.0, 1, turn=0), run("floor", 100.0, 1, turn=0)]

    assert ratio(Results([*slow_machine, *fast_machine, *faster_machine])) == 0.8  # that of the medians is 0.5


def test_a_ratio_beside_an_entrant_without_turns_is_taken_in_the_same_round() -> None:
    turns = [run("becket", rate, 0, turn) for turn, rate in enumerate([4.0, 8.0, 6.0])]

    assert ratio(Results([*turns, run("floor", 10.0, 0), run("floor", 100.0, 1)])) == 0.6


def test_a_disturbed_turn_does_not_count() -> None:
    quiet = [run(name, rate, 0, turn) for turn in range(2) for name, rate in (("becket", 9.0), ("floor", 10.0))]
    disturbed = [run("becket", 1.0, 0, turn=2, foreign=0.5), run("floor", 10.0, 0, turn=2)]

    assert ratio(Results([*quiet, *disturbed])) == 0.9


def test_entrants_take_turns_within_a_round() -> None:
    results = Results()
    rounds: list[None] = []

    measure(
        Plan(entrants=("becket", "floor"), workloads=("W1",), rounds=1, quick=True),
        results,
        after_round=lambda: rounds.append(None),
    )

    assert not results.failed
    assert not results.skipped
    assert len(rounds) == 1
    turns = [(each.entrant, each.turn) for each in results.runs]
    assert sorted(turns) == [(name, turn) for name in ("becket", "floor") for turn in range(10)]
    assert [name for name, _ in turns[:4]] == ["becket", "floor", "floor", "becket"]
    assert ratio(results) is not None


def test_an_entrant_that_fails_in_its_turn_is_reported_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = dataclasses.replace(ENTRANTS_BY_NAME["floor"], host="floor/endpoint.py")  # ends at once
    monkeypatch.setitem(ENTRANTS_BY_NAME, "floor", broken)
    monkeypatch.setattr("benchmarks.run.why_not", lambda _: None)
    results = Results()

    measure(
        Plan(entrants=("becket", "floor"), workloads=("W1",), rounds=1, quick=True), results, after_round=lambda: None
    )

    assert list(results.failed) == ["floor W1"]
    assert {each.entrant for each in results.runs} == {"becket"}
    assert len(results.runs) == 10
