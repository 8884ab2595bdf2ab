"""Public names of becket, imported at first use.

Both ends are a `Peer`: each may call the other, at any time, many calls at once. Names are loaded at first use, so that
an extension pays at start only for what it uses.
"""

from __future__ import annotations

from becket._lazy import lazy_exports
from becket._msgspec_import import import_msgspec

import_msgspec()

TYPE_CHECKING = False  # an import from `typing` would stand above, where it is not loaded yet
if TYPE_CHECKING:
    from becket.dialects import DIALECTS as DIALECTS
    from becket.errors import (
        BadReply as BadReply,
        BecketError as BecketError,
        Busy as Busy,
        CallTimeout as CallTimeout,
        ConnectionLost as ConnectionLost,
        DisconnectReason as DisconnectReason,
        InvalidParams as InvalidParams,
        Meaning as Meaning,
        PeerCrashed as PeerCrashed,
        RemoteError as RemoteError,
        RpcError as RpcError,
        StartFailed as StartFailed,
        StreamOverrun as StreamOverrun,
    )
    from becket.extension.server import ExtensionServer as ExtensionServer
    from becket.limits import Limits as Limits
    from becket.methods.registry import Registry as Registry
    from becket.peer.context import Context as Context
    from becket.peer.outbound import BatchCall as BatchCall, BatchNotify as BatchNotify
    from becket.peer.peer import Peer as Peer
    from becket.peer.streams import Gap as Gap, Overflow as Overflow
    from becket.peer.transport.server import serve_tcp as serve_tcp, serve_unix as serve_unix

__version__ = "0.1.0"

EXPORTS = {
    "becket.dialects": "DIALECTS",
    "becket.errors": """
        BadReply BecketError Busy CallTimeout ConnectionLost DisconnectReason InvalidParams Meaning PeerCrashed
        RemoteError RpcError StartFailed StreamOverrun
    """,
    "becket.extension.server": "ExtensionServer",
    "becket.limits": "Limits",
    "becket.methods.registry": "Registry",
    "becket.peer.context": "Context",
    "becket.peer.outbound": "BatchCall BatchNotify",
    "becket.peer.peer": "Peer",
    "becket.peer.streams": "Gap Overflow",
    "becket.peer.transport.server": "serve_tcp serve_unix",
}

__getattr__, __dir__ = lazy_exports(globals(), EXPORTS)
