"""Imports msgspec without the modules that it hardly uses: a third of the start time of an extension.

- `typing_extensions`, where installed, counts as not installed: since 3.11 `typing` has all that msgspec uses of it,
  and it imports `inspect`, `ast` and `dis`.
- `platform` compiles a dozen regular expressions; `uuid` gets the name of the system from a stand-in.
- `datetime` defines its classes in Python too until 3.12; msgspec gets the same classes of `_datetime`.
- `textwrap`, and the modules of msgspec that only some programs use, are executed at first use.
- msgspec creates one forward reference, as a test. `typing` compiles it without `compile`, which would define the 119
  classes of `ast`.

No stand-in is left after the import. The modules for later have their specs then, as if they were executed already.
`BECKET_PLAIN_IMPORTS=1` in the environment turns all of it off.
"""

from __future__ import annotations

import os
import sys
import typing
from _thread import RLock, _count as count_threads  # pyright: ignore[reportPrivateUsage]
from types import ModuleType
from typing import Any

__all__ = ["has_plain_imports", "import_msgspec"]

LATE_MODULES = ("msgspec.inspect", "msgspec.msgpack", "msgspec.toml", "msgspec.yaml", "textwrap")


def has_plain_imports() -> bool:
    """Returns whether the environment turns the stand-ins off."""
    return os.environ.get("BECKET_PLAIN_IMPORTS") == "1"


def import_msgspec() -> None:
    """Imports msgspec, unless another thread might import one of these modules meanwhile, and get a stand-in."""
    modules: Any = sys.modules
    if "msgspec" in modules or count_threads() or has_plain_imports():
        return
    stand_ins = build_stand_ins()
    stand_ins = {name: stand_in for name, stand_in in stand_ins.items() if name not in modules}
    late = {name: LateModule(name) for name in LATE_MODULES if name not in modules}
    names_of_typing: Any = vars(typing)
    modules.update(stand_ins | late)
    names_of_typing["compile"] = compile_expression
    try:
        import msgspec  # noqa: F401  # pyright: ignore[reportUnusedImport]
    except BaseException:
        for name in late:
            del modules[name]
        raise
    finally:
        del names_of_typing["compile"]
        for name in stand_ins:
            del modules[name]
    for name, module in late.items():
        module.__spec__ = find_spec(name)
    uuid = modules["uuid"]
    if isinstance(getattr(uuid, "platform", None), PlatformStandIn):
        del uuid.platform  # which it does not look at again


# -- during the import of msgspec


def build_stand_ins() -> dict[str, Any]:
    stand_ins: dict[str, Any] = {"typing_extensions": None}
    if hasattr(os, "uname"):
        stand_ins["platform"] = PlatformStandIn("platform")
    if sys.version_info < (3, 12):
        stand_ins["datetime"] = __import__("_datetime")
    return stand_ins


class PlatformStandIn(ModuleType):
    """Returns the name of the system, as `platform` does."""

    def system(self) -> str:
        return os.uname().sysname


def compile_expression(source: str, filename: str, mode: str) -> object:
    """Returns the code of an expression; it evaluates names in the module of the expression."""
    return eval(f"lambda: {source}").__code__


# -- afterwards


class LateModule(ModuleType):
    """The module of this name, executed at first use.

    `importlib.util.LazyLoader` does the same, but not with threads before 3.12.4, and imports more than this saves."""

    def __getattr__(self, name: str) -> Any:
        with EXECUTION:
            if self.__loader__ is None:
                execute(self)
        return ModuleType.__getattribute__(self, name)


EXECUTION = RLock()  # a module that is being executed may import itself


def find_spec(name: str) -> Any:
    """Returns the spec of a module that is in `sys.modules`; `importlib.util.find_spec` returns what it has there."""
    package, _, _ = name.rpartition(".")
    path = sys.modules[package].__path__ if package else None
    finders: Any = [finder for finder in sys.meta_path if hasattr(finder, "find_spec")]
    return next((spec for finder in finders if (spec := finder.find_spec(name, path)) is not None), None)


def execute(module: Any) -> None:
    spec = module.__spec__ or find_spec(module.__name__)  # None while msgspec is being imported
    module.__spec__, module.__loader__, module.__package__ = spec, spec.loader, spec.parent
    module.__file__, module.__cached__ = spec.origin, spec.cached
    spec.loader.exec_module(module)
    module.__class__ = ModuleType
