"""Paths of extensions: whether one is inside a folder, and which files a command names."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

__all__ = ["is_below", "list_named_files"]


def is_below(path: str, root: str) -> bool:
    """Returns whether a path is the root or inside it; both without links. `data-evil` is not inside `data`."""
    return path == root or path.startswith(root if root.endswith(os.sep) else root + os.sep)


def list_named_files(folder: str, command: Sequence[str]) -> Iterator[str]:
    """Yields the files in a folder that the arguments of a command name, and the targets of links among them."""
    for word in command:
        path = os.path.normpath(os.path.join(folder, word))
        if is_below(path, folder) and os.path.isfile(path):
            yield path
            real = os.path.realpath(path)
            if real != path and is_below(real, folder):
                yield real
