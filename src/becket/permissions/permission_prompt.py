"""The text of a permission prompt: one line, with hostile names escaped."""

from __future__ import annotations

import re
from typing import Final

from becket.permissions.policies import Decision

__all__ = ["MAX_NAME_LENGTH", "format_prompt"]

MAX_NAME_LENGTH: Final = 80  # characters of a name in a prompt: short enough for one line
MAX_NAMES: Final = 4  # callers that a prompt names
ESCAPE_SEQUENCES: Final = re.compile(
    r"(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"  # those that carry a text
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"  # colours, movements
    r"|\x1b[ -/]*[0-~]?"
)


def format_prompt(decision: Decision) -> str:
    """Returns one line that prompts a person for the permission of a call, with hostile names escaped."""
    behalf = ", ".join(quote_name(extension) for extension in decision.on_behalf_of[:MAX_NAMES])
    if len(decision.on_behalf_of) > MAX_NAMES:
        behalf += f" and {len(decision.on_behalf_of) - MAX_NAMES} more"
    permission, method = quote_name(decision.permission or ""), quote_name(decision.method)
    wants = f"{quote_name(decision.extension)} wants {permission} to call {method}"
    return f"{wants} on behalf of {behalf}: allow it?" if behalf else f"{wants}: allow it?"


def quote_name(name: str) -> str:
    whole = name[: MAX_NAME_LENGTH * 4]  # room for removed escapes; a text of a megabyte is not searched
    shown = "".join(letter for letter in ESCAPE_SEQUENCES.sub("", whole) if letter.isprintable()).replace("`", "'")
    is_cut = len(shown) > MAX_NAME_LENGTH or len(name) > len(whole)
    return f"`{shown[:MAX_NAME_LENGTH]}…`" if is_cut else f"`{shown}`"
