"""The audit log on disk: hash-chained records, rotation, verification.

`AuditLog` decides what is written and counts the rest; `AuditFile` writes, and recovers after a crash; `verify_audit`
finds changes. The contract defines records and their chain. Nothing is ever deleted or rewritten. A cut-off end or a
changed last line is found by the anchor (`audit_anchor`).
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path
from threading import Lock
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from becket._loggers import host_logger
from becket.contract.audit import (
    CHAIN_START,
    RECORD_DECODER,
    AuditEvent,
    AuditLink,
    AuditRecord,
    CallDecided,
    CallsCounted,
    FileRotated,
    encode_record,
    hash_line,
    parse_record,
)
from becket.errors import JSON_ERRORS, BadMessage
from becket.host.audit_anchor import AuditAnchor, anchor_path, read_anchor

__all__ = ["AuditFile", "AuditLog", "AuditMode", "AuditProblem", "read_audit", "verify_audit"]

COUNT_WINDOW_MS: Final = 60_000  # milliseconds for which allowed calls are counted together
MAX_COUNTED_KEYS: Final = 10_000  # counters kept at once; beyond this many they are written
# Records a minute of one method and extension for denials and for calls without a parent, of each: a child may call
# without end.
MAX_DENIALS: Final = 100
ROTATE_AT: Final = 64 * 1024 * 1024
MAX_PROBLEMS: Final = 1_000  # problems reported of one file
MAX_LOOKS: Final = 5  # attempts on an audit whose file a host rotates while it is verified
TAIL_BYTES: Final = 1024 * 1024  # bytes from the end that are searched first for the last record

CountKey: TypeAlias = tuple[str, str, str | None]


class AuditMode(StrEnum):
    """How much is written."""

    USUAL = "usual"  # a record for each denial, grant, start and provider call; counts of allowed calls
    FULL = "full"  # every call


# -- what is written


class AuditLog:
    """Takes all events and writes those that get a record, with their time. Thread-safe.

    `write` takes an event and its time in milliseconds: that of an `AuditFile`, or of a list for a host without
    persistence. `now` returns the milliseconds since 1970. Call `flush` once a minute and at the end."""

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
        self._began: int | None = None  # when the first event was counted that is not written yet
        self._allowed: dict[CountKey, tuple[int, int]] = {}  # how many, since when
        self._denied: dict[tuple[CountKey, bool], tuple[int, CallDecided]] = {}  # how many, and the last of them

    def __call__(self, event: AuditEvent) -> None:
        """Records an event.

        Raises:
            OSError: it could not be written.
        """
        with self._lock:
            now = self._now()
            if self._began is not None and not 0 <= now - self._began < COUNT_WINDOW_MS:
                self._write_counts(now)
            if not isinstance(event, CallDecided) or self._mode is AuditMode.FULL or self._should_write(event, now):
                self._write(event, now)
            if len(self._allowed) + len(self._denied) > MAX_COUNTED_KEYS:
                self._write_counts(now)

    def flush(self) -> None:
        """Writes the counts so far.

        Raises:
            OSError: they could not be written.
        """
        with self._lock:
            self._write_counts(self._now())

    def _should_write(self, event: CallDecided, now: int) -> bool:
        """Counts a call, and returns whether it gets a record of its own."""
        if self._began is None:
            self._began = now
        key = (event.extension, event.method, event.permission)
        if event.allowed and not event.handling:
            count, since = self._allowed.get(key, (0, now))
            self._allowed[key] = (count + 1, since)
            return False
        of_kind = (key, event.allowed)
        count = self._denied[of_kind][0] + 1 if of_kind in self._denied else 1
        self._denied[of_kind] = (count, event)
        return count <= MAX_DENIALS

    def _write_counts(self, now: int) -> None:
        allowed, self._allowed = self._allowed, {}
        denied, self._denied = self._denied, {}
        self._began = None
        for (extension, method, permission), (count, since) in allowed.items():
            self._write(CallsCounted(extension, method, permission, count, since), now)
        for count, last in denied.values():
            if count > MAX_DENIALS:
                because = f"{last.because} (the last of {count - MAX_DENIALS} more)"
                self._write(replace(last, because=because), now)


# -- the file


class AuditFile:
    """Appends records to a file, from one thread at a time; other processes may append to the same one.

    A file of `rotate_at` bytes is renamed to include the number of its last record, and the chain continues in a new
    one. An unfinished line, left by a crash, is removed when the file is opened again. If records are missing according
    to the anchor, the chain continues from the anchor: so the gap remains for `verify_audit` to find.

    Raises:
        OSError: the file cannot be opened, read or written.
    """

    def __init__(self, path: str | os.PathLike[str], *, rotate_at: int = ROTATE_AT) -> None:
        self._path = Path(path)
        self._name = str(path)
        self._rotate_at = rotate_at
        self._is_closed = False
        self._fd = -1
        self._anchor: AuditAnchor | None = None
        self._is_anchored = True  # False after a failure to write the anchor, which is logged once
        self._size = 0
        self._link = CHAIN_START
        self._previous: str | None = None  # the file that a new one continues
        try:
            self._lock()
        finally:
            self._unlock()

    @property
    def link(self) -> AuditLink:
        """The number and the digest of the last line written or read."""
        return self._link

    def write(self, event: AuditEvent, time_ms: int) -> None:
        """Appends a record. It survives the end of this process once this returns, and a power loss after `sync`.

        Raises:
            OSError: it was not written; the file is unchanged.
        """
        if self._is_closed:
            raise ValueError(f"{self._path} is closed")
        try:
            self._lock()
            if self._size >= self._rotate_at:
                self._rotate()
            if self._previous is not None:
                self._append(FileRotated(self._previous), time_ms)
                self._previous = None
            self._append(event, time_ms)
            self._set_anchor()
        finally:
            self._unlock()

    def sync(self) -> None:
        """Waits until all is on the disk: the records before the anchor that names the last of them."""
        os.fsync(self._fd)
        if self._anchor is not None:
            self._anchor.sync()

    def close(self) -> None:
        """Closes the file, once all is on the disk. May be called twice."""
        if not self._is_closed:
            self._is_closed = True
            self.sync()
            self._close_fd()

    def __enter__(self) -> AuditFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- locking

    def _lock(self) -> None:
        """Locks the file against other processes, and reads what they wrote."""
        import fcntl  # without fcntl there is no host

        while True:
            if self._fd < 0:
                self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
                self._size = -1
                self._open_anchor()
            fcntl.flock(self._fd, fcntl.LOCK_EX)
            found = os.fstat(self._fd)
            if is_at(found, self._name):
                break
            self._close_fd()  # another process rotated it meanwhile
        if found.st_size != self._size:
            self._load_end()

    def _unlock(self) -> None:
        import fcntl

        if self._fd >= 0:
            fcntl.flock(self._fd, fcntl.LOCK_UN)

    def _close_fd(self) -> None:
        os.close(self._fd)
        self._fd = -1
        if self._anchor is not None:
            self._anchor.close()
            self._anchor = None

    def _load_end(self) -> None:
        """Finds the end of the chain in a file that was just opened, or that another process has written to."""
        end = read_chain_end(self._fd)
        if end.torn:
            try:
                parse_record(end.torn, end.link)
            except BadMessage:
                os.ftruncate(self._fd, end.size)
                warn("%s: removed an unfinished last line, %d bytes", self._path, len(end.torn))
            else:
                os.write(self._fd, b"\n")
            end = read_chain_end(self._fd)
        self._size, self._previous = end.size, None
        link = end.link
        if not end.size and (rotated := find_rotated(self._path)):  # a new file
            self._previous = rotated[-1].name
            link = read_chain_end_of(rotated[-1]).link
        self._link = self._hold_against_anchor(link)

    # -- the anchor

    def _hold_against_anchor(self, link: AuditLink) -> AuditLink:
        """Returns the link that the next record follows: the end of the chain, unless the anchor contradicts it."""
        anchor = None if self._anchor is None else self._anchor.read()
        if anchor is None and link.seq:
            warn("%s has no readable anchor: a new one begins at record %d", self._path, link.seq)
        problem = None if anchor is None else find_end_problem(self._path, anchor, link)
        if anchor is None or problem is None:
            self._link = link
            self._set_anchor()
            return link
        warn("%s: %s", self._path, problem.problem)
        return AuditLink(max(anchor.seq, link.seq), anchor.digest)

    def _open_anchor(self) -> None:
        try:
            self._anchor = AuditAnchor(self._path)
        except OSError as error:
            self._note_anchor_failure(error)

    def _set_anchor(self) -> None:
        """Records the last record in the anchor. If that fails the record stays: it is written, and will be found."""
        if self._anchor is None:
            return
        try:
            self._anchor.write(self._link)
            self._is_anchored = True
        except OSError as error:
            self._note_anchor_failure(error)

    def _note_anchor_failure(self, error: OSError) -> None:
        if self._is_anchored:
            self._is_anchored = False
            warn("%s cannot be written, so a truncated audit would go unnoticed: %s", anchor_path(self._path), error)

    # -- writing

    def _append(self, event: AuditEvent, time_ms: int) -> None:
        line, link = encode_record(event, self._link, time_ms)
        written = os.write(self._fd, line)
        if written < len(line):
            os.ftruncate(self._fd, self._size)
            raise OSError(errno.ENOSPC, "the record was not written whole, and was removed", str(self._path))
        self._size += len(line)
        self._link = link

    def _rotate(self) -> None:
        target = self._path.with_name(f"{self._path.stem}-{self._link.seq:012d}{self._path.suffix}")
        if target.exists():
            return  # not one of becket's: nothing is overwritten
        self.sync()
        os.rename(self._path, target)
        self._close_fd()
        self._lock()


def is_at(found: os.stat_result, name: str) -> bool:
    """Returns whether an open file still has this name."""
    try:
        named = os.stat(name)
    except FileNotFoundError:
        return False
    return (found.st_ino, found.st_dev) == (named.st_ino, named.st_dev)


def find_rotated(path: Path) -> list[Path]:
    """Returns the rotated files of this name, oldest first."""
    before, after = f"{path.stem}-", path.suffix
    found: list[tuple[int, Path]] = []
    for name in os.listdir(path.parent):
        number = name.removeprefix(before).removesuffix(after)
        if name == f"{before}{number}{after}" and number.isdecimal() and number.isascii():
            found.append((int(number), path.with_name(name)))
    return [file for _, file in sorted(found)]


# -- the end of a file


class ChainEnd(Struct, frozen=True):
    """The end of the chain of a file, the size of its whole lines, and the bytes after them."""

    link: AuditLink
    size: int
    torn: bytes


def read_chain_end_of(path: Path) -> ChainEnd:
    with path.open("rb") as file:
        return read_chain_end(file.fileno())


def read_chain_end(fd: int) -> ChainEnd:
    """Returns the end of a file, also if lines were destroyed: they count, though they cannot be read."""
    size = os.fstat(fd).st_size
    start = max(0, size - TAIL_BYTES)
    while True:
        with open(fd, "rb", closefd=False) as file:
            file.seek(start)
            *lines, torn = file.read(size - start).split(b"\n")
        whole = lines[1:] if start else lines  # the first may be the end of one
        for after, line in enumerate(reversed(whole)):
            if (record := decode_record(line)) is not None:
                return ChainEnd(AuditLink(record.seq + after, hash_line(lines[-1])), size - len(torn), torn)
        if start == 0:
            link = AuditLink(len(lines), hash_line(lines[-1])) if lines else CHAIN_START
            return ChainEnd(link, size - len(torn), torn)
        start = 0


def decode_record(line: bytes) -> AuditRecord | None:
    try:
        return RECORD_DECODER.decode(line)
    except JSON_ERRORS:
        return None


def warn(text: str, *parts: object) -> None:
    host_logger().warning(text, *parts)


# -- reading it


class AuditProblem(Struct, frozen=True):
    """A part of the audit that differs from what was written. `line` counts from 1; 0 is the file as a whole.

    `missing` are the numbers of the first and the last missing record."""

    path: str
    line: int
    problem: str
    is_torn_end: bool = False  # left by a crash, and removed at the next start
    missing: tuple[int, int] | None = None


def verify_audit(path: str | os.PathLike[str]) -> list[AuditProblem]:
    """Returns what was changed, removed, moved or cut off in an audit, in this file and in those that it continues.

    Raises:
        OSError: there is no such file, or it cannot be read.
    """
    path = Path(path)
    problems: list[AuditProblem] = []
    for _ in range(MAX_LOOKS):
        before = inode_of(path)
        problems = verify_as_found(path)
        if not problems or inode_of(path) == before:
            break
    return problems


def verify_as_found(path: Path) -> list[AuditProblem]:
    """Verifies once, on the files as they are."""
    anchor = read_anchor(path)  # first: records that a host writes meanwhile must not look missing
    if anchor is not None and anchor.seq and not path.exists() and not find_rotated(path):
        return [find_missing(path, 0, 1, anchor.seq)]
    files, problems = find_chain(path)
    link: AuditLink | None = None if problems else CHAIN_START
    for number, file in enumerate(files, 1):
        found, link = verify_file(file, link, is_last=number == len(files))
        problems += found[:MAX_PROBLEMS]
    problems += verify_end(path, anchor, link or CHAIN_START)
    return problems


def inode_of(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return None


def verify_end(path: Path, anchor: AuditLink | None, link: AuditLink) -> Iterator[AuditProblem]:
    """Yields the problems of the end of an audit whose chain ends with this link."""
    if anchor is not None:
        found = find_end_problem(path, anchor, link)
        if found is not None:
            yield found
    elif link.seq:
        problem = f"is missing or cannot be read: it is unknown whether record {link.seq} is the last"
        yield AuditProblem(str(anchor_path(path)), 0, problem)


def find_end_problem(path: Path, anchor: AuditLink, link: AuditLink) -> AuditProblem | None:
    """Returns how the end of an audit contradicts its anchor, None if it does not."""
    if anchor.seq > link.seq:
        return find_missing(path, 0, link.seq + 1, anchor.seq)
    digest = link.digest if anchor.seq == link.seq else find_digest(path, anchor.seq)
    if digest in (None, anchor.digest):  # an unreadable record is reported as such
        return None
    return AuditProblem(str(path), 0, f"record {anchor.seq} is not the one that was written")


def find_missing(path: Path, line: int, first: int, last: int) -> AuditProblem:
    what = f"record {first} is" if first == last else f"records {first} to {last} are"
    return AuditProblem(str(path), line, f"{what} missing", missing=(first, last))


def find_digest(path: Path, seq: int) -> str | None:
    """Returns the digest of a record that others follow, as stored in the next one; None if there is none."""
    for file in reversed(find_chain(path)[0]):
        size = file.stat().st_size
        for start in (
            (size - TAIL_BYTES, 0) if size > TAIL_BYTES else (0,)
        ):  # it is among the newest unless all else is lost
            with file.open("rb") as lines:
                lines.seek(start)
                records = (decode_record(line) for line in lines)
                found = next((record for record in records if record and record.seq == seq + 1), None)
            if found is not None:
                return found.prev
    return None


def read_audit(path: str | os.PathLike[str]) -> Iterator[AuditRecord]:
    """Yields every readable record, oldest first, from this file and from those that it continues."""
    for file in find_chain(Path(path))[0]:
        with file.open("rb") as lines:
            yield from (record for line in lines if (record := decode_record(line)) is not None)


def find_chain(path: Path) -> tuple[list[Path], list[AuditProblem]]:
    """Returns the files of a chain, oldest first, and why it does not reach back to its beginning."""
    files = [path]
    if not has_record(path) and (rotated := find_rotated(path)):  # a host has rotated it, and not written to it since
        files = [rotated[-1], path] if path.exists() else [rotated[-1]]
    while (previous := previous_file_name(files[0])) is not None:
        older = files[0].with_name(os.path.basename(previous))
        if previous != older.name or older in files:
            return files, [AuditProblem(str(files[0]), 1, f"continues `{previous}`, which is not a file beside it")]
        if not older.exists():
            problem = f"continues `{previous}`, which is missing"
            last = first_link(files[0]).seq
            return files, [AuditProblem(str(files[0]), 1, problem, missing=(1, last) if last else None)]
        files.insert(0, older)
    return files, []


def has_record(file: Path) -> bool:
    """Returns whether a file has a whole line."""
    try:
        with file.open("rb") as lines:
            return lines.readline().endswith(b"\n")
    except FileNotFoundError:
        return False


def previous_file_name(file: Path) -> str | None:
    with file.open("rb") as lines:
        record = decode_record(lines.readline())
    return record.event.previous if record is not None and isinstance(record.event, FileRotated) else None


def verify_file(file: Path, link: AuditLink | None, *, is_last: bool) -> tuple[list[AuditProblem], AuditLink]:
    """Returns the problems of one file, and the link for the next; without a link it begins anywhere."""
    problems: list[AuditProblem] = []
    after = link or first_link(file)
    with file.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                _, after = parse_record(line, after)
            except BadMessage as error:
                is_torn = is_last and not line.endswith(b"\n")
                if is_torn:
                    problems.append(AuditProblem(str(file), number, "the line is unfinished", is_torn))
                    break
                record = decode_record(line)
                seq = after.seq + 1 if record is None else record.seq
                if seq > after.seq + 1:
                    problems.append(find_missing(file, number, after.seq + 1, seq - 1))
                else:
                    problems.append(AuditProblem(str(file), number, str(error)))
                after = AuditLink(seq, hash_line(line.removesuffix(b"\n")))
    return problems, after


def first_link(file: Path) -> AuditLink:
    with file.open("rb") as lines:
        record = decode_record(lines.readline())
    return CHAIN_START if record is None else AuditLink(record.seq - 1, record.prev)
