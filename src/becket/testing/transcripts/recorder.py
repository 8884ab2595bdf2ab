"""Records the bytes of a connection as the lines of a transcript.

Pure: bytes and times are arguments. Recording a process is the command line's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType

from becket.errors import FrameTooLarge
from becket.framing.content_length import ContentLength
from becket.framing.detect import detect_framing
from becket.framing.framing import Framing, Outline, SkippedFrame
from becket.framing.json_lines import JsonLines
from becket.framing.length_prefixed import LengthPrefixed
from becket.limits import DEFAULT_LIMITS, Limits
from becket.testing.transcripts.file_format import (
    FRAMING_NAMES,
    LENIENT_CONTENT_LENGTH,
    ChildExited,
    EndClosed,
    FrameSent,
    LinkEnd,
    StrayBytes,
    TranscriptEntry,
    encode_entry,
    encode_head,
)

__all__ = ["TranscriptRecorder"]

MAX_DETECT_BYTES = 64 * 1024  # bytes without a recognised framing, after which the default is assumed
LENIENT_FRAMINGS: Mapping[str, Callable[[Limits], ContentLength | JsonLines | LengthPrefixed]] = MappingProxyType(
    {
        "content-length": partial(LENIENT_CONTENT_LENGTH, skip_stray=True),
        "json-lines": partial(JsonLines, skip_stray=True),
        "length-prefixed": LengthPrefixed,
    }
)


class TranscriptRecorder:
    """Converts the bytes of a connection to the lines of a transcript. Detects the framing by itself.

    What it cannot decode is recorded as stray, and it never raises: recording must not disturb the connection."""

    def __init__(
        self, command: Sequence[str] = (), *, started_ms: int | None = None, limits: Limits = DEFAULT_LIMITS
    ) -> None:
        self.framing: str | None = None
        self._command = tuple(command)
        self._started_ms = started_ms
        self._limits = limits
        self._framings: dict[LinkEnd, Framing] = {}
        self._held: dict[LinkEnd, tuple[float, bytes]] = {}

    def feed(self, at: float, to: LinkEnd, chunk: bytes) -> bytes:
        """Returns the lines for the entries that these bytes complete."""
        if self.framing is not None:
            return self._feed(at, to, chunk)
        since, before = self._held.get(to, (at, b""))
        self._held[to] = since, before + chunk
        self.framing = recognise(before + chunk)
        return b"" if self.framing is None else self._start_recording()

    def close(self, at: float, to: LinkEnd) -> bytes:
        """Returns the lines for the end of one direction: an incomplete frame is stray."""
        lines = self._assume_default_framing()
        problem = self._framings[to].end() if to in self._framings else None
        if problem is not None and self._framings[to].error is None:
            lines += encode_entry(StrayBytes(at, to, f"({problem})".encode()))
        return lines + encode_entry(EndClosed(at, to))

    def end(self, at: float, exit_code: int) -> bytes:
        """Returns the lines for the exit of the child."""
        return self._assume_default_framing() + encode_entry(ChildExited(at, exit_code))

    def _assume_default_framing(self) -> bytes:
        if self.framing is not None:
            return b""
        self.framing = "content-length"
        return self._start_recording()

    def _start_recording(self) -> bytes:
        assert self.framing is not None
        self._framings = {end: self._open_way(self.framing) for end in LinkEnd}
        head = encode_head(self.framing, self._command, started_ms=self._started_ms)
        held = sorted((at, to, data) for to, (at, data) in self._held.items())
        self._held.clear()
        return head + b"".join(self._feed(at, to, data) for at, to, data in held)

    def _open_way(self, name: str) -> Framing:
        framing = LENIENT_FRAMINGS[name](self._limits)
        framing.scan_oversize(PassedOver)
        return framing

    def _feed(self, at: float, to: LinkEnd, chunk: bytes) -> bytes:
        framing = self._framings[to]
        broken = framing.error
        if broken is not None:  # the framing has failed for good, but the peer may go on sending
            return encode_entry(StrayBytes(at, to, chunk))
        lines = [encode_entry(self._read(at, to, found)) for found in framing.feed(chunk)]
        if framing.error is not None:
            lines.append(encode_entry(StrayBytes(at, to, f"({framing.error})".encode())))
        return b"".join(lines)

    def _read(self, at: float, to: LinkEnd, found: bytes | bytearray | SkippedFrame) -> TranscriptEntry:
        if not isinstance(found, SkippedFrame):
            return FrameSent(at, to, bytes(found))
        is_oversize = isinstance(found.error, FrameTooLarge)
        first = (
            b"" if is_oversize else getattr(self._framings[to], "stray", b"")
        )  # the line itself, where it was a line
        return StrayBytes(at, to, first or f"({found.error})".encode())


class PassedOver:
    """Skips a frame above the limit as if it were a response, so that recording goes on after it."""

    is_readable = True
    is_response = True

    def feed(self, chunk: bytes | bytearray) -> None:
        """Records nothing."""

    def end(self) -> Outline:
        return Outline(None, is_response=True)


def recognise(start: bytes) -> str | None:
    """Returns the framing of a connection that begins like this; None while it is undecided.

    Unlike `detect_framing` it does not take text printed by a program for the beginning of a header."""
    chosen = detect_framing(start)
    if chosen is None or (chosen is ContentLength and not starts_header(start) and len(start) <= MAX_DETECT_BYTES):
        return None
    return FRAMING_NAMES[chosen]


def starts_header(start: bytes) -> bool:
    return start.lstrip()[: len(b"content-")].lower() == b"content-"
