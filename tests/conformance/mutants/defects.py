"""Defects as data: what a broken program does differently from a correct one. Standard library only.

A program that is tested reads its defects from its first argument, as JSON; README.md beside this file lists the kinds.
"""

from __future__ import annotations

import json
import sys
from typing import Any


class Defects:
    """The defects of one program."""

    def __init__(self, table: dict[str, Any]) -> None:
        self._table = table
        self._flags = frozenset(table.get("flags", ()))

    def has(self, flag: str) -> bool:
        """Returns whether the program has a defect that its code knows by this name."""
        return flag in self._flags

    def outgoing(self, message: Any) -> list[Any]:
        """Returns the messages that are sent in the place of a correct one."""
        for pattern in self._list("drop"):
            if matches(pattern, message):
                return []
        for pattern, change in self._list("out"):
            if matches(pattern, message):
                message = merge(message, change)
        copies = 1 + any(matches(pattern, message) for pattern in self._list("twice"))
        return [message] * copies

    def incoming(self, message: Any) -> Any:
        """Returns the message that the program sees in the place of a received one; None if it sees none."""
        if any(matches(pattern, message) for pattern in self._list("ignore")):
            return None
        for pattern, change in self._list("in"):
            if matches(pattern, message):
                message = merge(message, change)
        return message

    def rejection(self, message: Any) -> int | None:
        """Returns the code with which the program wrongly rejects a request."""
        return next((code for pattern, code in self._list("reject") if matches(pattern, message)), None)

    def extra(self, message: Any) -> list[Any]:
        """Returns the messages that the program wrongly sends after it has received this one."""
        return [sent for pattern, sent in self._list("send") if matches(pattern, message)]

    def exits_on(self, message: Any) -> bool:
        """Returns whether the program wrongly exits when it receives this message."""
        return any(matches(pattern, message) for pattern in self._list("exit"))

    def _list(self, kind: str) -> list[Any]:
        return [parse(one) for one in self._table.get(kind, ())]


def parse(one: Any) -> Any:
    if isinstance(one, list):
        return [parse(part) for part in one]
    return json.loads(one) if isinstance(one, str) else one


def load_defects() -> Defects:
    """Returns the defects in the first argument; none without one."""
    return Defects(json.loads(sys.argv[1]) if len(sys.argv) > 1 else {})


def matches(pattern: Any, value: Any) -> bool:
    """Returns whether a value has all that a pattern has; `"$any"` is anything, `"$absent"` nothing."""
    if isinstance(pattern, dict):
        return isinstance(value, dict) and all(
            (name not in value) if part == "$absent" else (name in value and matches(part, value[name]))
            for name, part in pattern.items()
        )
    return bool(pattern == "$any") or (type(pattern) is type(value) and pattern == value)


def merge(value: Any, change: Any) -> Any:
    """Returns a value with a change: objects are merged, `"$absent"` removes a member, anything else replaces it."""
    if not isinstance(value, dict) or not isinstance(change, dict):
        return change
    merged = {**value}
    for name, part in change.items():
        if part == "$absent":
            merged.pop(name, None)
        else:
            merged[name] = merge(value.get(name), part)
    return merged
