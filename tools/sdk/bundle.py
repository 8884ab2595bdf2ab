"""Builds `schemas/becket.schema.json`: every type of the contract in one file, in forms that code generators accept.

Shapes come from the Python types. Descriptions, examples, bounds and patterns come from the schema file of the type's
family. A family's file also accepts the forms that a host tolerates; the bundle has the one form that becket writes,
so null only where a member is written without a value.
"""

from __future__ import annotations

import json
from enum import Enum
from pathlib import Path
from types import UnionType
from typing import Any, Final, cast

from msgspec import NODEFAULT, inspect
from tools.sdk.types import ENTRIES, FORMS, MEMBERS, Entry, Json, reference

from becket.json_schema.files import load_schema
from becket.json_schema.validator import compile_schema

__all__ = ["FILE", "build_bundle", "describe", "pick", "render_bundle"]

FILE: Final = Path(__file__).parents[2] / "schemas" / "becket.schema.json"
BOUNDS: Final = ("minLength", "maxLength", "pattern", "minItems", "maxItems", "minimum", "maximum")
LARGEST_INTEGER: Final = 2**53 - 1  # generators compare with floating-point numbers, which are exact up to here
NAMED: Final = {(entry.family, entry.definition): entry for entry in ENTRIES}


def build_bundle() -> Json:
    """Returns the bundle. Its root names every definition, since some generators omit what the root does not reach."""
    bundle: Json = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://becket.dev/schemas/becket.schema.json",
        "title": "Contract",
        "description": (
            "All types of the contract, for code generators. Made by `make sdk`. The root only lists the definitions: "
            "validate a message against one of them."
        ),
        "type": "object",
        "properties": {entry.name: reference(entry.name) for entry in ENTRIES},
        "$defs": {entry.name: build_definition(entry) for entry in ENTRIES},
    }
    for definition in bundle["$defs"].values():
        move_texts_of_untyped_members(definition)
    drop_tolerated_examples(bundle)
    return bundle


def render_bundle() -> str:
    """Returns the text of the file."""
    return json.dumps(build_bundle(), indent=2) + "\n"


def build_definition(entry: Entry) -> Json:
    source = describe(entry)
    shape = FORMS.get(entry.name)
    if entry.type is not None:
        shape = build_type(entry, source)
    elif shape is None:
        shape = clean(source, entry.family)
    return {**pick(source, "description"), **shape, **pick(source, "examples")}


def describe(entry: Entry) -> Json:
    """Returns the definition of a type in the family's file."""
    if entry.family == "link":
        return FORMS[entry.name]
    source = load_schema(entry.family)["$defs"]
    for key in entry.definition.split("/"):
        source = source[key]
    title = source.get("title", "")
    lead = f"{title}. " if title.startswith(("Params of", "Result of")) else ""
    text = source.get("description") or (entry.type.__doc__ or "").partition("\n")[0]
    return {**source, "description": lead + text}


# -- from Python types


def build_type(entry: Entry, source: Json) -> Json:
    if isinstance(entry.type, UnionType):
        return {"oneOf": [reference(case.__name__) for case in entry.type.__args__]}
    if issubclass(entry.type, Enum):
        return {"type": "string", "enum": [member.value for member in entry.type]}
    return build_struct(entry, source)


def build_struct(entry: Entry, source: Json) -> Json:
    info = cast("inspect.StructType", inspect.type_info(entry.type))
    properties: Json = {}
    required = set(source.get("required", ()))
    if info.tag_field is not None:
        properties[info.tag_field] = {"type": "string", "const": info.tag}
        required.add(info.tag_field)
    for field in info.fields:
        name = field.encode_name
        member: Json | bool | None = source.get("properties", {}).get(name)
        part = member if isinstance(member, dict) else {}  # `true`: any value
        if (form := MEMBERS.get((entry.name, name))) is None:
            is_omitted = entry.type.__struct_config__.omit_defaults and not field.required
            type = without_null(field.type) if is_omitted else field.type
            form = build_member(type, part, entry.family)
        properties[name] = {**pick(part, "description"), **form, **pick(part, "maxItems")}
        if field.required:
            required.add(name)
        if name not in required:
            properties[name] |= build_default(field)
    named = [name for name in properties if name in required]
    shape: Json = {"type": "object", **({"required": named} if named else {}), "properties": properties}
    if info.forbid_unknown_fields and source.get("additionalProperties") is False:
        shape["additionalProperties"] = False
    return shape


def build_default(field: inspect.Field) -> Json:
    """Returns the default of a member, if it is a value and not null."""
    value: Any = field.default
    if field.default_factory is not NODEFAULT:
        value = field.default_factory()
    if value is NODEFAULT or value is None or value == "":
        return {}
    if value == ():
        return {"default": []}
    value = value.value if isinstance(value, Enum) else value
    return {"default": value} if isinstance(value, bool | int | str | list | dict) else {}


def build_member(type: inspect.Type, part: Json, family: str) -> Json:
    """Returns the shape of a member: its Python type, with the bounds and the string types of the family's file."""
    for choice in part.get("anyOf") or part.get("oneOf") or ():
        part = choice if "$ref" in choice else part
    named = find_named(part, family)
    if named is not None and (named.type is None or isinstance(named.type, UnionType)):
        return reference(named.name)
    match type:
        case inspect.UnionType():
            shape = build_member(without_null(type), part, family)
            return {**shape, "type": [shape["type"], "null"]}
        case inspect.StructType() | inspect.EnumType():
            return reference(type.cls.__name__)
        case inspect.VarTupleType():
            items = build_member(type.item_type, part.get("items", {}), family)
            return {"type": "array", "items": items, **pick(part, "minItems", "maxItems")}
        case inspect.DictType():
            values = build_member(type.value_type, {}, family)
            return {"type": "object", **({"additionalProperties": values} if values else {})}
        case inspect.StrType():
            bounds = {"minLength": type.min_length, "maxLength": type.max_length, "pattern": type.pattern}
            return {"type": "string", **present(bounds), **pick(part, "minLength", "maxLength", "pattern")}
        case inspect.IntType():
            bounds = {"minimum": type.ge, "maximum": None if type.le is None else min(type.le, LARGEST_INTEGER)}
            return {"type": "integer", **present(bounds)}
        case inspect.FloatType():
            return {"type": "number"}
        case inspect.BoolType():
            return {"type": "boolean"}
        case inspect.AnyType():
            return {}
        case _:
            raise TypeError(f"{type}: add how this type is written to build_member")


def without_null(type: inspect.Type) -> inspect.Type:
    """Returns the type that is not null of an optional one: becket omits such a member where it is null."""
    if not isinstance(type, inspect.UnionType):
        return type
    (one,) = (case for case in type.types if not isinstance(case, inspect.NoneType))
    return one


# -- from a family's file


def clean(source: Json, family: str) -> Json:
    """Returns the shape of a definition that has no Python type, without what generators misread: titles, `false`
    schemas, and untyped constants."""
    if named := find_named(source, family):
        return reference(named.name)
    if "$ref" in source:
        return clean(follow(source["$ref"], family), family)
    shape = pick(source, "description", "type", "required", *BOUNDS)
    if isinstance(source.get("type"), list):
        del shape["type"]  # params by position or by name: few languages have a type for both
    if "const" in source or "enum" in source:
        shape |= {"type": "string", **pick(source, "const", "enum")}
    members = source.get("properties", {})
    if members:
        shape["properties"] = {
            name: {} if member is True else clean(member, family)
            for name, member in members.items()
            if member is not False
        }
    return shape


def find_named(source: Json, family: str) -> Entry | None:
    """Returns the entry that a reference leads to."""
    if "$ref" not in source:
        return None
    return NAMED.get(split_reference(source["$ref"], family))


def follow(address: str, family: str) -> Json:
    family, definition = split_reference(address, family)
    found: Json = load_schema(family)["$defs"][definition]
    return found


def split_reference(address: str, family: str) -> tuple[str, str]:
    file, _, definition = address.partition("#/$defs/")
    return file.removesuffix(".schema.json") or family, definition


def move_texts_of_untyped_members(definition: Json) -> None:
    """Moves the description of members that may be anything to that of the whole: json-schema-to-typescript takes `{}`
    for `unknown`, and a schema with nothing but a description for an object."""
    for name, member in definition.get("properties", {}).items():
        if member.keys() == {"description"}:
            definition["description"] += f" `{name}`: {member.pop('description')}"


def drop_tolerated_examples(bundle: Json) -> None:
    """Drops the examples of forms that a host tolerates and the bundle does not have."""
    validator = compile_schema(bundle, trusted=True)  # its root has a member for each definition
    for name, definition in bundle["$defs"].items():
        examples = [it for it in definition.pop("examples", ()) if not validator.find_problems({name: it})]
        if examples:
            definition["examples"] = examples


def pick(source: Any, *keys: str) -> Json:
    """Returns these members of a schema; `true` and absent ones have none."""
    return {key: source[key] for key in keys if key in source} if isinstance(source, dict) else {}


def present(bounds: dict[str, Any]) -> Json:
    return {key: value for key, value in bounds.items() if value is not None}
