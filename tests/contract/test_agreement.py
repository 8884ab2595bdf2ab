"""The schema files and the classes accept the same values."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, find, given, settings, strategies as st
from tests.contract.agreement import (
    AGREEMENTS,
    EXAMPLES,
    Agreement,
    agreement,
    definition_of,
    disagreement,
    validator,
    values,
)

from becket.contract.tasks import TaskLogged
from becket.json_schema.files import load_schema

WITHOUT_SHRINKING = settings(max_examples=1000, database=None, phases=[Phase.generate])
EACH = pytest.mark.parametrize("held", AGREEMENTS, ids=lambda held: f"{held.schema}-{held.definition}")


@pytest.mark.slow
@EACH
@given(data=st.data())
@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow])
def test_the_type_and_the_schema_accept_the_same_values(held: Agreement, data: st.DataObject) -> None:
    assert disagreement(held, data.draw(values(held))) is None


@EACH
def test_every_definition_has_examples_and_each_is_accepted_by_both(held: Agreement) -> None:
    examples = definition_of(held)["examples"]

    assert examples
    for example in examples:
        assert held.accepts(example)
        assert validator(held.schema, held.definition).is_valid(example)


@pytest.mark.parametrize("schema", sorted({held.schema for held in AGREEMENTS}))
def test_every_definition_is_in_the_table_once(schema: str) -> None:
    held = [held.definition for held in AGREEMENTS if held.schema == schema]

    assert sorted(held) == sorted(load_schema(schema)["$defs"])


@pytest.mark.parametrize("schema", sorted({held.schema for held in AGREEMENTS}))
def test_every_definition_has_a_title_and_a_description(schema: str) -> None:
    whole = load_schema(schema)

    assert [name for name, part in whole["$defs"].items() if not (part.get("title") and part.get("description"))] == []
    assert whole["title"]
    assert whole["description"]


# -- the machinery finds what it should


class LogWithoutId(msgspec.Struct):
    line: str


class LogWithNumber(msgspec.Struct):
    id: str
    line: str | int


@pytest.mark.parametrize("wrong", [LogWithoutId, LogWithNumber, TaskLogged | None, dict[str, Any]])
def test_a_class_that_accepts_more_than_its_schema_is_found(wrong: Any) -> None:
    held = agreement(wrong, "tasks", "log")

    # Raises when there is none.
    find(values(held), lambda value: disagreement(held, value) is not None, settings=WITHOUT_SHRINKING)


def test_a_class_that_accepts_less_than_its_schema_is_found() -> None:
    class StrictLog(msgspec.Struct, forbid_unknown_fields=True):
        id: str
        line: str

    assert disagreement(agreement(StrictLog, "tasks", "log"), {"id": "a", "line": "", "other": 1}) is not None
