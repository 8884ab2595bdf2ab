"""Extensions are discovered once each, in a fixed order; other files are reported and skipped."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st
from tests.host.folders import as_nobody, open_folder, write_extension

from becket.conversion.files.toml import parse_toml
from becket.errors import ManifestError, Problem
from becket.host.diagnostics import Diagnostic, Severity
from becket.host.starting.becket_toml import BecketToml
from becket.host.starting.conflicts import prune_nested
from becket.host.starting.discovery import DiscoveryReport, DiscoverySettings, discover_extensions
from becket.host.starting.manifest import Manifest, build_id
from becket.host.starting.manifest_reader import (
    ExtensionList,
    FoundExtension,
    ManifestReader,
    ScopedFiles,
    SearchFolder,
)
from becket.limits import Limits

DEEP = DiscoverySettings(depth=16)


def ids_of(report: DiscoveryReport) -> list[str]:
    return [candidate.id for candidate in report.candidates]


def reported(report: DiscoveryReport) -> list[tuple[str, str, Severity]]:
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
def test_folders_are_searched_to_the_configured_depth(tmp_path: Path, depth: int, found: list[str]) -> None:
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


def test_ignored_names_and_names_that_begin_with_a_dot_are_skipped(tmp_path: Path) -> None:
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


def test_files_and_empty_folders_are_ignored(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x", encoding="utf-8")

    assert discover_extensions([tmp_path]) == DiscoveryReport()


# -- roots


def test_a_root_that_is_not_there_is_a_warning(tmp_path: Path) -> None:
    write_extension(tmp_path / "a", "a")

    report = discover_extensions([tmp_path / "none", tmp_path])

    assert ids_of(report) == ["a"]
    assert reported(report) == [(str(tmp_path / "none"), "no such folder", Severity.WARNING)]


def test_a_root_that_is_a_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")

    assert "Not a directory" in only_note(discover_extensions([tmp_path / "file"])).problem


def test_a_root_that_is_a_circular_link_is_reported(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("a")

    assert only_note(discover_extensions([tmp_path / "a"])).severity is Severity.ERROR


def test_a_root_with_a_zero_byte_is_reported() -> None:
    assert only_note(discover_extensions(["a\0b"])).path == "a\\x00b"


def test_a_root_whose_name_is_not_text_is_reported(tmp_path: Path) -> None:
    root = os.path.join(os.fsencode(tmp_path), b"\xff")
    os.mkdir(root)

    note = only_note(discover_extensions([os.fsdecode(root)]))
    assert note.path == f"{tmp_path}/\\xff"


def test_a_root_that_is_a_link_means_its_target(tmp_path: Path) -> None:
    folder = write_extension(tmp_path / "real" / "notes", "notes")
    (tmp_path / "link").symlink_to("real")

    assert [candidate.folder for candidate in discover_extensions([tmp_path / "link"]).candidates] == [str(folder)]


def test_a_root_that_comes_twice_gives_each_extension_once_and_no_complaint(tmp_path: Path) -> None:
    write_extension(tmp_path / "notes", "notes")

    report = discover_extensions([tmp_path, tmp_path])

    assert [candidate.root for candidate in report.candidates] == [0]
    assert report.diagnostics == ()


# -- extensions within extensions


def test_a_manifest_inside_the_folder_of_an_extension_is_ignored(tmp_path: Path) -> None:
    write_extension(tmp_path / "outer", "outer")
    write_extension(tmp_path / "outer" / "vendor" / "inner", "inner")
    write_extension(tmp_path / "outer-too", "outer-too")  # the same beginning, and not inside

    assert ids_of(discover_extensions([tmp_path], settings=DEEP)) == ["outer", "outer-too"]


def test_a_manifest_inside_a_folder_with_an_unusable_manifest_is_ignored(tmp_path: Path) -> None:
    write_extension(tmp_path / "outer", "Outer")
    write_extension(tmp_path / "outer" / "inner", "inner")

    report = discover_extensions([tmp_path], settings=DEEP)

    assert ids_of(report) == []
    assert report.invalid == 1


def test_a_root_within_an_extension_adds_nothing_and_is_reported(tmp_path: Path) -> None:
    outer = write_extension(tmp_path / "outer", "outer")
    inner = write_extension(outer / "deep" / "inner", "inner")

    for roots in ([tmp_path, outer / "deep"], [outer / "deep", tmp_path]):
        report = discover_extensions(roots)
        assert ids_of(report) == ["outer"]
        problem = f"is in the folder of another extension: {outer}"
        assert reported(report) == [(str(inner / "becket.toml"), problem, Severity.NOTE)]


PARTS = st.lists(st.sampled_from("abc"), max_size=5)
FOLDERS = st.lists(PARTS.map(lambda parts: "/" + "/".join(parts)), max_size=8)


@given(FOLDERS, FOLDERS)
@settings(max_examples=300)
def test_pruning_retains_exactly_the_folders_without_an_extension_above(folders: list[str], owned: list[str]) -> None:
    above = [[str(path) for path in Path(folder).parents] for folder in folders]
    expected = [folder for folder, parents in zip(folders, above, strict=True) if not set(parents) & set(owned)]

    assert prune_nested(folders, set(owned)) == expected


# -- duplicates


def test_of_two_extensions_with_one_id_the_later_root_wins_and_the_other_is_reported(tmp_path: Path) -> None:
    first = write_extension(tmp_path / "system" / "notes", "notes")
    second = write_extension(tmp_path / "user" / "notes", "notes")

    report = discover_extensions([tmp_path / "system", tmp_path / "user"])

    assert [candidate.folder for candidate in report.candidates] == [str(second)]
    problem = f"has the same id as {second / 'becket.toml'}, which is used"
    assert reported(report) == [(str(first / "becket.toml"), problem, Severity.WARNING)]


def test_the_first_root_may_be_the_one_that_wins(tmp_path: Path) -> None:
    first = write_extension(tmp_path / "system" / "notes", "notes")
    write_extension(tmp_path / "user" / "notes", "notes")

    report = discover_extensions([tmp_path / "system", tmp_path / "user"], later_root_wins=False)

    assert [candidate.folder for candidate in report.candidates] == [str(first)]


@pytest.mark.parametrize("later_root_wins", [True, False])
def test_in_one_root_the_first_path_is_used(tmp_path: Path, later_root_wins: bool) -> None:
    for name in "cab":
        write_extension(tmp_path / name, "notes")

    report = discover_extensions([tmp_path], later_root_wins=later_root_wins)

    assert [candidate.folder for candidate in report.candidates] == [str(tmp_path / "a")]
    assert [note.path for note in report.diagnostics] == [str(tmp_path / name / "becket.toml") for name in "bc"]


# -- allowed and disabled extensions


def test_disabled_extensions_are_counted_and_noted(tmp_path: Path) -> None:
    write_extension(tmp_path / "a", "a")
    write_extension(tmp_path / "b", "b")

    report = discover_extensions([tmp_path], disabled=["a", "none"])

    assert ids_of(report) == ["b"]
    assert report.disabled == 1
    assert (only_note(report).extension, only_note(report).severity) == ("a", Severity.NOTE)


def test_only_allowed_extensions_are_candidates_and_missing_ones_are_reported(tmp_path: Path) -> None:
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


def test_an_empty_list_of_allowed_extensions_allows_none(tmp_path: Path) -> None:
    write_extension(tmp_path / "a", "a")

    assert ids_of(discover_extensions([tmp_path], only=[])) == []


# -- links


def test_a_link_to_a_folder_is_not_followed_and_noted(tmp_path: Path) -> None:
    write_extension(tmp_path / "elsewhere" / "notes", "notes")
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "notes").symlink_to("../elsewhere/notes")

    report = discover_extensions([tmp_path / "root"])

    assert ids_of(report) == []
    assert reported(report) == [(str(tmp_path / "root" / "notes"), "is a link: not searched", Severity.NOTE)]


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


def test_a_link_to_a_folder_whose_name_is_not_text_is_not_followed(tmp_path: Path) -> None:
    os.mkdir(os.path.join(os.fsencode(tmp_path), b"\xff"))
    os.symlink(b"\xff", os.path.join(os.fsencode(tmp_path), b"link"))

    report = discover_extensions([tmp_path], settings=DiscoverySettings(follow_links=True))

    assert only_note(report).problem == "its name is not UTF-8: not searched"


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


def test_one_bad_manifest_does_not_stop_the_others_and_all_its_problems_are_reported(tmp_path: Path) -> None:
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
def test_any_other_kind_of_file_named_as_a_manifest_is_reported_at_once(tmp_path: Path, kind: str) -> None:
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


# -- folders that cannot be read


def test_a_folder_that_may_not_be_read_is_reported_and_the_others_are_found() -> None:
    with open_folder() as root:
        write_extension(root / "good", "good")
        write_extension(root / "locked", "locked").chmod(0)
        with as_nobody():
            report = discover_extensions([root])
        (root / "locked").chmod(0o700)

    assert ids_of(report) == ["good"]
    assert reported(report) == [(str(root / "locked"), "cannot be read: Permission denied", Severity.WARNING)]


def test_a_manifest_that_may_not_be_read_is_reported() -> None:
    with open_folder() as root:
        write_extension(root / "a", "a")
        (root / "a" / "becket.toml").chmod(0)
        with as_nobody():
            report = discover_extensions([root])

    assert report.invalid == 1
    assert only_note(report).problem == "cannot be read: Permission denied"


def test_a_path_that_is_too_long_is_reported(tmp_path: Path) -> None:
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

    assert only_note(report).problem == "cannot be read: File name too long"


def test_names_that_are_not_text_are_reported_and_skipped(tmp_path: Path) -> None:
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


def test_a_search_ends_at_its_limit_and_reports_it(tmp_path: Path) -> None:
    for number in range(10):
        write_extension(tmp_path / str(number), f"e{number}")

    report = discover_extensions([tmp_path], limits=Limits(found_entries=20))

    assert len(report.candidates) == 5
    assert "more than 20 names" in only_note(report).problem
    assert only_note(report).severity is Severity.ERROR


# -- changes during the search


class Meddler(BecketToml):
    """A reader that removes a folder while others are walked through."""

    list_names = ("first",)

    def __init__(self, path: Path) -> None:
        self.path = path

    def read_list(self, data: bytes, path: str, nearby: ScopedFiles) -> ExtensionList:
        shutil.rmtree(self.path)
        return ExtensionList()

    def read(self, data: bytes, path: str) -> Manifest:
        shutil.rmtree(self.path, ignore_errors=True)
        return super().read(data, path)


def test_a_folder_that_vanishes_before_it_is_read_is_not_a_problem(tmp_path: Path) -> None:
    write_extension(tmp_path / "a", "a")
    write_extension(tmp_path / "b", "b")
    (tmp_path / "first").touch()

    report = discover_extensions([tmp_path], readers=[Meddler(tmp_path / "b")])

    assert ids_of(report) == ["a"]
    assert report.diagnostics == ()


def test_a_manifest_that_vanishes_before_it_is_read_is_not_a_problem(tmp_path: Path) -> None:
    write_extension(tmp_path / "a", "a")
    write_extension(tmp_path / "b", "b")

    report = discover_extensions([tmp_path], readers=[Meddler(tmp_path / "b")])

    assert ids_of(report) == ["a"]
    assert report.diagnostics == ()


# -- other formats


class PluginJson(ManifestReader):
    """A reader of another format: in a folder of its own, by the name of the folder, and not for every plugin."""

    file_names = (".plugin/plugin.toml", "plugin.toml")

    def read(self, data: bytes, path: str) -> Manifest | None:
        table = parse_toml(data, path)
        name = Path(path.removesuffix("/.plugin/plugin.toml").removesuffix("/plugin.toml")).name
        return Manifest(id=name, version="0.0.0", command=(table["run"],)) if "run" in table else None

    def hint_for(self, problem: Problem) -> str:
        return "ask its author"


def test_several_formats_are_read_in_the_order_of_their_readers(tmp_path: Path) -> None:
    write_extension(tmp_path / "a", "becket.a", files={"plugin.toml": 'run = "x"'})
    for name, file, text in [
        ("b", "plugin.toml", 'run = "x"'),
        ("c", ".plugin/plugin.toml", 'run = "y"'),
        ("d", "plugin.toml", ""),
        ("e", "plugin.toml", "["),
        ("f", ".plugin/readme", ""),
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
    left_out, refused = report.diagnostics
    assert (left_out.problem, left_out.severity) == ("holds no extension", Severity.NOTE)
    assert refused.hint == "ask its author"


@pytest.mark.parametrize("id", ["", "A", "../x", "a/b", "x" * 65])
def test_an_extension_whose_name_could_not_name_a_folder_is_refused_by_every_reader(tmp_path: Path, id: str) -> None:
    class Careless(ManifestReader):
        file_names = ("any",)

        def read(self, data: bytes, path: str) -> Manifest:
            return Manifest(id=id, version="0.0.0", command=("x",))

    (tmp_path / "any").touch()

    report = discover_extensions([tmp_path], readers=[Careless()])

    assert (report.candidates, report.invalid) == ((), 1)
    assert only_note(report).problem.startswith("its id is")


# -- files that list several extensions


class Toolbox(ManifestReader):
    """A reader of a system whose extensions stand in one file, or are programs called `tool-...`."""

    dialect = "toolbox"
    file_names = ("tool.toml",)
    list_names = ("toolbox.toml", "config/box.toml")
    prefixes = ("tool-",)

    def read(self, data: bytes, path: str) -> FoundExtension:
        table = parse_toml(data, path)
        if "command" not in table:
            raise ManifestError(path, [("/command", "is missing")])
        return FoundExtension(manifest=self.build(table["id"], table["command"]), extra=table)

    def read_list(self, data: bytes, path: str, nearby: ScopedFiles) -> ExtensionList:
        table = parse_toml(data, path)
        found: list[FoundExtension] = []
        problems: list[Problem] = []
        for number, tool in enumerate(table.get("tools", [])):
            try:
                manifest_path, folder = None, None
                if "manifest" in tool:
                    tool = parse_toml(nearby.read(tool["manifest"]), path) | tool
                    manifest_path = nearby.find(tool["manifest"])
                    folder = os.path.dirname(manifest_path)
                manifest = self.build(tool["id"], tool["command"])
                found.append(FoundExtension(manifest=manifest, extra=tool, path=manifest_path, folder=folder))
            except ManifestError as error:
                problems.append((f"/tools/{number}/manifest", error.problems[0][1]))
        return ExtensionList(
            extensions=tuple(found),
            problems=tuple(problems),
            search_folders=tuple(
                SearchFolder(folder=one, depth=2, ignore=("old",)) for one in table.get("look_in", ())
            ),
            disabled=tuple(table.get("off", ())),
            only=tuple(table["only"]) if "only" in table else None,
        )

    def read_program(self, path: str) -> Manifest | None:
        name = os.path.basename(path)
        if name == "tool-odd":
            raise ManifestError(path, [("", "is odd")])
        return None if name == "tool-none" else self.build(name, [f"./{name}"])

    def build(self, id: str, command: list[str]) -> Manifest:
        return Manifest(id=build_id(id), version="0.0.0", command=tuple(command), dialect=self.dialect)


def write(path: Path, text: str = "", *, mode: int = 0o644) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    return path


TOOLBOX = [BecketToml(), Toolbox()]


def test_a_list_describes_several_extensions_and_other_formats_lie_beside_and_below_it(tmp_path: Path) -> None:
    path = write(
        tmp_path / "toolbox.toml",
        """
        [[tools]]
        id = "One"
        command = ["python3", "./one.py", "missing.py", "../outside.py"]
        [[tools]]
        id = "two"
        command = ["./two"]
        """,
    )
    write(tmp_path / "one.py")
    write(tmp_path.parent / "outside.py")
    write(tmp_path / "tool-three", mode=0o755)
    write_extension(tmp_path / "notes", "notes")

    report = discover_extensions([tmp_path], readers=TOOLBOX)

    assert ids_of(report) == ["notes", "one", "tool-three", "two"]
    notes, one, three, two = report.candidates
    assert (notes.files, notes.is_listed, notes.extra, notes.manifest.dialect) == (None, False, None, "native")
    assert (one.folder, one.manifest_path, one.files) == (str(tmp_path), str(path), (str(tmp_path / "one.py"),))
    assert one.extra["id"] == "One"
    assert (two.files, two.is_listed, two.manifest.dialect) == ((), True, "toolbox")
    assert (three.folder, three.files) == (str(tmp_path), (str(tmp_path / "tool-three"),))
    assert three.manifest_path == str(tmp_path / "tool-three")
    assert report.diagnostics == ()


def test_a_list_in_a_folder_that_two_roots_share_gives_each_extension_once(tmp_path: Path) -> None:
    write(tmp_path / "a" / "toolbox.toml", '[[tools]]\nid = "a"\ncommand = ["x"]\n[[tools]]\nid = "b"\ncommand = ["x"]')

    report = discover_extensions([tmp_path, tmp_path / "a"], readers=TOOLBOX)

    assert ids_of(report) == ["a", "b"]
    assert report.diagnostics == ()


@pytest.mark.parametrize("list_path", ["toolbox.toml", "zz/toolbox.toml"])
def test_a_list_replaces_the_manifests_that_it_names(tmp_path: Path, list_path: str) -> None:
    manifest = write(tmp_path / "mine" / "tool.toml", 'id = "mine"')
    way = os.path.relpath(manifest, (tmp_path / list_path).parent)
    write(tmp_path / list_path, f'[[tools]]\nmanifest = "{way}"\ncommand = ["x"]')

    report = discover_extensions([tmp_path], readers=TOOLBOX)

    [candidate] = report.candidates
    assert (candidate.id, candidate.folder) == ("mine", str(tmp_path / "mine"))
    assert (candidate.manifest_path, candidate.files, candidate.is_listed) == (str(manifest), None, True)
    assert report.diagnostics == ()


def test_an_entry_that_cannot_be_used_is_a_problem_and_the_others_are_there(tmp_path: Path) -> None:
    write(tmp_path / "outside.toml", 'id = "outside"\ncommand = ["x"]')
    write(
        tmp_path / "root" / "toolbox.toml",
        """
        tools = [
            { manifest = "../outside.toml" },
            { manifest = "missing.toml" },
            { manifest = "a\\u0000b" },
            { manifest = "." },
            { id = "good", command = ["x"] },
        ]
        """,
    )

    report = discover_extensions([tmp_path / "root"], readers=TOOLBOX)

    assert ids_of(report) == ["good"]
    assert report.invalid == 1
    zero, one, two, three = [note.problem for note in report.diagnostics]
    assert zero == "/tools/0/manifest: leads out of the root of its list"
    assert one == "/tools/1/manifest: cannot be read: No such file or directory"
    assert two.startswith("/tools/2/manifest: cannot be read: ")  # the rest differs between versions of Python
    assert three == "/tools/3/manifest: is no regular file"


def test_a_list_that_cannot_be_read_is_reported_and_folders_below_it_are_searched(tmp_path: Path) -> None:
    write(tmp_path / "toolbox.toml", "[")
    write_extension(tmp_path / "notes", "notes")

    report = discover_extensions([tmp_path], readers=TOOLBOX)

    assert ids_of(report) == ["notes"]
    assert report.invalid == 1
    assert only_note(report).path == str(tmp_path / "toolbox.toml")


def test_a_list_may_lead_to_further_folders_with_a_depth_of_their_own(tmp_path: Path) -> None:
    write(tmp_path / "config" / "box.toml", 'look_in = ["../shelf", "../none", "../../out"]')
    write_extension(tmp_path / "shelf" / "x" / "deep", "deep")
    write_extension(tmp_path / "shelf" / "old" / "past", "past")
    write_extension(tmp_path / "other" / "x" / "deep", "too-deep")

    report = discover_extensions([tmp_path], readers=TOOLBOX)

    assert ids_of(report) == ["deep"]
    assert [(note.path, note.problem) for note in report.diagnostics] == [
        (f"{tmp_path}/config/../../out", "leads out of the root of its list"),
        (f"{tmp_path}/none", "no such folder"),
    ]


def test_a_list_disables_extensions_of_its_own_dialect_alone(tmp_path: Path) -> None:
    tools = "".join(f'[[tools]]\nid = "{id}"\ncommand = ["x"]\n' for id in "abc")
    write(tmp_path / "toolbox.toml", 'off = ["a", "n"]\nonly = ["a", "b"]\n' + tools)
    write_extension(tmp_path / "n", "n")

    report = discover_extensions([tmp_path], readers=TOOLBOX)

    assert ids_of(report) == ["b", "n"]
    assert report.disabled == 2
    assert {(note.extension, note.severity) for note in report.diagnostics} == {
        ("a", Severity.NOTE),
        ("c", Severity.NOTE),
    }


# -- programs that are found by their names


def test_only_what_can_be_run_is_a_program(tmp_path: Path) -> None:
    write(tmp_path / "tool-good", mode=0o755)
    write(tmp_path / "tool-notes.md")
    (tmp_path / "tool-folder").mkdir()
    (tmp_path / "tool-circle").symlink_to("tool-circle")
    write(tmp_path / "tool-none", mode=0o755)
    with open(os.path.join(os.fsencode(tmp_path), b"tool-\xff"), "wb") as file:
        os.fchmod(file.fileno(), 0o755)

    report = discover_extensions([tmp_path], readers=TOOLBOX)

    assert ids_of(report) == ["tool-good"]
    note = only_note(report)
    assert (note.path, note.severity) == (str(tmp_path / "tool-notes.md"), Severity.NOTE)
    assert "chmod +x" in note.hint


def test_a_program_that_its_reader_refuses_is_reported(tmp_path: Path) -> None:
    write(tmp_path / "tool-odd", mode=0o755)

    assert only_note(discover_extensions([tmp_path], readers=TOOLBOX)).problem == "is odd"


def test_a_program_that_is_a_link_counts_only_where_links_are_followed_and_stay_in_the_root(tmp_path: Path) -> None:
    write(tmp_path / "outside", mode=0o755)
    write(tmp_path / "root" / "bin" / "real", mode=0o755)
    (tmp_path / "root" / "tool-in").symlink_to("bin/real")
    (tmp_path / "root" / "tool-out").symlink_to("../outside")

    report = discover_extensions([tmp_path / "root"], readers=TOOLBOX)
    assert [note.problem for note in report.diagnostics] == ["is a link: not followed"] * 2

    report = discover_extensions([tmp_path / "root"], readers=TOOLBOX, settings=DiscoverySettings(follow_links=True))
    assert ids_of(report) == ["tool-in"]
    assert only_note(report).problem == "is a link that leads out of its root"


def test_programs_and_lists_in_the_folder_of_an_extension_are_ignored(tmp_path: Path) -> None:
    write_extension(tmp_path / "notes", "notes", files={"toolbox.toml": "["})
    write(tmp_path / "notes" / "tool-x", mode=0o755)

    report = discover_extensions([tmp_path], readers=TOOLBOX)

    assert ids_of(report) == ["notes"]
    assert report.diagnostics == ()


# -- servers beside the manifest


@pytest.mark.parametrize("spelling", ["mcpServers", "mcp_servers"])
def test_servers_of_a_file_beside_the_manifest_are_adopted(tmp_path: Path, spelling: str) -> None:
    text = f'{{"{spelling}": {{"mail": {{"command": "./mail"}}}}, "more": 1}}'
    write_extension(tmp_path / "a", "a", files={".mcp.json": text})

    report = discover_extensions([tmp_path])

    assert report.candidates[0].manifest.mcp_servers == {"mail": {"command": "./mail"}}
    assert report.diagnostics == ()


def test_servers_of_such_a_file_may_have_any_name(tmp_path: Path) -> None:
    write_extension(tmp_path / "a", "a", files={".mcp.json": '{"mcpServers": {"Git Hub": {}}}'})

    assert discover_extensions([tmp_path]).candidates[0].manifest.mcp_servers == {"Git Hub": {}}


def test_servers_of_the_manifest_override_those_of_the_file(tmp_path: Path) -> None:
    write_extension(tmp_path / "a", "a", "[mcp_servers.own]\n", files={".mcp.json": "nonsense"})

    report = discover_extensions([tmp_path])

    assert report.candidates[0].manifest.mcp_servers == {"own": {}}
    assert report.diagnostics == ()


@pytest.mark.parametrize(
    "text",
    [
        "nonsense",
        "[]",
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


def test_a_file_of_servers_that_is_not_text_is_a_warning(tmp_path: Path) -> None:
    write_extension(tmp_path / "a", "a")
    (tmp_path / "a" / ".mcp.json").write_bytes(b'{"mcpServers": {"\xff": {}}}')

    assert only_note(discover_extensions([tmp_path])).severity is Severity.WARNING
