"""The log of an extension: levels are preserved, text is escaped, logger names are bounded."""

from __future__ import annotations

import logging

import pytest

from becket.contract.log import LogLevel, LogRecord
from becket.host.logs import MAX_LOGGER_NAME, MAX_MESSAGE_CHARS, ExtensionLog


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> ExtensionLog:
    caplog.set_level(logging.DEBUG, "becket.ext.notes")
    return ExtensionLog("notes")


@pytest.mark.parametrize(
    ("level", "number"),
    [
        (LogLevel.DEBUG, logging.DEBUG),
        (LogLevel.INFO, logging.INFO),
        (LogLevel.WARNING, logging.WARNING),
        (LogLevel.ERROR, logging.ERROR),
        (LogLevel.CRITICAL, logging.CRITICAL),
    ],
)
def test_each_level_is_that_of_logging(
    log: ExtensionLog, caplog: pytest.LogCaptureFixture, level: LogLevel, number: int
) -> None:
    log.on_record(LogRecord(level, "index", "old"))
    log.on_stderr_line(f"{level.name}:index:old")
    assert [(record.levelno, record.getMessage()) for record in caplog.records] == [(number, "index: old")] * 2


def test_any_other_line_is_information(log: ExtensionLog, caplog: pytest.LogCaptureFixture) -> None:
    log.on_stderr_line("Traceback (most recent call last):")
    assert [(record.levelno, record.getMessage()) for record in caplog.records] == [
        (logging.INFO, "Traceback (most recent call last):")
    ]


def test_a_traceback_has_the_level_of_the_record_before_it(log: ExtensionLog, caplog: pytest.LogCaptureFixture) -> None:
    lines = [
        "ERROR:becket.peer:incident c0ffee",
        "Traceback (most recent call last):",
        '  File "notes.py", line 3, in keep',
        "ValueError: no",
        "and now for something else",
    ]
    for line in lines:
        log.on_stderr_line(line)
    assert [record.levelno for record in caplog.records] == [logging.ERROR] * 4 + [logging.INFO]


def test_no_record_forges_another_or_moves_the_cursor(log: ExtensionLog, caplog: pytest.LogCaptureFixture) -> None:
    log.on_record(LogRecord(LogLevel.INFO, "a\nERROR b", "one\r\ntwo\x1b[2J\u202e"))
    assert [record.getMessage() for record in caplog.records] == [
        "a\\nERROR b: one",
        "a\\nERROR b: two\\x1b[2J\\u202e",
    ]


def test_a_very_long_line_is_truncated(log: ExtensionLog, caplog: pytest.LogCaptureFixture) -> None:
    log.on_record(LogRecord(LogLevel.INFO, "n" * 10_000, "x" * 1_000_000))
    (record,) = caplog.records
    assert len(record.getMessage()) <= MAX_MESSAGE_CHARS + MAX_LOGGER_NAME + 2


def test_an_empty_message_is_a_record(log: ExtensionLog, caplog: pytest.LogCaptureFixture) -> None:
    log.on_record(LogRecord(LogLevel.INFO, "n", ""))
    assert len(caplog.records) == 1


def test_records_below_the_level_are_not_written(log: ExtensionLog, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR, "becket.ext.notes")
    log.on_record(LogRecord(LogLevel.INFO, "n", "x"))
    assert caplog.records == []


def test_records_of_an_extension_create_no_loggers(log: ExtensionLog) -> None:
    log.on_record(LogRecord(LogLevel.INFO, "made.up.name", "x"))
    assert "becket.ext.notes.made" not in logging.root.manager.loggerDict


def test_each_line_also_reaches_subscribers_whatever_is_written(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "becket.ext.notes")
    received: list[tuple[str, str]] = []
    log = ExtensionLog("notes", lambda level, line: received.append((level, line)))

    log.on_record(LogRecord(LogLevel.DEBUG, "index", "one\ntwo\x1b[2J"))
    log.on_stderr_line("WARNING:index:old")
    log.on_stderr_line("starting")

    assert received == [
        ("debug", "index: one"),
        ("debug", "index: two\\x1b[2J"),
        ("warning", "index: old"),
        ("info", "starting"),
    ]
    assert caplog.records == []
