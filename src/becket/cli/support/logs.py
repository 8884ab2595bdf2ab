"""Prints log records of the host and its extensions on stderr, as text or JSON."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click
import msgspec

from becket.cli.support.output import escape_json

if TYPE_CHECKING:
    from becket.host.host_config import LogConfig

__all__ = ["is_level_enabled", "show_logs"]

EXTENSION_LOGGER_PREFIX = "becket.ext."


def is_level_enabled(level: str, config: LogConfig) -> bool:
    """Returns whether records of this level are shown."""
    levels = logging.getLevelNamesMapping()
    return levels[level.upper()] >= levels[config.level.upper()]


class LineLogHandler(logging.Handler):
    """Writes each record as a line."""

    def __init__(self, write: Callable[[str], object], *, as_json: bool) -> None:
        super().__init__()
        self._write = write
        self._as_json = as_json

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._write(self._describe(record))
        except Exception:
            self.handleError(record)

    def _describe(self, record: logging.LogRecord) -> str:
        name = record.name.removeprefix(EXTENSION_LOGGER_PREFIX)
        level = record.levelname.lower()
        if not self._as_json:
            return f"{level}: {name}: {record.getMessage()}"
        fields = {"time_ms": int(record.created * 1000), "level": level, "logger": name, "message": record.getMessage()}
        return escape_json(msgspec.json.encode(fields).decode())


@contextmanager
def show_logs(
    config: LogConfig, write: Callable[[str], object] | None = None, *, of_extensions: bool = True
) -> Generator[None]:
    """Writes log records during the block, with `write` or to stderr."""
    logger = logging.getLogger("becket")
    handler = LineLogHandler(write or write_to_stderr, as_json=config.form == "json")
    handler.addFilter(lambda record: not getattr(record, "is_problem", False))  # commands show the host's problems
    if not of_extensions:
        handler.addFilter(lambda record: not record.name.startswith(EXTENSION_LOGGER_PREFIX))
    before = logger.level
    logger.setLevel(config.level.upper())
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)


def write_to_stderr(line: str) -> None:
    click.echo(line, err=True)
