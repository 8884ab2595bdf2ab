"""Rejects JSON objects with a duplicate member: msgspec silently keeps the last value.

Members are counted, not compared: each has a colon outside strings, and re-encoding the decoded value leaves out
overwritten members. Only if the counts differ, the standard library parses the text member by member.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Raw, Struct

from becket._text import join_pointer, truncate
from becket.errors import InvalidParams

__all__ = ["check_duplicates", "refusing_duplicates"]

COLON = b":"
ESCAPED_COLON, ESCAPED_COLON_UPPER = rb"\u003a", rb"\u003A"

LARGE = 65_536  # bytes; larger texts are not copied for the check, since allocating would cost more than the check

encode = msgspec.json.Encoder().encode
decode_json = msgspec.json.Decoder().decode


def refusing_duplicates(annotation: Any, decode: Callable[[Raw | bytes], Any]) -> Callable[[Raw | bytes], Any]:
    """Returns a decoder that also rejects duplicate members.

    It raises InvalidParams for those, and otherwise what `decode` raises."""
    required = count_required(annotation)
    enough = max(required, 1) + 1

    def decode_once(raw: Raw | bytes) -> Any:
        value = decode(raw)
        if len(raw) <= LARGE or has_two_colons(raw):
            text = bytes(raw)
            # Removes as many as matter: `count` compares byte by byte, and takes several times as long for few.
            colons = len(text) - len(text.replace(COLON, b"", enough))
            if colons > 1 and colons != required:
                check_duplicates(text, decode_json(text))
        return value

    return decode_once


def has_two_colons(raw: Raw | bytes) -> bool:
    """Returns whether there is a second member, without copying the text."""
    find = re.compile(COLON).search  # at first use: few programs have such texts
    first = find(raw)
    return first is not None and find(raw, first.end()) is not None


def count_required(annotation: Any) -> int:
    """Returns the minimum number of members of an object of this type: with that many colons it has no other
    members, and no duplicate. Zero where that is not known quickly."""
    if not isinstance(annotation, type) or not issubclass(annotation, Struct):
        return 0
    config = annotation.__struct_config__
    if config.array_like or config.tag is not None:
        return 0
    optional = [default for default in annotation.__struct_defaults__ if default is not msgspec.NODEFAULT]
    return len(annotation.__struct_fields__) - len(optional)


def check_duplicates(text: bytes, value: Any) -> None:
    """Checks that no object in a JSON text, at any depth, has a duplicate member. `value` is the decoded text.

    Raises:
        InvalidParams: one has; with the pointer of the first found.
    """
    colons = text.count(COLON)
    if value.__class__ is dict and len(value) == colons:
        return  # each colon belongs to a separate member
    # A colon in a string counts on both sides, unless the other peer has escaped it.
    is_escaped = ESCAPED_COLON in text or ESCAPED_COLON_UPPER in text
    if not is_escaped and encode(value).count(COLON) == colons:
        return
    pointer = find_duplicate_member(text)
    if pointer is not None:
        raise InvalidParams([(pointer, "occurs twice")])


class Pairs(list[tuple[str, Any]]):
    """All members of an object, in order."""


def find_duplicate_member(text: bytes) -> str | None:
    """Returns the JSON pointer of a duplicate member, or None."""
    from json import loads  # rarely needed

    # Numbers stay text: their values do not matter here.
    return search(loads(text, object_pairs_hook=Pairs, parse_int=str, parse_float=str), "")


def search(value: Any, pointer: str) -> str | None:
    from becket.conversion.problems import is_array

    parts: Any = value if isinstance(value, Pairs) else enumerate(value) if is_array(value) else ()
    seen: set[str] = set()
    for name, part in parts:
        location = join_pointer(pointer, str(name))
        if name in seen:
            return truncate(location)
        seen.add(name)
        found = search(part, location)
        if found is not None:
            return found
    return None
