"""Parses Content-Length header blocks, strict or lenient, and explains malformed ones.

Each byte is examined once and the first invalid one decides, so the result does not depend on how the input was split
into chunks. Bodies and cached headers are handled by the framing.
"""

from __future__ import annotations

import re

from becket.errors import BadFrame, FrameTooLarge
from becket.framing.stdout_noise import PRINT_TO_STDERR, WROTE_TO_STDOUT
from becket.limits import Limits

__all__ = ["LenientHeaderParser", "StrictHeaderParser"]

# What ends a header's name (RFC 9110: anything that is no token character), its value, and what follows a CR.
NAME_END = re.compile(rb"[^!#$%&'*+\-.^_`|~0-9A-Za-z]")
VALUE_END = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
AFTER_CR = re.compile(rb"(?s:.)")

STRICT_LENGTH = re.compile(rb"[0-9]{1,10}")
CHARSET = re.compile(rb";[ \t]*charset[ \t]*=([^;]*)", re.IGNORECASE)
UTF_8 = (b"utf-8", b"utf8", b'"utf-8"', b'"utf8"')
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
KNOWN_HEADERS = (b"content-length", b"content-type")

NUL, LF, CR, COLON = b"\0\n\r:"

ENDS_WITH_CRLF = "a header line ends with CRLF"
LENGTH_TOO_SHORT = "is the line end behind a body left out of its length?"
TWO_WRITERS = "the last length did not fit its body, or two writers share one pipe: send frames whole, from one place"


class StrictHeaderParser:
    """Parses one header block after another; `length` is that of the last one, `error` why parsing stopped."""

    def __init__(self, limits: Limits, *, most: int) -> None:
        self.error: BadFrame | None = None
        self.length = 0
        self.size = 0  # of the last complete block, in bytes
        self.pending_bytes = 0  # bytes of an unfinished block
        self._limits = limits
        self._most = most  # the longest allowed body
        self._line = bytearray()
        self._delimiter = NAME_END
        self._lines = 0
        self._announced: int | None = None
        self._suspect = b""  # the line to show if no Content-Length follows

    def feed(self, chunk: bytes, position: int, frames: int) -> int:
        """Returns where the body starts, or -1: the chunk ended inside the header, or `error` is set.

        `frames` is how many came before on this link: a malformed first header and a later one have different causes.
        """
        size = len(chunk)
        while position < size:
            window = min(size, position + self._limits.header - self.pending_bytes)
            stop = self._delimiter.search(chunk, position, window)
            end = window if stop is None else stop.end()
            self._line += chunk[position:end]
            self.pending_bytes += end - position
            position = end
            if stop is None:
                if end < size:
                    self.error = FrameTooLarge(size=None, limit=self._limits.header, what="header")
                    return -1
            elif self._delimiter is AFTER_CR and bytes(self._line) == b"\r\n":
                return position if self._end_block(frames) else -1
            else:
                self.error = self._on_delimiter(chunk, position, frames)
                if self.error is not None:
                    return -1
        return -1

    def _on_delimiter(self, chunk: bytes, position: int, frames: int) -> BadFrame | None:
        """Handles the byte that ended the search: goes on to the next part, or returns the error."""
        byte = self._line[-1]
        if self._delimiter is AFTER_CR and byte == LF:
            self._delimiter = NAME_END
            return self._end_line()
        if self._delimiter is VALUE_END and byte == CR:
            self._delimiter = AFTER_CR
        elif self._delimiter is NAME_END and byte == COLON and len(self._line) > 1:
            self._delimiter = VALUE_END
        elif self._delimiter is NAME_END and byte == CR and len(self._line) == 1:
            self._delimiter = AFTER_CR
        else:
            return self._diagnose(byte, chunk[position:], frames)
        return None

    # -- lines and blocks

    def _end_line(self) -> BadFrame | None:
        line = bytes(self._line[:-2])
        self._line.clear()
        self._lines += 1
        if self._lines > self._limits.header_lines:
            return BadFrame(f"more than {self._limits.header_lines} header lines", found=line)
        name, _, value = line.partition(b":")
        name = name.lower()
        value = value.strip(b" \t")
        if name == b"content-length":
            return self._parse_length(value)
        if name == b"content-type":
            if any(charset.strip(b" \t").lower() not in UTF_8 for charset in CHARSET.findall(value)):
                return BadFrame("charset other than UTF-8", found=value)
        # Text without a line end and a header right after it look like one header with a strange name.
        elif not self._suspect or name.endswith(KNOWN_HEADERS):
            self._suspect = line
        return None

    def _parse_length(self, value: bytes) -> BadFrame | None:
        if STRICT_LENGTH.fullmatch(value) is None:
            if value.isdigit() and int(value) > self._most:
                return FrameTooLarge(size=int(value), limit=self._limits.frame)
            return BadFrame("Content-Length is not a number", found=value, hint="1 to 10 digits")
        if self._announced is not None:  # two readers of such a header could disagree where the frame ends
            return BadFrame("Content-Length given twice", found=value)
        self._announced = int(value)
        if self._announced > self._most:
            return FrameTooLarge(size=self._announced, limit=self._limits.frame)
        return None

    def _end_block(self, frames: int) -> bool:
        if self._announced is None:
            self.error = self._diagnose_block(frames)
            return False
        self.length = self._announced
        self.size = self.pending_bytes
        self.pending_bytes = 0
        self._line.clear()
        self._delimiter = NAME_END
        self._lines = 0
        self._announced = None
        self._suspect = b""
        return True

    # -- errors

    def _diagnose_block(self, frames: int) -> BadFrame:
        if self._lines == 0:
            return BadFrame("line end outside a frame", found=self._line, hint=LENGTH_TOO_SHORT)
        if self._suspect.partition(b":")[0].lower().endswith(KNOWN_HEADERS):
            return BadFrame(WROTE_TO_STDOUT, found=self._suspect, hint=PRINT_TO_STDERR)
        return BadFrame("header without Content-Length", found=self._suspect, hint=TWO_WRITERS if frames else "")

    def _diagnose(self, byte: int, rest: bytes, frames: int) -> BadFrame:
        """Returns the error of a line with the invalid byte `byte`; `rest` is what follows it."""
        line = (bytes(self._line) + rest).split(b"\n", 1)[0]
        name = NAME_END.split(line, 1)[0].lower()
        if byte == NUL:
            return BadFrame("NUL in a header", found=line)
        if name in KNOWN_HEADERS:
            if self._delimiter is NAME_END:
                return BadFrame("header name without its colon", found=line)
            if self._delimiter is AFTER_CR:
                return BadFrame("bare CR in a header", found=line, hint=ENDS_WITH_CRLF)
            if byte == LF:
                return BadFrame("bare LF in a header", found=line, hint=ENDS_WITH_CRLF)
            return BadFrame("control character in a header", found=line)
        if not name:
            problem, hint = self._diagnose_first_byte(line)
            if problem:
                return BadFrame(problem, found=line or b"\n", hint=hint)
        return BadFrame(WROTE_TO_STDOUT, found=line, hint=self._guess_writer(line, frames))

    def _diagnose_first_byte(self, line: bytes) -> tuple[str, str]:
        """Returns problem and hint for a line whose first byte is invalid; both empty for mere text."""
        match bytes(self._line[:1]):
            case b"\r":
                return "bare CR in a header", ENDS_WITH_CRLF
            case b"\n" if self._lines:
                return "bare LF instead of a header's blank line", "a header ends with CRLF CRLF"
            case b"\n":
                return "line end outside a frame", LENGTH_TOO_SHORT
            case b":":
                return "header without a name", ""
            case b" " | b"\t" if self._lines:
                return "folded header line", "a header stands on one line"
            case b"\xef" if BYTE_ORDER_MARK.startswith(line[:3]):
                return "byte order mark before a header", ""
            case _:
                return "", ""

    def _guess_writer(self, line: bytes, frames: int) -> str:
        if frames:
            return TWO_WRITERS
        if line.startswith((b"{", b"[")):
            return "does the other peer use JSON Lines?"
        return PRINT_TO_STDERR


# -- lenient

MAX_LENIENT_LINE = 1024  # bytes of one header line with its line end, as in the synaps host
# What Rust parses as an unsigned 64-bit number; it allows a plus sign and any number of leading zeros.
LENIENT_LENGTH = re.compile(r"\+?([0-9]+)", re.ASCII)
MAX_LENIENT_LENGTH = 2**64 - 1


class LenientHeaderParser:
    """Parses header blocks as the synaps host does, with the members of `StrictHeaderParser`.

    Lines end with LF, with or without CR; the last of several lengths applies; lines without a colon and unknown
    headers are skipped. The length of a line is limited, their number is not: a block that never ends takes no memory,
    and the link limits the time of one frame."""

    def __init__(self, limits: Limits, *, most: int) -> None:
        self.error: BadFrame | None = None
        self.length = 0
        self.size = 0  # of the last complete block, in bytes
        self.pending_bytes = 0  # bytes of an unfinished block
        self._limit = limits.frame
        self._most = most  # the longest allowed body
        self._line: bytearray = bytearray()
        self._announced: int | None = None

    def feed(self, chunk: bytes, position: int, frames: int) -> int:
        """Returns where the body starts, or -1: the chunk ended inside the header, or `error` is set."""
        size = len(chunk)
        while position < size:
            room = MAX_LENIENT_LINE - len(self._line)
            end = chunk.find(b"\n", position, position + room) + 1
            part = chunk[position : end or position + room]
            self._line += part
            self.pending_bytes += len(part)
            position += len(part)
            if end:
                if self._end_line():
                    return position if self._end_block() else -1
                if self.error is not None:
                    return -1
            elif position < size:
                self.error = FrameTooLarge(size=None, limit=MAX_LENIENT_LINE, what="header line")
                return -1
        return -1

    def _end_line(self) -> bool:
        """Handles one line; returns True for the blank line that ends the block."""
        raw = bytes(self._line)
        self._line.clear()
        try:
            line = raw.decode().strip()
        except UnicodeDecodeError as cause:
            self.error = BadFrame("header line that is not UTF-8", found=raw)
            self.error.__cause__ = cause
            return False
        name, _, value = line.partition(":")
        if name.strip().lower() == "content-length" and ":" in line:
            self._parse_length(value.strip())
        return not line

    def _parse_length(self, value: str) -> None:
        number = LENIENT_LENGTH.fullmatch(value)
        if number is None:
            self.error = BadFrame("Content-Length is not a number", found=value.encode())
        elif int(number[1]) > MAX_LENIENT_LENGTH:
            self.error = FrameTooLarge(size=int(number[1]), limit=self._limit)
        else:
            self._announced = int(number[1])

    def _end_block(self) -> bool:
        if self._announced is None:
            self.error = BadFrame("missing Content-Length")
        elif self._announced > self._most:
            self.error = FrameTooLarge(size=self._announced, limit=self._limit)
        else:
            self.length = self._announced
            self.size = self.pending_bytes
            self.pending_bytes = 0
            self._announced = None
            return True
        return False
