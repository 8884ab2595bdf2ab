"""Validates arguments of the public API before anything is sent.

The other peer would ignore or reject invalid values; here the caller gets the error.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

__all__ = ["check_list", "check_non_negative_int", "check_str", "check_strs"]


def check_str(value: object, what: str) -> None:
    """Raises TypeError unless the value is a str."""
    if not isinstance(value, str):
        raise TypeError(f"{what} must be str, got {type(value).__name__}")


def check_non_negative_int(value: object, what: str) -> None:
    """Raises TypeError or ValueError unless the value is None or an int of at least 0."""
    if value is None:
        return
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{what} must be int, got {type(value).__name__}")
    if value < 0:
        raise ValueError(f"{what} must not be negative: {value}")


def check_list(value: object, name: str, of: str) -> None:
    """Raises TypeError if the value is a single str or path where a list of names is meant: `in` would find parts of
    a str, and a loop its characters."""
    kind = type(value).__name__
    if isinstance(value, str | bytes | os.PathLike):
        raise TypeError(f"`{name}` must be a list of {of}, got {kind}")


def check_strs(values: Iterable[str], what: str) -> tuple[str, ...]:
    """Returns the strings as a tuple.

    Raises:
        TypeError: the value is a single str, whose characters are hardly ever meant.
    """
    if isinstance(values, str):
        raise TypeError(f"{what} must be a list of str, got the str {values!r}")
    return tuple(values)
