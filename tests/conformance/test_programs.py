"""becket's own programs pass the conformance cases: the extension and the host of examples/conformance."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

import pytest

from becket.conformance import CaseVerdict, HostLink, ProcessLink, Role, load_suite, run_cases, select_cases
from becket.conformance.runner import Offers, find_offers

EXAMPLES = Path(__file__).parents[2] / "examples"
EXTENSION = [sys.executable, str(EXAMPLES / "conformance" / "extension.py")]
HOST = [sys.executable, str(EXAMPLES / "conformance" / "host.py"), "{child}"]
PATIENCE = 30.0  # seconds for one message on a loaded machine
WORKERS = 1  # families run side by side, and one after another the cases of a family share a process

pytestmark = [pytest.mark.process, pytest.mark.slow]


def families(role: Role) -> list[str]:
    return [*dict.fromkeys(case.family for case in load_suite("native").cases if case.role is role)]


def open_link(role: Role) -> ProcessLink | HostLink:
    return ProcessLink(EXTENSION) if role is Role.EXTENSION else HostLink(HOST, load_suite("native").setups[role].files)


@cache
def offers(role: Role) -> Offers:
    suite = load_suite("native")
    needs = {need for case in select_cases(suite.cases, role) for need in case.needs}
    return find_offers(suite, suite.setups[role], lambda: open_link(role), needs, timeout=PATIENCE)


def failures_of(role: Role, family: str) -> list[str]:
    suite = load_suite("native")
    cases = select_cases(suite.cases, role, families=[family])
    results = run_cases(suite, cases, lambda: open_link(role), timeout=PATIENCE, workers=WORKERS, offers=offers(role))
    return [f"{one.case.id} {one.verdict}: {one.reason}" for one in results if one.verdict is not CaseVerdict.PASS]


@pytest.mark.parametrize("family", families(Role.EXTENSION))
def test_an_extension_of_becket_passes_every_case(family: str) -> None:
    assert failures_of(Role.EXTENSION, family) == []


@pytest.mark.parametrize("family", families(Role.HOST))
def test_a_host_of_becket_passes_every_case(family: str) -> None:
    assert failures_of(Role.HOST, family) == []
