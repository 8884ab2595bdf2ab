"""The interface of a fuzz target, and how it reports a failure."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from random import Random

__all__ = ["Target"]


@dataclass(frozen=True)
class Target:
    """One function that must survive every input.

    `run` returns a rough outcome of the input: an input with a new outcome joins the corpus. It raises
    whatever exception the code under test must not raise, and raises AssertionError for a wrong answer.
    """

    name: str
    corpus: Sequence[bytes]
    tokens: Sequence[bytes]
    run: Callable[[bytes, Random], Hashable]
