"""Calls between a running host and one extension, in both directions."""
