"""Names of a package that are imported when they are first used. Whoever imports the package pays only for those."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

__all__ = ["lazy_names"]


def lazy_names(
    package: str, names: dict[str, object], homes: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Returns `__getattr__` and `__dir__` of a package; `names` are its `globals()`, `homes` each name's module."""

    def find(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = names[name] = getattr(import_module(homes[name]), name)
        return value

    return find, lambda: [*homes, *(name for name in names if name.startswith("__"))]
