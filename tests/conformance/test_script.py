"""The step language of conformance cases: what a line means, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from becket.conformance.matching import fill, find_mismatch
from becket.conformance.script import (
    CheckAlive,
    CloseOutput,
    ExpectEnd,
    ExpectExit,
    ExpectMessage,
    ExpectSilence,
    Forbid,
    Role,
    ScriptError,
    SendBody,
    SendBytes,
    SendMessage,
    parse_script,
    unescape,
)


def test_a_script_of_an_extension_sends_what_the_host_sends() -> None:
    steps = parse_script('> {"id": 1,\n   "method": "a"}\n# a remark\n< {"id": 1}\nalive\nclose', Role.EXTENSION)

    assert steps == (SendMessage({"id": 1, "method": "a"}), ExpectMessage({"id": 1}), CheckAlive(), CloseOutput())


def test_a_script_of_a_host_expects_what_the_host_sends() -> None:
    steps = parse_script('> {"method": "initialize"}\n< {"id": 1}', Role.HOST)

    assert steps == (ExpectMessage({"method": "initialize"}), SendMessage({"id": 1}))


def test_alternatives_belong_to_the_expectation_above() -> None:
    (step, after) = parse_script('< {"id": 1}\n<~ closed\n<~ exit 0 within 1s\n<< {"id": 2}', Role.EXTENSION)

    assert step == ExpectMessage({"id": 1}, tolerated=(ExpectEnd(), ExpectExit((0,), 1.0)))
    assert after == ExpectMessage({"id": 2}, is_after=True)


def test_a_response_may_be_tolerated_where_none_is_expected() -> None:
    steps = parse_script('< nothing 100ms\n<~ {"id": 1}', Role.EXTENSION)

    assert steps == (ExpectSilence(0.1, tolerated=(ExpectMessage({"id": 1}),)),)


@pytest.mark.parametrize(
    ("line", "step"),
    [
        ("> *3 {}", SendMessage({}, 3)),
        ("> split 2 {}", SendMessage({}, 1, 2)),
        ("> body {", SendBody("{")),
        (r"> bytes a\r\n", SendBytes(r"a\r\n")),
        ("< nothing 200ms", ExpectSilence(0.2)),
        ('<? {"method": "a"}', ExpectMessage({"method": "a"}, skips_others=True)),
        ('never < {"id": null}', Forbid({"id": None})),
        ("exit 0,143 within 2s", ExpectExit((0, 143), 2.0)),
        ("exit any within 2s", ExpectExit((), 2.0)),
    ],
)
def test_a_line_is_a_step(line: str, step: object) -> None:
    assert parse_script(line, Role.EXTENSION) == (step,)


@pytest.mark.parametrize(
    "line", ["dance", "> {", "< {", "<~ {}", ">? {}", "never > {}", "< nothing soon", "exit 0", "wait 3"]
)
def test_a_malformed_line_is_refused_with_its_text(line: str) -> None:
    with pytest.raises(ScriptError) as caught:
        parse_script(line, Role.EXTENSION)

    assert line in str(caught.value)


def test_escapes_are_bytes_and_those_of_json_stay() -> None:
    assert unescape(r"a\r\n\xff\\n\u0041ä") == b"a\r\n\xff\\n\\u0041" + "ä".encode()


# -- patterns


@pytest.mark.parametrize(
    ("pattern", "value"),
    [
        ({"a": 1}, {"a": 1, "b": 2}),
        ({"a": "$absent"}, {"b": 2}),
        ([1, "..."], [1, 2, 3]),
        ("$any", None),
        ("$int", 5),
        ("$number", 5.5),
        ("$bool", True),
        ("$text", ""),
        ("$has:milk", {"a": ["buy milk"]}),
        ("$lacks:milk", {"a": 1}),
        ("$size:2", "ab"),
        ("$/ping", "$/ping"),
        ({"$one_of": [1, 2]}, 2),
        ({"$not": 1}, 2),
        ({"$between": [1, 5]}, 5),
        ({"$regex": "a+"}, "aaa"),
        ({"$each": {"a": "$int"}}, [{"a": 1}, {"a": 2}]),
        ({"$includes": 2}, [1, 2]),
        ({"$unordered": [1, 2]}, [2, 1]),
        ({"$unique": "a"}, [{"a": 1}, {"a": 2}]),
    ],
)
def test_a_pattern_matches(pattern: Any, value: Any) -> None:
    assert find_mismatch(pattern, value, {}) is None


@pytest.mark.parametrize(
    ("pattern", "value", "pointer"),
    [
        ({"a": {"b": 1}}, {"a": {"b": 2}}, "/a/b"),
        ({"a": {"b": 1}}, {"a": {}}, "/a/b"),
        ({"a": "$absent"}, {"a": None}, "/a"),
        ([1], [1, 2], "/"),
        ([1, 2, "..."], [1], "/"),
        ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]}, "/a/1/b"),
        (1, 1.0, "/"),
        (1, True, "/"),
        ("$int", True, "/"),
        ("$text", 1, "/"),
        ("$size:2", "abc", "/"),
        ({"$unordered": [1, 2]}, [2, 2], "/"),
        ({"$unique": "a"}, [{"a": 1}, {"a": 1}], ""),
        ({"$each": "$int"}, [1, "a"], "/1"),
        ({"$not": 1}, 1, "/"),
    ],
)
def test_a_mismatch_names_the_pointer(pattern: Any, value: Any, pointer: str) -> None:
    problem = find_mismatch(pattern, value, {})

    assert problem is not None
    assert problem.startswith(f"{pointer}:")


def test_a_variable_is_bound_and_used() -> None:
    variables: dict[str, Any] = {}

    assert find_mismatch({"id": "$let:own"}, {"id": 7}, variables) is None
    assert fill({"id": "$own", "text": "run-${own}", "long": "$repeat:3:ab"}, variables) == {
        "id": 7,
        "text": "run-7",
        "long": "ababab",
    }
    with pytest.raises(LookupError):
        fill("$other", variables)
