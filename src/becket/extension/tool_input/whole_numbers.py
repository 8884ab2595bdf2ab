"""Walks a tool input beside its schema: finds unknown members, turns 3.0 into 3 for integers.

For JSON Schema 3.0 is an integer, and so it is for the host, which checks the input before it sends it; Python has two
types for the two. The input is walked through beside the schema that was made of the signature, and what an integer is
wanted for becomes one. Imported when an input did not fit as it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from becket.contract.json_narrowing import is_array, is_object
from becket.extension.tool_input.checks import resolve_reference

__all__ = ["coerce_integers"]

Json = dict[str, Any]


def coerce_integers(value: object, schema: Json, definitions: Json) -> Any:
    """Returns a value with an integer wherever the schema takes one and a number without a fraction stands."""
    root = [value]
    waiting: list[tuple[Any, Any, list[Json]]] = [(root, 0, flatten_alternatives([schema], definitions))]
    for holder, place, known in waiting:  # it grows: values may be nested more deeply than functions may call
        part = holder[place]
        if isinstance(part, float):
            if part.is_integer() and any(accepts_integer(part, one) for one in known):
                holder[place] = int(part)
        elif is_object(part):
            members = holder[place] = dict(part)  # a copy: the value is the caller's
            for name in members:
                waiting.append((members, name, flatten_alternatives(member_schemas(known, name), definitions)))
        elif is_array(part):
            elements = holder[place] = list(part)
            for index in range(len(elements)):
                waiting.append((elements, index, flatten_alternatives(element_schemas(known, index), definitions)))
    return root[0]


def flatten_alternatives(schemas: Iterable[Json], definitions: Json) -> list[Json]:
    """Returns what a value may be, each once, behind references and unions: else there were more at each level."""
    found: dict[int, Json] = {}
    waiting = list(schemas)
    for schema in waiting:
        if "$ref" in schema:
            waiting.append(resolve_reference(schema, definitions))
        elif "anyOf" in schema:
            waiting += schema["anyOf"]
        else:
            found[id(schema)] = schema
    return list(found.values())


def member_schemas(known: list[Json], name: str) -> Iterator[Json]:
    for schema in known:
        inner = schema.get("properties", {}).get(name, schema.get("additionalProperties"))
        if is_object(inner):
            yield inner


def element_schemas(known: list[Json], index: int) -> Iterator[Json]:
    for schema in known:
        first = schema.get("prefixItems", ())
        inner = first[index] if index < len(first) else schema.get("items")
        if is_object(inner):
            yield inner


def accepts_integer(number: float, schema: Json) -> bool:
    choices = schema.get("enum", ())
    return schema.get("type") == "integer" or any(choice.__class__ is int and choice == number for choice in choices)
