"""becket's own extensions against the cases of every foreign dialect."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import pytest
from tests.conformance.case_selection import choose_cases

from becket.conformance import CaseVerdict, ProcessLink, Role, list_suites, load_suite, run_cases

pytestmark = [pytest.mark.process, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
EXTENSION = ("examples/conformance/extension.py",)
PROGRAMS = {
    "cigen": ("examples/dialects/cigen/served.py",),
    "lsp": ("examples/lsp/spelling_server.py",),
    "mcp": ("-m", "becket", "mcp", "serve", *EXTENSION),
    "morphir": EXTENSION,
    "nexo": EXTENSION,
    "roder": EXTENSION,
    "synaps": EXTENSION,
}
LEAST = {"mcp": 40}  # of the others 15


def test_every_foreign_dialect_has_cases_and_a_program() -> None:
    assert set(list_suites()) == {"native", *PROGRAMS}


@pytest.mark.parametrize("dialect", PROGRAMS)
def test_a_dialect_has_enough_cases(dialect: str) -> None:
    assert len(load_suite(dialect).cases) >= LEAST.get(dialect, 15)


@pytest.mark.parametrize("dialect", PROGRAMS)
def test_an_extension_on_becket_fails_no_case(dialect: str) -> None:
    suite = load_suite(dialect)
    cases = choose_cases(dialect, Role.EXTENSION)

    results = run_cases(
        suite,
        cases,
        partial(ProcessLink, [sys.executable, *PROGRAMS[dialect]], cwd=str(ROOT)),
        variables={"plugin_id": "conform"},
        timeout=15,
        workers=2,  # each starts processes of its own
    )

    assert {result.case.id: result.reason for result in results if result.verdict is CaseVerdict.FAIL} == {}
    not_offered = {result.case.id for result in results if result.verdict is CaseVerdict.NOT_OFFERED}
    assert not_offered == ({"MCP-FT-005", "MCP-FT-006", "MCP-FT-007"} if dialect == "mcp" else set())  # resources
