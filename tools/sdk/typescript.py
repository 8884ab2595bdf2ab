"""Writes the contract as TypeScript: `sdk/typescript/src/contract.ts`."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from typing import Final, assert_never

from tools.sdk.model import (
    Alias,
    ArrayOf,
    Choice,
    ContractMethod,
    Enumeration,
    Field,
    JsonObject,
    JsonValue,
    MapOf,
    Model,
    Named,
    Record,
    Scalar,
    TaggedUnion,
    TypeDefinition,
    TypeUse,
)

__all__ = ["emit"]

WIDTH: Final = 120
INDENT: Final = "  "
LEFT_OUT: Final = frozenset({"audit-record"})  # families that no extension sends or receives
HEAD: Final = """\
/** The messages of the contract. Generated from schemas/ by `python -m tools.sdk`: do not edit. */
/* eslint @typescript-eslint/consistent-indexed-object-style: "off" -- the name Record is taken */

/** Any JSON value. */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject;

/** Any JSON object. */
export interface JsonObject {
  readonly [member: string]: Json;
}
"""
SCALARS: Final = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}


def emit(model: Model) -> str:
    """Returns the whole file."""
    codes = {name.upper(): number for name, number in model.errors.items()}
    parts = [
        HEAD,
        f"/** The version of the contract. */\nexport const PROTOCOL_VERSION = {model.protocol_version};\n",
        "/** Features of a link, each used only if both peers have announced it. */\n"
        + "\n".join(["export const FEATURES = [", *(f'  "{name}",' for name in model.features), "] as const;", ""]),
        "// Each as a constant of its own, so that a bundler writes the number.\n"
        + "".join(f"export const {name} = {number};\n" for name, number in codes.items()),
        "/** The codes of errors. */\n"
        + "\n".join(["export const Code = {", *(f"  {name}," for name in codes), "} as const;", ""]),
        *(emit_definition(each) for each in model.types if each.family not in LEFT_OUT),
        emit_requests("HostMethods", "Requests to the host", model, "to-host"),
        emit_requests("ExtensionMethods", "Requests to the extension", model, "to-extension"),
        emit_notifications("HostNotifications", "Notifications to the host", model, "to-host"),
        emit_notifications("ExtensionNotifications", "Notifications to the extension", model, "to-extension"),
    ]
    return "\n".join(parts)


# -- types


def emit_definition(definition: TypeDefinition) -> str:
    doc = "".join(f"{line}\n" for line in emit_doc(definition.doc))
    name = definition.name
    match definition:
        case Record():
            return doc + emit_record(definition)
        case Enumeration():
            return doc + emit_union(name, (f'"{value}"' for value in definition.values))
        case TaggedUnion():
            return doc + emit_union(name, definition.cases.values())
        case Choice():
            return doc + emit_union(name, map(name_use, definition.choices))
        case Alias():
            return f"{doc}export type {name} = string;\n"
        case _:
            assert_never(definition)


def emit_record(record: Record) -> str:
    lines: list[str] = []
    if record.tag is not None:
        lines.append(f'{record.tag[0]}: "{record.tag[1]}";')
    for field in record.fields:
        lines += [*emit_doc(field.doc, len(INDENT)), emit_field(field)]
    if record.open:
        lines.append("[member: string]: unknown;")
    if not lines:
        return f"export type {record.name} = object;\n"
    return "\n".join([f"export interface {record.name} {{", *(INDENT + line for line in lines), "}", ""])


def emit_field(field: Field) -> str:
    use = name_use(field.type) + (" | null" if field.nullable else "")
    return f"{field.name}{'' if field.required else '?'}: {use};"


def emit_union(name: str, choices: Iterable[str]) -> str:
    parts = [*choices]
    line = f"export type {name} = {' | '.join(parts)};\n"
    return (
        line if len(line) <= WIDTH else "\n".join([f"export type {name} =", *(f"  | {part}" for part in parts)]) + ";\n"
    )


def name_use(use: TypeUse) -> str:
    match use:
        case Scalar():
            return SCALARS[use.kind]
        case JsonValue():
            return "Json"
        case JsonObject():
            return "JsonObject"
        case ArrayOf():
            items = name_use(use.items)
            return f"readonly ({items})[]" if " " in items else f"readonly {items}[]"
        case MapOf():
            return f"{{ readonly [member: string]: {name_use(use.values)} }}"
        case Named():
            return use.name
        case _:
            assert_never(use)


# -- methods


def emit_requests(name: str, title: str, model: Model, direction: str) -> str:
    def write(method: ContractMethod) -> str:
        params = "undefined" if method.params is None else name_use(method.params)
        result = "Json" if method.result is None else name_use(method.result)
        return f'"{method.name}": {{ params: {params}; result: {result} }};'

    chosen = [each for each in model.methods if each.kind == "request" and each.direction == direction]
    return emit_map(name, f"{title}: params and result of each.", ((each.doc, write(each)) for each in chosen))


def emit_notifications(name: str, title: str, model: Model, direction: str) -> str:
    def write(method: ContractMethod) -> str:
        params = "undefined" if method.params is None else name_use(method.params)
        return f'"{method.name}": {params};'

    chosen = [each for each in model.methods if each.kind == "notification" and each.direction == direction]
    return emit_map(name, f"{title}: params of each.", ((each.doc, write(each)) for each in chosen))


def emit_map(name: str, doc: str, members: Iterable[tuple[str, str]]) -> str:
    lines = [f"/** {doc} */", f"export interface {name} {{"]
    for received, line in members:
        lines += [INDENT + each for each in (*emit_doc(received, len(INDENT)), line)]
    return "\n".join([*lines, "}", ""])


# -- comments


def emit_doc(doc: str, indent: int = 0) -> Iterator[str]:
    """Yields the lines of a comment, none without a text."""
    text = " ".join(doc.replace("*/", "* /").split())
    if not text:
        return
    if len(text) + indent + len("/**  */") <= WIDTH:
        yield f"/** {text} */"
        return
    yield "/**"
    yield from (f" * {line}" for line in textwrap.wrap(text, WIDTH - indent - len(" * ")))
    yield " */"
