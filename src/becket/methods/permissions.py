"""Deprecated since 0.2: `becket.permissions` has these names."""

from becket._deprecated import forward

__getattr__, __dir__ = forward(
    __name__,
    "becket.permissions",
    {
        "LONGEST_PART": "MAX_NAME_LENGTH",
        "MOST_QUESTIONS": "MAX_PROMPTS",
        "RESERVED": "RESERVED_PERMISSIONS",
        "question_text": "format_prompt",
    },
)
