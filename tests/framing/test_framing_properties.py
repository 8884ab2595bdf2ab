"""Properties for any bodies, any chunking and any bytes."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import example, given, strategies as st

from becket.errors import BadFrame
from becket.framing import AutoDetect, ContentLength, Framing, FramingFactory, JsonLines, LengthPrefixed, SkippedFrame
from becket.limits import Limits

EVERY = {
    "content length": ContentLength,
    "content length as synaps": partial(ContentLength, strict=False),
    "content length, skipping text": partial(ContentLength, skip_stray=True),
    "json lines": JsonLines,
    "json lines, skipping text": partial(JsonLines, skip_stray=True),
    "length prefixed": LengthPrefixed,
    "sniffing": AutoDetect,
}
WRITING = {name: factory for name, factory in EVERY.items() if name != "sniffing"}

SMALL = Limits(frame=64, header=128, header_lines=4, stray=64, skipped_frames=1)

# JSON without line ends, as an encoder writes it: every framing carries that.
bodies = st.binary(max_size=60).map(lambda data: b"[" + data.replace(b"\n", b"").replace(b"\r", b"") + b"]")
fragments = st.sampled_from(
    [
        b"Content-Length: ",
        b"content-length:",
        b"Content-Type: a/b; charset=",
        b"utf-8",
        b"2",
        b"66",
        b"\r\n",
        b"\r\n\r\n",
        b"\n",
        b"\r",
        b"{}",
        b"[",
        b"\0\0\0\2",
        b"\0",
        b" ",
        b":",
        b"text",
        b"\xef\xbb\xbf",
    ]
)
anything = st.lists(fragments | st.binary(max_size=8), max_size=40).map(b"".join)


@st.composite
def cuts(draw: st.DrawFn, data: bytes) -> list[bytes]:
    cuts = sorted(draw(st.lists(st.integers(0, len(data)), max_size=12)))
    return [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]


def read(framing: Framing, chunks: list[bytes]) -> list[bytes | str]:
    """Returns what came out, each skipped frame as the problem it is."""
    found = [frame for chunk in chunks for frame in framing.feed(chunk)]
    return [frame.error.problem if isinstance(frame, SkippedFrame) else bytes(frame) for frame in found]


@pytest.mark.parametrize("factory", WRITING.values(), ids=WRITING.keys())
@given(st.data(), st.lists(bodies, max_size=20))
def test_any_bodies_come_out_of_any_chunking(factory: FramingFactory, data: st.DataObject, bodies: list[bytes]) -> None:
    framing = factory(SMALL)
    wire = b"".join(framing.encode(body) for body in bodies)
    assert read(framing, data.draw(cuts(wire))) == bodies
    assert framing.error is None
    assert framing.frames == len(bodies)
    assert framing.pending == 0
    assert framing.end() is None


@pytest.mark.parametrize("factory", EVERY.values(), ids=EVERY.keys())
@given(st.data(), anything)
def test_any_bytes_give_frames_or_a_recorded_error_and_the_same_in_any_chunking(
    factory: FramingFactory, data: st.DataObject, wire: bytes
) -> None:
    whole, cut = factory(SMALL), factory(SMALL)
    chunks = data.draw(cuts(wire))
    assert read(whole, [wire]) == read(cut, chunks)
    assert type(whole.error) is type(cut.error)
    assert whole.error is None or isinstance(whole.error, BadFrame)
    assert type(whole.end()) is type(cut.end())
    if whole.error is None:
        assert (whole.frames, whole.pending) == (cut.frames, cut.pending)


@pytest.mark.parametrize("strict", [True, False])
@given(anything, st.integers(0, 200), st.integers(0, 200))
@example(b"Content-Length: 66\r\n\r\n" + b"x" * 66, 66, 65)
def test_frames_read_under_a_limit_are_the_same_under_a_higher_one(
    strict: bool, wire: bytes, one: int, other: int
) -> None:
    low = ContentLength(SMALL.but(frame=min(one, other)), strict=strict)
    high = ContentLength(SMALL.but(frame=max(one, other)), strict=strict)
    under_low = low.feed(wire)
    assert high.feed(wire)[: len(under_low)] == under_low


@given(st.lists(st.sampled_from([b"a", b"bc\r", b"", b" ", b"\xe2\x80\xa8", b"\r"]), max_size=30), st.data())
def test_lines_are_what_a_split_at_newlines_gives(parts: list[bytes], data: st.DataObject) -> None:
    wire = b"".join(part + b"\n" for part in parts)
    naive = [line.removesuffix(b"\r") for line in wire.split(b"\n")[:-1]]
    assert read(JsonLines(), data.draw(cuts(wire))) == [line for line in naive if line.strip()]
