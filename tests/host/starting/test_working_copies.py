"""A working copy has the approved files only, may be written, and is discarded when unused."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.host.folders import as_nobody, open_folder, write_extension

from becket.errors import BadFile
from becket.host.starting import snapshot
from becket.host.starting.folder_digest import digest_folder
from becket.host.starting.snapshot import FolderSnapshot, create_snapshot
from becket.host.starting.working_copies import WorkingCopy, open_working_copy, remove_discarded, remove_working_copies

HOLDER = """
import sys
from becket.host.starting.snapshot import FolderSnapshot
from becket.host.starting.working_copies import open_working_copy

copy = open_working_copy(sys.argv[1], "notes", FolderSnapshot(sys.argv[2], sys.argv[3]))
print(copy.folder, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def working(tmp_path: Path) -> Path:
    return tmp_path / "working"


@pytest.fixture
def approved(tmp_path: Path) -> FolderSnapshot:
    folder = write_extension(tmp_path / "notes", "notes", files={"lib/a.py": "a = 1\n", "bin/run": "#!/bin/sh\n"})
    (folder / "bin" / "run").chmod(0o755)
    (folder / "link").symlink_to("lib/a.py")
    return create_snapshot(folder, tmp_path / "copies")


@pytest.fixture
def opened(working: Path, approved: FolderSnapshot) -> Iterator[list[WorkingCopy]]:
    copies: list[WorkingCopy] = []
    yield copies
    for copy in copies:
        copy.release()


def open_one(working: Path, approved: FolderSnapshot, opened: list[WorkingCopy]) -> Path:
    copy = open_working_copy(working, "notes", approved)
    assert copy is not None
    opened.append(copy)
    return Path(copy.folder)


# -- what is in it


def test_a_working_copy_holds_the_approved_files_under_the_name_of_their_folder(
    working: Path, approved: FolderSnapshot
) -> None:
    copy = open_working_copy(working, "notes", approved, name="My Notes")
    assert copy is not None
    folder = Path(copy.folder)

    assert folder == working / "notes" / "1" / "My Notes"
    assert digest_folder(folder).digest == approved.digest
    assert os.readlink(folder / "link") == "lib/a.py"
    assert (folder / "bin" / "run").stat().st_mode & 0o777 == 0o700
    assert not (folder / "__pycache__").exists()
    copy.release()


def test_a_user_without_privileges_may_write_everywhere_in_a_working_copy() -> None:
    with open_folder() as root:
        write_extension(root / "notes", "notes", files={"lib/a.py": "a = 1\n"})
        root.chmod(0o777)
        with as_nobody():
            approved = create_snapshot(root / "notes", root / "copies")
            copy = open_working_copy(root / "working", "notes", approved)
            assert copy is not None
            folder = Path(copy.folder)
            (folder / "new").mkdir()
            (folder / "main.py").write_text("changed", encoding="utf-8")
            (folder / "lib" / "state").write_text("kept?", encoding="utf-8")
            (folder / "lib" / "a.py").unlink()
            copy.release()
            assert digest_folder(approved.folder).digest == approved.digest


def test_files_that_are_not_the_approved_ones_are_not_run(working: Path, approved: FolderSnapshot) -> None:
    changed = Path(approved.folder) / "main.py"
    changed.chmod(0o600)
    changed.write_text("print('evil')\n", encoding="utf-8")

    assert open_working_copy(working, "notes", approved) is None


def test_files_are_copied_where_the_file_system_cannot_share_their_blocks(
    working: Path, approved: FolderSnapshot, opened: list[WorkingCopy], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(snapshot.os, "copy_file_range", refuse)

    assert digest_folder(open_one(working, approved, opened)).digest == approved.digest


def test_a_directory_that_cannot_be_written_to_is_named(working: Path, approved: FolderSnapshot) -> None:
    working.touch()

    with pytest.raises(BadFile) as caught:
        open_working_copy(working, "notes", approved)
    assert str(working) in caught.value.path


# -- its lifetime


def test_written_files_are_discarded_at_the_next_start(
    working: Path, approved: FolderSnapshot, opened: list[WorkingCopy]
) -> None:
    first = open_one(working, approved, opened)
    (first / "state").touch()
    (first / "lib" / "a.py").write_text("a = 2\n", encoding="utf-8")
    opened[0].release()
    opened[0].release()
    assert (first / "state").exists()  # until then it can be inspected

    assert open_one(working, approved, opened) == first
    assert digest_folder(first).digest == approved.digest


def test_a_slot_in_use_stays_and_the_next_start_gets_another(
    working: Path, approved: FolderSnapshot, opened: list[WorkingCopy]
) -> None:
    first = open_one(working, approved, opened)
    (first / "state").touch()

    second = open_one(working, approved, opened)

    assert second != first
    assert (first / "state").exists()
    opened[0].release()
    third = open_one(working, approved, opened)
    assert third == first
    assert not (first / "state").exists()
    assert second.exists()


def test_free_slots_beside_the_used_one_are_removed(
    working: Path, approved: FolderSnapshot, opened: list[WorkingCopy]
) -> None:
    for _ in range(3):
        open_one(working, approved, opened)
    for copy in opened:
        copy.release()

    open_one(working, approved, opened)

    assert os.listdir(working / "notes") == ["1"]


def test_folders_that_a_program_has_made_inaccessible_are_discarded_too() -> None:
    with open_folder() as root:
        write_extension(root / "notes", "notes")
        (root / "outside").mkdir(mode=0o755)
        root.chmod(0o777)
        with as_nobody():
            approved = create_snapshot(root / "notes", root / "copies")
            for _ in range(2):
                copy = open_working_copy(root / "working", "notes", approved)
                assert copy is not None
                folder = Path(copy.folder)
                assert sorted(os.listdir(folder)) == ["becket.toml", "main.py"]
                (folder / "closed" / "below").mkdir(parents=True)
                (folder / "way out").symlink_to(root / "outside")
                (folder / "closed" / "below").chmod(0)
                (folder / "closed").chmod(0)
                folder.chmod(0o500)
                copy.release()
            again = [open_working_copy(root / "working", "notes", approved) for _ in range(2)]
            for one in again:
                assert one is not None
                Path(one.folder).chmod(0o500)
                one.release()
            last = open_working_copy(root / "working", "notes", approved)
            assert last is not None
            remove_discarded(root / "working", "notes")
            left = sorted(path.name for path in (root / "working" / "notes").rglob("*"))
            assert left == ["1", "becket.toml", "main.py", "notes"]
            last.release()
        assert (root / "outside").stat().st_mode & 0o777 == 0o755


def test_discarded_files_are_removed_and_failures_are_logged_and_retried(
    working: Path,
    approved: FolderSnapshot,
    opened: list[WorkingCopy],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    slot = open_one(working, approved, opened).parent
    opened[0].release()
    open_one(working, approved, opened)

    def refuse(path: str) -> None:
        raise OSError(39, "Directory not empty")  # as when a process that was left behind still writes there

    with monkeypatch.context() as patched:
        patched.setattr(snapshot.shutil, "rmtree", refuse)
        remove_discarded(working, "notes")
    assert [str(slot) in record.getMessage() for record in caplog.records] == [True]
    assert len(os.listdir(slot)) == 2

    remove_discarded(working, "notes")
    assert os.listdir(slot) == ["notes"]


@pytest.mark.process
def test_two_hosts_have_separate_copies_and_a_killed_one_leaves_nothing(
    working: Path, approved: FolderSnapshot, opened: list[WorkingCopy]
) -> None:
    command = [sys.executable, "-c", HOLDER, str(working), approved.folder, approved.digest]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8") as other:
        assert other.stdout is not None
        theirs = Path(other.stdout.readline().strip())
        (theirs / "state").touch()
        ours = open_one(working, approved, opened)
        assert ours != theirs
        remove_working_copies(working, keep=())
        assert (theirs / "state").exists()
        assert ours.exists()
        other.send_signal(signal.SIGKILL)

    assert open_one(working, approved, opened) == theirs
    assert not (theirs / "state").exists()


def test_working_copies_without_an_approval_are_removed(
    working: Path, approved: FolderSnapshot, opened: list[WorkingCopy]
) -> None:
    open_one(working, approved, opened)
    opened[0].release()

    remove_working_copies(working, keep={"notes"})
    assert os.listdir(working) == ["notes"]
    remove_working_copies(working, keep={"other"})
    assert os.listdir(working) == []


def test_removing_working_copies_where_there_are_none_does_nothing(working: Path) -> None:
    remove_working_copies(working, keep=())

    assert not working.exists()
