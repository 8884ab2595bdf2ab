"""Strict conversion between JSON and Python types; nothing is coerced."""
