"""How a host treats the programs of a dialect unless it is told otherwise: its times, its restarts, its environment.

Plain data. Some systems do things that hurt (start a program anew because a tool answered with an error); those are
switches here, with a name, and off.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

from msgspec import Struct

__all__ = ["DEFAULT_HABITS", "Habits", "Inherited"]


class Inherited(Enum):
    """Which of the host's own variables a program gets besides those that are set for it."""

    FEW = "those that every program needs"
    HARMLESS = "all but those with the name of a secret"
    ALL = "all of them"


class Habits(Struct, frozen=True, kw_only=True):
    """What a system does around the wire. `limits`, `timeouts`, `restart` and `breaker` are members of the classes of
    these names, and take the place of their defaults; `limits` on both sides of a link, `host_limits` on the host's.

    `works_in_root` says whether a program runs in its own folder; otherwise it runs where its host does. A program that
    `starts_when_needed` is not started before the first call. `inherited` says which of the host's variables it gets;
    where a system has a list of its own, these are its `variables`, and no others."""

    limits: Mapping[str, Any] = {}
    host_limits: Mapping[str, Any] = {}
    timeouts: Mapping[str, Any] = {}
    restart: Mapping[str, Any] = {}
    breaker: Mapping[str, Any] = {}
    inherited: Inherited = Inherited.FEW
    variables: tuple[str, ...] = ()
    works_in_root: bool = True
    starts_when_needed: bool = False
    # what hurts
    restarts_on_errors: bool = False
    kills_before_goodbye: bool = False


DEFAULT_HABITS = Habits()
