"""pydantic models and dataclasses: conversion from and to JSON values, and their schemas.

pydantic is never imported here: a program that has a model has imported it. It builds and writes its own classes,
strictly (`"5"` is not an int) and by their aliases. Its errors are converted to problems with JSON pointers.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Literal

import msgspec

from becket._text import join_pointer, truncate
from becket.conversion.introspect import get_type_name
from becket.conversion.problems import is_array, is_object
from becket.errors import Problem

__all__ = ["ModelType", "find_model"]

MESSAGES = {"missing": "is missing", "extra_forbidden": "is unknown"}  # the texts used for all other classes


class ModelType:
    """A model, or a type expression that contains models."""

    def __init__(self, type: Any) -> None:
        self._refused: type[Exception] = sys.modules["pydantic"].ValidationError
        self._unwritten: type[Exception] = sys.modules["pydantic_core"].PydanticSerializationError
        self._adapter = with_reason(type, lambda: sys.modules["pydantic"].TypeAdapter(type))

    def read(self, value: Any) -> tuple[Any, list[Problem]]:
        """Returns the model for a JSON value, or the problems of the value."""
        try:
            return self._adapter.validate_json(msgspec.json.encode(value), strict=True), []
        except self._refused as error:
            return None, list(dict.fromkeys(problems_of(error, value)))

    def write(self, value: Any) -> tuple[Any, str]:
        """Returns the JSON values for a value of this type, or why it is not of this type."""
        try:
            return self._adapter.dump_python(value, mode="json", by_alias=True, warnings="error"), ""
        except self._unwritten as error:
            return self._adapter.dump_python(value, mode="json", by_alias=True, warnings=False), str(error)

    def schema(self, mode: Literal["validation", "serialization"]) -> dict[str, Any]:
        """Returns the JSON Schema for reading or for writing, with all other models in its `$defs`."""
        adapter = self._adapter
        found: dict[str, Any] = with_reason(self, lambda: adapter.json_schema(mode=mode, by_alias=True))
        return found


@cache
def find_model(type: Any) -> ModelType:
    """Returns the cached `ModelType` of a type.

    Raises:
        TypeError: pydantic cannot build it.
    """
    return ModelType(type)


def with_reason(type: Any, build: Callable[[], Any]) -> Any:
    pydantic = sys.modules["pydantic"]
    try:
        return build()
    except (pydantic.errors.PydanticUserError, pydantic.errors.PydanticUndefinedAnnotation) as error:
        raise TypeError(f"pydantic refuses `{get_type_name(type)}`: {error.message.partition(chr(10))[0]}") from error


def problems_of(error: Any, value: Any) -> Iterator[Problem]:
    for each in error.errors(include_url=False, include_context=False, include_input=False):
        kind, message = each["type"], each["msg"]
        is_missing = kind == "missing"
        yield (
            pointer_of(each["loc"], value, is_missing=is_missing),
            MESSAGES.get(kind, truncate(message[:1].lower() + message[1:])),
        )


def pointer_of(path: tuple[int | str, ...], value: Any, *, is_missing: bool) -> str:
    """Returns the pointer of a problem. Besides members and indexes, a path of pydantic names union members and
    validators; what is not in the value is left out."""
    pointer = ""
    for at, part in enumerate(path):
        if is_object(value) and part in value:
            value = value[str(part)]
        elif is_array(value) and isinstance(part, int) and part < len(value):
            value = value[part]
        elif not (is_missing and at == len(path) - 1):
            continue
        pointer = join_pointer(pointer, str(part))
    return truncate(pointer)
