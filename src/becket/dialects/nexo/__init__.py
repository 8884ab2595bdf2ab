"""`nexo`: the dialect of the agent framework of that name, for extensions over stdio, from both sides.

Tools and hooks are spoken of in the contract's words; pollers, administration and what is said of a session have names
here: `await extension.peer.call(nexo.POLL_TICK, tick)` on the host, `@handles(nexo.POLL_TICK)` in an extension.
"""

from __future__ import annotations

from becket.dialects.nexo.administration import admin_method, capability_of, permission_of
from becket.dialects.nexo.link import NEXO
from becket.dialects.nexo.particulars import NexoManifest, Particulars
from becket.dialects.nexo.pollers import (
    POLL_LIST_TOOLS,
    POLL_TICK,
    POLL_TOOL_CALL,
    BadJobConfig,
    Delivery,
    PermanentFailure,
    Polled,
    PollerTool,
    PollFault,
    PollKind,
    PollTick,
    PollToolCall,
    TransientFailure,
    decode_cursor,
    encode_cursor,
    fault_of,
    read_poller_tools,
)
from becket.dialects.nexo.session_meta import build_meta, meta_of
from becket.dialects.nexo.words import TOOLS_LIST, ListedTool, ListedTools, tools_of

__all__ = [
    "NEXO",
    "POLL_LIST_TOOLS",
    "POLL_TICK",
    "POLL_TOOL_CALL",
    "TOOLS_LIST",
    "BadJobConfig",
    "Delivery",
    "ListedTool",
    "ListedTools",
    "NexoManifest",
    "Particulars",
    "PermanentFailure",
    "PollFault",
    "PollKind",
    "PollTick",
    "PollToolCall",
    "Polled",
    "PollerTool",
    "TransientFailure",
    "admin_method",
    "build_meta",
    "capability_of",
    "decode_cursor",
    "encode_cursor",
    "fault_of",
    "meta_of",
    "permission_of",
    "read_poller_tools",
    "tools_of",
]
