"""Checks of the documentation: programs run, tables follow the code, bytes match the wire."""
