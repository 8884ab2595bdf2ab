"""What becket uses to test itself, for those who build on it. Each part is imported when it is first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from becket.testing.framing_checks import check_framing
    from becket.testing.pairs import memory_pair

_HOMES = {
    "check_framing": "becket.testing.framing_checks",
    "memory_pair": "becket.testing.pairs",
}

__all__ = ["check_framing", "memory_pair"]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
