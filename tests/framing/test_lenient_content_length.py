"""`ContentLength(strict=False)`: headers as the synaps host reads them, no laxer and no stricter."""

from __future__ import annotations

from functools import partial

import pytest

from becket.errors import BadFrame, FrameTooLarge
from becket.framing import ContentLength
from becket.limits import DEFAULT_LIMITS, Limits
from becket.testing import check_framing

LENIENT = partial(ContentLength, strict=False)
GOOD = b"Content-Length: 2\r\n\r\n{}"


def refused(data: bytes) -> BadFrame:
    """Returns the error for this input, after checking that it is the same when the input comes byte by byte."""
    whole, cut = LENIENT(), LENIENT()
    assert whole.feed(data) == []
    assert [frame for at in range(len(data)) for frame in cut.feed(data[at : at + 1])] == []
    assert whole.error is not None
    assert cut.error is not None
    assert (type(cut.error), cut.error.problem) == (type(whole.error), whole.error.problem)
    return whole.error


def test_lenient_content_length_passes_check_framing() -> None:
    check_framing(LENIENT)


def test_the_lenient_framing_writes_the_same_as_the_strict_one() -> None:
    assert LENIENT().encode(b"{}") == GOOD


@pytest.mark.parametrize(
    "header",
    [
        b"Content-Length: 2\r\n\r\n",
        b"Content-Length: 2\n\n",
        b"Content-Length: 2\r\n\n",
        b"Content-Length: 2\n\r\n",
        b"Content-Length: 2\r\n \t\r\n",
        b"content-length:2\n\n",
        b"  Content-Length  :  2  \r\n\r\n",
        b"Content-Length: 99\r\nContent-Length: 2\r\n\r\n",
        b"Content-Length: 99999999\r\nCONTENT-LENGTH: 2\r\n\r\n",
        b"Content-Type: text/plain; charset=utf-16\r\nContent-Length: 2\r\n\r\n",
        b"npm WARN deprecated\nContent-Length: 2\r\n\r\n",
        b"Content-Length\nContent-Length: 2\r\n\r\n",
        b": 7\nContent-Length: 2\r\n\r\n",
        b"Content-Length: +2\r\n\r\n",
        b"Content-Length: 00000000000000000000000002\r\n\r\n",
        "été: 1\nContent-Length: 2\r\n\r\n".encode(),
        pytest.param(b"X: y\n" * 5_000 + b"Content-Length: 2\n\n", id="many lines"),
        pytest.param(b"x" * 1_023 + b"\nContent-Length: 2\n\n", id="a long line"),
    ],
)
def test_a_header_is_read_as_the_synaps_host_reads_it(header: bytes) -> None:
    framing = LENIENT()
    data = (header + b"{}") * 2
    assert framing.feed(data) == [b"{}"] * 2
    assert [frame for at in range(len(data)) for frame in framing.feed(data[at : at + 1])] == [b"{}"] * 2
    assert framing.error is None


@pytest.mark.parametrize("data", [b"\n" + GOOD, b"\r\n" + GOOD, b"X: y\n\n{}", b"text\n\n", b"Content-Length\n\n"])
def test_a_block_without_a_length_is_refused(data: bytes) -> None:
    assert refused(data).problem == "missing Content-Length"


@pytest.mark.parametrize("value", [b"-2", b"two", b"", b"2 2", b"2_0", "\u0662".encode(), b"1e1", b"++2"])
def test_a_length_that_is_not_a_number_is_refused_at_once(value: bytes) -> None:
    assert refused(b"Content-Length: " + value + b"\nContent-Length: 2\n\n").problem == "Content-Length is not a number"


def test_a_length_of_64_bits_may_be_followed_by_another() -> None:
    assert LENIENT().feed(b"Content-Length: 18446744073709551615\nContent-Length: 2\n\n{}") == [b"{}"]


@pytest.mark.parametrize("value", [b"18446744073709551616", b"9" * 30, b"+" + b"9" * 900])
def test_a_length_above_64_bits_is_too_large_at_once(value: bytes) -> None:
    error = refused(b"Content-Length: " + value + b"\nContent-Length: 2\n\n")
    assert isinstance(error, FrameTooLarge)
    assert (error.what, error.size) == ("frame", int(value))


def test_the_last_length_is_held_to_the_limit_when_the_block_is_over() -> None:
    framing = LENIENT()
    framing.feed(b"Content-Length: 4194305\n")
    assert framing.error is None
    error = refused(b"Content-Length: 4194305\n\n")
    assert isinstance(error, FrameTooLarge)
    assert (error.size, error.limit) == (4_194_305, DEFAULT_LIMITS.frame)


def test_a_body_at_the_limit_is_read() -> None:
    framing = LENIENT(Limits(frame=10))
    assert framing.feed(b"Content-Length: 10\n\n" + b"x" * 10) == [b"x" * 10]


def test_a_line_above_1024_bytes_with_its_end_is_refused() -> None:
    error = refused(b"x" * 1_024 + b"\n" + GOOD)
    assert isinstance(error, FrameTooLarge)
    assert (error.what, error.limit) == ("header line", 1_024)


def test_a_line_without_an_end_is_refused_at_the_same_length() -> None:
    framing = LENIENT()
    framing.feed(b"x" * 1_024)
    assert framing.error is None
    assert isinstance(refused(b"x" * 1_025), FrameTooLarge)


def test_a_header_that_is_not_utf_8_is_refused() -> None:
    error = refused(b"X: \xff\n")
    assert (error.problem, error.found) == ("header line that is not UTF-8", repr(b"X: \xff\n")[1:])
    assert isinstance(error.__cause__, UnicodeDecodeError)


def test_pending_counts_the_header_and_the_body() -> None:
    framing = LENIENT()
    seen: list[tuple[int, int]] = []
    for chunk in (b"X: y\n", b"Content-Length: 3\n", b"\n", b"ab", b"c"):
        framing.feed(chunk)
        seen.append((framing.frames, framing.pending))
    assert seen == [(0, 5), (0, 23), (0, 24), (0, 26), (1, 0)]


def test_input_that_ends_in_a_header_or_body_is_truncated() -> None:
    for cut in range(1, len(GOOD)):
        framing = LENIENT()
        assert framing.feed(GOOD + GOOD[:cut]) == [b"{}"]
        error = framing.end()
        assert error is not None
        assert "truncated" in error.problem
