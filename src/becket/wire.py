"""Deprecated since 0.2: `becket.framing` has these names."""

from becket._deprecated import forward

__getattr__, __dir__ = forward(
    __name__,
    "becket.framing",
    {
        "Skipped": "SkippedFrame",
        "Sniffing": "AutoDetect",
        "sniff": "detect_framing",
    },
)
