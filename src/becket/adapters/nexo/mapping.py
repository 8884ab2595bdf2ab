"""Maps the contract to nexo: tools, hooks and shutdown."""

from __future__ import annotations

from typing import Any, Final

from becket.adapters.nexo.handshake import SERVER_HANDSHAKE, client_handshake, encode_shutdown
from becket.adapters.nexo.hook_mapping import decode_hook, decode_hook_result, encode_hook, encode_hook_result
from becket.adapters.nexo.messages import HOOK_METHODS, TOOLS_CALL, NexoToolCallParams
from becket.adapters.nexo.session_meta import add_session_meta, strip_session_meta
from becket.contract.hooks import HOOK_HANDLE
from becket.contract.json_narrowing import is_object
from becket.contract.tools import TOOL_CALL, ToolCall
from becket.dialects.link_state import LinkState, WireRequest
from becket.dialects.mapping import ContractMapping, MethodMapping
from becket.errors import InvalidParams

__all__ = ["MAPPING"]


def encode_tool_call(call: ToolCall, state: LinkState) -> WireRequest:
    return WireRequest(TOOLS_CALL, NexoToolCallParams(call.name, call.input))


def decode_tool_call(request: WireRequest, state: LinkState) -> ToolCall:
    """Returns the tool call without session metadata."""
    params: NexoToolCallParams = request.params
    arguments: Any = {} if params.arguments is None else params.arguments
    if not is_object(arguments):
        raise InvalidParams([("/arguments", "must be an object")])
    return ToolCall(params.name, strip_session_meta(arguments))


MAPPING: Final = ContractMapping(
    dialect="nexo",
    client_handshake=client_handshake,
    server_handshake=SERVER_HANDSHAKE,
    methods={
        TOOL_CALL.name: MethodMapping(
            encode_request=encode_tool_call, wire_methods=lambda _: (TOOLS_CALL,), decode_request=decode_tool_call
        ),
        HOOK_HANDLE.name: MethodMapping(
            encode_request=encode_hook,
            decode_result=decode_hook_result,
            wire_methods=lambda _: tuple(HOOK_METHODS.values()),
            decode_request=decode_hook,
            encode_result=encode_hook_result,
        ),
    },
    encode_shutdown=encode_shutdown,
    add_call_metadata=add_session_meta,
)
