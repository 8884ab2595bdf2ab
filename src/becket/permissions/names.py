"""The names of permissions: those of the contract, and which of them can be granted."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Final

from becket.errors import Problem, ReservedPermission, UnknownPermission

__all__ = ["PERMISSIONS", "RESERVED_PERMISSIONS", "find_name_problems", "parse_permission"]

PERMISSIONS: Final = frozenset(
    {
        "audio.input",
        "audio.output",
        "config.subscribe",
        "config.write",
        "context_providers.register",
        "memory.read",
        "memory.write",
        "privacy.llm_content",
        "providers.register",
        "session.drive",
        "session.lifecycle",
        "tools.intercept",
        "tools.register",
        "tools.transform_output",
    }
)
"""Every permission of the contract that can be granted."""

RESERVED_PERMISSIONS: Final = frozenset({"tools.override"})
"""Names that the contract reserves: they cannot be granted."""


def parse_permission(name: str, known: AbstractSet[str] = PERMISSIONS) -> str:
    """Returns the name of a permission that can be granted. `known` includes a host's own permissions.

    Raises:
        ReservedPermission: the contract reserves the name.
        UnknownPermission: no permission has this name.
    """
    if name in RESERVED_PERMISSIONS:
        raise ReservedPermission(name)
    if name not in known:
        raise UnknownPermission(name)
    return name


def find_name_problems(names: list[str], above: str, known: AbstractSet[str]) -> list[Problem]:
    problems: list[Problem] = []
    for index, name in enumerate(names):
        try:
            parse_permission(name, known)
        except (UnknownPermission, ReservedPermission) as error:
            problems.append((f"{above}/{index}", str(error)))
    return problems
