"""Assertions of the checks: raise AssertionError with a sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from becket._text import truncate_repr

__all__ = ["expect", "expect_equal", "expect_error"]

E = TypeVar("E", bound=Exception)


def expect(condition: bool, sentence: str) -> None:
    if not condition:
        raise AssertionError(sentence)


def expect_equal(found: object, expected: object, what: str) -> None:
    if found != expected:
        raise AssertionError(f"{what}: {truncate_repr(found)}, expected {truncate_repr(expected)}")


def expect_error(kind: type[E], what: str, call: Callable[..., object], *arguments: object) -> E:
    try:
        result = call(*arguments)
    except kind as refusal:
        return refusal
    except Exception as problem:
        raise AssertionError(f"{what} raised {problem!r}, expected {kind.__name__}") from problem
    raise AssertionError(f"{what} returned {truncate_repr(result)}, expected {kind.__name__}")
