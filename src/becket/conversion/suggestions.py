"""Suggests the name that was probably meant where one is unknown."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["did_you_mean", "find_nearest"]

LONGEST_NAME = 64  # characters that are compared: the time that it takes grows with their square


def find_nearest(name: str, known: Iterable[str]) -> str | None:
    """Returns the nearest of the known names; None where none is near."""
    from difflib import get_close_matches

    nearest = get_close_matches(name[:LONGEST_NAME], known, n=1)
    return nearest[0] if nearest else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Returns a question with the nearest of the known names; empty where none is near."""
    nearest = find_nearest(name, known)
    return f"did you mean `{nearest}`?" if nearest else ""
