"""Deprecated since 0.2: the modules in here forward to their new places."""
