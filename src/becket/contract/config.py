"""Configuration methods: get, set and subscribe, with revisions.

Each value has a revision, a number that grows with every change of anything; it makes lost updates and missed changes
impossible for whoever uses it. Keeping the values is a store's; resolving the first ones is the host's.
"""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta, Struct

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
    """Which value is wanted."""

    key: str


class ConfigValue(Struct, frozen=True, omit_defaults=True):
    """A value and the revision of its last change; null and 0 where there is none. Not every host tells revisions."""

    value: str | None
    revision: Revision | None = None


class ConfigSet(Struct, frozen=True, omit_defaults=True):
    """A value to keep. With `if_revision` only if nobody has changed it since; 0 means that there must be none yet."""

    key: str
    value: str
    if_revision: Revision | None = None


class ConfigSaved(Struct, frozen=True, omit_defaults=True):
    """Whether the value was kept, and the revision that the key has now. Not `ok`: somebody else was faster."""

    ok: bool
    revision: Revision | None = None


class ConfigSubscribe(Struct, frozen=True, omit_defaults=True):
    """Which changes are wanted: those of some keys, or all; those after a revision, or after a snapshot."""

    keys: tuple[str, ...] | None = None
    since: Revision | None = None


class ConfigSubscribed(Struct, frozen=True, omit_defaults=True):
    """From now on each change later than `revision` is told once, in order.

    Without a snapshot the changes after `since` are told first. A snapshot replaces all that is known: none was
    known, or the changes in between are forgotten.
    """

    ok: bool
    revision: Revision | None = None
    snapshot: dict[str, str] | None = None


class ConfigChanged(Struct, frozen=True):
    """A key has this value now; null when it was removed."""

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
    summary="Changes a value of the extension's own configuration; answered when it is safe.",
)
CONFIG_SUBSCRIBE: Final = Method(
    "config.subscribe",
    ConfigSubscribe,
    ConfigSubscribed,
    requires="config.subscribe",
    summary="Asks to be told of each change of the extension's own configuration.",
)
CONFIG_CHANGED: Final = Notification(
    "config.changed",
    ConfigChanged,
    requires="config.subscribe",
    direction="to-extension",
    summary="Tells a subscriber that a value has changed.",
)


# -- rules


def parse_config_key(key: str, limits: Limits = DEFAULT_LIMITS) -> str:
    """Returns a key without the white space around it.

    Raises:
        InvalidParams: it can be no key.
    """
    problem = find_key_problem(key, limits)
    if problem is not None:
        raise InvalidParams([("/key", problem)])
    return strip_whitespace(key)


def find_key_problem(key: str, limits: Limits = DEFAULT_LIMITS) -> str | None:
    """Returns why this can be no key, None if it can."""
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
    """Raises InvalidParams with all that is wrong with this change, whoever wants it."""
    problems: list[Problem] = []
    problem = find_key_problem(change.key, limits)
    if problem is not None:
        problems.append(("/key", problem))
    size = len(change.value.encode())
    if size > limits.config_value:
        problems.append(("/value", f"config value too large: {size} bytes (max {limits.config_value})"))
    if problems:
        raise InvalidParams(problems)
