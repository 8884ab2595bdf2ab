"""Framings that skip text outside frames: how much they drop, and what they report."""

from __future__ import annotations

from functools import partial

import pytest

from becket.errors import BadFrame, FrameTooLarge
from becket.framing import ContentLength, Frame, JsonLines, SkippedFrame
from becket.limits import DEFAULT_LIMITS, Limits
from becket.testing import check_framing

GOOD = b"Content-Length: 2\r\n\r\n{}"
LENIENT = partial(ContentLength, skip_stray=True)


def frames_of(found: list[Frame | SkippedFrame]) -> list[bytes]:
    return [bytes(frame) for frame in found if not isinstance(frame, SkippedFrame)]


def notices_of(found: list[Frame | SkippedFrame]) -> list[BadFrame]:
    return [frame.error for frame in found if isinstance(frame, SkippedFrame)]


def one_by_one(framing: ContentLength | JsonLines, data: bytes) -> list[Frame | SkippedFrame]:
    return [frame for at in range(len(data)) for frame in framing.feed(data[at : at + 1])]


@pytest.mark.parametrize("factory", [LENIENT, partial(ContentLength, skip_stray=True, strict=False)])
def test_content_length_that_skips_text_passes_check_framing(factory: partial[ContentLength]) -> None:
    check_framing(factory)


def test_json_lines_that_skip_text_pass_check_framing() -> None:
    check_framing(partial(JsonLines, skip_stray=True), bodies=[b"{}", b"[1]", b'{"a":1}', b'{"a":"' + b"x" * 70_000])


TEXTS = {
    "a banner": b"\n> notes@1.2.0 start\n> node server.js\n\n",
    "a log line": b"INFO: ready\r\n",
    "blank lines": b"\r\n\n\r\n",
    "a header of another kind": b"X-Powered-By: nobody\r\n",
    "a progress bar": b"Done: 10%\rDone: 20%\r",
    "text without a line end": b"Loading...",
    "the beginning of a header, and then not": b"Cont\nContent-\nCo",
    "a header in a log": b"sent Content-Length: 5\ngot Content-Length: many\r\n",
    "another alphabet": "準備完了\n".encode(),
    "binary": b"\0\1\2\xff\n",
    "a long line": b"x" * 10_000 + b"\n",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_text_before_and_between_frames_is_dropped(text: bytes) -> None:
    data = text + GOOD + text + GOOD + GOOD
    whole, cut = LENIENT(), LENIENT()
    found = whole.feed(data)
    assert frames_of(found) == [b"{}"] * 3
    assert frames_of(one_by_one(cut, data)) == [b"{}"] * 3
    assert whole.error is None
    assert cut.error is None
    assert cut.frames == whole.frames


def test_the_first_dropped_line_is_reported_once() -> None:
    framing = LENIENT()
    (notice,) = notices_of(framing.feed(b"first line\nsecond line\n" + GOOD + b"third line\n" + GOOD))
    assert notice.problem == "something wrote to stdout"
    assert "first line" in notice.found
    assert framing.first_noise == b"first line\n"


def test_every_dropped_line_counts_as_a_frame_that_has_ended() -> None:
    framing = LENIENT()
    framing.feed(b"first line\nsecond line\n" + GOOD + b"third line\n")
    assert framing.frames == 4


def test_a_reader_that_skips_nothing_reports_nothing() -> None:
    assert ContentLength().first_noise == b""
    assert JsonLines().first_noise == b""


def test_a_notice_replaces_the_text() -> None:
    found = LENIENT().feed(GOOD + b"oops\n" + GOOD)
    assert [type(frame) for frame in found] == [bytes, SkippedFrame, bytes]


def test_a_header_right_behind_text_is_found_and_only_the_text_is_dropped() -> None:
    framing = LENIENT()
    assert frames_of(framing.feed(b"99%" + GOOD)) == [b"{}"]
    assert framing.first_noise == b"99%"


@pytest.mark.parametrize(("size", "frames"), [(40, [b"{}"]), (41, [])])
def test_a_header_behind_text_is_looked_for_in_lines_within_the_header_limit(size: int, frames: list[bytes]) -> None:
    header = b"Content-Length: 2\r\n"
    data = b"x" * (size - len(header)) + header + b"\r\n{}\n"
    limits = Limits(header=40)
    assert frames_of(LENIENT(limits).feed(data)) == frames
    assert frames_of(one_by_one(LENIENT(limits), data)) == frames


def test_text_beyond_its_limit_in_total_is_fatal() -> None:
    framing = LENIENT(Limits(stray=100))
    line = b"x" * 49 + b"\n"
    assert frames_of(framing.feed(line + GOOD + line + GOOD)) == [b"{}", b"{}"]
    assert framing.feed(b"y\n" + GOOD) == []
    assert framing.error is not None
    assert "100" in framing.error.problem
    assert "stderr" in framing.error.hint
    assert framing.error.found.startswith("'xxx")


def test_text_without_any_line_end_is_fatal_at_its_limit_too() -> None:
    framing = LENIENT()
    for _ in range(DEFAULT_LIMITS.stray // 1024):
        framing.feed(b"x" * 1024)
        assert framing.error is None
    framing.feed(b"x" * 1024)
    assert framing.error is not None


def test_the_end_of_a_long_line_counts_too() -> None:
    framing = LENIENT(Limits(stray=5_000))
    framing.feed(b"x" * 4_500)
    framing.feed(b"x" * 600 + b"\n")
    assert framing.error is not None


def test_a_bad_header_is_as_fatal_as_ever() -> None:
    framing = LENIENT()
    framing.feed(b"text\nContent-Length: 2\n\n{}")
    assert framing.error is not None
    assert framing.error.problem == "bare LF in a header"


def test_a_header_right_behind_text_is_held_to_the_limits() -> None:
    framing = LENIENT(Limits(frame=10))
    framing.feed(b"99%Content-Length: 11\r\n\r\n")
    assert isinstance(framing.error, FrameTooLarge)
    assert framing.error.size == 11


def test_text_that_waits_for_its_line_end_is_not_a_frame_that_has_begun() -> None:
    framing = LENIENT()
    framing.feed(b"Password: ")
    assert framing.pending == 0
    framing.feed(b"\nContent-lengths")
    assert framing.pending == 0
    assert framing.end() is None


def test_text_that_may_still_become_a_header_counts_as_begun() -> None:
    framing = LENIENT()
    framing.feed(b"Conte")
    assert framing.pending == 5
    assert framing.end() is not None
    framing.feed(b"mplating\nCont")
    assert (framing.pending, framing.frames) == (4, 1)  # another one: the line between has been counted
    assert frames_of(framing.feed(b"ent-Length: 2\r\n\r\n{}")) == [b"{}"]


# -- lines


def test_lines_that_begin_no_json_are_dropped_and_reported_once() -> None:
    framing = JsonLines(skip_stray=True)
    found = framing.feed(b'Starting\n{"a":1}\nINFO ready\r\n [2]\r\n42\n\n')
    assert frames_of(found) == [b'{"a":1}', b" [2]"]
    assert [error.problem for error in notices_of(found)] == ["something wrote to stdout"]
    assert framing.first_noise == b"Starting"
    assert framing.frames == 5
    assert framing.error is None


def test_dropped_lines_beyond_their_limit_in_total_are_fatal() -> None:
    framing = JsonLines(Limits(stray=10), skip_stray=True)
    assert frames_of(framing.feed(b"12345\n{}\n12345\n{}\n")) == [b"{}", b"{}"]
    assert framing.feed(b"6\n{}\nrest") == []
    assert framing.error is not None
    assert "10" in framing.error.problem


def test_the_first_dropped_text_is_reported_whole_with_what_follows() -> None:
    (notice,) = notices_of(LENIENT().feed(b"INFO: ready\n" + GOOD))
    assert str(notice) == "something wrote to stdout: 'INFO: ready\\n' (further lines are dropped silently)"


def test_of_two_headers_on_one_line_of_text_the_last_one_counts() -> None:
    found = LENIENT().feed(b"sent Content-Length: 9 Content-Length: 2\r\n\r\n{}")
    assert frames_of(found) == [b"{}"]


def test_a_length_in_text_with_other_characters_around_it_is_no_header() -> None:
    framing = LENIENT()
    assert frames_of(framing.feed(b"log Content-Length: X2X\r\n\r\n" + GOOD)) == [b"{}"]
