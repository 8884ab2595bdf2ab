"""Deprecated since 0.2: `becket.json_schema.files` has these names."""

from becket._deprecated import forward

__getattr__, __dir__ = forward(
    __name__,
    "becket.json_schema.files",
    {},
)
