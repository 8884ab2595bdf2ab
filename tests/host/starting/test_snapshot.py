"""The digest of a folder changes with everything that could change the running code."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st
from tests.host.folders import as_nobody, open_folder, write_extension

from becket.errors import BadFile
from becket.host.starting import snapshot
from becket.host.starting.folder_digest import digest_folder
from becket.host.starting.snapshot import create_snapshot, find_snapshot, remove_snapshots
from becket.limits import Limits


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_extension(tmp_path / "notes", "notes", files={"lib/a.py": "a = 1\n", "bin/run": "#!/bin/sh\n"})
    (tmp_path / "notes" / "bin" / "run").chmod(0o755)
    (tmp_path / "notes" / "link").symlink_to("lib/a.py")
    return tmp_path / "notes"


# -- what counts


def test_equal_folders_have_equal_digests(folder: Path, tmp_path: Path) -> None:
    before = digest_folder(folder)

    assert len(before.digest) == 64
    assert before.files == 7  # two folders among them
    assert digest_folder(folder) == before
    folder.rename(tmp_path / "elsewhere")
    os.utime(tmp_path / "elsewhere" / "main.py", (1, 1))
    assert digest_folder(tmp_path / "elsewhere") == before


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "becket.toml").write_text("", encoding="utf-8"),
        lambda folder: (folder / "main.py").write_text("print( )\n", encoding="utf-8"),
        lambda folder: (folder / "lib" / "new.py").touch(),
        lambda folder: (folder / ".hidden").touch(),
        lambda folder: (folder / "lib" / "a.py").unlink(),
        lambda folder: (folder / "main.py").rename(folder / "main2.py"),
        lambda folder: (folder / "main.py").chmod(0o755),
        lambda folder: (folder / "bin" / "run").chmod(0o644),
        lambda folder: ((folder / "link").unlink(), (folder / "link").symlink_to("main.py")),
        lambda folder: ((folder / "link").unlink(), (folder / "link").write_text("a = 1\n", encoding="utf-8")),
        lambda folder: os.mkfifo(folder / "pipe"),
        lambda folder: (folder / "lib").rename(folder / "lib2"),
    ],
)
def test_any_change_of_code_changes_the_digest(folder: Path, change: Callable[[Path], object]) -> None:
    before = digest_folder(folder).digest

    change(folder)

    assert digest_folder(folder).digest != before


def test_moving_bytes_from_one_file_to_the_next_changes_the_digest(tmp_path: Path) -> None:
    found: set[str] = set()
    for first, second in [("ab", "c"), ("a", "bc"), ("abc", ""), ("", "abc")]:
        (tmp_path / "1").write_text(first, encoding="utf-8")
        (tmp_path / "2").write_text(second, encoding="utf-8")
        found.add(digest_folder(tmp_path).digest)

    assert len(found) == 4


def test_the_boundary_between_name_and_target_changes_the_digest(tmp_path: Path) -> None:
    """Links: of a file the name is followed by a digest, whose size is known."""
    found: set[str] = set()
    for name, target in [("a", "bc"), ("ab", "c")]:
        folder = tmp_path / name
        folder.mkdir()
        (folder / name).symlink_to(target)
        found.add(digest_folder(folder).digest)

    assert len(found) == 2


def test_the_boundary_between_two_entries_changes_the_digest(tmp_path: Path) -> None:
    two, one = tmp_path / "two", tmp_path / "one"
    two.mkdir()
    one.mkdir()
    (two / "a").symlink_to("b")
    (two / "c").symlink_to("d")
    (one / "a").symlink_to("blinkcd")  # the same letters in a row

    assert digest_folder(two).digest != digest_folder(one).digest


FILES = st.dictionaries(
    st.lists(st.sampled_from(["a", "b", "c.py", "ab"]), min_size=1, max_size=3).map("/".join),
    st.binary(max_size=3),
    max_size=4,
).filter(lambda files: not any(other.startswith(f"{name}/") for name in files for other in files))


@given(FILES, FILES)
@settings(max_examples=50)
def test_two_folders_have_one_digest_only_if_they_hold_the_same(
    tmp_path_factory: pytest.TempPathFactory, first: dict[str, bytes], second: dict[str, bytes]
) -> None:
    found: list[str] = []
    for files in (first, second):
        folder = tmp_path_factory.mktemp("folder")
        for name, content in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        found.append(digest_folder(folder).digest)

    assert (found[0] == found[1]) == (first == second)


def test_files_behind_a_link_do_not_count(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("1", encoding="utf-8")
    (folder / "out").symlink_to("../outside")
    before = digest_folder(folder)

    (tmp_path / "outside").write_text("2", encoding="utf-8")

    assert digest_folder(folder) == before


def test_data_in_the_folder_can_be_left_out(folder: Path) -> None:
    before = digest_folder(folder)
    (folder / "data").mkdir()
    (folder / "data" / "notes.db").touch()

    found = digest_folder(folder, without=[str(folder / "data")])

    assert found.digest == before.digest
    assert digest_folder(folder).digest != before.digest


def test_names_that_are_not_text_count_too(tmp_path: Path) -> None:
    before = digest_folder(tmp_path)
    with open(os.path.join(os.fsencode(tmp_path), b"\xff"), "wb"):
        pass

    assert digest_folder(tmp_path) != before


# -- what is refused


def refusal_of(folder: Path, limits: Limits = snapshot.DEFAULT_LIMITS) -> tuple[str, str]:
    with pytest.raises(BadFile) as caught:
        digest_folder(folder, limits=limits)
    [(_, problem)] = caught.value.problems
    return caught.value.path, problem


def test_too_many_files_are_refused(folder: Path) -> None:
    assert refusal_of(folder, Limits(digest_files=6)) == (str(folder / "lib"), "there are more than 6 files")
    assert digest_folder(folder, limits=Limits(digest_files=7))


def test_too_many_bytes_are_refused(folder: Path) -> None:
    (folder / "zzz").write_bytes(b"x" * 3_000_000)

    assert refusal_of(folder, Limits(digest_bytes=2_000_000)) == (
        str(folder / "zzz"),
        "there are more than 2000000 bytes",
    )


def test_folders_within_folders_are_refused_at_some_depth(tmp_path: Path) -> None:
    deep = tmp_path
    for _ in range(70):
        deep /= "d"
    deep.mkdir(parents=True)

    assert refusal_of(tmp_path)[1] == "lies deeper than 64 folders"


def test_a_file_that_cannot_be_read_is_named() -> None:
    with open_folder() as root:
        write_extension(root / "notes", "notes", files={"lib/key.pem": ""})
        (root / "notes" / "lib" / "key.pem").chmod(0)
        with as_nobody():
            assert refusal_of(root / "notes") == (
                str(root / "notes" / "lib" / "key.pem"),
                "cannot be read: Permission denied",
            )


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert refusal_of(tmp_path / "none")[1] == "cannot be read: No such file or directory"


def test_a_file_that_becomes_a_pipe_before_it_is_opened_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_stat = os.stat

    def stat_and_swap(path: str, *, dir_fd: int, follow_symlinks: bool) -> os.stat_result:
        found = real_stat(path, dir_fd=dir_fd, follow_symlinks=follow_symlinks)
        if path == "main.py":
            (folder / "main.py").unlink()
            os.mkfifo(folder / "main.py")
        return found

    monkeypatch.setattr(snapshot.os, "stat", stat_and_swap)

    assert refusal_of(folder) == (str(folder / "main.py"), "was changed while it was read")


def test_a_file_that_becomes_a_link_before_it_is_opened_is_not_followed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_stat = os.stat

    def stat_and_swap(path: str, *, dir_fd: int, follow_symlinks: bool) -> os.stat_result:
        found = real_stat(path, dir_fd=dir_fd, follow_symlinks=follow_symlinks)
        if path == "main.py":
            (folder / "main.py").unlink()
            (folder / "main.py").symlink_to("/etc/passwd")
        return found

    monkeypatch.setattr(snapshot.os, "stat", stat_and_swap)

    assert refusal_of(folder)[0] == str(folder / "main.py")


def test_compiled_python_files_do_not_count(folder: Path) -> None:
    before = digest_folder(folder)

    for cache in (folder / "__pycache__", folder / "lib" / "__pycache__"):
        cache.mkdir()
        (cache / "a.cpython-311.pyc").write_bytes(b"\x00")

    assert digest_folder(folder) == before
    assert digest_folder(folder, limits=Limits(digest_files=before.files)) == before


def test_a_file_of_that_name_counts_as_any_other(folder: Path, tmp_path: Path) -> None:
    before = digest_folder(folder).digest

    (folder / "__pycache__").write_text("a file", encoding="utf-8")

    assert digest_folder(folder).digest != before
    assert digest_folder(create_snapshot(folder, tmp_path / "copies").folder) == digest_folder(folder)


# -- copies


def test_a_copy_holds_the_same_and_has_the_same_digest(folder: Path, tmp_path: Path) -> None:
    copy = create_snapshot(folder, tmp_path / "copies")

    assert copy.folder == str(tmp_path / "copies" / copy.digest)
    assert copy.digest == digest_folder(folder).digest == digest_folder(copy.folder).digest
    assert (Path(copy.folder) / "lib" / "a.py").read_text(encoding="utf-8") == "a = 1\n"
    assert os.readlink(Path(copy.folder) / "link") == "lib/a.py"
    assert (Path(copy.folder) / "bin" / "run").stat().st_mode & 0o777 == 0o500
    assert [path.name for path in (tmp_path / "copies").iterdir()] == [copy.digest]


@pytest.mark.process
def test_a_program_that_is_replaced_after_the_check_does_not_run_from_a_copy(folder: Path, tmp_path: Path) -> None:
    (folder / "main.py").write_text("print('agreed')", encoding="utf-8")
    copy = create_snapshot(folder, tmp_path / "copies")

    (folder / "main.py").write_text("print('evil')", encoding="utf-8")
    run = subprocess.run([sys.executable, "main.py"], cwd=copy.folder, stdout=subprocess.PIPE, check=True)

    assert run.stdout == b"agreed\n"
    assert digest_folder(folder).digest != copy.digest


def test_a_copy_that_is_there_already_is_used_again(folder: Path, tmp_path: Path) -> None:
    first = create_snapshot(folder, tmp_path / "copies")
    written = os.stat(Path(first.folder) / "main.py").st_ino

    assert create_snapshot(folder, tmp_path / "copies") == first
    assert os.stat(Path(first.folder) / "main.py").st_ino == written


def test_a_copy_that_was_changed_is_replaced(folder: Path, tmp_path: Path) -> None:
    first = create_snapshot(folder, tmp_path / "copies")
    (Path(first.folder) / "evil.py").touch()

    again = create_snapshot(folder, tmp_path / "copies")

    assert again == first
    assert digest_folder(again.folder).digest == again.digest
    assert [path.name for path in (tmp_path / "copies").iterdir()] == [first.digest]


def test_a_change_gives_a_second_copy(folder: Path, tmp_path: Path) -> None:
    first = create_snapshot(folder, tmp_path / "copies")
    (folder / "main.py").write_text("2", encoding="utf-8")

    assert create_snapshot(folder, tmp_path / "copies").folder != first.folder


@pytest.mark.parametrize("target", ["..", "../x", "lib/../../x"])
def test_a_link_that_leads_out_by_a_relative_way_is_not_copied(folder: Path, tmp_path: Path, target: str) -> None:
    (folder / "out").symlink_to(target)

    with pytest.raises(BadFile) as caught:
        create_snapshot(folder, tmp_path / "copies")
    assert caught.value.path == str(folder / "out")
    assert list((tmp_path / "copies").iterdir()) == []


def test_a_link_to_a_program_of_the_system_is_copied_unchanged(folder: Path, tmp_path: Path) -> None:
    (folder / "python").symlink_to("/usr/bin/python3")

    copy = create_snapshot(folder, tmp_path / "copies")

    assert os.readlink(Path(copy.folder) / "python") == "/usr/bin/python3"


def test_a_link_into_the_folder_by_an_absolute_path_is_not_copied(folder: Path, tmp_path: Path) -> None:
    (folder / "back").symlink_to(folder / "main.py")

    with pytest.raises(BadFile) as caught:
        create_snapshot(folder, tmp_path / "copies")
    assert caught.value.path == str(folder / "back")


def test_a_digest_has_the_reason_why_a_folder_cannot_be_copied(folder: Path) -> None:
    assert digest_folder(folder).uncopyable == ""
    (folder / "out").symlink_to("..")

    assert str(folder / "out") in digest_folder(folder).uncopyable


def test_a_pipe_cannot_be_copied(folder: Path, tmp_path: Path) -> None:
    os.mkfifo(folder / "pipe")

    with pytest.raises(BadFile) as caught:
        create_snapshot(folder, tmp_path / "copies")
    assert caught.value.path == str(folder / "pipe")


def test_a_directory_that_cannot_be_written_to_is_named(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "copies").touch()

    with pytest.raises(BadFile) as caught:
        create_snapshot(folder, tmp_path / "copies")
    assert caught.value.path == str(tmp_path / "copies")
    assert caught.value.problems[0][1].startswith("cannot be written: ")


def test_compiled_python_files_are_not_copied_and_a_copy_has_room_for_its_own(folder: Path, tmp_path: Path) -> None:
    (folder / "lib" / "__pycache__").mkdir()
    (folder / "lib" / "__pycache__" / "a.cpython-311.pyc").write_bytes(b"evil")

    copy = Path(create_snapshot(folder, tmp_path / "copies").folder)

    assert list((copy / "lib" / "__pycache__").iterdir()) == []
    (copy / "lib" / "__pycache__" / "a.cpython-311.pyc").write_bytes(b"compiled")
    assert not (copy / "bin" / "__pycache__").exists()
    assert find_snapshot(tmp_path / "copies", copy.name) is not None


def test_a_copy_is_read_only_and_the_user_can_replace_and_remove_it() -> None:
    with open_folder() as root:
        write_extension(root / "notes", "notes", files={"lib/a.py": "a = 1\n"})
        root.chmod(0o777)
        with as_nobody():
            copy = create_snapshot(root / "notes", root / "copies")
            assert create_snapshot(root / "notes", root / "copies") == copy
            for place in (Path(copy.folder), Path(copy.folder) / "lib"):
                with pytest.raises(PermissionError):
                    (place / "evil.py").touch()
            os.chmod(copy.folder, 0o700)
            (Path(copy.folder) / "evil.py").touch()
            assert find_snapshot(root / "copies", copy.digest) is None
            assert create_snapshot(root / "notes", root / "copies") == copy
            assert find_snapshot(root / "copies", copy.digest) == copy
            remove_snapshots(root / "copies", keep=())
            assert list((root / "copies").iterdir()) == []


def test_a_copy_that_is_not_there_is_not_found(folder: Path, tmp_path: Path) -> None:
    assert find_snapshot(tmp_path / "copies", digest_folder(folder).digest) is None


def test_unused_copies_and_the_remains_of_a_dead_host_are_removed(folder: Path, tmp_path: Path) -> None:
    copies = tmp_path / "copies"
    first = create_snapshot(folder, copies)
    (folder / "main.py").write_text("2", encoding="utf-8")
    second = create_snapshot(folder, copies)
    (copies / ".new-killed" / "copy").mkdir(parents=True)
    (copies / "stray").symlink_to(folder)

    remove_snapshots(copies, keep=[second.digest])

    assert [path.name for path in copies.iterdir()] == [second.digest]
    assert first.digest != second.digest
    assert (folder / "main.py").exists()


def test_removing_copies_where_there_are_none_does_nothing(tmp_path: Path) -> None:
    remove_snapshots(tmp_path / "copies", keep=())

    assert not (tmp_path / "copies").exists()


def test_copies_that_cannot_be_removed_are_reported(tmp_path: Path) -> None:
    (tmp_path / "copies").touch()

    with pytest.raises(BadFile) as caught:
        remove_snapshots(tmp_path / "copies", keep=())
    assert caught.value.path == str(tmp_path / "copies")
