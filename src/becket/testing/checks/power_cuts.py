"""Simulates power cuts: records disk writes with strace and replays them up to any point.

What was synced survives a cut. Of the rest any part may survive: each write or none of it, or some of its sectors,
in any order; the same holds for files just created or removed. Needs Linux and `strace`. Writes through mapped
memory are not recorded; SQLite uses them only for data that it can rebuild.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random

from msgspec import Struct

from becket.errors import NotSupported

__all__ = ["DiskRecording", "record_disk"]

SECTOR = 512
CALLS = "openat,lseek,write,pwrite64,ftruncate,fsync,fdatasync,unlink,unlinkat,rename"
CALL = re.compile(r"(\w+)\((.*)\)\s+= (\d+)")
FILE = re.compile(r"(\d+)<([^>]*)>")  # a descriptor and its path
TEXT = re.compile(r'"([^"]*)"')


class FileWritten(Struct, frozen=True):
    """Bytes were written to a file."""

    path: str
    start: int
    data: bytes


class FileTruncated(Struct, frozen=True):
    """A file was truncated or extended."""

    path: str
    size: int


class FileCreated(Struct, frozen=True):
    """A file was created."""

    path: str


class FileRemoved(Struct, frozen=True):
    """A file was removed."""

    path: str


class FileRenamed(Struct, frozen=True):
    """A file was renamed."""

    path: str
    name: str


class FileSynced(Struct, frozen=True):
    """All changes of a file or folder were synced to the disk."""

    path: str


class OutputWritten(Struct, frozen=True):
    """The program wrote to its stdout."""

    text: str


DiskChange = FileWritten | FileTruncated | FileCreated | FileRemoved | FileRenamed
DiskStep = DiskChange | FileSynced | OutputWritten


class DiskRecording(Struct, frozen=True):
    """All that a program did to a folder, in order."""

    folder: Path
    steps: Sequence[DiskStep]

    def simulate_cut(self, at: int, random: Random, target: Path) -> list[str]:
        """Writes to `target` the folder as a power cut after `at` steps may leave it; returns the output up to then."""
        disk = SimulatedDisk()
        output = ""
        for step in self.steps[:at]:
            if isinstance(step, OutputWritten):
                output += step.text
            else:
                disk.apply(step)
        target.mkdir()
        for path, content in disk.after_cut(random).items():
            (target / os.path.relpath(path, self.folder)).write_bytes(content)
        return output.splitlines()


class SimulatedDisk:
    """The files on the disk, and the changes that are not synced yet."""

    def __init__(self) -> None:
        self._files: dict[str, bytearray] = {}
        self._pending: list[DiskChange] = []

    def apply(self, step: DiskChange | FileSynced) -> None:
        """Applies one step of a program."""
        if not isinstance(step, FileSynced):
            self._pending.append(step)
            return
        safe = [change for change in self._pending if is_durable(change, step.path)]
        self._pending = [change for change in self._pending if not is_durable(change, step.path)]
        apply(self._files, safe)

    def after_cut(self, random: Random) -> Mapping[str, bytearray]:
        """Returns the files that may be there after a cut."""
        files = {path: bytearray(content) for path, content in self._files.items()}
        share = random.choice([0.0, 0.5, 1.0])  # of the changes that are not synced; none and all are likely
        surviving = [part for step in self._pending for part in parts_of(step, random) if random.random() < share]
        apply(files, surviving)
        return files


def is_durable(change: DiskChange, synced: str) -> bool:
    """Returns whether a change is durable once this file or folder is synced."""
    if isinstance(change, FileRenamed) and change.name == synced:
        return True
    is_of_folder = (
        isinstance(change, FileCreated | FileRemoved | FileRenamed) and os.path.dirname(change.path) == synced
    )
    return change.path == synced or is_of_folder


def parts_of(step: DiskChange, random: Random) -> Iterable[DiskChange]:
    """Yields a change, or at random the sectors of a write one by one: only a sector is written atomically."""
    if isinstance(step, FileWritten) and random.random() < 0.2:
        for start in range(0, len(step.data), SECTOR):
            yield FileWritten(step.path, step.start + start, step.data[start : start + SECTOR])
    else:
        yield step


def apply(files: dict[str, bytearray], changes: Iterable[DiskChange]) -> None:
    for change in changes:
        if isinstance(change, FileRemoved):
            files.pop(change.path, None)
        elif isinstance(change, FileRenamed):
            files[change.name] = files.pop(change.path, bytearray())
        else:
            file = files.setdefault(change.path, bytearray())
            if isinstance(change, FileTruncated):
                del file[change.size :]
                file.extend(bytes(change.size - len(file)))
            elif isinstance(change, FileWritten):
                file.extend(bytes(max(0, change.start - len(file))))
                file[change.start : change.start + len(change.data)] = change.data


# -- recording


def record_disk(command: Sequence[str], folder: Path, *, env: Mapping[str, str] | None = None) -> DiskRecording:
    """Runs a command on an empty folder, and returns what it did there.

    Raises:
        NotSupported: there is no strace, or it may not be used.
    """
    strace = shutil.which("strace")
    if strace is None:
        raise NotSupported("a simulated power cut", "there is no strace")
    log = folder.with_name(f"{folder.name}.strace")
    trace = [
        strace,
        "-f",
        "-qq",
        "-y",
        "-xx",
        "-s",
        "1000000",
        "-e",
        f"trace={CALLS}",
        "-e",
        "signal=none",
        "-o",
        str(log),
    ]
    done = subprocess.run([*trace, *command], env=env, capture_output=True, check=False)
    if done.returncode != 0:
        raise NotSupported("a simulated power cut", done.stderr.decode(errors="replace").strip().rpartition("\n")[2])
    with open(log, encoding="ascii") as lines:
        steps = [*StraceParser(folder).parse(lines)]
    log.unlink()
    return DiskRecording(folder, steps)


class StraceParser:
    """Parses the output of strace, as far as it concerns one folder and stdout."""

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder)
        self._begun: dict[str, str] = {}  # unfinished calls, by thread
        self._positions: dict[str, int] = {}  # of descriptors, as a plain write moves them
        self._sizes: dict[str, int] = {}  # of existing files

    def parse(self, lines: Iterable[str]) -> Iterator[DiskStep]:
        """Yields the steps, in the order in which they finished."""
        for line in lines:
            thread, _, text = line.strip().partition(" ")
            text = text.strip()
            if text.endswith("<unfinished ...>"):
                self._begun[thread] = text.removesuffix("<unfinished ...>")
                continue
            if text.startswith("<... "):
                text = self._begun.pop(thread) + text.partition(" resumed>")[2]
            call = CALL.match(text)
            if call is not None:
                yield from self._parse_call(*call.groups())

    def _parse_call(self, name: str, arguments: str, result: str) -> Iterator[DiskStep]:
        texts = [unhex(text) for text in TEXT.findall(arguments)]
        opened = FILE.match(arguments)
        if opened is not None:
            yield from self._parse_file_call(name, opened[1], unhex(opened[2]).decode(), arguments, texts, int(result))
            return
        paths = [text.decode() for text in texts]
        if not paths or os.path.dirname(paths[0]) != self._folder:
            return
        if name == "openat":
            yield from self._open(paths[0], arguments, result)
        elif name == "rename":
            self._sizes[paths[1]] = self._sizes.pop(paths[0], 0)
            yield FileRenamed(*paths)
        else:
            self._sizes.pop(paths[0], None)
            yield FileRemoved(paths[0])

    def _open(self, path: str, arguments: str, descriptor: str) -> Iterator[DiskStep]:
        if "O_CREAT" in arguments and path not in self._sizes:
            self._sizes[path] = 0
            yield FileCreated(path)
        elif "O_TRUNC" in arguments:
            self._sizes[path] = 0
            yield FileTruncated(path, 0)
        self._positions[descriptor] = self._sizes[path] if "O_APPEND" in arguments else 0

    def _parse_file_call(
        self, name: str, descriptor: str, path: str, arguments: str, texts: list[bytes], result: int
    ) -> Iterator[DiskStep]:
        if name == "write" and descriptor == "1":
            yield OutputWritten(texts[0].decode())
        elif name in ("fsync", "fdatasync") and path.startswith(self._folder):
            yield FileSynced(path)
        elif os.path.dirname(path) != self._folder:
            return
        elif name == "lseek":
            self._positions[descriptor] = result
        elif name == "ftruncate":
            self._sizes[path] = int(arguments.rpartition(",")[2])
            yield FileTruncated(path, self._sizes[path])
        else:
            start = self._positions.get(descriptor, 0) if name == "write" else int(arguments.rpartition(",")[2])
            yield FileWritten(path, start, texts[0][:result])
            self._sizes[path] = max(self._sizes.get(path, 0), start + result)
            if name == "write":
                self._positions[descriptor] = start + result


def unhex(text: str) -> bytes:
    return bytes.fromhex(text.replace("\\x", ""))
