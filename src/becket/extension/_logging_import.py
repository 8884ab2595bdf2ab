"""Installs the log handler when the program imports `logging`, which most extensions never do.

Importing it at the start would take a sixth of the start. With `BECKET_PLAIN_IMPORTS=1` it is imported there.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from becket._msgspec_import import has_plain_imports

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

__all__ = ["install_log_handler_with_logging"]


def install_log_handler_with_logging() -> None:
    """Installs the handler now if `logging` is imported, else when it is."""
    if "logging" in sys.modules or has_plain_imports():
        install()
    else:
        finder: Any = LoggingFinder()
        sys.meta_path.insert(0, finder)


def install() -> None:
    from becket.extension.log_handler import install_log_handler

    install_log_handler()


class LoggingFinder:
    """Finds `logging` as usual, installs the handler after its import, and removes itself from the finders."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != "logging":
            return None
        sys.meta_path.remove(self)
        from importlib.machinery import PathFinder

        spec = PathFinder.find_spec(name)
        if spec is not None and spec.loader is not None:
            loader: Any = spec.loader
            execute = loader.exec_module

            def execute_and_install(module: ModuleType) -> None:
                execute(module)
                install()

            loader.exec_module = execute_and_install
        return spec
