"""Frames above the limit in every framing: responses are skipped in constant memory, anything else ends the link."""

from __future__ import annotations

import tracemalloc
from functools import partial

import pytest

from becket.errors import BadFrame, FrameTooLarge
from becket.framing import AutoDetect, ContentLength, Framing, FramingFactory, JsonLines, LengthPrefixed, SkippedFrame
from becket.framing.framing import Outline
from becket.jsonrpc.oversize import MessageScanner
from becket.limits import Limits

LIMITS = Limits(frame=100, skipped_bytes=2_000)
WIDE = Limits(frame=64 * 2**20)

FRAMINGS = {
    "content length": (ContentLength, ContentLength),
    "content length as synaps": (partial(ContentLength, strict=False), ContentLength),
    "content length, skipping text": (partial(ContentLength, skip_stray=True), ContentLength),
    "json lines": (JsonLines, JsonLines),
    "json lines, skipping text": (partial(JsonLines, skip_stray=True), JsonLines),
    "length prefixed": (LengthPrefixed, LengthPrefixed),
    "sniffed content length": (AutoDetect, ContentLength),
    "sniffed lines": (AutoDetect, JsonLines),
    "sniffed lengths": (AutoDetect, LengthPrefixed),
}
EVERY = pytest.mark.parametrize(("factory", "writer"), FRAMINGS.values(), ids=FRAMINGS)
ANNOUNCED = pytest.mark.parametrize("factory", [ContentLength, LengthPrefixed])
SMALL = b'{"jsonrpc":"2.0","id":1,"result":0}'


def scanning(factory: FramingFactory, limits: Limits = LIMITS) -> Framing:
    framing = factory(limits)
    framing.scan_oversize(partial(MessageScanner, limits))  # type: ignore[attr-defined]
    return framing


def response(size: int, id: int = 7) -> bytes:
    start, end = b'{"jsonrpc":"2.0","result":"', b'","id":%d}' % id
    return start + b"x" * (size - len(start) - len(end)) + end


def request(size: int) -> bytes:
    start, end = b'{"jsonrpc":"2.0","id":8,"method":"m","params":["', b'"]}'
    return start + b"x" * (size - len(start) - len(end)) + end


@EVERY
@pytest.mark.parametrize("size", [1, 3, 64, 100_000])
def test_responses_above_the_limit_are_skipped_one_after_another(
    factory: FramingFactory, writer: FramingFactory, size: int
) -> None:
    bodies = [SMALL, response(101), response(1_999, 8), SMALL, response(2_000, 9), SMALL]
    data = b"".join(map(writer(WIDE).encode, bodies))
    framing = scanning(factory)
    found = [frame for start in range(0, len(data), size) for frame in framing.feed(data[start : start + size])]
    assert framing.error is None
    assert (framing.frames, framing.pending, framing.end()) == (6, 0, None)
    assert [frame.outline if isinstance(frame, SkippedFrame) else bytes(frame) for frame in found] == [
        SMALL,
        Outline(b"7", is_response=True),
        Outline(b"8", is_response=True),
        SMALL,
        Outline(b"9", is_response=True),
        SMALL,
    ]
    errors = [frame.error for frame in found if isinstance(frame, SkippedFrame)]
    assert [(error.size, error.limit) for error in errors if isinstance(error, FrameTooLarge)] == [
        (101, 100),
        (1_999, 100),
        (2_000, 100),
    ]


@EVERY
@pytest.mark.parametrize("cut", [1, 3, 30])
def test_a_response_above_the_limit_is_skipped_wherever_its_beginning_is_cut(
    factory: FramingFactory, writer: FramingFactory, cut: int
) -> None:
    data = writer(WIDE).encode(response(200)) + writer(WIDE).encode(SMALL)
    framing = scanning(factory)
    (skipped, frame) = framing.feed(data[:cut]) + framing.feed(data[cut:])
    assert isinstance(skipped, SkippedFrame)
    assert skipped.outline == Outline(b"7", is_response=True)
    assert frame == SMALL


@EVERY
@pytest.mark.parametrize("size", [1, 7, 100_000])
@pytest.mark.parametrize(
    "body",
    [
        response(2_001),
        b'{"jsonrpc":"2.0","result":{"id":7,"text":"%b"}}' % (b"x" * 200),
        b'[{"jsonrpc":"2.0","id":7,"result":"%b"}]' % (b"x" * 200),
        b'{"id":7,"result":"%b","id":8}' % (b"x" * 200),
    ],
    ids=["too long", "no id", "batch", "two ids"],
)
def test_a_frame_above_the_limit_that_settles_no_call_ends_the_link(
    factory: FramingFactory, writer: FramingFactory, body: bytes, size: int
) -> None:
    data = writer(WIDE).encode(SMALL) + writer(WIDE).encode(body) + writer(WIDE).encode(SMALL)
    framing = scanning(factory)
    found = [frame for start in range(0, len(data), size) for frame in framing.feed(data[start : start + size])]
    assert found == [SMALL]
    assert isinstance(framing.error, FrameTooLarge)
    assert framing.error.limit == 100
    assert framing.end() is framing.error


@ANNOUNCED
def test_a_request_above_the_limit_ends_the_link_before_its_end_has_come(factory: FramingFactory) -> None:
    framing = scanning(factory)
    assert framing.feed(factory(WIDE).encode(request(1_000))[:80]) == []
    assert isinstance(framing.error, FrameTooLarge)
    assert framing.error.size == 1_000


def test_a_request_on_a_line_above_the_limit_is_skipped_once_and_the_next_one_ends_the_link() -> None:
    framing = scanning(JsonLines)
    line = request(1_000) + b"\n"
    (skipped,) = framing.feed(line)
    assert isinstance(skipped, SkippedFrame)
    assert skipped.outline == Outline(b"8", is_response=False)
    assert framing.feed(line) == []
    assert isinstance(framing.error, FrameTooLarge)


def test_responses_on_lines_above_the_limit_do_not_count_among_the_requests_that_are_skipped() -> None:
    framing = scanning(JsonLines)
    assert len(framing.feed((response(1_000) + b"\n") * 3 + request(1_000) + b"\n")) == 4
    assert framing.error is None


def test_an_indented_response_above_the_limit_is_not_stray_text() -> None:
    (skipped,) = scanning(partial(JsonLines, skip_stray=True)).feed(b"  " + response(1_000) + b"\n")
    assert isinstance(skipped, SkippedFrame)
    assert skipped.outline == Outline(b"7", is_response=True)


def test_a_line_of_stray_text_above_the_limit_is_skipped_as_before() -> None:
    framing = scanning(partial(JsonLines, skip_stray=True))
    (skipped, frame) = framing.feed(b"log " * 100 + b"\n" + SMALL + b"\n")
    assert isinstance(skipped, SkippedFrame)
    assert skipped.outline is None
    assert frame == SMALL


@ANNOUNCED
def test_input_that_ends_within_a_skipped_body_is_truncated(factory: FramingFactory) -> None:
    framing = scanning(factory)
    assert framing.feed(factory(WIDE).encode(response(1_000))[:-10]) == []
    assert framing.pending > 900
    ended = framing.end()
    assert isinstance(ended, BadFrame)
    assert "10 of 1000" in ended.problem


@EVERY
def test_a_response_above_the_limit_takes_no_memory(factory: FramingFactory, writer: FramingFactory) -> None:
    limits = Limits(frame=64 * 1024, skipped_bytes=8 * 2**20)
    data = writer(WIDE).encode(response(4 * 2**20))
    chunks = [data[start : start + 16 * 1024] for start in range(0, len(data), 16 * 1024)]
    framing = scanning(factory, limits)
    framing.feed(writer(WIDE).encode(response(100_000)))  # loads what is loaded at the first one
    tracemalloc.start()
    try:
        found = [frame for chunk in chunks for frame in framing.feed(chunk)]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert [type(frame) for frame in found] == [SkippedFrame]
    assert peak < 4 * limits.frame


def test_the_bytes_that_are_skipped_are_never_fewer_than_four_frames() -> None:
    assert Limits().longest_skipped == 4 * Limits().frame
    assert Limits(frame=32 * 2**20).longest_skipped == 128 * 2**20
    assert Limits(frame=100, skipped_bytes=1_000).longest_skipped == 1_000
