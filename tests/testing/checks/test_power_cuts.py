"""A recorded program, cut off at any moment, leaves what it synced, and any part of the rest."""

from __future__ import annotations

import sys
from itertools import count
from pathlib import Path
from random import Random

import pytest

from becket.errors import NotSupported
from becket.testing.checks.power_cuts import (
    DiskRecording,
    DiskStep,
    FileCreated,
    FileRemoved,
    FileRenamed,
    FileSynced,
    FileTruncated,
    FileWritten,
    OutputWritten,
    SimulatedDisk,
    StraceParser,
    record_disk,
)

A, B = "/d/a", "/d/b"


def outcomes(*steps: DiskStep) -> set[tuple[tuple[str, bytes], ...]]:
    """Returns all that a cut after these steps was seen to leave."""
    found = set()
    for seed in range(300):
        disk = SimulatedDisk()
        for step in steps:
            assert not isinstance(step, OutputWritten)
            disk.apply(step)
        found.add(tuple(sorted((path, bytes(content)) for path, content in disk.after_cut(Random(seed)).items())))
    return found


# -- the disk


def test_synced_data_is_there() -> None:
    assert outcomes(FileCreated(A), FileWritten(A, 0, b"one"), FileWritten(A, 3, b"two"), FileSynced(A)) == {
        ((A, b"onetwo"),)
    }


def test_unsynced_data_may_be_there_or_not_in_any_order() -> None:
    found = outcomes(FileCreated(A), FileSynced(A), FileWritten(A, 0, b"one"), FileWritten(A, 3, b"two"))

    assert found == {((A, b""),), ((A, b"one"),), ((A, b"\0\0\0two"),), ((A, b"onetwo"),)}


def test_a_file_that_was_just_made_may_not_be_there() -> None:
    assert outcomes(FileCreated(A)) == {(), ((A, b""),)}
    assert outcomes(FileCreated(A), FileSynced("/d")) == {((A, b""),)}


def test_a_file_that_was_just_removed_may_still_be_there() -> None:
    begun = (FileCreated(A), FileWritten(A, 0, b"one"), FileSynced(A))

    assert outcomes(*begun, FileRemoved(A)) == {(), ((A, b"one"),)}
    assert outcomes(*begun, FileRemoved(A), FileSynced("/d")) == {()}
    assert outcomes(*begun, FileRemoved(A), FileCreated(A), FileWritten(A, 0, b"x"), FileSynced(A)) == {((A, b"x"),)}


def test_a_file_has_its_old_or_its_new_name() -> None:
    begun = (FileCreated(A), FileWritten(A, 0, b"one"), FileSynced(A))

    assert outcomes(*begun, FileRenamed(A, B)) == {((A, b"one"),), ((B, b"one"),)}
    assert outcomes(*begun, FileRenamed(A, B), FileSynced(B)) == {((B, b"one"),)}


def test_a_file_may_have_its_old_or_its_new_length() -> None:
    begun = (FileCreated(A), FileWritten(A, 0, b"one"), FileSynced(A))

    assert outcomes(*begun, FileTruncated(A, 1)) == {((A, b"one"),), ((A, b"o"),)}
    assert outcomes(*begun, FileTruncated(A, 4), FileSynced(A)) == {((A, b"one\0"),)}


def test_a_write_may_be_torn_between_sectors() -> None:
    found = outcomes(FileCreated(A), FileSynced(A), FileWritten(A, 0, b"x" * 1_024))

    assert {len(content.strip(b"\0")) for ((_, content),) in found} == {0, 512, 1_024}


# -- recording


LINES = r"""
11 openat(AT_FDCWD<\x2f>, "\x2f\x64\x2f\x61", O_RDWR|O_CREAT|O_CLOEXEC, 0600) = 3<\x2f\x64\x2f\x61>
11 openat(AT_FDCWD<\x2f>, "\x2f\x65\x2f\x61", O_RDWR|O_CREAT|O_CLOEXEC, 0600) = 4<\x2f\x65\x2f\x61>
11 write(3<\x2f\x64\x2f\x61>, "\x31\x32", 2) = 2
11 write(3<\x2f\x64\x2f\x61>, "\x33", 1) = 1
11 pwrite64(3<\x2f\x64\x2f\x61>, "\x30"..., 1, 7 <unfinished ...>
12 write(1<\x70\x69\x70\x65>, "\x68\x69\x0a", 3) = 3
11 <... pwrite64 resumed>) = 1
11 lseek(3<\x2f\x64\x2f\x61>, 1, SEEK_SET) = 1
11 write(3<\x2f\x64\x2f\x61>, "\x39\x39", 2) = 1
11 write(4<\x2f\x65\x2f\x61>, "\x39", 1) = 1
11 fdatasync(3<\x2f\x64\x2f\x61>)          = -1 EIO (Input/output error)
11 fdatasync(3<\x2f\x64\x2f\x61>)          = 0
11 ftruncate(3<\x2f\x64\x2f\x61>, 5)  = 0
11 openat(AT_FDCWD<\x2f>, "\x2f\x64\x2f\x61", O_WRONLY|O_CREAT|O_APPEND) = 5<\x2f\x64\x2f\x61>
11 write(5<\x2f\x64\x2f\x61>, "\x35", 1) = 1
11 openat(AT_FDCWD<\x2f>, "\x2f\x64\x2f\x61", O_WRONLY|O_CREAT|O_TRUNC) = 6<\x2f\x64\x2f\x61>
11 rename("\x2f\x64\x2f\x61", "\x2f\x64\x2f\x62") = 0
11 unlink("\x2f\x64\x2f\x62") = 0
11 unlink("\x2f\x65\x2f\x62") = 0
11 fsync(7<\x2f\x64>) = 0
11 fsync(8<\x2f\x65>) = 0
11 +++ exited with 0 +++
"""


def test_a_trace_is_parsed() -> None:
    assert [*StraceParser(Path("/d")).parse(LINES.strip().splitlines())] == [
        FileCreated(A),
        FileWritten(A, 0, b"12"),
        FileWritten(A, 2, b"3"),
        OutputWritten("hi\n"),
        FileWritten(A, 7, b"0"),
        FileWritten(A, 1, b"9"),
        FileSynced(A),
        FileTruncated(A, 5),
        FileWritten(A, 5, b"5"),
        FileTruncated(A, 0),
        FileRenamed(A, B),
        FileRemoved(B),
        FileSynced("/d"),
    ]


PROGRAM = """
import os, sys
folder = sys.argv[1]
with open(f"{folder}/new", "wb") as file:
    file.write(b"one")
    file.flush()
    os.fsync(file.fileno())
os.rename(f"{folder}/new", f"{folder}/file")
descriptor = os.open(folder, os.O_RDONLY)
os.fsync(descriptor)
print("kept", flush=True)
with open(f"{folder}/file", "ab") as file:
    file.write(b"two")
"""


@pytest.mark.process
def test_a_program_is_recorded_and_cut_off(folder: Path) -> None:
    original = folder / "original"
    original.mkdir()
    try:
        recording = record_disk([sys.executable, "-c", PROGRAM, str(original)], original)
    except NotSupported as reason:
        pytest.skip(str(reason))
    numbers = count()

    def cut(at: int, seed: int) -> tuple[list[str], dict[str, bytes]]:
        target = folder / f"cut{next(numbers)}"
        output = recording.simulate_cut(at, Random(seed), target)
        return output, {path.name: path.read_bytes() for path in target.iterdir()}

    ends = [cut(at, seed) for at in range(len(recording.steps) + 1) for seed in range(20)]
    assert ({}, []) in [(files, output) for output, files in ends]
    assert {files["file"] for output, files in ends if output == ["kept"]} == {b"one", b"onetwo"}
    assert isinstance(recording, DiskRecording)


@pytest.mark.process
def test_a_program_that_fails_is_not_a_recording(folder: Path) -> None:
    with pytest.raises(NotSupported):
        record_disk([sys.executable, "-c", "raise SystemExit(3)"], folder)


def test_a_system_without_strace_is_not_supported(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(folder))

    with pytest.raises(NotSupported):
        record_disk(["true"], folder)
