"""Four bytes of length, then the body."""

from __future__ import annotations

import pytest

from becket.errors import FrameTooLarge, LocalProtocolError
from becket.framing import LengthPrefixed
from becket.limits import DEFAULT_LIMITS, Limits
from becket.testing import check_framing


def test_length_prefixed_passes_check_framing() -> None:
    check_framing(LengthPrefixed)


def test_the_length_is_four_bytes_big_endian() -> None:
    assert LengthPrefixed().encode(b"x" * 258) == b"\0\0\1\2" + b"x" * 258


def test_an_empty_body_is_an_empty_frame_however_it_is_cut() -> None:
    assert LengthPrefixed().feed(b"\0\0\0\0\0\0\0\0") == [b"", b""]
    framing = LengthPrefixed()
    assert framing.feed(b"\0\0\0") == []
    assert framing.feed(b"\0\0\0\0\0") == [b"", b""]


def test_a_body_above_the_limit_is_not_written() -> None:
    with pytest.raises(LocalProtocolError) as caught:
        LengthPrefixed(Limits(frame=10)).encode(b"x" * 11)
    assert "11" in str(caught.value)
    assert "10" in str(caught.value)


def test_no_limit_is_above_what_four_bytes_can_encode() -> None:
    framing = LengthPrefixed(Limits(frame=2**40))
    framing.feed(b"\xff\xff\xff\xff")
    assert framing.error is None
    assert framing.pending == 4


@pytest.mark.parametrize("cut", range(5))
def test_a_body_at_the_limit_is_read_wherever_its_length_is_cut(cut: int) -> None:
    framing = LengthPrefixed(Limits(frame=10))
    data = b"\0\0\0\n" + b"x" * 10
    assert framing.feed(data[:cut]) + framing.feed(data[cut:]) == [b"x" * 10]


@pytest.mark.parametrize("cut", range(5))
def test_an_announced_size_above_the_limit_is_refused(cut: int) -> None:
    framing = LengthPrefixed()
    data = b"\0\0\0\1x\xff\xff\xff\xffmore"
    found = framing.feed(data[: 5 + cut]) + framing.feed(data[5 + cut :])
    assert found == [b"x"]
    assert isinstance(framing.error, FrameTooLarge)
    assert (framing.error.size, framing.error.limit) == (2**32 - 1, DEFAULT_LIMITS.frame)
    assert framing.feed(b"\0\0\0\1x") == []
    assert framing.end() is framing.error


@pytest.mark.parametrize("text", [b"Content-Length: 2\r\n\r\n{}", b'{"jsonrpc":"2.0"}\n', b"Starting\n"])
def test_text_where_a_length_belongs_is_called_text(text: bytes) -> None:
    framing = LengthPrefixed()
    framing.feed(text)
    assert framing.error is not None
    assert framing.error.problem == "text where a length belongs"
    assert framing.error.found == repr(text[:4])[1:]
    assert framing.error.hint == "is this another framing, or a print()?"


def test_the_error_for_input_that_ends_in_a_length_or_body_has_the_number_of_missing_bytes() -> None:
    framing = LengthPrefixed()
    assert framing.end() is None
    framing.feed(b"\0\0")
    error = framing.end()
    assert error is not None
    assert "2 of 4" in error.problem
    framing.feed(b"\0\5abc")
    error = framing.end()
    assert error is not None
    assert "2 of 5" in error.problem
    framing.feed(b"de")
    assert framing.end() is None


def test_pending_counts_the_length_and_the_body() -> None:
    framing = LengthPrefixed()
    seen: list[tuple[int, int]] = []
    for chunk in (b"\0", b"\0\0\2", b"a", b"b\0"):
        framing.feed(chunk)
        seen.append((framing.frames, framing.pending))
    assert seen == [(0, 1), (0, 4), (0, 5), (1, 1)]
