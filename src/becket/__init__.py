"""Public names of becket, imported at first use.

Both ends are a `Peer`: each may call the other, at any time, many calls at once. Names are loaded at first use, so that
an extension pays at start only for what it uses.
"""

from __future__ import annotations

from becket._lazy import import_module, import_msgspec

import_msgspec()

TYPE_CHECKING = False  # an import from `typing` would stand above, where it is not loaded yet
if TYPE_CHECKING:
    from becket.dialects import DIALECTS
    from becket.errors import (
        BadReply,
        BecketError,
        Busy,
        CallTimeout,
        ConnectionLost,
        DisconnectReason,
        InvalidParams,
        Meaning,
        PeerCrashed,
        RemoteError,
        RpcError,
        StartFailed,
        StreamOverrun,
    )
    from becket.extension.server import ExtensionServer
    from becket.limits import Limits
    from becket.methods.registry import Registry
    from becket.peer.context import Context
    from becket.peer.outbound import BatchCall, BatchNotify
    from becket.peer.peer import Peer
    from becket.peer.streams import Gap, Overflow
    from becket.peer.transport.server import serve_tcp, serve_unix

__version__ = "0.1.0"

__all__ = [
    "DIALECTS",
    "BadReply",
    "BatchCall",
    "BatchNotify",
    "BecketError",
    "Busy",
    "CallTimeout",
    "ConnectionLost",
    "Context",
    "DisconnectReason",
    "ExtensionServer",
    "Gap",
    "InvalidParams",
    "Limits",
    "Meaning",
    "Overflow",
    "Peer",
    "PeerCrashed",
    "Registry",
    "RemoteError",
    "RpcError",
    "StartFailed",
    "StreamOverrun",
    "serve_tcp",
    "serve_unix",
]

EXPORTS = {
    "DIALECTS": "becket.dialects",
    "ExtensionServer": "becket.extension.server",
    "Limits": "becket.limits",
    "Registry": "becket.methods.registry",
    "Context": "becket.peer.context",
    "BatchCall": "becket.peer.outbound",
    "BatchNotify": "becket.peer.outbound",
    "Peer": "becket.peer.peer",
    "serve_tcp": "becket.peer.transport.server",
    "serve_unix": "becket.peer.transport.server",
    "Gap": "becket.peer.streams",
    "Overflow": "becket.peer.streams",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(EXPORTS.get(name, "becket.errors")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
