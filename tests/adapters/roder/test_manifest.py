"""The manifest of Roder: its checksum, its defaults, and the message of every rule."""

from __future__ import annotations

import datetime
from typing import Any

import msgspec
import pytest

from becket.adapters.roder import (
    EventFilter,
    EventSink,
    InferenceEngine,
    ProcessExtension,
    RoderManifest,
    Service,
    TaskExecutor,
    ToolProvider,
    ToolSpec,
    find_manifest_problems,
    manifest_checksum,
)
from becket.adapters.roder.messages.services import are_equal_services, filter_services
from becket.adapters.roder.rust_debug import format_services, format_text

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
WORD_COUNT = ToolSpec("word_count", "Counts words.", SCHEMA)


def manifest(provides: list[Service] | None = None, **more: Any) -> RoderManifest:
    given: dict[str, Any] = {"id": "demo", "name": "Demo", "version": "0.1.0", "api_version": "^0.1"}
    services = [EventSink("s")] if provides is None else provides
    return RoderManifest(**(given | more), provides=tuple(services))


def with_tools(*tools: ToolSpec) -> RoderManifest:
    return manifest([EventSink("s"), ToolProvider("t", tools)])


# -- the checksum


@pytest.mark.parametrize(
    ("data", "checksum"),
    [(b"", "cbf29ce484222325"), (b"a", "af63dc4c8601ec8c"), (b"foobar", "85944171f73967e8")],
)
def test_the_checksum_is_fnv_1a_of_64_bits(data: bytes, checksum: str) -> None:
    assert manifest_checksum(data) == checksum


# -- the rules


def test_a_valid_manifest_has_no_problems() -> None:
    assert find_manifest_problems(with_tools(WORD_COUNT)) == []


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (manifest(id="  "), ("/id", "process extension manifest is missing an id")),
        (manifest([]), ("/provides", "process extension demo declares no provided services")),
        (
            manifest(api_version="newest"),
            (
                "/api_version",
                'process extension demo has invalid api_version "newest": '
                "unexpected character 'n' while parsing major version number",
            ),
        ),
        (
            manifest(api_version="^9.9"),
            (
                "/api_version",
                'process extension demo requires extension API "^9.9" but the host supports 0.1.0',
            ),
        ),
        (with_tools(), ("/provides/1/tools", "process extension demo tool provider t declares no tools")),
        (
            with_tools(ToolSpec(" ", "d", SCHEMA)),
            (
                "/provides/1/tools/0/name",
                "process extension demo tool provider t declares a tool with an empty name",
            ),
        ),
        (
            with_tools(WORD_COUNT, WORD_COUNT),
            (
                "/provides/1/tools/1/name",
                'process extension demo tool provider t declares tool "word_count" more than once',
            ),
        ),
    ],
)
def test_each_broken_rule_is_reported_with_the_message_of_roder(given: RoderManifest, problem: tuple[str, str]) -> None:
    assert find_manifest_problems(given) == [problem]


@pytest.mark.parametrize("parameters", [{"type": "string"}, {}, "free-form", ["object"], None])
def test_the_schema_of_a_tool_is_one_of_an_object(parameters: object) -> None:
    [(pointer, text)] = find_manifest_problems(with_tools(ToolSpec("w", "d", parameters)))

    assert pointer == "/provides/1/tools/0/parameters"
    assert text == (
        'process extension demo tool "w" parameters must be a JSON schema object (declare `type = "object"`)'
    )


def test_a_schema_with_a_date_in_it_is_refused_since_json_has_none() -> None:
    day = datetime.date(2026, 1, 1)
    schema = {"type": "object", "a": [1, None, {"b": 1.5}], "since": day}

    [(pointer, text)] = find_manifest_problems(with_tools(ToolSpec("w", "d", schema)))

    assert pointer == "/provides/1/tools/0/parameters"
    assert "date" in text


def test_all_problems_are_reported_at_once() -> None:
    broken = manifest([ToolProvider("t", (ToolSpec("", "d", 1),))], api_version="^2")

    assert [pointer for pointer, _ in find_manifest_problems(broken)] == [
        "/api_version",
        "/provides/0/tools/0/name",
        "/provides/0/tools/0/parameters",
    ]


# -- defaults and filters


def test_an_entry_of_the_configuration_needs_four_members() -> None:
    table = {"id": "a", "manifest": "m.toml", "command": "python3"}

    entry = msgspec.convert(table, ProcessExtension)

    assert entry.enabled
    assert entry.startup_timeout_ms == 10_000
    assert entry.env == {}
    assert entry.event_filter == EventFilter()


def test_a_filter_selects_kinds_by_their_prefix() -> None:
    chosen = EventFilter(("turn.", "inference."))

    assert [chosen.matches(kind) for kind in ("turn.started", "inference.started", "tool.turn.")] == [True, True, False]


def test_a_filter_without_kinds_selects_nothing() -> None:
    assert not EventFilter().matches("turn.started")


# -- services


def test_services_are_compared_in_order_and_as_json() -> None:
    one = (EventSink("s"), ToolProvider("t", (ToolSpec("w", "d", {"type": "object", "a": 1}),)))
    other = (EventSink("s"), ToolProvider("t", (ToolSpec("w", "d", {"a": 1, "type": "object"}),)))

    assert are_equal_services(one, other)
    assert not are_equal_services(one, one[::-1])


@pytest.mark.parametrize("value", [True, 1.0, "1", None])
def test_a_schema_with_another_value_is_another(value: object) -> None:
    one = ToolProvider("t", (ToolSpec("w", "d", {"a": 1}),))
    other = ToolProvider("t", (ToolSpec("w", "d", {"a": value}),))

    assert not are_equal_services((one,), (other,))


def test_services_of_one_type_are_found_in_order() -> None:
    provides = (TaskExecutor("a"), EventSink("s"), TaskExecutor("b"))

    assert [one.id for one in filter_services(provides, TaskExecutor)] == ["a", "b"]


# -- how messages show them


def test_a_text_is_shown_in_quotes_and_on_one_line() -> None:
    assert format_text('a"\\\n\r\t\0\x07é') == '"a\\"\\\\\\n\\r\\t\\0\\u{7}é"'


def test_services_are_shown_in_the_notation_of_rust() -> None:
    parameters = {"type": "object", "n": 1, "x": 1.5, "l": [True, None]}
    services = (InferenceEngine("e"), ToolProvider("t", (ToolSpec("w", "d", parameters),)))

    assert format_services(services) == (
        '[InferenceEngine { id: "e" }, ToolProvider { id: "t", tools: [ToolSpec { name: "w", description: "d", '
        'parameters: Object {"type": String("object"), "n": Number(1), "x": Number(1.5), '
        '"l": Array [Bool(true), Null]} }] }]'
    )


def test_values_that_json_lacks_are_shown_as_text() -> None:
    day = datetime.date(2026, 1, 1)

    assert "2026-01-01" in format_services((ToolProvider("t", (ToolSpec("w", "d", {"since": day}),)),))


def test_a_long_list_is_truncated() -> None:
    many = tuple(EventSink("s" * 100) for _ in range(1000))

    assert len(format_services(many)) < 2100
    assert len(format_text("a" * 10_000)) < 2100
