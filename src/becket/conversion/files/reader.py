"""Reads small untrusted files: bounded, regular files only, never blocking.

A file name is bytes, and may contain an escape sequence or a newline; a file may be a pipe without a writer, or grow
while it is read. The content is not interpreted here.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager

from becket._text import quote_path
from becket.errors import BadFile
from becket.limits import DEFAULT_LIMITS

__all__ = ["describe_os_error", "load_bytes", "quote_path", "replace_file", "writing"]

# Not inherited by children, no controlling terminal, and no waiting for the writer of a pipe. Windows has neither these
# flags nor such files.
OPEN_FLAGS = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_CLOEXEC", "O_NOCTTY", "O_NONBLOCK"))
NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)


def load_bytes(
    path: str | os.PathLike[str], limit: int = DEFAULT_LIMITS.manifest, *, follow_links: bool = True
) -> bytes:
    """Returns the content of a regular file of at most `limit` bytes.

    Raises:
        BadFile: it does not exist, cannot be read, or is larger. `__cause__` is the system's error, if any.
    """
    try:
        file = os.open(path, OPEN_FLAGS if follow_links else OPEN_FLAGS | NO_FOLLOW)
        try:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise BadFile(quote_path(path), [("", "is no regular file")])
            data = read_bounded(file, limit + 1)
        finally:
            os.close(file)
    except (OSError, ValueError) as error:  # a name with a NUL byte is a ValueError
        raise BadFile(quote_path(path), [("", f"cannot be read: {describe_os_error(error)}")]) from error
    if len(data) > limit:
        raise BadFile(quote_path(path), [("", f"is larger than {limit} bytes")])
    return data


def read_bounded(file: int, most: int) -> bytes:
    data = bytearray()
    while len(data) < most and (chunk := os.read(file, most - len(data))):
        data += chunk
    return bytes(data)


def replace_file(path: str | os.PathLike[str], data: bytes) -> None:
    """Replaces a file atomically: after a crash it has the old or the new content. On return the new content is on the
    disk. Only the owner may read it.

    Raises:
        OSError: nothing was replaced.
    """
    import tempfile  # imported here, since most programs only read

    folder, name = os.path.split(os.path.abspath(path))
    with tempfile.NamedTemporaryFile(dir=folder, prefix=f".{name}-", delete=False) as file:
        try:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())  # before the rename: otherwise a power cut may leave an empty file
            os.replace(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise
    sync_folder(folder)


def sync_folder(folder: str) -> None:
    """Syncs the entries of a folder to the disk."""
    descriptor = os.open(folder, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def describe_os_error(error: OSError | ValueError) -> str:
    """Returns the system's message, and for a full disk what to do."""
    message = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return f"the disk is full ({message}): free space on it" if getattr(error, "errno", None) in NO_ROOM else message


@contextmanager
def writing(path: str | os.PathLike[str]) -> Generator[None]:
    """Turns errors of writing a file within the block into a `BadFile` that names it."""
    try:
        yield
    except OSError as error:
        raise BadFile(quote_path(path), [("", f"cannot be written: {describe_os_error(error)}")]) from error
