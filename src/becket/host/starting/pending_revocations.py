"""Revocations that could not be written to `grants.toml`: a small file beside it that holds them until they are.

`grants_file` reads it with the grants, so that a revocation survives the end of its host, and `doctor` shows it. It is
written atomically; if even that fails, the revocation is in memory alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from becket._text import quote_path
from becket.conversion.files.reader import load_bytes, replace_file
from becket.errors import JSON_ERRORS, BadFile

__all__ = ["add_pending", "load_pending", "remove_pending"]

SUFFIX: Final = ".pending"

Pending = dict[str, tuple[str, ...]]


def load_pending(grants: str | os.PathLike[str]) -> Pending:
    """Returns the revoked permissions by extension that the grants file lacks; none if all were written.

    Raises:
        BadFile: they cannot be read. The revocations are unknown then, and no extension may hold anything.
    """
    path = path_of(grants)
    try:
        return msgspec.json.decode(load_bytes(path), type=Pending)
    except BadFile as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return {}
        raise
    except JSON_ERRORS as error:
        problem = f"is not a list of revocations: {error} (see which permissions are meant, and remove the file)"
        raise BadFile(quote_path(path), [("", problem)]) from error


def add_pending(grants: str | os.PathLike[str], extension: str, names: Iterable[str]) -> None:
    """Adds revocations of an extension. On return they are safe on disk.

    Raises:
        OSError, BadFile: they are not.
    """
    pending = load_pending(grants)
    save(grants, {**pending, extension: tuple(sorted({*pending.get(extension, ()), *names}))})


def remove_pending(grants: str | os.PathLike[str], extension: str) -> None:
    """Removes the revocations of an extension, which the grants file has now.

    Raises:
        OSError, BadFile: they cannot be removed.
    """
    pending = load_pending(grants)
    if extension in pending:
        save(grants, {id: names for id, names in pending.items() if id != extension})


def save(grants: str | os.PathLike[str], pending: Mapping[str, tuple[str, ...]]) -> None:
    path = path_of(grants)
    if pending:
        replace_file(path, msgspec.json.encode(pending))
    else:
        os.unlink(path)


def path_of(grants: str | os.PathLike[str]) -> str:
    return os.path.realpath(grants) + SUFFIX
