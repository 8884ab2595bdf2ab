"""Adds session metadata to nexo tool calls, and reads it in an extension.

It is added only for an extension whose manifest requests it, and only by the host: a `_meta` in the arguments from any
other source, such as a model, is removed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from becket.adapters.nexo.manifest import NexoExtra
from becket.adapters.nexo.messages import NexoToolCallParams
from becket.contract.json_narrowing import is_object
from becket.contract.tools import ToolCall
from becket.dialects.link_state import LinkState, WireRequest

__all__ = ["add_session_meta", "build_session_meta", "get_session_meta", "strip_session_meta"]

META = "_meta"


def build_session_meta(
    agent_id: str, session_id: str | None = None, *, channel: str | None = None, account_id: str | None = None
) -> dict[str, Any]:
    """Returns the metadata of a session, with the channel and account if there is a channel."""
    meta: dict[str, Any] = {"agent_id": agent_id, "session_id": session_id}
    if channel is None:
        return meta
    binding = {
        **meta,
        "channel": channel,
        "account_id": account_id,
        "binding_id": channel if account_id is None else f"{channel}:{account_id}",
    }
    return {**meta, "nexo": {"binding": binding}}


def add_session_meta(call: ToolCall, meta: Mapping[str, Any] | None, state: LinkState) -> ToolCall:
    """Returns the call with session metadata, if the extension requests it.

    Without `meta` it has only the host's own name."""
    known = state.extra
    if not isinstance(known, NexoExtra) or not known.manifest.passthrough:
        return call
    session = build_session_meta(known.agent_id) if meta is None else dict(meta)
    return ToolCall(call.name, {META: session, **strip_session_meta(call.input)})


def strip_session_meta(arguments: dict[str, Any]) -> dict[str, Any]:
    """Returns the arguments of a tool without session metadata."""
    return {name: value for name, value in arguments.items() if name != META}


def get_session_meta(context: object) -> Mapping[str, Any]:
    """Returns the session metadata of the request of a tool's `ctx`; empty without any, or in another dialect."""
    wire_request = getattr(context, "wire_request", None)
    params = wire_request.params if isinstance(wire_request, WireRequest) else None
    arguments = params.arguments if isinstance(params, NexoToolCallParams) else None
    meta = arguments.get(META) if is_object(arguments) else None
    return meta if is_object(meta) else {}
