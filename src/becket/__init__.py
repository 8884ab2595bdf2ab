"""Public names of becket, imported at first use.

Both ends are a `Peer`: each may call the other, at any time, with many calls in flight. Names are imported at first
use, so that an extension pays at start only for what it uses.
"""

from __future__ import annotations

from becket._lazy import lazy_exports
from becket._msgspec_import import import_msgspec

import_msgspec()

TYPE_CHECKING = False  # an import from `typing` would be above, before it is loaded
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
    from becket.extension.decorators import (
        command as command,
        handles as handles,
        hook as hook,
        provider as provider,
        tool as tool,
    )
    from becket.extension.server import ExtensionServer as ExtensionServer
    from becket.host.host import Host as Host
    from becket.host.host_config import HostConfig as HostConfig, load_host_config as load_host_config
    from becket.host.host_settings import HostSettings as HostSettings
    from becket.host.starting.connect import connect_extension as connect_extension
    from becket.limits import Limits as Limits
    from becket.methods.descriptors import Method as Method, Notification as Notification
    from becket.methods.registry import Registry as Registry
    from becket.methods.streams import Stream as Stream
    from becket.peer.context import Context as Context
    from becket.peer.outbound import BatchCall as BatchCall, BatchNotify as BatchNotify
    from becket.peer.peer import Peer as Peer
    from becket.peer.streams import Gap as Gap, Overflow as Overflow
    from becket.peer.transport.server import serve_tcp as serve_tcp, serve_unix as serve_unix
    from becket.permissions.gate import Gate as Gate
    from becket.permissions.grants import Grants as Grants

__version__ = "0.2.0"

EXPORTS = {
    "becket.dialects": "DIALECTS",
    "becket.errors": """
        BadReply BecketError Busy CallTimeout ConnectionLost DisconnectReason InvalidParams Meaning PeerCrashed
        RemoteError RpcError StartFailed StreamOverrun
    """,
    "becket.extension.decorators": "command handles hook provider tool",
    "becket.extension.server": "ExtensionServer",
    "becket.host.host": "Host",
    "becket.host.host_config": "HostConfig load_host_config",
    "becket.host.host_settings": "HostSettings",
    "becket.host.starting.connect": "connect_extension",
    "becket.limits": "Limits",
    "becket.methods.descriptors": "Method Notification",
    "becket.methods.registry": "Registry",
    "becket.methods.streams": "Stream",
    "becket.peer.context": "Context",
    "becket.peer.outbound": "BatchCall BatchNotify",
    "becket.peer.peer": "Peer",
    "becket.peer.streams": "Gap Overflow",
    "becket.peer.transport.server": "serve_tcp serve_unix",
    "becket.permissions.gate": "Gate",
    "becket.permissions.grants": "Grants",
}

__getattr__, __dir__ = lazy_exports(globals(), EXPORTS)
