"""Imports msgspec without the modules that it hardly uses: a third of the start time of an extension.

- `typing_extensions`, where installed, counts as not installed: since 3.11 `typing` has all that msgspec uses of it,
  and it imports `inspect`, `ast` and `dis`.
- `platform` compiles a dozen regular expressions; `uuid` gets the name of the system from a stand-in.
- `datetime` defines its classes in Python too until 3.12; msgspec gets the same classes of `_datetime`.
- `textwrap`, and the modules of msgspec that only some programs use, are executed at first use.
- So is `re`. Until 3.13 `typing` needs two of its types, which are builtin, and msgspec its `compile`.
- msgspec creates one forward reference, as a test. `typing` compiles it without `compile`, which would define the 119
  classes of `ast`.

After the import no stand-in is left but the function that msgspec calls for `re.compile`. The modules for later have
their specs then, as if they were executed already.
`BECKET_PLAIN_IMPORTS=1` in the environment turns all of it off.
"""

from __future__ import annotations

import os
import sys
from _thread import RLock, _count as count_threads  # pyright: ignore[reportPrivateUsage]
from types import ModuleType

TYPE_CHECKING = False  # `typing` is imported below, without `re`
if TYPE_CHECKING:
    from typing import Any

__all__ = ["has_plain_imports", "import_msgspec"]

LATE_MODULES = ("msgspec.inspect", "msgspec.msgpack", "msgspec.toml", "msgspec.yaml", "re", "textwrap")


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
    late_re = late.get("re")
    if late_re is not None:
        vars(late_re).update(names_of_re())
    modules.update(stand_ins | late)
    try:
        import_with_typing()
    except BaseException:
        for name in late:
            del modules[name]
        raise
    finally:
        for name in stand_ins:
            del modules[name]
    for module in late.values():
        if module.__loader__ is None:
            del vars(module)["__spec__"]  # that of the module is found when it is asked for
    if late_re is not None and vars(late_re)["compile"] is compile_pattern:
        del vars(late_re)["compile"]  # a program gets that of `re`, which is executed then
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


def names_of_re() -> dict[str, Any]:
    """Returns the types of `re` that `typing` has generic aliases for, and what msgspec compiles patterns with."""
    sre: Any = __import__("_sre")
    matches_anything = sre.compile(None, 0, [1], 0, {}, ())
    return {"Pattern": type(matches_anything), "Match": type(matches_anything.match("")), "compile": compile_pattern}


def compile_pattern(pattern: str) -> object:
    """Compiles a pattern of `msgspec.Meta`."""
    import re

    return re.compile(pattern)


def import_with_typing() -> None:
    import typing

    names: Any = vars(typing)
    names["compile"] = compile_expression
    try:
        import msgspec  # noqa: F401  # pyright: ignore[reportUnusedImport]
    finally:
        del names["compile"]


def compile_expression(source: str, filename: str, mode: str) -> object:
    """Returns the code of an expression; it evaluates names in the module of the expression."""
    return eval(f"lambda: {source}").__code__


# -- afterwards


class LateModule(ModuleType):
    """The module of this name, executed at first use.

    `importlib.util.LazyLoader` does the same, but not with threads before 3.12.4, and imports more than this saves."""

    def __getattr__(self, name: str) -> Any:
        with EXECUTION:
            if name == "__spec__":
                self.__spec__ = find_spec(self.__name__)
            elif self.__loader__ is None:
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
    if spec.submodule_search_locations is not None:
        module.__path__ = spec.submodule_search_locations
    spec.loader.exec_module(module)
    module.__class__ = ModuleType
