"""Loads TOML files; text that would stall or crash tomllib is rejected first.

`tomllib` is not made for hostile files: a key of 60,000 parts takes it 20 seconds, and nested brackets end in a
RecursionError. The text is therefore scanned once first, and rejected where it exceeds these limits. The result has
only values that JSON has, and dates.
"""

from __future__ import annotations

import os
import re
from math import isfinite
from typing import Any, Final

from becket._text import join_pointer, quote_path, truncate
from becket.conversion.files.reader import load_bytes
from becket.conversion.problems import MAX_PROBLEMS, is_object
from becket.errors import BadFile, Problem
from becket.limits import DEFAULT_LIMITS

__all__ = ["MAX_DEPTH", "MAX_KEY_PARTS", "TOKEN", "load_toml", "parse_toml"]

MAX_KEY_PARTS: Final = 16  # of a dotted key; tomllib takes time quadratic in them
MAX_DEPTH: Final = 64  # of arrays and tables, and of brackets; tomllib and other code that walks values recurse

TOKEN: Final = re.compile(
    r"""
    (?P<string>
        \"\"\" (?: [^"\\] | \\. | "{1,2}(?!") )*+ "{3,5}   # up to two quotes may stand before the closing ones
      | ''' (?: [^'] | '{1,2}(?!') )*+ '{3,5}
      | (?!\"\"\") " (?: [^"\\\n] | \\. )*+ "
      | (?!''') ' [^'\n]*+ '
    )
  | (?P<unclosed> ["'] )
  | (?P<comment> \#[^\n]* )
  | (?P<open> [\[{] )
  | (?P<close> [\]}] )
  | (?P<dot> \. )
  | (?P<end> [,=\n] )
    """,
    re.VERBOSE | re.DOTALL,
)
"""The tokens between keys, numbers and blanks. Up to the first mistake in a text they are those of tomllib; what
follows does not matter, since tomllib fails there.
"""


def load_toml(path: str | os.PathLike[str], limit: int = DEFAULT_LIMITS.manifest) -> dict[str, Any]:
    """Loads the table of a TOML file.

    Raises:
        BadFile: it cannot be read, is larger than `limit`, is not TOML, or exceeds the limits of nesting.
    """
    return parse_toml(load_bytes(path, limit), path)


def parse_toml(data: bytes, path: str | os.PathLike[str]) -> dict[str, Any]:
    """Parses a TOML file; `path` is for the message.

    Takes time linear in the size of the data: limit it first.

    Raises:
        BadFile: it is not TOML, or exceeds the limits of nesting. Lists all problems.
    """
    import tomllib

    try:
        text = data.decode()
        problems = find_syntax_problems(text)
        table: dict[str, Any] = {} if problems else tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # not UTF-8, not TOML, a number of 5,000 digits
        raise BadFile(quote_path(path), [("", truncate(f"is not TOML: {error}"))]) from error
    problems = problems or find_value_problems(table)
    if problems:
        raise BadFile(quote_path(path), problems)
    return table


def find_syntax_problems(text: str) -> list[Problem]:
    """Returns the first reason not to pass this text to tomllib, if any. Scans it once."""
    levels = dots = 0
    for token in TOKEN.finditer(text):
        match token.lastgroup:
            case "dot":
                dots += 1
                if dots >= MAX_KEY_PARTS:
                    return [("", f"line {line_number(token)}: a key of more than {MAX_KEY_PARTS} parts")]
            case "open":
                dots = 0
                levels += 1
                if levels > MAX_DEPTH:
                    return [("", f"line {line_number(token)}: more than {MAX_DEPTH} brackets within each other")]
            case "close":
                dots = 0
                levels -= 1
            case "end":
                dots = 0
            case "unclosed":
                return []  # tomllib fails here too, with a better message
            case _:
                pass
    return []


def line_number(token: re.Match[str]) -> int:
    return token.string.count("\n", 0, token.start()) + 1


def find_value_problems(table: dict[str, Any]) -> list[Problem]:
    """Returns all values that JSON cannot represent, and those nested too deeply. Does not recurse."""
    problems: list[Problem] = []
    waiting: list[tuple[str, int, Any]] = [("", 1, table)]
    while waiting and len(problems) < MAX_PROBLEMS:
        pointer, level, value = waiting.pop()
        if isinstance(value, dict | list):
            if level > MAX_DEPTH:
                problems.append((pointer, f"lies deeper than {MAX_DEPTH} levels"))
            else:
                waiting += [
                    (truncate(join_pointer(pointer, name)), level + 1, part) for name, part in iter_children(value)
                ]
        elif isinstance(value, int) and not -(2**63) <= value < 2**63:
            problems.append((pointer, "is larger than 64 bits"))
        elif isinstance(value, float) and not isfinite(value):
            problems.append((pointer, "is no finite number"))
    return problems


def iter_children(value: Any) -> list[tuple[str, Any]]:
    """Returns the members of a table or array, last first."""
    parts = value.items() if is_object(value) else enumerate(value)
    return [(str(name), part) for name, part in parts][::-1]
