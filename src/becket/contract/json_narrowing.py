"""Narrows untyped JSON: type guards, and members that must be present."""

from __future__ import annotations

from typing import Any, TypeGuard

import msgspec
from msgspec import Raw, ValidationError

__all__ = [
    "decode_object",
    "is_array",
    "is_object",
    "require_array",
    "require_object",
    "require_text",
]


decode_json = msgspec.json.Decoder().decode


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    """Returns whether the value is a JSON object."""
    return isinstance(value, dict)


def is_array(value: object) -> TypeGuard[list[Any]]:
    """Returns whether the value is a JSON array."""
    return isinstance(value, list)


def decode_object(raw: Raw, what: str) -> dict[str, Any]:
    """Decodes a JSON object.

    Raises:
        msgspec.ValidationError: it is not an object. The text names it by `what`.
    """
    try:
        value: Any = decode_json(raw)
    except (UnicodeDecodeError, RecursionError) as error:
        raise ValidationError(f"{what} cannot be read: {error}") from error
    return require_object(value, f"{what} must be a JSON object")


def require_object(value: object, otherwise: str) -> dict[str, Any]:
    """Returns the value if it is an object, else raises ValidationError with the text `otherwise`."""
    if not is_object(value):
        raise ValidationError(otherwise)
    return value


def require_array(value: object, otherwise: str) -> list[Any]:
    """Returns the value if it is an array, else raises ValidationError with the text `otherwise`."""
    if not is_array(value):
        raise ValidationError(otherwise)
    return value


def require_text(members: dict[str, Any], name: str, otherwise: str) -> str:
    """Returns a member if it is a string, else raises ValidationError with the text `otherwise`."""
    value = members.get(name)
    if not isinstance(value, str):
        raise ValidationError(otherwise)
    return value
