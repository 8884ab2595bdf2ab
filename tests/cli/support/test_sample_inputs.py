"""Sample inputs are valid by their schema, or there is none."""

from __future__ import annotations

from typing import Any

import pytest

from becket.cli.support.sample_inputs import sample_input


def an_object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*properties]}


@pytest.mark.parametrize(
    ("schema", "input"),
    [
        ({}, {}),
        ({"required": ["a"], "properties": {"a": {}}}, {"a": "x"}),
        ({"type": "object"}, {}),
        ({"type": "object", "examples": [{"a": 1}]}, {"a": 1}),
        ({"type": "object", "properties": {"a": {"type": "string"}}}, {}),
        (an_object(a={"type": "string"}), {"a": "x"}),
        (an_object(a={"type": "string", "minLength": 3}), {"a": "xxx"}),
        (an_object(a={"type": "string", "enum": ["b", "c"]}), {"a": "b"}),
        (an_object(a={"const": None}), {"a": None}),
        (an_object(a={"type": "string", "default": "d"}), {"a": "d"}),
        (an_object(a={"type": "string", "pattern": "^[0-9]$"}), None),
        (an_object(a={"type": "string", "pattern": "^[0-9]$", "examples": ["7"]}), {"a": "7"}),
        (an_object(a={"type": "integer", "minimum": 3}), {"a": 3}),
        (an_object(a={"type": "number", "exclusiveMinimum": 0}), {"a": 1}),
        (an_object(a={"type": "integer", "maximum": -2}), {"a": -2}),
        (an_object(a={"type": "boolean"}, b={"type": "null"}), {"a": False, "b": None}),
        (an_object(a={"type": ["integer", "null"]}), {"a": 0}),
        (an_object(a={"type": "array", "items": {"type": "integer"}, "minItems": 2}), {"a": [0, 0]}),
        (an_object(a=an_object(b={"type": "array"})), {"a": {"b": []}}),
        (an_object(a={"anyOf": [{"type": "integer"}, {"type": "string"}]}), {"a": 0}),
        ({**an_object(a={"$ref": "#/$defs/n"}), "$defs": {"n": {"type": "integer"}}}, {"a": 0}),
        ({**an_object(a={"$ref": "#/$defs/n"}), "$defs": {"n": an_object(a={"$ref": "#/$defs/n"})}}, None),
        ({"type": 7}, None),
        ([], None),
    ],
)
def test_an_input_fits_the_schema_it_was_derived_from(schema: Any, input: Any) -> None:
    assert sample_input(schema) == input
