"""Refuses JSON in which an object has one member twice: msgspec keeps the last value and does not say so.

Pairs are counted, not looked at: each has a colon outside strings, and encoding the decoded value again leaves out the
pairs that were overwritten. Only where the counts differ is the text read pair by pair, by the standard library.
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

LARGE = 65_536  # bytes that are not copied for a look: the new memory would cost more than the look itself

find_colon = re.compile(COLON).search
encode = msgspec.json.Encoder().encode
decode_json = msgspec.json.Decoder().decode


def refusing_duplicates(annotation: Any, decode: Callable[[Raw | bytes], Any]) -> Callable[[Raw | bytes], Any]:
    """Returns a decoder for values of a type that refuses what `check_duplicates` refuses.

    It raises InvalidParams for that, and else what `decode` raises."""
    required = count_required(annotation)

    def decode_once(raw: Raw | bytes) -> Any:
        value = decode(raw)
        if len(raw) > LARGE and not has_two_colons(raw):
            return value
        text = bytes(raw)
        colons = text.count(COLON)
        if colons > 1 and colons != required:
            check_duplicates(text, decode_json(text))
        return value

    return decode_once


def has_two_colons(raw: Raw | bytes) -> bool:
    """Looks for a second member without a copy of the text."""
    first = find_colon(raw)
    return first is not None and find_colon(raw, first.end()) is not None


def count_required(annotation: Any) -> int:
    """Returns how many members each object of a type has at least: with as many colons it has no other one, and no
    room for a second value of any. Zero where the type does not tell at a glance."""
    if not isinstance(annotation, type) or not issubclass(annotation, Struct):
        return 0
    config = annotation.__struct_config__
    if config.array_like or config.tag is not None:
        return 0
    optional = [default for default in annotation.__struct_defaults__ if default is not msgspec.NODEFAULT]
    return len(annotation.__struct_fields__) - len(optional)


def check_duplicates(text: bytes, value: Any) -> None:
    """Does nothing if no object in a JSON text, at whatever depth, has one member twice. `value` is the decoded text.

    Raises:
        InvalidParams: one has; the pointer of the first that was found.
    """
    colons = text.count(COLON)
    if value.__class__ is dict and len(value) == colons:
        return  # each colon belongs to a member of its own
    # A colon in a string counts on both sides, unless the other peer has escaped it.
    is_escaped = ESCAPED_COLON in text or ESCAPED_COLON_UPPER in text
    if not is_escaped and encode(value).count(COLON) == colons:
        return
    pointer = find_duplicate_member(text)
    if pointer is not None:
        raise InvalidParams([(pointer, "occurs twice")])


class Pairs(list[tuple[str, Any]]):
    """The members of an object, all of them, in their order."""


def find_duplicate_member(text: bytes) -> str | None:
    """Returns the JSON pointer of a member that occurs twice in its object, None if there is none."""
    from json import loads  # most programs never need it

    # Numbers stay text: what they are worth does not matter here.
    return search(loads(text, object_pairs_hook=Pairs, parse_int=str, parse_float=str), "")


def search(value: Any, pointer: str) -> str | None:
    from becket.conversion.problems import is_array

    parts: Any = value if isinstance(value, Pairs) else enumerate(value) if is_array(value) else ()
    seen: set[str] = set()
    for name, part in parts:
        place = join_pointer(pointer, str(name))
        if name in seen:
            return truncate(place)
        seen.add(name)
        found = search(part, place)
        if found is not None:
            return found
    return None
