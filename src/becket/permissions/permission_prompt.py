"""The text of a permission prompt: one line, with hostile names escaped."""

from __future__ import annotations

from typing import Final

from becket._text import escape, truncate
from becket.permissions.policies import Decision

__all__ = ["MAX_NAME_LENGTH", "format_prompt"]

MAX_NAME_LENGTH: Final = 80  # characters of a name in a prompt: short enough for one line
MAX_NAMES: Final = 4  # callers that a prompt names


def format_prompt(decision: Decision) -> str:
    """Returns one line that prompts a person for the permission of a call, with hostile names escaped."""
    behalf = ", ".join(quote_name(extension) for extension in decision.on_behalf_of[:MAX_NAMES])
    if len(decision.on_behalf_of) > MAX_NAMES:
        behalf += f" and {len(decision.on_behalf_of) - MAX_NAMES} more"
    permission, method = quote_name(decision.permission or ""), quote_name(decision.method)
    wants = f"{quote_name(decision.extension)} wants {permission} to call {method}"
    return f"{wants} on behalf of {behalf}: allow it?" if behalf else f"{wants}: allow it?"


def quote_name(name: str) -> str:
    # The beginning alone is escaped: a name may have a megabyte.
    shown = escape(name[: MAX_NAME_LENGTH + 1]).replace("\t", "\\t").replace("`", "\\x60")
    return f"`{truncate(shown, MAX_NAME_LENGTH, '…')}`"
