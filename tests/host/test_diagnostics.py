"""A diagnostic has what happened, to what, and what to do."""

from __future__ import annotations

import ast
from pathlib import Path

import msgspec
import pytest

import becket
from becket.host.diagnostics import Diagnostic, ProblemCode, Severity


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
def test_a_diagnostic_is_shown_as_one_line(diagnostic: Diagnostic, text: str) -> None:
    assert str(diagnostic) == text


def test_a_diagnostic_is_an_error_by_default() -> None:
    assert Diagnostic(problem="x").severity is Severity.ERROR


def test_a_diagnostic_can_be_encoded_as_json() -> None:
    given = Diagnostic(problem="is disabled", extension="notes", severity=Severity.NOTE)

    assert msgspec.json.decode(msgspec.json.encode(given), type=Diagnostic) == given


def test_every_diagnostic_of_the_package_has_a_code_and_a_hint_and_every_code_is_used() -> None:
    package = Path(becket.__file__).parent
    trees = [
        ast.parse(path.read_text(encoding="utf-8"))
        for part in ("host", "cli")
        for path in package.glob(f"{part}/**/*.py")
    ]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    made = [one for one in nodes if isinstance(one, ast.Call) and ast.unparse(one.func) == "Diagnostic"]
    used = {one.attr for one in nodes if isinstance(one, ast.Attribute) and ast.unparse(one.value) == "ProblemCode"}

    assert [ast.unparse(one) for one in made if "code" not in {keyword.arg for keyword in one.keywords}] == []
    assert [ast.unparse(one) for one in made if "hint" not in {keyword.arg for keyword in one.keywords}] == []
    assert used == set(ProblemCode.__members__)


def test_the_dictionary_of_a_diagnostic_has_all_members() -> None:
    given = Diagnostic(problem="is disabled", severity=Severity.NOTE)

    assert given.to_dict() == {
        "problem": "is disabled",
        "extension": None,
        "path": None,
        "hint": "",
        "severity": "note",
        "code": "other",
    }
    assert set(given.to_dict()) == set(Diagnostic.__struct_fields__)
