"""The settings of a host, and the keywords that they were in 0.1."""

from __future__ import annotations

import re
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from tests.host.folders import write_extension

from becket import Grants
from becket.host import (
    CommandLines,
    DiscoverySettings,
    Environment,
    ExtensionConfig,
    HookSettings,
    Host,
    HostConfig,
    HostSettings,
    SupervisionPolicy,
    load_host_config,
)
from becket.host.host_settings import SettingChanges, group_arguments
from becket.host.starting.discovery import discover_extensions

ADAPTERS = """
import sys
from becket import Host

Host([], data=None)
print([name for name in sys.modules if name.startswith("becket.adapters")])
"""


def test_values_by_name_become_arguments_and_settings() -> None:
    values = {"roots": ["x"], "data": None, "name": "desk", "watch": None}

    assert group_arguments(values) == {"roots": ["x"], "data": None, "settings": HostSettings(name="desk")}


@pytest.mark.parametrize(
    ("name", "value"), [("audit", "loud"), ("schemas", "maybe"), ("inherit_environment", ("native",))]
)
def test_a_value_that_is_not_allowed_is_refused_at_once(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=value if isinstance(value, str) else value[0]):
        HostSettings(**{name: value})


@pytest.mark.parametrize("roots", ["extensions", b"extensions", Path("extensions")], ids=["str", "bytes", "path"])
def test_a_single_folder_is_not_a_list_of_roots(roots: Any) -> None:
    expected = f"^`roots` must be a list of folders, got {type(roots).__name__}$"
    with pytest.raises(TypeError, match=expected):
        Host(roots, data=None)
    with pytest.raises(TypeError, match=expected):
        discover_extensions(roots)


SINGLE_NAMES = [
    (HostSettings, "only"),
    (HostSettings, "disabled"),
    (HostSettings, "inherit_environment"),
    (HostConfig, "roots"),
    (HostConfig, "only"),
    (HostConfig, "disabled"),
    (HostConfig, "inherit_environment"),
    (ExtensionConfig, "allow"),
    (ExtensionConfig, "deny"),
    (ExtensionConfig, "allow_variables"),
    (ExtensionConfig, "command"),
    (Environment, "passed"),
    (DiscoverySettings, "ignore"),
    (HookSettings, "order"),
    (HookSettings, "required"),
    (CommandLines, "roots"),
    (CommandLines, "options"),
    (Grants, "allow"),
    (Grants, "deny"),
]


@pytest.mark.parametrize(("cls", "name"), SINGLE_NAMES)
def test_a_single_name_is_not_a_list_of_names(cls: Any, name: str) -> None:
    with pytest.raises(TypeError, match=f"^`{name}` must be a list of .*, got str$"):
        cls(**{name: "notes"})


def test_a_single_permission_is_not_a_list_of_grants() -> None:
    grants: Any = {"notes": "memory.read"}
    with pytest.raises(TypeError, match="must be a list of names, got str"):
        Host([], data=None, grants=grants)


@pytest.mark.process
def test_a_host_imports_no_adapter_before_it_needs_one() -> None:
    ended = subprocess.run([sys.executable, "-c", ADAPTERS], capture_output=True, text=True, timeout=60, check=True)

    assert ended.stdout == "[]\n"


def test_a_keyword_that_a_host_does_not_have_is_refused() -> None:
    with pytest.raises(TypeError, match=r"`Host` has no keyword `discover`.*discovery"):
        Host(discover=None)


@pytest.mark.parametrize(
    ("keywords", "settings"),
    [
        ({"watch": "reload"}, HostSettings(watch="reload")),
        ({"only": None, "limits": None}, HostSettings()),
        ({"mcp": 1}, HostSettings(dialects={"mcp": 1})),
        ({"care": SupervisionPolicy(drain_timeout=1)}, HostSettings(supervision=SupervisionPolicy(drain_timeout=1))),
    ],
    ids=str,
)
def test_a_keyword_of_0_1_is_a_setting_for_one_more_release(keywords: dict[str, Any], settings: HostSettings) -> None:
    with pytest.warns(DeprecationWarning, match=r"HostSettings\("):
        host = Host(data=None, **keywords)

    assert host.settings == settings


def load_with_notes_disabled(folder: Path) -> HostConfig:
    """Returns the configuration of a host with one extension, which must not start."""
    write_extension(folder / "extensions" / "notes", "notes")
    text = 'roots = ["extensions"]\ndata = false\n[extensions.notes]\nenabled = false\n'
    (folder / "host.toml").write_text(text, encoding="utf-8")
    return load_host_config(folder / "host.toml")


def test_settings_from_a_configuration_keep_what_is_not_changed(tmp_path: Path) -> None:
    config = load_with_notes_disabled(tmp_path)
    with warnings.catch_warnings(action="error"):
        host = Host(config, settings=HostSettings.from_config(config, watch="report"))

    assert host.settings.watch == "report"
    assert [*host.survey().start_decisions] == []
    assert HostSettings.from_config(config) == Host(config).settings
    assert HostSettings.from_config(config, config={"notes": {"a": 1}}).config == {"notes": {"a": 1}}


def test_a_change_of_a_setting_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    changes: dict[str, Any] = {"wach": "report"}
    with pytest.raises(TypeError, match="wach"):
        HostSettings.from_config(load_with_notes_disabled(tmp_path), **changes)


def test_the_warning_about_a_keyword_beside_a_configuration_keeps_the_configuration(tmp_path: Path) -> None:
    config = load_with_notes_disabled(tmp_path)
    advice = "`Host(config, settings=HostSettings.from_config(config, watch=...))`"
    with pytest.warns(DeprecationWarning, match=re.escape(advice)):
        host = Host(config, watch="report")

    assert host.settings == HostSettings.from_config(config, watch="report")


def test_the_warning_about_all_keywords_of_a_configuration_is_short_and_names_the_better_call(tmp_path: Path) -> None:
    config = load_with_notes_disabled(tmp_path)
    with pytest.warns(DeprecationWarning, match=r"`Host\(load_host_config\(\.\.\.\)\)`") as caught:
        Host(**config.arguments(), care=SupervisionPolicy())

    (text,) = [str(one.message) for one in caught]
    assert len(text) < 250
    assert "supervision=..." in text  # a keyword that has another name now is always listed


def test_changes_of_settings_have_the_types_of_the_settings() -> None:
    assert get_type_hints(SettingChanges) == get_type_hints(HostSettings)
