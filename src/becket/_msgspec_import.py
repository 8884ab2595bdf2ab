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
their specs, and any other use executes them first.
`BECKET_PLAIN_IMPORTS=1` in the environment turns all of it off.
"""

from __future__ import annotations

import os
import sys
from _thread import RLock, _count as count_threads  # pyright: ignore[reportPrivateUsage]
from types import ModuleType

TYPE_CHECKING = False  # `typing` is imported below, without `re`
if TYPE_CHECKING:
    from collections.abc import Iterable
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
    if "re" in late:
        vars(late["re"]).update(build_names_of_re())
        AVAILABLE.add("compile")
    modules.update(stand_ins | late)
    try:
        import_with_typing()
    except BaseException:
        for name in late:
            del modules[name]
        raise
    finally:
        AVAILABLE.discard("compile")
        for name in stand_ins:
            del modules[name]
    if "re" in late and vars(late["re"])["compile"] is compile_pattern:
        del vars(late["re"])["compile"]  # a program gets that of `re`, which is executed then
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


def build_names_of_re() -> dict[str, Any]:
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


# -- modules that are executed at first use

IMPORT_ATTRIBUTES = frozenset({"__cached__", "__file__", "__loader__", "__package__", "__path__", "__spec__"})
AVAILABLE = {"__class__", "__dict__", "__name__", "Match", "Pattern"}
"""Names that a late module has before it is executed, with the value that they have afterwards. Programs that look into
the `__dict__` of all modules find the names that it has by then."""
LOCKS = {name: RLock() for name in LATE_MODULES}
EXECUTING: set[str] = set()  # each while its lock is held


class LateModule(ModuleType):
    """The module of this name, executed at first use; it is an ordinary module then.

    Other threads wait meanwhile. After an error the next use executes it again. `importlib.util.LazyLoader` does the
    same, but not with threads before 3.12.4, and imports more than this saves."""

    def __getattribute__(self, name: str) -> Any:
        if name in IMPORT_ATTRIBUTES:
            set_import_attributes(self)
        elif name not in AVAILABLE:
            execute(self)
        return ModuleType.__getattribute__(self, name)

    def __getattr__(self, name: str) -> Any:
        if name not in AVAILABLE:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        execute(self)
        return ModuleType.__getattribute__(self, name)

    def __setattr__(self, name: str, value: object) -> None:
        if not isinstance(value, ModuleType):  # the import of a submodule sets it, and must not wait
            execute(self)
        ModuleType.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        execute(self)
        ModuleType.__delattr__(self, name)

    def __dir__(self) -> Iterable[str]:
        execute(self)
        return ModuleType.__dir__(self)


def set_import_attributes(module: LateModule) -> None:
    """Sets what the import of a module would set, as `importlib.util.find_spec` and others expect it."""
    namespace = vars(module)
    if namespace["__spec__"] is not None:
        return
    spec = find_spec(module.__name__)
    if spec is None:
        raise ModuleNotFoundError(f"No module named {module.__name__!r}", name=module.__name__)
    namespace["__loader__"], namespace["__package__"] = spec.loader, spec.parent
    if spec.has_location:
        namespace["__file__"], namespace["__cached__"] = spec.origin, spec.cached
    if spec.submodule_search_locations is not None:
        namespace["__path__"] = spec.submodule_search_locations
    namespace["__spec__"] = spec


def find_spec(name: str) -> Any:
    """Returns the spec of a module that is in `sys.modules`; `importlib.util.find_spec` returns what it has there."""
    package, _, _ = name.rpartition(".")
    path = sys.modules[package].__path__ if package else None
    finders: Any = [finder for finder in sys.meta_path if hasattr(finder, "find_spec")]
    return next((spec for finder in finders if (spec := finder.find_spec(name, path)) is not None), None)


def execute(module: LateModule) -> None:
    """Executes a module once. A module that is being executed may import itself."""
    name = module.__name__
    with LOCKS[name]:
        if name in EXECUTING or type(module) is not LateModule:
            return
        set_import_attributes(module)
        namespace = vars(module)
        before = dict(namespace)
        EXECUTING.add(name)
        try:
            namespace["__spec__"].loader.exec_module(module)
        except BaseException:
            for added in [key for key, value in namespace.items() if not isinstance(value, ModuleType)]:
                del namespace[added]
            namespace.update(before)
            raise
        finally:
            EXECUTING.discard(name)
        ModuleType.__setattr__(module, "__class__", ModuleType)
