"""The base class of manifest readers, and what a reader returns. `manifest_formats` lists the readers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from becket._text import quote_path
from becket.contract.handshake import Capabilities
from becket.conversion.files.reader import load_bytes
from becket.errors import BadFile, ManifestError, Problem
from becket.host.starting.manifest import Manifest
from becket.host.starting.paths import is_below
from becket.limits import DEFAULT_LIMITS

__all__ = ["ExtensionList", "FoundExtension", "ManifestReader", "ScopedFiles", "SearchFolder"]


class FoundExtension(Struct, frozen=True, kw_only=True):
    """An extension that a reader has found, with more than its manifest.

    `extra` is what a `Manifest` cannot hold, in a class of the dialect's. `folder` is where its files are, if not in
    the folder of the file that was read; it `owns_folder` if that is not the project's. `path` is its own manifest that
    a list names: it is not read again. `files` are its own in a folder that it shares with others; by default, those
    that its command names. `cwd` is its requested working directory. `declared` is all that it offers, if known before
    it runs. `unused` are the members of its file that becket does not use. Paths are absolute."""

    manifest: Manifest
    extra: Any = None
    folder: str | None = None
    owns_folder: bool = False
    path: str | None = None
    files: tuple[str, ...] | None = None
    cwd: str | None = None
    declared: Capabilities | None = None
    unused: tuple[Problem, ...] = ()


class SearchFolder(Struct, frozen=True, kw_only=True):
    """A further folder to search for extensions: so deep, and without these."""

    folder: str
    depth: int = 1
    ignore: tuple[str, ...] = ()


class ExtensionList(Struct, frozen=True, kw_only=True):
    """A file that lists several extensions. An invalid one is a problem, and the others are used.

    `disabled` are ids that the file turns off, of its own and of those of its dialect in the same root; `only`, if set,
    are all those that it allows of them."""

    extensions: tuple[FoundExtension, ...] = ()
    problems: tuple[Problem, ...] = ()
    search_folders: tuple[SearchFolder, ...] = ()
    disabled: tuple[str, ...] = ()
    only: tuple[str, ...] | None = None


class ScopedFiles:
    """The files that a list may name: small ones, in the root that the list itself was found in."""

    def __init__(self, folder: str, root: str, *, limit: int = DEFAULT_LIMITS.manifest) -> None:
        self.folder = folder
        self.root = root
        self._limit = limit

    def find(self, name: str) -> str:
        """Returns the absolute path, free of links, of a name in a list, which is relative to the list's folder.

        Raises:
            ManifestError: it leads out of the root, or holds a zero byte.
        """
        path = os.path.join(self.folder, name)
        try:
            real = os.path.realpath(path)
        except ValueError as error:
            raise ManifestError(quote_path(path), [("", f"cannot be read: {error}")]) from error
        if not is_below(real, self.root):
            raise ManifestError(quote_path(path), [("", "leads out of the root of its list")])
        return real

    def read(self, name: str) -> bytes:
        """Returns the content of a file that a list names.

        Raises:
            ManifestError: it is outside the root, is missing, is not a regular file, or is too large.
        """
        path = self.find(name)
        try:
            return load_bytes(path, self._limit, follow_links=False)
        except BadFile as error:
            raise ManifestError(error.path, error.problems) from error


class ManifestReader:
    """One format: where the extensions of a system are, and how their files are read. Subclass it for another system,
    and override what that system has.

    `file_names` are paths below the folder of an extension, the preferred one first: a folder with one belongs to that
    extension with all that is in it. `list_names` are paths of files that list extensions; the folder then belongs to
    none of them, and is searched further. `prefixes` begin the names of programs that are extensions without any file.
    `bundle_table` is the table of any manifest in which an extension bundles others of this system; a file of
    `list_names` beside a manifest stands for that table.

    A reader never runs or writes anything, and checks what it returns, the id above all (`build_id`)."""

    dialect: str = "native"
    file_names: tuple[str, ...] = ()
    list_names: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()
    bundle_table: str = ""

    def read(self, data: bytes, path: str) -> Manifest | FoundExtension | None:
        """Returns the content of a manifest; None if it is not an extension. `path` is absolute.

        Raises:
            ManifestError: it cannot be used; all problems, each with its JSON pointer.
        """
        raise NotImplementedError

    def read_list(self, data: bytes, path: str, nearby: ScopedFiles) -> ExtensionList:
        """Returns the extensions that a file lists. `path` is absolute.

        Raises:
            ManifestError: nothing in it can be used; all problems, each with its JSON pointer.
        """
        raise NotImplementedError

    def read_program(self, path: str) -> Manifest | FoundExtension | None:
        """Returns the extension of a program, by its name; None if it is not one. `path` is an absolute path of an
        executable file.

        Raises:
            ManifestError: it cannot be used.
        """
        raise NotImplementedError

    def read_bundle(self, data: bytes) -> dict[str, dict[str, Any]]:
        """Returns the table that a file beside a manifest stands for. Raises what `msgspec` raises."""
        raise NotImplementedError

    def list_bundle(self, table: Mapping[str, Any], prefix: str, nearby: ScopedFiles) -> ExtensionList:
        """Returns the extensions of a table in a manifest; their ids begin with `prefix`."""
        raise NotImplementedError

    def hint_for(self, problem: Problem) -> str:
        """Returns what to do about a problem; empty if the problem says it all."""
        return ""
