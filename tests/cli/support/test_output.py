"""The output of commands: plain and stable for programs, drawn for terminals, always escaped."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable

import click
import pytest
from msgspec import Struct
from tests.cli.terminals import Terminal

from becket.cli.support.logs import show_logs
from becket.cli.support.output import pluralize, print_json, print_json_line, print_message, print_table
from becket.host.diagnostics import without_id
from becket.host.host_config import LogConfig

DRAW = (
    "from becket.cli.support.output import *; print_table(('a', 'b'), [('1', 'two\\x1b[2J')]); print_json({'k': [1]})"
)


class Point(Struct):
    x: int


def test_json_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"points": [Point(1)]})

    assert capsys.readouterr().out == '{"points":[{"x":1}]}\n'


def test_one_of_many_json_documents_is_a_line_everywhere(capsys: pytest.CaptureFixture[str]) -> None:
    print_json_line({"point": Point(1)})

    assert capsys.readouterr().out == '{"point":{"x":1}}\n'


@pytest.mark.parametrize("write", [print_json, print_json_line])
def test_json_escapes_what_could_change_a_terminal_or_hide(
    write: Callable[[object], None], capsys: pytest.CaptureFixture[str]
) -> None:
    hostile = "\x9b2J \x85 \u202e \u2028 \u200b \U000e0100 \x7f"
    write({"text": hostile, "kept": "Zoë 🦀"})

    out = capsys.readouterr().out
    assert json.loads(out) == {"text": hostile, "kept": "Zoë 🦀"}
    assert out.rstrip("\n").isprintable()
    assert "\\u202e" in out
    assert "\\udb40\\udd00" in out
    assert "Zoë 🦀" in out


def test_a_table_has_columns_with_headers_in_capitals(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("id", "what it is"), [("a", "one"), ("long", ""), ("x", "bad\x1b[2J")])

    assert capsys.readouterr().out.splitlines() == [
        "ID    WHAT IT IS",
        "a     one",
        "long  -",
        "x     bad\\x1b[2J",
    ]


def test_messages_go_to_stderr_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    print_message("one\ntwo\x07")

    assert capsys.readouterr() == ("", "one\ntwo\\x07\n")


@pytest.mark.process
def test_on_a_terminal_tables_are_drawn_and_json_has_line_breaks() -> None:
    with Terminal([sys.executable, "-c", DRAW]) as terminal:
        assert terminal.end() == 0

    assert "─" in terminal.text
    assert "two\\x1b[2J" in terminal.text
    assert json.loads(terminal.text[terminal.text.index("{") :]) == {"k": [1]}
    assert '{\n  "k"' in terminal.text


@pytest.mark.process
def test_without_colour_no_escape_is_written() -> None:
    code = "from becket.cli.support.output import console; console().print('x', style='red')"
    for variables in ({}, {"NO_COLOR": "1"}):
        with Terminal([sys.executable, "-c", code], **variables) as terminal:
            assert terminal.end() == 0
        assert ("\x1b[31m" in terminal.raw) is not bool(variables)


def test_numbers_have_the_noun_that_fits() -> None:
    assert [pluralize(number, "error") for number in (0, 1, 2)] == ["0 errors", "1 error", "2 errors"]


def test_an_id_is_not_printed_twice() -> None:
    assert without_id("notes", "notes: ended") == "ended"
    assert without_id("notes", "it ended") == "it ended"


# -- logs


def test_a_log_line_has_the_level_and_the_extension(capsys: pytest.CaptureFixture[str]) -> None:
    with show_logs(LogConfig(level="warning")):
        logging.getLogger("becket.ext.notes").info("unheard")
        logging.getLogger("becket.ext.notes").warning("care: %s", 7)
    logging.getLogger("becket.host").info("afterwards")

    assert capsys.readouterr().err == "warning: notes: care: 7\n"


def test_a_log_can_be_json(capsys: pytest.CaptureFixture[str]) -> None:
    with show_logs(LogConfig(form="json")):
        logging.getLogger("becket.host").error("no")

    logged = json.loads(capsys.readouterr().err)
    assert logged.pop("time_ms") > 0
    assert logged == {"level": "error", "logger": "becket.host", "message": "no"}


def test_a_log_can_be_written_elsewhere() -> None:
    lines: list[str] = []

    with show_logs(LogConfig(), lines.append):
        logging.getLogger("becket.host").info("here")

    assert lines == ["info: becket.host: here"]


def test_a_log_that_cannot_be_written_is_ignored(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging, "raiseExceptions", False)

    def refuse(line: str) -> None:
        raise click.ClickException(line)

    with show_logs(LogConfig(), refuse):
        logging.getLogger("becket.host").info("nowhere")
