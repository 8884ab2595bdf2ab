"""Derives a small valid input for a tool from its JSON Schema, for `becket check`."""

from __future__ import annotations

from typing import Any, Final

from becket._text import unescape_pointer
from becket.contract.json_narrowing import is_array, is_object
from becket.errors import BadSchema
from becket.json_schema.validator import compile_schema

__all__ = ["sample_input"]

DEEPEST: Final = 16  # levels of nested schemas, and of references
MAX_LENGTH: Final = 100  # items or characters
BY_TYPE: Final[dict[str, Any]] = {"boolean": False, "null": None, "integer": 0, "number": 0}


def sample_input(schema: Any) -> dict[str, Any] | None:
    """Returns an input that matches a schema, or None if none was found, for example because of a `pattern`.

    Values come from `examples`, `default`, `const` and `enum` if a schema has these."""
    value = sample({"type": "object", **schema} if is_object(schema) else schema, schema, 0)
    try:
        return value if is_object(value) and not compile_schema(schema).find_problems(value) else None
    except BadSchema:
        return None


def sample(schema: Any, root: Any, depth: int) -> Any:
    if not is_object(schema) or depth > DEEPEST:
        return None
    if is_array(examples := schema.get("examples")) and examples:
        return examples[0]
    for key in ("default", "const"):
        if key in schema:
            return schema[key]
    if is_array(values := schema.get("enum")) and values:
        return values[0]
    if isinstance(reference := schema.get("$ref"), str):
        return sample(resolve(reference, root), root, depth + 1)
    for key in ("anyOf", "oneOf", "allOf"):
        if is_array(choices := schema.get(key)) and choices:
            return sample({**schema, key: None, **(choices[0] if is_object(choices[0]) else {})}, root, depth + 1)
    kind = schema.get("type")
    kind = kind[0] if is_array(kind) and kind else kind
    if kind == "object" or "properties" in schema:
        return sample_object(schema, root, depth)
    if kind == "array":
        items = sample(schema.get("items", {}), root, depth + 1)
        return [items] * bounded(schema.get("minItems"))
    if kind in ("integer", "number"):
        return sample_number(schema)
    return BY_TYPE[kind] if kind in BY_TYPE else "x" * bounded(schema.get("minLength"), least=1)


def sample_object(schema: dict[str, Any], root: Any, depth: int) -> dict[str, Any]:
    properties: Any = schema.get("properties")
    required: Any = schema.get("required")
    if not is_object(properties) or not is_array(required):
        return {}
    return {name: sample(properties.get(name, {}), root, depth + 1) for name in required if isinstance(name, str)}


def sample_number(schema: dict[str, Any]) -> Any:
    least, above, most = (schema.get(key) for key in ("minimum", "exclusiveMinimum", "maximum"))
    if isinstance(least, int | float):
        return least
    if isinstance(above, int | float):
        return above + 1
    return most if isinstance(most, int | float) and most < 0 else 0


def resolve(reference: str, root: Any) -> Any:
    found = root
    for part in reference.removeprefix("#").split("/")[1:]:
        found = found.get(unescape_pointer(part)) if is_object(found) else None
    return found


def bounded(number: Any, least: int = 0) -> int:
    return min(max(number, least), MAX_LENGTH) if isinstance(number, int) else least
