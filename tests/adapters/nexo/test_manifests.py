"""`plugin.toml`: every field, and every rule that it can break, with its pointer."""

from __future__ import annotations

from pathlib import Path

import pytest

from becket.adapters.nexo import NexoManifest
from becket.adapters.nexo.manifest_reader import READER, NexoManifestReader, is_newer
from becket.errors import ManifestError
from becket.host.starting.discovery import discover_extensions
from becket.host.starting.manifest_reader import FoundExtension

SMALL = """
[plugin]
id = "weather"
version = "0.1.0"
[capabilities]
tools = ["get"]
[transport]
kind = "stdio"
command = "./main.py"
"""
WHOLE = """
[plugin]
id = "weather"
version = "0.1.0"
name = "Weather"
description = "Tells whether it rains."
min_agent_version = "0.1.0"
priority = -10
[capabilities]
tools = ["get"]
hooks = ["before_message", "after_tool_call", "on_sunrise"]
channels = ["sms"]
providers = ["cloud"]
pollers = ["rain"]
[capabilities.admin]
required = ["agents_crud"]
optional = ["channels_crud", "llm_keys_crud"]
[transport]
kind = "stdio"
command = "./main.py"
args = ["--fast"]
[requires]
bins = ["python3"]
env = ["CITY"]
[context]
passthrough = true
[outbound_bindings]
whatsapp = ["personal"]
[mcp_servers.gmail]
command = "gmail"
[meta]
author = "me"
license = "MIT"
"""


def read(text: str, reader: NexoManifestReader = READER) -> FoundExtension:
    return reader.read(text.encode(), "/extensions/weather/plugin.toml")


def problems_of(text: str, reader: NexoManifestReader = READER) -> dict[str, str]:
    with pytest.raises(ManifestError) as caught:
        read(text, reader)
    return dict(caught.value.problems)


def test_a_small_manifest_is_enough() -> None:
    found = read(SMALL)

    assert found.manifest.id == "weather"
    assert found.manifest.command == ("./main.py",)
    assert found.manifest.dialect == "nexo"
    assert found.manifest.permissions == ("tools.register",)
    assert found.extra == NexoManifest(tools=("get",))


def test_every_field_of_a_manifest_is_preserved() -> None:
    found = read(WHOLE, NexoManifestReader(capabilities={"channels_crud"}))
    manifest = found.manifest

    assert (manifest.name, manifest.description) == ("Weather", "Tells whether it rains.")
    assert (manifest.authors, manifest.license) == (("me",), "MIT")
    assert manifest.command == ("./main.py", "--fast")
    assert (manifest.requires.bins, manifest.requires.env) == (("python3",), ("CITY",))
    assert manifest.mcp_servers == {"gmail": {"command": "gmail"}}
    assert found.extra == NexoManifest(
        tools=("get",),
        hooks=("before_message", "after_tool_call", "on_sunrise"),
        channels=("sms",),
        providers=("cloud",),
        pollers=("rain",),
        priority=-10,
        passthrough=True,
        min_agent_version="0.1.0",
        outbound_bindings={"whatsapp": ("personal",)},
        required_capabilities=("agents_crud",),
        optional_capabilities=("channels_crud", "llm_keys_crud"),
    )


def test_a_variable_is_passed_on_to_an_extension_that_requires_it() -> None:
    found = read(SMALL + '[requires]\nenv = ["CITY", "OPENAI_API_KEY", "LD_SECRET"]\n')

    assert found.manifest.requires.env == ("CITY", "OPENAI_API_KEY", "LD_SECRET")
    assert found.manifest.environment.passed == ("CITY", "OPENAI_API_KEY")  # the last loads code


def test_an_extension_requests_what_its_hooks_and_its_administration_need() -> None:
    assert read(WHOLE, NexoManifestReader(capabilities={"channels_crud"})).manifest.permissions == (
        "tools.register",
        "privacy.llm_content",
        "tools.intercept",
        "nexo.agents_crud",
        "nexo.channels_crud",
    )


@pytest.mark.parametrize(
    ("table", "pointer"),
    [
        ("", "/surprise"),
        ("plugin", "/plugin/surprise"),
        ("capabilities", "/capabilities/surprise"),
        ("capabilities.admin", "/capabilities/admin/surprise"),
        ("transport", "/transport/surprise"),
        ("requires", "/requires/surprise"),
        ("context", "/context/surprise"),
        ("meta", "/meta/surprise"),
    ],
)
def test_an_unknown_member_is_reported_in_every_table(table: str, pointer: str) -> None:
    head = f"[{table}]" if table else ""
    text = WHOLE.replace(head, f"{head}\nsurprise = 1", 1) if table else f"surprise = 1\n{WHOLE}"

    assert problems_of(text) == {pointer: "is unknown"}


@pytest.mark.parametrize("id", ["Weather", "9lives", "a b", "", "x" * 65, "a.b", "wetter-ü"])
def test_an_id_may_hold_few_kinds_of_characters(id: str) -> None:
    assert [*problems_of(SMALL.replace("weather", id))] == ["/plugin/id"]


@pytest.mark.parametrize(
    "id", ["agent", "browser", "core", "email", "heartbeat", "memory", "telegram", "whatsapp", "slack"]
)
def test_some_ids_are_reserved_for_the_host(id: str) -> None:
    found = problems_of(SMALL.replace("weather", id), NexoManifestReader(reserved={"slack"}))

    assert "reserved" in found["/plugin/id"]


@pytest.mark.parametrize("version", ["1", "1.0", "v1.0.0", "01.0.0", "latest", ""])
def test_a_version_must_be_semantic(version: str) -> None:
    assert [*problems_of(SMALL.replace("0.1.0", version))] == ["/plugin/version"]


def test_a_description_has_at_most_512_characters() -> None:
    fits = SMALL.replace('version = "0.1.0"', f'version = "0.1.0"\ndescription = "{"ü" * 512}"')

    assert read(fits).manifest.description == "ü" * 512
    assert [*problems_of(fits.replace("ü" * 512, "ü" * 513))] == ["/plugin/description"]


def test_an_extension_may_be_too_new_for_its_host() -> None:
    text = SMALL.replace('version = "0.1.0"', 'version = "0.1.0"\nmin_agent_version = "0.2.0"')

    assert [*problems_of(text, NexoManifestReader(agent_version="0.1.9"))] == ["/plugin/min_agent_version"]
    assert read(text, NexoManifestReader(agent_version="0.2.0")).manifest.id == "weather"


def test_no_extension_is_too_new_for_a_host_that_does_not_know_its_version() -> None:
    text = SMALL.replace('version = "0.1.0"', 'version = "0.1.0"\nmin_agent_version = "9.0.0"')

    assert read(text, NexoManifestReader(agent_version="dev")).manifest.id == "weather"
    assert "/plugin/min_agent_version" in problems_of(text.replace("9.0.0", "nine"))


@pytest.mark.parametrize(
    ("version", "other"),
    [
        ("1.0.0", "0.9.9"),
        ("0.10.0", "0.9.0"),
        ("1.0.0", "1.0.0-rc.1"),
        ("1.0.0-rc.1", "1.0.0-beta"),
        ("1.0.0-beta.2", "1.0.0-beta.1"),
        ("1.0.0-beta.x", "1.0.0-beta.1"),
        ("1.0.0-beta.1", "1.0.0-beta"),
        ("1.0.0-beta.10", "1.0.0-beta.9"),
    ],
)
def test_versions_are_ordered_as_semantic_ones_are(version: str, other: str) -> None:
    assert is_newer(version, other)
    assert not is_newer(other, version)


def test_the_build_metadata_of_a_version_is_ignored() -> None:
    assert not is_newer("1.0.0+b", "1.0.0+a")


@pytest.mark.parametrize(
    "capabilities", ["[capabilities]", "[capabilities]\ntools = []", "[capabilities.admin]\nrequired = ['x']", ""]
)
def test_an_extension_must_declare_a_capability(capabilities: str) -> None:
    text = SMALL.replace('[capabilities]\ntools = ["get"]', capabilities)

    assert [*problems_of(text)] == ["/capabilities"]


@pytest.mark.parametrize("kind", ["tools", "hooks", "channels", "providers", "pollers"])
def test_each_kind_of_capability_is_enough_and_names_each_once(kind: str) -> None:
    text = SMALL.replace('tools = ["get"]', f'{kind} = ["get"]')

    assert read(text).manifest.id == "weather"
    assert [*problems_of(text.replace('"get"', '"get", "other", "get"'))] == [f"/capabilities/{kind}/2"]


@pytest.mark.parametrize("name", ["Get", "get-it", "9", "", "x" * 65])
def test_names_of_capabilities_may_hold_few_kinds_of_characters(name: str) -> None:
    assert [*problems_of(SMALL.replace('"get"', f'"{name}"'))] == ["/capabilities/tools/0"]


@pytest.mark.parametrize("command", ["", "  ", r"a\u0000"])
def test_a_command_is_not_blank(command: str) -> None:
    assert [*problems_of(SMALL.replace("./main.py", command))] == ["/transport/command"]


@pytest.mark.parametrize(
    ("transport", "pointers"),
    [
        ('kind = "nats"\nsubject_prefix = "ext"', ["/transport/kind"]),
        ('kind = "nats"\nsubject_prefix = " "', ["/transport/subject_prefix", "/transport/kind"]),
        ('kind = "http"\nurl = "https://host:80/x"', ["/transport/kind"]),
        ('kind = "http"\nurl = "ftp://host"', ["/transport/url", "/transport/kind"]),
        ('kind = "pigeon"', ["/transport/kind"]),
        ('type = "stdio"\ncommand = "x"', ["/transport"]),
    ],
)
def test_only_programs_can_be_started(transport: str, pointers: list[str]) -> None:
    text = SMALL.replace('kind = "stdio"\ncommand = "./main.py"', transport)

    assert [*problems_of(text)] == pointers


def test_names_of_servers_may_hold_few_kinds_of_characters() -> None:
    assert [*problems_of(WHOLE.replace("gmail", "G" * 3))] == ["/mcp_servers/GGG"]
    assert [*problems_of(WHOLE.replace("mcp_servers.gmail", f"mcp_servers.{'g' * 33}"))] == [f"/mcp_servers/{'g' * 33}"]


def test_missing_members_are_reported_together() -> None:
    assert {*problems_of("[capabilities]\ntools = ['get']")} == {"/plugin", "/transport"}


def test_a_file_of_another_shape_is_reported() -> None:
    assert {*problems_of("plugin = 1\ntransport = 2\ncapabilities = 3")} == {"/plugin", "/transport", "/capabilities"}


def test_invalid_toml_is_reported() -> None:
    assert [*problems_of("[plugin")] == [""]


def test_some_problems_have_hints() -> None:
    assert "kind" in READER.hint_for(("/transport", "x"))
    assert READER.hint_for(("/meta/author", "x")) == ""


# -- found on disk


def lay_out(folder: Path, id: str) -> None:
    folder.mkdir(parents=True)
    (folder / "plugin.toml").write_text(SMALL.replace("weather", id), encoding="utf-8")


def test_extensions_are_found_with_their_extra_settings(tmp_path: Path) -> None:
    lay_out(tmp_path / "weather", "weather")

    [candidate] = discover_extensions([tmp_path], readers=[READER]).candidates

    assert (candidate.id, candidate.manifest.dialect) == ("weather", "nexo")
    assert candidate.extra == NexoManifest(tools=("get",))


def test_a_configuration_leads_to_extensions_and_chooses_among_them(tmp_path: Path) -> None:
    for id in ("weather", "news", "chess"):
        lay_out(tmp_path / "some" / "where" / id, id)
    lay_out(tmp_path / "some" / "where" / "target" / "built", "built")
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "extensions.yaml").write_text(
        "extensions:\n  search_paths: [some/where]\n  disabled: [news]\n  allowlist: [weather, news]\n",
        encoding="utf-8",
    )

    report = discover_extensions([tmp_path], readers=[READER])

    assert [candidate.id for candidate in report.candidates] == ["weather"]
    assert report.disabled == 2


def test_a_configuration_that_turns_all_extensions_off_finds_none(tmp_path: Path) -> None:
    lay_out(tmp_path / "extensions" / "weather", "weather")
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "extensions.yaml").write_text("extensions: {enabled: false}", encoding="utf-8")

    assert discover_extensions([tmp_path], readers=[READER]).candidates == ()


@pytest.mark.parametrize("text", ["", "- a", "plugins: {}"])
def test_a_configuration_of_another_system_is_not_a_problem(tmp_path: Path, text: str) -> None:
    lay_out(tmp_path / "weather", "weather")
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "extensions.yaml").write_text(text, encoding="utf-8")

    report = discover_extensions([tmp_path], readers=[READER])

    assert [candidate.id for candidate in report.candidates] == ["weather"]
    assert report.diagnostics == ()


@pytest.mark.parametrize("text", ["extensions: {depth: 1}", "extensions: [", "extensions: 7"])
def test_an_unusable_configuration_is_reported(tmp_path: Path, text: str) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "extensions.yaml").write_text(text, encoding="utf-8")

    [diagnostic] = discover_extensions([tmp_path], readers=[READER]).diagnostics

    assert diagnostic.path == str(tmp_path / "config" / "extensions.yaml")
