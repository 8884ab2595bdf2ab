"""What an extension logs with Python's `logging` goes to its stderr as lines that the host reads back with their level.

Only what nothing else handles: whoever configures `logging` has decided where it goes. `logging` itself takes a child
10 ms to import, so it is not imported for this: where it is not there yet, its arrival is waited for.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import logging
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

__all__ = ["forward_logging"]


def forward_logging() -> None:
    """Has all records that nobody else handles written to stderr in our form, from now on or from its import on."""
    if "logging" in sys.modules:
        take_over(sys.modules["logging"])
    else:
        sys.meta_path.insert(0, Arrival())


class Arrival:
    """Waits among the finders of modules for `logging`, lets it be imported as usual, and then takes over."""

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

            def execute_and_take_over(module: ModuleType) -> None:
                execute(module)
                take_over(module)

            loader.exec_module = execute_and_take_over
        return spec


def take_over(module: Any) -> None:
    """Puts our handler where `logging` looks when a record has none."""
    from becket.contract.log import LogLevel, LogRecord, log_text

    class LinesHandler(module.StreamHandler):  # type: ignore[misc]
        """Writes records to whatever stderr is at the time."""

        def emit(self, record: logging.LogRecord) -> None:
            try:
                text = log_text(LogRecord(level_of(record.levelno), record.name, self.format(record)))
                sys.stderr.write(text)
                sys.stderr.flush()
            except Exception:
                self.handleError(record)

    def level_of(number: int) -> LogLevel:
        """Returns the highest level that is not above this number."""
        reached = [level for level in LogLevel if getattr(module, level.name) <= number]
        return reached[-1] if reached else LogLevel.DEBUG

    module.lastResort = LinesHandler()
