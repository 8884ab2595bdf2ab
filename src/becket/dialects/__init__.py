"""The wire habits of each protocol, as data. `DIALECTS` maps their names to the records."""

from __future__ import annotations

from becket.dialects.dialect import CallMeta, Dialect, ProgressForm
from becket.dialects.native import NATIVE
from becket.dialects.plain import PLAIN

__all__ = ["DIALECTS", "NATIVE", "PLAIN", "CallMeta", "Dialect", "ProgressForm", "find_dialect"]

DIALECTS: dict[str, Dialect] = {dialect.name: dialect for dialect in (PLAIN, NATIVE)}


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
