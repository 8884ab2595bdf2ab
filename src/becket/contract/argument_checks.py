"""Validates arguments of the public API before anything is sent.

The other side would pass over what it cannot read, or refuse all of it: here the one who gave it learns what is wrong.
"""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["check_non_negative_int", "check_str", "check_strs"]


def check_str(value: object, what: str) -> None:
    """Raises TypeError for what is no text."""
    if not isinstance(value, str):
        raise TypeError(f"{what} is text, and {value!r} is none")


def check_non_negative_int(value: object, what: str) -> None:
    """Raises TypeError or ValueError for what is no whole number, or a negative one. None says nothing, and may be."""
    if value is None:
        return
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{what} is a whole number, and {value!r} is none")
    if value < 0:
        raise ValueError(f"{what} is never negative, as {value} is")


def check_strs(values: Iterable[str], what: str) -> tuple[str, ...]:
    """Returns several texts.

    Raises:
        TypeError: it is one text. That is many as well, one for each of its letters, and hardly ever what is meant.
    """
    if isinstance(values, str):
        raise TypeError(f"{what} are a list of texts, and never one text such as {values!r}")
    return tuple(values)
