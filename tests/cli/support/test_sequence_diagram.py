"""A conversation drawn as a sequence diagram."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from becket.cli.support.sequence_diagram import (
    ASCII_STYLE,
    DiagramStyle,
    draw_sequence,
    format_content,
    format_seconds,
    max_label_width,
    without_meta,
)
from becket.testing.transcripts.file_format import LinkEnd
from becket.testing.transcripts.steps import StepKind, TranscriptStep

HOST, CHILD = LinkEnd.HOST, LinkEnd.CHILD
ALL = [
    TranscriptStep(1, 0.0, StepKind.CALL, CHILD, "add", "1", None, 50, "[1,2]"),
    TranscriptStep(2, 0.0015, StepKind.NOTIFICATION, HOST, "told", content='{"a":1}'),
    TranscriptStep(3, 1.5, StepKind.RESPONSE, HOST, "add", "1", 1.5, 30, "3"),
    TranscriptStep(4, 1.5, StepKind.ERROR, CHILD, "sub", "2", None, 30, '{"code":-32601,"message":"no\\u001b such"}'),
    TranscriptStep(5, 1.5, StepKind.INVALID, HOST, content="not JSON"),
    TranscriptStep(6, 1.5, StepKind.STRAY, HOST, content="hello\x1b[2J"),
    TranscriptStep(7, 1.5, StepKind.CLOSED, CHILD),
    TranscriptStep(8, 1.5, StepKind.EXIT, content="-15"),
]


def drawn(*steps: TranscriptStep, width: int = 60, drawing: DiagramStyle = ASCII_STYLE) -> list[str]:
    return [line.rstrip() for _, line in draw_sequence(steps, width, drawing)]


def test_each_message_is_a_line_with_an_arrow() -> None:
    assert drawn(*ALL) == [
        "         host                                          child",
        "    0 us |-- add #1 [1,2] -------------------------------->|",
        '  1.5 ms |<................................ told {"a":1} ..|',
        "  1.50 s |<---------------------- #1 add after 1.50 s: 3 --|",
        "  1.50 s |-- #2 sub: error -32601 no\\x1b such ------------>|",
        "  1.50 s |<--------------------- not a message: not JSON --|",
        "  1.50 s |<------------------- not a frame: hello\\x1b[2J --|",
        "  1.50 s |.. end of stream ...............................>|",
        "  1.50 s | the child has exited: killed by SIGTERM         +",
    ]


@pytest.mark.parametrize("width", [40, 61, 100, 250])
def test_no_line_is_wider_than_it_may_be_and_all_arrows_end_at_the_same_column(width: int) -> None:
    wide = TranscriptStep(9, 0.0, StepKind.CALL, CHILD, "漢字" * 60, "1", content='{"text":"漢字"}')
    header, *lines = (line for _, line in draw_sequence([*ALL, wide], width))

    assert {cell_len(line) for line in lines} == {width}
    assert cell_len(header) <= width


def test_long_text_ends_in_dots_unless_there_is_room_for_all() -> None:
    step = TranscriptStep(1, 0.0, StepKind.CALL, CHILD, "add", "1", content="x" * 200)

    assert "..." in drawn(step)[1]
    assert "x" * 200 in drawn(step, width=max_label_width([step]))[1]
    assert max_label_width([]) == 0


def test_a_terminal_that_is_too_narrow_gets_the_narrowest_there_is() -> None:
    assert {len(line) for _, line in draw_sequence(ALL[:1], 5)} == {40}


def test_control_characters_are_shown_escaped() -> None:
    assert "\x1b" not in "".join(drawn(*ALL))


@pytest.mark.parametrize(
    ("exit_code", "text"), [("0", "exit code 0"), ("-9", "killed by SIGKILL"), ("-63", "killed by signal 63")]
)
def test_the_exit_of_a_child_is_described(exit_code: str, text: str) -> None:
    assert text in format_content(TranscriptStep(1, 0.0, StepKind.EXIT, content=exit_code))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0, "0 us"), (0.000797, "797 us"), (0.0015, "1.5 ms"), (12.0, "12.00 s")],
)
def test_a_time_has_the_shortest_sufficient_form(seconds: float, text: str) -> None:
    assert format_seconds(seconds) == text


@pytest.mark.parametrize(
    ("kind", "content", "shown"),
    [
        (StepKind.CALL, '{"_meta":{"becket":{}},"a":1}', '{"a":1}'),
        (StepKind.CALL, '{"_meta":{"becket":{}}}', ""),
        (StepKind.NOTIFICATION, '["_meta"]', '["_meta"]'),
        (StepKind.RESPONSE, '{"_meta":1}', '{"_meta":1}'),
        (StepKind.CALL, '{"a": 1}', '{"a": 1}'),
    ],
)
def test_messages_of_the_link_itself_can_be_left_out(kind: StepKind, content: str, shown: str) -> None:
    assert without_meta(TranscriptStep(1, 0.0, kind, CHILD, content=content)).content == shown
