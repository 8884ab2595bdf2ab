"""Every extension in examples/ fails no conformance case; test_dialects.py and test_programs.py run some of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.conformance.case_selection import choose_cases
from tests.conformance.results import EXAMPLES, ON_BECKET, PROGRAMS, WITHOUT_BECKET, Program

from becket.conformance import CaseVerdict, ConformanceCase

PATIENCE = 20.0  # seconds for one message on a loaded machine
SLOW_TO_START = ("examples/other_languages/java",)  # half a second of CPU time for each process
SLOW_TO_READ = ("examples/other_languages/shell/uptime.sh",)  # starts jq for each message
OWN_FAMILIES = ("handshake", "shutdown", "lifecycle")  # the others test becket, which has tests of its own


def cases_for(program: Program) -> list[ConformanceCase]:
    cases = choose_cases(program.dialect, program.role)
    if program in ON_BECKET:
        return [case for case in cases if case.family in OWN_FAMILIES]
    if program.name in SLOW_TO_START:
        return [case for case in cases if not case.is_alone or case.family == "shutdown"]
    if program.name in SLOW_TO_READ:
        return [case for case in cases if "*100" not in case.script]
    return cases


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("program", [*ON_BECKET, *WITHOUT_BECKET], ids=lambda program: program.name)
def test_an_example_fails_no_case(program: Program) -> None:
    if missing := program.find_missing():
        pytest.skip(missing)

    results = program.run(cases_for(program), timeout=PATIENCE, workers=2)

    assert [f"{one.case.id}: {one.reason}" for one in results if one.verdict is CaseVerdict.FAIL] == []
    assert any(one.verdict in (CaseVerdict.PASS, CaseVerdict.TOLERATED) for one in results)


def test_every_extension_among_the_examples_is_run() -> None:
    manifests = {"becket.toml", "plugin.toml", "roder-extension.toml", "plugin.json"}
    folders = {path.parent for path in EXAMPLES.rglob("*") if path.name in manifests}
    folders = {folder.parent if folder.name.startswith(".") else folder for folder in folders}
    words = [word for program in PROGRAMS for word in (*program.command, program.made) if word]
    run = [Path(EXAMPLES.parent, word.split(":")[0]) for word in words]

    assert [str(folder) for folder in sorted(folders) if not any(path.is_relative_to(folder) for path in run)] == []
