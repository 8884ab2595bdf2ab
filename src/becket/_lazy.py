"""Lazy exports: builds `__getattr__` and `__dir__` of a package from one table.

All of it is for the start of an extension, of which imports are the most. This is the first module that becket imports:
it needs nothing that is not there already.
"""

from __future__ import annotations

import gc
import os
import sys
from _thread import _count as count_threads  # pyright: ignore[reportPrivateUsage]
from types import ModuleType

TYPE_CHECKING = False  # `typing` comes with msgspec, while no garbage is looked for
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

__all__ = ["import_module", "import_msgspec", "lazy_exports"]


def import_module(module: str) -> ModuleType:
    """Imports a module while no garbage is looked for: there is none among what stays, and a start takes less time."""
    if module in sys.modules:
        __import__(module)  # which waits where another thread is at it
        return sys.modules[module]
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        __import__(module)  # as `importlib` does, which takes a child more time to import than its own names
        return sys.modules[module]
    finally:
        if was_enabled:
            if not gc.get_freeze_count():
                gc.freeze()  # what is new counts as old from now on, and is not looked through at once
                gc.unfreeze()
            gc.enable()


def lazy_exports(
    names: dict[str, object], exports: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Returns `__getattr__` and `__dir__` of a package, and sets its `__all__` where it has none.

    `names` are the package's `globals()`; `exports` maps a module to the names that it defines, with spaces between."""
    package = names["__name__"]
    modules = {name: module for module, listed in exports.items() for name in listed.split()}
    names.setdefault("__all__", sorted(modules))

    def find(name: str) -> object:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = names[name] = getattr(import_module(modules[name]), name)
        return value

    return find, lambda: sorted({*modules, *names})


# -- msgspec


def import_msgspec() -> None:
    """Imports msgspec without what it hardly uses: that takes more time than all the rest of an extension's start.

    From `typing_extensions`, where it finds it, it takes what `typing` has too; it imports `inspect` and all that hangs
    on it. From `platform`, which compiles a dozen regular expressions, its `uuid` wants the name of the system; from
    `textwrap`, which compiles some too, its schemas want `dedent`. The classes of `datetime` are written in C; until
    3.12 they are written in Python as well, to be thrown away. Its own modules for other formats, and the one that
    tells what a type is made of, come at first use. Done only where no other thread can be about to import them."""
    if "msgspec" in sys.modules or count_threads():
        return
    absent: dict[str, Any] = {"typing_extensions": None} | {name: DeferredModule(name) for name in DEFERRED_MODULES}
    if sys.version_info < (3, 12):
        absent["datetime"] = import_module("_datetime")
    if hasattr(os, "uname"):
        absent["platform"] = PlatformStub("platform")
    absent = {name: stand_in for name, stand_in in absent.items() if name not in sys.modules}
    sys.modules.update(absent)
    try:
        import_module("msgspec")
    finally:
        for name in absent:
            del sys.modules[name]


DEFERRED_MODULES = ("msgspec.inspect", "msgspec.msgpack", "msgspec.toml", "msgspec.yaml", "textwrap")


class DeferredModule(ModuleType):
    """Stands for a module where something of it is used later, if ever. Whoever imports it gets the module itself."""

    def __getattr__(self, name: str) -> object:
        module = import_module(self.__name__)
        self.__dict__.update(module.__dict__)  # so that it is asked once
        return getattr(module, name)

    def __dir__(self) -> list[str]:
        return dir(import_module(self.__name__))


class PlatformStub(ModuleType):
    """Stands for `platform` where nothing of it is wanted but the name of the system."""

    def system(self) -> str:
        return os.uname().sysname
