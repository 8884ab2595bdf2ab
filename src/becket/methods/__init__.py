"""Typed methods: descriptors, registries of handlers, and the errors that handlers respond with."""
