"""Extensions are found where they are, once each, in a fixed order; whatever else is on disk is told and passed by."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.host.folders import as_nobody, open_folder, write_extension

from becket.errors import Problem
from becket.host.diagnostics import Diagnostic, Severity
from becket.host.discovery import DiscoveryReport, DiscoverySettings, discover_extensions, prune_nested
from becket.host.manifest import BecketToml, Manifest
from becket.limits import Limits
from becket.typed.toml_files import parse_toml

DEEP = DiscoverySettings(depth=16)


def ids_of(report: DiscoveryReport) -> list[str]:
    return [candidate.id for candidate in report.candidates]


def told(report: DiscoveryReport) -> list[tuple[str, str, Severity]]:
    return [(note.path or "", note.problem, note.severity) for note in report.diagnostics]


def only_note(report: DiscoveryReport) -> Diagnostic:
    [note] = report.diagnostics
    return note


# -- where they are


def test_an_extension_is_found_one_level_below_a_root(tmp_path: Path) -> None:
    folder = write_extension(tmp_path / "notes", "acme.notes")

    report = discover_extensions([tmp_path])

    [candidate] = report.candidates
    assert candidate.id == "acme.notes"
    assert candidate.folder == str(folder)
    assert candidate.manifest_path == str(folder / "becket.toml")
    assert candidate.manifest.command == ("python3", "main.py")
    assert candidate.root == 0
    assert report.diagnostics == ()


def test_a_root_may_be_an_extension_itself(tmp_path: Path) -> None:
    write_extension(tmp_path, "notes")

    assert ids_of(discover_extensions([tmp_path], settings=DiscoverySettings(depth=0))) == ["notes"]


@pytest.mark.parametrize(("depth", "found"), [(0, []), (1, ["a"]), (2, ["a", "b"]), (16, ["a", "b", "c"])])
def test_folders_are_looked_into_as_deep_as_the_settings_say(tmp_path: Path, depth: int, found: list[str]) -> None:
    write_extension(tmp_path / "1", "a")
    write_extension(tmp_path / "x" / "2", "b")
    write_extension(tmp_path / "x" / "y" / "z" / "3", "c")

    assert ids_of(discover_extensions([tmp_path], settings=DiscoverySettings(depth=depth))) == found


def test_candidates_are_sorted_by_root_and_id_whatever_their_folders_are_called(tmp_path: Path) -> None:
    write_extension(tmp_path / "one" / "z", "b")
    write_extension(tmp_path / "one" / "y", "c")
    write_extension(tmp_path / "two" / "x", "a")

    report = discover_extensions([tmp_path / "one", tmp_path / "two"])

    assert [(candidate.root, candidate.id) for candidate in report.candidates] == [(0, "b"), (0, "c"), (1, "a")]


def test_names_that_are_ignored_or_begin_with_a_dot_are_passed_over(tmp_path: Path) -> None:
    for name in ("node_modules", "target", "__pycache__", ".git", "mine", "other"):
        write_extension(tmp_path / name, f"in.{name.strip('_.')}")

    assert ids_of(discover_extensions([tmp_path])) == ["in.mine", "in.other"]
    assert ids_of(discover_extensions([tmp_path], settings=DiscoverySettings(ignore=("mine",)))) == [
        "in.node_modules",
        "in.other",
        "in.pycache",
        "in.target",
    ]


def test_a_root_may_have_any_name(tmp_path: Path) -> None:
    write_extension(tmp_path / ".target" / "notes", "notes")

    assert ids_of(discover_extensions([tmp_path / ".target"])) == ["notes"]


def test_files_and_empty_folders_are_nothing(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x", encoding="utf-8")

    assert discover_extensions([tmp_path]) == DiscoveryReport()


# -- roots


def test_a_root_that_is_not_there_is_a_warning(tmp_path: Path) -> None:
    write_extension(tmp_path / "a", "a")

    report = discover_extensions([tmp_path / "none", tmp_path])

    assert ids_of(report) == ["a"]
    assert told(report) == [(str(tmp_path / "none"), "no such folder", Severity.WARNING)]


def test_a_root_that_is_a_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")

    assert "Not a directory" in only_note(discover_extensions([tmp_path / "file"])).problem


def test_a_root_that_is_a_link_in_a_circle_is_told(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("a")

    assert only_note(discover_extensions([tmp_path / "a"])).severity is Severity.ERROR


def test_a_root_with_a_zero_byte_is_told() -> None:
    assert only_note(discover_extensions(["a\0b"])).path == "a\\x00b"


def test_a_root_whose_name_is_no_text_is_told(tmp_path: Path) -> None:
    root = os.path.join(os.fsencode(tmp_path), b"\xff")
    os.mkdir(root)

    note = only_note(discover_extensions([os.fsdecode(root)]))
    assert note.path == f"{tmp_path}/\\xff"


def test_a_root_that_is_a_link_stands_for_its_target(tmp_path: Path) -> None:
    folder = write_extension(tmp_path / "real" / "notes", "notes")
    (tmp_path / "link").symlink_to("real")

    assert [candidate.folder for candidate in discover_extensions([tmp_path / "link"]).candidates] == [str(folder)]


def test_a_root_that_comes_twice_gives_each_extension_once_and_no_complaint(tmp_path: Path) -> None:
    write_extension(tmp_path / "notes", "notes")

    report = discover_extensions([tmp_path, tmp_path])

    assert [candidate.root for candidate in report.candidates] == [0]
    assert report.diagnostics == ()


# -- extensions within extensions


def test_what_lies_in_the_folder_of_an_extension_is_none(tmp_path: Path) -> None:
    write_extension(tmp_path / "outer", "outer")
    write_extension(tmp_path / "outer" / "vendor" / "inner", "inner")
    write_extension(tmp_path / "outer-too", "outer-too")  # the same beginning, and not inside

    assert ids_of(discover_extensions([tmp_path], settings=DEEP)) == ["outer", "outer-too"]


def test_it_is_none_either_when_the_outer_manifest_cannot_be_used(tmp_path: Path) -> None:
    write_extension(tmp_path / "outer", "Outer")
    write_extension(tmp_path / "outer" / "inner", "inner")

    report = discover_extensions([tmp_path], settings=DEEP)

    assert ids_of(report) == []
    assert report.invalid == 1


def test_a_root_within_an_extension_adds_nothing_and_is_told(tmp_path: Path) -> None:
    outer = write_extension(tmp_path / "outer", "outer")
    inner = write_extension(outer / "deep" / "inner", "inner")

    for roots in ([tmp_path, outer / "deep"], [outer / "deep", tmp_path]):
        report = discover_extensions(roots)
        assert ids_of(report) == ["outer"]
        problem = f"lies in the folder of another extension: {outer}"
        assert told(report) == [(str(inner / "becket.toml"), problem, Severity.NOTE)]


PARTS = st.lists(st.sampled_from("abc"), max_size=5)
FOLDERS = st.lists(PARTS.map(lambda parts: "/" + "/".join(parts)), max_size=8)


@given(FOLDERS, FOLDERS)
@settings(max_examples=300)
def test_pruning_keeps_exactly_those_without_an_owner_above(folders: list[str], owned: list[str]) -> None:
    above = [[str(path) for path in Path(folder).parents] for folder in folders]
    expected = [folder for folder, parents in zip(folders, above, strict=True) if not set(parents) & set(owned)]

    assert prune_nested(folders, set(owned)) == expected


# -- twins


def test_of_two_with_one_id_that_of_the_later_root_is_taken_and_the_other_told(tmp_path: Path) -> None:
    first = write_extension(tmp_path / "system" / "notes", "notes")
    second = write_extension(tmp_path / "user" / "notes", "notes")

    report = discover_extensions([tmp_path / "system", tmp_path / "user"])

    assert [candidate.folder for candidate in report.candidates] == [str(second)]
    problem = f"has the same id as {second / 'becket.toml'}, which is taken"
    assert told(report) == [(str(first / "becket.toml"), problem, Severity.WARNING)]


def test_the_first_root_may_be_the_one_that_wins(tmp_path: Path) -> None:
    first = write_extension(tmp_path / "system" / "notes", "notes")
    write_extension(tmp_path / "user" / "notes", "notes")

    report = discover_extensions([tmp_path / "system", tmp_path / "user"], later_root_wins=False)

    assert [candidate.folder for candidate in report.candidates] == [str(first)]


@pytest.mark.parametrize("later_root_wins", [True, False])
def test_in_one_root_the_first_path_is_taken(tmp_path: Path, later_root_wins: bool) -> None:
    for name in "cab":
        write_extension(tmp_path / name, "notes")

    report = discover_extensions([tmp_path], later_root_wins=later_root_wins)

    assert [candidate.folder for candidate in report.candidates] == [str(tmp_path / "a")]
    assert [note.path for note in report.diagnostics] == [str(tmp_path / name / "becket.toml") for name in "bc"]


# -- who may be there


def test_those_that_are_disabled_are_counted_and_noted(tmp_path: Path) -> None:
    write_extension(tmp_path / "a", "a")
    write_extension(tmp_path / "b", "b")

    report = discover_extensions([tmp_path], disabled=["a", "none"])

    assert ids_of(report) == ["b"]
    assert report.disabled == 1
    assert (only_note(report).extension, only_note(report).severity) == ("a", Severity.NOTE)


def test_only_those_that_are_allowed_are_candidates_and_missing_ones_are_told(tmp_path: Path) -> None:
    for id in "abc":
        write_extension(tmp_path / id, id)

    report = discover_extensions([tmp_path], only=["a", "b", "missing"], disabled=["b"])

    assert ids_of(report) == ["a"]
    assert (report.disabled, report.not_allowed) == (1, 1)
    assert {(note.extension, note.severity) for note in report.diagnostics} == {
        ("missing", Severity.WARNING),
        ("b", Severity.NOTE),
        ("c", Severity.NOTE),
    }


def test_an_empty_list_of_allowed_ones_allows_none(tmp_path: Path) -> None:
    write_extension(tmp_path / "a", "a")

    assert ids_of(discover_extensions([tmp_path], only=[])) == []


# -- links


def test_a_link_to_a_folder_is_not_followed_and_noted(tmp_path: Path) -> None:
    write_extension(tmp_path / "elsewhere" / "notes", "notes")
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "notes").symlink_to("../elsewhere/notes")

    report = discover_extensions([tmp_path / "root"])

    assert ids_of(report) == []
    assert told(report) == [(str(tmp_path / "root" / "notes"), "is a link: not looked into", Severity.NOTE)]


def test_a_followed_link_gives_the_real_folder(tmp_path: Path) -> None:
    folder = write_extension(tmp_path / "shelf" / "deep" / "notes", "notes")
    (tmp_path / "notes").symlink_to("shelf/deep/notes")

    report = discover_extensions([tmp_path], settings=DiscoverySettings(follow_links=True))

    assert [candidate.folder for candidate in report.candidates] == [str(folder)]


def test_a_folder_that_two_links_lead_to_is_found_once(tmp_path: Path) -> None:
    write_extension(tmp_path / "notes", "notes")
    (tmp_path / "a").symlink_to("notes")
    (tmp_path / "b").symlink_to(tmp_path / "notes")

    report = discover_extensions([tmp_path], settings=DiscoverySettings(follow_links=True))

    assert ids_of(report) == ["notes"]
    assert report.diagnostics == ()


@pytest.mark.parametrize("target", ["..", "../outside", "/etc", "../root-evil"])
def test_a_link_out_of_the_root_is_an_error(tmp_path: Path, target: str) -> None:
    for name in ("root", "outside", "root-evil"):
        write_extension(tmp_path / name / "inner", name)
    (tmp_path / "root" / "link").symlink_to(target)

    report = discover_extensions([tmp_path / "root"], settings=DiscoverySettings(depth=5, follow_links=True))

    assert ids_of(report) == ["root"]
    assert only_note(report).severity is Severity.ERROR
    assert "leads out of its root" in only_note(report).problem


def test_links_in_a_circle_end(tmp_path: Path) -> None:
    write_extension(tmp_path / "a" / "b" / "notes", "notes")
    (tmp_path / "a" / "b" / "back").symlink_to("..")
    (tmp_path / "a" / "root").symlink_to(tmp_path)
    (tmp_path / "self").symlink_to("self")
    (tmp_path / "nowhere").symlink_to("not-there")

    report = discover_extensions([tmp_path], settings=DiscoverySettings(depth=16, follow_links=True))

    assert ids_of(report) == ["notes"]
    assert report.diagnostics == ()


def test_a_link_to_a_folder_whose_name_is_no_text_is_not_followed(tmp_path: Path) -> None:
    os.mkdir(os.path.join(os.fsencode(tmp_path), b"\xff"))
    os.symlink(b"\xff", os.path.join(os.fsencode(tmp_path), b"link"))

    report = discover_extensions([tmp_path], settings=DiscoverySettings(follow_links=True))

    assert only_note(report).problem == "its name is no UTF-8: not looked into"


def test_a_manifest_that_is_a_link_is_read_only_where_links_are_followed(tmp_path: Path) -> None:
    write_extension(tmp_path / "a", "a")
    (tmp_path / "a" / "becket.toml").rename(tmp_path / "a" / "other.toml")
    (tmp_path / "a" / "becket.toml").symlink_to("other.toml")

    report = discover_extensions([tmp_path])
    assert (report.candidates, report.invalid) == ((), 1)
    assert only_note(report).problem == "is a link: not followed"
    assert ids_of(discover_extensions([tmp_path], settings=DiscoverySettings(follow_links=True))) == ["a"]


def test_a_manifest_that_is_a_link_out_of_the_root_is_never_read(tmp_path: Path) -> None:
    write_extension(tmp_path / "outside", "a")
    (tmp_path / "root" / "a").mkdir(parents=True)
    (tmp_path / "root" / "a" / "becket.toml").symlink_to(tmp_path / "outside" / "becket.toml")

    report = discover_extensions([tmp_path / "root"], settings=DiscoverySettings(follow_links=True))

    assert report.candidates == ()
    assert only_note(report).problem == "is a link that leads out of its root"


# -- manifests that cannot be used


def test_one_bad_manifest_does_not_stop_the_others_and_all_its_problems_are_told(tmp_path: Path) -> None:
    write_extension(tmp_path / "bad", "Bad", "permission = []\n")
    write_extension(tmp_path / "good", "good")

    report = discover_extensions([tmp_path])

    assert ids_of(report) == ["good"]
    assert report.invalid == 1
    assert [(note.problem.partition(":")[0], note.hint) for note in report.diagnostics] == [
        ("/id", "give it an id such as `acme.notes`"),
        ("/permission", "did you mean `permissions` of the manifest itself?"),
    ]
    assert {note.path for note in report.diagnostics} == {str(tmp_path / "bad" / "becket.toml")}


@pytest.mark.parametrize("kind", ["pipe", "folder", "device link", "huge", "empty", "binary"])
def test_whatever_stands_in_the_place_of_a_manifest_is_told_at_once(tmp_path: Path, kind: str) -> None:
    (tmp_path / "x").mkdir()
    path = tmp_path / "x" / "becket.toml"
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case "device link":
            path.symlink_to("/dev/zero")
        case "huge":
            path.write_bytes(b"#" * 10_000_000)
        case "empty":
            path.touch()
        case _:
            path.write_bytes(bytes(range(256)))
    write_extension(tmp_path / "good", "good")

    for follow in (False, True):
        report = discover_extensions([tmp_path], settings=DiscoverySettings(follow_links=follow))
        assert ids_of(report) == ["good"]
        assert report.invalid == 1


def test_the_limit_of_a_manifest_can_be_set(tmp_path: Path) -> None:
    write_extension(tmp_path / "a", "a")

    assert discover_extensions([tmp_path], limits=Limits(manifest=10)).invalid == 1


# -- folders that cannot be looked into


def test_a_folder_that_may_not_be_read_is_told_and_the_others_are_found() -> None:
    with open_folder() as root:
        write_extension(root / "good", "good")
        write_extension(root / "locked", "locked").chmod(0)
        with as_nobody():
            report = discover_extensions([root])
        (root / "locked").chmod(0o700)

    assert ids_of(report) == ["good"]
    assert told(report) == [(str(root / "locked"), "cannot be looked into: Permission denied", Severity.WARNING)]


def test_a_manifest_that_may_not_be_read_is_told() -> None:
    with open_folder() as root:
        write_extension(root / "a", "a")
        (root / "a" / "becket.toml").chmod(0)
        with as_nobody():
            report = discover_extensions([root])

    assert report.invalid == 1
    assert only_note(report).problem == "cannot be read: Permission denied"


def test_a_path_that_is_too_long_is_told(tmp_path: Path) -> None:
    # No path leads there: each step is made from within the one before.
    descriptors = [os.open(tmp_path, os.O_DIRECTORY)]
    try:
        for _ in range(16):
            os.mkdir("d" * 255, dir_fd=descriptors[-1])
            descriptors.append(os.open("d" * 255, os.O_DIRECTORY, dir_fd=descriptors[-1]))
        report = discover_extensions([tmp_path], settings=DEEP)
    finally:
        for depth in reversed(range(len(descriptors))):
            if depth:
                os.rmdir("d" * 255, dir_fd=descriptors[depth - 1])
            os.close(descriptors[depth])

    assert only_note(report).problem == "cannot be looked into: File name too long"


def test_names_that_are_no_text_are_told_and_passed_over(tmp_path: Path) -> None:
    odd = os.path.join(os.fsencode(tmp_path), b"na\xefve")
    os.mkdir(odd)
    with open(os.path.join(odd, b"becket.toml"), "wb") as file:
        file.write(b'id = "odd"')
    write_extension(tmp_path / "good", "good")

    report = discover_extensions([tmp_path])

    assert ids_of(report) == ["good"]
    assert only_note(report).path == f"{tmp_path}/na\\xefve"


def test_control_characters_of_a_name_are_shown_as_escapes(tmp_path: Path) -> None:
    write_extension(tmp_path / "a\n\x1b[31mnotes: granted", "Bad")

    assert only_note(discover_extensions([tmp_path])).path == f"{tmp_path}/a\\n\\x1b[31mnotes: granted/becket.toml"


def test_a_search_ends_at_its_limit_and_says_so(tmp_path: Path) -> None:
    for number in range(10):
        write_extension(tmp_path / str(number), f"e{number}")

    report = discover_extensions([tmp_path], limits=Limits(found_entries=20))

    assert len(report.candidates) == 5
    assert "more than 20 names" in only_note(report).problem
    assert only_note(report).severity is Severity.ERROR


# -- changes while it looks


class Meddler(BecketToml):
    """A reader that changes the folders while they are walked through."""

    def __init__(self, path: Path, *, when_named: bool = False) -> None:
        self.path = path
        self.when_named = when_named

    @property
    def file_names(self) -> tuple[str, ...]:
        if self.when_named:
            shutil.rmtree(self.path, ignore_errors=True)
        return super().file_names

    def read(self, data: bytes, path: str) -> Manifest:
        shutil.rmtree(self.path, ignore_errors=True)
        return super().read(data, path)


def test_a_folder_that_goes_away_before_it_is_looked_into_is_nobodys_problem(tmp_path: Path) -> None:
    write_extension(tmp_path / "a", "a")
    write_extension(tmp_path / "b", "b")

    report = discover_extensions([tmp_path], readers=[Meddler(tmp_path / "b")])

    assert ids_of(report) == ["a"]
    assert report.diagnostics == ()


def test_a_manifest_that_goes_away_before_it_is_read_is_nobodys_problem(tmp_path: Path) -> None:
    write_extension(tmp_path, "a")

    report = discover_extensions([tmp_path], readers=[Meddler(tmp_path, when_named=True)])

    assert report == DiscoveryReport()


# -- other formats


class PluginJson:
    """A reader of another format: in a folder of its own, by the name of the folder, and not for every plugin."""

    file_names = (".plugin/plugin.toml", "plugin.toml")

    def read(self, data: bytes, path: str) -> Manifest | None:
        table = parse_toml(data, path)
        name = Path(path.removesuffix("/.plugin/plugin.toml").removesuffix("/plugin.toml")).name
        return Manifest(id=name, version="0.0.0", command=(table["run"],)) if "run" in table else None

    def hint_for(self, problem: Problem) -> str:
        return "ask its author"


def test_several_formats_are_read_side_by_side_and_the_first_reader_comes_first(tmp_path: Path) -> None:
    write_extension(tmp_path / "a", "becket.a", files={"plugin.toml": 'run = "x"'})
    for name, file, text in [
        ("b", "plugin.toml", 'run = "x"'),
        ("c", ".plugin/plugin.toml", 'run = "y"'),
        ("d", "plugin.toml", ""),
        ("e", "plugin.toml", "["),
    ]:
        (tmp_path / name / file).parent.mkdir(parents=True)
        (tmp_path / name / file).write_text(text, encoding="utf-8")

    report = discover_extensions([tmp_path], readers=[BecketToml(), PluginJson()])

    assert [(one.id, one.manifest.command[0]) for one in report.candidates] == [
        ("b", "x"),
        ("becket.a", "python3"),
        ("c", "y"),
    ]
    assert report.invalid == 1
    assert only_note(report).hint == "ask its author"


# -- servers beside the manifest


@pytest.mark.parametrize("spelling", ["mcpServers", "mcp_servers"])
def test_servers_of_a_file_beside_the_manifest_are_adopted(tmp_path: Path, spelling: str) -> None:
    text = f'{{"{spelling}": {{"mail": {{"command": "./mail"}}}}, "more": 1}}'
    write_extension(tmp_path / "a", "a", files={".mcp.json": text})

    report = discover_extensions([tmp_path])

    assert report.candidates[0].manifest.mcp_servers == {"mail": {"command": "./mail"}}
    assert report.diagnostics == ()


def test_servers_of_the_manifest_stand_above_those_of_the_file(tmp_path: Path) -> None:
    write_extension(tmp_path / "a", "a", "[mcp_servers.own]\n", files={".mcp.json": "nonsense"})

    report = discover_extensions([tmp_path])

    assert report.candidates[0].manifest.mcp_servers == {"own": {}}
    assert report.diagnostics == ()


@pytest.mark.parametrize(
    "text",
    [
        "nonsense",
        "[]",
        '{"mcpServers": {"Mail": {}}}',
        '{"mcpServers": {"mail": 1}}',
        '{"mcpServers": []}',
        "[" * 60_000,
        '{"mcpServers": "' + "x" * 70_000 + '"}',
    ],
)
def test_a_bad_file_of_servers_is_a_warning_and_the_extension_stays(tmp_path: Path, text: str) -> None:
    write_extension(tmp_path / "a", "a", files={".mcp.json": text})

    report = discover_extensions([tmp_path])

    assert ids_of(report) == ["a"]
    assert report.candidates[0].manifest.mcp_servers == {}
    assert (only_note(report).extension, only_note(report).severity) == ("a", Severity.WARNING)


def test_a_file_of_servers_that_is_no_text_is_a_warning(tmp_path: Path) -> None:
    write_extension(tmp_path / "a", "a")
    (tmp_path / "a" / ".mcp.json").write_bytes(b'{"mcpServers": {"\xff": {}}}')

    assert only_note(discover_extensions([tmp_path])).severity is Severity.WARNING
