"""Writes log records without a handler to stderr, in the format that hosts parse."""

from __future__ import annotations

import logging
import sys

from becket.contract.log import LogLevel, LogRecord, format_log_record

__all__ = ["install_log_handler"]


def install_log_handler() -> None:
    """Sets the handler of last resort: a program that configures `logging` has its own handlers."""
    logging.lastResort = LogLinesHandler()


class LogLinesHandler(logging.Handler):
    """Writes records to the current `sys.stderr`."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            text = format_log_record(LogRecord(level_of(record.levelno), record.name, self.format(record)))
            sys.stderr.write(text)
            sys.stderr.flush()
        except Exception:
            self.handleError(record)


def level_of(number: int) -> LogLevel:
    """Returns the highest level that is not above this number."""
    reached = [level for level in LogLevel if getattr(logging, level.name) <= number]
    return reached[-1] if reached else LogLevel.DEBUG
