"""Walks a tool input beside its schema: finds unknown members, turns 3.0 into 3 for integers.

msgspec ignores members that a class does not have. A model that calls a tool with an invented name must get an error,
so the input is compared with the schema of the signature. In JSON Schema 3.0 is an integer, and the host accepts it;
Python has two types, so it becomes an `int` where the schema has one. Imported when an input did not fit, or holds
classes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from becket._text import join_pointer, truncate
from becket.contract.json_narrowing import is_array, is_object
from becket.conversion.problems import MAX_PROBLEMS
from becket.errors import Problem

__all__ = ["coerce_integers", "find_unknown_members"]

Schema = dict[str, Any]


def find_unknown_members(value: object, schema: Schema, pointer: str) -> list[Problem]:
    """Returns the unknown members of a value, each with its JSON pointer below `pointer`, at most a page of them."""
    return list(islice(iter_unknown_members(value, schema, pointer), MAX_PROBLEMS))


def iter_unknown_members(value: object, schema: Schema, pointer: str) -> Iterator[Problem]:
    definitions = schema.get("$defs", {})
    waiting: list[tuple[Any, Schema, str]] = [(value, schema, pointer)]
    for part, described, at in waiting:  # it grows: values may be nested more deeply than functions may call
        known = select_schema(part, described, definitions)
        if is_object(part):
            members, others = known.get("properties", {}), known.get("additionalProperties")
            for name, member in part.items():
                inner = members.get(name, others)
                if inner is False:
                    yield truncate(join_pointer(at, name)), "is unknown"
                elif is_object(inner) and is_container(member):
                    waiting.append((member, inner, join_pointer(at, name)))
        else:
            first, rest = known.get("prefixItems", ()), known.get("items")
            for index, element in enumerate(part):
                inner = first[index] if index < len(first) else rest
                if is_object(inner) and is_container(element):
                    waiting.append((element, inner, join_pointer(at, str(index))))


def is_container(value: object) -> bool:
    return is_object(value) or is_array(value)


def select_schema(value: Any, schema: Schema, definitions: Schema) -> Schema:
    """Returns the schema of a value itself, after references and unions; an empty one if it is unknown."""
    while True:
        if "$ref" in schema:
            schema = resolve_reference(schema, definitions)
        elif "discriminator" in schema and is_object(value):
            rule = schema["discriminator"]
            tag = value.get(rule["propertyName"])
            reference = rule["mapping"].get(tag) if isinstance(tag, str | int | float) else None  # 1.0 is found as 1
            schema = {} if reference is None else {"$ref": reference}
        elif "anyOf" in schema:
            wanted = "object" if is_object(value) else "array"
            fitting = [part for part in schema["anyOf"] if can_have_type(wanted, part, definitions)]
            schema = fitting[0] if len(fitting) == 1 else {}  # among several classes cattrs has checked by itself
        else:
            return schema


def can_have_type(wanted: str, schema: Schema, definitions: Schema) -> bool:
    if "$ref" in schema:
        schema = resolve_reference(schema, definitions)
    return schema.get("type", wanted) == wanted and "enum" not in schema


def resolve_reference(schema: Schema, definitions: Schema) -> Schema:
    found: Schema = definitions.get(schema["$ref"].rpartition("/")[2], {})  # an author may add references elsewhere
    return found


# -- whole numbers


def coerce_integers(value: object, schema: Schema, definitions: Schema) -> Any:
    """Returns a value in which numbers without a fraction are integers wherever the schema has one."""
    root = [value]
    waiting: list[tuple[Any, Any, list[Schema]]] = [(root, 0, flatten_alternatives([schema], definitions))]
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


def flatten_alternatives(schemas: Iterable[Schema], definitions: Schema) -> list[Schema]:
    """Returns the alternatives of a value, each once, after references and unions: else they would multiply at each
    level."""
    found: dict[int, Schema] = {}
    waiting = list(schemas)
    for schema in waiting:
        if "$ref" in schema:
            waiting.append(resolve_reference(schema, definitions))
        elif "anyOf" in schema:
            waiting += schema["anyOf"]
        else:
            found[id(schema)] = schema
    return list(found.values())


def member_schemas(known: list[Schema], name: str) -> Iterator[Schema]:
    for schema in known:
        inner = schema.get("properties", {}).get(name, schema.get("additionalProperties"))
        if is_object(inner):
            yield inner


def element_schemas(known: list[Schema], index: int) -> Iterator[Schema]:
    for schema in known:
        first = schema.get("prefixItems", ())
        inner = first[index] if index < len(first) else schema.get("items")
        if is_object(inner):
            yield inner


def accepts_integer(number: float, schema: Schema) -> bool:
    choices = schema.get("enum", ())
    return schema.get("type") == "integer" or any(choice.__class__ is int and choice == number for choice in choices)
