"""The output of mutmut is parsed, and the lists of the proof name existing files."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.proofs.mutation import (
    AREAS,
    PYTEST,
    ROOT,
    Area,
    Mutant,
    function_of,
    load_equivalent,
    parse_diff,
    parse_results,
    score_modules,
)

NAME = "becket.host.breaker.xǁBreakerǁ_open__mutmut_3"
DIFF = f"""# {NAME}: survived
--- src/becket/host/breaker.py
+++ src/becket/host/breaker.py
@@ -1,3 +1,3 @@
 def _open(self, now: float, seconds: float) -> None:
-    self._period += 1
+    self._period += 2
     self._is_open = True
"""


def test_a_diff_is_parsed_to_the_change_of_a_mutant() -> None:
    assert parse_diff(NAME, DIFF) == Mutant(
        "becket.host.breaker.Breaker._open", "self._period += 1", "self._period += 2"
    )


def test_a_plain_function_is_named_without_its_prefix() -> None:
    assert function_of("becket.host.restart.x_compute_delay__mutmut_12") == "becket.host.restart.compute_delay"


def test_survivors_count_unless_they_are_known_to_be_equivalent() -> None:
    known = load_equivalent()[0]
    module = known.function.partition(".Breaker")[0]
    statuses = ["killed", "survived", "timeout", "no tests"]
    lines = [f"    {module}.x_a__mutmut_{number}: {status}" for number, status in enumerate(statuses, 1)]
    results = parse_results("\n".join([*lines, "some other line"]))
    survivors = {f"{module}.x_a__mutmut_2": known.mutant, f"{module}.x_a__mutmut_4": Mutant("f", "a", "b")}

    (score,) = score_modules(results, survivors).values()

    assert (score.noticed, score.survived, score.equivalent) == (2, 1, 1)
    assert round(score.per_cent, 1) == 66.7


@pytest.mark.parametrize("area", AREAS.values(), ids=AREAS)
def test_an_area_names_existing_modules_and_tests(area: Area) -> None:
    for module in area.modules:
        assert list((ROOT / "src" / "becket").glob(f"{module}.py")), module
    assert all((ROOT / path).exists() for path in area.tests)


@pytest.mark.process
def test_the_tests_can_be_run_as_mutmut_runs_them() -> None:
    command = [sys.executable, "-m", "pytest", *PYTEST, "--collect-only", "-q", "tests/test_limits.py"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=60, encoding="utf-8", check=False)
    assert run.returncode == 0, run.stdout + run.stderr


def test_an_equivalent_mutant_is_listed_once_with_the_line_that_there_is_and_a_reason() -> None:
    listed = load_equivalent()
    assert len({one.mutant for one in listed}) == len(listed)
    for one in listed:
        assert one.reason.endswith(".")
        assert find_line(one.function, one.was), one


def find_line(function: str, line: str) -> bool:
    """Returns whether the module of a function has this line; several are joined by spaces."""
    parts = function.split(".")
    paths = [ROOT / "src" / "/".join(parts[:end]) for end in range(len(parts), 1, -1)]
    text = next(
        path.with_suffix(".py").read_text(encoding="utf-8") for path in paths if path.with_suffix(".py").exists()
    )
    return line in " ".join(part.strip() for part in text.splitlines())
