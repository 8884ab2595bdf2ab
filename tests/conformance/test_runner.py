"""How cases are run: which processes they get, what the program is probed for, and how long its start may take."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

import pytest
from tests.conformance.mutants.mutants import program

from becket.conformance import CaseVerdict, HostLink, ProcessLink, Role, load_suite, run_cases, select_cases
from becket.conformance.runner import Offers, Worker

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


class CountedHostLinks(CountedLinks):
    """Starts a host of nexo, and counts how often."""

    def __call__(self) -> Any:
        self.count += 1
        return HostLink(self._command, load_suite("nexo").setups[Role.HOST].files)


def run_host(ids: list[str], open_link: Any, timeout: float = PATIENCE) -> dict[str, CaseVerdict]:
    return run(ids, open_link, timeout, dialect="nexo", role=Role.HOST)


def run(
    ids: list[str],
    open_link: Any,
    timeout: float = PATIENCE,
    dialect: str = "native",
    role: Role = Role.EXTENSION,
) -> dict[str, CaseVerdict]:
    suite = load_suite(dialect)
    cases = select_cases(suite.cases, role, ids)
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


# -- hosts


def test_cases_share_a_host_that_waits_for_its_next_order() -> None:
    links = CountedHostLinks(program("nexo", Role.HOST, {}))

    verdicts = run_host(["NEXH-RQ-003", "NEXH-RQ-006", "NEXH-RQ-008"], links)

    assert set(verdicts.values()) == {CaseVerdict.PASS}
    assert links.count == 2  # what it offers, and the three cases


def test_a_host_whose_call_is_still_open_is_not_shared() -> None:
    links = CountedHostLinks(program("nexo", Role.HOST, {}))

    verdicts = run_host(["NEXH-RQ-001", "NEXH-RQ-003"], links)

    assert set(verdicts.values()) == {CaseVerdict.PASS}
    assert links.count == 3


def test_a_host_that_starts_slowly_has_more_time_for_its_first_message() -> None:
    command = f"sleep 1; exec {shlex.join(program('nexo', Role.HOST, {})[:-1])} {{child}}"

    assert run_host(["NEXH-HS-001"], CountedHostLinks(["sh", "-c", command]), timeout=0.1) == {
        "NEXH-HS-001": CaseVerdict.PASS
    }


def test_a_run_that_is_stopped_while_a_program_starts_does_not_wait_for_it() -> None:
    suite = load_suite("native")
    (case,) = select_cases(suite.cases, Role.EXTENSION, ["N-FR-001"])
    silent = program("native", Role.EXTENSION, {"ignore": ['{"method": "becket.conform/no_such_method"}']})

    def open_link() -> ProcessLink:
        link = ProcessLink(silent)
        worker.stop()
        return link

    worker = Worker(suite, suite.setups[Role.EXTENSION], open_link, Offers(frozenset()), timeout=3600)
    assert worker.run(case).verdict is CaseVerdict.FAIL
