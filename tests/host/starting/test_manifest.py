"""Manifests are validated by their schema; hostile ones are refused with all problems and hints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from msgspec import Raw
from tests.contract.agreement import (
    EXAMPLES,
    Agreement,
    agreement,
    definition_of,
    disagreement,
    inside,
    validator,
    values,
)
from tests.contract.sample_files import load_samples

from becket.contract.hooks import HookEvent, HookKind, HookMatch
from becket.errors import ManifestError, Problem
from becket.host.restart import RestartPolicy, RestartStrategy
from becket.host.starting.becket_toml import FILE_NAME, BecketToml, load_manifest, parse_manifest
from becket.host.starting.manifest import (
    CommandEntry,
    ConfigEntry,
    ConfigType,
    Environment,
    HookEntry,
    LimitOverrides,
    Manifest,
    Requirements,
    RestartOverrides,
    SettingsCategory,
    SettingsField,
    SidecarEntry,
    build_id,
    is_id,
)
from becket.host.starting.manifest_problems import hint_for
from becket.host.starting.manifest_reader import ManifestReader, ScopedFiles
from becket.json_schema.files import load_schema
from becket.limits import Limits

LEAST = {"id": "notes", "version": "1.2.0", "command": ["./notes"]}

WHOLE = """
manifest = 1
id = "notes"
version = "1.2.0"
name = "Notes"
description = "Keeps notes and counts them."
authors = ["Ada <ada@example.org>"]
license = "MIT"
homepage = "https://example.org/notes"
command = ["python3", "notes.py"]
dialect = "native"
permissions = ["memory.read", "tools.intercept"]
after = ["other"]

[requires]
bins = ["rg"]
env = ["NOTES_DIR"]

[environment]
pass = ["NOTES_DIR"]
set = { RUST_LOG = "info" }

[config.limit]
type = "integer"
default = 10

[config.token]
type = "string"
secret = true
env = "NOTES_TOKEN"
required = true

[restart]
strategy = "exponential"
most = 3

[limits]
call_timeout = 20

[[capabilities]]
kind = "notes"
name = "Notes"

[[commands]]
name = "reindex"

[[hooks]]
hook = "before_tool_call"
tool = "bash"
match = { input_contains = "rm -rf" }

[[settings]]
id = "notes"
label = "Notes"
fields = [{ key = "limit", label = "Limit" }]

[sidecar]
command = ["bin/listen"]

[mcp_servers.mail]
command = "./mail"

[x]
icon = "notebook"
"""


def problems_of(table: dict[str, Any]) -> list[Problem]:
    with pytest.raises(ManifestError) as caught:
        parse_manifest(table, "/a/becket.toml")
    assert caught.value.path == "/a/becket.toml"
    return list(caught.value.problems)


def problems_with(**members: Any) -> list[Problem]:
    return problems_of(LEAST | members)


# -- reading


def test_the_shortest_manifest_has_the_defaults() -> None:
    manifest = parse_manifest(dict(LEAST), "x")

    assert (manifest.id, manifest.version, manifest.command) == ("notes", "1.2.0", ("./notes",))
    assert (manifest.dialect, manifest.permissions, manifest.hooks) == ("native", (), ())
    assert not manifest.sidecar


def test_every_member_is_read(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_text(WHOLE, encoding="utf-8")

    manifest = load_manifest(tmp_path / FILE_NAME)

    defaults = msgspec.structs.asdict(parse_manifest(dict(LEAST), "x"))
    assert [
        name
        for name, value in msgspec.structs.asdict(manifest).items()
        if value == defaults[name] and name not in ("id", "version", "manifest", "dialect")
    ] == []
    assert manifest.hooks == (HookEntry(hook=HookKind.BEFORE_TOOL_CALL, tool="bash", match=manifest.hooks[0].match),)
    assert manifest.hooks[0].matcher == HookMatch("bash", "rm -rf")
    assert manifest.environment == Environment(passed=("NOTES_DIR",), set={"RUST_LOG": "info"})
    assert manifest.config["limit"] == ConfigEntry(type=ConfigType.INTEGER, default=10)


def test_a_manifest_is_encoded_and_decoded_unchanged() -> None:
    manifest = BecketToml().read(WHOLE.encode(), "x")

    again = msgspec.json.decode(msgspec.json.encode(manifest))

    assert parse_manifest(again, "x") == manifest
    assert validator("manifest", "manifest").is_valid(again)


def test_an_input_that_must_be_equal_is_compared_as_a_whole() -> None:
    entry = parse_manifest(
        LEAST | {"hooks": [{"hook": "before_tool_call", "match": {"input_equals": {"command": "x"}}}]}, "x"
    ).hooks[0]

    assert entry.matcher.matches(HookEvent.before_tool_call("bash", {"command": "x"}))
    assert not entry.matcher.matches(HookEvent.before_tool_call("bash", {"command": "y"}))


def test_a_file_that_cannot_be_read_is_a_manifest_error(tmp_path: Path) -> None:
    with pytest.raises(ManifestError) as caught:
        load_manifest(tmp_path / FILE_NAME)
    assert caught.value.path == str(tmp_path / FILE_NAME)


def test_a_file_that_is_not_toml_is_a_manifest_error() -> None:
    with pytest.raises(ManifestError) as caught:
        BecketToml().read(b"id = ", "/a/becket.toml")
    assert caught.value.problems[0][1].startswith("is not TOML")


# -- requested limits


def test_requested_limits_override_those_of_the_host_up_to_the_maximum() -> None:
    requested = LimitOverrides(frame=100, call_timeout=5.0)

    assert requested.apply_to(Limits()) == Limits(frame=100, call_timeout=5.0)
    assert requested.clamp(LimitOverrides(frame=50, nodes=1)) == LimitOverrides(frame=50, call_timeout=5.0)
    assert LimitOverrides().apply_to(Limits(frame=7)) == Limits(frame=7)


def test_a_requested_restart_policy_overrides_that_of_the_host() -> None:
    requested = RestartOverrides(strategy=RestartStrategy.NEVER, most=1)

    assert requested.apply_to(RestartPolicy(window=5.0)) == RestartPolicy(
        strategy=RestartStrategy.NEVER, most=1, window=5.0
    )


# -- what is refused


def test_all_problems_are_reported_together_each_with_its_pointer() -> None:
    assert problems_of(
        {
            "id": "Notes",
            "command": "./notes",
            "permission": [],
            "permissions": ["*", "memory.read", "memory.read", "tools.override"],
            "hooks": [{"hook": "on_session_end", "tool": "bash"}, {"hook": "on_usage"}],
            "config": {"limit": {"type": "integer", "default": "10"}, "a.b": {"type": "string"}},
            "restart": {"most": -1},
        }
    ) == [
        ("/id", "is no id: 1 to 64 of `a-z 0-9 . _ -`, the first a letter or digit, no two dots together"),
        ("/version", "is missing"),
        ("/command", "expected `array`, got `str`"),
        ("/permissions/0", "is no name of a permission such as `memory.read`"),
        ("/hooks/1/hook", "invalid enum value 'on_usage'"),
        ("/config/a.b", "is no key: it must not be empty or hold dots, slashes, white space or control characters"),
        ("/restart/most", "expected `int` >= 0"),
        ("/permission", "is unknown"),
        ("/permissions/3", "is reserved and never granted: tools.override"),
        ("/permissions/2", "stands here twice: memory.read"),
        ("/hooks/0/tool", "hook `on_session_end` does not allow a tool filter"),
        ("/config/limit/default", "is not of the type `integer`"),
    ]


@pytest.mark.parametrize(
    "id",
    [
        "",
        "a/b",
        "..",
        "a..b",
        "/etc",
        "a\0",
        "notes\n",
        "a\u202eb",
        "\u0430cme",  # a Cyrillic letter that looks like an a
        "\uff4eotes",  # a wide n
        "notes\u200b",
        "n" * 65,
        "n" * 10_000,
        ".hidden",
        "-rf",
        "_x",
        "Notes",
        "a b",
        "a:b",
    ],
)
def test_an_id_that_resembles_another_or_a_path_is_refused(id: str) -> None:
    [(pointer, message)] = problems_with(id=id)

    assert pointer == "/id"
    assert len(message) < 300


@pytest.mark.parametrize("version", [0, 2, 99, -1])
def test_another_format_version_is_reported_beside_the_supported_one_and_nothing_else(version: int) -> None:
    [(pointer, message)] = problems_of({"manifest": version, "something": "new"})

    assert pointer == "/manifest"
    assert f"version {version} " in message
    assert "version 1" in message


@pytest.mark.parametrize("version", ["1", True, 1.0, [1]])
def test_a_format_version_that_is_not_a_number_is_refused(version: object) -> None:
    assert [pointer for pointer, _ in problems_with(manifest=version)] == ["/manifest"]


@pytest.mark.parametrize(
    "command",
    [[], "", "python3 notes.py; rm -rf /", ["x\0"], [""] * 257, [1], {"program": "x"}],
)
def test_a_command_that_is_not_a_list_of_strings_is_refused(command: object) -> None:
    assert problems_with(command=command)


def test_a_wildcard_is_not_a_permission() -> None:
    assert problems_with(permissions=["*"])
    assert problems_with(permissions=["memory.*"])


@pytest.mark.parametrize(
    ("members", "pointer", "message"),
    [
        ({"capabilities": [{"kind": " ", "name": "n"}]}, "/capabilities/0/kind", "must not be blank"),
        (
            {"capabilities": [{"kind": "k", "name": "n", "permissions": ["audio.input", "fly"]}]},
            "/capabilities/0/permissions/1",
            "is no permission: fly",
        ),
        ({"commands": [{"name": "a:b"}]}, "/commands/0/name", "must not contain reserved character ':'"),
        ({"settings": [{"id": "", "label": "L", "fields": []}]}, "/settings/0/id", "must not be empty"),
        ({"settings": [{"id": "i", "label": " ", "fields": []}]}, "/settings/0/label", "must not be blank"),
        (
            {"config": {"k": {"type": "string", "secret": True, "default": ""}}},
            "/config/k/default",
            "a secret has no default",
        ),
        ({"config": {"k": {"type": "boolean", "default": 1}}}, "/config/k/default", "is not of the type `boolean`"),
        ({"config": {"k": {"type": "integer", "default": True}}}, "/config/k/default", "is not of the type `integer`"),
        ({"config": {"k": {"type": "number", "choices": ["1"]}}}, "/config/k/choices", "only a string has choices"),
        ({"requires": {"env": ["A-B"]}}, "/requires/env/0", "is no name of a variable"),
        (
            {"requires": {"bins": ["../x"]}},
            "/requires/bins/0",
            "is no name of a program: it must not be empty or hold a slash",
        ),
        ({"after": ["a", "b", "a"]}, "/after/2", "stands here twice: a"),
        ({"version": "1"}, "/version", "is no semantic version such as `1.2.0`"),
    ],
)
def test_a_broken_rule_is_reported_at_its_pointer(members: dict[str, Any], pointer: str, message: str) -> None:
    assert problems_with(**members) == [(pointer, message)]


# -- hints


def test_the_reader_has_a_file_name_and_hints() -> None:
    assert BecketToml().file_names == (FILE_NAME,)
    assert BecketToml().hint_for(("/bins", "is unknown")) == hint_for(("/bins", "is unknown"))


@pytest.mark.parametrize(
    ("problem", "hint"),
    [
        (("/permission", "is unknown"), "did you mean `permissions` of the manifest itself?"),
        (("/bins", "is unknown"), "`bins` belongs to `[requires]`"),
        (("/config/a/secrets", "is unknown"), "did you mean `secret` of an entry of `[config]`?"),
        (("/zzzzzz", "is unknown"), "put your own members under `[x]`"),
        (("/manifest", "is version 2 …"), "get a version of the extension and of the host that fit together"),
        (("/version", "is missing"), 'give it a version: `version = "0.1.0"`'),
        (("/name", "expected `str`, got `int`"), ""),
    ],
)
def test_problems_have_hints(problem: Problem, hint: str) -> None:
    assert hint_for(problem) == hint


def test_the_error_for_a_shell_line_explains_that_no_shell_is_used() -> None:
    [problem] = problems_with(command="python3 notes.py")

    assert "no shell" in hint_for(problem)


# -- beside the schema


def read_manifest(raw: Raw) -> Manifest:
    value = msgspec.json.decode(raw)
    if not isinstance(value, dict):
        raise ValueError("no table")
    return parse_manifest(value, "x")


def part(name: str, definition: str, made_from: Any, form: str = "@") -> Agreement:
    """Returns a line of the table: a part of the manifest, read within the whole, where `@` stands in the form."""
    others = {key: value for key, value in LEAST.items() if key != name}
    opening, closing = form.split("@")
    before = f'{msgspec.json.encode(others).decode()[:-1]},"{name}":{opening}'
    return agreement(inside(before, closing + "}", read_manifest), "manifest", definition, made_from=made_from)


AGREEMENTS = [
    agreement(read_manifest, "manifest", "manifest", made_from=Manifest),
    part("id", "id", str),
    part("version", "version", str),
    part("command", "command", list[str]),
    part("permissions", "permission", str, "[@]"),
    part("commands", "command_entry", CommandEntry, "[@]"),
    part("hooks", "hook", HookEntry, "[@]"),
    part("requires", "requires", Requirements),
    part("config", "config_key", str, '{@: {"type": "string"}}'),
    part("config", "config_entry", ConfigEntry, '{"k": @}'),
    part("environment", "environment", Environment),
    part("requires", "variable", str, '{"env": [@]}'),
    part("mcp_servers", "server", str, "{@: {}}"),
    part("restart", "restart", RestartOverrides),
    part("limits", "limits", LimitOverrides),
    part("settings", "settings_category", SettingsCategory, "[@]"),
    part("settings", "settings_field", SettingsField, '[{"id": "i", "label": "l", "fields": [@]}]'),
    part("sidecar", "sidecar", SidecarEntry),
]
EACH = pytest.mark.parametrize("held", AGREEMENTS, ids=lambda held: held.definition)


@pytest.mark.slow
@EACH
@given(data=st.data())
@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow])
def test_the_reader_accepts_exactly_what_the_schema_accepts(held: Agreement, data: st.DataObject) -> None:
    assert disagreement(held, data.draw(values(held))) is None


@EACH
def test_the_examples_of_the_schema_are_read(held: Agreement) -> None:
    assert [example for example in definition_of(held)["examples"] if not held.accepts(example)] == []


@EACH
def test_good_samples_are_read_and_bad_ones_refused(held: Agreement) -> None:
    samples = [
        sample for sample in load_samples() if (sample.schema, sample.definition) == ("manifest", held.definition)
    ]

    assert samples
    assert [sample.value for sample in samples if held.accepts(sample.value) != sample.is_good] == []


def test_no_definition_of_the_schema_is_left_out() -> None:
    assert sorted(held.definition for held in AGREEMENTS) == sorted(load_schema("manifest")["$defs"])


MEMBERS = ["hook", "tool", "type", "default", "name", "kind", "permissions"]
ANY_SHAPE = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(MEMBERS), inner, max_size=3)),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(Manifest.__struct_encode_fields__), ANY_SHAPE, max_size=5))
def test_any_table_is_read_or_refused(table: dict[str, Any]) -> None:
    try:
        parse_manifest(table, "x")
    except ManifestError:
        pass


# -- ids made of names


@pytest.mark.parametrize(
    ("name", "id"),
    [
        ("notes", "notes"),
        ("My Plugin", "my-plugin"),
        ("../..secret", "secret"),
        ("a...b", "a.b"),
        ("_x", "x"),
        ("ÄÖ!", ""),
        ("x" * 80, "x" * 64),
    ],
)
def test_a_name_becomes_the_nearest_id(name: str, id: str) -> None:
    assert build_id(name) == id
    assert is_id(id) is bool(id)


def test_a_base_reader_reads_no_format() -> None:
    reader = ManifestReader()
    assert (reader.file_names, reader.list_names, reader.prefixes, reader.hint_for(("", "x"))) == ((), (), (), "")
    with pytest.raises(NotImplementedError):
        reader.read(b"", "/x")
    with pytest.raises(NotImplementedError):
        reader.read_list(b"", "/x", ScopedFiles("/", "/"))
    with pytest.raises(NotImplementedError):
        reader.read_program("/x")
