"""Reads TOML and YAML files within bounds, with the position of each problem."""
