"""A diagnostic says what happened, to what, and what to do."""

from __future__ import annotations

import msgspec
import pytest

from becket.host.diagnostics import Diagnostic, Severity


@pytest.mark.parametrize(
    ("diagnostic", "text"),
    [
        (Diagnostic(problem="no such folder"), "no such folder"),
        (Diagnostic(problem="no such folder", path="/a"), "/a: no such folder"),
        (Diagnostic(problem="is disabled", extension="notes"), "notes: is disabled"),
        (
            Diagnostic(problem="`rg` is missing", extension="notes", path="/a/becket.toml", hint="install it"),
            "notes: /a/becket.toml: `rg` is missing (install it)",
        ),
    ],
)
def test_it_reads_as_one_line(diagnostic: Diagnostic, text: str) -> None:
    assert str(diagnostic) == text


def test_it_is_an_error_unless_it_says_otherwise() -> None:
    assert Diagnostic(problem="x").severity is Severity.ERROR


def test_it_travels_as_json() -> None:
    given = Diagnostic(problem="is disabled", extension="notes", severity=Severity.NOTE)

    assert msgspec.json.decode(msgspec.json.encode(given), type=Diagnostic) == given
