"""The one reader of YAML files: configurations of other systems.

A YAML file may name a value and repeat it ten thousand times, nest brackets until a reader gives up, or ask for objects
of any class. So the text is gone through first, event by event, and refused where it is unlike any file that a person
writes: nothing is built of it before. What comes out are values that JSON has too; a date is none.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from math import isfinite
from typing import Any, Final, cast

from becket.errors import BadFile, Problem
from becket.limits import DEFAULT_LIMITS
from becket.typed.problems import below, cut, is_array, is_object
from becket.typed.small_files import read_small_file, show_path

__all__ = ["MOST_LEVELS", "MOST_VALUES", "load_yaml", "parse_yaml"]

MOST_LEVELS: Final = 16  # of lists and tables within each other; all who walk through values recurse
MOST_VALUES: Final = 10_000  # 64 KiB of empty values are more, and take a second


def load_yaml(path: str | os.PathLike[str], limit: int = DEFAULT_LIMITS.manifest) -> Any:
    """Returns the value that a YAML file holds, None for an empty one.

    Raises:
        BadFile: it cannot be read, is larger than `limit`, is no YAML, or unlike any that a person writes.
    """
    return parse_yaml(read_small_file(path, limit), path)


def parse_yaml(data: bytes, path: str | os.PathLike[str]) -> Any:
    """Returns the value that the bytes of a YAML file hold; `path` is for the message. Limit the bytes first.

    Raises:
        BadFile: they are no YAML, or unlike any that a person writes.
    """
    import yaml

    try:
        text = data.decode()
        problems = find_odd_events(text)
        value: Any = None if problems else yaml.safe_load(text)
        problems = problems or find_twin_keys(text) or find_odd_values(value, "")
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # a number or a date that there cannot be
        raise BadFile(show_path(path), [("", cut(f"is not YAML: {describe(error)}"))]) from error
    if problems:
        raise BadFile(show_path(path), problems)
    return value


def describe(error: Exception) -> str:
    import yaml

    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return str(error)
    return f"line {error.problem_mark.line + 1}: {error.problem}"


def find_odd_events(text: str) -> list[Problem]:
    """Returns the first reason not to build anything of this text, if there is one."""
    import yaml

    levels = values = documents = 0
    events: Iterator[Any] = cast("Any", yaml).parse(text, Loader=yaml.SafeLoader)
    for event in events:
        line: int = event.start_mark.line + 1
        problem = ""
        match event:
            case yaml.AliasEvent():
                problem = "a value that is repeated by its name"
            case yaml.DocumentStartEvent():
                documents += 1
                problem = "a second document" if documents > 1 else ""
            case yaml.CollectionStartEvent():
                levels += 1
                problem = f"more than {MOST_LEVELS} levels" if levels > MOST_LEVELS else ""
            case yaml.CollectionEndEvent():
                levels -= 1
            case _:
                pass
        if isinstance(event, yaml.NodeEvent):
            values += 1
            problem = problem or find_odd_node(event.anchor, getattr(event, "tag", None))
            if values > MOST_VALUES:
                problem = f"more than {MOST_VALUES} values"
        if problem:
            return [("", f"line {line}: {problem}")]
    return []


def find_odd_node(anchor: str | None, tag: str | None) -> str:
    if anchor is not None:
        return "a value that has a name"
    return "" if tag is None else "a value with a tag"


def find_twin_keys(text: str) -> list[Problem]:
    """Returns each key that stands twice in one table: whoever wrote it means one of them, and nobody knows which."""
    import yaml

    problems: list[Problem] = []
    whole: Any = cast("Any", yaml).compose(text, Loader=yaml.SafeLoader)
    waiting: list[tuple[str, Any]] = [("", whole)]
    while waiting:
        pointer, node = waiting.pop()
        if isinstance(node, yaml.SequenceNode):
            waiting += [(f"{pointer}/{number}", part) for number, part in enumerate(node.value)]
        elif isinstance(node, yaml.MappingNode):
            seen: set[str] = set()
            for key, part in node.value:
                place = cut(below(pointer, str(key.value)))
                if place in seen:
                    problems.append((place, "stands here twice"))
                seen.add(place)
                waiting.append((place, part))
    return problems


def find_odd_values(value: Any, pointer: str) -> list[Problem]:
    """Returns all values that have no form in JSON. There are not many levels."""
    if is_array(value):
        return [it for number, part in enumerate(value) for it in find_odd_values(part, f"{pointer}/{number}")]
    if is_object(value):
        keys: list[object] = [*value]
        odd = [(pointer, cut(f"has a key that is no text: {key}")) for key in keys if not isinstance(key, str)]
        places = [(cut(below(pointer, str(key))), part) for key, part in value.items()]
        return odd + [it for place, part in places for it in find_odd_values(part, place)]
    return [] if is_plain(value) else [(pointer, "is no text, number, list or table")]


def is_plain(value: object) -> bool:
    match value:
        case None | str() | bool():
            return True
        case int():
            return -(2**63) <= value < 2**63
        case float():
            return isfinite(value)
        case _:
            return False
