"""MCP progress and logging messages, and conversion of log levels and progress values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, Final, TypeGuard, cast

import msgspec
from msgspec import Raw, Struct

from becket.adapters.mcp.messages.base import McpMessage, find_progress_token
from becket.contract.log import LogLevel
from becket.errors import JSON_ERRORS
from becket.methods.descriptors import Method, Notification
from becket.methods.streams import EventReader, Stream

__all__ = [
    "LOGGING_SET_LEVEL",
    "LOG_MESSAGE",
    "PROGRESS",
    "LogMessage",
    "LoggingLevel",
    "Progress",
    "SetLevelParams",
    "build_progress",
    "to_log_level",
    "to_logging_level",
    "with_progress",
]


# -- progress


class Progress(McpMessage, frozen=True):
    """Progress of a request. `progress` increases each time; `total` is its final value, if known."""

    progress_token: int | str
    progress: float
    total: float | None = None
    message: str | None = None


PROGRESS: Final = Notification("notifications/progress", Progress, summary="How far a request has come.")


class ProgressTokenProbe(Struct, rename="camel"):
    progress_token: Any = None


def is_progress_for(raw: Raw, params: McpMessage) -> bool:
    try:
        received: object = decode_progress_token(raw).progress_token
    except JSON_ERRORS:
        return False
    token = find_progress_token(params.meta)
    return token is not None and received == token and type(received) is type(token)


decode_progress_token = msgspec.json.Decoder(ProgressTokenProbe).decode
PROGRESS_READER: Final = EventReader(msgspec.json.Decoder(Progress).decode, (Progress,), is_progress_for)


def with_progress(method: Method[Any, Any]) -> Stream[Any, Any, Progress]:
    """Returns the method as a stream of its progress. Its params must have a unique progress token."""
    return Stream(method.name, method.params, method.result, events={PROGRESS.name: PROGRESS_READER}, timeout=None)


def build_progress(token: int | str, value: object, numbers: Iterator[int]) -> Progress:
    """Returns the progress for a reported value: a number, a text, or the members of a `Progress`.

    A value without a number gets the next of `numbers`, because progress must increase."""
    match value:
        case Progress():
            return Progress(token, value.progress, value.total, value.message)
        case bool():
            return Progress(token, next(numbers))
        case int() | float():
            return Progress(token, value)
        case str():
            return Progress(token, next(numbers), message=value)
        case Mapping():
            members = cast("Mapping[object, object]", value)
            done, total, message = (members.get(name) for name in ("progress", "total", "message"))
            return Progress(
                token,
                done if is_number(done) else next(numbers),
                total if is_number(total) else None,
                message if isinstance(message, str) else None,
            )
        case _:
            return Progress(token, next(numbers))


def is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


# -- logging


class LoggingLevel(StrEnum):
    """Log levels, as in syslog."""

    DEBUG = "debug"
    INFO = "info"
    NOTICE = "notice"
    WARNING = "warning"
    ERROR = "error"
    CRITICAL = "critical"
    ALERT = "alert"
    EMERGENCY = "emergency"


class SetLevelParams(McpMessage, frozen=True):
    """Params of `logging/setLevel`: the minimum level."""

    level: LoggingLevel


class LogMessage(McpMessage, frozen=True):
    """A log message; `data` is usually a text, but may be any JSON value."""

    level: LoggingLevel
    data: Any = None
    logger: str | None = None

    @property
    def text(self) -> str:
        """The message as one text."""
        return self.data if isinstance(self.data, str) else msgspec.json.encode(self.data).decode()


LOGGING_SET_LEVEL: Final[Method[SetLevelParams, Any]] = Method(
    "logging/setLevel", SetLevelParams, Any, direction="to-extension", summary="Selects the notifications to be sent."
)
LOG_MESSAGE: Final = Notification("notifications/message", LogMessage, summary="A message for the log.")

NEAREST_LOG_LEVELS: Final = {
    LoggingLevel.NOTICE: LogLevel.INFO,
    LoggingLevel.ALERT: LogLevel.CRITICAL,
    LoggingLevel.EMERGENCY: LogLevel.CRITICAL,
}  # levels that the contract does not have


def to_log_level(level: LoggingLevel) -> LogLevel:
    """Returns the nearest level of the contract."""
    return NEAREST_LOG_LEVELS.get(level) or LogLevel(level.value)


def to_logging_level(level: LogLevel) -> LoggingLevel:
    """Returns the MCP level for a level of the contract."""
    return LoggingLevel(level.value)
