"""The `becket` commands in hints, as lines to paste with the options of this host. Pure."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable

from msgspec import Struct

from becket.contract.argument_checks import check_list

__all__ = ["NO_OPTIONS", "CommandLines", "command_lines_of"]


class CommandLines(Struct, frozen=True, kw_only=True):
    """Builds command lines for one host. `roots` are its folders, `options` those that select its data directory.

    For a host without persistence, which cannot store a consent, `consent` is the command line that gives one, if there
    is such a command."""

    roots: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    keeps_consent: bool = True
    consent: str = ""

    def __post_init__(self) -> None:
        check_list(self.roots, "roots", "folders")
        check_list(self.options, "options", "words")

    def grant(self, extension: str, permissions: Iterable[str] = ()) -> str:
        """Returns the command that grants an extension these permissions, or all that it requests."""
        roots = [word for root in self.roots for word in ("--root", root)]
        return self._join("grant", extension, *permissions, *roots)

    def revoke(self, extension: str, permissions: Iterable[str] = ()) -> str:
        """Returns the command that denies an extension these permissions, or removes its approval."""
        return self._join("revoke", extension, *permissions)

    def look(self, command: str) -> str:
        """Returns a command such as `doctor` on all extensions of this host."""
        return self._join(command, *self.roots)

    def keep(self, *arguments: str) -> str:
        """Returns a command on the host's data, such as `memory list notes`."""
        return self._join(*arguments)

    def _join(self, *arguments: str) -> str:
        return shlex.join(["becket", *arguments, *self.options])


NO_OPTIONS = CommandLines()


def command_lines_of(roots: Iterable[str | os.PathLike[str]], data: str | os.PathLike[str] | None) -> CommandLines:
    """Returns the command lines for a host with these folders and this data directory."""
    shown = tuple(os.path.abspath(root) for root in roots)
    if data is None:
        return CommandLines(roots=shown, keeps_consent=False)
    return CommandLines(roots=shown, options=("--data", os.path.abspath(data)))
