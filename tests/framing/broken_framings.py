"""One good framing and many broken ones: each breaks the contract in one way that `check_framing` must find.

All are length-prefixed and keep their input in one bytearray, which is slow and simple.
"""

from __future__ import annotations

from becket.errors import BadFrame, FrameTooLarge, LocalProtocolError
from becket.framing import Frame, SkippedFrame
from becket.limits import Limits

SIZE = 4


class Good:
    """Follows the contract. The parts that the broken ones replace are methods."""

    def __init__(self, limits: Limits) -> None:
        self.error: BadFrame | None = None
        self.frames = 0
        self.limit = limits.frame
        self.skips_left = limits.skipped_frames
        self.buffer = bytearray()
        self.position = 0

    @property
    def pending(self) -> int:
        return len(self.buffer) - self.position

    def feed(self, chunk: bytes) -> list[Frame | SkippedFrame]:
        found: list[Frame | SkippedFrame] = []
        if self.error is not None:
            return found
        self.buffer += chunk
        while (frame := self.take()) is not None:
            found.append(frame)
        if self.position:
            del self.buffer[: self.position]
            self.position = 0
        self.frames += len(found)
        return found

    def take(self) -> Frame | SkippedFrame | None:
        start = self.position + SIZE
        if start > len(self.buffer):
            return None
        length = int.from_bytes(self.buffer[self.position : start])
        if length > self.limit:
            return self.refuse(length)
        if start + length > len(self.buffer):
            return None
        self.position = start + length
        return bytes(memoryview(self.buffer)[start : self.position])

    def refuse(self, length: int) -> SkippedFrame | None:
        self.error = FrameTooLarge(size=length, limit=self.limit)
        return None

    def end(self) -> BadFrame | None:
        return self.error or (BadFrame("truncated") if self.pending else None)

    def prefix(self, size: int) -> bytes | None:
        if size > self.limit:
            raise LocalProtocolError("too large")
        return size.to_bytes(SIZE)

    def encode(self, body: bytes) -> bytes:
        if len(body) > self.limit:
            raise LocalProtocolError("too large")
        return len(body).to_bytes(SIZE) + body


# -- good input


class HasAnotherPrefix(Good):
    def prefix(self, size: int) -> bytes | None:
        return (size + 1).to_bytes(SIZE)


class RefusesObjects(Good):
    def encode(self, body: bytes) -> bytes:
        if body.startswith(b"{"):
            raise LocalProtocolError("no objects today")
        return super().encode(body)


class LosesWhiteSpace(Good):
    def take(self) -> Frame | SkippedFrame | None:
        frame = super().take()
        return frame if frame is None or isinstance(frame, SkippedFrame) else frame.strip(b"\0\xff")


class GivesViews(Good):
    def feed(self, chunk: bytes) -> list[Frame | SkippedFrame]:
        return [memoryview(frame) for frame in super().feed(chunk)]  # type: ignore[arg-type, misc]


class GivesOneFrameAChunk(Good):
    def feed(self, chunk: bytes) -> list[Frame | SkippedFrame]:
        return super().feed(chunk)[:1]


class ForgetsAnUnfinishedLength(Good):
    def feed(self, chunk: bytes) -> list[Frame | SkippedFrame]:
        found = super().feed(chunk)
        if self.pending < SIZE:
            self.buffer.clear()
        return found


class WritesIntoWhatItGaveAway(Good):
    given: bytearray | None = None

    def take(self) -> Frame | SkippedFrame | None:
        frame = super().take()
        if isinstance(frame, bytes):
            if self.given is None:
                self.given = bytearray()
            self.given[:] = frame
            return self.given
        return frame


class CutsRunsInBlocks(Good):
    """Reads a run of equal frames block by block, and takes the frame behind a full block for one of the run."""

    def feed(self, chunk: bytes) -> list[Frame | SkippedFrame]:
        whole = SIZE + int.from_bytes(chunk[:SIZE])
        block = chunk[: 16 * 1024]
        if len(block) == len(chunk) or block != block[:whole] * (len(block) // whole):
            return super().feed(chunk)
        return super().feed(block) + super().feed(block[:whole] + chunk[len(block) + whole :])


class DiesOfEmptyChunks(Good):
    def feed(self, chunk: bytes) -> list[Frame | SkippedFrame]:
        if not chunk:
            raise EOFError
        return super().feed(chunk)


class ReportsAnErrorAtTheEnd(Good):
    def end(self) -> BadFrame | None:
        return BadFrame("the end")


class EndsWithAnError(Good):
    def feed(self, chunk: bytes) -> list[Frame | SkippedFrame]:
        found = super().feed(chunk)
        self.error = BadFrame("enough")
        return found


class IsAlwaysPending(Good):
    @property
    def pending(self) -> int:
        return 1 + super().pending


class IsNeverPending(Good):
    @property
    def pending(self) -> int:
        return 0

    def end(self) -> BadFrame | None:
        return self.error or (BadFrame("truncated") if self.buffer else None)


class CountsNothing(Good):
    def feed(self, chunk: bytes) -> list[Frame | SkippedFrame]:
        found = super().feed(chunk)
        self.frames = 0
        return found


class CountsTooEarly(Good):
    def feed(self, chunk: bytes) -> list[Frame | SkippedFrame]:
        found = super().feed(chunk)
        self.frames += 1 if self.pending else 0
        return found


class IsNeverTruncated(Good):
    def end(self) -> BadFrame | None:
        return self.error


# -- too large


class WritesAnything(Good):
    def encode(self, body: bytes) -> bytes:
        return len(body).to_bytes(SIZE) + body


class PrefixesAnything(Good):
    def prefix(self, size: int) -> bytes | None:
        return size.to_bytes(SIZE)


class ReadsAnything(Good):
    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self.read_limit = 2**40

    def take(self) -> Frame | SkippedFrame | None:
        written, self.limit = self.limit, self.read_limit
        try:
            return super().take()
        finally:
            self.limit = written


class ReadsAnythingAndThenComplains(ReadsAnything):
    def take(self) -> Frame | SkippedFrame | None:
        frame = super().take()
        if isinstance(frame, bytes) and len(frame) > self.limit:
            self.refuse(len(frame))
        return frame


class LosesWhatCameBefore(Good):
    def feed(self, chunk: bytes) -> list[Frame | SkippedFrame]:
        found = super().feed(chunk)
        return [] if self.error else found


class Skips(Good):
    """Follows the contract too: skips frames that are too large, as often as it may."""

    oversize = 0

    def feed(self, chunk: bytes) -> list[Frame | SkippedFrame]:
        found: list[Frame | SkippedFrame] = []
        if self.oversize:
            taken = min(self.oversize, len(chunk))
            self.oversize -= taken
            chunk = chunk[taken:]
            if self.oversize == 0:
                self.frames += 1
                found.append(SkippedFrame(FrameTooLarge(size=None, limit=self.limit)))
        return found + super().feed(chunk)

    def refuse(self, length: int) -> SkippedFrame | None:
        if self.skips_left == 0:
            return super().refuse(length)
        self.skips_left -= 1
        there = len(self.buffer) - self.position
        self.position += min(there, SIZE + length)
        self.oversize = max(0, SIZE + length - there)
        return None if self.oversize else SkippedFrame(FrameTooLarge(size=length, limit=self.limit))


class ScansNothing(Good):
    def scan_oversize(self, scanner: object) -> None:
        """Takes the scanner, and continues as before."""


class SkipsForEver(Skips):
    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self.skips_left = -1


class SkipsInSilence(Skips):
    def feed(self, chunk: bytes) -> list[Frame | SkippedFrame]:
        return [frame for frame in super().feed(chunk) if not isinstance(frame, SkippedFrame)]


class SkipsTheNextOneToo(Skips):
    has_skipped = False

    def feed(self, chunk: bytes) -> list[Frame | SkippedFrame]:
        if self.has_skipped and self.error is None:
            self.has_skipped = False
            return []
        found = super().feed(chunk)
        self.has_skipped = any(isinstance(frame, SkippedFrame) for frame in found)
        return found


class AllocatesWhatWasAnnounced(Good):
    def refuse(self, length: int) -> SkippedFrame | None:
        bytearray(length)
        return super().refuse(length)


# -- errors


class RaisesErrors(Good):
    def refuse(self, length: int) -> SkippedFrame | None:
        raise FrameTooLarge(size=length, limit=self.limit)


class RecordsAnotherType(Good):
    def refuse(self, length: int) -> SkippedFrame | None:
        self.error = ValueError("too large")  # type: ignore[assignment]
        return None


class RecordsAnotherTypeForSome(Good):
    def refuse(self, length: int) -> SkippedFrame | None:
        super().refuse(length)
        if length > 2**24:
            self.error = ValueError("far too large")  # type: ignore[assignment]
        return None


class GoesOnAfterAnError(Good):
    first: BadFrame | None = None

    def feed(self, chunk: bytes) -> list[Frame | SkippedFrame]:
        if self.error is not None:
            self.first = self.error
            self.error = None
            self.buffer.clear()
        found = super().feed(chunk)
        if self.first is not None:
            self.error = self.first
        return found


class ChangesItsError(Good):
    def feed(self, chunk: bytes) -> list[Frame | SkippedFrame]:
        if self.error is not None:
            self.error = BadFrame("another one")
        return super().feed(chunk)


class ForgetsItsErrorAtTheEnd(Good):
    def end(self) -> BadFrame | None:
        return None if self.error else super().end()


class JudgesByTheChunk(Good):
    """Refuses a length that arrives in one chunk, and accepts the same one in several."""

    def feed(self, chunk: bytes) -> list[Frame | SkippedFrame]:
        if self.error is None and not self.buffer and chunk[:1] > b"\0" and len(chunk) > 1:
            self.error = BadFrame("no length")
            return []
        return super().feed(chunk)

    def refuse(self, length: int) -> SkippedFrame | None:
        if length < 2**24:
            return super().refuse(length)
        self.position = len(self.buffer)
        return None


# -- memory and work


class KeepsEveryChunk(Good):
    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self.chunks: list[bytes] = []
        self.missing = 0

    def feed(self, chunk: bytes) -> list[Frame | SkippedFrame]:
        if self.missing > len(chunk):
            self.missing -= len(chunk)
            self.chunks.append(chunk)
            return []
        found = super().feed(b"".join((*self.chunks, chunk)))
        self.chunks.clear()
        self.missing = 0
        if len(self.buffer) >= SIZE and self.error is None:
            self.missing = SIZE + int.from_bytes(self.buffer[:SIZE]) - len(self.buffer)
        return found

    @property
    def pending(self) -> int:
        return super().pending + sum(map(len, self.chunks))


class ScansEverythingAgain(Good):
    def feed(self, chunk: bytes) -> list[Frame | SkippedFrame]:
        self.buffer.find(b"\n")
        return super().feed(chunk)


class CopiesEverythingAgain(Good):
    def feed(self, chunk: bytes) -> list[Frame | SkippedFrame]:
        if self.error is None:
            self.buffer = bytearray(bytes(self.buffer) + chunk)
        return super().feed(b"")


class MovesTheRestForEachFrame(Good):
    def take(self) -> Frame | SkippedFrame | None:
        frame = super().take()
        if frame is not None:
            self.buffer = self.buffer[self.position :]
            self.position = 0
        return frame
