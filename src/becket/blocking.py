"""The blocking face: peers for programs without an event loop. It imports neither asyncio nor anyio.

with connect_process(["my-extension"]) as peer:
    print(peer.call("echo", {"text": "milk"}))
"""

from __future__ import annotations

from becket.errors import CallCancelled
from becket.peer.blocking import (
    BlockingContext,
    BlockingPeer,
    BlockingStream,
    PendingCall,
    connect_process,
    connect_stdio,
)

__all__ = [
    "BlockingContext",
    "BlockingPeer",
    "BlockingStream",
    "CallCancelled",
    "PendingCall",
    "connect_process",
    "connect_stdio",
]
