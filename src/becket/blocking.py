"""Blocking peers for programs without an event loop; imports neither asyncio nor anyio.

with connect_process(["my-extension"]) as peer:
    print(peer.call("echo", {"text": "milk"}))
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from becket._lazy import lazy_exports
from becket.errors import CallCancelled
from becket.peer.blocking_peer import BlockingContext, BlockingPeer, connect_process, connect_stdio

if TYPE_CHECKING:
    from becket.peer.blocking_calls import BlockingStream, PendingCall

__all__ = [
    "BlockingContext",
    "BlockingPeer",
    "BlockingStream",
    "CallCancelled",
    "PendingCall",
    "connect_process",
    "connect_stdio",
]

__getattr__, __dir__ = lazy_exports(globals(), {"becket.peer.blocking_calls": "BlockingStream PendingCall"})
