"""Log records of an extension: the notification, and the stderr line format.

The line format is the default of Python's `logging`, `WARNING:logger:message`, so that levels are also recognised
from programs that do not use becket. Writing the log is the host's.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from becket._deprecated import keep_renamed
from becket.methods.descriptors import Notification

__all__ = ["LOG", "LogLevel", "LogRecord", "format_log_record", "parse_log_line"]


class LogLevel(StrEnum):
    """Severity, as in Python's `logging`."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
    CRITICAL = "critical"


class LogRecord(Struct, frozen=True, gc=False):
    """One log message. `logger` names the part of the extension that it comes from."""

    level: LogLevel
    logger: str
    message: str


LOG: Final = Notification("$/log", LogRecord, direction="to-host", summary="A message for the host's log.")

SEPARATOR: Final = ":"
LEVELS: Final = {level.name: level for level in LogLevel}


def format_log_record(record: LogRecord) -> str:
    """Formats a record for stderr: each line of its message becomes a record of its own."""
    logger = record.logger.replace(SEPARATOR, ".")
    head = f"{record.level.name}{SEPARATOR}{' '.join(logger.split())}{SEPARATOR}"
    return "".join(f"{head}{line}\n" for line in record.message.splitlines() or [""])


def parse_log_line(line: str) -> LogRecord | None:
    """Parses a line of stderr; returns None if it is not a record."""
    name, *rest = line.split(SEPARATOR, 2)
    level = LEVELS.get(name)
    if level is None or len(rest) < 2:
        return None
    logger, message = rest
    return LogRecord(level, logger, message)


if not TYPE_CHECKING:  # for a type checker, a module with this function has every name
    __getattr__ = keep_renamed(__name__, {"log_text": "format_log_record", "read_log_line": "parse_log_line"})
