"""Log of one extension: writes its log notifications and stderr lines to `becket.ext.<id>`, and publishes them.

All of it is untrusted: each record is one escaped line. The names of the extension's own loggers are part of the line;
a logger for each of them would stay for ever. The log has every line; events are limited, since a flood of them would
delay all subscribers.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from becket._loggers import extension_logger
from becket._text import escape
from becket.contract.log import LOG, LogLevel, LogRecord, parse_log_line
from becket.host.events import EventBus, ExtensionLogged
from becket.methods.registry import Registry

__all__ = ["ExtensionLog", "LogEventPublisher", "LogRateLimit"]

LEVELS: Final = {level: getattr(logging, level.name) for level in LogLevel}
MAX_MESSAGE_CHARS: Final = 8 * 1024  # characters of one message: a long traceback, and as much as of a line of stderr
MAX_LOGGER_NAME: Final = 200
BURST: Final = 500  # lines of one extension: a long traceback or two
LINES_PER_SECOND: Final = 50.0  # in the long run; faster than a person reads
TRACEBACK: Final = "Traceback (most recent call last):"


class ExtensionLog:
    """The log of one extension. `on_line` gets each line too, with the name of its level, unless it is false."""

    def __init__(self, extension: str, on_line: Callable[[str, str], object] | None = None) -> None:
        self._logger = extension_logger(extension)
        self._on_line = on_line
        self._level = logging.INFO  # of the last record: a traceback that follows belongs to it
        self._is_traceback = False

    def register(self, methods: Registry) -> None:
        """Adds a handler for log notifications."""
        methods.on(LOG)(self.on_record)

    def on_record(self, record: LogRecord) -> None:
        """Logs a message with its level, line by line."""
        level = LEVELS[record.level]
        if self._on_line or self._logger.isEnabledFor(level):
            name = escape(record.logger[:MAX_LOGGER_NAME])
            for line in record.message[:MAX_MESSAGE_CHARS].splitlines() or [""]:
                self._write(level, f"{name}: {escape(line)}")

    def on_stderr_line(self, line: str) -> None:
        """Logs a line of stderr: with its level, if it names one, or as part of a traceback."""
        record = parse_log_line(line)
        if record is not None:
            self._level = LEVELS[record.level]
            self.on_record(record)
            return
        if line.startswith(TRACEBACK):
            self._is_traceback = True
        self._write(self._level if self._is_traceback else logging.INFO, line)
        if self._is_traceback and not line.startswith((TRACEBACK, " ")):  # the line with the exception
            self._is_traceback = False

    def _write(self, level: int, line: str) -> None:
        self._logger.log(level, "%s", line)
        if self._on_line:
            self._on_line(logging.getLevelName(level).lower(), line)


# -- events


class LogRateLimit:
    """Admits so many at once, and so many a second after that; counts the others. Pure: time is an argument."""

    __slots__ = ("_at_once", "_dropped", "_left", "_per_second", "_since")

    def __init__(self, at_once: int = BURST, per_second: float = LINES_PER_SECOND) -> None:
        self._at_once = at_once
        self._per_second = per_second
        self._left = float(at_once)
        self._since = 0.0
        self._dropped = 0

    def acquire(self, now: float) -> int | None:
        """Returns how many were left out before this one; None if this one is left out too."""
        self._left = min(self._at_once, self._left + (now - self._since) * self._per_second)
        self._since = now
        if self._left < 1:
            self._dropped += 1
            return None
        self._left -= 1
        left_out, self._dropped = self._dropped, 0
        return left_out


class LogEventPublisher:
    """Publishes what one extension logs. It is false while there is no subscriber: then no line need be built."""

    def __init__(self, extension: str, events: EventBus, clock: Callable[[], float]) -> None:
        self._extension = extension
        self._events = events
        self._clock = clock
        self._throttle = LogRateLimit()

    def __bool__(self) -> bool:
        return self._events.has_subscribers(ExtensionLogged)

    def __call__(self, level: str, line: str) -> None:
        """Publishes a line, within the limit."""
        left_out = self._throttle.acquire(self._clock())
        if left_out is None:
            return
        if left_out:
            self._events.publish(ExtensionLogged(self._extension, "warning", f"{left_out} lines were left out here"))
        self._events.publish(ExtensionLogged(self._extension, level, line))
