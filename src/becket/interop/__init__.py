"""Bridges to the programs of neighbouring protocols. Each imports what it needs, and nothing here imports any of them."""
