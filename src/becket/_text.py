"""Text for people: truncates, quotes and escapes untrusted text, and joins problems and JSON pointers."""

from __future__ import annotations

import os
from collections.abc import Sequence

__all__ = [
    "MAX_TEXT_LENGTH",
    "escape",
    "escape_pointer",
    "is_printable",
    "join_pointer",
    "join_problems",
    "quote",
    "quote_path",
    "truncate",
    "truncate_bytes",
    "truncate_counted",
    "truncate_repr",
    "unescape_pointer",
]

MAX_TEXT_LENGTH = 200  # characters of a message or a pointer: both may quote a text as long as a frame
MAX_QUOTED_BYTES = 64  # bytes of a quotation in a message
MAX_PROBLEMS_SHOWN = 20  # problems in a text; the field has all of them

# Printable to Python, and yet invisible: what Unicode calls default ignorable, besides the format characters, which
# Python does not consider printable.
INVISIBLE_CHARACTERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0").union(
    map(chr, range(0xFE00, 0xFE10)), map(chr, range(0xE0100, 0xE01F0))
)


def truncate(text: str, limit: int = MAX_TEXT_LENGTH, dots: str = "...") -> str:
    """Returns a text of at most `limit` characters; a longer one ends in dots."""
    return text if len(text) <= limit else f"{text[: limit - len(dots)]}{dots}"


def truncate_counted(text: str, limit: int) -> str:
    """Returns the first `limit` characters of a text; a longer one ends in dots and the number of its characters."""
    return text if len(text) <= limit else f"{text[:limit]}... ({len(text)} characters)"


def truncate_repr(value: object, limit: int = MAX_TEXT_LENGTH) -> str:
    """Returns the beginning of a value's `repr`."""
    return truncate(repr(value), limit)


def truncate_bytes(text: str, size: int) -> str:
    """Returns the beginning of a text in at most `size` bytes of UTF-8, never with half a character."""
    return text.encode()[:size].decode(errors="ignore")


def quote(found: bytes | bytearray) -> str:
    """Returns the beginning of `found` as one escaped line of ASCII."""
    shown = repr(bytes(found[:MAX_QUOTED_BYTES]))[1:]
    return shown if len(found) <= MAX_QUOTED_BYTES else f"{shown}..."


def escape(text: str | bytes) -> str:
    """Returns one line in which nothing can move a cursor, forge a line, change a direction or hide.

    Control characters, C1, bidirectional, zero-width and invisible ones, and broken UTF-8, become visible escapes."""
    if isinstance(text, bytes):
        text = text.decode(errors="backslashreplace")
    if text.isprintable() and (text.isascii() or INVISIBLE_CHARACTERS.isdisjoint(text)):
        return text
    return "".join(char if is_printable(char) or char == "\t" else escape_character(char) for char in text)


def quote_path(path: str | os.PathLike[str]) -> str:
    """Returns a path as one line that can be printed and sent; tabs are escaped too."""
    return escape(os.fspath(path)).replace("\t", "\\t")


def is_printable(char: str) -> bool:
    return char.isprintable() and char not in INVISIBLE_CHARACTERS


def escape_character(char: str) -> str:
    if "\udc80" <= char <= "\udcff":  # a byte of a path that is not UTF-8, as Python represents it
        return f"\\x{ord(char) - 0xDC00:02x}"
    return char.encode("unicode_escape", errors="backslashreplace").decode("ascii")


# -- problems, each a JSON pointer and a message


def join_problems(problems: Sequence[tuple[str, str]]) -> str:
    """Returns the first problems as one line, and the number of the others."""
    shown = escape("; ".join(f"{pointer or '/'}: {message}" for pointer, message in problems[:MAX_PROBLEMS_SHOWN]))
    return shown if len(problems) <= MAX_PROBLEMS_SHOWN else f"{shown}; and {len(problems) - MAX_PROBLEMS_SHOWN} more"


def join_pointer(pointer: str, name: str) -> str:
    """Returns the JSON pointer of the member `name` of the value at `pointer`."""
    return f"{pointer}/{escape_pointer(name)}"


def escape_pointer(name: str) -> str:
    """Returns a name as a part of a JSON pointer."""
    return name.replace("~", "~0").replace("/", "~1")


def unescape_pointer(part: str) -> str:
    """Returns the name that a part of a JSON pointer stands for."""
    return part.replace("~1", "/").replace("~0", "~")
