"""JSON Schema: a bounded validator for schemas from outside, and the schema files of becket."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from becket._lazy import lazy_exports

if TYPE_CHECKING:
    from becket.json_schema.files import load_schema as load_schema, schema_names as schema_names
    from becket.json_schema.validator import Validator as Validator, compile_schema as compile_schema

__all__ = ["SchemaMode", "Validator", "compile_schema", "load_schema", "schema_names"]

EXPORTS = {
    "becket.json_schema.files": "load_schema schema_names",
    "becket.json_schema.validator": "Validator compile_schema",
}

__getattr__, __dir__ = lazy_exports(globals(), EXPORTS)


class SchemaMode(Enum):
    """What to do with a value that may not fit its schema."""

    OFF = "off"
    """Do not check."""
    WARN = "warn"
    """Report problems, and go on."""
    ENFORCE = "enforce"
    """Reject it."""
