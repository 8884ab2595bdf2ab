"""Configuration methods: get, set and subscribe, with revisions.

Each value has a revision, a number that grows with every change. With revisions a client can detect lost updates and
missed changes. Storing values is a store's; resolving the initial ones is the host's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

from msgspec import Meta, Struct

from becket._deprecated import keep_renamed
from becket.contract.names import strip_whitespace
from becket.errors import InvalidParams, Problem
from becket.limits import DEFAULT_LIMITS, Limits
from becket.methods.descriptors import Method, Notification

__all__ = [
    "CONFIG_CHANGED",
    "CONFIG_GET",
    "CONFIG_SET",
    "CONFIG_SUBSCRIBE",
    "ConfigChanged",
    "ConfigGet",
    "ConfigSaved",
    "ConfigSet",
    "ConfigSubscribe",
    "ConfigSubscribed",
    "ConfigValue",
    "check_config_set",
    "find_key_problem",
    "parse_config_key",
]

Revision = Annotated[int, Meta(ge=0, le=2**63 - 1)]


class ConfigGet(Struct, frozen=True):
    """The key to read."""

    key: str


class ConfigValue(Struct, frozen=True, omit_defaults=True):
    """A value and the revision of its last change; null and 0 if it is not set. Some hosts omit revisions."""

    value: str | None
    revision: Revision | None = None


class ConfigSet(Struct, frozen=True, omit_defaults=True):
    """A value to store. With `if_revision`, only if it has not changed since; 0 means that it must not be set yet."""

    key: str
    value: str
    if_revision: Revision | None = None


class ConfigSaved(Struct, frozen=True, omit_defaults=True):
    """Whether the value was stored, and the key's current revision. Not `ok`: another writer was faster."""

    ok: bool
    revision: Revision | None = None


class ConfigSubscribe(Struct, frozen=True, omit_defaults=True):
    """Selects changes: of some keys, or all; after a revision, or after a snapshot."""

    keys: tuple[str, ...] | None = None
    since: Revision | None = None


class ConfigSubscribed(Struct, frozen=True, omit_defaults=True):
    """Each change later than `revision` is sent once, in order.

    Without a snapshot the changes after `since` are sent first. A snapshot replaces all known values: there were
    none, or the changes in between are no longer in the log."""

    ok: bool
    revision: Revision | None = None
    snapshot: dict[str, str] | None = None


class ConfigChanged(Struct, frozen=True):
    """The current value of a key; null if it was removed."""

    key: str
    value: str | None
    revision: Revision


CONFIG_GET: Final = Method(
    "config.get",
    ConfigGet,
    ConfigValue,
    summary="Reads a value of the extension's own configuration.",
)
CONFIG_SET: Final = Method(
    "config.set",
    ConfigSet,
    ConfigSaved,
    requires="config.write",
    summary="Changes a value of the extension's own configuration; responds when it is durable.",
)
CONFIG_SUBSCRIBE: Final = Method(
    "config.subscribe",
    ConfigSubscribe,
    ConfigSubscribed,
    requires="config.subscribe",
    summary="Subscribes to changes of the extension's own configuration.",
)
CONFIG_CHANGED: Final = Notification(
    "config.changed",
    ConfigChanged,
    requires="config.subscribe",
    direction="to-extension",
    summary="A subscribed value has changed.",
)


# -- rules


def parse_config_key(key: str, limits: Limits = DEFAULT_LIMITS) -> str:
    """Returns a key without surrounding white space.

    Raises:
        InvalidParams: the key is invalid.
    """
    problem = find_key_problem(key, limits)
    if problem is not None:
        raise InvalidParams([("/key", problem)])
    return strip_whitespace(key)


def find_key_problem(key: str, limits: Limits = DEFAULT_LIMITS) -> str | None:
    """Returns why a key is invalid, or None."""
    key = strip_whitespace(key)
    if not key:
        return "config key must be non-empty"
    if any(letter in key for letter in "./ "):
        return "config key must not contain dots, slashes, or spaces"
    if any(letter < " " or "\x7f" <= letter < "\xa0" for letter in key):
        return "config key must not contain control characters"
    size = len(key.encode())
    if size > limits.config_key:
        return f"config key too large: {size} bytes (max {limits.config_key})"
    return None


def check_config_set(change: ConfigSet, limits: Limits = DEFAULT_LIMITS) -> None:
    """Raises InvalidParams with all problems of this change, whatever extension makes it."""
    problems: list[Problem] = []
    problem = find_key_problem(change.key, limits)
    if problem is not None:
        problems.append(("/key", problem))
    size = len(change.value.encode())
    if size > limits.config_value:
        problems.append(("/value", f"config value too large: {size} bytes (max {limits.config_value})"))
    if problems:
        raise InvalidParams(problems)


if not TYPE_CHECKING:  # for a type checker, a module with this function has every name
    __getattr__ = keep_renamed(__name__, {"Subscribe": "ConfigSubscribe", "Subscribed": "ConfigSubscribed"})
