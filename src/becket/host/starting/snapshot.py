"""Snapshots of extension folders: what was approved is what runs.

A start from the folder runs its current files, which may have changed since its digest was computed (`folder_digest`);
a start from a snapshot runs the very bytes of the digest.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Collection

from msgspec import Struct

from becket.conversion.files.reader import writing
from becket.errors import BadFile
from becket.host.starting.folder_digest import FolderHasher, digest_folder
from becket.limits import DEFAULT_LIMITS, Limits

__all__ = ["FolderSnapshot", "clone_snapshot", "create_snapshot", "find_snapshot", "remove_snapshots", "remove_tree"]


class FolderSnapshot(Struct, frozen=True):
    """The host's copy of a folder, and the digest of its bytes and of its entry in a list."""

    folder: str
    digest: str
    listed: bytes = b""


def create_snapshot(
    folder: str | os.PathLike[str],
    copies: str | os.PathLike[str],
    *,
    without: Collection[str] = (),
    listed: bytes = b"",
    limits: Limits = DEFAULT_LIMITS,
) -> FolderSnapshot:
    """Copies a folder into one of the host's own, named by its digest, and returns where it is.

    Each byte is read once, and hashed on its way into the copy: it cannot change in between. An existing copy is used
    again if it is unchanged, and replaced if not. A copy is read-only, except for Python's bytecode.

    Raises:
        BadFile: something in it cannot be read, there is too much, a relative link leads out of it or an absolute one
            into it, or the copy cannot be written.
    """
    with writing(copies):
        os.makedirs(copies, mode=0o700, exist_ok=True)
        temporary = tempfile.TemporaryDirectory(prefix=".new-", dir=copies)
    with temporary as work:
        new = os.path.join(work, "copy")
        os.mkdir(new, 0o700)
        digest = FolderHasher(os.path.realpath(folder), without, limits, listed=listed).run(new).digest
        copy = FolderSnapshot(os.path.join(copies, digest), digest, listed)
        target = copy.folder
        if not is_intact(copy, limits):
            with writing(target):
                if os.path.lexists(target):
                    os.chmod(target, 0o700)  # what is not writable cannot be moved either
                    os.rename(target, os.path.join(work, "old"))
                os.rename(new, target)
                os.chmod(target, 0o500)
    return copy


def clone_snapshot(snapshot: FolderSnapshot, target: str, *, limits: Limits = DEFAULT_LIMITS) -> bool:
    """Copies a snapshot to `target`, where its owner may write; returns whether the copy has its digest.

    The file system shares blocks between the two if it can (reflink), so that only changes take space.

    Raises:
        BadFile: something in it cannot be read, or the copy cannot be written.
    """
    with writing(target):
        os.mkdir(target, 0o700)
    hasher = FolderHasher(os.path.realpath(snapshot.folder), (), limits, listed=snapshot.listed, is_writable=True)
    return hasher.run(target).digest == snapshot.digest


def find_snapshot(
    copies: str | os.PathLike[str], digest: str, *, listed: bytes = b"", limits: Limits = DEFAULT_LIMITS
) -> FolderSnapshot | None:
    """Returns the copy with this digest; None if there is none, or it was changed."""
    copy = FolderSnapshot(os.path.join(copies, digest), digest, listed)
    return copy if is_intact(copy, limits) else None


def is_intact(copy: FolderSnapshot, limits: Limits) -> bool:
    try:
        return digest_folder(copy.folder, listed=copy.listed, limits=limits).digest == copy.digest
    except BadFile:
        return False


def remove_snapshots(copies: str | os.PathLike[str], keep: Collection[str]) -> None:
    """Removes all copies but those with these digests, and unfinished ones.

    Raises:
        BadFile: one of them cannot be removed.
    """
    with writing(copies):
        try:
            names = os.listdir(copies)
        except FileNotFoundError:
            return
        for name in names:
            if name not in keep:
                remove_tree(os.path.join(copies, name))


def remove_tree(path: str) -> None:
    """Removes a file, or a folder with all that is in it, whatever modes they have.

    Raises:
        OSError: it cannot be removed.
    """
    if os.path.islink(path) or not os.path.isdir(path):
        os.unlink(path)
        return
    try:
        shutil.rmtree(path)
    except PermissionError:
        os.chmod(path, 0o700)
        for folder, names, _ in os.walk(path):
            for below in (os.path.join(folder, name) for name in names):
                if not os.path.islink(below):
                    os.chmod(below, 0o700)  # before it is listed
        shutil.rmtree(path)
