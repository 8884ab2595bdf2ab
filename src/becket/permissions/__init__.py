"""Permissions: their names, the grants of an extension, and the gate that decides about its calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from becket._lazy import lazy_exports

if TYPE_CHECKING:
    from becket.permissions.gate import MAX_PROMPTS as MAX_PROMPTS, Gate as Gate
    from becket.permissions.grants import Grants as Grants
    from becket.permissions.names import (
        PERMISSIONS as PERMISSIONS,
        RESERVED_PERMISSIONS as RESERVED_PERMISSIONS,
        parse_permission as parse_permission,
    )
    from becket.permissions.permission_prompt import MAX_NAME_LENGTH as MAX_NAME_LENGTH, format_prompt as format_prompt
    from becket.permissions.policies import Decision as Decision, Policy as Policy

EXPORTS = {
    "becket.permissions.gate": "Gate MAX_PROMPTS",
    "becket.permissions.grants": "Grants",
    "becket.permissions.names": "PERMISSIONS RESERVED_PERMISSIONS parse_permission",
    "becket.permissions.policies": "Decision Policy",
    "becket.permissions.permission_prompt": "MAX_NAME_LENGTH format_prompt",
}

__getattr__, __dir__ = lazy_exports(globals(), EXPORTS)
