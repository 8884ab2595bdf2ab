"""`plugin.json` is read as synaps reads it: requests, problems and hints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from becket.adapters.synaps import SYNAPS
from becket.adapters.synaps.manifest import Plugin
from becket.adapters.synaps.manifest_reader import READER, find_plugin_roots
from becket.contract.hooks import HOOKS, HookKind
from becket.errors import ManifestError
from becket.host.starting.configuration import ConfigSource, resolve_config
from becket.host.starting.discovery import discover_extensions
from becket.host.starting.manifest import ConfigEntry, ConfigType, HookEntry, InputMatch, Manifest, SidecarEntry
from becket.host.starting.manifest_formats import MANIFEST_READERS
from becket.permissions.names import PERMISSIONS

EXTENSION: dict[str, Any] = {"runtime": "process", "command": "python3", "permissions": ["tools.register"]}


def read(extension: Any, folder: Path = Path("/plugins/demo"), **members: Any) -> Manifest:
    found = READER.read(written(extension, **members), str(folder / ".synaps-plugin" / "plugin.json"))
    assert found is not None
    assert isinstance(found.extra, Plugin)
    return found.manifest


def written(extension: Any, **members: Any) -> bytes:
    return json.dumps({"extension": extension, **members}).encode()


def problems(extension: Any, **members: Any) -> list[tuple[str, str]]:
    with pytest.raises(ManifestError) as bad:
        read(extension, **members)
    return [*bad.value.problems]


# -- what is read


def test_every_member_of_a_plugin_is_read() -> None:
    manifest = read(
        {
            "protocol_version": 1,
            "runtime": "process",
            "command": " python3 ",
            "args": ["main.py", "--fast"],
            "setup": "scripts/setup.sh",
            "prebuilt": {"linux-x86_64": {"url": "https://host/x.tar.gz", "sha256": "00"}},
            "permissions": ["tools.register", "tools.intercept", "tools.register"],
            "hooks": [
                {
                    "hook": "before_tool_call",
                    "tool": "bash",
                    "match": {"input_contains": "rm -rf", "input_equals": {"command": "x"}},
                },
                {"hook": "after_tool_call", "match": None},
            ],
            "config": [
                {"key": " endpoint ", "type": "string", "description": "d", "required": True, "default": "http://x"},
                {"key": "retries", "type": "number", "default": 3},
                {"key": "token", "secret_env": "MY_KEY"},
                {"key": "odd", "secret_env": "NOT A NAME"},
            ],
            "theme_tokens": {"accent": "#aabbcc"},
            "deferred": {"tools": [], "providers": [], "lifecycle": "hook"},
            "unknown": 1,
        },
        name="Demo",
        version="1.0.0",
        description="d",
        compatibility={"synaps": ">=0.1.0"},
        commands=[
            {"name": "demo", "interactive": True, "subcommands": ["help"]},
            {"name": "sh", "command": "cat", "args": ["docs/x.md"]},
            {"name": "t", "tool": "echo", "input": {}},
            {"name": "s", "skill": "k", "prompt": "p"},
        ],
        settings={
            "categories": [
                {
                    "id": "demo",
                    "label": "Demo",
                    "fields": [{"key": "mode", "label": "Mode", "editor": "cycler", "options": ["a"], "help": "h"}],
                }
            ]
        },
        provides={
            "sidecar": {
                "command": "bin/x",
                "protocol_version": 2,
                "lifecycle": {"command": "demo", "display_name": "Dictation", "importance": 500},
            }
        },
        keybinds=[],
        help_entries=[],
    )
    assert (manifest.id, manifest.name, manifest.version, manifest.dialect) == ("demo", "Demo", "1.0.0", "synaps")
    assert manifest.command == ("python3", "main.py", "--fast")
    assert manifest.permissions == ("tools.register", "tools.intercept")
    assert manifest.hooks == (
        HookEntry(
            hook=HookKind.BEFORE_TOOL_CALL,
            tool="bash",
            match=InputMatch(input_contains="rm -rf", input_equals={"command": "x"}),
        ),
        HookEntry(hook=HookKind.AFTER_TOOL_CALL),
    )
    assert manifest.config == {
        "endpoint": ConfigEntry(type=ConfigType.STRING, description="d", required=True, default="http://x"),
        "retries": ConfigEntry(type=ConfigType.NUMBER, default=3),
        "token": ConfigEntry(type=ConfigType.STRING, secret=True, env="MY_KEY"),
        "odd": ConfigEntry(type=ConfigType.STRING, secret=True),
    }
    commands = [(command.name, command.subcommands) for command in manifest.commands]
    assert commands == [("demo", ("help",)), ("sh", ()), ("t", ())]
    assert manifest.settings[0].fields[0].editor == "cycler"
    assert manifest.sidecar == SidecarEntry(command=("bin/x",), protocol=2, label="Dictation")


def test_members_that_the_contract_lacks_are_available_as_extra() -> None:
    found = READER.read(
        written({**EXTENSION, "setup": "s.sh"}, help=["h"], commands=[{"name": "sh", "command": "cat"}]),
        "/plugins/demo/.synaps-plugin/plugin.json",
    )
    assert found is not None
    plugin: Plugin = found.extra
    assert (plugin.extension.setup, plugin.help_entries, plugin.commands[0].command) == ("s.sh", ["h"], "cat")


def test_a_plugin_without_an_extension_is_ignored() -> None:
    assert READER.read(b'{"name":"theme"}', "/plugins/demo/.synaps-plugin/plugin.json") is None
    assert READER.read(b'{"extension":null}', "/plugins/demo/.synaps-plugin/plugin.json") is None


@pytest.mark.parametrize(
    ("name", "id"), [("notes", "notes"), ("My_Plugin", "my_plugin"), ("a b", "a-b"), (".hidden", "hidden")]
)
def test_the_id_is_the_name_of_the_folder(name: str, id: str) -> None:
    assert read(EXTENSION, Path("/plugins") / name, name="Another").id == id


def test_the_folder_name_is_available_as_extra_and_the_file_cannot_choose_another() -> None:
    found = READER.read(written(EXTENSION, id=7), "/plugins/My_Plugin/.synaps-plugin/plugin.json")
    assert found is not None
    assert (found.manifest.id, found.extra.id) == ("my_plugin", "My_Plugin")


@pytest.mark.parametrize(("importance", "kept"), [(500, 100), (-101, -100), (7, 7)])
def test_the_importance_of_a_sidecar_has_bounds(importance: int, kept: int) -> None:
    sidecar = {"command": "bin/x", "lifecycle": {"importance": importance}}
    found = READER.read(written(EXTENSION, provides={"sidecar": sidecar}), "/plugins/a/.synaps-plugin/plugin.json")
    assert found is not None
    assert found.extra.provides.sidecar.lifecycle.importance == kept


@pytest.mark.parametrize(("version", "read_as"), [("2.1.0-rc.1", "2.1.0-rc.1"), ("v2", "0.0.0"), (None, "0.0.0")])
def test_a_version_that_cannot_be_compared_counts_as_absent(version: str | None, read_as: str) -> None:
    assert read(EXTENSION, version=version).version == read_as


def test_arguments_are_used_as_written(tmp_path: Path) -> None:
    words = ["src/main.py", "../../outside.py", "-x", "a\x00b"]

    with pytest.raises(ManifestError):
        read({**EXTENSION, "args": words}, tmp_path)  # no program can be given a zero byte
    assert read({**EXTENSION, "args": words[:-1]}, tmp_path).command == ("python3", *words[:-1])


@pytest.mark.parametrize("sidecar", [{"command": "bin/x"}, {"command": " ", "protocol_version": 2}])
def test_a_sidecar_that_no_host_accepts_is_left_out(sidecar: dict[str, Any]) -> None:
    assert not isinstance(read(EXTENSION, provides={"sidecar": sidecar}).sidecar, SidecarEntry)


def test_two_members_have_second_names() -> None:
    category = {"id": "c", "label": "C", "fields": []}
    assert read(EXTENSION, settings={"category": category}).settings[0].id == "c"
    assert read(EXTENSION, settings={"category": [category]}).settings[0].id == "c"
    assert read(EXTENSION, settings={}).settings == ()


# -- what is refused


def test_only_the_version_is_reported_for_another_protocol_version() -> None:
    text = "Extension 'demo' uses unsupported protocol_version 999 (supported: 1)"
    assert problems({"protocol_version": 999, "command": 5}) == [("/extension/protocol_version", text)]


@pytest.mark.parametrize(
    ("change", "pointer", "text"),
    [
        ({"command": "  "}, "/extension/command", "Extension 'demo' has empty command"),
        (
            {"permissions": ["tools.intercept"]},
            "/extension",
            "Extension 'demo' must subscribe to at least one hook or request a registration permission",
        ),
        (
            {"permissions": ["tools.register", "tools.typo"]},
            "/extension/permissions/1",
            "Unknown extension permission: tools.typo",
        ),
        (
            {"permissions": ["tools.register", "tools.override"]},
            "/extension/permissions/1",
            "Reserved extension permission is not implemented yet: tools.override",
        ),
        (
            {"hooks": [{"hook": "on_usage"}]},
            "/extension/hooks/0/hook",
            "Unknown hook kind: 'on_usage' in extension 'demo'",
        ),
        (
            {"hooks": [{"hook": "before_message"}]},
            "/extension/hooks/0/hook",
            "Extension 'demo' lacks permission 'privacy.llm_content' required for hook 'before_message'",
        ),
        (
            {"permissions": ["session.lifecycle"], "hooks": [{"hook": "on_session_start", "tool": "bash"}]},
            "/extension/hooks/0/tool",
            "Extension 'demo' hook 'on_session_start' does not allow a tool filter",
        ),
        ({"config": [{"key": " "}]}, "/extension/config/0/key", "Extension 'demo' declares config with empty key"),
        (
            {"config": [{"key": "a.b"}]},
            "/extension/config/0/key",
            "Extension 'demo' config key 'a.b' must not contain dots, slashes, or spaces",
        ),
        (
            {"config": [{"key": "a\tb"}]},
            "/extension/config/0/key",
            "Extension 'demo' config key must not contain control characters",
        ),
    ],
)
def test_each_rule_has_the_message_of_synaps_and_a_hint(change: dict[str, Any], pointer: str, text: str) -> None:
    found = problems({**EXTENSION, **change})
    assert found == [(pointer, text)]
    assert READER.hint_for(found[0])


def test_all_problems_are_reported_in_the_order_of_synaps() -> None:
    found = problems({"runtime": "process", "command": "", "permissions": ["x.y"], "config": [{"key": ""}]})
    assert [pointer for pointer, _ in found] == [
        "/extension/command",
        "/extension",
        "/extension/permissions/0",
        "/extension/config/0/key",
    ]


@pytest.mark.parametrize(
    ("extension", "pointer"),
    [
        ({"command": "x"}, "/extension/runtime"),
        ({"runtime": "Process", "command": "x"}, "/extension/runtime"),
        ({"runtime": "process"}, "/extension/command"),
        ({**EXTENSION, "hooks": [{"hook": "before_tool_call", "match": {"input_regex": "x"}}]}, "/extension/hooks"),
        ({**EXTENSION, "args": "main.py"}, "/extension/args"),
        ({**EXTENSION, "protocol_version": True}, "/extension/protocol_version"),
        ("python3", "/extension"),
    ],
)
def test_a_value_of_another_shape_is_refused_with_its_pointer(extension: Any, pointer: str) -> None:
    assert any(found.startswith(pointer) for found, _ in problems(extension))


@pytest.mark.parametrize("data", [b"{", b"[]", b"\xff", b"[" * 100_000, b'{"extension": {"\xff": 1}}'])
def test_a_value_that_is_not_a_json_object_is_refused(data: bytes) -> None:
    with pytest.raises(ManifestError) as bad:
        READER.read(data, "/plugins/demo/.synaps-plugin/plugin.json")
    assert len(bad.value.problems) == 1


def test_a_folder_without_a_letter_cannot_name_an_extension() -> None:
    with pytest.raises(ManifestError) as bad:
        read(EXTENSION, Path("/plugins/---"))
    assert "name of its folder" in bad.value.problems[0][1]
    assert READER.hint_for(bad.value.problems[0])


def test_names_that_could_deceive_a_person_are_refused() -> None:
    assert problems(EXTENSION, commands=[{"name": "a\nb"}])[0][0] == "/commands/0/name"


def test_hints_name_what_there_is() -> None:
    assert all(name in READER.hint_for(("", "Unknown extension permission: x")) for name in PERMISSIONS)
    assert all(name in READER.hint_for(("", "Unknown hook kind: x")) for name in HOOKS)
    assert READER.hint_for(("/name", "expected `str`")) == ""


# -- finding them


def test_plugins_are_found_among_all_others(tmp_path: Path) -> None:
    for name, text in {"good": written(EXTENSION), "bad": b"{", "theme": b'{"name":"theme"}'}.items():
        folder = tmp_path / name / ".synaps-plugin"
        folder.mkdir(parents=True)
        (folder / "plugin.json").write_bytes(text)
    report = discover_extensions([tmp_path], readers=MANIFEST_READERS)
    (good,) = report.candidates
    assert (good.id, good.folder, good.manifest.dialect) == ("good", str(tmp_path / "good"), "synaps")
    assert isinstance(good.extra, Plugin)
    (note,) = [note for note in report.diagnostics if note.path and "bad" in note.path]
    assert note.hint


@pytest.mark.parametrize(
    ("variables", "roots"),
    [
        ({"HOME": "/home/me"}, ("/home/me/.synaps-cli/plugins", "/work/.synaps/plugins")),
        ({"SYNAPS_BASE_DIR": "/base"}, ("/base/plugins", "/work/.synaps/plugins")),
        ({"HOME": "/h", "SYNAPS_DISABLE_PROJECT_PLUGINS": " Yes "}, ("/h/.synaps-cli/plugins",)),
        ({"HOME": "/h", "SYNAPS_DISABLE_PROJECT_PLUGINS": "0"}, ("/h/.synaps-cli/plugins", "/work/.synaps/plugins")),
    ],
)
def test_plugins_are_found_in_the_folders_of_synaps(variables: dict[str, str], roots: tuple[str, ...]) -> None:
    assert find_plugin_roots(variables, "/work") == roots


# -- configuration


ENTRIES = {
    "endpoint": ConfigEntry(type=ConfigType.STRING, default="http://x", required=True),
    "max-retries": ConfigEntry(type=ConfigType.NUMBER, default=3),
    "token": ConfigEntry(type=ConfigType.STRING, env="MY_KEY", secret=True),
}


def test_a_value_comes_from_the_sources_of_synaps_and_is_text() -> None:
    variables = {"SYNAPS_EXTENSION_MY_DEMO_MAX_RETRIES": "many", "MY_KEY": "k", "SYNAPS_EXTENSION_MY_DEMO_ENDPOINT": ""}
    found = resolve_config(
        "my-demo", ENTRIES, variables=variables, stored={"endpoint": "stored"}, defaults=SYNAPS.host_defaults
    )
    assert found.values == {"max-retries": "many", "token": "k", "endpoint": "stored"}
    assert found.sources["max-retries"] is ConfigSource.VARIABLE
    assert found.problems == ()


def test_the_variable_of_the_key_comes_before_that_of_the_manifest() -> None:
    variables = {"SYNAPS_EXTENSION_DEMO_TOKEN": "first", "MY_KEY": "second"}
    found = resolve_config("demo", ENTRIES, variables=variables, defaults=SYNAPS.host_defaults)
    assert found.values["token"] == "first"


def test_a_default_preserves_its_kind_whatever_its_declared_type() -> None:
    entries = {
        "a": ConfigEntry(type=ConfigType.STRING, default=3),
        "b": ConfigEntry(type=ConfigType.NUMBER, default=True),
    }
    found = resolve_config("demo", entries, variables={}, defaults=SYNAPS.host_defaults)
    assert (found.values, found.problems) == ({"a": 3, "b": True}, ())


def test_a_missing_required_value_is_reported_with_its_variable() -> None:
    entries = {"key": ConfigEntry(type=ConfigType.STRING, required=True)}
    found = resolve_config("demo", entries, variables={}, defaults=SYNAPS.host_defaults)
    ((pointer, text),) = found.problems
    assert pointer == "/key"
    assert "BECKET_CONFIG__DEMO__KEY" in text


def test_other_dialects_ignore_those_variables() -> None:
    found = resolve_config("demo", ENTRIES, variables={"SYNAPS_EXTENSION_DEMO_ENDPOINT": "x"})
    assert found.values["endpoint"] == "http://x"


def test_a_variable_that_could_be_meant_for_two_extensions_is_given_to_neither(tmp_path: Path) -> None:
    for id, key in (("git", "hub-token"), ("git-hub", "token"), ("gitea", "token")):
        extension = {"runtime": "process", "command": "x", "permissions": ["memory.read"], "config": [{"key": key}]}
        (tmp_path / id / ".synaps-plugin").mkdir(parents=True)
        manifest = {"name": id, "version": "1.0.0", "extension": extension}
        (tmp_path / id / ".synaps-plugin" / "plugin.json").write_text(json.dumps(manifest), encoding="utf-8")

    found = discover_extensions([tmp_path])

    variables = {"SYNAPS_EXTENSION_GIT_HUB_TOKEN": "secret", "SYNAPS_EXTENSION_GITEA_TOKEN": "tea"}
    values = {
        one.id: resolve_config(
            one.id,
            one.manifest.config,
            variables=variables | {"BECKET_CONFIG__GIT_HUB__TOKEN": "hub"},
            defaults=SYNAPS.host_defaults,
            without=one.shared_variables,
        ).values
        for one in found.candidates
    }
    assert values == {"git": {}, "git-hub": {"token": "hub"}, "gitea": {"token": "tea"}}
    [note] = found.diagnostics
    assert "`SYNAPS_EXTENSION_GIT_HUB_TOKEN`" in note.problem
    assert "`BECKET_CONFIG__GIT_HUB__TOKEN`" in note.hint
    assert [one.shared_variables for one in discover_extensions([tmp_path], disabled=["git"]).candidates] == [
        frozenset()
    ] * 2
