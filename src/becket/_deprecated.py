"""Forwards the names of modules that moved in 0.2, each with a DeprecationWarning. Removed in 0.3."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["forward"]


def forward(old: str, new: str, renamed: Mapping[str, str]) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Returns `__getattr__` and `__dir__` of the module `old`; `renamed` maps its old names to those in `new`."""

    def find(name: str) -> object:
        from importlib import import_module
        from warnings import warn

        target = renamed.get(name, name)
        if name.startswith("__"):
            raise AttributeError(f"module {old!r} has no attribute {name!r}")
        value: object = getattr(import_module(new), target)
        warn(f"`{old}.{name}` is `{new}.{target}` since becket 0.2", DeprecationWarning, stacklevel=2)
        return value

    def list_names() -> list[str]:
        from importlib import import_module

        current = {target: name for name, target in renamed.items()}
        return [current.get(name, name) for name in dir(import_module(new))]

    return find, list_names
