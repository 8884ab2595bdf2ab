"""Checks frame bytes for nesting, node count, digits and duplicate keys before parsing.

Each check runs at the speed of C for any input, and returns what is wrong; the codec decides about the message.
"""

from __future__ import annotations

import re
from functools import cache

from msgspec import Raw

from becket.framing.framing import Frame
from becket.jsonrpc.json_values import decode_string
from becket.limits import Limits

__all__ = ["LimitChecker", "find_duplicate", "strip_escapes"]


class LimitChecker:
    """The limits of a frame that can be checked on its bytes."""

    __slots__ = ("_dense", "_limits", "_small", "_stride", "safe_bytes")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._stride = max(1, (limits.digits + 1) // 2)
        self._dense = min(limits.nodes, MIN_SLOW_FRAME)
        # Objects alone nest in so few bytes up to the limit, and a number that is too long has a digit in the middle.
        self._small = min(MIN_LEVEL_BYTES * limits.depth, 2 * limits.digits, limits.nodes)
        # A level takes two bytes, a digit and a value one: smaller params cannot reach the limits beside the envelope.
        self.safe_bytes = min(2 * limits.depth - 2, limits.digits, limits.nodes - ENVELOPE_NODES)

    def find_problem(self, frame: Frame) -> str | None:
        """Returns which limit a frame exceeds, None if it exceeds none."""
        # Counted with the contents of strings: most frames are below the limits even so.
        limits, size = self._limits, len(frame)
        digits = limits.digits
        if digits < size <= self._small and frame.find(b"[") < 0 and frame[digits] not in DIGITS:
            return None
        if size <= self._dense:  # too small for too many values
            # Removes up to one too many: `count` compares byte by byte, and takes several times as long for few.
            most = limits.depth + 1
            opened = 2 * size - len(frame.replace(b"{", b"", most)) - len(frame.replace(b"[", b"", most))
        else:
            marks = frame.translate(None, NON_STRUCTURAL)
            opened = marks.count(b"{") + marks.count(b"[")
            if opened + marks.count(b",") > limits.nodes or marks.count(b"-") > MAX_SLOW_NUMBERS:
                excess = find_node_problem(frame, limits.nodes)
                if excess is not None:
                    return excess
        if size <= 2 * digits:  # a number that is too long has a digit at this place
            has_number = size > digits and frame[digits] in DIGITS
        else:  # at least two of its digits are this far apart
            has_number = frame[:: self._stride].translate(DIGITS_TO_ZERO).find(TWO_DIGITS) >= 0
        if has_number:
            excess = find_digit_problem(frame, digits)
            if excess is not None:
                return excess
        return find_depth_problem(frame, limits.depth) if opened > limits.depth else None


def find_duplicate(frame: bytes, members: dict[str, Raw]) -> str | None:
    """Returns a top-level key that occurs twice in `frame`, None if there is none.

    `members` is what msgspec decoded from the same frame: the last value of each key. Walking the pairs, a key seen
    before is a duplicate, and so is one whose value here is not its last one."""
    # Quotes, colon and comma of each member, and the braces: if the lengths add up, nothing else is in the frame.
    if len(frame) == 1 + sum([len(key.encode()) + len(value) + 4 for key, value in members.items()]):
        return None
    if ESCAPE not in frame and all(frame.count(b'"%b"' % key.encode()) == 1 for key in members):
        return None  # no name occurs twice, at any level
    string, _ = get_patterns()
    seen: set[str] = set()
    position = skip_whitespace(frame, frame.index(b"{") + 1)
    while frame[position : position + 1] == b'"':
        key_text = string.match(frame, position)
        assert key_text is not None  # msgspec has parsed this frame
        key = decode_string(key_text.group())
        value = bytes(members[key])
        start = skip_whitespace(frame, skip_whitespace(frame, key_text.end()) + 1)
        end = skip_whitespace(frame, start + len(value))
        if key in seen or not frame.startswith(value, start) or frame[end : end + 1] not in (b",", b"}"):
            return key
        seen.add(key)
        position = skip_whitespace(frame, end + 1)
    return None


@cache
def get_patterns() -> tuple[re.Pattern[bytes], re.Pattern[bytes]]:
    """Returns the patterns of a string and of white space. Most programs never need them, and compiling takes time."""
    return re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"'), re.compile(rb"[ \t\r\n]*")


def skip_whitespace(frame: bytes, position: int) -> int:
    _, space = get_patterns()
    match = space.match(frame, position)
    return match.end() if match else position


# These run at the speed of C for any input. Quotes and brackets are classified by what is around them, so escapes are
# removed first; a frame that is not JSON may be misjudged, and is then rejected by the parser.


def find_depth_problem(frame: Frame, limit: int) -> str | None:
    # Two quotes in a row enclose nothing, or end one string and begin the next: without them all else stays as it is.
    brackets = strip_escapes(frame).translate(BRACES_TO_BRACKETS, delete=NON_BRACKETS).replace(b'""', b"")
    if QUOTE in brackets:
        brackets = strip_strings(brackets)
    # There is one kind of bracket now, so each round removes exactly one level.
    for _ in range(limit):
        brackets = brackets.replace(b"[]", b"")
        if not brackets:
            return None
    return f"nested deeper than {limit}"


def find_node_problem(frame: Frame, limit: int) -> str | None:
    plain = strip_escapes(frame)
    if plain.count(b'"') // 2 > 2 * limit:
        return f"more than {limit} values"
    outside = strip_strings(plain)
    if outside.count(b"[") + outside.count(b"{") + outside.count(b",") > limit:
        return f"more than {limit} values"
    if count_slow_numbers(outside) > MAX_SLOW_NUMBERS:
        return f"more than {MAX_SLOW_NUMBERS} numbers close to zero"
    return None


def find_digit_problem(frame: Frame, limit: int) -> str | None:
    too_long = b"0" * (limit + 1)
    if frame.translate(DIGITS_TO_ZERO).find(too_long) < 0:  # not even in a string, which takes longer to find out
        return None
    digits = strip_strings(strip_escapes(frame)).translate(DIGITS_TO_ZERO)
    return f"a number of more than {limit} digits" if too_long in digits else None


def strip_strings(plain: bytes) -> bytes:
    return b"".join(plain.split(b'"')[::2])  # every second part between quotes


def strip_escapes(frame: Frame) -> bytes:
    """Returns JSON text without its escaped quotes and backslashes, so that each quote begins or ends a string."""
    return bytes(frame).replace(b"\\\\", b"").replace(b'\\"', b"") if ESCAPE in frame else bytes(frame)


# Counting a byte costs as much as removing all others: what is to be counted twice or more is reduced first.
NON_STRUCTURAL = bytes(range(256)).translate(None, delete=b"[{,-")

ESCAPE, QUOTE = b'\\"'
NON_BRACKETS = bytes(range(256)).translate(None, delete=b'[]{}"')
BRACES_TO_BRACKETS = bytes.maketrans(b"{}", b"[]")

ENVELOPE_NODES = len("{,,,")  # of a request
MIN_LEVEL_BYTES = len('{"":}')  # of an object within another

DIGITS = b"0123456789"
DIGITS_TO_ZERO = bytes.maketrans(b"123456789", b"0" * 9)
TWO_DIGITS = b"00"

# A number with an exponent below -300 takes a hundred times as long to parse as any other, 11 us on a laptop. A message
# may have so many of them that it stays below 50 ms.
MAX_SLOW_NUMBERS = 4_096
MIN_SLOW_FRAME = MAX_SLOW_NUMBERS * len("5e-324")  # bytes


def count_slow_numbers(outside: bytes) -> int:
    if outside.count(b"-") <= MAX_SLOW_NUMBERS:
        return 0
    digits = outside.translate(DIGITS_TO_ZERO)
    return digits.count(b"e-000") + digits.count(b"E-000")
