"""Text that is no frame: a banner, a `print()` that reached the pipe. Used by links that were told to skip it.

`StrayText` keeps the account: how much was dropped, and when it was too much. `TextBeforeHeader` finds where such text
ends and a Content-Length header begins. What a header or a line may contain is the framings' business.
"""

from __future__ import annotations

from becket.errors import BadFrame
from becket.limits import Limits
from becket.wire.framing import Skipped

__all__ = ["StrayText", "TextBeforeHeader"]

WROTE_TO_STDOUT = "something wrote to stdout"
PRINT_TO_STDERR = "stdout belongs to the protocol: print to stderr"
STARTS = (b"content-length:", b"content-type:")
LONGEST_START = max(map(len, STARTS))


class StrayText:
    """Counts what is dropped outside frames. `error` is set once it is more than the limit in total."""

    def __init__(self, limits: Limits) -> None:
        self.error: BadFrame | None = None
        self.lines = 0
        self.first = b""
        self._limit = limits.stray
        self._dropped = 0

    def drop(self, text: bytes | bytearray) -> Skipped | None:
        """Counts one dropped line; returns a notice for the first one, so that a flood makes one line of log."""
        self.lines += 1
        self.count(len(text))
        if self.lines > 1:
            return None
        self.first = bytes(text)
        return Skipped(BadFrame(WROTE_TO_STDOUT, found=self.first, hint="more of it is dropped without a word"))

    def count(self, size: int) -> None:
        """Counts bytes of a line that is not over yet, or is longer than anybody wants to keep."""
        self._dropped += size
        if self._dropped > self._limit:
            problem = f"more than {self._limit} bytes outside frames"
            self.error = BadFrame(problem, found=self.first, hint=PRINT_TO_STDERR)


class TextBeforeHeader:
    """Drops lines between frames until one begins with Content-Length or Content-Type."""

    def __init__(self, limits: Limits) -> None:
        self.account = StrayText(limits)
        self.notice: Skipped | None = None
        self._longest = limits.header  # of a line that is kept to look for a header at its end
        self._line = bytearray()
        self._is_long = False

    @property
    def pending(self) -> int:
        """Bytes kept that may be the beginning of a header; 0 where they are known to be text."""
        return len(self._line) if self._may_begin_header(bytes(self._line[: LONGEST_START + 1])) else 0

    def skip(self, chunk: bytes, position: int) -> tuple[bytes, int]:
        """Returns bytes of a header that were kept or found here, and where the chunk goes on after them.

        At the end of the chunk both may be empty: all of it was text, or is too short to tell.
        """
        size = len(chunk)
        while position < size and self.account.error is None:
            if not self._is_long:
                start = bytes(self._line[:LONGEST_START]) + chunk[position : position + LONGEST_START]
                if start.lower().startswith(STARTS):
                    return self._take_line(), position
                if self._may_begin_header(start):
                    self._line += start[len(self._line) :]
                    return b"", size
            end = chunk.find(b"\n", position) + 1
            piece = chunk[position : end or size]
            position += len(piece)
            header = self._end_line(piece) if end else self._keep(piece)
            if header:
                return header, position
        return b"", position

    def _may_begin_header(self, start: bytes) -> bool:
        lowered = start.lower()
        return bool(start) and any(known.startswith(lowered) for known in STARTS)

    def _take_line(self) -> bytes:
        line = bytes(self._line)
        self._line.clear()
        return line

    def _keep(self, piece: bytes) -> bytes:
        """Keeps a line that is not over; one that is too long to be kept is dropped as it comes."""
        if self._is_long:
            self.account.count(len(piece))
        else:
            self._line += piece
            if len(self._line) > self._longest:
                self._is_long = True
                self._drop(self._take_line())
        return b""

    def _end_line(self, piece: bytes) -> bytes:
        """Drops the line that ends here; returns the header that stands at its end, if one does."""
        if self._is_long:
            self._is_long = False
            self.account.count(len(piece))
            return b""
        line = self._take_line() + piece
        text = line[: self._find_header(line)]
        self._drop(text)
        return line[len(text) :]

    def _find_header(self, line: bytes) -> int:
        """Returns where a header begins at the end of a line; a progress bar leaves no line end between the two."""
        start = line.lower().rfind(STARTS[0])
        digits = line[start + len(STARTS[0]) : -2].strip(b" \t")
        is_header = start >= 0 and len(line) <= self._longest and line.endswith(b"\r\n") and digits.isdigit()
        return start if is_header else len(line)

    def _drop(self, line: bytes) -> None:
        self.notice = self.account.drop(line) or self.notice
