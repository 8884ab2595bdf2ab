"""Parses and evaluates Cargo version requirements such as `^0.1`."""

from __future__ import annotations

from typing import Final, TypeAlias

from msgspec import Struct

from becket.adapters.roder.rust_debug import format_character

__all__ = ["Comparator", "Version", "allows", "parse_requirement"]

Version: TypeAlias = tuple[int, int, int]
"""A release; pre-releases such as `1.0.0-rc.1` are never tested."""

OPERATORS: Final = (">=", "<=", ">", "<", "=", "~", "^")  # the longer ones first
WILDCARDS: Final = frozenset("*xX")
DIGITS: Final = frozenset("0123456789")
IDENTIFIER_CHARACTERS: Final = DIGITS | frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-.")
PART_NAMES: Final = ("major version number", "minor version number", "patch version number")
PRE_RELEASE: Final = "pre-release identifier"
BUILD: Final = "build metadata"
AFTER_WILDCARD: Final = "unexpected character after wildcard in version req"
MAX_NUMBER: Final = 2**64 - 1
MAX_COMPARATORS: Final = 32  # comparators of one requirement


class Comparator(Struct, frozen=True):
    """One condition: an operator and its numbers. `is_pre_release` is set if it names a pre-release."""

    operator: str
    numbers: tuple[int, ...]
    is_pre_release: bool = False

    def allows(self, version: Version) -> bool:
        """Returns whether the version meets this condition."""
        same = version[: len(self.numbers)]
        match self.operator:
            case "=":
                return self._is_exactly(same)
            case ">":
                return self._is_below(same)
            case ">=":
                return self._is_exactly(same) or self._is_below(same)
            case "<":
                return same < self.numbers
            case "<=":
                return self._is_exactly(same) or same < self.numbers
            case "~":
                fixed = min(len(self.numbers), 2)
            case _:
                fixed = self._count_fixed()
        return same[:fixed] == self.numbers[:fixed] and same >= self.numbers

    def _is_exactly(self, same: tuple[int, ...]) -> bool:
        return same == self.numbers and not self.is_pre_release

    def _is_below(self, same: tuple[int, ...]) -> bool:
        return same > self.numbers or (same == self.numbers and self.is_pre_release)

    def _count_fixed(self) -> int:
        """Returns how many numbers must not change: those up to the first non-zero one."""
        for place, number in enumerate(self.numbers, 1):
            if number:
                return place
        return len(self.numbers)


def allows(requirement: tuple[Comparator, ...], version: Version) -> bool:
    """Returns whether a version meets all conditions."""
    return all(one.allows(version) for one in requirement)


def parse_requirement(text: str) -> tuple[Comparator, ...]:
    """Returns the conditions of a requirement; `*` has none.

    Raises:
        ValueError: it is none. The text is the one that Cargo shows.
    """
    rest = text.lstrip(" ")
    if starts_with_wildcard(rest):
        behind = rest[1:].lstrip(" ")
        if behind:
            raise ValueError(format_wildcard_error(rest) if behind.startswith(",") else AFTER_WILDCARD)
        return ()
    comparators: list[Comparator] = []
    while True:
        comparator, place, rest = parse_comparator(rest)
        comparators.append(comparator)
        if not rest:
            return tuple(comparators)
        if not rest.startswith(","):
            raise ValueError(f"expected comma after {place}, found {format_character(rest[0])}")
        if len(comparators) == MAX_COMPARATORS:
            raise ValueError("excessive number of version comparators")
        rest = rest[1:].lstrip(" ")


def parse_comparator(text: str) -> tuple[Comparator, str, str]:
    """Returns the first condition, the name of its last part, and the rest of the text."""
    if starts_with_wildcard(text) and text[1:].lstrip(" ")[:1] in ("", ","):
        raise ValueError(format_wildcard_error(text))
    operator = next((one for one in OPERATORS if text.startswith(one)), "")
    place = PART_NAMES[0]
    number, rest = parse_number(text[len(operator) :].lstrip(" "), place)
    numbers = [number]
    is_wild = False
    for further in PART_NAMES[1:]:
        if not rest.startswith("."):
            break
        place, rest = further, rest[1:]
        if starts_with_wildcard(rest):
            is_wild, rest = True, rest[1:]
        elif is_wild:
            raise ValueError(AFTER_WILDCARD)
        else:
            number, rest = parse_number(rest, place)
            numbers.append(number)
    is_early = False
    if len(numbers) == len(PART_NAMES):
        if rest.startswith("-"):
            is_early, place = True, PRE_RELEASE
            rest = skip_identifiers(rest[1:], place)
        if rest.startswith("+"):
            place = BUILD
            rest = skip_identifiers(rest[1:], place)
    operator = operator or ("=" if is_wild else "^")
    return Comparator(operator, tuple(numbers), is_early), place, rest.lstrip(" ")


def parse_number(text: str, place: str) -> tuple[int, str]:
    size = next((at for at, letter in enumerate(text) if letter not in DIGITS), len(text))
    if not size:
        if not text:
            raise ValueError(f"unexpected end of input while parsing {place}")
        raise ValueError(f"unexpected character {format_character(text[0])} while parsing {place}")
    if size > 1 and text[0] == "0":
        raise ValueError(f"invalid leading zero in {place}")
    if size > len(str(MAX_NUMBER)) or int(text[:size]) > MAX_NUMBER:
        raise ValueError(f"value of {place} exceeds u64::MAX")
    return int(text[:size]), text[size:]


def skip_identifiers(text: str, place: str) -> str:
    """Returns the text after the identifiers of a pre-release or build."""
    size = next((at for at, letter in enumerate(text) if letter not in IDENTIFIER_CHARACTERS), len(text))
    for name in text[:size].split("."):
        if not name:
            raise ValueError(f"empty identifier segment in {place}")
        if place is PRE_RELEASE and len(name) > 1 and name[0] == "0" and DIGITS.issuperset(name):
            raise ValueError(f"invalid leading zero in {place}")
    return text[size:]


def starts_with_wildcard(text: str) -> bool:
    return text[:1] in WILDCARDS


def format_wildcard_error(text: str) -> str:
    return f"wildcard req ({text[0]}) must be the only comparator in the version req"
