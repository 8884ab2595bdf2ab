"""The audit on disk: what is written of what happens, one chained line after the other, in files that are rotated.

`AuditLog` decides what is written and counts what is not; `AuditFile` writes, and goes on after a crash; `verify_audit`
finds what somebody changed. What a record says and how it holds the one before it are the contract's. Nothing is ever
deleted or written anew: all that a chain cannot show is that its newest lines were cut off.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from threading import Lock
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from becket.contract.audit import (
    AUDIT_START,
    RECORDS,
    UNDECODABLE,
    AuditEvent,
    AuditLink,
    AuditRecord,
    CallDecided,
    CallsCounted,
    FileRotated,
    digest_of,
    encode_record,
    parse_record,
)
from becket.errors import BadMessage

__all__ = ["AuditFile", "AuditLog", "AuditMode", "AuditProblem", "read_audit", "verify_audit"]

MINUTE: Final = 60_000  # milliseconds for which allowed calls are counted together
MOST_KEYS: Final = 10_000  # that are counted at once; the counts are written when there are more
MOST_DENIALS: Final = 100  # of one method and extension a minute that have a record each: a child may ask without end
ROTATE_AT: Final = 64 * 1024 * 1024
MOST_PROBLEMS: Final = 1_000  # that are told of one file
TAIL: Final = 1024 * 1024  # bytes from the end in which the last record is looked for first

Key: TypeAlias = tuple[str, str, str | None]


class AuditMode(StrEnum):
    """How much is written."""

    USUAL = "usual"  # denials, grants, starts and calls of providers one by one; allowed calls as counts
    FULL = "full"  # every call


# -- what is written


class AuditLog:
    """Takes all that happens and hands on what is to be written, with its time. Any thread may call it.

    `write` takes an event and the milliseconds at which it happened; that of an `AuditFile`, or of a list for a host
    that keeps nothing. `now` tells the milliseconds since 1970. Call `flush` once a minute and at the end."""

    def __init__(
        self,
        write: Callable[[AuditEvent, int], object],
        *,
        now: Callable[[], int],
        mode: AuditMode = AuditMode.USUAL,
    ) -> None:
        self._write = write
        self._now = now
        self._mode = mode
        self._lock = Lock()
        self._began: int | None = None  # when the first was counted of those that are not written
        self._allowed: dict[Key, tuple[int, int]] = {}  # how many, since when
        self._denied: dict[Key, tuple[int, CallDecided]] = {}  # how many, and the last of them

    def __call__(self, event: AuditEvent) -> None:
        """Takes something that happened.

        Raises:
            OSError: it could not be written.
        """
        with self._lock:
            now = self._now()
            if self._began is not None and not 0 <= now - self._began < MINUTE:
                self._write_counts(now)
            if not isinstance(event, CallDecided) or self._mode is AuditMode.FULL or self._is_to_write(event, now):
                self._write(event, now)
            if len(self._allowed) + len(self._denied) > MOST_KEYS:
                self._write_counts(now)

    def flush(self) -> None:
        """Writes what was counted so far.

        Raises:
            OSError: it could not be written.
        """
        with self._lock:
            self._write_counts(self._now())

    def _is_to_write(self, event: CallDecided, now: int) -> bool:
        """Counts a call, and returns whether it has a record of its own."""
        if self._began is None:
            self._began = now
        key = (event.extension, event.method, event.permission)
        if event.allowed:
            count, since = self._allowed.get(key, (0, now))
            self._allowed[key] = (count + 1, since)
            return False
        count = self._denied[key][0] + 1 if key in self._denied else 1
        self._denied[key] = (count, event)
        return count <= MOST_DENIALS

    def _write_counts(self, now: int) -> None:
        allowed, self._allowed = self._allowed, {}
        denied, self._denied = self._denied, {}
        self._began = None
        for (extension, method, permission), (count, since) in allowed.items():
            self._write(CallsCounted(extension, method, permission, count, since), now)
        for count, last in denied.values():
            if count > MOST_DENIALS:
                because = f"{last.because} (the last of {count - MOST_DENIALS} more)"
                self._write(replace(last, because=because), now)


# -- where it is written


class AuditFile:
    """Appends records to a file, from one thread at a time; other processes may append to the same one.

    A file that has grown to `rotate_at` bytes gets the number of its last record into its name, and the chain goes on
    in a new one. What a crash left of a line is taken off when the file is opened again.

    Raises:
        OSError: the file cannot be opened, read or written.
    """

    def __init__(self, path: str | os.PathLike[str], *, rotate_at: int = ROTATE_AT) -> None:
        self._path = Path(path)
        self._rotate_at = rotate_at
        self._is_closed = False
        self._fd = -1
        self._size = 0
        self._link = AUDIT_START
        self._previous: str | None = None  # the file that a new one goes on from
        with self._locked():
            pass

    @property
    def link(self) -> AuditLink:
        """The number and the digest of the last line that was written or seen."""
        return self._link

    def write(self, event: AuditEvent, time_ms: int) -> None:
        """Appends a record. It has survived the end of this process when this returns, and the machine's after `sync`.

        Raises:
            OSError: it was not written; the file is as it was before.
        """
        with self._locked():
            if self._size >= self._rotate_at:
                self._rotate()
            if self._previous is not None:
                self._append(FileRotated(self._previous), time_ms)
                self._previous = None
            self._append(event, time_ms)

    def sync(self) -> None:
        """Waits until all is on the disk."""
        os.fsync(self._fd)

    def close(self) -> None:
        """Closes the file, once all is on the disk. It may be closed twice."""
        if not self._is_closed:
            self._is_closed = True
            self.sync()
            self._drop()

    def __enter__(self) -> AuditFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- holding it

    @contextmanager
    def _locked(self) -> Generator[None, None, None]:
        """Holds the file against other processes, with all that they wrote taken in."""
        import fcntl  # where there is none, no host runs

        if self._is_closed:
            raise ValueError(f"{self._path} is closed")
        try:
            self._lock()
            yield
        finally:
            if self._fd >= 0:
                fcntl.flock(self._fd, fcntl.LOCK_UN)

    def _lock(self) -> None:
        import fcntl

        while True:
            if self._fd < 0:
                self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
                self._size = -1
            fcntl.flock(self._fd, fcntl.LOCK_EX)
            if is_at(self._fd, self._path):
                break
            self._drop()  # somebody rotated it while we waited
        if os.fstat(self._fd).st_size != self._size:
            self._take_in()

    def _drop(self) -> None:
        os.close(self._fd)
        self._fd = -1

    def _take_in(self) -> None:
        """Finds the end of the chain in a file that was just opened, or that another process has written to."""
        end = read_end(self._fd)
        if end.torn:
            try:
                parse_record(end.torn, end.link)
            except BadMessage:
                os.ftruncate(self._fd, end.size)
                warn(
                    "%s: took off the beginning of a line that was never finished, %d bytes", self._path, len(end.torn)
                )
            else:
                os.write(self._fd, b"\n")
            end = read_end(self._fd)
        self._size, self._previous = end.size, None
        if end.size:
            self._link = end.link
            return
        # A new file. Where somebody deleted the one before, the chain goes on from it all the same, and so it shows.
        if rotated := find_rotated(self._path):
            self._previous = rotated[-1].name
            self._link = max(self._link, read_end_of(rotated[-1]).link, key=lambda link: link.seq)

    # -- writing

    def _append(self, event: AuditEvent, time_ms: int) -> None:
        line, link = encode_record(event, self._link, time_ms)
        written = os.write(self._fd, line)
        if written < len(line):
            os.ftruncate(self._fd, self._size)
            raise OSError(errno.ENOSPC, "the record was not written whole, and taken off again", str(self._path))
        self._size += len(line)
        self._link = link

    def _rotate(self) -> None:
        target = self._path.with_name(f"{self._path.stem}-{self._link.seq:012d}{self._path.suffix}")
        if target.exists():
            return  # not one of ours, then: nothing is written over
        self.sync()
        os.rename(self._path, target)
        self._drop()
        self._lock()


def is_at(fd: int, path: Path) -> bool:
    """Returns whether an open file still has this name."""
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path))
    except FileNotFoundError:
        return False


def find_rotated(path: Path) -> list[Path]:
    """Returns the files that were rotated away from this name, oldest first."""
    before, after = f"{path.stem}-", path.suffix
    found: list[tuple[int, Path]] = []
    for name in os.listdir(path.parent):
        number = name.removeprefix(before).removesuffix(after)
        if name == f"{before}{number}{after}" and number.isdecimal() and number.isascii():
            found.append((int(number), path.with_name(name)))
    return [file for _, file in sorted(found)]


# -- the end of a file


class End(Struct, frozen=True):
    """Where the chain of a file has got to, the size of its whole lines, and what comes after the last of them."""

    link: AuditLink
    size: int
    torn: bytes


def read_end_of(path: Path) -> End:
    with path.open("rb") as file:
        return read_end(file.fileno())


def read_end(fd: int) -> End:
    """Returns the end of a file, also of one in which lines were destroyed: they count, though nobody can read them."""
    size = os.fstat(fd).st_size
    start = max(0, size - TAIL)
    while True:
        with open(fd, "rb", closefd=False) as file:
            file.seek(start)
            *lines, torn = file.read(size - start).split(b"\n")
        whole = lines[1:] if start else lines  # the first may be the end of one
        for after, line in enumerate(reversed(whole)):
            if (record := decode_record(line)) is not None:
                return End(AuditLink(record.seq + after, digest_of(lines[-1])), size - len(torn), torn)
        if start == 0:
            link = AuditLink(len(lines), digest_of(lines[-1])) if lines else AUDIT_START
            return End(link, size - len(torn), torn)
        start = 0


def decode_record(line: bytes) -> AuditRecord | None:
    try:
        return RECORDS.decode(line)
    except UNDECODABLE:
        return None


def warn(text: str, *parts: object) -> None:
    import logging

    logging.getLogger("becket.host").warning(text, *parts)


# -- reading it


class AuditProblem(Struct, frozen=True):
    """Something in the audit is not as it was written. `line` counts from 1; 0 is the file as a whole."""

    path: str
    line: int
    problem: str
    is_torn_end: bool = False  # a crash does that, and the next start takes it off


def verify_audit(path: str | os.PathLike[str]) -> list[AuditProblem]:
    """Returns what was changed, left out or moved in an audit, in this file and in those that it goes on from.

    Raises:
        OSError: there is no such file, or it cannot be read.
    """
    files, problems = find_chain(Path(path))
    link: AuditLink | None = None if problems else AUDIT_START
    for number, file in enumerate(files, 1):
        found, link = verify_file(file, link, is_last=number == len(files))
        problems += found[:MOST_PROBLEMS]
    return problems


def read_audit(path: str | os.PathLike[str]) -> Iterator[AuditRecord]:
    """Gives every record that can be read, oldest first, from this file and from those that it goes on from."""
    for file in find_chain(Path(path))[0]:
        with file.open("rb") as lines:
            yield from (record for line in lines if (record := decode_record(line)) is not None)


def find_chain(path: Path) -> tuple[list[Path], list[AuditProblem]]:
    """Returns the files of a chain, oldest first, and why it does not go back to its beginning where it does not."""
    if not path.exists() and (rotated := find_rotated(path)):
        path = rotated[-1]
    files = [path]
    while (previous := name_of_previous(files[0])) is not None:
        older = files[0].with_name(os.path.basename(previous))
        if previous != older.name or older in files:
            return files, [AuditProblem(str(files[0]), 1, f"goes on from `{previous}`, which is no file beside it")]
        if not older.exists():
            return files, [AuditProblem(str(files[0]), 1, f"goes on from `{previous}`, which is not there")]
        files.insert(0, older)
    return files, []


def name_of_previous(file: Path) -> str | None:
    with file.open("rb") as lines:
        record = decode_record(lines.readline())
    return record.event.previous if record is not None and isinstance(record.event, FileRotated) else None


def verify_file(file: Path, link: AuditLink | None, *, is_last: bool) -> tuple[list[AuditProblem], AuditLink]:
    """Returns what is wrong with one file, and the link for the next; without a link it begins where it begins."""
    problems: list[AuditProblem] = []
    after = link or first_link(file)
    with file.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                _, after = parse_record(line, after)
            except BadMessage as error:
                is_torn = is_last and not line.endswith(b"\n")
                problem = "the line was never finished" if is_torn else str(error)
                problems.append(AuditProblem(str(file), number, problem, is_torn))
                record = decode_record(line)
                seq = after.seq + 1 if record is None else record.seq
                after = AuditLink(seq, digest_of(line.removesuffix(b"\n")))
    return problems, after


def first_link(file: Path) -> AuditLink:
    with file.open("rb") as lines:
        record = decode_record(lines.readline())
    return AUDIT_START if record is None else AuditLink(record.seq - 1, record.prev)
