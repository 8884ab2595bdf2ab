"""Finds out which call a response above the frame limit belongs to, without keeping the response.

The frame is scanned in chunks. Of its top-level object the names of the members and the value of `id` are kept; nested
values are only followed through their strings and brackets, so that a nested id is never taken for the message's.
Nothing is decoded: a skipped response fails its call whatever it contains.
"""

from __future__ import annotations

import re
import sys
from itertools import accumulate
from typing import Literal

from msgspec import Raw

from becket.errors import JSON_ERRORS
from becket.framing.framing import Frame, Outline
from becket.jsonrpc.json_values import decode_json
from becket.jsonrpc.messages import NULL_ID
from becket.jsonrpc.parser import MAX_MEMBERS, parse_id
from becket.limits import Limits

__all__ = ["MessageScanner"]

WINDOW = 16 * 1024  # bytes that are scanned together; splitting more at once takes more memory, and gains nothing
NAME_BYTES = 6 * len("method") + 2  # the longest name that matters, with each character escaped, and its quotes
BACKSLASH = b"\\"
SPACE = re.compile(rb"[ \t\r\n]*")
STRING_REST = re.compile(rb'(?:[^"\\]++|\\(?s:.))*+')  # up to the quote that ends it, or to the end of the window
WORD = re.compile(rb"[^][{}:,\" \t\r\n]*")  # a number, true, false, null
STRUCTURE = re.compile(rb'["{}\[\]]')
STEPS = dict.fromkeys(b"{[", 1) | dict.fromkeys(b"}]", -1)
NO_BRACKETS = bytes(byte for byte in range(256) if byte not in STEPS)
ALIKE = bytes.maketrans(b"{}", b"[]")
OPENING = b"["
PAIR = b"[]"
GROUP = 8  # brackets that are added up at once: one by one takes five times as long


class Groups(dict[int, tuple[int, int]]):
    """The effect of each group of brackets on the depth: the lowest point within it, and the change after it."""

    def __missing__(self, group: int) -> tuple[int, int]:
        depths = [*accumulate(map(STEPS.__getitem__, group.to_bytes(GROUP, sys.byteorder)))]
        found = min(depths), depths[-1]
        self[group] = found
        return found


GROUPS = Groups()  # at most 256: all brackets are alike then


def remove_escapes(window: bytes) -> bytes:
    """Returns the window without escaped backslashes and quotes, which leaves the quotes of strings."""
    return window.replace(b"\\\\", b"").replace(b'\\"', b"") if BACKSLASH in window else window


State = Literal["start", "name", "colon", "value", "comma", "done"]
"""The next token at the top level; at its end only white space."""


class MessageScanner:
    """Scans one message in chunks. Check `is_readable` and `is_response` after each, and call `end` after the last."""

    def __init__(self, limits: Limits) -> None:
        self.is_readable = True
        self.is_response = True
        self._limits = limits
        self._depth = 0
        self._is_in_string = False
        self._kept = b""  # a backslash whose partner is in the next chunk
        self._state: State = "start"
        self._token: bytearray | None = None  # an unfinished name or value of the top level
        self._most = 0  # bytes of it that are kept
        self._name = ""
        self._members = 0
        self._id: bytes | None = None
        self._has_id = False

    def feed(self, chunk: Frame) -> None:
        """Scans the next bytes of the message."""
        for start in range(0, len(chunk), WINDOW):
            if not self.is_readable:
                return
            window = self._kept + chunk[start : start + WINDOW]
            odd = (len(window) - len(window.rstrip(BACKSLASH))) % 2
            self._kept = BACKSLASH * odd
            if odd:
                window = window[:-1]
            if self._depth <= 1 or not self._skip_nested(window):
                self._read(window)

    def end(self) -> Outline | None:
        """Returns the id and the kind of the message; None if it is no message, or a response without an id."""
        if not self.is_readable or self._state != "done" or self._kept:
            return None
        id = parse_id(Raw(self._id), self._limits) if self._id is not None else None
        if self.is_response and (id is None or id == NULL_ID):
            return None
        return Outline(id, self.is_response)

    # -- below the top level

    def _skip_nested(self, window: bytes) -> bool:
        """Skips a window that stays below the top level; returns False if it does not.

        In bulk: the strings are removed, and the remaining brackets are added up."""
        parts = remove_escapes(window).split(b'"')
        brackets = b"".join(parts[self._is_in_string :: 2]).translate(ALIKE, NO_BRACKETS)
        brackets = brackets.replace(PAIR, b"").replace(PAIR, b"")  # the innermost, which return to the same depth
        added = -len(brackets) % GROUP
        depth = self._depth
        for group in memoryview(brackets + OPENING * added).cast("Q"):
            lowest, change = GROUPS[group]
            if depth + lowest <= 1:
                return False
            depth += change
        self._depth = depth - added
        self._is_in_string ^= len(parts) % 2 == 0
        return True

    def _follow_nested(self, window: bytes, position: int) -> int:
        """Scans below the top level, token by token; returns the position after the value, or the end of the window."""
        while True:
            if self._is_in_string:
                position = self._end_string(window, position)
                if self._is_in_string:
                    return position
            found = STRUCTURE.search(window, position)
            if found is None:
                return len(window)
            position = found.end()
            byte = window[position - 1]
            if byte == ord('"'):
                self._is_in_string = True
                continue
            self._depth += STEPS[byte]
            if self._depth == 1:
                self._state = "comma"
                return position

    def _end_string(self, window: bytes, position: int) -> int:
        """Returns the position after the string, or the end of the window, if the string goes on."""
        if position == 0 and b'"' not in remove_escapes(window):
            end = len(window)
        elif BACKSLASH in window:
            rest = STRING_REST.match(window, position)
            assert rest is not None  # it may be empty
            end = rest.end()
        else:
            end = window.find(b'"', position)
            end = len(window) if end < 0 else end
        self._is_in_string = end == len(window)
        return end if self._is_in_string else end + 1

    # -- the top level

    def _read(self, window: bytes) -> None:
        position, size = 0, len(window)
        while position < size and self.is_readable:
            if self._depth > 1:
                position = self._follow_nested(window, position)
            elif self._token is not None:
                position = self._go_on(self._token, window, position)
            else:
                space = SPACE.match(window, position)
                assert space is not None
                position = space.end()
                if position < size:
                    position = self._begin(window, position)

    def _begin(self, window: bytes, position: int) -> int:
        """Handles the first byte of the next token of the top level; returns the position after it."""
        byte = window[position : position + 1]
        match self._state, byte:
            case "start", b"{":
                self._depth = 1
                self._state = "name"
            case "name", b'"':
                self._token, self._most, self._is_in_string = bytearray(byte), NAME_BYTES + 1, True
            case "colon", b":":
                self._state = "value"
            case "value", (b"{" | b"["):
                self._depth = 2
                self.is_readable = self._name != "id"
            case "value", (b"}" | b"]" | b":" | b","):
                self.is_readable = False
            case "value", _:
                # One byte beyond the limit shows that it is too long.
                self._most = self._limits.id_bytes + len('""') + 1 if self._name == "id" else 0
                self._is_in_string = byte == b'"'
                self._token = bytearray(byte if self._is_in_string else b"")
                return position + self._is_in_string
            case "comma", b",":
                self._state = "name"
            case "comma", b"}":
                self._depth = 0
                self._state = "done"
            case _:  # also an object without members, which is no message
                self.is_readable = False
        return position + 1

    def _go_on(self, token: bytearray, window: bytes, position: int) -> int:
        """Continues a name or value of the top level; returns the position after it."""
        if self._is_in_string:
            end = self._end_string(window, position)
            is_over = not self._is_in_string
        else:
            word = WORD.match(window, position)
            assert word is not None
            end = word.end()
            is_over = end < len(window)
        token += window[position : min(end, position + self._most - len(token))] if len(token) < self._most else b""
        if is_over:
            self._token = None
            if self._state == "value":
                self._end_value(bytes(token))
            else:
                self._end_name(bytes(token))
        return end

    def _end_name(self, text: bytes) -> None:
        self._state = "colon"
        self._members += 1
        self._name = ""
        if len(text) <= NAME_BYTES:
            try:
                self._name = decode_json(text)
            except JSON_ERRORS:
                self.is_readable = False
        if self._members > MAX_MEMBERS:
            self.is_readable = False
        elif self._name == "method":
            self.is_response = False
        elif self._name == "id":
            self.is_readable = not self._has_id  # two ids are ambiguous
            self._has_id = True

    def _end_value(self, text: bytes) -> None:
        self._state = "comma"
        if self._name == "id":
            self._id = text
