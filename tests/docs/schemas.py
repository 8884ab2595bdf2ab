"""Validates JSON values against the schema files, as a program in any language would."""

from __future__ import annotations

from functools import cache
from typing import Any

from jsonschema import Draft202012Validator
from referencing import Registry, Resource
from tests.contract.shapes import NOTIFIED, REQUESTS

from becket.json_schema.files import load_schema, schema_names

__all__ = ["check_message", "check_value"]


def check_message(message: dict[str, Any], method: str) -> None:
    """Raises ValidationError for a message that breaks the schema of the envelope, or of its method's params or result.

    For a response, `method` is that of its request."""
    check_value(message, "envelope")
    if "error" in message:
        return
    shape = REQUESTS[method] if "id" in message else NOTIFIED[method]
    if "method" not in message:
        if shape.result:
            check_value(message["result"], shape.schema, shape.result)
    elif shape.params:
        check_value(message["params"], shape.schema, shape.params)


def check_value(value: object, schema: str, definition: str | None = None) -> None:
    """Raises ValidationError for a value that breaks a schema, or one definition of it."""
    pointer = "" if definition is None else f"#/$defs/{definition}"
    part = {"$ref": f"{load_schema(schema)['$id']}{pointer}"}
    Draft202012Validator(part, registry=registry()).validate(value)


@cache
def registry() -> Registry[Any]:
    """Returns all schemas by their ids: they refer to each other."""
    schemas = (load_schema(name) for name in schema_names())
    return Registry().with_resources((schema["$id"], Resource.from_contents(schema)) for schema in schemas)
