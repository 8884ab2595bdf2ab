"""Looking into JSON of which nobody knows yet what it is: narrowing it, and taking out what must be there. Pure; the
texts of what is missing are the caller's.
"""

from __future__ import annotations

from typing import Any, Final, TypeGuard

import msgspec
from msgspec import Raw, ValidationError

__all__ = ["REFUSED", "as_array", "as_object", "cut", "is_array", "is_object", "read_object", "take_text"]

MOST_QUOTED: Final = 200  # characters of what the other side sent that a message repeats

REFUSED: Final = (ValidationError, UnicodeDecodeError, RecursionError)
"""What a direct decode raises for JSON that is not of its type, or holds text that is none."""

decode_json = msgspec.json.Decoder().decode


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    """Returns whether this was a JSON object."""
    return isinstance(value, dict)


def is_array(value: object) -> TypeGuard[list[Any]]:
    """Returns whether this was a JSON array."""
    return isinstance(value, list)


def read_object(raw: Raw, what: str) -> dict[str, Any]:
    """Returns the members of a JSON object.

    Raises:
        msgspec.ValidationError: it is none. The text names it by `what`.
    """
    try:
        value: Any = decode_json(raw)
    except (UnicodeDecodeError, RecursionError) as error:
        raise ValidationError(f"{what} cannot be read: {error}") from error
    return as_object(value, f"{what} must be a JSON object")


def as_object(value: object, otherwise: str) -> dict[str, Any]:
    """Returns the value, which must be an object; raises with the text `otherwise` where it is none."""
    if not is_object(value):
        raise ValidationError(otherwise)
    return value


def as_array(value: object, otherwise: str) -> list[Any]:
    """Returns the value, which must be an array; raises with the text `otherwise` where it is none."""
    if not is_array(value):
        raise ValidationError(otherwise)
    return value


def cut(text: str) -> str:
    """Returns what a message may quote of a text from outside, which may be as long as a frame."""
    return text if len(text) <= MOST_QUOTED else f"{text[:MOST_QUOTED]}..."


def take_text(members: dict[str, Any], name: str, otherwise: str) -> str:
    """Returns a member, which must be a string; raises with the text `otherwise` where it is none."""
    value = members.get(name)
    if not isinstance(value, str):
        raise ValidationError(otherwise)
    return value
