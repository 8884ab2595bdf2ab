"""Names of a package that are imported when they are first used. Whoever imports the package pays only for those."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping

__all__ = ["lazy_names"]


def lazy_names(
    package: str, names: dict[str, object], homes: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Returns `__getattr__` and `__dir__` of a package; `names` are its `globals()`, `homes` each name's module."""

    def find(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = homes[name]
        __import__(home)  # as `importlib` does, which takes a child more time to import than its own names
        value = names[name] = getattr(sys.modules[home], name)
        return value

    return find, lambda: [*homes, *(name for name in names if name.startswith("__"))]
