"""Encodes Python values as JSON and decodes them; values without a JSON form are refused."""

from __future__ import annotations

import math
import re
from typing import Any, cast, get_args, get_type_hints

import msgspec
from msgspec import Raw, Struct

from becket.errors import Unencodable

__all__ = ["decode_json", "decode_string", "encode_json"]

decode_string = msgspec.json.Decoder(str).decode
decode_json = msgspec.json.Decoder().decode


def write_other(value: Any) -> object:
    """Returns a pydantic model as JSON values; the hook of msgspec for unknown types."""
    if hasattr(value, "__pydantic_serializer__"):
        return value.model_dump(mode="json", by_alias=True)
    raise TypeError(f"Encoding objects of type {type(value).__name__} is unsupported")


NULL = b"null"
encode_any = msgspec.json.Encoder(enc_hook=write_other).encode


def encode_json(value: object) -> bytes:
    """Returns the compact JSON of `value`.

    Raises:
        Unencodable: it has no JSON form: an unknown type, NaN or an infinity, a lone surrogate, a circular reference.
    """
    try:
        text = encode_any(value)
        if type(value) in FINITE_TYPES:
            return text
        # msgspec encodes NaN and infinities as null, which would change the value silently.
        kind = type(value)
        if (kind in CHECKED_TYPES or not classify_type(kind)) and text.find(NULL) >= 0:
            check_finite(value)
    except (TypeError, ValueError, RecursionError, OverflowError) as error:
        raise Unencodable(f"this {type(value).__name__} cannot be encoded as JSON: {error}") from error
    return text


# Types whose values are always finite, and those that need a check.
FINITE_TYPES: set[object] = {str, int, bool, type(None)}
CHECKED_TYPES: set[object] = {dict, list, tuple, float}


def classify_type(kind: type[Any]) -> bool:
    """Classifies a type by its fields and returns whether its values need no second check."""
    try:
        is_harmless = issubclass(kind, Struct) and all(is_finite_type(hint) for hint in get_type_hints(kind).values())
    except (NameError, TypeError):  # an annotation that only a type checker can resolve
        is_harmless = False
    (FINITE_TYPES if is_harmless else CHECKED_TYPES).add(kind)
    return is_harmless


def is_finite_type(hint: Any) -> bool:
    arguments = get_args(hint)
    return all(is_finite_type(argument) for argument in arguments) if arguments else hint in FINITE_TYPES


def check_finite(value: object) -> None:
    """Raises ValueError if an encoded value contains NaN or an infinity."""
    try:
        # MessagePack keeps such a number as it is, after 0xcb: a search in C, and correct whenever it finds nothing.
        if re.search(NOT_FINITE, msgspec.msgpack.encode(value)) is None:
            return
    except (OverflowError, TypeError, ValueError):  # integers beyond 64 bits, for example, have no MessagePack form
        pass
    check_finite_recursive(msgspec.to_builtins(value, enc_hook=to_json_values))


def to_json_values(value: Any) -> object:
    return None if isinstance(value, Raw) else write_other(value)  # Raw is JSON already


NOT_FINITE = rb"\xcb[\x7f\xff][\xf0-\xff]"  # compiled when it is needed


def check_finite_recursive(value: object) -> None:
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{value} cannot be encoded as JSON")
    elif isinstance(value, dict):
        for member in cast("dict[str, object]", value).values():
            check_finite_recursive(member)
    elif isinstance(value, list | tuple):
        for element in cast("list[object]", value):
            check_finite_recursive(element)
