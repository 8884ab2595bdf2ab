"""becket joins a program and its extensions: child processes in any language that speak JSON-RPC 2.0 over their pipes.

Both ends are a `Peer`: each may call the other, at any time, many calls at once. Names are loaded at first use, so that
an extension pays at start only for what it uses.
"""

from __future__ import annotations

import os
import sys
from _thread import _count as count_threads  # pyright: ignore[reportPrivateUsage]
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from becket.lazy_names import load

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
    from becket.peer.server import serve_tcp, serve_unix
    from becket.peer.streams import Gap, Overflow

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

HOMES = {
    "DIALECTS": "becket.dialects",
    "ExtensionServer": "becket.extension.server",
    "Limits": "becket.limits",
    "Registry": "becket.methods.registry",
    "Context": "becket.peer.context",
    "BatchCall": "becket.peer.outbound",
    "BatchNotify": "becket.peer.outbound",
    "Peer": "becket.peer.peer",
    "serve_tcp": "becket.peer.server",
    "serve_unix": "becket.peer.server",
    "Gap": "becket.peer.streams",
    "Overflow": "becket.peer.streams",
}


def import_msgspec() -> None:
    """Imports msgspec without what it hardly uses: that takes more time than all the rest of an extension's start.

    From `typing_extensions`, where it finds it, it takes what `typing` has too; it imports `inspect` and all that hangs
    on it. From `platform`, which compiles a dozen regular expressions, its `uuid` wants the name of the system; from
    `textwrap`, which compiles some too, its schemas want `dedent`. The classes of `datetime` are written in C; until
    3.12 they are written in Python as well, to be thrown away. Done only where no other thread can be about to import
    them."""
    if "msgspec" in sys.modules or count_threads():
        return
    absent: dict[str, Any] = {"typing_extensions": None, "textwrap": SimpleNamespace(dedent=dedent)}
    if sys.version_info < (3, 12):
        absent["datetime"] = load("_datetime")
    if hasattr(os, "uname"):
        absent["platform"] = SimpleNamespace(system=lambda: os.uname().sysname)
    absent = {name: stand_in for name, stand_in in absent.items() if name not in sys.modules}
    sys.modules.update(absent)
    try:
        load("msgspec")
    finally:
        for name in absent:
            del sys.modules[name]


def dedent(text: str) -> str:
    """Stands for `textwrap.dedent` until that is needed."""
    from textwrap import dedent

    return dedent(text)


import_msgspec()


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(load(HOMES.get(name, "becket.errors")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
