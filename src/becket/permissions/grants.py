"""The grants of one extension: its permissions, and those that it is denied."""

from __future__ import annotations

from collections.abc import Iterable, Set as AbstractSet

import msgspec
from msgspec import Struct

from becket.errors import BadGrants
from becket.permissions.names import PERMISSIONS, find_name_problems, parse_permission

__all__ = ["Grants"]


class GrantsTable(Struct, forbid_unknown_fields=True):  # `denny = [...]` must not pass for a table that denies nothing
    allow: list[str] = []
    deny: list[str] = []
    digest: str | None = None  # of the extension's files; checked by the host


class Grants(Struct, frozen=True):
    """The permissions of one extension, and those that it is denied. A name in both is denied."""

    allow: frozenset[str] = frozenset()
    deny: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        members: dict[str, object] = {"allow": self.allow, "deny": self.deny}
        for member, names in members.items():
            if isinstance(names, str):  # in which `in` would find parts of a name
                raise TypeError(f"`{member}` must be a list of names, got str")

    @classmethod
    def of(cls, allow: Iterable[str], deny: Iterable[str] = (), *, known: AbstractSet[str] = PERMISSIONS) -> Grants:
        """Returns grants of these names.

        Raises:
            UnknownPermission, ReservedPermission: of the first name that cannot be granted.
        """
        if isinstance(allow, str) or isinstance(deny, str):
            raise TypeError("`permissions` must be a list of names, got str")
        return cls(
            frozenset(parse_permission(name, known) for name in allow),
            frozenset(parse_permission(name, known) for name in deny),
        )

    @classmethod
    def parse(cls, value: object, *, known: AbstractSet[str] = PERMISSIONS) -> Grants:
        """Returns grants from their file format: a list of names, or a table of `allow` and `deny`.

        Raises:
            BadGrants: they cannot be decoded, or name what cannot be granted. Lists all problems.
        """
        try:
            written: list[str] | GrantsTable = msgspec.convert(value, list[str] | GrantsTable)
        except msgspec.ValidationError as error:
            from becket.conversion.problems import find_problems

            raise BadGrants(find_problems(value, list[str] | GrantsTable)) from error
        table = GrantsTable(written) if isinstance(written, list) else written
        above = "" if isinstance(written, list) else "/allow"
        problems = [*find_name_problems(table.allow, above, known), *find_name_problems(table.deny, "/deny", known)]
        if problems:
            raise BadGrants(problems)
        return cls(frozenset(table.allow), frozenset(table.deny))

    def allows(self, permission: str) -> bool:
        """Returns whether the permission is granted and not denied."""
        return permission in self.allow and permission not in self.deny
