"""Loads YAML files; aliases, tags and deep nesting are rejected before anything is built.

A YAML file may repeat a value ten thousand times by an alias, nest brackets until a parser fails, or request objects
of any class. The text is therefore scanned event by event first, and nothing is built from a rejected one. The
result has only values that JSON has; a date is not one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from math import isfinite
from typing import Any, Final, cast

from becket._extras import needs_extra
from becket._text import join_pointer, quote_path, truncate
from becket.conversion.files.reader import load_bytes
from becket.conversion.problems import is_array, is_object
from becket.errors import BadFile, Problem
from becket.limits import DEFAULT_LIMITS

__all__ = ["MAX_DEPTH", "MAX_VALUES", "load_yaml", "parse_yaml"]

MAX_DEPTH: Final = 16  # of nested lists and tables; code that walks values recurses
MAX_VALUES: Final = 10_000  # 64 KiB of empty values are more, and take a second


def load_yaml(path: str | os.PathLike[str], limit: int = DEFAULT_LIMITS.manifest) -> Any:
    """Loads the value of a YAML file, None for an empty one.

    Raises:
        BadFile: it cannot be read, is larger than `limit`, is not YAML, or uses a rejected feature.
    """
    return parse_yaml(load_bytes(path, limit), path)


def parse_yaml(data: bytes, path: str | os.PathLike[str]) -> Any:
    """Parses a YAML file; `path` is for the message. Limit the size of the data first.

    Raises:
        BadFile: it is not YAML, or uses a rejected feature.
    """
    with needs_extra("yaml"):
        import yaml

    try:
        text = data.decode()
        problems = find_event_problems(text)
        value: Any = None if problems else yaml.safe_load(text)
        problems = problems or find_duplicate_keys(text) or find_value_problems(value, "")
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # an impossible number or date
        raise BadFile(quote_path(path), [("", truncate(f"is not YAML: {describe_yaml_error(error)}"))]) from error
    if problems:
        raise BadFile(quote_path(path), problems)
    return value


def describe_yaml_error(error: Exception) -> str:
    import yaml

    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return str(error)
    return f"line {error.problem_mark.line + 1}: {error.problem}"


def find_event_problems(text: str) -> list[Problem]:
    """Returns the first reason not to build anything from this text, if any."""
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
                problem = f"more than {MAX_DEPTH} levels" if levels > MAX_DEPTH else ""
            case yaml.CollectionEndEvent():
                levels -= 1
            case _:
                pass
        if isinstance(event, yaml.NodeEvent):
            values += 1
            problem = problem or find_node_problem(event.anchor, getattr(event, "tag", None))
            if values > MAX_VALUES:
                problem = f"more than {MAX_VALUES} values"
        if problem:
            return [("", f"line {line}: {problem}")]
    return []


def find_node_problem(anchor: str | None, tag: str | None) -> str:
    if anchor is not None:
        return "a value that has a name"
    return "" if tag is None else "a value with a tag"


def find_duplicate_keys(text: str) -> list[Problem]:
    """Returns each duplicate key of a table: it is unclear which value is meant."""
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
                location = truncate(join_pointer(pointer, str(key.value)))
                if location in seen:
                    problems.append((location, "stands here twice"))
                seen.add(location)
                waiting.append((location, part))
    return problems


def find_value_problems(value: Any, pointer: str) -> list[Problem]:
    """Returns all values that JSON cannot represent. The number of levels is limited."""
    if is_array(value):
        return [it for number, part in enumerate(value) for it in find_value_problems(part, f"{pointer}/{number}")]
    if is_object(value):
        keys: list[object] = [*value]
        odd = [(pointer, truncate(f"has a key that is no text: {key}")) for key in keys if not isinstance(key, str)]
        members = [(truncate(join_pointer(pointer, str(key))), part) for key, part in value.items()]
        return odd + [it for location, part in members for it in find_value_problems(part, location)]
    return [] if is_json_scalar(value) else [(pointer, "is no text, number, list or table")]


def is_json_scalar(value: object) -> bool:
    match value:
        case None | str() | bool():
            return True
        case int():
            return -(2**63) <= value < 2**63
        case float():
            return isfinite(value)
        case _:
            return False
