"""Strict conversion of values, and the JSON Schema files. Import what you need from its modules."""
