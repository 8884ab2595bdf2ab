"""A conversation drawn with lines: who said what to whom."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from becket.cli.sequence import ASCII, Drawing, content_of, draw_sequence, longest_label, time_text, without_meta
from becket.testing.conversations import Kind, Step
from becket.testing.transcripts import Side

HOST, CHILD = Side.HOST, Side.CHILD
ALL = [
    Step(1, 0.0, Kind.CALL, CHILD, "add", "1", None, 50, "[1,2]"),
    Step(2, 0.0015, Kind.NOTIFICATION, HOST, "told", content='{"a":1}'),
    Step(3, 1.5, Kind.ANSWER, HOST, "add", "1", 1.5, 30, "3"),
    Step(4, 1.5, Kind.ERROR, CHILD, "sub", "2", None, 30, '{"code":-32601,"message":"no\\u001b such"}'),
    Step(5, 1.5, Kind.INVALID, HOST, content="not JSON"),
    Step(6, 1.5, Kind.STRAY, HOST, content="hello\x1b[2J"),
    Step(7, 1.5, Kind.CLOSED, CHILD),
    Step(8, 1.5, Kind.EXIT, content="-15"),
]


def drawn(*steps: Step, width: int = 60, drawing: Drawing = ASCII) -> list[str]:
    return [line.rstrip() for _, line in draw_sequence(steps, width, drawing)]


def test_each_thing_that_was_said_is_a_line_with_an_arrow() -> None:
    assert drawn(*ALL) == [
        "         host                                          child",
        "    0 us |-- add #1 [1,2] -------------------------------->|",
        '  1.5 ms |<................................ told {"a":1} ..|',
        "  1.50 s |<---------------------- #1 add after 1.50 s: 3 --|",
        "  1.50 s |-- #2 sub: error -32601 no\\x1b such ------------>|",
        "  1.50 s |<------------------------ no message: not JSON --|",
        "  1.50 s |<---------------------- no frame: hello\\x1b[2J --|",
        "  1.50 s |.. no more will come ...........................>|",
        "  1.50 s | the child has ended: killed by SIGTERM          +",
    ]


@pytest.mark.parametrize("width", [40, 61, 100, 250])
def test_no_line_is_wider_than_it_may_be_and_all_arrows_end_at_the_same_column(width: int) -> None:
    wide = Step(9, 0.0, Kind.CALL, CHILD, "漢字" * 60, "1", content='{"text":"漢字"}')
    header, *lines = (line for _, line in draw_sequence([*ALL, wide], width))

    assert {cell_len(line) for line in lines} == {width}
    assert cell_len(header) <= width


def test_what_is_too_long_ends_in_dots_unless_there_is_room_for_all() -> None:
    step = Step(1, 0.0, Kind.CALL, CHILD, "add", "1", content="x" * 200)

    assert "..." in drawn(step)[1]
    assert "x" * 200 in drawn(step, width=longest_label([step]))[1]
    assert longest_label([]) == 0


def test_a_terminal_that_is_too_narrow_gets_the_narrowest_there_is() -> None:
    assert {len(line) for _, line in draw_sequence(ALL[:1], 5)} == {40}


def test_what_came_from_outside_is_shown_and_not_obeyed() -> None:
    assert "\x1b" not in "".join(drawn(*ALL))


@pytest.mark.parametrize(
    ("exit_code", "text"), [("0", "exit code 0"), ("-9", "killed by SIGKILL"), ("-63", "killed by signal 63")]
)
def test_how_a_child_has_ended_is_said_in_words(exit_code: str, text: str) -> None:
    assert text in content_of(Step(1, 0.0, Kind.EXIT, content=exit_code))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0, "0 us"), (0.000797, "797 us"), (0.0015, "1.5 ms"), (12.0, "12.00 s")],
)
def test_a_time_is_as_short_as_tells_it(seconds: float, text: str) -> None:
    assert time_text(seconds) == text


@pytest.mark.parametrize(
    ("kind", "content", "shown"),
    [
        (Kind.CALL, '{"_meta":{"becket":{}},"a":1}', '{"a":1}'),
        (Kind.CALL, '{"_meta":{"becket":{}}}', ""),
        (Kind.NOTIFICATION, '["_meta"]', '["_meta"]'),
        (Kind.ANSWER, '{"_meta":1}', '{"_meta":1}'),
        (Kind.CALL, '{"a": 1}', '{"a": 1}'),
    ],
)
def test_what_is_the_links_own_can_be_left_out(kind: Kind, content: str, shown: str) -> None:
    assert without_meta(Step(1, 0.0, kind, CHILD, content=content)).content == shown
