"""Deprecated since 0.2: `becket.contract.argument_checks` has these names."""

from becket._deprecated import forward

__getattr__, __dir__ = forward(
    __name__,
    "becket.contract.argument_checks",
    {
        "check_count": "check_non_negative_int",
        "check_text": "check_str",
        "texts_of": "check_strs",
    },
)
