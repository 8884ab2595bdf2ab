"""What a type checker knows of the schema files. Checked by `make types`, never run."""

from typing import Any, assert_type

from becket.json_schema.files import load_schema, schema_names

assert_type(load_schema("envelope"), dict[str, Any])
assert_type(schema_names(), list[str])
