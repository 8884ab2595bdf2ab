"""A framing of your own: netstrings, such as `5:hello,`. `check_framing` proves that it keeps every promise of one."""

from __future__ import annotations

import anyio

from becket import Limits, Registry
from becket.errors import BadFrame, FrameTooLarge, LocalProtocolError
from becket.framing import Frame, SkippedFrame
from becket.limits import DEFAULT_LIMITS
from becket.testing import check_framing, memory_pair

MAX_DIGITS = 10  # of a length: more digits are no length


class Netstrings:
    """Reads and writes bodies between their length and a comma."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self.error: BadFrame | None = None
        self.frames = 0
        self._limit = limits.frame
        self._digits = b""
        self._body: bytearray | None = None  # None while the length is read
        self._missing = 0

    @property
    def pending(self) -> int:
        return len(self._digits) + (0 if self._body is None else 1 + len(self._body))

    def feed(self, chunk: bytes) -> list[Frame | SkippedFrame]:
        found: list[Frame | SkippedFrame] = []
        position = 0
        while position < len(chunk) and self.error is None:  # it never raises: it keeps why it stopped
            if self._body is None:
                position = self._read_length(chunk, position)
            else:
                position = self._read_body(self._body, chunk, position, found)
        self.frames += len(found)
        return found

    def end(self) -> BadFrame | None:
        return self.error or (BadFrame("truncated netstring") if self.pending else None)

    def prefix(self, size: int) -> None:
        return None  # a comma follows the body: only `encode` makes a frame

    def encode(self, body: bytes) -> bytes:
        if len(body) > self._limit:
            raise LocalProtocolError(f"frame too large: {len(body)} bytes, the limit is {self._limit}")
        return b"%d:%b," % (len(body), body)

    def _read_length(self, chunk: bytes, position: int) -> int:
        room = position + MAX_DIGITS + 1 - len(self._digits)
        colon = chunk.find(b":", position, room)
        end = min(room, len(chunk)) if colon < 0 else colon
        self._digits += chunk[position:end]
        if not self._digits.isdigit() or len(self._digits) > MAX_DIGITS or self._digits.startswith(b"0", 0, -1):
            self.error = BadFrame("this is no length", found=self._digits + chunk[end : end + 1])
        elif colon >= 0:
            length = int(self._digits)
            if length > self._limit:  # before any memory is taken for it
                self.error = FrameTooLarge(size=length, limit=self._limit)
            self._body, self._missing = bytearray(), length + 1
            return colon + 1
        return end

    def _read_body(self, body: bytearray, chunk: bytes, position: int, found: list[Frame | SkippedFrame]) -> int:
        piece = chunk[position : position + self._missing]
        body += piece
        self._missing -= len(piece)
        if not self._missing:
            if body.pop() == ord(","):
                found.append(body)  # handed over for good: the next one gets a new one
            else:
                self.error = BadFrame("no comma behind the body")
            self._digits, self._body = b"", None
        return position + len(piece)


methods = Registry()


@methods.handle("add")
def add(numbers: list[int]) -> int:
    return sum(numbers)


async def main() -> None:
    print(Netstrings().encode(b'{"jsonrpc":"2.0","method":"tick"}').decode())
    async with memory_pair(framing=Netstrings, right_options={"methods": methods}) as (left, _):
        print("over netstrings:", await left.call("add", [1, 2, 3]))
    check_framing(Netstrings)
    print("it keeps the promises of a framing")


if __name__ == "__main__":
    anyio.run(main)
