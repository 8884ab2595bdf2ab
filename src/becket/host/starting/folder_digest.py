"""The digest of an extension's folder, and the walk that computes it and can copy the folder at the same time.

A digest covers the names and the bytes of all files, which of them are executable, and the targets of links; not times,
owners, files behind a link, or Python's bytecode.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Generator, Iterator
from contextlib import contextmanager
from hashlib import blake2b, sha256
from typing import Final

from msgspec import Struct

from becket._text import quote_path
from becket.conversion.files.reader import writing
from becket.errors import BadFile
from becket.host.starting.paths import is_below
from becket.limits import DEFAULT_LIMITS, Limits

__all__ = ["FolderDigest", "FolderHasher", "digest_files", "digest_folder"]

MAX_DEPTH: Final = 64  # of nested folders; each holds a descriptor open
CHUNK: Final = 1024 * 1024
LARGEST_CLONE: Final = 1024**3  # bytes of one call
IGNORED_FOLDER: Final = "__pycache__"


def flags_of(*names: str) -> int:
    return sum(getattr(os, name, 0) for name in names)  # Windows lacks some, and imports this all the same


READ: Final = os.O_RDONLY | flags_of("O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK")  # not through a link, not from a pipe
LIST: Final = READ | flags_of("O_DIRECTORY")
WRITE: Final = os.O_RDWR | os.O_CREAT | os.O_EXCL | flags_of("O_CLOEXEC", "O_NOFOLLOW")
DIGEST_HEADER: Final = b"becket folder 1\n"  # the version of the hashed form


class FolderDigest(Struct, frozen=True):
    """The digest of a folder: 64 hexadecimal digits, and the amount of data.

    `uncopyable` is why it cannot be copied, empty if it can."""

    digest: str
    files: int
    bytes: int
    uncopyable: str = ""


def digest_folder(
    folder: str | os.PathLike[str],
    *,
    without: Collection[str] = (),
    names: Collection[str] | None = None,
    listed: bytes = b"",
    limits: Limits = DEFAULT_LIMITS,
    entries: dict[str, str] | None = None,
) -> FolderDigest:
    """Returns the digest of a folder. `without` are absolute paths in it that do not count, such as its data. `entries`
    gets the names in it, each with a short digest; with `names`, as `entries` has them, no others count. `listed` is
    the extension's entry in a list elsewhere, which counts too.

    Raises:
        BadFile: something in it cannot be read, or there is too much; `path` says which.
    """
    hasher = FolderHasher(os.path.realpath(folder), without, limits, names=names, listed=listed, entries=entries)
    return hasher.run(None)


def digest_files(
    folder: str,
    files: Collection[str],
    *,
    listed: bytes = b"",
    limits: Limits = DEFAULT_LIMITS,
    entries: dict[str, str] | None = None,
) -> FolderDigest:
    """Returns the digest of these files of a folder, for an extension that shares it. Their paths are absolute, and of
    a link its target counts.

    Raises:
        BadFile: one of them cannot be read, or there is too much; `path` says which.
    """
    return FolderHasher(folder, (), limits, listed=listed, entries=entries).run_files(files)


class FolderHasher:
    """One walk through a folder: by descriptors, so that no link that appears meanwhile leads elsewhere.

    A copy that it creates is read-only unless it `is_writable`. `entries` gets the names, each with a short digest.
    With `names` it skips all others."""

    def __init__(
        self,
        folder: str,
        without: Collection[str],
        limits: Limits,
        *,
        is_writable: bool = False,
        names: Collection[str] | None = None,
        listed: bytes = b"",
        entries: dict[str, str] | None = None,
    ) -> None:
        self._folder = folder
        self._listed = listed
        self._counted = None if names is None else {*names, *list_parents(names)}
        self._is_writable = is_writable
        self._entries = entries
        self._without = frozenset(os.path.realpath(path) for path in without)
        self._limits = limits
        self._hash = sha256(DIGEST_HEADER)
        self._files = 0
        self._bytes = 0
        self._uncopyable = ""

    def run(self, copy: str | None) -> FolderDigest:
        """Walks the folder, and copies what it hashes to `copy`, if given."""
        try:
            with open_fd(self._folder, LIST) as descriptor:
                self._visit(descriptor, "", copy, 1)
        except OSError as error:
            raise self._refuse("", f"cannot be read: {error.strerror}") from error
        return self._result()

    def run_files(self, files: Collection[str]) -> FolderDigest:
        """Hashes these files alone."""
        for path in sorted(files):
            name = os.path.relpath(path, self._folder)
            try:
                if os.path.islink(path):
                    self._add(b"link", name, os.fsencode(os.readlink(path)))
                else:
                    self._hash_file(None, path, name, None)
            except OSError as error:
                raise self._refuse(name, f"cannot be read: {error.strerror}") from error
            self._files += 1
        return self._result()

    def _result(self) -> FolderDigest:
        digest = self._hash.hexdigest()
        if self._listed:
            digest = sha256(digest.encode() + self._listed).hexdigest()
        return FolderDigest(digest, self._files, self._bytes, self._uncopyable)

    def _visit(self, folder: int, above: str, copy: str | None, level: int) -> None:
        if level > MAX_DEPTH:
            raise self._refuse(above, f"lies deeper than {MAX_DEPTH} folders")
        names = self._names(folder, above)
        needs_room = (
            not self._is_writable and IGNORED_FOLDER not in names and any(name.endswith(".py") for name in names)
        )
        if copy is not None and needs_room:
            with writing(copy):
                os.mkdir(os.path.join(copy, IGNORED_FOLDER), 0o700)
        for name in names:
            path = os.path.join(above, name)
            if os.path.join(self._folder, path) in self._without:
                continue
            try:
                self._hash_entry(folder, name, path, None if copy is None else os.path.join(copy, name), level)
            except OSError as error:
                raise self._refuse(path, f"cannot be read: {error.strerror}") from error

    def _hash_entry(self, folder: int, name: str, path: str, copy: str | None, level: int) -> None:
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
        if stat.S_ISDIR(mode):
            with open_fd(name, LIST, folder) as below:
                if copy is not None:
                    with writing(copy):
                        os.mkdir(copy, 0o700)
                self._visit(below, path, copy, level + 1)
                if copy is not None and not self._is_writable:
                    os.chmod(copy, 0o500)
        elif stat.S_ISREG(mode):
            self._hash_file(folder, name, path, copy)
        elif stat.S_ISLNK(mode):
            self._hash_link(os.readlink(name, dir_fd=folder), path, copy)
        else:
            self._find_uncopyable(path, "is neither file, folder nor link, and cannot be copied", copy)
            self._add(b"other", path, b"")  # a pipe or a socket may replace a file

    def _names(self, folder: int, above: str) -> list[str]:
        names: list[str] = []
        with os.scandir(folder) as listing:
            for entry in listing:
                if entry.name == IGNORED_FOLDER and entry.is_dir(follow_symlinks=False):
                    continue
                if self._counted is not None and quote_path(os.path.join(above, entry.name)) not in self._counted:
                    continue
                self._files += 1
                if self._files > self._limits.digest_files:
                    raise self._refuse(above, f"there are more than {self._limits.digest_files} files")
                names.append(entry.name)
        return sorted(names, key=os.fsencode)

    def _hash_file(self, folder: int | None, name: str, path: str, copy: str | None) -> None:
        with open_fd(name, READ, folder) as file:
            mode = os.fstat(file).st_mode
            if not stat.S_ISREG(mode):
                raise self._refuse(path, "was changed while it was read")
            may_run = bool(mode & stat.S_IXUSR)
            content = sha256()
            if copy is None:
                for chunk in self._chunks(file, path):
                    content.update(chunk)
            elif self._is_writable:
                with writing(copy), open_fd(copy, WRITE, mode=0o700 if may_run else 0o600) as target:
                    clone(file, target)
                    os.lseek(target, 0, os.SEEK_SET)
                    for chunk in self._chunks(target, path):  # of the copy: it cannot change in between
                        content.update(chunk)
            else:
                with writing(copy), open_fd(copy, WRITE, mode=0o500 if may_run else 0o400) as target:
                    for chunk in self._chunks(file, path):
                        content.update(chunk)
                        write_all(target, chunk)
        self._add(b"program" if may_run else b"file", path, content.digest())

    def _chunks(self, file: int, path: str) -> Iterator[bytes]:
        while chunk := os.read(file, CHUNK):
            self._bytes += len(chunk)
            if self._bytes > self._limits.digest_bytes:
                raise self._refuse(path, f"there are more than {self._limits.digest_bytes} bytes")
            yield chunk

    def _hash_link(self, target: str, path: str, copy: str | None) -> None:
        self._add(b"link", path, os.fsencode(target))
        if not os.path.isabs(target):
            if escapes_folder(path, target):
                self._find_uncopyable(path, "is a link that leads out of the folder", copy)
        elif is_below(os.path.realpath(target), self._folder):
            # In the copy it would lead back to these files, which may change after their approval.
            self._find_uncopyable(path, "is a link into the folder by an absolute path: make it relative", copy)
        if copy is not None:
            with writing(copy):
                os.symlink(target, copy)

    def _find_uncopyable(self, path: str, problem: str, copy: str | None) -> None:
        error = self._refuse(path, problem)
        if copy is not None:
            raise error
        self._uncopyable = self._uncopyable or str(error)

    def _add(self, kind: bytes, path: str, content: bytes) -> None:
        """Hashes one entry; lengths precede variable parts, so that no two folders have the same bytes."""
        for part in (kind, os.fsencode(path), content):
            self._hash.update(b"%d:" % len(part))
            self._hash.update(part)
        if self._entries is not None:
            self._entries[quote_path(path)] = blake2b(kind + content, digest_size=8).hexdigest()

    def _refuse(self, path: str, problem: str) -> BadFile:
        return BadFile(quote_path(os.path.join(self._folder, path) if path else self._folder), [("", problem)])


def list_parents(names: Collection[str]) -> Iterator[str]:
    for name in names:
        while name := os.path.dirname(name):
            yield name


def escapes_folder(path: str, target: str) -> bool:
    way = os.path.normpath(os.path.join(os.path.dirname(path), target))
    return way == os.pardir or way.startswith(os.pardir + os.sep)


@contextmanager
def open_fd(path: str, flags: int, folder: int | None = None, *, mode: int = 0) -> Generator[int]:
    descriptor = os.open(path, flags, mode, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def clone(source: int, target: int) -> None:
    """Copies a whole file: by shared blocks, or in the kernel, or through this program."""
    try:
        while os.copy_file_range(source, target, LARGEST_CLONE):
            pass
    except (AttributeError, OSError):  # not supported by this system or file system; continue where it ended
        while chunk := os.read(source, CHUNK):
            write_all(target, chunk)


def write_all(file: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file, rest) :]
