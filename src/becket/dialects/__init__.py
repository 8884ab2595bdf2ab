"""Finds dialects by name and imports adapters on first use.

The records of other systems are imported by name at first use: most programs use one dialect.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from becket._deprecated import keep_renamed
from becket.dialects.dialect import CallMeta, Dialect, ProgressFormat
from becket.dialects.native import NATIVE
from becket.dialects.plain import PLAIN

__all__ = ["DIALECTS", "NATIVE", "PLAIN", "CallMeta", "Dialect", "DialectRegistry", "ProgressFormat", "find_dialect"]


class DialectRegistry(Mapping[str, Dialect]):
    """Dialects by name. `add` makes one of your own known, so that manifests can name it."""

    def __init__(self, dialects: tuple[Dialect, ...], elsewhere: Mapping[str, str]) -> None:
        self._known = {dialect.name: dialect for dialect in dialects}
        self._elsewhere = elsewhere

    def add(self, dialect: Dialect) -> None:
        """Makes a dialect known under its name.

        Raises:
            ValueError: the name belongs to another.
        """
        if dialect.name in self and self._known.get(dialect.name) is not dialect:
            raise ValueError(f"there is a dialect {dialect.name!r} already")
        self._known[dialect.name] = dialect

    def replace(self, dialect: Dialect) -> None:
        """Replaces the dialect of this name, by one with other host defaults for example."""
        self._known[dialect.name] = dialect

    def __getitem__(self, name: str) -> Dialect:
        if name not in self._known:
            from importlib import import_module

            module = import_module(self._elsewhere[name])
            self._known[name] = getattr(module, name.upper())
        return self._known[name]

    def __contains__(self, name: object) -> bool:
        return name in self._known or name in self._elsewhere

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self._known, *self._elsewhere]))

    def __len__(self) -> int:
        return len(list(iter(self)))


ADAPTERS: Final[tuple[str, ...]] = ("synaps", "nexo", "roder", "morphir", "cigen", "mcp", "lsp")
DIALECTS: Final = DialectRegistry((PLAIN, NATIVE), {name: f"becket.adapters.{name}.dialect" for name in ADAPTERS})


def find_dialect(dialect: Dialect | str) -> Dialect:
    """Returns the dialect of this name.

    Raises:
        ValueError: no dialect has it.
    """
    if isinstance(dialect, Dialect):
        return dialect
    try:
        return DIALECTS[dialect]
    except KeyError:
        raise ValueError(f"unknown dialect: {dialect} (known: {', '.join(sorted(DIALECTS))})") from None


if not TYPE_CHECKING:  # for a type checker, a module with this function has every name
    __getattr__ = keep_renamed(__name__, {"Dialects": "DialectRegistry", "ProgressForm": "ProgressFormat"})
