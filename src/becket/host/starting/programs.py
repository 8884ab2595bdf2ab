"""Resolves commands to absolute program paths, without a shell.

A command is a list of a program and its arguments, never a shell line. What a manifest names must be in the extension's
folder, or in the host's program folders.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

from becket._text import quote_path
from becket.errors import ExtensionRefused
from becket.host.starting.environment import clean_path
from becket.host.starting.interpreters import find_code_from_cwd
from becket.host.starting.paths import is_below

__all__ = [
    "NoSuchProgram",
    "find_program",
    "list_program_folders",
    "relocate_command",
    "relocate_path",
    "resolve_command",
]


MISSING: Final = "there is no such file"


class NoSuchProgram(ExtensionRefused):
    """A command names a program that does not exist."""


def list_program_folders(path: str, more: Sequence[str] = ()) -> tuple[str, ...]:
    """Returns the folders that are searched for programs: the absolute ones of a search path, then `more`."""
    return tuple(dict.fromkeys([*clean_path(path).split(os.pathsep), *more]))


def find_program(name: str, folders: Sequence[str]) -> str | None:
    """Returns the absolute path of a program of this name, None if no folder has one."""
    for folder in folders:
        path = f"{folder.rstrip(os.sep)}{os.sep}{name}"
        if os.access(path, os.X_OK) and find_program_problem(path) is None:  # most folders have none of this name
            return path
    return None


def find_program_problem(path: str) -> str | None:
    if not os.path.lexists(path):
        return MISSING
    if not os.path.isfile(path):
        return "it is no regular file"
    if not os.access(path, os.X_OK):
        return "it is not executable (chmod +x it, or name its interpreter)"
    return None


def resolve_command(
    extension: str,
    command: Sequence[str],
    folder: str | None,
    folders: Sequence[str],
    *,
    is_trusted: bool = False,
    is_listed: bool = False,
) -> tuple[str, ...]:
    """Returns a command whose program is an absolute path, as are the arguments that name something in `folder`.

    A program without a slash is looked up in `folders`. One with a slash is a path in `folder`, the extension's own; an
    absolute one must be in one of the `folders`, unless the command `is_trusted`: it is the operator's, not that of a
    manifest. One that `is_listed`, in a file of the user, is written for this machine: its program may be
    anywhere, such as in a virtual environment, and the consent prompt shows where. Arguments that name something in the
    extension's folder must not lead out of it. A command that loads code from its working directory keeps its
    arguments: it runs in that folder, and a module may have the name of a file.

    Raises:
        NoSuchProgram: there is no such program.
        ExtensionRefused: this extension may not run it.
    """

    def refuse(what: str, because: str, kind: type[ExtensionRefused] = ExtensionRefused) -> ExtensionRefused:
        return kind(extension, f"`{quote_path(what)}`: {because}")

    program, *arguments = command
    if not program or program.startswith("-"):
        raise refuse(program, "is no name of a program")
    found = program
    if os.sep not in program:
        found = find_program(program, folders) or ""
        if not found:
            because = f"there is no such program in {quote_path(os.pathsep.join(folders))}"
            raise refuse(program, because, NoSuchProgram)
    elif not os.path.isabs(program):
        if folder is None:
            raise refuse(program, "is a path in the extension's folder, and it has none")
        found = os.path.join(folder, program.removeprefix("./"))
        if not is_inside(folder, found) and not (is_listed and is_below(os.path.normpath(found), folder)):
            raise refuse(program, "leads out of the extension's folder")
    elif not (is_trusted or is_listed) and (
        os.path.normpath(program) != program or os.path.dirname(program) not in folders
    ):
        raise refuse(program, f"lies in none of the folders of programs: {quote_path(os.pathsep.join(folders))}")
    problem = find_program_problem(found)
    if problem is not None:
        raise refuse(program, problem, NoSuchProgram if problem is MISSING else ExtensionRefused)
    if folder is None:
        return (found, *arguments)
    if not is_trusted:
        for word in arguments:
            problem = find_argument_problem(folder, path_in(word))
            if problem is not None:
                raise refuse(word, problem)
    placed = (found, *(place_argument(folder, word) for word in arguments))
    return placed if find_code_from_cwd(placed) is None else (found, *arguments)


def path_in(word: str) -> str:
    """Returns the part of an argument that may be a path: the value of `--config=a.toml`, else the whole argument."""
    return word.partition("=")[2] if word.startswith("-") else word


def place_argument(folder: str, word: str) -> str:
    """Returns an argument that names a file or folder of an extension by its absolute path, and any other unchanged.

    A relative one would be resolved in the program's working directory."""
    path = path_in(word)
    named = os.path.join(folder, path)
    if not path or os.path.isabs(path) or not os.path.exists(named) or not is_inside(folder, named):
        return word
    # After a link `..` is not what it looks like.
    named = os.path.realpath(named) if os.pardir in path.split(os.sep) else os.path.normpath(named)
    return word.removesuffix(path) + named


def relocate_command(command: Sequence[str], folder: str, copy: str) -> tuple[str, ...]:
    """Returns a command in which every path into a folder leads to the same in its copy.

    Relative paths stay: they begin in its working directory. A path may also follow a `=`, as in `--config=/a/b`."""

    def move(word: str) -> str:
        name, sign, path = word.rpartition("=") if not os.path.isabs(word) else ("", "", word)
        return f"{name}{sign}{relocate_path(path, folder, copy)}"

    return tuple(map(move, command))


def relocate_path(path: str, folder: str, copy: str) -> str:
    """Returns a path that leads to the same in the copy of a folder; one outside of it is unchanged."""
    if not os.path.isabs(path):
        return path
    if path != folder and not path.startswith(folder + os.sep):
        if not is_inside(folder, path):
            return path
        path, folder = os.path.realpath(path), os.path.realpath(folder)
    return os.path.normpath(os.path.join(copy, os.path.relpath(path, folder)))


def find_argument_problem(folder: str, word: str) -> str | None:
    """Returns why an argument with a relative path must not be used, None if it may."""
    path = os.path.join(folder, word)
    if os.path.isabs(word) or not os.path.lexists(path):
        return None
    if not is_inside(folder, path):
        return "leads out of the extension's folder"
    if not (os.path.isfile(path) or os.path.isdir(path)):
        return "is neither a file nor a folder"
    return None


def is_inside(folder: str, path: str) -> bool:
    """Returns whether a path leads into a folder, with all links followed."""
    real = os.path.realpath(folder)
    return os.path.commonpath([real, os.path.realpath(path)]) == real
