"""The work of a framing, counted and not timed: each byte is scanned a few times in any chunking."""

from __future__ import annotations

from typing import Any, SupportsIndex

import pytest

from becket.framing import ContentLength, Framing, FramingFactory, JsonLines, LengthPrefixed
from becket.limits import KIB, Limits

TIMES = 5  # that a byte may be scanned: found, cut out with others, cut out alone
LIMITS = Limits(header=128 * KIB)


class Counted(bytes):
    """A chunk that counts the bytes which are searched, cut out or compared in it."""

    looked_at = 0

    def note(self, count: int) -> None:
        Counted.looked_at += count

    def __getitem__(self, key: Any) -> Any:
        part = bytes.__getitem__(self, key)
        self.note(1 if isinstance(part, int) else len(part))
        return part

    def __contains__(self, key: Any) -> bool:
        place = bytes.find(self, key)
        self.note(len(self) if place < 0 else place + 1)
        return place >= 0

    def find(self, sub: Any, start: SupportsIndex | None = 0, end: SupportsIndex | None = None) -> int:
        place = bytes.find(self, sub, start, end)
        until = len(self) if end is None else min(len(self), end.__index__())
        self.note((until if place < 0 else place) - (start or 0).__index__())
        return place

    def split(self, sep: Any = None, maxsplit: SupportsIndex = -1) -> list[bytes]:
        self.note(len(self))
        return bytes.split(self, sep, maxsplit)


def look(framing: Framing, data: bytes, size: int) -> int:
    """Returns how many bytes were scanned while the data came in chunks of this size."""
    Counted.looked_at = 0
    for start in range(0, len(data), size):
        framing.feed(Counted(data[start : start + size]))
    assert framing.error is None
    return Counted.looked_at


SHAPES: dict[str, list[bytes]] = {
    "ten thousand small ones": [b'{"a":1}'] * 10_000,
    "of two sizes in turn": [b'{"a":1}', b'{"a":100}'] * 2_000,
    "of every size": [b"x" * size for size in range(1, 600)],
    "as long as half a piece of work": [b"x" * 9_000] * 20,
    "a large one": [b"x" * 1_000_000],
}


@pytest.mark.parametrize("framing", [ContentLength, JsonLines, LengthPrefixed])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("size", [1, 7, 1_000, 64 * KIB, 10_000_000])
def test_the_work_grows_with_the_input_and_not_with_its_square(framing: FramingFactory, shape: str, size: int) -> None:
    encode = framing(LIMITS).encode
    data = b"".join(encode(body) for body in SHAPES[shape])[: size * 20_000]  # so many chunks are enough
    assert look(framing(LIMITS), data, size) <= TIMES * len(data)


@pytest.mark.parametrize("size", [1, 7, 1_000])
def test_a_long_header_in_small_chunks_is_scanned_once(size: int) -> None:
    header = b"X-Long: " + b"x" * 64 * KIB + b"\r\nContent-Length: 2\r\n\r\n{}"
    assert look(ContentLength(LIMITS), header, size) <= TIMES * len(header)


def test_rescanning_the_buffer_is_detected() -> None:
    class Forgetful(LengthPrefixed):
        def feed(self, chunk: bytes) -> list[Any]:
            self.kept = Counted(getattr(self, "kept", b"") + chunk)
            self.kept.find(b"\n")
            return super().feed(chunk)

    data = LengthPrefixed(LIMITS).encode(b"x" * 5_000)
    assert look(Forgetful(LIMITS), data, 7) > TIMES * len(data)
