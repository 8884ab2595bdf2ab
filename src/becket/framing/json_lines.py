"""JSON Lines framing: one message a line, ended by LF or CRLF.

Only LF ends a line, never the other line ends of `str.splitlines`: U+2028 may occur in any JSON string.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from becket.errors import BadFrame, FrameTooLarge, LocalProtocolError
from becket.framing.framing import Frame, SkippedFrame
from becket.framing.stdout_noise import NoiseCounter
from becket.limits import DEFAULT_LIMITS, Limits

if TYPE_CHECKING:
    from becket.framing.oversize import OpenScanner, Scanner

__all__ = ["JsonLines"]

JSON_STARTS = (b"{", b"[")
INDENT = 64  # bytes: no body begins after more white space
LF, CR = b"\n\r"  # as numbers: `b"\n" in body` tries a number first and takes seven times as long


class JsonLines:
    """Reads and writes one body a line; blank lines are skipped.

    A line beyond `limits.frame` is dropped on arrival, and replaced by a `SkippedFrame`; up to `limits.skipped_frames`
    are dropped so, and any number of responses after `scan_oversize`. With `skip_stray=True` lines that begin neither
    an object nor an array are dropped up to `limits.stray` bytes in total; the first is kept in `first_noise` and
    reported as `SkippedFrame`, once.
    """

    def __init__(self, limits: Limits = DEFAULT_LIMITS, *, skip_stray: bool = False) -> None:
        self.error: BadFrame | None = None
        self.frames = 0
        self._limit = limits.frame
        self._text = NoiseCounter(limits) if skip_stray else None
        self._line = bytearray()  # an unfinished one
        self._oversize = 0  # bytes dropped of an unfinished line
        self._skipped = 0
        self._most_skipped = limits.skipped_frames
        self._longest_skipped = limits.longest_skipped
        self._open_scanner: OpenScanner | None = None
        self._scanner: Scanner | None = None  # of an unfinished line

    @property
    def first_noise(self) -> bytes:
        """The first line of text that was dropped."""
        return self._text.first if self._text is not None else b""

    @property
    def pending(self) -> int:
        return self._oversize or len(self._line)

    def scan_oversize(self, scanner: OpenScanner) -> None:
        """Skips responses above the limit from now on."""
        self._open_scanner = scanner

    def feed(self, chunk: bytes) -> list[Frame | SkippedFrame]:
        found: list[Frame | SkippedFrame] = []
        if self.error is not None:
            return found
        if LF not in chunk:  # the middle of a large body: copied once, into `_line`
            self._append_partial(chunk)
            return found
        lines = chunk.split(b"\n")
        rest = lines.pop()
        if self._line or self._oversize:
            self._append_partial(lines.pop(0))
            self._end_line(found)
        if self._is_fast_path(chunk):
            found += [line for line in lines if line and not line.isspace()]
        else:
            for line in lines:
                self._on_line(line, found)
        if rest:
            self._append_partial(rest)
        self.frames += len(found)
        return found

    def end(self) -> BadFrame | None:
        if self.error is not None:
            return self.error
        if self.pending and not self._line.isspace():
            return BadFrame(f"truncated line: no line end after {self.pending} bytes", found=self._line)
        return None

    def prefix(self, size: int) -> None:
        return None  # a line ends with LF, and none may be in the body

    def encode(self, body: bytes) -> bytes:
        # The last byte alone distinguishes most bodies from those that would change as a line.
        if LF in body or len(body) > self._limit or body[-1:] <= b" ":
            self._check_body(body)
        return body + b"\n"

    def _is_fast_path(self, chunk: bytes) -> bool:
        """Returns whether every line of the chunk is a frame as it is, or blank."""
        return len(chunk) <= self._limit and CR not in chunk and self._text is None and self.error is None

    def _check_body(self, body: bytes) -> None:
        if len(body) > self._limit:
            raise LocalProtocolError(f"frame too large: {len(body)} bytes, the limit is {self._limit}")
        if LF in body or body.endswith(b"\r"):
            raise LocalProtocolError("a line cannot carry a line end: send compact JSON")
        if not body or body.isspace():
            raise LocalProtocolError("a blank line is not a frame: send JSON")

    def _append_partial(self, part: bytes) -> None:
        """Appends to the unfinished line, or only counts once it is too long."""
        if self.error is not None:
            return
        size = self.pending + len(part)
        if size <= self._limit + 1:  # one more: a CR at the end is not part of the body
            self._line += part
            return
        if not self._oversize:
            self._scanner = self._scan(self._line or part)
        if self._scanner is not None and (self._oversize or self._line):
            self._scanner.feed(part)
        self._line.clear()
        self._oversize = size
        if not self._may_skip(size, self._scanner):
            self._fail_oversize()

    def _end_line(self, found: list[Frame | SkippedFrame]) -> None:
        line = self._line
        size, scanner = self._oversize, self._scanner
        self._line = bytearray()
        self._oversize = 0
        self._scanner = None
        if size:
            self._skip_oversize_line(size, scanner, found)
        else:
            self._on_line(line, found)

    def _on_line(self, line: bytes | bytearray, found: list[Frame | SkippedFrame]) -> None:
        if self.error is not None:
            return
        size = len(line)
        if line.endswith(b"\r"):
            if isinstance(line, bytearray):  # perhaps large, and owned by this object: no copy
                line.pop()
            else:
                line = line[:-1]
        if len(line) > self._limit:
            self._skip_oversize_line(size, self._scan(line), found)
        elif not line or line.isspace():
            return
        elif self._text is None or line.lstrip().startswith(JSON_STARTS):
            found.append(line)
        else:
            self._drop_noise(self._text, line, found)

    # -- lines above the limit

    def _scan(self, beginning: Frame) -> Scanner | None:
        """Returns the scanner of such a line, fed with its beginning; None without one, or for stray text."""
        if self._open_scanner is None:
            return None
        if self._text is not None and not beginning[:INDENT].lstrip().startswith(JSON_STARTS):
            return None
        scanner = self._open_scanner()
        scanner.feed(beginning)
        return scanner

    def _may_skip(self, size: int, scanner: Scanner | None) -> bool:
        if size > self._longest_skipped:
            return False
        if scanner is None or (scanner.is_readable and not scanner.is_response):
            return self._skipped < self._most_skipped
        return scanner.is_readable

    def _skip_oversize_line(self, size: int, scanner: Scanner | None, found: list[Frame | SkippedFrame]) -> None:
        outline = None if scanner is None else scanner.end()
        if self.error is not None or not self._may_skip(size, scanner) or (scanner is not None and outline is None):
            self._fail_oversize()
            return
        if outline is None or not outline.is_response:
            self._skipped += 1
        found.append(SkippedFrame(FrameTooLarge(size=size, limit=self._limit, what="line"), outline))

    def _fail_oversize(self) -> None:
        # without a size: the error does not wait for the end of the line
        self.error = FrameTooLarge(size=None, limit=self._limit, what="line")

    def _drop_noise(self, text: NoiseCounter, line: bytes | bytearray, found: list[Frame | SkippedFrame]) -> None:
        notice = text.drop(line)
        if notice is not None:
            found.append(notice)
        else:
            self.frames += 1
        self.error = text.error
