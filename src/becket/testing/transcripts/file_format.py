"""The format of transcript files, which `becket trace` writes: JSON Lines, one for each entry.

The first line is the head: `{"transcript":1,"framing":"content-length","command":["notes"]}`. Every other line is an
event, with its time in seconds from the start:

{"at":0.0012,"to":"child","frame":{"jsonrpc":"2.0","id":1,"method":"initialize"}}

`frame` is the body of a frame, byte for byte. A body that is not a JSON object or array, or has line breaks in it, is
written as `text`; one that is not UTF-8 as `base64`. `"stray":true` marks bytes that belong to no frame.
`"closed":true` is the end of this direction, and `"exit":0` the exit code of the child (-15: signal 15).

Transcripts written by hand for `check_dialect` may have more: `ours` lists the ends that becket can replace, `given`
what the ends know before the first message, and `means` the outcome of a request for its caller.

Pure: bytes and times are arguments. `recorder` turns the bytes of a connection into entries.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias, assert_never

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from becket.dialects import NATIVE, detect_dialect, find_dialect
from becket.errors import JSON_ERRORS, BadFile
from becket.framing.content_length import ContentLength
from becket.framing.framing import Framing, FramingFactory
from becket.framing.json_lines import JsonLines
from becket.framing.length_prefixed import LengthPrefixed
from becket.limits import DEFAULT_LIMITS, Limits

if TYPE_CHECKING:
    from becket.dialects import Dialect

__all__ = [
    "FRAMINGS",
    "ChildExited",
    "EndClosed",
    "FrameSent",
    "LinkEnd",
    "StrayBytes",
    "Transcript",
    "TranscriptEntry",
    "TranscriptReader",
    "bounded_lines",
    "encode_entry",
    "encode_head",
    "load_transcript",
    "parse_transcript",
]

VERSION = 1
MAX_CONTAINERS = 500  # objects and arrays in a frame that is written as JSON: every JSON parser handles this many
MAX_LINE = 64 * 1024 * 1024  # bytes: the largest frame of any dialect in base64, and half as much again

FRAMINGS: Mapping[str, FramingFactory] = MappingProxyType(
    {"content-length": ContentLength, "json-lines": JsonLines, "length-prefixed": LengthPrefixed}
)
"""Framings by their names in transcripts."""

LENIENT_CONTENT_LENGTH = partial(ContentLength, strict=False)  # as synaps hosts read it and synaps extensions write it
FRAMING_NAMES = {ContentLength: "content-length", JsonLines: "json-lines", LengthPrefixed: "length-prefixed"}
FRAMING_TYPES = {name: framing for framing, name in FRAMING_NAMES.items()}


class LinkEnd(StrEnum):
    """The receiver of a frame."""

    CHILD = "child"
    HOST = "host"

    @property
    def other(self) -> LinkEnd:
        """The other end of the connection."""
        return LinkEnd.HOST if self is LinkEnd.CHILD else LinkEnd.CHILD


class FrameSent(Struct, frozen=True):
    """A frame was sent; `body` is its content. `means` is JSON: the outcome of a request, in transcripts written by
    hand."""

    at: float
    to: LinkEnd
    body: bytes
    means: bytes | None = None


class StrayBytes(Struct, frozen=True):
    """Bytes were sent that belong to no frame."""

    at: float
    to: LinkEnd
    data: bytes


class EndClosed(Struct, frozen=True):
    """No more will be sent to this end."""

    at: float
    to: LinkEnd


class ChildExited(Struct, frozen=True):
    """The child has exited, with this exit code or, if negative, by a signal."""

    at: float
    exit_code: int


TranscriptEntry: TypeAlias = FrameSent | StrayBytes | EndClosed | ChildExited


class Transcript(Struct, frozen=True):
    """A recorded session. `is_truncated`: its last line is missing or incomplete, since the recorder was killed."""

    entries: tuple[TranscriptEntry, ...]
    framing: str = "content-length"
    command: tuple[str, ...] = ()
    dialect: str | None = None
    started_ms: int | None = None
    is_truncated: bool = False
    ours: tuple[LinkEnd, ...] = (LinkEnd.HOST, LinkEnd.CHILD)
    given: Mapping[str, Any] = {}

    def detect_dialect(self) -> Dialect:
        """Returns the dialect that the transcript names, or else the one detected from its first messages.

        Raises:
            ValueError: it names an unknown dialect.
        """
        if self.dialect is not None:
            return find_dialect(self.dialect)
        first = next((each for each in self.entries if isinstance(each, FrameSent) and each.to is LinkEnd.CHILD), None)
        return NATIVE if first is None else detect_dialect(first.body, FRAMING_TYPES[self.framing])

    def open_framing(self, limits: Limits = DEFAULT_LIMITS) -> Framing:
        """Returns a new framing, for one end of a connection like the recorded one."""
        framing = FRAMINGS[self.framing]
        return LENIENT_CONTENT_LENGTH(limits, skip_stray=True) if framing is ContentLength else framing(limits)


# -- writing


class TranscriptHead(Struct, frozen=True, omit_defaults=True):
    transcript: int
    framing: str = "content-length"
    command: tuple[str, ...] = ()
    dialect: str | None = None
    started_ms: int | None = None
    ours: tuple[LinkEnd, ...] = (LinkEnd.HOST, LinkEnd.CHILD)
    given: dict[str, Any] = {}


ABSENT = Raw(b"")


class TranscriptLine(Struct, frozen=True, omit_defaults=True):
    at: float = 0.0
    to: LinkEnd | None = None
    stray: bool = False
    frame: Raw = ABSENT
    text: str | None = None
    base64: str | None = None
    closed: bool = False
    exit: int | None = None
    means: Raw = ABSENT


def encode_head(
    framing: str,
    command: Sequence[str] = (),
    *,
    dialect: str | None = None,
    started_ms: int | None = None,
) -> bytes:
    """Returns the first line of a transcript.

    Raises:
        ValueError: no framing has this name.
    """
    if framing not in FRAMINGS:
        raise ValueError(f"unknown framing: {framing} (known: {', '.join(sorted(FRAMINGS))})")
    # `framing` is always written, so that readers need not know the default.
    head = {"transcript": VERSION, "framing": framing}
    rest = TranscriptHead(VERSION, command=tuple(command), dialect=dialect, started_ms=started_ms)
    return msgspec.json.encode(head | msgspec.to_builtins(rest)) + b"\n"


def encode_entry(entry: TranscriptEntry) -> bytes:
    """Returns the line of one entry."""
    at = round(entry.at, 6)
    match entry:
        case FrameSent(_, to, body, means):
            text = decode_text(body)
            means_json = ABSENT if means is None else Raw(means)
            if text is None:
                line = TranscriptLine(at, to, base64=b64encode(body).decode(), means=means_json)
            elif is_json_line(body):
                line = TranscriptLine(at, to, frame=Raw(body), means=means_json)
            else:
                line = TranscriptLine(at, to, text=text, means=means_json)
        case StrayBytes(_, to, data):
            text = decode_text(data)
            if text is None:
                line = TranscriptLine(at, to, stray=True, base64=b64encode(data).decode())
            else:
                line = TranscriptLine(at, to, stray=True, text=text)
        case EndClosed(_, to):
            line = TranscriptLine(at, to, closed=True)
        case ChildExited(_, exit_code):
            line = TranscriptLine(at, exit=exit_code)
        case _:
            assert_never(entry)
    return msgspec.json.encode(line) + b"\n"


def decode_text(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def is_json_line(body: bytes) -> bool:
    """Returns whether a body can be embedded in a line of JSON and read back unchanged."""
    if body[:1] not in (b"{", b"[") or body[-1:] not in (b"}", b"]") or b"\n" in body or b"\r" in body:
        return False
    if body.count(b"{") + body.count(b"[") > MAX_CONTAINERS:
        return False  # it may be too deep for a reader
    try:
        msgspec.json.decode(body, type=Raw)
    except msgspec.DecodeError:
        return False
    return True


# -- reading


def load_transcript(path: Path | str) -> Transcript:
    """Loads a transcript file.

    Raises:
        BadFile: it is not a transcript; names the line.
        OSError: it cannot be read.
    """
    with open(path, "rb") as file:
        return parse_transcript(bounded_lines(file, str(path)), str(path))


def parse_transcript(lines: Iterable[bytes], path: str = "transcript") -> Transcript:
    """Parses these lines, each with its line end. Empty ones are skipped.

    Raises:
        BadFile: a line cannot be parsed; `path` names the file.
    """
    reader = TranscriptReader(lines, path)
    entries = tuple(reader)
    return replace(reader.head, entries=entries, is_truncated=reader.is_cut)


class TranscriptReader:
    """Yields the entries of a transcript one by one, in constant memory.

    `head` is the transcript with its first entries alone, up to the first frame to the child: enough to detect the
    dialect. `is_cut` is known when the last entry was read."""

    def __init__(self, lines: Iterable[bytes], path: str = "transcript") -> None:
        self.is_cut = False
        self._path = path
        self._numbered = ((number, line) for number, line in enumerate(lines, 1) if line.strip())
        first = next(self._numbered, None)
        if first is None:
            raise BadFile(path, [("", "this is no transcript: it is empty")])
        head = parse_head(first[1], path)
        self._begun: list[TranscriptEntry] = []
        for entry in self._read():
            self._begun.append(entry)
            if isinstance(entry, FrameSent) and entry.to is LinkEnd.CHILD:
                break
        self.head = Transcript(
            tuple(self._begun),
            head.framing,
            head.command,
            head.dialect,
            head.started_ms,
            ours=head.ours,
            given=head.given,
        )

    def __iter__(self) -> Iterator[TranscriptEntry]:
        yield from self._begun
        yield from self._read()

    def _read(self) -> Iterator[TranscriptEntry]:
        for number, line in self._numbered:
            try:
                entry = parse_entry(line)
            except (*JSON_ERRORS, ValueError) as error:
                if line.endswith(b"\n"):
                    raise BadFile(self._path, [("", f"line {number}: {error}")]) from error
                self.is_cut = True
            else:
                yield entry


def bounded_lines(file: BinaryIO, path: str) -> Iterator[bytes]:
    """Yields the lines of a file.

    Raises:
        BadFile: a line is longer than any line of a transcript.
    """
    number = 0
    while line := file.readline(MAX_LINE + 1):
        number += 1
        if len(line) > MAX_LINE:
            raise BadFile(path, [("", f"line {number} is longer than {MAX_LINE} bytes: this is no transcript")])
        yield line


def parse_head(line: bytes, path: str) -> TranscriptHead:
    try:
        head = msgspec.json.decode(line, type=TranscriptHead)
    except JSON_ERRORS as error:
        raise BadFile(path, [("", f"not a transcript: its first line is not the head of one ({error})")]) from error
    if head.transcript != VERSION:
        raise BadFile(path, [("", f"a transcript of version {head.transcript}, and this program reads {VERSION}")])
    if head.framing not in FRAMINGS:
        raise BadFile(path, [("", f"unknown framing: {head.framing} (known: {', '.join(sorted(FRAMINGS))})")])
    return head


def parse_entry(line: bytes) -> TranscriptEntry:
    """Parses one line.

    Raises:
        ValueError: it is not exactly one kind of entry. All decode errors are ValueErrors too.
    """
    read = msgspec.json.decode(line, type=TranscriptLine)
    if read.exit is not None:
        return ChildExited(read.at, read.exit)
    if read.to is None:
        raise ValueError("it has no member `to`")
    if read.closed:
        return EndClosed(read.at, read.to)
    bodies = [
        *([bytes(read.frame)] if read.frame else []),
        *([read.text.encode()] if read.text is not None else []),
        *([b64decode(read.base64, validate=True)] if read.base64 is not None else []),
    ]
    if len(bodies) != 1:
        raise ValueError("it must have one of `frame`, `text`, `base64`, `closed` and `exit`")
    if read.stray:
        return StrayBytes(read.at, read.to, bodies[0])
    return FrameSent(read.at, read.to, bodies[0], bytes(read.means) if read.means else None)


# -- recording
