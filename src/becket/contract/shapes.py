"""Deprecated since 0.2: `becket.contract.json_narrowing` has these names."""

from becket._deprecated import forward

__getattr__, __dir__ = forward(
    __name__,
    "becket.contract.json_narrowing",
    {
        "REFUSED": "becket.errors.JSON_ERRORS",
        "as_array": "require_array",
        "as_object": "require_object",
        "cut": "becket._text.truncate",
        "read_object": "decode_object",
        "take_text": "require_text",
    },
)
