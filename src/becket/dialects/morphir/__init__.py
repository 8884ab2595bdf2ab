"""`morphir`: the stdio extensions of Morphir. JSON Lines without a version, errors that are texts, ids from 0 on.

A capability is a tool: its method bears its name, and its params are the input. The first request is `initialize`,
whose params are the configuration itself, the second `capabilities`; calls begin with the id 2. The end of its input
ends a program. A line that is no message is passed over. Morphir's own errors are these here: `NotFound` and
`MethodNotFound` are `NotDeclared`, `InvalidSource` is a problem of the file, `InitializationFailed` is
`HandshakeFailed`, `ExtensionError` is `RemoteError`, `Timeout` is `CallTimeout`, `IoError` is `StartFailed` or
`ConnectionLost`, `ProtocolError` is `ConnectionLost`, `SerializationError` is `Unencodable` or `BadReply`.
"""

from __future__ import annotations

from becket.dialects.morphir.link import MORPHIR
from becket.dialects.morphir.words import (
    CAPABILITIES,
    HEALTH_CHECK,
    INITIALIZE,
    Capability,
    Health,
    HealthStatus,
    MorphirPermissions,
    MorphirSettings,
)

__all__ = [
    "CAPABILITIES",
    "HEALTH_CHECK",
    "INITIALIZE",
    "MORPHIR",
    "Capability",
    "Health",
    "HealthStatus",
    "MorphirPermissions",
    "MorphirSettings",
]
