"""The schemas of hand-written files: manifests, the configuration of a host, and grants."""

from __future__ import annotations

import tomllib
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st
from tests.contract.agreement import validator
from tests.contract.sample_files import load_samples

from becket.contract.config import parse_config_key
from becket.contract.memory import find_namespace_problem
from becket.errors import BadGrants, InvalidParams
from becket.json_schema.files import load_schema
from becket.limits import Limits
from becket.permissions.grants import Grants
from becket.permissions.names import PERMISSIONS, RESERVED_PERMISSIONS

FILES = ["manifest", "host-config"]

MANIFEST = """
id = "notes"
version = "1.2.0"
name = "Notes"
command = ["python3", "notes.py"]
permissions = ["memory.read", "memory.write", "tools.register", "tools.intercept"]

[requires]
bins = ["rg"]
env = ["NOTES_DIR"]

[environment]
pass = ["NOTES_DIR"]

[config.limit]
type = "integer"
default = 10
description = "How many notes are shown."

[config.token]
type = "string"
secret = true
env = "NOTES_TOKEN"

[restart]
strategy = "exponential"
most = 3

[limits]
call_timeout = 20

[[capabilities]]
kind = "notes"
name = "Notes"

[[hooks]]
hook = "before_tool_call"
tool = "bash"
match = { input_contains = "rm -rf" }

[x]
icon = "notebook"
"""

HOST = """
name = "demo"
roots = ["extensions"]
data = false
audit = "full"

[limits]
call_timeout = 20

[extensions.notes]
allow = ["memory.read"]
deny = ["tools.intercept"]
config = { limit = 20 }
"""

GRANTS = """
[notes]
allow = ["memory.read"]
deny = ["tools.intercept"]
digest = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
"""


@pytest.mark.parametrize(
    ("schema", "definition", "text"),
    [("manifest", "manifest", MANIFEST), ("host-config", "host", HOST), ("host-config", "grants", GRANTS)],
)
def test_a_hand_written_file_is_valid(schema: str, definition: str, text: str) -> None:
    problems = [error.message for error in validator(schema, definition).iter_errors(tomllib.loads(text))]

    assert problems == []


@pytest.mark.parametrize("schema", FILES)
def test_every_definition_has_a_title_a_description_examples_and_samples_of_both_kinds(schema: str) -> None:
    samples = [(sample.definition, sample.is_good) for sample in load_samples() if sample.schema == schema]

    for name, definition in load_schema(schema)["$defs"].items():
        assert definition["title"]
        assert definition["description"]
        assert definition["examples"]
        assert {(name, True), (name, False)} <= set(samples)


@pytest.mark.parametrize("schema", FILES)
def test_a_misspelt_member_is_noticed_everywhere(schema: str) -> None:
    tables = [part for part in parts_of(load_schema(schema)) if "properties" in part and part.get("type") == "object"]

    assert tables
    assert [part["properties"] for part in tables if part.get("additionalProperties") is not False] == []


def parts_of(schema: Any) -> list[dict[str, Any]]:
    if isinstance(schema, list):
        return [found for part in schema for found in parts_of(part)]
    if not isinstance(schema, dict):
        return []
    return [schema, *(found for name, part in schema.items() if name != "examples" for found in parts_of(part))]


# -- schemas match the code


def test_every_limit_that_can_be_set_is_a_limit() -> None:
    limits = load_schema("manifest")["$defs"]["limits"]["properties"]
    defaults = msgspec.structs.asdict(Limits())

    assert limits.keys() <= defaults.keys()
    assert [
        name for name, part in limits.items() if (part["type"] == "integer") != isinstance(defaults[name], int)
    ] == []
    assert validator("manifest", "limits").is_valid({name: defaults[name] for name in limits})


@pytest.mark.parametrize("permission", sorted(PERMISSIONS))
def test_every_permission_can_be_requested(permission: str) -> None:
    assert validator("manifest", "permission").is_valid(permission)


@pytest.mark.parametrize("permission", sorted(RESERVED_PERMISSIONS))
def test_a_reserved_permission_cannot_be_requested(permission: str) -> None:
    assert not validator("manifest", "permission").is_valid(permission)


@given(st.one_of(st.from_regex(r"[a-z0-9._-]{0,66}"), st.text(max_size=5)))
def test_every_valid_id_is_a_valid_namespace(text: str) -> None:
    if validator("manifest", "id").is_valid(text):
        assert find_namespace_problem(text) is None


@given(st.text(st.characters(codec="utf-8"), max_size=8))
def test_the_schema_accepts_exactly_the_valid_config_keys(text: str) -> None:
    try:
        is_key = parse_config_key(text) == text and not any(letter.isspace() and letter > " " for letter in text)
    except InvalidParams:
        is_key = False
    assert validator("manifest", "config_key").is_valid(text) == is_key


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "allow": st.lists(st.sampled_from([*PERMISSIONS, *RESERVED_PERMISSIONS, "", "memory"]), max_size=3),
            "deny": st.lists(st.sampled_from([*PERMISSIONS]), max_size=3),
            "digest": st.just("0" * 64),
            "denny": st.just([]),
        },
    )
)
def test_grants_that_fit_can_be_read(table: dict[str, Any]) -> None:
    try:
        Grants.parse(table)
        is_read = True
    except BadGrants:
        is_read = False
    assert validator("host-config", "grants").is_valid({"notes": table}) == is_read
