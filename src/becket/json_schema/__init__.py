"""JSON Schema: a bounded validator for schemas from outside, and the schema files of becket."""
