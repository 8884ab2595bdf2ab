"""Names and ids: which are valid, and the names that a model sees."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from becket.contract.names import (
    NameMap,
    check_id_segment,
    find_id_problem,
    is_provider_id,
    model_facing_name,
    model_facing_names,
    model_facing_schema,
    model_runtime_id,
    parse_model_id,
    property_name,
    provider_runtime_id,
    restore_input,
    strip_whitespace,
    tool_runtime_name,
)

# -- ids


@pytest.mark.parametrize("id", ["a", "foo-bar_baz.123", "a/b", "Größe", "x" * 64, "é" * 32, "a\u200bb"])
def test_an_id_may_hold_all_but_a_few_characters(id: str) -> None:
    assert find_id_problem(id) is None
    check_id_segment("tool", id)


@pytest.mark.parametrize(
    ("id", "sentence", "brief"),
    [
        ("", "must not be empty", "must not be empty"),
        ("x" * 65, "must be at most 64 chars (got 65)", "must be at most 64 chars (got 65)"),
        ("é" * 33, "must be at most 64 chars (got 66)", "must be at most 64 chars (got 66)"),
        ("a\x1b:", "must not contain control character U+001B", "contains control character U+001B"),
        ("a\x07b", "must not contain control character U+0007", "contains control character U+0007"),
        ("a\x1cb", "must not contain control character U+001C", "contains control character U+001C"),
        ("a\x9f", "must not contain control character U+009F", "contains control character U+009F"),
        ("\x7f", "must not contain control character U+007F", "contains control character U+007F"),
        ("a:b c", "must not contain reserved character ':'", "':' is reserved"),
        ("a b", "must not contain whitespace", "must not contain whitespace"),
        ("a\tb", "must not contain whitespace", "must not contain whitespace"),
        ("a\x85b", "must not contain whitespace", "must not contain whitespace"),
        ("a\u3000b", "must not contain whitespace", "must not contain whitespace"),
        (f"{'x' * 65}: ", "must be at most 64 chars (got 67)", "must be at most 64 chars (got 67)"),
    ],
)
def test_the_first_rule_that_an_id_breaks_is_named(id: str, sentence: str, brief: str) -> None:
    problem = find_id_problem(id)

    assert problem is not None
    assert (problem.sentence, problem.brief) == (sentence, brief)


def test_the_check_names_its_subject_and_ignores_white_space_around_it() -> None:
    check_id_segment("tool", " echo\n")
    with pytest.raises(ValueError) as caught:
        check_id_segment("tool", " x:y ")

    assert str(caught.value) == "invalid tool 'x:y': must not contain reserved character ':'"


def test_a_lone_surrogate_has_a_length_too() -> None:
    assert find_id_problem("\ud800") is None


def test_trimming_takes_white_space_of_unicode_and_nothing_else() -> None:
    assert strip_whitespace("\t\n\v\f\r \x85\xa0\u1680\u2000\u200a\u2028\u2029\u202f\u205f\u3000a\u3000") == "a"
    assert strip_whitespace("\x1ca\x1f\u200b") == "\x1ca\x1f\u200b"


@pytest.mark.parametrize(("id", "is_one"), [("a-b_9", True), ("", False), ("A", False), ("a.b", False), ("é", False)])
def test_the_id_of_a_provider_has_few_characters(id: str, is_one: bool) -> None:
    assert is_provider_id(id) is is_one


# -- runtime names


def test_runtime_names_include_the_extension() -> None:
    assert tool_runtime_name("notes", "count") == "notes:count"
    assert provider_runtime_id("demo", "local") == "demo:local"
    assert model_runtime_id("demo", "local", "small") == "demo:local:small"


def test_the_id_of_a_model_has_three_parts() -> None:
    assert parse_model_id("demo:local:gpt-4.1/mini") == ("demo", "local", "gpt-4.1/mini")


@pytest.mark.parametrize(
    "id", ["", "demo", "demo:local", "demo:local:small:more", ":local:small", "demo::small", "a:b:"]
)
def test_a_model_id_has_exactly_three_parts(id: str) -> None:
    with pytest.raises(ValueError, match=r"plugin:provider:model"):
        parse_model_id(id)


# -- names for models


@pytest.mark.parametrize(
    ("runtime_name", "facing"),
    [
        ("plugin:skill.tool", "plugin_skill_tool"),
        ("bash", "bash"),
        ("a:B-9_", "a_B-9_"),
        ("notes:größe", "notes_gr__e"),
        ("notes:a b", "notes_a_b"),
        ("", "field"),
        ("x" * 140, "x" * 128),
    ],
)
def test_a_tool_gets_a_name_that_models_accept(runtime_name: str, facing: str) -> None:
    assert model_facing_name(runtime_name) == facing


def test_a_duplicate_name_gets_a_number_within_the_limit() -> None:
    assert model_facing_name("a:b", {"a_b"}) == "a_b_2"
    assert model_facing_name("a:b", {"a_b", "a_b_2"}) == "a_b_3"
    assert model_facing_name("x" * 140, {"x" * 128}) == "x" * 126 + "_2"


def test_clashing_names_get_the_same_numbers_in_any_order() -> None:
    names = model_facing_names(["a:b", "c:d", "a.b", "a:b", "a/b"])

    assert names == {"a_b": "a.b", "a_b_2": "a/b", "a_b_3": "a:b", "c_d": "c:d"}
    assert names == model_facing_names(["a/b", "a.b", "c:d", "a:b"])


def test_a_property_may_have_dots_and_is_shorter() -> None:
    assert property_name("a.b:c") == "a.b_c"
    assert property_name("x" * 70) == "x" * 64
    assert property_name("a/b", {"a_b"}) == "a_b_2"


LONG = "bad:key/that/is/far/too/long/for/the/names/of/properties/and/keeps/going/on"


def test_property_names_are_mapped_back_at_every_level() -> None:
    schema = {
        "type": "object",
        "properties": {
            LONG: {"type": "string"},
            "a:b": {"type": "object", "properties": {"c/d": {"type": "string"}}, "required": ["c/d"]},
            "a/b": {"type": "array", "items": {"properties": {"e f": True}}},
            "plain": {"type": "string"},
        },
        "required": [LONG, "a/b", "elsewhere", 7],
    }

    facing, names = model_facing_schema(schema)

    short = LONG.replace(":", "_").replace("/", "_")[:64]
    assert facing == {
        "type": "object",
        "properties": {
            short: {"type": "string"},
            "a_b": {"type": "object", "properties": {"c_d": {"type": "string"}}, "required": ["c_d"]},
            "a_b_2": {"type": "array", "items": {"properties": {"e_f": True}}},
            "plain": {"type": "string"},
        },
        "required": [short, "a_b_2", "elsewhere", 7],
    }
    written = {short: "x", "a_b": {"c_d": 1, "other": 2}, "a_b_2": [{"e_f": 3}, 4], "plain": {"c_d": 5}, "new": [6]}
    assert restore_input(written, names) == {
        LONG: "x",
        "a:b": {"c/d": 1, "other": 2},
        "a/b": [{"e f": 3}, 4],
        "plain": {"c_d": 5},
        "new": [6],
    }


def test_the_schema_itself_is_unchanged() -> None:
    schema = {"properties": {"a:b": {}}, "required": ["a:b"]}
    model_facing_schema(schema)

    assert schema == {"properties": {"a:b": {}}, "required": ["a:b"]}


@pytest.mark.parametrize(
    "schema", [True, None, "x", {"properties": [], "required": "a", "items": [{}]}, {"items": False}]
)
def test_an_unusual_schema_is_unchanged(schema: Any) -> None:
    assert model_facing_schema(schema) == (schema, NameMap())


def test_a_name_map_is_true_where_a_name_differs_at_any_level() -> None:
    assert not NameMap()
    assert model_facing_schema({"items": {"items": {"properties": {"a:b": {}}}}})[1]
    assert not model_facing_schema({"items": {"properties": {"a": {}}}})[1]


NAMES = st.text(st.sampled_from("ab:/._ é"), max_size=4)


@given(st.lists(NAMES, unique=True, max_size=8))
def test_every_property_comes_back_under_its_own_name(names: list[str]) -> None:
    facing, back = model_facing_schema({"properties": dict.fromkeys(names, True)})

    shown = list(facing["properties"])
    assert all(len(name) <= 64 and name and set(name) <= set("abcdefil._2345678") for name in shown)
    assert list(restore_input(dict.fromkeys(shown), back)) == names
