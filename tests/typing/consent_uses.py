"""Prompt callbacks for a type checker: plain or async, with the request or with its base class."""

from __future__ import annotations

from becket.host import ConsentRequest, Host
from becket.permissions.policies import Decision


def ask(prompt: str, request: ConsentRequest) -> bool:
    """Decides by fields."""
    changes = request.changes
    is_known = changes is None or not changes.changed_files
    return is_known and request.command[0] == "/usr/bin/python3" and not request.variables.dangerous


async def ask_later(prompt: str, request: ConsentRequest) -> bool | None:
    """May have no decision."""
    return None if request.is_start else request.permissions == ("memory.read",)


def ask_as_before(prompt: str, decision: Decision) -> bool:
    """Was written for a decision."""
    return decision.permission == "memory.read"


HOSTS = (Host(ask=ask), Host(ask=ask_later), Host(ask=ask_as_before), Host(ask=lambda prompt, request: True))
