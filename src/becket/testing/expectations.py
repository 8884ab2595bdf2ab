"""What checks are made of: a sentence for whoever breaks a contract."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

__all__ = ["equal", "expect", "refused", "short"]

E = TypeVar("E", bound=Exception)


def expect(condition: bool, sentence: str) -> None:
    if not condition:
        raise AssertionError(sentence)


def equal(found: object, expected: object, what: str) -> None:
    if found != expected:
        raise AssertionError(f"{what}: {short(found)}, expected {short(expected)}")


def refused(kind: type[E], what: str, call: Callable[..., object], *arguments: object) -> E:
    try:
        answer = call(*arguments)
    except kind as refusal:
        return refusal
    except Exception as problem:
        raise AssertionError(f"{what} raised {problem!r}, expected {kind.__name__}") from problem
    raise AssertionError(f"{what} was answered with {short(answer)}, expected {kind.__name__}")


def short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 300 else f"{text[:300]}..."
