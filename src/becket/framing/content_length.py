"""Content-Length framing: a header block, a blank line and a body of that many bytes.

This file owns the bodies and the cache of headers; other headers are parsed by `header_parser`, and text between frames
is skipped by `stdout_noise`. JSON is not parsed here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from becket.errors import BadFrame, LocalProtocolError
from becket.framing.framing import Frame, SkippedFrame
from becket.limits import DEFAULT_LIMITS, Limits

if TYPE_CHECKING:
    from becket.framing.header_parser import LenientHeaderParser, StrictHeaderParser
    from becket.framing.oversize import OpenScanner, OversizeBody
    from becket.framing.stdout_noise import NoiseFilter

__all__ = ["ContentLength"]

BLANK_LINE = b"\r\n\r\n"
LENGTH_HEADER = b"Content-Length: "
MAX_LENGTH_DIGITS = 10
UNKNOWN = -1  # the length in a header that is not cached
MAX_CACHED_HEADERS = 256  # some 15 KiB for a link that gets that many different lengths
MAX_CACHED_HEADER_BYTES = 128  # bytes: a length and a content type


class ContentLength:
    """Reads and writes `Content-Length: N`, a blank line and N bytes.

    `strict=False` reads headers as `LenientHeaderParser` does. With `skip_stray=True` lines of text between frames are
    dropped up to `limits.stray` bytes in total; the first is kept in `first_noise` and reported as `SkippedFrame`,
    once."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS, *, strict: bool = True, skip_stray: bool = False) -> None:
        self.error: BadFrame | None = None
        self.frames = 0
        self.pending = 0
        self._limits = limits
        self._longest = min(MAX_CACHED_HEADER_BYTES, limits.header)
        self._strict = strict
        self._text: NoiseFilter | None = None
        if skip_stray:
            from becket.framing.stdout_noise import NoiseFilter  # few links skip text

            self._text = NoiseFilter(limits)
        self._reader: StrictHeaderParser | LenientHeaderParser | None = None
        self._is_in_header = False
        self._length = 0  # the length in the last header
        self._width = 0  # its size in bytes: the next one is likely to have the same
        self._body: bytearray | None = None
        self._missing = 0
        self._scanner: OpenScanner | None = None
        self._oversize: OversizeBody | None = None
        self._lengths: dict[bytes, int] = {}

    @property
    def first_noise(self) -> bytes:
        """The first line of text that was dropped."""
        return self._text.counter.first if self._text is not None else b""

    def scan_oversize(self, scanner: OpenScanner) -> None:
        """Skips responses above the limit from now on."""
        self._scanner = scanner

    def feed(self, chunk: bytes) -> list[Frame | SkippedFrame]:
        width, size = self._width, len(chunk)
        if not self.pending and self._lengths.get(chunk[:width]) == size - width and self.error is None:
            self.frames += 1
            return [chunk[width:]]  # one message at a time: a chunk is one frame
        found: list[Frame | SkippedFrame] = []
        if self.error is not None:
            return found
        position = self._continue_body(chunk, found) if self.pending else 0
        # The whole header is compared with the last one, and looked up in the cache. A hit is byte-exact, so it is
        # correct for any header; an empty slice never hits, which sends an unfinished header to its parser.
        cached_length, append = self._lengths.get, found.append
        if self._is_in_header:
            width = 0
        header: bytes | None = None
        length = 0
        while position < size:
            start = position + width
            if chunk[position:start] != header:
                header = chunk[position:start]
                length = cached_length(header, UNKNOWN)
                if length == UNKNOWN:
                    start = self._read_header(chunk, position, found)
                    if start < 0:
                        break
                    header, length, width = None, self._length, self._width
                    if length > self._limits.frame:
                        position = self._begin_skipping(length, chunk, start, found)
                        continue
            position = start + length
            if position <= size:
                append(chunk[start:position])
            elif start <= size:
                self._body = bytearray(memoryview(chunk)[start:])
                self._missing = position - size
            else:  # the slice was cut off by the end of the chunk and hit a shorter header
                position, width = start - width, 0
        self._width = width
        self.frames += len(found)
        is_between_frames = position == size and found and self._oversize is None
        self.pending = 0 if is_between_frames else self._count_pending()
        return found

    def _count_pending(self) -> int:
        if self._body is not None:
            return self._width + len(self._body)
        if self._oversize is not None:
            return self._width + self._oversize.taken
        kept = self._text.pending if self._text is not None else 0
        return kept if self._reader is None else kept + self._reader.pending_bytes

    def end(self) -> BadFrame | None:
        if self.error is not None:
            return self.error
        if self._body is not None:
            size = len(self._body) + self._missing
            return BadFrame(f"truncated body: {self._missing} of {size} bytes are missing")
        if self._oversize is not None:
            return self._oversize.end()
        if self.pending:
            return BadFrame(f"truncated header: the input ended after {self.pending} bytes of it")
        return None

    def prefix(self, size: int) -> bytes:
        if size > self._limits.frame:
            raise LocalProtocolError(f"frame too large: {size} bytes, the limit is {self._limits.frame}")
        return b"%b%d%b" % (LENGTH_HEADER, size, BLANK_LINE)

    def encode(self, body: bytes) -> bytes:
        return self.prefix(len(body)) + body

    def _continue_body(self, chunk: bytes, found: list[Frame | SkippedFrame]) -> int:
        """Appends to a body that began in an earlier chunk; returns the position after it."""
        if self._body is not None:
            return self._append_body(self._body, chunk, found)
        return 0 if self._oversize is None else self._skip(self._oversize, chunk, 0, found)

    def _append_body(self, body: bytearray, chunk: bytes, found: list[Frame | SkippedFrame]) -> int:
        taken = min(self._missing, len(chunk))
        body += chunk if taken == len(chunk) else memoryview(chunk)[:taken]
        self._missing -= taken
        if self._missing == 0:
            found.append(body)
            self._body = None
        return taken

    # -- bodies above the limit

    def _begin_skipping(self, length: int, chunk: bytes, start: int, found: list[Frame | SkippedFrame]) -> int:
        from becket.framing.oversize import OversizeBody  # most links never meet one

        assert self._scanner is not None  # else the header was rejected
        self._oversize = OversizeBody(self._scanner, length, self._limits.frame)
        return self._skip(self._oversize, chunk, start, found)

    def _skip(self, oversize: OversizeBody, chunk: bytes, position: int, found: list[Frame | SkippedFrame]) -> int:
        """Skips the next part of such a body; returns the position after it."""
        position = oversize.read(chunk, position, found)
        self.error = oversize.error
        if not oversize.missing:
            self._oversize = None
        return position

    # -- headers that are not cached

    def _read_header(self, chunk: bytes, position: int, found: list[Frame | SkippedFrame]) -> int:
        """Returns where the body starts, or -1: the header goes on in the next chunk, or is malformed."""
        if not self._is_in_header:
            end = chunk.find(BLANK_LINE, position, position + self._longest)
            if end >= 0:
                start = end + len(BLANK_LINE)
                header = chunk[position:start]
                length = self._lengths.get(header)
                if length is None:
                    length = self._parse_simple_header(header)
                if length is not None:
                    self._length = length
                    self._width = len(header)
                    return start
        return self._parse_header(chunk, position, found)

    def _parse_simple_header(self, header: bytes) -> int | None:
        """Returns the length in a header of the usual form; None leaves it to the parser."""
        digits = header[len(LENGTH_HEADER) : -len(BLANK_LINE)]
        if not header.startswith(LENGTH_HEADER) or not digits.isdigit() or len(digits) > MAX_LENGTH_DIGITS:
            return None
        length = int(digits)
        if length > self._limits.frame:
            return length if length <= self._most else None
        self._cache_header(header, length)
        return length

    def _parse_header(self, chunk: bytes, position: int, found: list[Frame | SkippedFrame]) -> int:
        reader = self._reader
        if reader is None:
            reader = self._reader = self._build_header_parser()
        self._is_in_header = True
        frames = self.frames + len(found)
        if self._text is not None and not reader.pending_bytes:
            kept, position = self._skip_noise(self._text, chunk, position, found)
            reader.feed(kept, 0, frames)
        start = reader.feed(chunk, position, frames) if self.error is None and reader.error is None else -1
        if start < 0:
            self.error = self.error or reader.error
            return -1
        self._is_in_header = False
        self._length = reader.length
        self._width = reader.size
        is_whole = start - reader.size >= position  # all of it is in this chunk
        if is_whole and reader.size <= self._longest and reader.length <= self._limits.frame:
            self._cache_header(chunk[start - reader.size : start], reader.length)
        return start

    def _skip_noise(
        self, text: NoiseFilter, chunk: bytes, position: int, found: list[Frame | SkippedFrame]
    ) -> tuple[bytes, int]:
        lines = text.counter.lines
        kept, position = text.skip(chunk, position)
        dropped = text.counter.lines - lines
        if lines == 0 and text.notice is not None:
            found.append(text.notice)
            dropped -= 1
        self.frames += dropped
        self.error = text.counter.error
        return kept, position

    @property
    def _most(self) -> int:
        """The largest body whose header is accepted, though it may be skipped."""
        return self._limits.frame if self._scanner is None else self._limits.longest_skipped

    def _build_header_parser(self) -> StrictHeaderParser | LenientHeaderParser:
        # Imported here because the usual header never needs it and its patterns take most of a millisecond to compile.
        if self._strict:
            from becket.framing.header_parser import StrictHeaderParser

            return StrictHeaderParser(self._limits, most=self._most)
        from becket.framing.header_parser import LenientHeaderParser

        return LenientHeaderParser(self._limits, most=self._most)

    def _cache_header(self, header: bytes, length: int) -> None:
        if len(self._lengths) >= MAX_CACHED_HEADERS:
            self._lengths.clear()
        self._lengths[header] = length
