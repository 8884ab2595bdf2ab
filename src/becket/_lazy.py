"""Lazy exports: builds `__getattr__` and `__dir__` of a package from one table.

Imports are most of an extension's start time. This is the first module that becket imports: it imports nothing that is
not loaded already.
"""

from __future__ import annotations

import sys
from types import ModuleType

TYPE_CHECKING = False  # `typing` adds to the start time
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["import_module", "lazy_exports"]


def import_module(module: str) -> ModuleType:
    """Imports a module by its full name, like `importlib`, whose import would add to the start time."""
    __import__(module)
    return sys.modules[module]


def lazy_exports(
    names: dict[str, object], exports: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Returns `__getattr__` and `__dir__` of a package, and sets its `__all__` if it has none.

    `names` are the package's `globals()`; `exports` maps a module to its names, separated by spaces."""
    package = names["__name__"]
    modules = {name: module for module, listed in exports.items() for name in listed.split()}
    names.setdefault("__all__", sorted(modules))

    def find(name: str) -> object:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = names[name] = getattr(import_module(modules[name]), name)
        return value

    return find, lambda: sorted({*modules, *names})
