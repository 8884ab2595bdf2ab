"""The framings as targets: no exception, and the frames of the reference in every chunking."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from random import Random

from tests.fuzz.reference_framings import SKIPPED, read_json_lines, read_length_prefixed, read_loose, read_strict
from tests.fuzz.target import Target

from becket.errors import BadFrame
from becket.framing import AutoDetect, ContentLength, Frame, FramingFactory, JsonLines, LengthPrefixed, SkippedFrame
from becket.limits import Limits

__all__ = ["TARGETS"]

# Small enough for a short input to go beyond every one of them.
LIMITS = Limits(frame=64, header=128, header_lines=4, stray=64, skipped_frames=1)

NO_DIGITS = str.maketrans("", "", "0123456789")  # how many bytes were missing makes no other outcome

Reference = Callable[[bytes, Limits], list[bytes | str]]

HEADERS = [
    b"Content-Length: 2\r\n\r\n{}",
    b'Content-Length: 7\r\n\r\n{"a":1}Content-Length: 0\r\n\r\n',
    b"content-length:2\r\nContent-Type: application/vscode-jsonrpc; charset=utf-8\r\n\r\n[]",
    b'Content-Type: a/b; charset="utf8"\r\nContent-Length: 2\r\n\r\n{}',
    b"X-Trace: 1\r\nX-More:\r\nContent-Length: 64\r\n\r\n" + b"x" * 64,
    b"Content-Length: 65\r\n\r\n" + b"x" * 65,
    b"Content-Length: 2\n\n{}",
    b"banner\nContent-Length: 2\r\n\r\n{}text\r\nContent-Length: 2\r\n\r\n{}",
]
HEADER_TOKENS = [
    *(b"Content-Length: ", b"content-length:", b"Content-Type: a/b; charset=", b"utf-8", b"UTF8", b'"', b";", b":"),
    *(b"\r\n", b"\r\n\r\n", b"\n", b"\r", b" ", b"\t", b"\0", b"\xef\xbb\xbf", b"0", b"2", b"64", b"65", b"4294967296"),
    *(b"+", b"-", b"{}", b"[", b"text\n", b"99%", b"A: b\r\n", b"x" * 64, b"\xff"),
]
LINES = [b"{}\n", b'{"a":1}\r\n[]\n\n', b"x" * 64 + b"\n", b"x" * 65 + b"\r\n{}\n", b"text\n{}\n", "\u2028\n".encode()]
LINE_TOKENS = [b"\n", b"\r\n", b"\r", b" ", b"{}", b"[1]\n", b"text\n", b"x" * 64, b"\xe2\x80\xa8", b"\v", b"\0"]
PREFIXED = [b"\0\0\0\2{}", b"\0\0\0\0\0\0\0\1x", b"\0\0\0\x40" + b"x" * 64, b"\0\0\0\x41", b"\xff\xff\xff\xff", b"text"]
PREFIX_TOKENS = [b"\0", b"\0\0\0\0", b"\0\0\0\1", b"\0\0\0\x40", b"\1", b"x" * 64, b"{}", b"\xff"]


def run(factory: FramingFactory, reference: Reference | None, data: bytes, random: Random) -> Hashable:
    """Reads the input whole and in chunks, and compares."""
    whole, cut = factory(LIMITS), factory(LIMITS)
    found = plain(whole.feed(data))
    first, second = int(random.random() * len(data)), int(random.random() * len(data))
    # Two chunks or three: the third is what finds a state that survives one chunk and not another.
    parts = [data[:first], data[first:second], data[second:]] if first < second else [data[:first], data[first:]]
    assert plain([frame for part in parts for frame in cut.feed(part)]) == found, f"other frames from {parts}"
    assert type(whole.error) is type(cut.error), f"another error from {parts}: {whole.error!r}, {cut.error!r}"
    assert whole.error is None or isinstance(whole.error, BadFrame)
    if whole.error is None:
        assert (whole.frames, whole.pending) == (cut.frames, cut.pending), f"another count from {parts}"
    if reference is not None:
        assert found == reference(data, LIMITS), "not what a plain reader finds"
    ended = whole.end()
    # Not the number of frames: a corpus of ever longer inputs would find less in the same time.
    return len(found) > 1, None if ended is None else ended.problem.translate(NO_DIGITS)


def plain(found: list[Frame | SkippedFrame]) -> list[bytes | str]:
    return [SKIPPED if isinstance(frame, SkippedFrame) else bytes(frame) for frame in found]


def target(
    name: str, corpus: list[bytes], tokens: list[bytes], factory: FramingFactory, reference: Reference | None = None
) -> Target:
    return Target(name, corpus, tokens, partial(run, factory, reference))


TARGETS = [
    target("content-length", HEADERS, HEADER_TOKENS, ContentLength, read_strict),
    target("content-length-loose", HEADERS, HEADER_TOKENS, partial(ContentLength, strict=False), read_loose),
    target("content-length-stray", HEADERS, HEADER_TOKENS, partial(ContentLength, skip_stray=True)),
    target("json-lines", LINES, LINE_TOKENS, JsonLines, read_json_lines),
    target("json-lines-stray", LINES, LINE_TOKENS, partial(JsonLines, skip_stray=True)),
    target("length-prefixed", PREFIXED, PREFIX_TOKENS, LengthPrefixed, read_length_prefixed),
    target("sniffing", HEADERS + LINES + PREFIXED, HEADER_TOKENS + LINE_TOKENS + PREFIX_TOKENS, AutoDetect),
]
