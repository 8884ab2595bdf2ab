"""The grants of one extension: which permissions it was given, and which it must not have."""

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
    digest: str | None = None  # of the extension's files; the host's business


class Grants(Struct, frozen=True):
    """The permissions that one extension was given, and those that it must not have. What is in both is denied."""

    allow: frozenset[str] = frozenset()
    deny: frozenset[str] = frozenset()

    @classmethod
    def of(cls, allow: Iterable[str], deny: Iterable[str] = (), *, known: AbstractSet[str] = PERMISSIONS) -> Grants:
        """Returns grants of these names.

        Raises:
            UnknownPermission, ReservedPermission: of the first name that cannot be granted.
        """
        if isinstance(allow, str) or isinstance(deny, str):
            raise TypeError("permissions are given as a list of names, never as one text")
        return cls(
            frozenset(parse_permission(name, known) for name in allow),
            frozenset(parse_permission(name, known) for name in deny),
        )

    @classmethod
    def parse(cls, value: object, *, known: AbstractSet[str] = PERMISSIONS) -> Grants:
        """Returns grants as somebody has written them down: a list of names, or a table of `allow` and `deny`.

        Raises:
            BadGrants: they cannot be read, or name what cannot be granted. All problems together.
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
        """Returns whether the permission is given and not denied."""
        return permission in self.allow and permission not in self.deny
