"""`config/extensions.yaml`: its settings, and the `Host` arguments that they become."""

from __future__ import annotations

from pathlib import Path

import pytest

from becket.adapters.nexo.host_config import load_extensions_yaml, parse_extensions_yaml
from becket.errors import BadFile
from becket.host.host import Host
from becket.host.host_settings import HostSettings
from becket.host.starting.discovery import DiscoverySettings
from becket.permissions.grants import Grants

WHOLE = """
extensions:
  enabled: true
  search_paths: [./extensions, /opt/extensions]
  ignore_dirs: [node_modules, .git]
  disabled: [chess]
  allowlist: [weather, news]
  max_depth: 4
  follow_links: true
  watch:
    enabled: true
    debounce_ms: 250
  doctor:
    stdio_timeout_ms: 1000
  transport_defaults:
    nats: {subject_prefix: ext}
  entries:
    weather:
      capabilities_grant: [agents_crud]
      color: blue
    news: {}
"""


def write(folder: Path, text: str, name: str = "config/extensions.yaml") -> Path:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_a_host_is_started_with_the_settings_of_the_file(tmp_path: Path) -> None:
    arguments = load_extensions_yaml(write(tmp_path, WHOLE)).host_arguments()

    assert arguments == {
        "roots": (str(tmp_path / "extensions"), "/opt/extensions"),
        "settings": HostSettings(
            discovery=DiscoverySettings(depth=3, ignore=("node_modules", ".git"), follow_links=True),
            only=("weather", "news"),
            disabled=("chess",),
            watch="report",
        ),
        "grants": {
            "weather": Grants(
                frozenset(
                    {
                        "tools.register",
                        "tools.intercept",
                        "privacy.llm_content",
                        "nexo.agents_crud",
                    }
                )
            )
        },
    }
    assert Host(**arguments, data=None).roots == arguments["roots"]


def test_omitted_settings_have_the_defaults_of_nexo(tmp_path: Path) -> None:
    arguments = load_extensions_yaml(write(tmp_path, "extensions: {}")).host_arguments()

    assert arguments == {
        "roots": (str(tmp_path / "extensions"),),
        "settings": HostSettings(
            discovery=DiscoverySettings(depth=2, ignore=("target", ".git", "node_modules", "dist", ".build"))
        ),
        "grants": {},
    }


def test_search_paths_start_from_the_folder_of_the_file_where_that_has_another_name(tmp_path: Path) -> None:
    config = load_extensions_yaml(write(tmp_path, "extensions: {search_paths: [x]}", "extensions.yaml"))

    assert config.search_paths == (str(tmp_path / "x"),)


def test_extensions_may_be_turned_off_altogether() -> None:
    arguments = parse_extensions_yaml(b"extensions: {enabled: false, allowlist: [weather]}", "x.yaml").host_arguments()

    assert (arguments["roots"], arguments["settings"].only) == ((), ())


@pytest.mark.parametrize(("given", "depth"), [(0, 0), (1, 0), (2, 1), (4, 3), (1_000, 16)])
def test_the_manifest_itself_is_a_level(given: int, depth: int) -> None:
    config = parse_extensions_yaml(f"extensions: {{max_depth: {given}}}".encode(), "x.yaml")

    assert config.discovery_depth == depth


@pytest.mark.parametrize(
    ("text", "pointers"),
    [
        ("extension: {}", {"/extension", "/extensions"}),
        ("extensions: {searchpaths: []}", {"/extensions/searchpaths"}),
        ("extensions: {max_depth: -1, watch: {enabled: 1}}", {"/extensions/max_depth", "/extensions/watch/enabled"}),
        ("extensions: {disabled: }", {"/extensions/disabled"}),
        ("extensions: {entries: {x: {capabilities_grant: ['']}}}", {"/extensions/entries/x/capabilities_grant/0"}),
        ("", {""}),
    ],
)
def test_all_problems_are_reported_with_their_pointer(tmp_path: Path, text: str, pointers: set[str]) -> None:
    with pytest.raises(BadFile) as caught:
        load_extensions_yaml(write(tmp_path, text))

    assert {pointer for pointer, _ in caught.value.problems} == pointers


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(BadFile):
        load_extensions_yaml(tmp_path / "extensions.yaml")
