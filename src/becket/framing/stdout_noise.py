"""Skips text printed to stdout between frames, and counts it against a limit.

`NoiseCounter` counts the dropped bytes and applies the limit. `NoiseFilter` finds where such text ends and a
Content-Length header begins. Headers and lines themselves are parsed by the framings.
"""

from __future__ import annotations

from becket.errors import BadFrame
from becket.framing.framing import SkippedFrame
from becket.limits import Limits

__all__ = ["NoiseCounter", "NoiseFilter"]

WROTE_TO_STDOUT = "something wrote to stdout"
PRINT_TO_STDERR = "stdout belongs to the protocol: print to stderr"
HEADER_NAMES = (b"content-length:", b"content-type:")
MAX_HEADER_NAME = max(map(len, HEADER_NAMES))


class NoiseCounter:
    """Counts the bytes dropped outside frames. `error` is set once they exceed the limit in total."""

    def __init__(self, limits: Limits) -> None:
        self.error: BadFrame | None = None
        self.lines = 0
        self.first = b""
        self._limit = limits.stray
        self._dropped = 0

    def drop(self, text: bytes | bytearray) -> SkippedFrame | None:
        """Counts one dropped line; returns a notice for the first one, so that a flood is logged once."""
        self.lines += 1
        self.count(len(text))
        if self.lines > 1:
            return None
        self.first = bytes(text)
        return SkippedFrame(BadFrame(WROTE_TO_STDOUT, found=self.first, hint="further lines are dropped silently"))

    def count(self, size: int) -> None:
        """Counts bytes of a line that is unfinished, or too long to be kept."""
        self._dropped += size
        if self._dropped > self._limit:
            problem = f"more than {self._limit} bytes outside frames"
            self.error = BadFrame(problem, found=self.first, hint=PRINT_TO_STDERR)


class NoiseFilter:
    """Drops lines between frames until one begins with Content-Length or Content-Type."""

    def __init__(self, limits: Limits) -> None:
        self.counter = NoiseCounter(limits)
        self.notice: SkippedFrame | None = None
        self._longest = limits.header  # of a line that is kept to look for a header at its end
        self._line = bytearray()
        self._is_long = False

    @property
    def pending(self) -> int:
        """Bytes kept that may be the beginning of a header; 0 if they are known to be text."""
        return len(self._line) if self._may_begin_header(bytes(self._line[: MAX_HEADER_NAME + 1])) else 0

    def skip(self, chunk: bytes, position: int) -> tuple[bytes, int]:
        """Returns bytes of a header that were kept or found here, and the position after them.

        At the end of the chunk both may be empty: all of it was text, or is too short to decide.
        """
        size = len(chunk)
        while position < size and self.counter.error is None:
            if not self._is_long:
                start = bytes(self._line[:MAX_HEADER_NAME]) + chunk[position : position + MAX_HEADER_NAME]
                if start.lower().startswith(HEADER_NAMES):
                    return self._pop_line(), position
                if self._may_begin_header(start):
                    self._line += start[len(self._line) :]
                    return b"", size
            end = chunk.find(b"\n", position) + 1
            part = chunk[position : end or size]
            position += len(part)
            header = self._end_line(part) if end else self._append_partial(part)
            if header:
                return header, position
        return b"", position

    def _may_begin_header(self, start: bytes) -> bool:
        lowered = start.lower()
        return bool(start) and any(known.startswith(lowered) for known in HEADER_NAMES)

    def _pop_line(self) -> bytes:
        line = bytes(self._line)
        self._line.clear()
        return line

    def _append_partial(self, part: bytes) -> bytes:
        """Keeps an unfinished line; one that is too long is dropped."""
        if self._is_long:
            self.counter.count(len(part))
        else:
            self._line += part
            if len(self._line) > self._longest:
                self._is_long = True
                self._drop(self._pop_line())
        return b""

    def _end_line(self, part: bytes) -> bytes:
        """Drops the line that ends here; returns the header at its end, if there is one."""
        if self._is_long:
            self._is_long = False
            self.counter.count(len(part))
            return b""
        line = self._pop_line() + part
        text = line[: self._find_header(line)]
        self._drop(text)
        return line[len(text) :]

    def _find_header(self, line: bytes) -> int:
        """Returns where a header begins at the end of a line; after a progress bar there is no line end between the
        two."""
        start = line.lower().rfind(HEADER_NAMES[0])
        digits = line[start + len(HEADER_NAMES[0]) : -2].strip(b" \t")
        is_header = start >= 0 and len(line) <= self._longest and line.endswith(b"\r\n") and digits.isdigit()
        return start if is_header else len(line)

    def _drop(self, line: bytes) -> None:
        self.notice = self.counter.drop(line) or self.notice
