"""JSON Schema validation (drafts 2020-12 and 7): compile once, check untrusted values.

Schemas may come from an extension and values from a model: neither is trusted. Nothing is ever fetched, all limits are
named constants in `compiler` and `keywords` (imported when the first schema is compiled), and `format` is not asserted.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from becket.errors import InvalidParams, Problem

if TYPE_CHECKING:
    from becket.json_schema.keywords import FlatObject, SchemaNode

__all__ = ["Validator", "compile_schema", "is_ready", "preload"]


class Validator:
    """A compiled schema. It has no state besides, and may be shared between threads."""

    __slots__ = ("_flat", "_is_seen", "_root")

    def __init__(self, root: SchemaNode) -> None:
        self._root = root
        self._flat: FlatObject | None = None
        self._is_seen = False  # whether `_flat` was built: most tools of a host are never called

    def find_problems(self, value: object) -> list[Problem]:
        """Returns all problems of a JSON value, each with its JSON pointer, truncated to `MAX_PROBLEMS`.

        A value that takes too many steps to check has that as its problem."""
        from becket.json_schema.keywords import find_problems

        return find_problems(self._root, value)

    def find_problems_within_budget(self, value: object) -> list[Problem] | None:
        """Returns the problems within some milliseconds, or None if it takes longer and should run in a thread."""
        if self._flat is not None and self._flat.fits(value):
            return []
        from becket.json_schema.keywords import (
            SHORT_BUDGET,
            BudgetExceeded,
            StepBudget,
            build_flat_object,
            collect_problems,
        )

        if not self._is_seen:
            self._is_seen, self._flat = True, build_flat_object(self._root)
        try:
            return collect_problems(self._root, value, StepBudget(SHORT_BUDGET))
        except BudgetExceeded:
            return None

    def check(self, value: object) -> None:
        """Checks that a value fits.

        Raises:
            InvalidParams: it does not fit; lists all problems, each with its JSON pointer.
        """
        if problems := self.find_problems(value):
            raise InvalidParams(problems)


def compile_schema(schema: object, *, trusted: bool = False) -> Validator:
    """Compiles a copy of a schema.

    The patterns of a `trusted` schema run on Python's `re`, without a bound on their time; those of any other on
    google-re2, in linear time.

    Raises:
        BadSchema: the schema is invalid or not safe to apply; lists all problems, each with its JSON pointer.
    """
    from becket.json_schema.compiler import compile_root

    return Validator(compile_root(schema, trusted=trusted))


@cache
def preload() -> None:
    """Imports and loads all that the first schema needs. Takes about as long as an extension needs to start."""
    compile_schema({}).find_problems(None)


def is_ready() -> bool:
    """Returns whether `preload` has nothing left to do."""
    return preload.cache_info().currsize > 0
