"""What the program `env` sets for its command: `env PYTHONPATH=lib python3 main.py`.

A command is parsed by its words alone, as GNU and BSD `env` do. What a script or another shell sets is not seen; the
consent prompt shows the command itself too.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

__all__ = ["EnvCommand", "find_env_variables", "split_env_command"]

PROGRAM: Final = "env"
ASSIGNMENT: Final = re.compile(r"([^=-][^=]*)=(.*)", re.DOTALL)  # `env` accepts any name
WITH_VALUE: Final = frozenset({"-C", "-P", "-u", "--chdir", "--unset"})  # their value may be the next word
SPLIT: Final = ("-S", "--split-string")
MAX_SPLITS: Final = 8  # a text that contains `-S` again and again


class EnvCommand(Struct, frozen=True):
    """A command of `env`: what it sets, what it runs, and whether it has other options."""

    variables: dict[str, str]
    command: tuple[str, ...]
    has_options: bool


def split_env_command(command: Sequence[str]) -> EnvCommand | None:
    """Returns what a command of `env` sets and runs; None for any other command."""
    if not command or not is_env(command[0]):
        return None
    variables: dict[str, str] = {}
    words = [*command[1:]]
    has_options, splits = False, 0
    while words:
        word = words.pop(0)
        if match := ASSIGNMENT.fullmatch(word):
            variables[match[1]] = match[2]
            continue
        if word == "--" or not word.startswith("-"):
            return EnvCommand(variables, tuple(words if word == "--" else (word, *words)), has_options)
        has_options = True
        if word in WITH_VALUE:
            del words[:1]
        elif (text := split_text(word, words)) is not None and splits < MAX_SPLITS:
            splits += 1
            words[:0] = split_words(text)
    return EnvCommand(variables, (), has_options)


def find_env_variables(command: Sequence[str]) -> dict[str, str]:
    """Returns all variables that `env` sets in a command, also after other programs: `nice env A=1 notes`."""
    found: dict[str, str] = {}
    for part in parts_from_env(command):
        if (one := split_env_command(part)) is not None:
            found |= one.variables
    return found


def parts_from_env(command: Sequence[str]) -> Iterator[Sequence[str]]:
    for place, word in enumerate(command):
        if is_env(word):
            yield command[place:]


def is_env(word: str) -> bool:
    return os.path.basename(word) == PROGRAM


def split_text(word: str, words: list[str]) -> str | None:
    """Returns the text that `-S` splits into words, and removes it if it is a word of its own; None without `-S`."""
    short, long = SPLIT
    if word in SPLIT:
        return words.pop(0) if words else ""
    if word.startswith(f"{long}="):
        return word.partition("=")[2]
    letters, found, text = word.partition(short[1])
    return text or (words.pop(0) if words else "") if found and re.fullmatch(r"-[iv0]*", letters) else None


def split_words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:  # an unclosed quote: `env` fails with it
        return text.split()
