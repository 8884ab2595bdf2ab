"""The official test suite of JSON Schema, from the source of jsonschema, which `make schema-suite` downloads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from becket.errors import BadSchema
from becket.json_schema.validator import compile_schema

SUITE = Path(__file__).parents[2] / ".schema_cache" / "json" / "tests"
DRAFTS = {
    "draft2020-12": "https://json-schema.org/draft/2020-12/schema",
    "draft7": "http://json-schema.org/draft-07/schema#",
}
POLICIES = ("is supported at the root alone", "is not fetched: ", "is not known; these are: ")
"""Why schemas are refused: an `$id` below the root, a reference to elsewhere, another draft or vocabulary."""

pytestmark = pytest.mark.skipif(not SUITE.is_dir(), reason="the suite is not there: `make schema-suite` downloads it")


def groups(draft: str) -> Iterator[tuple[str, Any, list[dict[str, Any]]]]:
    """Yields the title of each group, its schema, and its tests."""
    for file in sorted((SUITE / draft).glob("*.json")):
        for group in json.loads(file.read_bytes()):
            schema = group["schema"]
            if isinstance(schema, dict):
                schema = {"$schema": DRAFTS[draft], **schema}
            yield f"{file.stem}: {group['description']}", schema, group["tests"]


@pytest.mark.parametrize("trusted", [True, False])
@pytest.mark.parametrize(("draft", "accepted"), [("draft2020-12", 1_150), ("draft7", 850)])
def test_every_schema_is_judged_right_or_refused_by_policy(draft: str, accepted: int, trusted: bool) -> None:
    wrong: list[str] = []
    judged = 0
    for title, schema, tests in groups(draft):
        try:
            validator = compile_schema(schema, trusted=trusted)
        except BadSchema as error:
            if not any(policy in problem for _, problem in error.problems for policy in POLICIES):
                wrong.append(f"{title}: {error}")
            continue
        judged += len(tests)
        wrong += [
            f"{title}: {test['description']}"
            for test in tests
            if (validator.find_problems(test["data"]) == []) is not test["valid"]
        ]

    assert wrong == []
    assert judged >= accepted
