"""Names of a package that are imported when they are first used. Whoever imports the package pays only for those."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Mapping
from types import ModuleType

__all__ = ["lazy_names", "load"]


def load(module: str) -> ModuleType:
    """Imports a module while no garbage is looked for: there is none among what stays, and a start takes less time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        __import__(module)  # as `importlib` does, which takes a child more time to import than its own names
        return sys.modules[module]
    finally:
        if was_enabled:
            gc.enable()


def lazy_names(
    package: str, names: dict[str, object], homes: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Returns `__getattr__` and `__dir__` of a package; `names` are its `globals()`, `homes` each name's module."""

    def find(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = names[name] = getattr(load(homes[name]), name)
        return value

    return find, lambda: sorted({*homes, *names})
