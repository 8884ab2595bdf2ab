"""`becket schema`: the schemas are listed and printed as they are."""

from __future__ import annotations

import json

import pytest
from tests.cli.commands import here

from becket.cli.support.exit_codes import ExitCode
from becket.json_schema.files import load_schema, schema_names


def test_all_schemas_are_listed() -> None:
    names = sorted([*schema_names(), "openrpc"])

    assert here("schema").stdout.splitlines() == names
    assert json.loads(here("schema", "--json").stdout) == names


@pytest.mark.parametrize("name", schema_names())
def test_a_schema_is_printed(name: str) -> None:
    done = here("schema", name)

    assert done.exit_code == ExitCode.DONE
    assert json.loads(done.stdout) == load_schema(name)


def test_a_schema_for_programs_is_one_line() -> None:
    done = here("schema", "openrpc", "--json")

    assert len(done.stdout.splitlines()) == 1
    assert "methods" in json.loads(done.stdout)


@pytest.mark.parametrize("name", ["nope", "../pyproject", "manifest.schema.json"])
def test_an_unknown_name_is_refused_with_all_known_ones(name: str) -> None:
    done = here("schema", name)

    assert (done.exit_code, done.stdout) == (ExitCode.NOT_FOUND, "")
    assert "manifest" in done.stderr
