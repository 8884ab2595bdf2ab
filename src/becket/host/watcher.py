"""Watches extension folders and yields those whose content has changed.

Changes that come together are reported together. The host decides what to do about them (nothing, a note, a reload).
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
from msgspec import Struct

from becket.errors import BadFile
from becket.host.starting.folder_digest import digest_files, digest_folder
from becket.limits import DEFAULT_LIMITS, Limits

if TYPE_CHECKING:
    from watchfiles import Change

__all__ = ["FolderChanged", "watch_folders"]

DEBOUNCE = 200  # milliseconds of silence: an editor that saves writes a file two or three times
IGNORED = ("__pycache__", "node_modules")


class FolderChanged(Struct, frozen=True):
    """The files of an extension have changed. `digest` is None while they cannot be read."""

    extension: str
    paths: tuple[str, ...]
    digest: str | None


async def watch_folders(
    folders: Mapping[str, str],
    *,
    files: Mapping[str, Collection[str]] | None = None,
    debounce: int = DEBOUNCE,
    limits: Limits = DEFAULT_LIMITS,
    stop: anyio.Event | None = None,
    began: anyio.Event | None = None,
) -> AsyncGenerator[FolderChanged, None]:
    """Yields the extensions whose folders have changed, given by id, until `stop` is set.

    For those that share their folder only their own `files` count, which are absolute paths. Python's caches, names
    that begin with a dot and an editor's temporary files do not count. `began` is set once changes are seen."""
    import watchfiles  # a compiled module: imported only to watch

    own = {extension: set(paths) for extension, paths in (files or {}).items()}
    known = {
        extension: await compute_digest(folder, own.get(extension), limits) for extension, folder in folders.items()
    }
    if not folders:
        if began is not None:
            began.set()
        await (stop or anyio.Event()).wait()
        return
    changes: Any = watchfiles.awatch(
        *folders.values(),
        watch_filter=is_relevant,
        debounce=debounce,
        step=min(50, debounce),
        stop_event=stop,
        yield_on_timeout=began is not None,
        rust_timeout=100,
        recursive=True,
    )
    async with aclosing(changes):
        async for change in changes:
            if began is not None:
                began.set()
            for extension, folder in folders.items():
                only = own.get(extension)
                paths = sorted({path for _, path in change if belongs_to(path, folder, only)})
                if not paths:
                    continue
                now = await compute_digest(folder, only, limits)
                if now != known[extension]:
                    known[extension] = now
                    yield FolderChanged(extension, tuple(paths), now)


def is_relevant(_: Change, path: str) -> bool:
    """Returns whether a change of this file counts."""
    parts = path.split(os.sep)
    name = parts[-1]
    is_passing = name.endswith(("~", ".swp", ".swx", ".tmp", ".pyc")) or name.startswith((".", "#"))
    return not is_passing and not any(part in IGNORED for part in parts)


def belongs_to(path: str, folder: str, only: Collection[str] | None) -> bool:
    if only is not None:
        return path in only
    return os.path.realpath(path).startswith(os.path.realpath(folder) + os.sep)


async def compute_digest(folder: str, only: Collection[str] | None, limits: Limits) -> str | None:
    """Returns the digest of a folder, or of those files of it; None if it cannot be computed."""
    return await anyio.to_thread.run_sync(compute_digest_blocking, folder, only, limits)


def compute_digest_blocking(folder: str, only: Collection[str] | None, limits: Limits) -> str | None:
    without = [os.path.join(os.path.realpath(folder), name) for name in IGNORED]
    try:
        if only is not None:
            return digest_files(folder, only, limits=limits).digest
        return digest_folder(folder, without=without, limits=limits).digest
    except BadFile:
        return None
