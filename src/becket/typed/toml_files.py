"""The one reader of TOML files: manifests, grants, the configuration of a host.

`tomllib` is not made for files that an attacker wrote: a key of 60,000 parts keeps it busy for 20 seconds, and brackets
within brackets end in a RecursionError. So the text is looked through first, once, and refused where it is unlike any
file that a person writes. What comes out are values that JSON has too, and dates.
"""

from __future__ import annotations

import os
import re
from math import isfinite
from typing import Any, Final

from becket.errors import BadFile, Problem
from becket.limits import DEFAULT_LIMITS
from becket.typed.problems import MOST_PROBLEMS, below, cut, is_object
from becket.typed.small_files import read_small_file, show_path

__all__ = ["MOST_LEVELS", "MOST_PARTS", "TOKEN", "load_toml", "parse_toml"]

MOST_PARTS: Final = 16  # of a dotted key; tomllib needs time for the square of them
MOST_LEVELS: Final = 64  # of arrays and tables, and of brackets; tomllib and all who walk through values recurse

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
"""What stands between keys, numbers and blanks. Up to the first mistake in a text it finds what tomllib finds there;
what it finds behind that does not matter, since tomllib gives up."""


def load_toml(path: str | os.PathLike[str], limit: int = DEFAULT_LIMITS.manifest) -> dict[str, Any]:
    """Returns the table that a TOML file holds.

    Raises:
        BadFile: it cannot be read, is larger than `limit`, is no TOML, or unlike any that a person writes.
    """
    return parse_toml(read_small_file(path, limit), path)


def parse_toml(data: bytes, path: str | os.PathLike[str]) -> dict[str, Any]:
    """Returns the table that the bytes of a TOML file hold; `path` is for the message.

    The time it takes grows with the bytes alone: limit them first.

    Raises:
        BadFile: they are no TOML, or unlike any that a person writes. All problems together.
    """
    import tomllib

    try:
        text = data.decode()
        problems = find_odd_shape(text)
        table: dict[str, Any] = {} if problems else tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # not UTF-8, not TOML, a number of 5,000 digits
        raise BadFile(show_path(path), [("", cut(f"is not TOML: {error}"))]) from error
    problems = problems or find_odd_values(table)
    if problems:
        raise BadFile(show_path(path), problems)
    return table


def find_odd_shape(text: str) -> list[Problem]:
    """Returns the first reason not to let tomllib see this text, if there is one. Looks at each character once."""
    levels = dots = 0
    for token in TOKEN.finditer(text):
        match token.lastgroup:
            case "dot":
                dots += 1
                if dots >= MOST_PARTS:
                    return [("", f"line {line_of(token)}: a key of more than {MOST_PARTS} parts")]
            case "open":
                dots = 0
                levels += 1
                if levels > MOST_LEVELS:
                    return [("", f"line {line_of(token)}: more than {MOST_LEVELS} brackets within each other")]
            case "close":
                dots = 0
                levels -= 1
            case "end":
                dots = 0
            case "unclosed":
                return []  # tomllib gets no further either, and says it better
            case _:
                pass
    return []


def line_of(token: re.Match[str]) -> int:
    return token.string.count("\n", 0, token.start()) + 1


def find_odd_values(table: dict[str, Any]) -> list[Problem]:
    """Returns all values that have no form in JSON, and those that lie too deep. It does not recurse."""
    problems: list[Problem] = []
    waiting: list[tuple[str, int, Any]] = [("", 1, table)]
    while waiting and len(problems) < MOST_PROBLEMS:
        pointer, level, value = waiting.pop()
        if isinstance(value, dict | list):
            if level > MOST_LEVELS:
                problems.append((pointer, f"lies deeper than {MOST_LEVELS} levels"))
            else:
                waiting += [(step(pointer, name), level + 1, part) for name, part in parts_of(value)]
        elif isinstance(value, int) and not -(2**63) <= value < 2**63:
            problems.append((pointer, "is larger than 64 bits"))
        elif isinstance(value, float) and not isfinite(value):
            problems.append((pointer, "is no finite number"))
    return problems


def parts_of(value: Any) -> list[tuple[str, Any]]:
    """Returns what is in a table or an array, the last first."""
    parts = value.items() if is_object(value) else enumerate(value)
    return [(str(name), part) for name, part in parts][::-1]


def step(pointer: str, name: str) -> str:
    return cut(below(pointer, name))  # cut each time: a name of 30 KB may have a thousand members
