"""Adapter for Morphir stdio extensions: the dialect, its messages and its settings.

A capability is a tool: its method has the same name, and its params are the input. The first request is `initialize`,
whose params are the configuration, the second is `capabilities`; calls begin with the id 2. A program exits at the end
of stdin. A line that is not a message is skipped. Morphir's errors map to: `NotFound` and
`MethodNotFound` are `NotDeclared`, `InvalidSource` is a problem of the file, `InitializationFailed` is
`HandshakeFailed`, `ExtensionError` is `RemoteError`, `Timeout` is `CallTimeout`, `IoError` is `StartFailed` or
`ConnectionLost`, `ProtocolError` is `ConnectionLost`, `SerializationError` is `Unencodable` or `BadReply`.
"""

from __future__ import annotations

from becket.adapters.morphir.dialect import MORPHIR
from becket.adapters.morphir.messages import (
    CAPABILITIES,
    HEALTH_CHECK,
    INITIALIZE,
    MorphirCapability,
    MorphirHealth,
    MorphirHealthStatus,
    MorphirPermissions,
    MorphirSettings,
)

__all__ = [
    "CAPABILITIES",
    "HEALTH_CHECK",
    "INITIALIZE",
    "MORPHIR",
    "MorphirCapability",
    "MorphirHealth",
    "MorphirHealthStatus",
    "MorphirPermissions",
    "MorphirSettings",
]
