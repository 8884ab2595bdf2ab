"""Resolves the initial configuration values of an extension and where each comes from. Pure.

The first source with a value wins: a variable named after the extension and the key, in becket's form or in that of its
system; the variable that the manifest names; the stored value; the host's configuration; the default. Stored values are
in the store, and secrets in the file of secrets: a secret is never read from the store, and never shown.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct

from becket._text import join_pointer, truncate
from becket.dialects.host_defaults import STANDARD_HOST_DEFAULTS, HostDefaults
from becket.errors import Problem
from becket.host.redaction import HIDDEN
from becket.host.starting.manifest import CONFIG_PYTHON_TYPES, ConfigEntry, ConfigType

__all__ = ["ConfigScalar", "ConfigSource", "ResolvedConfig", "resolve_config", "system_variable_for", "variable_for"]

VARIABLE_PREFIX: Final = "BECKET_CONFIG"
YES: Final = frozenset({"1", "on", "true", "yes"})
NO: Final = frozenset({"0", "false", "no", "off"})

ConfigScalar = str | int | float | bool


class ConfigSource(StrEnum):
    """Where a value comes from."""

    VARIABLE = "variable"  # of the host's environment
    SECRETS = "secrets"  # stored, apart from the store
    STORE = "store"  # stored
    HOST = "host"  # its configuration
    DEFAULT = "default"


class ResolvedConfig(Struct, frozen=True):
    """The values, the source of each, which are secret, and the problems. Its repr hides secrets.

    `unknown` are keys of the host's configuration that the extension does not have."""

    values: dict[str, ConfigScalar] = {}
    sources: dict[str, ConfigSource] = {}
    secrets: frozenset[str] = frozenset()
    problems: tuple[Problem, ...] = ()
    unknown: tuple[str, ...] = ()

    def redacted(self) -> dict[str, ConfigScalar]:
        """Returns the values for people to see, secrets hidden."""
        return {key: HIDDEN if key in self.secrets else value for key, value in self.values.items()}

    def __repr__(self) -> str:
        return f"<ResolvedConfig {self.redacted()}, {len(self.problems)} problems>"


def variable_for(extension: str, key: str, prefix: str = VARIABLE_PREFIX) -> str | None:
    """Returns the variable with the highest precedence for a value; None if its name is ambiguous.

    Two underscores separate the id from the key: else `acme` with the key `notes_token` would get the token of
    `acme-notes`."""
    parts = [part.upper().replace("-", "_").replace(".", "_") for part in (extension, key)]
    if any("__" in part or part.startswith("_") or part.endswith("_") or not part.isascii() for part in parts):
        return None
    return "__".join([prefix, *parts])


def resolve_config(
    extension: str,
    entries: Mapping[str, ConfigEntry],
    *,
    variables: Mapping[str, str],
    stored: Mapping[str, str] | None = None,
    secrets: Mapping[str, str] | None = None,
    configured: Mapping[str, object] | None = None,
    defaults: HostDefaults = STANDARD_HOST_DEFAULTS,
    without: Collection[str] = (),
) -> ResolvedConfig:
    """Returns the values of all keys that a manifest names; a key without a value is left out.

    `defaults` are the host defaults of the extension's dialect; variables of its system that are named in `without` are
    not read."""
    values: dict[str, ConfigScalar] = {}
    sources: dict[str, ConfigSource] = {}
    problems: list[Problem] = []
    for key, entry in entries.items():
        system = system_variable_for(extension, key, defaults)
        named = (variable_for(extension, key), None if system in without else system, entry.env)
        names = [name for name in named if name]
        was_set = (secrets if entry.secret else stored) or {}
        for source, candidate_value in candidate_values(key, entry, names, variables, was_set, configured or {}):
            is_typed = defaults.has_typed_config
            value = read_value(entry.type, candidate_value) if source in TEXT_SOURCES and is_typed else candidate_value
            problem = find_value_problem(entry, value) if is_typed else None
            if problem is not None:
                problems.append((join_pointer("", key), f"{problem}, from the {source}"))
            else:
                values[key], sources[key] = value, source
            break
        else:
            if entry.required:
                problems.append(
                    (join_pointer("", key), f"is required, and {describe_sources(entry, names)} is not set")
                )
    return ResolvedConfig(
        values,
        sources,
        frozenset(key for key, entry in entries.items() if entry.secret),
        tuple(problems),
        tuple(sorted(set(configured or ()) - set(entries))),
    )


TEXT_SOURCES: Final = (ConfigSource.VARIABLE, ConfigSource.SECRETS, ConfigSource.STORE)


def system_variable_for(extension: str, key: str, defaults: HostDefaults) -> str | None:
    """Returns the variable that hosts of the extension's system read for a key; another extension's may be the same."""
    id, name = (part.upper().replace("-", "_") for part in (extension, key))
    return defaults.config_variable_template.format(id=id, key=name) or None


def candidate_values(
    key: str,
    entry: ConfigEntry,
    names: Sequence[str],
    variables: Mapping[str, str],
    was_set: Mapping[str, str],
    configured: Mapping[str, object],
) -> Iterator[tuple[ConfigSource, Any]]:
    """Yields each value of a key, by precedence. An empty variable is none."""
    for name in names:
        if variables.get(name):
            yield ConfigSource.VARIABLE, variables[name]
    if key in was_set:
        yield ConfigSource.SECRETS if entry.secret else ConfigSource.STORE, was_set[key]
    if key in configured:
        yield ConfigSource.HOST, configured[key]
    if entry.default is not UNSET:
        yield ConfigSource.DEFAULT, entry.default


def read_value(type: ConfigType, text: str) -> Any:
    """Returns a text as a value of this type; the text itself if it is not one."""
    if type is ConfigType.STRING:
        return text
    if type is ConfigType.BOOLEAN:
        word = text.strip().lower()
        return True if word in YES else False if word in NO else text
    try:
        return msgspec.json.decode(text.strip().encode(), type=int if type is ConfigType.INTEGER else float)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return text


def find_value_problem(entry: ConfigEntry, value: object) -> str | None:
    """Returns the problem of a value, without the value itself: it may be secret."""
    if type(value) not in CONFIG_PYTHON_TYPES[entry.type]:
        return f"has a value that is not a {entry.type}"
    if entry.choices and value not in entry.choices:
        return f"has a value that is none of: {truncate(', '.join(entry.choices))}"
    return None


def describe_sources(entry: ConfigEntry, names: Sequence[str]) -> str:
    name = entry.env or (names[0] if names else "")
    return f"`{name}`" if name else "it"
