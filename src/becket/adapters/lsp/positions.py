"""Converts LSP positions to text offsets and applies or computes edits. Pure.

A position is a line and a character in it; the unit of a character is negotiated: a code unit of UTF-16, or of UTF-8 or
UTF-32 if the server chose that. Lines end with `\\n`, `\\r\\n` or `\\r`, and with nothing else.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from lsprotocol.types import (
    Position,
    PositionEncodingKind,
    Range,
    TextDocumentContentChangePartial,
    TextEdit,
)

__all__ = ["LineIndex", "apply_edits", "compute_change"]

LINE_END = re.compile(r"\r\n|\n|\r")
UTF16 = PositionEncodingKind.Utf16
CODECS = {PositionEncodingKind.Utf8: ("utf-8", 1), PositionEncodingKind.Utf16: ("utf-16-le", 2)}


class LineIndex:
    """A text and where its lines begin."""

    __slots__ = ("_encoding", "_starts", "content")

    def __init__(self, content: str, encoding: PositionEncodingKind | str = UTF16) -> None:
        self.content = content
        self._encoding = PositionEncodingKind(encoding)
        self._starts = [0, *(end.end() for end in LINE_END.finditer(content))]

    def offset(self, position: Position) -> int:
        """Returns the index in the text of a position, clamped to the end of its line and of the text."""
        if position.line >= len(self._starts):
            return len(self.content)
        start = self._starts[position.line]
        line = self._line(position.line)
        return start + units_to_length(line, position.character, self._encoding)

    def position(self, offset: int) -> Position:
        """Returns the position of an index in the text."""
        offset = max(0, min(offset, len(self.content)))
        line = bisect_right(self._starts, offset) - 1
        return Position(line, count_units(self.content[self._starts[line] : offset], self._encoding))

    def range(self, start: int, end: int) -> Range:
        """Returns the range between two indexes."""
        return Range(self.position(start), self.position(end))

    def slice(self, range: Range) -> str:
        """Returns the text in a range."""
        return self.content[self.offset(range.start) : self.offset(range.end)]

    def _line(self, number: int) -> str:
        """Returns a line without its end."""
        start = self._starts[number]
        end = LINE_END.search(self.content, start)
        return self.content[start : len(self.content) if end is None else end.start()]


def count_units(text: str, encoding: PositionEncodingKind) -> int:
    if encoding not in CODECS or text.isascii():
        return len(text)
    codec, size = CODECS[encoding]
    return len(text.encode(codec, "surrogatepass")) // size


def units_to_length(line: str, units: int, encoding: PositionEncodingKind) -> int:
    """Returns the number of characters in the first `units` of a line; rounds down inside a character."""
    if encoding not in CODECS or line.isascii():
        return min(units, len(line))
    codec, size = CODECS[encoding]
    head = line.encode(codec, "surrogatepass")[: units * size]
    return len(head.decode(codec, "ignore"))


# -- changes


def apply_edits(text: str, edits: Iterable[Any], encoding: PositionEncodingKind | str = UTF16) -> str:
    """Returns a text with all edits applied; their ranges refer to the given text.

    Raises:
        ValueError: edits overlap.
    """
    whole = LineIndex(text, encoding)
    spans = [(whole.offset(edit.range.start), whole.offset(edit.range.end), replacement_text(edit)) for edit in edits]
    spans.sort(key=lambda span: span[:2])  # stable: edits at one position keep their order
    for (_, end, _), (start, _, _) in pairwise(spans):
        if start < end:
            raise ValueError(f"two edits overlap at {whole.position(start)}")
    parts: list[str] = []
    at = 0
    for start, end, new in spans:
        parts += (text[at:start], new)
        at = end
    return "".join([*parts, text[at:]])


def replacement_text(edit: Any) -> str:
    """Returns the new text of an edit, or the source of its snippet."""
    if isinstance(edit, TextEdit) or hasattr(edit, "new_text"):
        return str(edit.new_text)
    return str(edit.snippet.value)


def compute_change(
    old: str, new: str, encoding: PositionEncodingKind | str = UTF16
) -> TextDocumentContentChangePartial:
    """Returns the change from the old to the new text, without their common prefix and suffix."""
    start = common_prefix_length(old, new)
    end = common_prefix_length(old[start:][::-1], new[start:][::-1])
    start, end = avoid_split_line_ends(old, new, start, end)
    return TextDocumentContentChangePartial(
        range=LineIndex(old, encoding).range(start, len(old) - end), text=new[start : len(new) - end]
    )


def common_prefix_length(one: str, other: str) -> int:
    """Returns the length of the common prefix, by bisection, so that the comparisons run in C."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def avoid_split_line_ends(old: str, new: str, start: int, end: int) -> tuple[int, int]:
    """Returns prefix and suffix lengths that do not split a `\\r\\n`: no position is inside of one."""
    if start and old[start - 1] == "\r":
        start -= 1
    if end and old[len(old) - end] == "\n":
        end -= 1
    return start, min(end, len(old) - start, len(new) - start)
