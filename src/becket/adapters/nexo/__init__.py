"""Adapter for nexo: the dialect, pollers, admin methods and session metadata.

Tools and hooks are those of the contract. Pollers, admin methods and session metadata are exported here:
`await extension.peer.call(nexo.POLL_TICK, tick)` in a host, `@handles(nexo.POLL_TICK)` in an extension.
"""

from __future__ import annotations

from becket.adapters.nexo.admin import admin_method, to_capability, to_permission
from becket.adapters.nexo.dialect import NEXO
from becket.adapters.nexo.manifest import NexoExtra, NexoManifest
from becket.adapters.nexo.messages import TOOLS_LIST, NexoTool, NexoToolList, to_tools
from becket.adapters.nexo.pollers import (
    POLL_LIST_TOOLS,
    POLL_TICK,
    POLL_TOOL_CALL,
    BadJobConfig,
    Delivery,
    PermanentFailure,
    PollerTool,
    PollFailure,
    PollListToolsParams,
    PollTickParams,
    PollTickResult,
    PollToolCallParams,
    TransientFailure,
    classify_failure,
    decode_cursor,
    decode_poller_tools,
    encode_cursor,
)
from becket.adapters.nexo.session_meta import build_session_meta, get_session_meta

__all__ = [
    "NEXO",
    "POLL_LIST_TOOLS",
    "POLL_TICK",
    "POLL_TOOL_CALL",
    "TOOLS_LIST",
    "BadJobConfig",
    "Delivery",
    "NexoExtra",
    "NexoManifest",
    "NexoTool",
    "NexoToolList",
    "PermanentFailure",
    "PollFailure",
    "PollListToolsParams",
    "PollTickParams",
    "PollTickResult",
    "PollToolCallParams",
    "PollerTool",
    "TransientFailure",
    "admin_method",
    "build_session_meta",
    "classify_failure",
    "decode_cursor",
    "decode_poller_tools",
    "encode_cursor",
    "get_session_meta",
    "to_capability",
    "to_permission",
    "to_tools",
]
