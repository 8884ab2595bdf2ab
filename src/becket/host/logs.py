"""Log of one extension: writes its log notifications and stderr lines to `becket.ext.<id>`.

All of it comes from outside: each record is one harmless line. What the extension calls its own loggers stands in the
line; a logger of ours for each of them would stay for ever.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from becket._loggers import extension_logger
from becket._text import escape
from becket.contract.log import LOG, LogLevel, LogRecord, parse_log_line
from becket.methods.registry import Registry

__all__ = ["ExtensionLog"]

LEVELS: Final = {level: getattr(logging, level.name) for level in LogLevel}
MAX_MESSAGE_CHARS: Final = 8 * 1024  # characters of one message: a long traceback, and as much as of a line of stderr
MAX_LOGGER_NAME: Final = 200
TRACEBACK: Final = "Traceback (most recent call last):"


class ExtensionLog:
    """The log of one extension. `on_line` gets each line too, with the name of its level, unless it is false."""

    def __init__(self, extension: str, on_line: Callable[[str, str], object] | None = None) -> None:
        self._logger = extension_logger(extension)
        self._on_line = on_line
        self._level = logging.INFO  # of the last record: a traceback that follows belongs to it
        self._is_traceback = False

    def register(self, methods: Registry) -> None:
        """Adds a handler for what comes as a notification."""
        methods.on(LOG)(self.on_record)

    def on_record(self, record: LogRecord) -> None:
        """Writes a message down with its level, line by line."""
        level = LEVELS[record.level]
        if self._on_line or self._logger.isEnabledFor(level):
            name = escape(record.logger[:MAX_LOGGER_NAME])
            for line in record.message[:MAX_MESSAGE_CHARS].splitlines() or [""]:
                self._write(level, f"{name}: {escape(line)}")

    def on_stderr_line(self, line: str) -> None:
        """Writes a line of stderr down: with its level, where it says one, or goes on with a traceback."""
        record = parse_log_line(line)
        if record is not None:
            self._level = LEVELS[record.level]
            self.on_record(record)
            return
        if line.startswith(TRACEBACK):
            self._is_traceback = True
        self._write(self._level if self._is_traceback else logging.INFO, line)
        if self._is_traceback and not line.startswith((TRACEBACK, " ")):  # the line that says what was raised
            self._is_traceback = False

    def _write(self, level: int, line: str) -> None:
        self._logger.log(level, "%s", line)
        if self._on_line:
            self._on_line(logging.getLevelName(level).lower(), line)
