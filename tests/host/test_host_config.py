"""The configuration of a host is validated by its schema and becomes arguments of `Host`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from msgspec import Raw
from tests.contract.agreement import EXAMPLES, Agreement, agreement, definition_of, disagreement, inside, values
from tests.contract.sample_files import load_samples
from tests.host.folders import write_extension

from becket.dialects import DIALECTS
from becket.errors import BadFile
from becket.host.audit_log import AuditMode
from becket.host.diagnostics import Diagnostic, Severity
from becket.host.hook_plan import HookSettings
from becket.host.host import Host
from becket.host.host_config import (
    ExtensionConfig,
    HostConfig,
    LogConfig,
    apply_extension_configs,
    load_host_config,
    parse_host_config,
)
from becket.host.host_settings import HostSettings
from becket.host.restart import RestartStrategy
from becket.host.starting.discovery import DiscoverySettings, discover_extensions
from becket.host.starting.environment import list_inheriting_dialects
from becket.host.starting.manifest import Environment, LimitOverrides, RestartOverrides
from becket.host.starting.start_check import NeedsConsent, StartAllowed, StartRefused
from becket.json_schema import SchemaMode
from becket.json_schema.files import load_schema
from becket.permissions.grants import Grants


def write_config(folder: Path, text: str) -> Path:
    path = folder / "host.toml"
    path.write_text(text, encoding="utf-8")
    return path


# -- reading


def test_paths_begin_at_the_folder_of_the_file(tmp_path: Path) -> None:
    text = 'roots = ["a", "/b"]\ndata = "state"\n[extensions.x]\ncommand = ["x"]\nfolder = "f"\n'

    config = load_host_config(write_config(tmp_path, text))

    assert config.roots == (str(tmp_path / "a"), "/b")
    assert config.data_folder() == tmp_path / "state"
    assert config.extensions["x"].folder == str(tmp_path / "f")


def test_data_is_stored_under_the_name_of_the_host_by_default(tmp_path: Path) -> None:
    folder = load_host_config(write_config(tmp_path, 'name = "demo"')).data_folder()

    assert folder is not None
    assert folder.parts[-2:] == ("becket", "demo")


def test_data_can_be_turned_off(tmp_path: Path) -> None:
    assert load_host_config(write_config(tmp_path, "data = false")).arguments()["data"] is None


def test_all_problems_are_reported_with_their_pointers(tmp_path: Path) -> None:
    text = """
        watch = true
        only = ["a", "a"]
        rots = []
        [extensions.notes]
        allow = ["memory.raed", "tools.override"]
        deny = ["*"]
    """

    with pytest.raises(BadFile) as bad:
        load_host_config(write_config(tmp_path, text))

    assert sorted(pointer for pointer, _ in bad.value.problems) == [
        "/extensions/notes/allow/0",
        "/extensions/notes/allow/1",
        "/extensions/notes/deny/0",
        "/only/1",
        "/rots",
        "/watch",
    ]


def test_a_permission_that_does_not_exist_is_a_problem_by_itself(tmp_path: Path) -> None:
    path = write_config(tmp_path, '[extensions.notes]\nallow = ["memory.raed"]')

    with pytest.raises(BadFile) as bad:
        load_host_config(path)

    assert [pointer for pointer, _ in bad.value.problems] == ["/extensions/notes/allow/0"]
    assert load_host_config(path, known={"memory.raed"}).extensions["notes"].allow == ("memory.raed",)


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(BadFile):
        load_host_config(tmp_path / "none.toml")


# -- arguments of a host


def test_every_member_that_is_for_the_host_becomes_an_argument_of_it(tmp_path: Path) -> None:
    text = """
        name = "demo"
        roots = ["extensions"]
        only = ["notes", "guard"]
        disabled = ["old"]
        data = "state"
        development = true
        audit = "full"
        audit_bytes = 65536
        check_tool_inputs = "warn"
        require_parent = true
        watch = "reload"
        discovery = { depth = 2 }
        environment = { pass = ["EDITOR"] }
        inherit_environment = ["morphir"]
        restart = { strategy = "never" }
        limits = { call_timeout = 20 }
        most_limits = { frame = 1000 }
        [extensions.notes]
        allow = ["memory.read"]
        config = { limit = 20 }
        [hooks]
        order = ["guard"]
        required = ["notes"]
        [extensions.guard]
        enabled = false
    """

    arguments = load_host_config(write_config(tmp_path, text)).arguments()

    assert arguments.pop("supervision").restart.strategy is RestartStrategy.NEVER
    assert arguments.pop("limits").call_timeout == 20
    assert arguments.pop("extensions").keys() == {"notes", "guard"}
    assert arguments == {
        "name": "demo",
        "roots": (str(tmp_path / "extensions"),),
        "only": ("notes", "guard"),
        "disabled": {"old", "guard"},
        "data": tmp_path / "state",
        "development": True,
        "audit": AuditMode.FULL,
        "audit_bytes": 65536,
        "require_parent": True,
        "schemas": SchemaMode.WARN,
        "watch": "reload",
        "discovery": DiscoverySettings(depth=2),
        "environment": Environment(passed=("EDITOR",)),
        "inherit_environment": ("morphir",),
        "most_limits": LimitOverrides(frame=1000),
        "grants": {"notes": Grants(frozenset({"memory.read"}))},
        "config": {"notes": {"limit": 20}},
        "hooks": HookSettings(order=("guard",), required=("notes",)),
    }


@pytest.mark.parametrize("dialect", sorted(DIALECTS))
def test_only_what_a_system_does_by_itself_can_be_restored(tmp_path: Path, dialect: str) -> None:
    path = write_config(tmp_path, f'inherit_environment = ["{dialect}"]')

    if DIALECTS[dialect].host_defaults.inherited_environment == "few":
        with pytest.raises(BadFile) as bad:
            load_host_config(path)
        assert [pointer for pointer, _ in bad.value.problems] == ["/inherit_environment/0"]
        with pytest.raises(ValueError, match="cigen, morphir, nexo"):
            Host(settings=HostSettings(inherit_environment=[dialect]))
    else:
        assert Host(load_host_config(path)).inherit_environment == {dialect}


def test_the_schema_lists_the_dialects_whose_environment_can_be_inherited() -> None:
    listed = load_schema("host-config")["$defs"]["host"]["properties"]["inherit_environment"]["items"]["enum"]

    assert listed == list_inheriting_dialects()


def test_dialects_that_cannot_inherit_are_reported_with_all_other_problems() -> None:
    table = {"inherit_environment": ["nexo", "native", "nexo", 5], "unknown": "x"}

    with pytest.raises(BadFile) as bad:
        parse_host_config(table, "host.toml")

    assert {pointer for pointer, _ in bad.value.problems} == {
        "/inherit_environment/1",
        "/inherit_environment/2",
        "/inherit_environment/3",
        "/unknown",
    }
    assert ("/inherit_environment/1", "must be one of cigen, morphir, nexo: native") in bad.value.problems


def test_no_manifest_can_request_the_environment_of_the_host(tmp_path: Path) -> None:
    write_extension(tmp_path / "notes", "notes", 'inherit_environment = ["morphir"]\ndialect = "morphir"\n')

    report = discover_extensions([tmp_path])

    assert report.candidates == ()
    assert "/inherit_environment" in report.diagnostics[0].problem


def test_an_empty_file_gives_a_host_with_the_defaults(tmp_path: Path) -> None:
    host = Host(load_host_config(write_config(tmp_path, "")))

    assert (host.name, host.roots) == ("becket", ())


def test_a_denial_alone_grants_nothing() -> None:
    assert ExtensionConfig(deny=("memory.read",)).grants() == Grants(frozenset(), frozenset({"memory.read"}))
    assert ExtensionConfig().grants() is None


# -- settings of one extension


def test_the_settings_of_an_extension_override_its_manifest(tmp_path: Path) -> None:
    more = """
        [environment]
        pass = ["LANG"]
        set = { A = "1", B = "1" }
        [restart]
        most = 3
        delay = 2.0
        [limits]
        frame = 10
        depth = 10
    """
    write_extension(tmp_path / "notes", "notes", more)
    config = ExtensionConfig(
        command=("/bin/true",),
        dialect="plain",
        in_place=True,
        allow_variables=("LANG",),
        environment=Environment(passed=("EDITOR",), set={"B": "2"}),
        restart=RestartOverrides(most=1),
        limits=LimitOverrides(frame=20),
    )

    (candidate,) = discover_extensions(
        [tmp_path], settle=lambda found, notes: apply_extension_configs({"notes": config}, found, notes)
    ).candidates

    manifest = candidate.manifest
    assert candidate.is_operator_defined
    assert candidate.operator.in_place
    assert candidate.operator.allow_variables == ("LANG",)
    assert (manifest.command, manifest.dialect) == (("/bin/true",), "plain")
    assert manifest.environment == Environment(passed=("LANG",), set={"A": "1", "B": "1"})
    assert candidate.operator.environment == Environment(passed=("EDITOR",), set={"B": "2"})
    assert manifest.restart == RestartOverrides(most=1, delay=2.0)
    assert manifest.limits == LimitOverrides(frame=20, depth=10)


def test_with_a_command_an_extension_needs_no_manifest(tmp_path: Path) -> None:
    config = ExtensionConfig(command=("/bin/true",), folder=str(tmp_path), allow=("memory.read",))
    notes: list[Diagnostic] = []

    (candidate,) = apply_extension_configs({"guard": config}, [], notes)

    assert notes == []
    assert (candidate.id, candidate.folder, candidate.manifest.permissions) == (
        "guard",
        str(tmp_path),
        ("memory.read",),
    )


@pytest.mark.parametrize(
    ("config", "severities"),
    [
        (ExtensionConfig(command=("/bin/true",)), [Severity.ERROR]),
        (ExtensionConfig(allow=("memory.read",)), [Severity.WARNING]),
        (ExtensionConfig(enabled=False), []),
    ],
)
def test_settings_of_a_missing_extension_are_reported(config: ExtensionConfig, severities: list[Severity]) -> None:
    notes: list[Diagnostic] = []

    assert apply_extension_configs({"guard": config}, [], notes) == []
    assert [note.severity for note in notes] == severities


def test_the_operator_may_run_a_program_that_a_manifest_may_not(tmp_path: Path) -> None:
    program = tmp_path / "tool"
    program.write_text("#!/bin/sh\n", encoding="utf-8")
    program.chmod(0o755)
    folder = write_extension(tmp_path / "root" / "notes", "notes")
    received = (folder / "becket.toml").read_text(encoding="utf-8").replace('"python3", "main.py"', f'"{program}"')
    (folder / "becket.toml").write_text(received, encoding="utf-8")

    refused = Host([tmp_path / "root"], data=None).survey()
    settled = Host(
        [tmp_path / "root"],
        data=None,
        settings=HostSettings(extensions={"notes": ExtensionConfig(command=(str(program),))}),
    )

    assert isinstance(refused.start_decisions["notes"], StartRefused)
    assert isinstance(settled.survey().start_decisions["notes"], StartAllowed)


# -- surveys


def test_a_survey_shows_what_would_start_and_changes_nothing(tmp_path: Path) -> None:
    root, data = tmp_path / "root", tmp_path / "data"
    write_extension(root / "quiet", "quiet")
    write_extension(root / "greedy", "greedy", 'permissions = ["memory.read"]')
    write_extension(root / "broken", "broken", '[requires]\nbins = ["no-such-program"]')
    (root / "bad").mkdir()
    (root / "bad" / "becket.toml").write_text("id =", encoding="utf-8")

    survey = Host([root], data=data).survey()

    assert {id: type(one) for id, one in survey.start_decisions.items()} == {
        "quiet": StartAllowed,
        "greedy": NeedsConsent,
        "broken": StartRefused,
    }
    assert survey.report.invalid == 1
    assert not data.exists()


@pytest.mark.loops
async def test_a_survey_reads_the_data_of_a_running_host(tmp_path: Path) -> None:
    root, data = tmp_path / "root", tmp_path / "data"
    write_extension(root / "greedy", "greedy", 'permissions = ["memory.read"]')

    async with Host([root], data=data) as host:
        await host.grant("greedy", "memory.read")
        survey = Host([root], data=data).survey()

    assert isinstance(survey.start_decisions["greedy"], StartAllowed)


# -- beside the schema


def read_host(raw: Raw) -> HostConfig:
    value = msgspec.json.decode(raw)
    if not isinstance(value, dict):
        raise ValueError("no table")
    return parse_host_config(value, "x")


def part(name: str, definition: str, made_from: Any, form: str = "@") -> Agreement:
    """Returns a line of the table: a part of the configuration, read within the whole, where `@` stands in the form."""
    opening, closing = form.split("@")
    before = f'{{"{name}":{opening}'
    return agreement(inside(before, closing + "}", read_host), "host-config", definition, made_from=made_from)


AGREEMENTS = [
    agreement(read_host, "host-config", "host", made_from=HostConfig),
    part("roots", "path", str, "[@]"),
    part("discovery", "discovery", DiscoverySettings),
    part("log", "log", LogConfig),
    part("extensions", "extension", ExtensionConfig, '{"notes": @}'),
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
        sample for sample in load_samples() if (sample.schema, sample.definition) == ("host-config", held.definition)
    ]

    assert samples
    assert [sample.value for sample in samples if held.accepts(sample.value) != sample.is_good] == []


def test_arguments_of_a_host_override_its_configuration(tmp_path: Path) -> None:
    config = load_host_config(write_config(tmp_path, 'name = "desk"\nroots = ["extensions"]\ndata = "kept"'))
    host, other = Host(config), Host(config, data=None, settings=HostSettings(name="other"))
    assert (host.name, host.roots) == ("desk", (str(tmp_path / "extensions"),))
    assert host.data_dir is not None
    assert (other.name, other.data_dir) == ("other", None)


def test_the_keywords_of_a_configuration_of_0_1_are_its_settings(tmp_path: Path) -> None:
    config = load_host_config(write_config(tmp_path, 'name = "desk"\ndisabled = ["notes"]'))
    with pytest.warns(DeprecationWarning, match="disabled"):
        host = Host(**config.arguments())

    assert host.settings == Host(config).settings
