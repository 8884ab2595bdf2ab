"""JSON Schema: a bounded validator for schemas from outside, and the schema files of becket."""

from __future__ import annotations

from typing import TYPE_CHECKING

from becket._lazy import lazy_exports

if TYPE_CHECKING:
    from becket.json_schema.files import load_schema as load_schema, schema_names as schema_names
    from becket.json_schema.validator import (
        SchemaMode as SchemaMode,
        Validator as Validator,
        compile_schema as compile_schema,
    )

EXPORTS = {
    "becket.json_schema.files": "load_schema schema_names",
    "becket.json_schema.validator": "SchemaMode Validator compile_schema",
}

__getattr__, __dir__ = lazy_exports(globals(), EXPORTS)
