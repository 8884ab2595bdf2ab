"""How cases are run: which processes they get, what the program is probed for, and how long its start may take."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

import pytest
from tests.conformance.mutants.mutants import program

from becket.conformance import CaseVerdict, ProcessLink, Role, load_suite, run_cases, select_cases

pytestmark = pytest.mark.process

PATIENCE = 20.0


class CountedLinks:
    """Starts a program, and counts how often."""

    def __init__(self, command: Sequence[str]) -> None:
        self.count = 0
        self._command = command

    def __call__(self) -> ProcessLink:
        self.count += 1
        return ProcessLink(self._command)


def run(ids: list[str], open_link: Any, timeout: float = PATIENCE) -> dict[str, CaseVerdict]:
    suite = load_suite("native")
    cases = select_cases(suite.cases, Role.EXTENSION, ids)
    results = run_cases(suite, cases, open_link, timeout=timeout, workers=1)
    return {result.case.id: result.verdict for result in results}


def test_cases_share_a_process_whatever_stands_between_them() -> None:
    links = CountedLinks(program("native", Role.EXTENSION, {}))

    verdicts = run(["N-FR-001", "N-SD-002", "N-RP-001", "N-RP-031", "N-SD-003"], links)

    assert list(verdicts.items()) == [
        (id, CaseVerdict.PASS) for id in ("N-FR-001", "N-RP-001", "N-RP-031", "N-SD-002", "N-SD-003")
    ]
    assert links.count == 4  # what it offers, the three that share one, and two that end it


def test_a_program_is_probed_only_for_what_a_case_needs() -> None:
    ends_when_probed = program("native", Role.EXTENSION, {"exit": ['{"params": {"command": "conform_count"}}']})

    assert run(["N-RP-033"], lambda: ProcessLink(ends_when_probed)) == {"N-RP-033": CaseVerdict.PASS}


def test_a_program_that_starts_slowly_has_the_time_of_the_handshake() -> None:
    command = f"sleep 1; exec {shlex.join(program('native', Role.EXTENSION, {}))}"

    assert run(["N-SD-002"], lambda: ProcessLink(["sh", "-c", command]), timeout=0.1) == {"N-SD-002": CaseVerdict.PASS}
