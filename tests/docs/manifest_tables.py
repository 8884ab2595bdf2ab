"""The tables of the page about manifests, made from the schema: every key, its kind, its default and its meaning."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

from becket.json_schema.files import load_schema

__all__ = ["PARTS", "TABLES", "kind_of", "render_table"]

TABLES = {
    "manifest": "manifest keys",
    "requires": "requires keys",
    "config_entry": "config keys",
    "environment": "environment keys",
    "hook": "hooks keys",
    "command_entry": "commands keys",
    "restart": "restart keys",
    "limits": "limits keys",
    "settings_category": "settings keys",
    "settings_field": "fields keys",
    "sidecar": "sidecar keys",
}
"""Which definition stands in which generated part."""


def render_table(definition: str) -> str:
    """Returns a row for each key of a table; those that must be there are bold."""
    schema = load_schema("manifest")
    table = schema["$defs"][definition]
    required = table.get("required", ())
    rows = []
    for name, part in table["properties"].items():
        whole = resolve(part, schema) | part
        key = f"**`{name}`**" if name in required else f"`{name}`"
        rows.append(f"| {key} | {kind_of(part, schema)} | {default_of(part)} | {whole.get('description', '')} |")
    return "\n".join(["| key | kind | default | meaning |", "|---|---|---|---|", *rows, ""])


def resolve(part: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """Returns what a part refers to, in this file or in another; the part itself where it refers to nothing."""
    if "$ref" not in part:
        return part
    file, _, pointer = part["$ref"].partition("#/$defs/")
    within = load_schema(file.removesuffix(".schema.json")) if file else schema
    found: dict[str, Any] = within["$defs"][pointer]
    return found


def kind_of(part: dict[str, Any], schema: dict[str, Any]) -> str:
    """Returns in few words what a value must be."""
    whole = resolve(part, schema) | part
    if "enum" in whole:
        return " or ".join(f"`{value}`" for value in whole["enum"])
    if "const" in whole:
        return f"`{json.dumps(whole['const'])}`"
    if whole.get("type") == "array":
        items = resolve(whole["items"], schema)
        return "list of tables" if items.get("type") == "object" else "list of strings"
    if whole.get("type") == "object":
        return f"table{values_of(whole.get('additionalProperties'), schema)}"
    types = whole.get("type", "any")
    return " or ".join(types) if isinstance(types, list) else str(types)


def values_of(members: object, schema: dict[str, Any]) -> str:
    """Returns of what a table with any keys consists; nothing for one whose keys are known."""
    if not isinstance(members, dict):
        return ""
    return {"object": " of tables", "string": " of strings"}.get(
        str(resolve(members, schema).get("type")), " of values"
    )


def default_of(part: dict[str, Any]) -> str:
    return f"`{json.dumps(part['default'])}`" if "default" in part else ""


PARTS: dict[str, Callable[[], str]] = {part: partial(render_table, name) for name, part in TABLES.items()}
