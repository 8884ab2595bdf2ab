"""JSON Schema validation (drafts 2020-12 and 7): compile once, check untrusted values.

Drafts 2020-12 and 7. A schema may come from an extension, and the value from a model: both are hostile until proven
otherwise. Nothing is ever fetched, every limit has a name (in `compiler` and `keywords`, which are imported when the
first schema is compiled), and `format` is not asserted.
"""

from __future__ import annotations

from enum import Enum
from functools import cache
from typing import TYPE_CHECKING

from becket.errors import InvalidParams, Problem

if TYPE_CHECKING:
    from becket.json_schema.keywords import FlatObject, SchemaNode

__all__ = ["SchemaMode", "Validator", "compile_schema", "is_ready", "preload"]


class SchemaMode(Enum):
    """What to do with a value that may not fit its schema."""

    OFF = "off"
    """Do not look."""
    WARN = "warn"
    """Say what is wrong, and go on."""
    ENFORCE = "enforce"
    """Refuse it."""


class Validator:
    """One compiled schema. It holds nothing of the values that it has seen: threads may share it."""

    __slots__ = ("_flat", "_is_seen", "_root")

    def __init__(self, root: SchemaNode) -> None:
        self._root = root
        self._flat: FlatObject | None = None
        self._is_seen = False  # whether `_flat` is looked for: most tools of a host are never called

    def find_problems(self, value: object) -> list[Problem]:
        """Returns all that is wrong with a JSON value, each with its JSON pointer; empty when nothing is.

        More than a page of it is cut. A value that takes too many steps to check has that as its problem."""
        from becket.json_schema.keywords import find_problems

        return find_problems(self._root, value)

    def find_problems_within_budget(self, value: object) -> list[Problem] | None:
        """Returns the same within some milliseconds, or None: it takes longer, and belongs into a thread."""
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
        """Does nothing for a value that fits.

        Raises:
            InvalidParams: it does not fit; all problems, each with its JSON pointer.
        """
        if problems := self.find_problems(value):
            raise InvalidParams(problems)


def compile_schema(schema: object, *, trusted: bool = False) -> Validator:
    """Returns a validator for a schema, of which it keeps a copy.

    A schema that is `trusted` is your own: its patterns run on Python's `re`, in whatever time that takes. Those of any
    other run on google-re2, in linear time.

    Raises:
        BadSchema: it is no schema, or one that is not safe to apply; all problems, each with its JSON pointer.
    """
    from becket.json_schema.compiler import compile_root

    return Validator(compile_root(schema, trusted=trusted))


@cache
def preload() -> None:
    """Imports and reads all that the first schema needs. It takes about as long as an extension needs to start."""
    compile_schema({}).find_problems(None)


def is_ready() -> bool:
    """Returns whether `preload` has nothing left to do."""
    return preload.cache_info().currsize > 0
