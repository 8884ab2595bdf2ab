"""Forwards names that changed in 0.2, of modules and of classes, each with a DeprecationWarning. Removed in 0.3."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

__all__ = ["RenamedMember", "forward", "keep_renamed"]


class RenamedMember:
    """A method or attribute under its name of 0.1: `answer = RenamedMember("respond")`."""

    def __init__(self, new: str) -> None:
        self._new = new
        self._old = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._old = f"{owner.__name__}.{name}"

    def __get__(self, instance: object, owner: type) -> Any:
        from warnings import warn

        warn(f"`{self._old}` is `{self._new}` since becket 0.2", DeprecationWarning, stacklevel=2)
        return getattr(owner if instance is None else instance, self._new)


def forward(old: str, new: str, renamed: Mapping[str, str]) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Returns `__getattr__` and `__dir__` of the module `old`; `renamed` maps its old names to those in `new`.

    A new name with dots is that of another module."""

    def find(name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(f"module {old!r} has no attribute {name!r}")
        from importlib import import_module
        from warnings import warn

        target = renamed.get(name, name)
        home, _, last = (target if "." in target else f"{new}.{target}").rpartition(".")
        value: object = getattr(import_module(home), last)
        warn(describe(f"{old}.{name}", f"{home}.{last}"), DeprecationWarning, stacklevel=2)
        return value

    def list_names() -> list[str]:
        from importlib import import_module

        current = {target: name for name, target in renamed.items()}
        elsewhere = [name for name, target in renamed.items() if "." in target]
        return [*(current.get(name, name) for name in dir(import_module(new))), *elsewhere]

    return find, list_names


def keep_renamed(
    module: str, renamed: Mapping[str, str], find: Callable[[str], object] | None = None
) -> Callable[[str], object]:
    """Returns `__getattr__` of a module that forwards its old names; `find` is the one that it has without them.

    A new name with dots is that of another module."""

    def find_renamed(name: str) -> object:
        if name not in renamed:
            if find is None:
                raise AttributeError(f"module {module!r} has no attribute {name!r}")
            return find(name)
        from importlib import import_module
        from warnings import warn

        new_module, _, target = renamed[name].rpartition(".")
        value: object = getattr(import_module(new_module or module), target)
        warn(describe(f"{module}.{name}", renamed[name]), DeprecationWarning, stacklevel=2)
        return value

    return find_renamed


def describe(old: str, new: str) -> str:
    """Returns the text of a warning. A new name in a private module is not for users: the old one has no successor."""
    if "._" in new:
        return f"`{old}` is deprecated since becket 0.2, and is removed in 0.3"
    return f"`{old}` is `{new}` since becket 0.2"
