"""Deprecated since 0.2: `becket.adapters.lsp` has these names."""

from becket._deprecated import forward

__getattr__, __dir__ = forward(
    __name__,
    "becket.adapters.lsp",
    {
        "Document": "TextDocument",
        "Feed": "Subscription",
        "Partial": "PartialResult",
    },
)
