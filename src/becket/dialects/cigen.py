"""Deprecated since 0.2: `becket.adapters.cigen` has these names."""

from becket._deprecated import forward

__getattr__, __dir__ = forward(
    __name__,
    "becket.adapters.cigen",
    {
        "Diagnostic": "CigenDiagnostic",
        "Hello": "CigenHello",
        "OutputConfig": "CigenOutputConfig",
        "PROTOCOL": "CIGEN_PROTOCOL_VERSION",
        "Resource": "CigenResource",
    },
)
