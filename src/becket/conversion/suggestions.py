"""Suggests the most similar known name for an unknown one."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["did_you_mean", "find_nearest"]

MAX_NAME_LENGTH = 64  # characters compared; the time is quadratic in their number


def find_nearest(name: str, known: Iterable[str]) -> str | None:
    """Returns the most similar known name, or None."""
    from difflib import get_close_matches

    nearest = get_close_matches(name[:MAX_NAME_LENGTH], known, n=1)
    return nearest[0] if nearest else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Returns a question with the most similar known name, or an empty string."""
    nearest = find_nearest(name, known)
    return f"did you mean `{nearest}`?" if nearest else ""
