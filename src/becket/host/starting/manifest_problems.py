"""The problems of a `becket.toml`: rules beyond types, a sentence for each pattern, and hints for the author."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from msgspec import Struct

from becket._text import join_pointer, truncate
from becket.contract.hooks import HOOKS, HookKind, HookMatch, find_hook_problem
from becket.contract.json_narrowing import is_array, is_object
from becket.contract.names import find_id_problem, strip_whitespace
from becket.conversion.suggestions import did_you_mean, find_nearest
from becket.dialects import DIALECTS
from becket.errors import Problem
from becket.host.restart import RestartStrategy
from becket.host.starting.manifest import (
    ARGUMENT,
    CONFIG_PYTHON_TYPES,
    ID,
    KEY,
    PERMISSION,
    PROGRAM,
    SERVER,
    TEXT,
    VARIABLE,
    VERSION,
    CommandEntry,
    ConfigEntry,
    ConfigType,
    Environment,
    HookEntry,
    InputMatch,
    LimitOverrides,
    Manifest,
    Requirements,
    RestartOverrides,
    SettingsCategory,
    SettingsField,
    SidecarEntry,
)
from becket.permissions.names import PERMISSIONS, RESERVED_PERMISSIONS

__all__ = ["explain_patterns", "find_misspellings", "find_rule_problems", "hint_for"]


def explain_patterns(problems: list[Problem]) -> list[Problem]:
    """Returns the problems with a sentence in the place of each pattern that a text does not match."""
    return [
        (pointer, PATTERN_MESSAGES.get(message.removeprefix("is no key: "), message)) for pointer, message in problems
    ]


PATTERN_MESSAGES: Final = {
    truncate(f"expected `str` matching regex {pattern!r}"): sentence
    for pattern, sentence in {
        ID: "is no id: 1 to 64 of `a-z 0-9 . _ -`, the first a letter or digit, no two dots together",
        VERSION: "is no semantic version such as `1.2.0`",
        ARGUMENT: "must not hold a zero byte",
        PERMISSION: "is no name of a permission such as `memory.read`",
        PROGRAM: "is no name of a program: it must not be empty or hold a slash",
        KEY: "is no key: it must not be empty or hold dots, slashes, white space or control characters",
        VARIABLE: "is no name of a variable",
        SERVER: "is no name of a server: 1 to 32 of `a-z 0-9 _ -`, the first a letter",
        TEXT: "must not be blank",
    }.items()
}


# -- rules beyond types


def find_rule_problems(table: dict[str, Any]) -> Iterator[Problem]:
    """Yields the rule violations of a table of any shape; members of a wrong type are skipped."""
    yield from find_permission_problems(table.get("permissions"), "/permissions")
    yield from find_duplicates(table.get("permissions"), "/permissions")
    yield from find_duplicates(table.get("after"), "/after")
    for pointer, entry in tables_of(table.get("capabilities"), "/capabilities"):
        yield from find_capability_problems(entry, pointer)
    for pointer, entry in tables_of(table.get("commands"), "/commands"):
        yield from find_name_problems(entry.get("name"), f"{pointer}/name")
    for pointer, entry in tables_of(table.get("settings"), "/settings"):
        yield from find_name_problems(entry.get("id"), f"{pointer}/id")
    for pointer, entry in tables_of(table.get("hooks"), "/hooks"):
        yield from find_hook_problems(entry, pointer)
    for pointer, entry in tables_of(table.get("config"), "/config"):
        yield from find_config_problems(entry, pointer)


def find_misspellings(table: dict[str, Any]) -> Iterator[Problem]:
    """Yields near misses of names that a host checks later, so that all errors are reported together.

    Alone they are no problem of a manifest, since a host may have permissions and dialects of its own."""
    for place, name in texts_of(table.get("permissions"), "/permissions"):
        if name not in PERMISSIONS | RESERVED_PERMISSIONS and did_you_mean(name, PERMISSIONS):
            yield place, f"is no permission: {truncate(name)}"
    dialect = table.get("dialect")
    if isinstance(dialect, str) and dialect not in DIALECTS and did_you_mean(dialect, DIALECTS):
        yield "/dialect", f"is no dialect: {truncate(dialect)}"


def tables_of(value: Any, pointer: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the tables in an array or in a table, each with its pointer."""
    parts: Iterable[tuple[Any, Any]] = ()
    if is_object(value):
        parts = value.items()
    elif is_array(value):
        parts = enumerate(value)
    return ((join_pointer(pointer, str(name)), part) for name, part in parts if is_object(part))


def texts_of(value: Any, pointer: str) -> Iterator[tuple[str, str]]:
    elements: Iterable[Any] = value if is_array(value) else ()
    return ((f"{pointer}/{index}", part) for index, part in enumerate(elements) if isinstance(part, str))


def find_permission_problems(value: Any, pointer: str) -> Iterator[Problem]:
    for place, name in texts_of(value, pointer):
        if name in RESERVED_PERMISSIONS:
            yield place, f"is reserved and never granted: {name}"


def find_duplicates(value: Any, pointer: str) -> Iterator[Problem]:
    seen: set[str] = set()
    for place, text in texts_of(value, pointer):
        if text in seen:
            yield place, f"stands here twice: {truncate(text)}"
        seen.add(text)


def find_capability_problems(entry: dict[str, Any], pointer: str) -> Iterator[Problem]:
    for name in ("kind", "name"):
        if isinstance(text := entry.get(name), str) and not strip_whitespace(text):
            yield f"{pointer}/{name}", "must not be blank"
    for place, name in texts_of(entry.get("permissions"), f"{pointer}/permissions"):
        if name not in PERMISSIONS:
            yield place, f"is no permission: {truncate(name)}"


def find_name_problems(name: Any, pointer: str) -> Iterator[Problem]:
    problem = find_id_problem(strip_whitespace(name)) if isinstance(name, str) else None
    if problem is not None:
        yield pointer, problem.sentence


def find_hook_problems(entry: dict[str, Any], pointer: str) -> Iterator[Problem]:
    hook, tool = entry.get("hook"), entry.get("tool")
    if isinstance(hook, str) and hook in HOOKS and tool is not None:
        problem = find_hook_problem(hook, HookMatch(tool="any"))
        if problem is not None:
            yield f"{pointer}/tool", problem
    if isinstance(hook, str) and hook in HOOKS and entry.get("required") is True:
        problem = find_hook_problem(hook, required=True)
        if problem is not None:
            yield f"{pointer}/required", problem


def find_config_problems(entry: dict[str, Any], pointer: str) -> Iterator[Problem]:
    kind = entry.get("type")
    if "default" in entry:
        if entry.get("secret") is True:
            yield f"{pointer}/default", "a secret has no default"
        elif (
            isinstance(kind, str)
            and kind in CONFIG_PYTHON_TYPES
            and type(entry["default"]) not in CONFIG_PYTHON_TYPES[kind]
        ):  # True is an int
            yield f"{pointer}/default", f"is not of the type `{kind}`"
    if "choices" in entry and isinstance(kind, str) and kind in CONFIG_PYTHON_TYPES and kind != ConfigType.STRING:
        yield f"{pointer}/choices", "only a string has choices"


# -- hints


def hint_for(problem: Problem) -> str:
    """Returns what to do about a problem of a `becket.toml`, if that is more than the problem itself says."""
    pointer, message = problem
    if message == "is unknown":
        return hint_for_unknown(pointer.rpartition("/")[2])
    if (misspelt := MISSPELT.fullmatch(message)) and (meant := did_you_mean(misspelt[misspelt.lastindex or 0], VALUES)):
        return meant
    if pointer == "/manifest":
        return "get a version of the extension and of the host that fit together"
    if pointer == "/command" and "got `str`" in message:
        return 'write a list of the program and its arguments: `["python3", "notes.py"]`; there is no shell'
    return HINTS.get(pointer, "")


HINTS: Final = {
    "/id": "give it an id such as `acme.notes`",
    "/version": 'give it a version: `version = "0.1.0"`',
    "/command": 'set how it is started: `command = ["python3", "notes.py"]`',
}

# Values that are one of a few, and how their problems name an invalid one.
VALUES: Final = (*HookKind, *ConfigType, *RestartStrategy, *PERMISSIONS, *DIALECTS)
MISSPELT: Final = re.compile(r"invalid enum value '(.*)'|is no (?:permission|dialect): (.*)")


def hint_for_unknown(name: str) -> str:
    if name in MEMBER_TABLES:
        return f"`{name}` belongs to {MEMBER_TABLES[name]}"
    nearest = find_nearest(name, MEMBER_TABLES)
    return f"did you mean `{nearest}` of {MEMBER_TABLES[nearest]}?" if nearest else "put your own members under `[x]`"


def build_member_tables() -> dict[str, str]:
    """Returns for each name of a member the table that it belongs to."""
    tables: dict[str, type[Struct]] = {
        "the manifest itself": Manifest,
        "`[requires]`": Requirements,
        "`[environment]`": Environment,
        "`[restart]`": RestartOverrides,
        "`[limits]`": LimitOverrides,
        "`[sidecar]`": SidecarEntry,
        "an entry of `[config]`": ConfigEntry,
        "an entry of `[[hooks]]`": HookEntry,
        "`match` of an entry of `[[hooks]]`": InputMatch,
        "an entry of `[[commands]]`": CommandEntry,
        "an entry of `[[settings]]`": SettingsCategory,
        "an entry of `fields` of `[[settings]]`": SettingsField,
    }
    homes: dict[str, str] = {}
    for home, table in tables.items():
        for name in table.__struct_encode_fields__:
            homes.setdefault(name, home)
    return homes


MEMBER_TABLES: Final = build_member_tables()
