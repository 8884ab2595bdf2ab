"""Looks at the bytes of a frame for what msgspec lets through, and for what would hold the loop up while it is parsed.

Each runs at the speed of C whatever the bytes are, and says what is wrong; what becomes of the message is the codec's.
"""

from __future__ import annotations

import re
from functools import cache

from msgspec import Raw

from becket.limits import Limits
from becket.rpc.json_values import decode_string
from becket.wire.framing import Frame

__all__ = ["Guard", "find_duplicate", "without_escapes"]


class Guard:
    """What a frame may hold, as far as its bytes tell."""

    __slots__ = ("_dense", "_limits", "_stride", "deep")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._stride = max(1, (limits.digits + 1) // 2)
        self._dense = min(2 * limits.nodes, SLOW_FROM)
        # A level takes two bytes and a digit one: smaller values cannot reach the limits. One level is the envelope.
        self.deep = min(2 * limits.depth - 2, limits.digits)

    def find_excess(self, frame: Frame) -> str | None:
        """Returns what is too much in a frame, None if nothing is."""
        # Counted with what stands in strings: most frames are below the limits even so.
        limits = self._limits
        marks = frame if len(frame) < FEW_BYTES else frame.translate(None, NO_MARK)
        opened = marks.count(b"{")
        if OPENING_BRACKET in marks:
            opened += marks.count(b"[")
        if len(frame) > self._dense and (opened + marks.count(b",") > limits.nodes or marks.count(b"-") > SLOW_NUMBERS):
            excess = find_too_much(frame, limits.nodes)
            if excess is not None:
                return excess
        # Of a number that is too long at least two digits stand so far from each other.
        if TWO_DIGITS in frame[:: self._stride].translate(AS_ZERO):
            excess = find_too_long(frame, limits.digits)
            if excess is not None:
                return excess
        return find_too_deep(frame, limits.depth) if opened > limits.depth else None


def find_duplicate(frame: bytes, members: dict[str, Raw]) -> str | None:
    """Returns a top-level key that stands twice in `frame`, None if there is none.

    `members` is what msgspec made of the same frame: the last value of each key. Walking the pairs, a key seen before
    is a duplicate, and so is one whose value here is not its last one."""
    # Quotes, colon and comma of each member, and the braces: where the lengths add up, nothing else is in the frame.
    if len(frame) == 1 + sum([len(key.encode()) + len(value) + 4 for key, value in members.items()]):
        return None
    if ESCAPE not in frame and all(frame.count(b'"%b"' % key.encode()) == 1 for key in members):
        return None  # no name stands twice, at whatever level
    string, _ = patterns()
    seen: set[str] = set()
    position = skip_space(frame, frame.index(b"{") + 1)
    while frame[position : position + 1] == b'"':
        key_text = string.match(frame, position)
        assert key_text is not None  # msgspec has parsed this frame
        key = decode_string(key_text.group())
        value = bytes(members[key])
        start = skip_space(frame, skip_space(frame, key_text.end()) + 1)
        end = skip_space(frame, start + len(value))
        if key in seen or not frame.startswith(value, start) or frame[end : end + 1] not in (b",", b"}"):
            return key
        seen.add(key)
        position = skip_space(frame, end + 1)
    return None


@cache
def patterns() -> tuple[re.Pattern[bytes], re.Pattern[bytes]]:
    """Returns those of a string and of white space. Most programs never need them, and compiling takes time."""
    return re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"'), re.compile(rb"[ \t\r\n]*")


def skip_space(frame: bytes, position: int) -> int:
    _, space = patterns()
    match = space.match(frame, position)
    return match.end() if match else position


# These run at the speed of C whatever the bytes are. Quotes and brackets are told apart only by what is around them, so
# escapes go first; a frame that is no JSON may be judged wrongly, and is refused by the parser then.


def find_too_deep(frame: Frame, limit: int) -> str | None:
    # Two quotes in a row enclose nothing, or end one string and begin the next: all else keeps its side without them.
    brackets = without_escapes(frame).translate(ONE_KIND, delete=NO_BRACKET_OR_QUOTE).replace(b'""', b"")
    if QUOTE in brackets:
        brackets = without_strings(brackets)
    # There is one kind of bracket now, so each round takes away exactly one level.
    for _ in range(limit):
        brackets = brackets.replace(b"[]", b"")
        if not brackets:
            return None
    return f"nested deeper than {limit}"


def find_too_much(frame: Frame, limit: int) -> str | None:
    plain = without_escapes(frame)
    if plain.count(b'"') // 2 > 2 * limit:
        return f"more than {limit} values"
    outside = without_strings(plain)
    if outside.count(b"[") + outside.count(b"{") + outside.count(b",") > limit:
        return f"more than {limit} values"
    if count_slow(outside) > SLOW_NUMBERS:
        return f"more than {SLOW_NUMBERS} numbers close to zero"
    return None


def find_too_long(frame: Frame, limit: int) -> str | None:
    digits = without_strings(without_escapes(frame)).translate(AS_ZERO)
    return f"a number of more than {limit} digits" if b"0" * (limit + 1) in digits else None


def without_strings(plain: bytes) -> bytes:
    return b"".join(plain.split(b'"')[::2])  # every second piece between quotes


def without_escapes(frame: Frame) -> bytes:
    """Returns JSON text without its escaped quotes and backslashes, so that each quote begins or ends a string."""
    return bytes(frame).replace(b"\\\\", b"").replace(b'\\"', b"") if ESCAPE in frame else bytes(frame)


# Counting a byte costs as much as taking all others away: what is to be counted twice or more is reduced first.
FEW_BYTES = 4_096
NO_MARK = bytes(byte for byte in range(256) if byte not in b"[{,-")

ESCAPE, QUOTE, OPENING_BRACKET = b'\\"['
NO_BRACKET_OR_QUOTE = bytes(byte for byte in range(256) if byte not in b'[]{}"')
ONE_KIND = bytes.maketrans(b"{}", b"[]")

AS_ZERO = bytes.maketrans(b"123456789", b"0" * 9)
TWO_DIGITS = b"00"

# A number with an exponent below -300 takes a hundred times as long to read as any other, 11 us on a laptop. A message
# may have so many of them that it stays below 50 ms.
SLOW_NUMBERS = 4_096
SLOW_FROM = SLOW_NUMBERS * len("5e-324")  # bytes


def count_slow(outside: bytes) -> int:
    if outside.count(b"-") <= SLOW_NUMBERS:
        return 0
    digits = outside.translate(AS_ZERO)
    return digits.count(b"e-000") + digits.count(b"E-000")
