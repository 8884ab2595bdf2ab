"""The framing that is detected from the first bytes."""

from __future__ import annotations

import pytest

from becket.errors import BadFrame, LocalProtocolError
from becket.framing import AutoDetect, ContentLength, Frame, JsonLines, LengthPrefixed, SkippedFrame, detect_framing
from becket.limits import Limits
from becket.testing import check_framing

Known = type[ContentLength | JsonLines | LengthPrefixed]
EVERY: list[Known] = [ContentLength, JsonLines, LengthPrefixed]


@pytest.mark.parametrize("framing", EVERY)
def test_the_first_byte_of_a_frame_selects_its_framing(framing: Known) -> None:
    assert detect_framing(framing().encode(b'{"a":1}')[:1]) is framing


@pytest.mark.parametrize("prefix", [b"", b"\n", b"\r\n \t"])
def test_nothing_and_white_space_need_more_bytes(prefix: bytes) -> None:
    assert detect_framing(prefix) is None


@pytest.mark.parametrize(
    ("prefix", "framing"),
    [
        (b"content-type: a/b\r\n", ContentLength),
        (b"X-Trace: 1\r\n", ContentLength),
        (b"\n{}", JsonLines),
        (b"[", JsonLines),
        (b"Starting\n", ContentLength),
        (b"\xef\xbb\xbf{}", ContentLength),
        (b"\x0b{}", ContentLength),
    ],
)
def test_an_unclear_beginning_selects_the_framing_with_the_most_precise_error(prefix: bytes, framing: object) -> None:
    assert detect_framing(prefix) is framing


class Sniffed:
    """Writes one framing and reads with the detected one."""

    def __init__(self, written: Known, limits: Limits) -> None:
        self.error: BadFrame | None = None
        self.frames = 0
        self._written = written(limits)
        self._sniffing = AutoDetect(limits)

    @property
    def pending(self) -> int:
        return self._sniffing.pending

    def feed(self, chunk: bytes) -> list[Frame | SkippedFrame]:
        found = self._sniffing.feed(chunk)
        self.error = self._sniffing.error
        self.frames = self._sniffing.frames
        return found

    def end(self) -> BadFrame | None:
        return self._sniffing.end()

    def prefix(self, size: int) -> bytes | None:
        return self._written.prefix(size)

    def encode(self, body: bytes) -> bytes:
        return self._written.encode(body)


@pytest.mark.parametrize("framing", EVERY)
def test_every_detected_framing_passes_check_framing(framing: Known) -> None:
    check_framing(
        lambda limits: Sniffed(framing, limits), bodies=[b'{"a":1}', b"[1]", b'{"x":"' + b"x" * 70_000 + b'"}']
    )


@pytest.mark.parametrize("framing", EVERY)
def test_the_detected_framing_is_used_for_writing(framing: Known) -> None:
    sniffing = AutoDetect()
    assert sniffing.feed(framing().encode(b"{}")) == [b"{}"]
    assert isinstance(sniffing.chosen, framing)
    assert sniffing.encode(b"[]") == framing().encode(b"[]")
    assert sniffing.prefix(2) == framing().prefix(2)


def test_nothing_can_be_sent_before_something_was_read() -> None:
    sniffing = AutoDetect()
    sniffing.feed(b"\n")
    assert sniffing.prefix(2) is None
    with pytest.raises(LocalProtocolError, match=r"^the framing is unknown until the other peer has sent something$"):
        sniffing.encode(b"{}")


def test_white_space_first_is_given_to_the_framing_as_it_came() -> None:
    lines = AutoDetect()
    assert lines.feed(b"\r\n") == []
    assert (lines.pending, lines.end(), lines.frames) == (0, None, 0)
    assert lines.feed(b"\n{}\n") == [b"{}"]
    headers = AutoDetect()
    headers.feed(b"\r\n")
    assert headers.feed(b"Content-Length: 2\r\n\r\n{}") == []
    assert headers.error is not None
    assert headers.error.problem == "line end outside a frame"
    assert headers.end() is headers.error


def test_white_space_without_an_end_is_not_stored() -> None:
    sniffing = AutoDetect(Limits(header=10))
    for _ in range(100):
        assert sniffing.feed(b" " * 9 + b"\n") == []
    assert sniffing.feed(b"{}\n") == [b"{}"]
