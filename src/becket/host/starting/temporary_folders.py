"""Folders that extensions of some systems must have; temporary ones if their host has no data directory."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Callable

from becket.dialects.host_defaults import EnvironmentContext, HostDefaults

__all__ = ["TemporaryFolders", "make_default_variables"]


def make_default_variables(
    defaults: HostDefaults, context: EnvironmentContext, folders: TemporaryFolders
) -> dict[str, str]:
    """Returns the variables that a host of the extension's own system would set, and creates the folders they name. One
    without a path is created among the temporary ones.

    Raises:
        OSError: such a folder cannot be created.
    """
    variables = {} if defaults.build_variables is None else dict(defaults.build_variables(context))
    for name in defaults.directory_variables:
        if name not in variables:
            variables[name] = os.path.join(folders.folder_of(context.extension), "state")
        os.makedirs(variables[name], mode=0o700, exist_ok=True)
    return variables


class TemporaryFolders:
    """Folders by the id of an extension, in one that is created for the first of them. `close` removes them all; so do
    the garbage collector and the end of the program."""

    def __init__(self) -> None:
        self._root: str | None = None
        self._remove: weakref.finalize[..., TemporaryFolders] | None = None

    def folder_of(self, extension: str) -> str:
        """Returns the folder of an extension, the same each time.

        Raises:
            OSError: there is no room for temporary files.
        """
        if self._root is None:
            self._root = tempfile.mkdtemp(prefix="becket-")
            self._remove = weakref.finalize(self, shutil.rmtree, self._root, ignore_errors=True)
        folder = os.path.join(self._root, extension)
        os.makedirs(folder, mode=0o700, exist_ok=True)
        return folder

    def close(self) -> None:
        """Removes all of them."""
        if self._remove is not None:
            self._remove()
        self._root = self._remove = None

    def close_before(self, more: Callable[[], object] | None) -> Callable[[], object]:
        """Returns a function that closes them, and then calls `more` if there is one."""

        def close() -> None:
            self.close()
            if more is not None:
                more()

        return close
