"""Matches JSON values against patterns with wildcards, and fills placeholders of messages. Pure.

The package's README.md lists the wildcards. An object in a pattern names the members that must match; others may be
there, because the contract is only ever extended.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from becket._text import truncate_counted
from becket.contract.json_narrowing import is_array, is_object

__all__ = ["Variables", "fill", "find_mismatch", "is_same"]

Variables = dict[str, Any]
"""Values that a script has bound or was started with, by name."""

MISSING: Final = object()
MAX_SHOWN: Final = 200  # characters of a value in a message
PLACEHOLDER: Final = re.compile(r"\$\{([a-z_]+)\}")
KINDS: Final[dict[str, tuple[type, ...]]] = {
    "$text": (str,),
    "$int": (int,),
    "$number": (int, float),
    "$bool": (bool,),
    "$object": (dict,),
    "$array": (list,),
}


def is_same(left: object, right: object) -> bool:
    """Returns whether two JSON values are equal, in type too: `1`, `1.0` and `true` differ."""
    return type(left) is type(right) and left == right


# -- messages to send


def fill(template: Any, variables: Mapping[str, Any]) -> Any:
    """Returns a message with its placeholders replaced: `"$name"`, `"${name}"` in a longer text, `"$repeat:N:text"`.

    Raises:
        LookupError: there is no such variable.
    """
    if is_object(template):
        return {fill(name, variables): fill(value, variables) for name, value in template.items()}
    if is_array(template):
        return [fill(value, variables) for value in template]
    if not isinstance(template, str):
        return template
    if template.startswith("$repeat:"):
        _, count, text = template.split(":", 2)
        return text * int(count)
    if is_variable(template):
        return find_variable(template[1:], variables)
    return PLACEHOLDER.sub(lambda found: str(find_variable(found[1], variables)), template)


def is_variable(text: str) -> bool:
    return re.fullmatch(r"\$[a-z_]+", text) is not None


def find_variable(name: str, variables: Mapping[str, Any]) -> Any:
    if name not in variables:
        raise LookupError(f"the script uses `${name}`, which has no value")
    return variables[name]


# -- messages that are received


def find_mismatch(pattern: Any, value: Any, variables: Variables, pointer: str = "") -> str | None:
    """Returns what differs, with the JSON pointer, or None if the value matches; binds `"$let:name"`."""
    if is_object(pattern):
        return match_object(pattern, value, variables, pointer)
    if is_array(pattern):
        return match_array(pattern, value, variables, pointer)
    if isinstance(pattern, str) and pattern.startswith("$") and not pattern.startswith("$/"):
        return match_wildcard(pattern, value, variables, pointer)
    expected = fill(pattern, variables)
    return None if is_same(expected, value) else differs(pointer, format_value(expected), value)


def match_object(pattern: dict[str, Any], value: Any, variables: Variables, pointer: str) -> str | None:
    if len(pattern) == 1:
        name, operand = next(iter(pattern.items()))
        if name in OPERATORS:
            return OPERATORS[name](operand, value, variables, pointer)
    if not is_object(value):
        return differs(pointer, "an object", value)
    for name, part in pattern.items():
        at = f"{pointer}/{name}"
        if part == "$absent":
            if name in value:
                return f"{at}: must be absent, is {format_value(value[name])}"
            continue
        if name not in value:
            return f"{at}: is missing"
        if (problem := find_mismatch(part, value[name], variables, at)) is not None:
            return problem
    return None


def match_array(pattern: list[Any], value: Any, variables: Variables, pointer: str) -> str | None:
    if not is_array(value):
        return differs(pointer, "an array", value)
    is_open = bool(pattern) and pattern[-1] == "..."
    parts = pattern[:-1] if is_open else pattern
    if len(value) < len(parts) or (len(value) > len(parts) and not is_open):
        return f"{pointer or '/'}: expected {len(parts)} elements, got {len(value)}: {format_value(value)}"
    for at, (part, element) in enumerate(zip(parts, value, strict=False)):
        if (problem := find_mismatch(part, element, variables, f"{pointer}/{at}")) is not None:
            return problem
    return None


def match_wildcard(pattern: str, value: Any, variables: Variables, pointer: str) -> str | None:
    name, _, operand = pattern.partition(":")
    if pattern == "$any":
        return None
    if pattern in KINDS:
        is_kind = isinstance(value, KINDS[pattern]) and (pattern == "$bool" or not isinstance(value, bool))
        return None if is_kind else differs(pointer, pattern.removeprefix("$"), value)
    match name:
        case "$let":
            variables[operand] = value
            return None
        case "$has":
            is_match = operand in (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
            return None if is_match else differs(pointer, f"something with {operand!r}", value)
        case "$lacks":
            is_match = operand not in json.dumps(value, ensure_ascii=False)
            return None if is_match else differs(pointer, f"something without {operand!r}", value)
        case "$size":
            is_match = (isinstance(value, str) or is_array(value)) and len(value) == int(operand)
            return None if is_match else differs(pointer, f"{operand} characters or elements", value)
        case _:
            expected = fill(pattern, variables)
            return None if is_same(expected, value) else differs(pointer, format_value(expected), value)


def match_one_of(choices: Any, value: Any, variables: Variables, pointer: str) -> str | None:
    if any(find_mismatch(choice, value, variables, pointer) is None for choice in choices):
        return None
    return differs(pointer, f"one of {format_value(choices)}", value)


def match_between(bounds: Any, value: Any, variables: Variables, pointer: str) -> str | None:
    low, high = fill(bounds, variables)
    is_match = isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high
    return None if is_match else differs(pointer, f"a number from {low} to {high}", value)


def match_unordered(patterns: Any, value: Any, variables: Variables, pointer: str) -> str | None:
    if not is_array(value) or len(value) != len(patterns):
        return differs(pointer, f"an array of {len(patterns)} elements", value)
    left = list(value)
    for pattern in patterns:
        found = next((at for at, one in enumerate(left) if find_mismatch(pattern, one, variables) is None), None)
        if found is None:
            return differs(pointer, f"an element {format_value(pattern)}", value)
        del left[found]
    return None


def match_includes(pattern: Any, value: Any, variables: Variables, pointer: str) -> str | None:
    if is_array(value) and any(find_mismatch(pattern, one, variables) is None for one in value):
        return None
    return differs(pointer, f"an array with an element {format_value(pattern)}", value)


def match_each(pattern: Any, value: Any, variables: Variables, pointer: str) -> str | None:
    if not is_array(value):
        return differs(pointer, "an array", value)
    problems = (find_mismatch(pattern, one, variables, f"{pointer}/{at}") for at, one in enumerate(value))
    return next(filter(None, problems), None)


def match_unique(member: Any, value: Any, variables: Variables, pointer: str) -> str | None:
    names = [one.get(member) for one in value if is_object(one)] if is_array(value) else []
    twice = next((name for at, name in enumerate(names) if name in names[:at]), None)
    return None if twice is None else f"{pointer}: two elements have the {member} {format_value(twice)}"


def match_regex(expression: Any, value: Any, variables: Variables, pointer: str) -> str | None:
    is_match = isinstance(value, str) and re.fullmatch(expression, value) is not None
    return None if is_match else differs(pointer, f"a text that matches {expression}", value)


def match_not(pattern: Any, value: Any, variables: Variables, pointer: str) -> str | None:
    is_match = find_mismatch(pattern, value, variables) is not None
    return None if is_match else differs(pointer, f"anything but {format_value(fill(pattern, variables))}", value)


OPERATORS: Final = {
    "$each": match_each,
    "$unique": match_unique,
    "$regex": match_regex,
    "$not": match_not,
    "$one_of": match_one_of,
    "$between": match_between,
    "$unordered": match_unordered,
    "$includes": match_includes,
}


def differs(pointer: str, expected: str, value: Any) -> str:
    return f"{pointer or '/'}: expected {expected}, got {format_value(value)}"


def format_value(value: Any) -> str:
    return truncate_counted(json.dumps(value, ensure_ascii=False), MAX_SHOWN)
