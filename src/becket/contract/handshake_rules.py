"""Deprecated since 0.2: `becket.contract.handshake_checks` has these names."""

from becket._deprecated import forward

__getattr__, __dir__ = forward(
    __name__,
    "becket.contract.handshake_checks",
    {
        "Search": "CapabilityChecker",
        "read_initialized": "decode_initialized",
    },
)
