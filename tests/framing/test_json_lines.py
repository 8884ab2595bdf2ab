"""One message per line: line ends, skipped lines, and the cost of a line without an end."""

from __future__ import annotations

import pytest

from becket.errors import FrameTooLarge, LocalProtocolError
from becket.framing import JsonLines, SkippedFrame
from becket.limits import Limits
from becket.testing import check_framing

SMALL = Limits(frame=10)


def test_json_lines_pass_check_framing() -> None:
    check_framing(JsonLines)


def test_a_body_is_written_with_one_newline() -> None:
    assert JsonLines().encode(b'{"a":1}') == b'{"a":1}\n'


TWO_LINES = "a line cannot carry a line end: send compact JSON"
BLANK = "a blank line is not a frame: send JSON"


@pytest.mark.parametrize(
    ("body", "because"),
    [
        (b'{"a":\n1}', TWO_LINES),
        (b"{}\n", TWO_LINES),
        (b"{}\r", TWO_LINES),
        (b"", BLANK),
        (b"  ", BLANK),
        (b"\t", BLANK),
    ],
)
def test_a_body_that_would_not_be_read_unchanged_is_not_written(body: bytes, because: str) -> None:
    with pytest.raises(LocalProtocolError) as caught:
        JsonLines().encode(body)
    assert str(caught.value) == because


def test_a_body_that_ends_in_a_space_is_written() -> None:
    framing = JsonLines()
    assert framing.feed(framing.encode(b"{} ")) == [b"{} "]
    assert JsonLines(SMALL).encode(b"x" * 9 + b" ") == b"x" * 9 + b" \n"


def test_a_body_above_the_limit_is_not_written() -> None:
    with pytest.raises(LocalProtocolError) as caught:
        JsonLines(SMALL).encode(b"x" * 11)
    assert "11" in str(caught.value)
    assert "10" in str(caught.value)


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_lf_and_crlf_end_a_line(end: bytes) -> None:
    framing = JsonLines()
    assert framing.feed(b'{"a":1}' + end + b"[]" + end + b"{") == [b'{"a":1}', b"[]"]
    assert framing.feed(b"}" + end) == [b"{}"]


def test_a_line_end_may_itself_be_cut_in_two() -> None:
    framing = JsonLines()
    assert framing.feed(b"{}\r") == []
    assert framing.feed(b"\n") == [b"{}"]


def test_blank_lines_are_skipped() -> None:
    framing = JsonLines()
    assert framing.feed(b"\n\r\n  \n{}\n\n\t\r\n[]\n") == [b"{}", b"[]"]
    assert framing.feed(b"\n\n{}\n  \n[]\n") == [b"{}", b"[]"]
    assert framing.frames == 4


@pytest.mark.parametrize("inside", ["\u2028", "\u2029", "\u0085", "\v", "\f", "\x1c"])
def test_other_unicode_line_ends_stay_in_their_line(inside: str) -> None:
    body = f'{{"text":"a{inside}b"}}'.encode()
    framing = JsonLines()
    assert framing.feed(framing.encode(body)) == [body]


def test_a_line_at_the_limit_is_read_whatever_ends_it() -> None:
    for end in (b"\n", b"\r\n"):
        framing = JsonLines(SMALL)
        assert framing.feed(b"x" * 10 + end) == [b"x" * 10]
        assert [frame for one in b"x" * 10 + end for frame in framing.feed(bytes([one]))] == [b"x" * 10]


@pytest.mark.parametrize("chunk", [1, 2, 7, 1_000])
def test_a_line_above_the_limit_is_skipped_and_the_next_one_read(chunk: int) -> None:
    data = b"{}\n" + b"x" * 500 + b"\n[]\n"
    framing = JsonLines(SMALL)
    found = [frame for at in range(0, len(data), chunk) for frame in framing.feed(data[at : at + chunk])]
    first, skipped, last = found
    assert (first, last) == (b"{}", b"[]")
    assert isinstance(skipped, SkippedFrame)
    assert isinstance(skipped.error, FrameTooLarge)
    assert (skipped.error.size, skipped.error.limit, skipped.error.what) == (500, 10, "line")
    assert framing.error is None
    assert framing.frames == 3


@pytest.mark.parametrize("chunk", [1, 2, 7, 1_000])
def test_one_line_more_than_may_be_skipped_is_fatal(chunk: int) -> None:
    long = b"x" * 11 + b"\n"
    data = long + b"{}\n" + long + b"[]\n"
    framing = JsonLines(SMALL)
    found = [frame for at in range(0, len(data), chunk) for frame in framing.feed(data[at : at + chunk])]
    assert len(found) == 2
    assert found[1] == b"{}"
    assert isinstance(framing.error, FrameTooLarge)
    assert (framing.error.size, framing.error.what) == (None, "line")


def test_how_many_lines_may_be_skipped_is_a_limit() -> None:
    long = b"x" * 11 + b"\n"
    framing = JsonLines(SMALL.but(skipped_frames=2))
    assert [type(frame) for frame in framing.feed(long * 3)] == [SkippedFrame] * 2
    assert framing.error is not None
    strict = JsonLines(SMALL.but(skipped_frames=0))
    assert strict.feed(long) == []
    assert strict.error is not None


def test_a_line_without_an_end_is_counted_but_not_stored() -> None:
    framing = JsonLines(SMALL)
    for _ in range(100):
        assert framing.feed(b"x" * 1_000) == []
    assert framing.error is None
    assert framing.pending == 100_000
    error = framing.end()
    assert error is not None
    assert "100000" in error.problem


def test_a_second_line_without_an_end_is_fatal_before_it_ends() -> None:
    framing = JsonLines(SMALL)
    framing.feed(b"x" * 20 + b"\n" + b"y" * 20)
    assert framing.error is not None
    assert framing.feed(b"\n{}\n") == []


def test_a_second_oversize_line_that_ends_in_a_later_chunk_delivers_nothing_more() -> None:
    framing = JsonLines(SMALL)
    framing.feed(b"x" * 20 + b"\n" + b"y" * 10)
    assert framing.feed(b"yy\n{}\n[]") == []
    assert framing.error is not None


def test_input_that_ends_in_a_line_is_truncated() -> None:
    framing = JsonLines()
    assert framing.feed(b'{}\n{"a":"\xc3') == [b"{}"]
    error = framing.end()
    assert error is not None
    assert "7 bytes" in error.problem
    assert error.found.startswith("""'{"a":""")


@pytest.mark.parametrize("data", [b"", b"{}\n", b"{}\n\r", b"{}\n  "])
def test_input_that_ends_between_lines_is_complete(data: bytes) -> None:
    framing = JsonLines()
    framing.feed(data)
    assert framing.end() is None


def test_the_end_after_an_error_is_that_error() -> None:
    framing = JsonLines(SMALL.but(skipped_frames=0))
    framing.feed(b"x" * 20)
    assert framing.error is not None
    assert framing.end() is framing.error


def test_a_line_that_spans_chunks_is_handed_over_for_good() -> None:
    framing = JsonLines()
    framing.feed(b"[1,")
    (frame,) = framing.feed(b"2]\n[3,")
    framing.feed(b"4]\n")
    assert frame == b"[1,2]"


def test_a_line_without_end_ends_the_link_after_what_may_be_skipped() -> None:
    framing = JsonLines(Limits(frame=100, skipped_bytes=1_000))
    for _ in range(10):
        assert framing.feed(b"x" * 100) == []
        assert framing.error is None
    assert framing.feed(b"x" * 100) == []
    assert isinstance(framing.error, FrameTooLarge)
    assert framing.pending < 1_000_000
