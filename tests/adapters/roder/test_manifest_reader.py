"""The files of Roder: manifests with a launch, configurations, and their problems."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from becket.adapters.roder import EventFilter, manifest_checksum
from becket.adapters.roder.manifest_reader import READER, RoderManifestReader
from becket.errors import ManifestError
from becket.host.starting.discovery import DiscoveryReport, discover_extensions
from becket.host.starting.manifest import Environment
from becket.host.starting.manifest_reader import ExtensionList, FoundExtension, ScopedFiles

MANIFEST = """
id = "Demo Ext"
name = "Demo"
version = "0.1"
api_version = "^0.1"
description = "Does a little."
surprise = 1
provides = [
  { type = "inference_engine", id = "models" },
  { type = "task_executor", id = "build" },
  { type = "tool_provider", id = "tools", tools = [
    { name = "count", description = "Counts.", parameters = { type = "object" } },
  ] },
]
"""
LAUNCH = """
[launch]
command = "python3"
args = ["main.py", "--fast"]
env = { KEY = "value" }
startup_timeout_ms = 500
event_filter_kinds = ["turn."]
"""
SINK = (
    'id = "sink"\nname = "Sink"\nversion = "1.0.0"\napi_version = "*"\nprovides = [{ type = "event_sink", id = "s" }]\n'
)


def read(text: str, path: str = "/ext/demo/roder-extension.toml") -> FoundExtension:
    return READER.read(text.encode(), path)


def problems_of(text: str) -> list[tuple[str, str]]:
    with pytest.raises(ManifestError) as caught:
        read(text)
    return list(caught.value.problems)


# -- manifests


def test_a_manifest_with_a_launch_becomes_a_becket_manifest() -> None:
    found = read(MANIFEST + LAUNCH)

    manifest = found.manifest
    assert (manifest.id, manifest.name, manifest.version, manifest.dialect) == ("demo-ext", "Demo", "0.1", "roder")
    assert manifest.description == "Does a little."
    assert manifest.command == ("python3", "main.py", "--fast")
    assert manifest.permissions == ("tools.register", "providers.register")
    assert [command.name for command in manifest.commands] == ["build"]
    assert manifest.environment == Environment(set={"KEY": "value"})
    assert manifest.limits.handshake == 0.5
    assert found.cwd == "/ext/demo"


def test_fields_that_only_roder_has_are_available_as_extra() -> None:
    text = MANIFEST + LAUNCH

    loaded = read(text).extra

    assert loaded.manifest.id == "Demo Ext"
    assert loaded.checksum == manifest_checksum(text.encode())
    assert loaded.event_filter == EventFilter(("turn.",))
    assert (loaded.cwd, loaded.folder) == (None, "/ext/demo")


def test_members_that_a_launch_omits_have_their_defaults() -> None:
    found = read(SINK + '[launch]\ncommand = "sink"\n')

    assert found.manifest.command == ("sink",)
    assert found.manifest.permissions == ()
    assert found.manifest.limits.handshake == 10.0
    assert found.extra.event_filter == EventFilter()


def test_a_start_timeout_is_at_least_a_millisecond() -> None:
    assert read(SINK + '[launch]\ncommand = "x"\nstartup_timeout_ms = 0\n').manifest.limits.handshake == 0.001


def test_a_manifest_may_have_a_working_directory_of_its_own(tmp_path: Path) -> None:
    text = SINK + '[launch]\ncommand = "python3"\nargs = ["main.py", "other.py"]\ncwd = "work"\n'

    found = read(text, str(tmp_path / "roder-extension.toml"))

    assert found.manifest.command == ("python3", "main.py", "other.py")
    assert found.cwd == found.extra.cwd == str(tmp_path / "work")


def test_a_manifest_without_a_launch_cannot_be_started_by_itself() -> None:
    [(pointer, text)] = problems_of(MANIFEST)

    assert pointer == "/launch"
    assert "[launch]" in READER.hint_for((pointer, text))


def test_a_manifest_that_breaks_the_rules_is_refused_with_the_message_of_roder() -> None:
    problem = problems_of(SINK.replace('"*"', '"^9"') + '[launch]\ncommand = "x"\n')

    assert problem == [
        ("/api_version", 'process extension sink requires extension API "^9" but the host supports 0.1.0')
    ]
    assert "compatible versions" in READER.hint_for(problem[0])
    assert READER.hint_for(("/api_version", "has invalid api_version")) == ""
    assert READER.hint_for(("/id", "any")) == ""


def test_a_manifest_of_another_shape_is_refused_with_all_its_problems() -> None:
    pointers = {pointer for pointer, _ in problems_of('id = 1\nname = "n"\nprovides = [{ type = "surprise" }]\n')}

    assert {"/id", "/version", "/api_version"} <= pointers


@pytest.mark.parametrize("text", ["id = ", "a." * 40 + "b = 1", 'id = "\x01"'])
def test_a_file_that_is_not_toml_or_has_another_shape_is_refused(text: str) -> None:
    assert problems_of(text)


def test_an_id_of_signs_alone_cannot_name_an_extension() -> None:
    [(pointer, _)] = problems_of(SINK.replace('"sink"', '"!?"', 1) + '[launch]\ncommand = "x"\n')

    assert pointer == "/id"


def test_control_characters_are_escaped() -> None:
    found = read(SINK.replace('"Sink"', '"Si\\u001bnk"') + '[launch]\ncommand = "x"\n')

    assert found.manifest.name == "Si\\x1bnk"


# -- configurations


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """Returns the folder of a host with two manifests in it, of which one has no launch."""
    for name, text in {"demo": MANIFEST, "sink": SINK + '[launch]\ncommand = "python3"\n'}.items():
        (tmp_path / "extensions" / name).mkdir(parents=True)
        (tmp_path / "extensions" / name / "roder-extension.toml").write_text(text, encoding="utf-8")
    (tmp_path / ".roder").mkdir()
    return tmp_path


def entry(**members: Any) -> str:
    given = {"id": "any", "manifest": "extensions/demo/roder-extension.toml", "command": "python3"} | members
    lines = "\n".join(f"{name} = {value if isinstance(value, bool) else repr(value)}" for name, value in given.items())
    return f"[[process_extensions]]\n{lines}\n".replace("True", "true").replace("False", "false")


def read_list(workspace: Path, text: str) -> ExtensionList:
    path = workspace / ".roder" / "config.toml"
    path.write_text(text, encoding="utf-8")
    return READER.read_list(text.encode(), str(path), ScopedFiles(str(path.parent), str(workspace)))


def test_an_entry_determines_how_the_extension_of_a_manifest_is_started(workspace: Path) -> None:
    text = entry(args=["main.py"], cwd="extensions/demo", startup_timeout_ms=2000) + "event_filter.kinds = ['turn.']\n"

    [found] = read_list(workspace, "model = 'small'\n" + text).extensions

    folder = workspace / "extensions" / "demo"
    assert found.manifest.id == "demo-ext"
    assert found.manifest.command == ("python3", "main.py")
    assert found.manifest.limits.handshake == 2.0
    assert (found.folder, found.path) == (str(folder), str(folder / "roder-extension.toml"))
    assert found.cwd == str(folder)
    assert found.extra.cwd == "extensions/demo"
    assert found.extra.event_filter == EventFilter(("turn.",))


def test_without_a_folder_of_its_own_it_runs_where_the_host_does(workspace: Path) -> None:
    [found] = read_list(workspace, entry()).extensions

    assert (found.cwd, found.extra.cwd) == (str(workspace), None)


def test_the_folder_of_a_manifest_is_its_own_unless_it_is_that_of_the_project(workspace: Path) -> None:
    (workspace / "demo.toml").write_text(MANIFEST, encoding="utf-8")

    owned, shared = read_list(workspace, entry() + entry(manifest="demo.toml")).extensions

    assert (owned.folder, owned.owns_folder) == (str(workspace / "extensions" / "demo"), True)
    assert (shared.folder, shared.owns_folder) == (str(workspace), False)


def test_of_an_extension_in_the_folder_of_the_project_its_manifest_and_its_program_count(workspace: Path) -> None:
    (workspace / "demo.toml").write_text(MANIFEST, encoding="utf-8")
    (workspace / "main.py").touch()
    (workspace / ".roder" / "config.toml").write_text(entry(manifest="demo.toml", args=["main.py"]), encoding="utf-8")

    [found] = discover(workspace, depth=0).candidates

    assert found.files == (str(workspace / "main.py"), str(workspace / "demo.toml"))


@pytest.mark.parametrize(
    ("command", "program"),
    [
        ("python3", "python3"),
        ("/usr/bin/env", "/usr/bin/env"),
        ("./extensions/demo/bin/run", "./bin/run"),
        ("extensions/demo/run", "./run"),
    ],
)
def test_a_program_in_the_folder_of_its_manifest_is_named_from_there(
    workspace: Path, command: str, program: str
) -> None:
    [found] = read_list(workspace, entry(command=command)).extensions

    assert found.manifest.command == (program,)


@pytest.mark.parametrize(
    ("word", "more", "argument"),
    [
        ("extensions/demo/main.py", {}, "main.py"),
        ("demo/main.py", {"cwd": "extensions"}, "main.py"),
        ("main.py", {}, "main.py"),
        ("extensions/demo/none.py", {}, "extensions/demo/none.py"),
    ],
)
def test_an_argument_in_the_folder_of_its_manifest_is_named_from_there(
    workspace: Path, word: str, more: dict[str, str], argument: str
) -> None:
    (workspace / "extensions" / "demo" / "main.py").touch()

    [found] = read_list(workspace, entry(args=[word], **more)).extensions

    assert found.manifest.command == ("python3", argument)


def test_a_program_elsewhere_has_its_whole_path(workspace: Path) -> None:
    [found] = read_list(workspace, entry(command="./tools/run")).extensions

    assert found.manifest.command == (str(workspace / "tools" / "run"),)


def test_one_entry_that_cannot_be_used_does_not_affect_the_others(workspace: Path) -> None:
    (workspace / "broken.toml").write_text("id = ", encoding="utf-8")
    (workspace / "empty.toml").write_text(SINK.replace('[{ type = "event_sink", id = "s" }]', "[]"), encoding="utf-8")
    text = "".join(
        [
            entry(id="gone", manifest="nowhere.toml"),
            entry(id="broken", manifest="broken.toml"),
            entry(id="empty", manifest="empty.toml"),
            entry(id="out", manifest="../../etc/passwd"),
            "[[process_extensions]]\nid = 1\n",
            entry(),
        ]
    )

    listing = read_list(workspace, text)

    assert [found.manifest.id for found in listing.extensions] == ["demo-ext"]
    received = dict(listing.problems)
    assert received["/process_extensions/0/manifest"].startswith(
        f"process extension gone manifest {workspace}/nowhere.toml is unreadable: "
    )
    assert "process extension broken manifest" in received["/process_extensions/1/manifest"]
    assert "is invalid: " in received["/process_extensions/1/manifest"]
    assert received["/process_extensions/2/manifest"].endswith(
        "is invalid: /provides: process extension sink declares no provided services"
    )
    assert "leads out of the root" in received["/process_extensions/3/manifest"]
    assert "/process_extensions/4/id" in received


def test_an_entry_that_is_turned_off_turns_its_extension_off(workspace: Path) -> None:
    listing = read_list(workspace, entry(enabled=False) + entry(id="gone", manifest="nowhere.toml", enabled=False))

    assert listing.disabled == ("demo-ext",)
    assert listing.problems == ()


def test_a_configuration_without_entries_names_no_extension(workspace: Path) -> None:
    assert read_list(workspace, "model = 'small'") == ExtensionList()


def test_entries_that_are_not_a_list_are_a_problem(workspace: Path) -> None:
    [(pointer, text)] = read_list(workspace, "[process_extensions]\nid = 'a'").problems

    assert (pointer, "[[process_extensions]]" in text) == ("/process_extensions", True)


def test_a_configuration_that_is_not_toml_is_refused(workspace: Path) -> None:
    with pytest.raises(ManifestError):
        read_list(workspace, "[[")


# -- in a search


def discover(root: Path, depth: int = 2) -> DiscoveryReport:
    from becket.host.starting.discovery import DiscoverySettings

    return discover_extensions([root], settings=DiscoverySettings(depth=depth), readers=[RoderManifestReader()])


def test_manifests_with_a_launch_are_found_beside_configured_ones(workspace: Path) -> None:
    (workspace / ".roder" / "config.toml").write_text(entry(), encoding="utf-8")

    report = discover(workspace)

    assert [candidate.id for candidate in report.candidates] == ["demo-ext", "sink"]
    assert report.diagnostics == ()


def test_an_extension_without_a_launch_is_a_diagnostic(workspace: Path) -> None:
    report = discover(workspace)

    assert [candidate.id for candidate in report.candidates] == ["sink"]
    assert [note.problem.partition(":")[0] for note in report.diagnostics] == ["/launch"]


def test_a_disabled_extension_is_not_found_by_its_launch(workspace: Path) -> None:
    (workspace / ".roder" / "config.toml").write_text(
        entry(manifest="extensions/sink/roder-extension.toml", enabled=False) + entry(), encoding="utf-8"
    )

    report = discover(workspace)

    assert [candidate.id for candidate in report.candidates] == ["demo-ext"]
    assert report.disabled == 1


# -- packages

PACKAGE = '[package]\nid = "demo-pkg"\nname = "Demo Package"\nversion = "0.1.0"\n'


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Returns a package with two extensions, deeper than a search looks by itself."""
    folder = tmp_path / "packages" / "demo-pkg"
    for name in ("hello", "other"):
        (folder / "extensions" / name).mkdir(parents=True)
        text = SINK.replace('"sink"', f'"{name}"', 1) + '[launch]\ncommand = "python3"\nargs = ["main.py"]\n'
        (folder / "extensions" / name / "roder-extension.toml").write_text(text, encoding="utf-8")
    return folder


def write_package(package: Path, text: str) -> None:
    (package / "roder.toml").write_text(PACKAGE + text, encoding="utf-8")


def test_the_extensions_that_a_package_names_are_found(package: Path) -> None:
    write_package(
        package, '[resources]\nextensions = ["./extensions/hello/roder-extension.toml"]\nskills = ["skills"]\n'
    )

    [candidate] = discover(package.parent, depth=1).candidates

    assert (candidate.id, candidate.folder) == ("hello", str(package / "extensions" / "hello"))
    assert not candidate.is_listed  # its folder is its own, and the approved files can run from a copy
    assert candidate.manifest.command == ("python3", "main.py")


@pytest.mark.parametrize("text", ["", '[resources]\nextensions = ["extensions/*/roder-extension.toml"]\n'])
def test_a_package_may_name_its_extensions_by_a_pattern_or_have_them_in_the_usual_folders(
    package: Path, text: str
) -> None:
    write_package(package, text)

    report = discover(package.parent, depth=1)

    assert [candidate.id for candidate in report.candidates] == ["hello", "other"]
    assert report.diagnostics == ()


def test_manifests_of_a_package_may_have_other_names(package: Path) -> None:
    (package / "one.toml").write_text(SINK + '[launch]\ncommand = "python3"\n', encoding="utf-8")
    (package / "two.toml").write_text(SINK.replace('"sink"', '"two"', 1), encoding="utf-8")
    write_package(package, '[resources]\nextensions = ["one.toml", "two.toml"]\n')

    report = discover(package.parent, depth=1)

    [candidate] = report.candidates
    assert (candidate.id, candidate.manifest_path) == ("sink", str(package / "one.toml"))
    [note] = report.diagnostics
    assert note.path == str(package / "roder.toml")
    assert note.problem.startswith("/resources/extensions/1: two.toml: /launch: ")


def test_a_package_has_nothing_outside_of_its_folder(package: Path) -> None:
    (package.parent / "roder-extension.toml").write_text(SINK + '[launch]\ncommand = "python3"\n', encoding="utf-8")
    write_package(package, '[resources]\nextensions = ["../roder-extension.toml", "/etc/*.toml", "none/*.toml"]\n')

    listing = READER.read_list(
        (package / "roder.toml").read_bytes(),
        str(package / "roder.toml"),
        ScopedFiles(str(package), str(package.parent)),
    )

    assert (listing.extensions, listing.search_folders) == ((), ())
    assert [pointer for pointer, _ in listing.problems] == [f"/resources/extensions/{index}" for index in range(3)]
    assert all("extensions/hello" in READER.hint_for(problem) for problem in listing.problems)


def test_a_link_in_a_package_leads_nowhere_else(package: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "roder-extension.toml").write_text(SINK + '[launch]\ncommand = "x"\n', encoding="utf-8")
    (package / "extensions" / "linked").symlink_to(tmp_path / "outside")
    write_package(package, '[resources]\nextensions = ["extensions/linked/roder-extension.toml"]\n')

    report = discover(package.parent, depth=1)

    assert report.candidates == ()
    assert [note.problem for note in report.diagnostics] == ["leads out of the root of its list"]


def test_circular_links_do_not_block_the_search_of_a_package(package: Path) -> None:
    for name in "abc":
        (package / name).symlink_to(package)
    write_package(package, f'[resources]\nextensions = ["{"*/" * 60}none.toml"]\n')

    report = discover(package.parent, depth=1)

    assert [note.problem.partition(":")[0] for note in report.diagnostics] == ["/resources/extensions/0"]


@pytest.mark.parametrize("text", ["[resources]\n", '[package]\nname = "n"\n', '[package]\nid = "Not one"\n', "id = 1"])
def test_a_package_without_an_id_is_refused(package: Path, text: str) -> None:
    (package / "roder.toml").write_text(text, encoding="utf-8")

    report = discover(package.parent, depth=1)

    assert report.candidates == ()
    assert [note.problem.partition("/")[2][:7] for note in report.diagnostics] == ["package"]
    assert "[package]" in report.diagnostics[0].hint


def test_a_search_finds_packages_by_default(package: Path) -> None:
    write_package(package, "")

    assert [candidate.id for candidate in discover_extensions([package.parent]).candidates] == ["hello", "other"]
