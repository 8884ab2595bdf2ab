"""Log messages: lines on stderr round-trip, and any other line is not a record."""

from __future__ import annotations

import logging

import msgspec
import pytest
from hypothesis import given, strategies as st

from becket.contract.log import LOG, LogLevel, LogRecord, format_log_record, parse_log_line

NAMES = st.text(st.characters(exclude_categories=["C", "Z"], exclude_characters=":"), min_size=1)
LINES = st.text(st.characters(exclude_categories=["C", "Zl", "Zp"]))


def test_the_notification_is_for_the_host() -> None:
    assert (LOG.name, LOG.params, LOG.direction, LOG.requires) == ("$/log", LogRecord, "to-host", None)


def test_a_record_is_sent_with_its_level_in_lower_case() -> None:
    record = LogRecord(LogLevel.WARNING, "notes", "it rains")

    assert msgspec.json.encode(record) == b'{"level":"warning","logger":"notes","message":"it rains"}'
    assert msgspec.json.decode(msgspec.json.encode(record), type=LogRecord) == record


@pytest.mark.parametrize("level", LogLevel)
def test_the_levels_are_the_levels_of_logging(level: LogLevel) -> None:
    assert logging.getLevelName(getattr(logging, level.name)) == level.name == level.value.upper()


@given(st.sampled_from(LogLevel), NAMES, LINES)
def test_a_line_is_parsed_to_the_same_record(level: LogLevel, logger: str, message: str) -> None:
    record = LogRecord(level, logger, message)

    assert parse_log_line(format_log_record(record).removesuffix("\n")) == record


def test_each_line_of_a_message_is_a_record_of_its_own() -> None:
    text = format_log_record(LogRecord(LogLevel.ERROR, "notes", "it failed\nTraceback:\r\n  line 1"))

    assert text == "ERROR:notes:it failed\nERROR:notes:Traceback:\nERROR:notes:  line 1\n"


@pytest.mark.parametrize(
    ("logger", "shown"), [("a:b", "a.b"), ("a\nERROR:root:forged", "a ERROR.root.forged"), ("", "")]
)
def test_a_logger_cannot_forge_a_line(logger: str, shown: str) -> None:
    assert format_log_record(LogRecord(LogLevel.INFO, logger, "hello")) == f"INFO:{shown}:hello\n"


def test_an_empty_message_is_a_line_too() -> None:
    assert format_log_record(LogRecord(LogLevel.INFO, "notes", "")) == "INFO:notes:\n"


def test_lines_in_the_format_of_logging_are_read_too() -> None:
    record = logging.LogRecord("root", logging.WARNING, "", 0, "disk at %d %%: soon full", (97,), None)
    line = logging.Formatter(logging.BASIC_FORMAT).format(record)

    assert parse_log_line(line) == LogRecord(LogLevel.WARNING, "root", "disk at 97 %: soon full")


@pytest.mark.parametrize(
    "line", ["", "hello", "WARNING", "WARNING:", "WARNING:notes", "warning:notes:hello", "NOTE:a:b"]
)
def test_any_other_line_is_not_a_record(line: str) -> None:
    assert parse_log_line(line) is None
