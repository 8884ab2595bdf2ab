"""Strict conversion of values and the JSON Schema files; here stands only what other packages use."""

from becket.typed.schema_files import load_schema, schema_names

__all__ = ["load_schema", "schema_names"]
