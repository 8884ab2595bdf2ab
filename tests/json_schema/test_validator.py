"""Schemas are compiled once or refused for a reason, and find all that is wrong with a value within bounds."""

from __future__ import annotations

import builtins
import sys
import tracemalloc
from collections import OrderedDict
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from jsonschema import Draft7Validator, Draft202012Validator

from becket.conversion.problems import MAX_PROBLEMS
from becket.errors import BadSchema, InvalidParams, Problem
from becket.json_schema import SchemaMode
from becket.json_schema.compiler import (
    DRAFTS,
    MAX_CHARACTERS,
    MAX_DEPTH,
    MAX_ENUM_VALUES,
    MAX_NODES,
    MAX_PATTERN_LENGTH,
    MAX_PATTERNS,
)
from becket.json_schema.keywords import FULL_BUDGET
from becket.json_schema.validator import compile_schema

DRAFT_7 = "http://json-schema.org/draft-07/schema#"
DRAFT_2020 = "https://json-schema.org/draft/2020-12/schema"
NOTE = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "minLength": 1},
        "tags": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
        "at": {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "null"}]},
    },
    "required": ["text"],
    "additionalProperties": False,
}


def problems(schema: object, value: object, *, trusted: bool = True) -> list[Problem]:
    return compile_schema(schema, trusted=trusted).find_problems(value)


def pointers(schema: object, value: object) -> list[str]:
    return [pointer for pointer, _ in problems(schema, value)]


def refusals(schema: object, *, trusted: bool = False) -> list[Problem]:
    with pytest.raises(BadSchema) as caught:
        compile_schema(schema, trusted=trusted)
    return list(caught.value.problems)


# -- problems


def test_a_value_that_fits_has_no_problems() -> None:
    assert problems(NOTE, {"text": "a", "tags": ["b"], "at": None}) == []


def test_all_problems_are_found_each_with_its_pointer() -> None:
    assert problems(NOTE, {"tags": ["a", 1, "a"], "at": -1, "x/y": 1}) == [
        ("/tags/1", "expected `string`, got `integer`"),
        ("/tags/2", "is the same as element 0"),
        ("/at", "must be at least 0"),
        ("/text", "is missing"),
        ("/x~1y", "is unknown"),
    ]


def test_the_problems_come_in_the_same_order_each_time() -> None:
    validator = compile_schema(NOTE)
    value = dict.fromkeys("zyxwv", 1)

    assert validator.find_problems(value) == validator.find_problems(value)
    assert [pointer for pointer, _ in validator.find_problems(value)] == ["/text", "/z", "/y", "/x", "/w", "/v"]


def test_checking_a_value_that_does_not_fit_raises_with_the_problems() -> None:
    validator = compile_schema(NOTE)

    validator.check({"text": "a"})
    with pytest.raises(InvalidParams) as caught:
        validator.check({"text": 1})
    assert caught.value.problems == (("/text", "expected `string`, got `integer`"),)


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ({"type": "integer"}, True, [("", "expected `integer`, got `boolean`")]),
        ({"type": ["integer", "null"]}, "1", [("", "expected `integer | null`, got `string`")]),
        ({"type": "integer"}, 1.5, [("", "expected `integer`, got `number`")]),
        ({"type": "array"}, None, [("", "expected `array`, got `null`")]),
        (
            {"enum": ["a", 1, None, True, 1.5, [], {}]},
            "b",
            [("", "must be one of `a`, 1, null, true, 1.5, an array, an object")],
        ),
        ({"enum": list(range(20))}, 20, [("", "must be one of 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ...")]),
        ({"const": "x" * 100}, "b", [("", f"must be `{'x' * 37}...`")]),
        ({"minimum": 2}, 1, [("", "must be at least 2")]),
        ({"maximum": 2}, 3, [("", "must be at most 2")]),
        ({"exclusiveMinimum": 2}, 2, [("", "must be more than 2")]),
        ({"exclusiveMaximum": 2}, 2, [("", "must be less than 2")]),
        ({"multipleOf": 2}, 3, [("", "must be a multiple of 2")]),
        ({"minLength": 2}, "a", [("", "must have 2 or more characters")]),
        ({"maxLength": 2}, "abc", [("", "must have 2 or fewer characters")]),
        ({"pattern": "^a"}, "b", [("", "does not match the pattern `^a`")]),
        ({"minProperties": 1}, {}, [("", "must have 1 or more members")]),
        ({"maxProperties": 0}, {"a": 1}, [("", "must have 0 or fewer members")]),
        ({"minItems": 1}, [], [("", "must have 1 or more elements")]),
        ({"maxItems": 0}, [1], [("", "must have 0 or fewer elements")]),
        (
            {"uniqueItems": True},
            [1, {"a": [1]}, 1.0, {"a": [1.0]}],
            [("/2", "is the same as element 0"), ("/3", "is the same as element 1")],
        ),
        ({"contains": {"type": "string"}}, [1], [("", "must have 1 or more elements that fit `contains`, not 0")]),
        (
            {"contains": True, "maxContains": 1},
            [1, 2],
            [("", "must have 1 or fewer elements that fit `contains`, not 2")],
        ),
        ({"properties": {"a": False}}, {"a": 1}, [("/a", "is not allowed")]),
        (
            {"patternProperties": {"^a": {"type": "string"}}},
            {"ab": 1, "b": 1},
            [("/ab", "expected `string`, got `integer`")],
        ),
        ({"additionalProperties": {"type": "string"}}, {"a": 1}, [("/a", "expected `string`, got `integer`")]),
        ({"patternProperties": {"^a": True}, "additionalProperties": False}, {"ab": 1, "b": 1}, [("/b", "is unknown")]),
        ({"propertyNames": {"maxLength": 1}}, {"ab": 1}, [("/ab", "is no name: must have 1 or fewer characters")]),
        ({"dependentRequired": {"a": ["b", "c"]}}, {"a": 1, "c": 1}, [("/b", "is missing beside `a`")]),
        ({"dependentRequired": {"x": ["b"]}}, {"a": 1}, []),
        ({"dependentSchemas": {"a": {"required": ["b"]}, "x": False}}, {"a": 1}, [("/b", "is missing")]),
        (
            {"prefixItems": [{"type": "string"}], "items": False},
            [1, 2],
            [("/0", "expected `string`, got `integer`"), ("/1", "is not allowed")],
        ),
        ({"oneOf": [True, False, False]}, 1, []),
        ({"oneOf": [True, True, False]}, 1, [("", "fits 2 of 3 schemas, of which it must fit one")]),
        ({"anyOf": [{"minimum": 3}, {"maximum": 0}]}, 1, [("", "fits none of 2 schemas")]),
        ({"not": {"type": "string"}}, "a", [("", "fits a schema that it must not fit")]),
        (
            {"if": {"type": "string"}, "then": {"minLength": 2}, "else": {"minimum": 2}},
            "a",
            [("", "must have 2 or more characters")],
        ),
        ({"if": {"type": "string"}, "then": {"minLength": 2}, "else": {"minimum": 2}}, 1, [("", "must be at least 2")]),
        (
            {"unevaluatedProperties": False, "allOf": [{"properties": {"a": True}}]},
            {"a": 1, "b": 1},
            [("/b", "is unknown")],
        ),
        ({"unevaluatedProperties": {"type": "string"}}, {"a": 1}, [("/a", "expected `string`, got `integer`")]),
        ({"unevaluatedItems": False, "prefixItems": [True]}, [1, 2], [("/1", "is not allowed")]),
        (
            {"unevaluatedProperties": False, "patternProperties": {"^a": True}, "additionalProperties": True},
            {"a": 1, "b": 1},
            [],
        ),
        (
            {"unevaluatedProperties": False, "dependentSchemas": {"a": {"properties": {"a": True, "b": True}}}},
            {"a": 1, "b": 1, "c": 1},
            [("/c", "is unknown")],
        ),
        (
            {"unevaluatedItems": False, "if": {"prefixItems": [{"const": 1}]}, "then": {"prefixItems": [True, True]}},
            [1, 2, 3],
            [("/2", "is not allowed")],
        ),
        ({"unevaluatedItems": False, "if": {"contains": {"const": 1}}, "else": {"items": True}}, [2, 3], []),
        ({"unevaluatedItems": False, "contains": {"const": 1}}, [1, 2], [("/1", "is not allowed")]),
        ({"unevaluatedItems": False, "allOf": [{"unevaluatedItems": True}]}, [1], []),
        (
            {"unevaluatedProperties": False, "anyOf": [{"properties": {"a": False}}, True]},
            {"a": 1},
            [("/a", "is unknown")],
        ),
        ({"type": "integer"}, 1.0, []),
        ({"type": "number"}, 1, []),
        (False, 1, [("", "is not allowed")]),
        (True, 1, []),
    ],
)
def test_a_problem_has_a_message(schema: object, value: object, expected: list[Problem]) -> None:
    assert problems(schema, value) == expected


@pytest.mark.parametrize(
    ("keyword", "argument"),
    [
        ("minimum", 5),
        ("multipleOf", 2),
        ("minLength", 5),
        ("pattern", "^a"),
        ("minItems", 5),
        ("minProperties", 5),
        ("required", ["a"]),
        ("properties", {"a": False}),
        ("patternProperties", {"a": False}),
        ("additionalProperties", False),
        ("propertyNames", False),
        ("dependentRequired", {"a": ["b"]}),
        ("dependentSchemas", {"a": False}),
        ("items", False),
        ("prefixItems", [False]),
        ("contains", False),
        ("uniqueItems", True),
        ("unevaluatedItems", False),
        ("unevaluatedProperties", False),
    ],
)
def test_a_keyword_is_about_one_kind_of_value_alone(keyword: str, argument: object) -> None:
    others = [None, True, 7, 8.5, "b", ["x", "x"], {"a": 1}]
    refused = [value for value in others if problems({keyword: argument}, value)]

    assert len(refused) <= 2
    assert not {type(value) for value in refused} & {type(None), bool}


def test_the_problems_of_the_intended_alternative_are_reported() -> None:
    schema = {
        "oneOf": [
            {"type": "object", "properties": {"kind": {"const": "a"}, "x": {"type": "integer"}}, "required": ["kind"]},
            {"type": "object", "properties": {"kind": {"const": "b"}, "y": {"type": "integer"}}, "required": ["kind"]},
            {"type": "null"},
        ]
    }
    assert problems(schema, {"kind": "b", "y": "1"}) == [("/y", "expected `integer`, got `string`")]
    assert problems(schema, {"kind": "c"}) == [("", "fits none of 3 schemas")]
    assert problems(schema, 5) == [("", "fits none of 3 schemas")]
    assert problems({"anyOf": [{"enum": ["a"]}, {"type": "null"}]}, "b") == [("", "must be `a`")]


def test_a_problem_that_two_parts_of_a_schema_find_is_reported_once() -> None:
    assert problems({"allOf": [{"type": "string"}, {"type": "string"}]}, 1) == [
        ("", "expected `string`, got `integer`")
    ]


def test_a_page_of_problems_is_enough() -> None:
    found = problems({"items": {"type": "string"}}, list(range(10_000)))

    assert len(found) == MAX_PROBLEMS + 1
    assert found[-1] == ("", "there are further problems")
    assert len(problems({"items": {"type": "string"}}, list(range(MAX_PROBLEMS)))) == MAX_PROBLEMS


def test_nothing_long_is_quoted() -> None:
    long = "x" * 10_000
    schema = {"const": long, "pattern": "^y{2}" + "x" * 900, "properties": {long: False}, "required": [long, "y"]}

    for value in (long, {long: 1}, {}):
        for pointer, message in problems(schema, value, trusted=False):
            assert len(pointer) <= 203
            assert len(message) <= 203


def test_a_schema_is_copied_when_it_is_compiled() -> None:
    schema = {"type": "string"}
    validator = compile_schema(schema)
    schema["type"] = "integer"

    assert validator.find_problems("a") == []


def test_objects_of_other_classes_are_objects_too() -> None:
    assert problems(OrderedDict(type="object"), OrderedDict()) == []
    assert problems({"type": "object"}, object()) == [("", "expected `object`, got `unknown`")]


def test_formats_are_not_asserted() -> None:
    assert problems({"format": "email"}, "nobody") == []
    assert problems({"format": "no such format"}, "nobody") == []


# -- numbers and texts


@pytest.mark.parametrize(
    ("divisor", "value", "fits"),
    [
        (0.1, 0.3, True),
        (0.01, 4.35, True),
        (0.1, 0.35, False),
        (0.5, 10**400, True),
        (7, 10**400, False),
        (2, 1e308, True),
        (1e-308, 1e308, True),
        (1e308, 5e-324, False),
        (0.123456789, 1e308, False),
        (2, float("inf"), False),
        (2, float("nan"), False),
        (10**300, 10**301, True),
        (2, True, True),
    ],
)
def test_multiples_are_checked_on_the_numbers_as_written(divisor: float, value: float, fits: bool) -> None:
    assert (problems({"multipleOf": divisor}, value) == []) is fits


@pytest.mark.parametrize("keyword", ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"])
def test_numbers_of_any_size_are_compared(keyword: str) -> None:
    for value in (10**5000, -(10**5000), 1e308, float("inf"), float("nan"), 5e-324):
        for argument in (10**300, 1e-308, 3):
            for _, message in problems({keyword: argument}, value):
                assert len(message) < 100


@pytest.mark.parametrize(("value", "fits"), [(1, True), (1.0, True), (True, False), ("1", False), (10**400, False)])
def test_numbers_are_compared_by_value(value: object, fits: bool) -> None:
    assert (problems({"enum": [1.0]}, value) == []) is fits
    assert (problems({"const": 1}, value) == []) is fits


@pytest.mark.parametrize("keyword", ["minLength", "maxLength", "pattern", "const", "enum", "propertyNames"])
@pytest.mark.parametrize("trusted", [True, False])
def test_a_lone_surrogate_is_a_character(keyword: str, trusted: bool) -> None:
    arguments: dict[str, object] = {
        "minLength": 2,
        "maxLength": 0,
        "pattern": "^a$",
        "const": "\ud800a",
        "enum": ["\ud800a"],
        "propertyNames": {"pattern": "^a$"},
    }
    for value in ("\ud800", {"\ud800": 1}):
        for pointer, message in problems({keyword: arguments[keyword]}, value, trusted=trusted):
            assert (pointer + message).encode()


def test_a_length_counts_characters() -> None:
    assert problems({"maxLength": 1}, "\N{GRINNING FACE}") == []


@pytest.mark.parametrize("trusted", [True, False])
def test_patterns_follow_javascript_as_far_as_both_engines_go(trusted: bool) -> None:
    for pattern, text, fits in [
        ("^a$", "a\n", False),
        ("^[$]$", "$", True),
        (r"^\$$", "$", True),
        ("a", "bab", True),
        (r"^\d$", "\N{ARABIC-INDIC DIGIT ONE}", False),
        (r"^\u00e9$", "\N{LATIN SMALL LETTER E WITH ACUTE}", True),
        (r"^\\u00e9$", r"\u00e9", True),
        ("^.$", "\N{GRINNING FACE}", True),
    ]:
        assert (problems({"pattern": pattern}, text, trusted=trusted) == []) is fits, pattern


# -- drafts


def test_draft_7_has_its_own_keywords() -> None:
    tuples = {"items": [{"type": "string"}], "additionalItems": {"type": "null"}}
    depends = {"dependencies": {"a": ["b"], "c": {"required": ["d"]}}}

    assert pointers({"$schema": DRAFT_7, **tuples}, [1, None, 2]) == ["/0", "/2"]
    assert pointers({"$schema": DRAFT_7, **depends}, {"a": 1, "c": 1}) == ["/b", "/d"]
    assert pointers({"$schema": DRAFT_7, "items": True, "additionalItems": False}, [1]) == []
    assert pointers({"$schema": DRAFT_2020, "additionalItems": False, **depends}, {"a": 1, "c": 1}) == []


def test_draft_7_ignores_the_keywords_of_2020_12() -> None:
    new = {
        "prefixItems": [False],
        "dependentRequired": {"a": ["b"]},
        "dependentSchemas": {"a": False},
        "unevaluatedProperties": False,
        "unevaluatedItems": False,
        "$dynamicRef": "http://nowhere",
    }
    assert pointers({"$schema": DRAFT_7, **new}, {"a": 1}) == []
    assert pointers({"$schema": DRAFT_7, **new, "contains": True, "maxContains": 0, "minContains": 5}, [1]) == []


def test_in_draft_7_siblings_of_a_reference_are_ignored() -> None:
    schema = {"$ref": "#/definitions/a", "type": "null", "definitions": {"a": {"type": "string"}}}

    assert pointers({"$schema": DRAFT_7, **schema}, "text") == []
    assert pointers({"$schema": DRAFT_2020, **schema}, "text") == [""]


@pytest.mark.parametrize(
    "uri",
    ["http://json-schema.org/draft-04/schema#", "https://json-schema.org/draft/2019-09/schema", "x", "", 5, None, []],
)
def test_the_error_for_an_unknown_draft_lists_the_known_ones(uri: object) -> None:
    ((pointer, message),) = refusals({"$schema": uri})

    assert pointer == "/$schema"
    assert all(known in message for known in DRAFTS)


@pytest.mark.parametrize("uri", [*DRAFTS, *(f"{uri}#" for uri in DRAFTS)])
def test_the_known_drafts_are_known_with_and_without_an_empty_fragment(uri: str) -> None:
    assert problems({"$schema": uri, "type": "string"}, "a") == []


def test_another_draft_inside_a_schema_is_refused() -> None:
    assert refusals({"$defs": {"a": {"$schema": DRAFT_7}}})[0][0] == "/$defs/a/$schema"
    assert problems({"$defs": {"a": {"$schema": DRAFT_2020}}, "$ref": "#/$defs/a"}, 1) == []


# -- what is no schema


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "text"}, ["/type"]),
        ({"properties": {"a": {"minimum": "1"}, "b/c": 5}}, ["/properties/a/minimum", "/properties/b~1c"]),
        ({"required": "a", "minLength": -1}, ["/minLength", "/required"]),
        ({"$schema": DRAFT_7, "items": [{"type": 5}]}, ["/items/0/type"]),
        ({"multipleOf": 0}, ["/multipleOf"]),
        ({"$ref": 5}, ["/$ref"]),
        ({"$id": 5}, ["/$id"]),
        ({"enum": 5}, ["/enum"]),
        ({"allOf": []}, ["/allOf"]),
        ([], [""]),
        (5, [""]),
        ("{}", [""]),
        (None, [""]),
        (b"{}", [""]),
        ({"const": object()}, ["/const"]),
        ({"const": float("nan")}, ["/const"]),
        ({"maximum": float("inf")}, ["/maximum"]),
        ({"maximum": 10**400}, ["/maximum"]),
        ({"enum": (1, 2)}, ["/enum"]),
        ({"properties": {5: {}}}, ["/properties"]),
    ],
)
def test_an_invalid_schema_is_refused_with_pointers(schema: object, expected: list[str]) -> None:
    assert sorted(pointer for pointer, _ in refusals(schema)) == expected


def test_at_most_a_page_of_the_problems_of_a_schema_is_reported() -> None:
    assert len(refusals({"properties": {str(index): 5 for index in range(1_000)}})) == MAX_PROBLEMS + 1
    assert len(refusals({"$defs": {str(index): {"$ref": "#/x"} for index in range(1_000)}})) == MAX_PROBLEMS


# -- references


@pytest.mark.parametrize(
    "reference",
    [
        "http://localhost:9/schema.json",
        "https://example.com/schema.json#/a",
        "file:///etc/passwd",
        "//example.com/x",
        "schema.json",
        "urn:uuid:1",
        "https://json-schema.org/draft/2019-09/schema",
        "https://json-schema.org/draft/2020-12/nowhere",
        "https://becket.dev/schemas/../../../etc/passwd",
        "https://becket.dev/schemas/no-such.schema.json",
        "https://becket.dev/schemas/envelope",
        "http://[",
    ],
)
@pytest.mark.parametrize("trusted", [True, False])
def test_nothing_is_ever_fetched(reference: str, trusted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    compile_schema(True)

    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("something was fetched")

    monkeypatch.setattr("socket.socket", refuse)
    monkeypatch.setattr("urllib.request.urlopen", refuse)
    monkeypatch.setattr(builtins, "open", refuse)

    for base in ({}, {"$id": "https://example.com/base.json"}, {"$id": "file:///etc/"}):
        ((pointer, message),) = refusals({**base, "properties": {"a": {"$ref": reference}}}, trusted=trusted)
        assert pointer == "/properties/a/$ref"
        assert "is not fetched" in message


@pytest.mark.parametrize(
    "reference",
    ["#/nowhere", "#nowhere", "#/$defs/a/b", "#/allOf/x", "#/allOf/7", "#/title/0", "#/allOf/" + "9" * 5_000],
)
def test_a_reference_that_leads_nowhere_is_refused(reference: str) -> None:
    schema = {"title": "abc", "$defs": {"a": True}, "allOf": [True], "not": {"$ref": reference}}

    ((pointer, message),) = refusals(schema)
    assert pointer == "/not/$ref"
    assert "nowhere" in message


@pytest.mark.parametrize("reference", ["#/title", "#/required", "#/required/0", "#/maximum"])
def test_a_reference_to_an_invalid_schema_is_refused(reference: str) -> None:
    schema = {"title": "abc", "required": ["a"], "maximum": 5, "not": {"$ref": reference}}

    assert refusals(schema) == [("/not/$ref", f"`{reference}` leads to no schema")]


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/a", "$defs": {"a": {"type": "string"}}},
        {"$ref": "#/$defs/a~1b~0c", "$defs": {"a/b~c": {"type": "string"}}},
        {"$ref": "#/$defs/a%20b", "$defs": {"a b": {"type": "string"}}},
        {"$ref": "#name", "$defs": {"a": {"$anchor": "name", "type": "string"}}},
        {"$dynamicRef": "#name", "$defs": {"a": {"$dynamicAnchor": "name", "type": "string"}}},
        {"$dynamicRef": "#/$defs/a", "$defs": {"a": {"type": "string"}}},
        {"$ref": "#/allOf/0", "allOf": [{"type": "string"}]},
        {"$ref": "#/components/schemas/a", "components": {"schemas": {"a": {"type": "string"}}}},
        {"$id": "https://example.com/a", "$ref": "https://example.com/a#/$defs/a", "$defs": {"a": {"type": "string"}}},
        {"$schema": DRAFT_7, "$ref": "#name", "definitions": {"a": {"$id": "#name", "type": "string"}}},
        {"$schema": DRAFT_7, "$ref": "#/$defs/a", "$defs": {"a": {"type": "string"}}},
    ],
)
def test_a_reference_leads_to_a_location_in_the_schema(schema: dict[str, Any]) -> None:
    assert problems(schema, "a") == []
    assert problems(schema, 1) == [("", "expected `string`, got `integer`")]


def test_a_reference_may_lead_to_true_or_false() -> None:
    assert problems({"properties": {"a": {"$ref": "#/$defs/no"}}, "$defs": {"no": False}}, {"a": 1}) == [
        ("/a", "is not allowed")
    ]
    assert problems({"$ref": "#/$defs/yes", "$defs": {"yes": True}}, 1) == []


def test_the_target_of_a_reference_is_checked_against_the_meta_schema_wherever_it_is() -> None:
    schema = {"$ref": "#/x-parts/a", "x-parts": {"a": {"minimum": "1", "properties": {"b": {"pattern": "("}}}}}

    assert refusals(schema) == [("/x-parts/a/minimum", "expected `number`, got `string`")]
    del schema["x-parts"]["a"]["minimum"]  # type: ignore[index]
    assert refusals(schema)[0][0] == "/x-parts/a/properties/b/pattern"


def test_references_may_lead_to_a_location_and_to_one_inside_it() -> None:
    schema = {"allOf": [{"$ref": "#/x/not"}, {"$ref": "#/x"}], "x": {"not": {"type": "string"}}}

    assert problems(schema, "a") == [("", "fits a schema that it must not fit")]
    assert problems(schema, 1) == [("", "expected `string`, got `integer`")]


def test_a_recursive_schema_is_applied_at_every_depth() -> None:
    tree = {"properties": {"name": {"type": "string"}, "children": {"items": {"$ref": "#"}}}}
    value: dict[str, Any] = {"name": 5}
    for _ in range(15):
        value = {"name": "a", "children": [value]}

    ((pointer, _),) = problems(tree, value)
    assert pointer == "/children/0" * 15 + "/name"


def test_the_meta_schemas_and_our_own_can_be_referred_to() -> None:
    tool = {"properties": {"input_schema": {"$ref": DRAFT_2020}}}
    assert pointers(tool, {"input_schema": {"properties": {"a": {"type": "text"}}}}) == [
        "/input_schema/properties/a/type"
    ]
    old = {"$schema": DRAFT_7, "properties": {"input_schema": {"$ref": DRAFT_7}}}
    assert pointers(old, {"input_schema": {"items": 5}}) == ["/input_schema/items"]
    message = {"$ref": "https://becket.dev/schemas/envelope.schema.json#/$defs/id"}
    assert problems(message, []) == [("", "expected `string | number | null`, got `array`")]
    assert refusals({"$schema": DRAFT_7, **message})


def test_a_dynamic_reference_finds_the_outermost_anchor() -> None:
    strict = {"$id": "https://example.com/strict", "$dynamicAnchor": "meta", "$ref": DRAFT_2020, "required": ["title"]}

    assert pointers(strict, {"title": "a", "properties": {"b": {"title": "c"}, "d": {}}}) == ["/properties/d/title"]


def test_an_id_below_the_root_is_refused() -> None:
    assert refusals({"$defs": {"a": {"$id": "other"}}}) == [("/$defs/a/$id", "is supported at the root alone")]


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"$dynamicRef": "#"},
        {"allOf": [{"$ref": "#"}]},
        {"anyOf": [{"type": "string"}, {"$ref": "#"}]},
        {"oneOf": [{"not": {"$ref": "#"}}]},
        {"if": {"$ref": "#"}},
        {"if": True, "then": {"$ref": "#"}},
        {"if": True, "else": {"$ref": "#"}},
        {"dependentSchemas": {"a": {"$ref": "#"}}},
        {"$schema": DRAFT_7, "dependencies": {"a": {"$ref": "#"}}},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
        {"$defs": {"a": {"$ref": "#/$defs/a"}}},
        {"properties": {"x": {"$ref": "#/properties/x"}}},
    ],
)
def test_a_reference_that_goes_round_without_going_into_the_value_is_refused(schema: object) -> None:
    assert {message for _, message in refusals(schema)} == {"comes back to itself without going deeper into the value"}


# -- patterns


def test_a_pattern_that_takes_exponential_time_elsewhere_is_quick() -> None:
    for schema in ({"pattern": "^(a+)+$"}, {"patternProperties": {"^(a+)+$": False}}, {"pattern": "(x+x+)+y"}):
        text = "a" * 5_000 + "!"
        assert len(problems(schema, text, trusted=False)) == ("pattern" in schema)
        assert problems(schema, {text: 1}, trusted=False) == []


@pytest.mark.parametrize(
    "pattern", ["(?=a)", "(?<!a)b", r"(a)\1", "(", "a{2000}", "(a{500}){500}", r"\cA", "\ud800", "[a"]
)
def test_a_pattern_that_cannot_be_matched_in_linear_time_is_refused(pattern: str) -> None:
    assert refusals({"pattern": pattern})[0][0] == "/pattern"
    assert refusals({"patternProperties": {pattern: True}, "additionalProperties": False})[0][0].startswith(
        "/patternProperties/"
    )


def test_a_pattern_is_refused_where_re2_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "re2", None)

    ((pointer, message),) = refusals({"properties": {"a": {"pattern": "^a$"}}})
    assert pointer == "/properties/a/pattern"
    assert "install becket[re2]" in message
    assert refusals({"patternProperties": {"^a$": True}})[0][0] == "/patternProperties/^a$"
    assert compile_schema({"pattern": "^a$"}, trusted=True).find_problems("a") == []


def test_trusted_patterns_run_on_re() -> None:
    assert problems({"pattern": "^(?=a)"}, "a") == []
    assert refusals({"pattern": "("}, trusted=True)[0][0] == "/pattern"


def test_nothing_is_written_to_stderr_for_a_bad_pattern(capfd: pytest.CaptureFixture[str]) -> None:
    refusals({"pattern": "(?=a)"})
    assert capfd.readouterr().err == ""


# -- hostile schemas


def test_a_schema_may_not_be_too_large() -> None:
    for schema in (
        {"enum": list(range(1_000_000))},
        {"$defs": {str(index): {} for index in range(MAX_NODES)}},
        {"description": "x" * (MAX_CHARACTERS + 1)},
        {"x" * (MAX_CHARACTERS + 1): 1},
        {"enum": list(range(MAX_ENUM_VALUES + 1))},
        {"pattern": "x" * (MAX_PATTERN_LENGTH + 1)},
        {"patternProperties": {f"x{index}": True for index in range(MAX_PATTERNS + 1)}},
    ):
        assert "more than" in refusals(schema)[0][1] or "at most" in refusals(schema)[0][1]
    compile_schema({"enum": list(range(MAX_ENUM_VALUES))})


def test_a_schema_may_not_be_nested_too_deeply() -> None:
    schema: dict[str, Any] = {}
    for _ in range(MAX_DEPTH):
        schema = {"not": schema}
    compile_schema(schema)

    ((pointer, message),) = refusals({"not": schema})
    assert pointer.startswith("/not/not")
    assert str(MAX_DEPTH) in message


def test_a_schema_that_holds_itself_is_refused() -> None:
    schema: dict[str, Any] = {}
    schema["not"] = schema

    assert refusals(schema)
    wide: list[Any] = []
    for _ in range(60):
        wide = [wide, wide]
    assert refusals({"enum": wide})


def doubling(keyword: str, depth: int, last: dict[str, Any]) -> dict[str, Any]:
    """Returns a schema in which each part applies the next one twice."""
    parts = {f"d{at}": {keyword: [{"$ref": f"#/$defs/d{at + 1}"}] * 2} for at in range(depth)}
    return {"$ref": "#/$defs/d0", "$defs": {**parts, f"d{depth}": last}}


MANY = {str(at): 1 for at in range(1_000)}
TOO_MUCH = [
    (doubling("allOf", 60, {"type": "integer"}), 1),
    (doubling("anyOf", 60, {"type": "string"}), 1),
    (doubling("oneOf", 60, {"type": "string"}), 1),
    (doubling("oneOf", 60, {"type": "integer"}), 1),
    ({"unevaluatedProperties": False, **doubling("allOf", 60, {"properties": {"a": True}})}, {"a": 1}),
    ({"unevaluatedItems": False, **doubling("anyOf", 60, {"contains": True})}, [1]),
    ({"allOf": [{"items": {"type": "integer"}}] * 500}, [1] * 1_000),
    ({"allOf": [{"items": True}] * 500}, [1] * 1_000),
    ({"allOf": [{"contains": {"type": "integer"}}] * 500}, [1] * 1_000),
    ({"allOf": [{"uniqueItems": True}] * 500}, list(range(1_000))),
    ({"allOf": [{"enum": [[]]}] * 500}, [1] * 1_000),
    ({"items": {"properties": {str(at): True for at in range(2_000)}}}, [{}] * 1_000),
    ({"items": {"required": list(MANY)}}, [MANY] * 1_000),
    ({"items": {"dependentRequired": {"0": list(MANY)}}}, [MANY] * 1_000),
    ({"allOf": [{"additionalProperties": True}] * 500}, MANY),
    ({"allOf": [{"propertyNames": True}] * 500}, MANY),
    ({"allOf": [{"patternProperties": {"x$": False}}] * 500}, MANY),
    ({"allOf": [{"unevaluatedProperties": True}] * 500}, MANY),
    ({"allOf": [{"items": True, "unevaluatedItems": False}] * 500}, [1] * 1_000),
    ({"pattern": "([ab]{0,400}){2}c"}, "ab" * 10_000),
    ({"items": {"pattern": "^([ab]{0,100}){2}$"}}, ["ab" * 50] * 10_000),
]


@pytest.mark.parametrize(("schema", "value"), TOO_MUCH, ids=range(len(TOO_MUCH)))
def test_a_check_that_would_take_too_long_is_abandoned(
    schema: object, value: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("becket.json_schema.keywords.FULL_BUDGET", 50_000)

    assert problems(schema, value, trusted=False)[-1] == (
        "",
        "takes more than 50000 steps to be checked against its schema",
    )


def test_an_ordinary_schema_and_a_large_value_are_within_the_bounds() -> None:
    value = [{"text": f"note {at}", "tags": ["a", "b"], "at": at} for at in range(8_000)]

    assert FULL_BUDGET == 500_000
    assert problems({"items": NOTE}, value, trusted=False) == []


def test_numbers_that_were_chosen_for_their_hash_take_no_longer() -> None:
    colliding = [at * sys.hash_info.modulus for at in range(20_000)]

    assert problems({"uniqueItems": True}, colliding) == []


def test_long_names_are_not_copied_for_each_value_below_them() -> None:
    inner: dict[str, Any] = {"$defs": {str(at): {"$ref": "http://x"} for at in range(500)}}
    for _ in range(20):
        inner = {"$defs": {"x" * 10_000: inner}}

    tracemalloc.start()
    found = refusals(inner)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert len(found[0][0]) < 300
    assert peak < 20_000_000


def test_the_target_of_references_is_checked_against_the_meta_schema_once() -> None:
    inner: dict[str, Any] = {"allOf": [{"minimum": 0}] * 2_000}
    for _ in range(50):
        inner = {"not": inner}
    references = [{"$ref": "#/x" + "/not" * depth} for depth in range(50)]

    compile_schema({"x": inner, "allOf": references})
    ((_, message), *_) = refusals({"x": inner, "allOf": references[::-1]})
    assert "steps" in message


def test_only_so_many_patterns_are_tried() -> None:
    heavy = {f"{at}\\pL{{900}}": True for at in range(1_000)}

    assert ("", f"has more than {MAX_PATTERNS} patterns") in refusals({"patternProperties": heavy})


def test_a_value_that_is_nested_too_deeply_is_a_problem() -> None:
    value: list[Any] = []
    for _ in range(5_000):
        value = [value]

    for schema in ({"items": {"$ref": "#"}}, {"const": 1}, {"uniqueItems": True}):
        assert problems(schema, value) == [("", "is nested too deeply to be checked against its schema")]


def test_a_value_that_holds_itself_is_a_problem() -> None:
    value: list[Any] = []
    value.append(value)

    assert problems({"items": {"$ref": "#"}}, value)


# -- modes


def test_the_modes_are_read_from_their_names() -> None:
    assert [SchemaMode(name) for name in ("off", "warn", "enforce")] == list(SchemaMode)


# -- properties

WORDS = st.sampled_from(["a", "b", "ab", "", "$schema", "\ud800"])
NUMBERS = st.integers(-3, 3) | st.sampled_from([0.5, 2.0, -1.5, 1e308, 5e-324, 2**70, -(10**300)])
SCALARS = st.none() | st.booleans() | NUMBERS | WORDS
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=12,
)
NAMES = [
    "$ref",
    "$dynamicRef",
    "$id",
    "$schema",
    "$anchor",
    "$dynamicAnchor",
    "$defs",
    "definitions",
    "type",
    "enum",
    "const",
    "format",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "required",
    "minProperties",
    "maxProperties",
    "properties",
    "patternProperties",
    "additionalProperties",
    "propertyNames",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
    "minItems",
    "maxItems",
    "prefixItems",
    "items",
    "additionalItems",
    "contains",
    "minContains",
    "maxContains",
    "uniqueItems",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "unevaluatedProperties",
    "unevaluatedItems",
    "contentSchema",
    "title",
    "$comment",
    "$vocabulary",
]
TEXTS = st.sampled_from(
    ["#", "#/$defs/a", "#/allOf/0", "#a", "a", "string", "object", "^a", "(", "(?=a)", DRAFT_7, DRAFT_2020, "http://x"]
)
ODD_SCHEMAS = st.recursive(
    SCALARS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES) | WORDS, inner, max_size=5),
    max_leaves=20,
)


@settings(max_examples=200)
@given(schema=ODD_SCHEMAS, value=VALUES)
def test_any_json_is_a_schema_or_refused_as_one(schema: object, value: object) -> None:
    try:
        validator = compile_schema(schema)
    except BadSchema as error:
        found = list(error.problems)
    else:
        found = validator.find_problems(value)
    assert all((pointer + message).encode() for pointer, message in found)


def schemas(dependent: str) -> st.SearchStrategy[Any]:
    """Returns schemas that are valid in their draft, with references to two parts that are always there."""
    counts = st.integers(0, 3)
    kinds = st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"])
    names = st.sampled_from(["a", "b", "ab"])
    some = st.lists(names, max_size=2, unique=True)
    scalars: dict[str, st.SearchStrategy[Any]] = {
        "type": kinds | st.lists(kinds, min_size=1, max_size=3, unique=True),
        "enum": st.lists(VALUES, min_size=1, max_size=3),
        "const": VALUES,
        "minimum": NUMBERS,
        "exclusiveMaximum": NUMBERS,
        "multipleOf": st.integers(1, 3),
        "minLength": counts,
        "maxLength": counts,
        "pattern": st.sampled_from(["^a", "b", "^$"]),
        "required": some,
        "minProperties": counts,
        "maxItems": counts,
        "uniqueItems": st.booleans(),
        "$ref": st.sampled_from(["#/$defs/one", "#/$defs/two/items"]),
    }

    def extend(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        many = st.lists(inner, min_size=1, max_size=3)
        members = st.dictionaries(names, inner, max_size=3)
        keywords = {
            **scalars,
            "allOf": many,
            "anyOf": many,
            "oneOf": many,
            "not": inner,
            "if": inner,
            "then": inner,
            "else": inner,
            "properties": members,
            "patternProperties": st.dictionaries(st.sampled_from(["^a", "b"]), inner, max_size=2),
            "additionalProperties": inner,
            "propertyNames": inner,
            "contains": inner,
        }
        if dependent == DRAFT_7:
            keywords["items"] = inner | many
            keywords["additionalItems"] = inner
            keywords["dependencies"] = st.dictionaries(
                names, inner | st.lists(names, max_size=2, unique=True), max_size=2
            )
        else:
            keywords["items"] = inner
            keywords["prefixItems"] = many
            keywords["dependentSchemas"] = members
            keywords["dependentRequired"] = st.dictionaries(names, some, max_size=2)
            keywords["minContains"] = counts
            keywords["maxContains"] = counts
            keywords["unevaluatedProperties"] = inner
            keywords["unevaluatedItems"] = inner
        return st.booleans() | st.fixed_dictionaries({}, optional=keywords)

    one = st.recursive(st.booleans() | st.fixed_dictionaries({}, optional=scalars), extend, max_leaves=12)
    parts = {"one": {"type": ["string", "integer", "array"]}, "two": {"items": {"maxLength": 1}}}
    return st.builds(lambda schema: {"$schema": dependent, "$defs": parts, "allOf": [schema]}, one)


@pytest.mark.parametrize(("uri", "reference"), [(DRAFT_2020, Draft202012Validator), (DRAFT_7, Draft7Validator)])
def test_the_verdict_is_the_same_as_that_of_jsonschema(uri: str, reference: Any) -> None:
    @settings(max_examples=60)
    @given(schema=schemas(uri), value=VALUES)
    def check(schema: Any, value: object) -> None:
        found = compile_schema(schema).find_problems(value)
        try:
            expected = reference(schema).is_valid(value)
        except TypeError:  # jsonschema trips over `additionalItems` beside an `items` that is true or false
            return
        assert (found == []) is expected, found

    check()


def test_a_slow_check_is_abandoned_soon() -> None:
    validator = compile_schema({"items": {"type": "string"}})

    assert validator.find_problems_within_budget(["a", 1]) == [("/1", "expected `string`, got `integer`")]
    assert validator.find_problems_within_budget(["a"] * 20_000) is None
    assert validator.find_problems(["a"] * 20_000) == []


PLAIN_VALUES = st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([1.0, 1.5, "", "a"]) | st.just([])
PLAIN_TYPES = st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"])
TYPE_LISTS = st.lists(PLAIN_TYPES, min_size=1, unique=True)
FLAT_SCHEMAS = st.fixed_dictionaries(
    {
        "type": st.just("object"),
        "properties": st.dictionaries(
            st.sampled_from("abc"), st.fixed_dictionaries({"type": PLAIN_TYPES | TYPE_LISTS})
        ),
    },
    optional={
        "required": st.lists(st.sampled_from("abcd"), unique=True),
        "additionalProperties": st.booleans() | st.just({"type": "string"}),
        "minProperties": st.integers(0, 2),
    },
)


@given(FLAT_SCHEMAS, st.dictionaries(st.sampled_from("abcd"), PLAIN_VALUES) | PLAIN_VALUES)
def test_the_quick_check_of_plain_objects_agrees_with_the_keywords(schema: object, value: object) -> None:
    validator = compile_schema(schema)
    problems = validator.find_problems(value)
    assert validator.find_problems_within_budget(value) == problems
