"""Functions of 0.1 without a successor of the same parameters. `becket.contract.memory` forwards to them until 0.3."""

from __future__ import annotations

from becket.contract.memory import Append, Query, check_owner, find_append_problems
from becket.errors import InvalidParams
from becket.limits import DEFAULT_LIMITS, Limits

__all__ = ["check_append", "check_query"]


def check_append(append: Append, extension: str, limits: Limits = DEFAULT_LIMITS) -> None:
    """Raises InvalidParams, with all problems, unless this extension may store this record."""
    problems = find_append_problems(append, limits)
    try:
        check_owner(append.namespace, extension)
    except InvalidParams as error:
        raise InvalidParams([*error.problems, *problems]) from None
    if problems:
        raise InvalidParams(problems)


def check_query(query: Query, extension: str) -> None:
    """Raises InvalidParams unless this extension may query this namespace."""
    check_owner(query.namespace, extension)
