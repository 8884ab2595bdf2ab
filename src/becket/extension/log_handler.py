"""Installs the logging handler that writes records to stderr in the form that hosts parse.

Only what nothing else handles: whoever configures `logging` has decided where it goes. Imported when `logging` is.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import logging

    from becket.contract.log import LogLevel

__all__ = ["install_log_handler"]


def install_log_handler(module: Any) -> None:
    """Puts our handler where `logging` looks when a record has none."""

    class LinesHandler(module.StreamHandler):  # type: ignore[misc]
        """Writes records to whatever stderr is at the time."""

        def emit(self, record: logging.LogRecord) -> None:
            from becket.contract.log import LogRecord, format_log_record  # for the first line that somebody logs

            try:
                text = format_log_record(LogRecord(level_of(record.levelno), record.name, self.format(record)))
                sys.stderr.write(text)
                sys.stderr.flush()
            except Exception:
                self.handleError(record)

    def level_of(number: int) -> LogLevel:
        """Returns the highest level that is not above this number."""
        from becket.contract.log import LogLevel

        reached = [level for level in LogLevel if getattr(module, level.name) <= number]
        return reached[-1] if reached else LogLevel.DEBUG

    module.lastResort = LinesHandler()
