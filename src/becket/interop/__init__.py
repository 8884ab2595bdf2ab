"""Bridges to the programs of neighbouring protocols. Each imports what it needs; nothing here imports any of them."""
