"""Stores for memory and configuration: the protocol, in memory, and SQLite."""
