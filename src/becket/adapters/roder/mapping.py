"""Maps the contract to Roder: tools, providers, commands, and acknowledged operations.

Tools are `tools/call`, provider calls are `inference/streamTurn`, and commands are tasks. Roder has no hooks, memory or
configuration.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from becket.adapters.roder.command_mapping import COMMAND_MAPPING
from becket.adapters.roder.handshake import SERVER_HANDSHAKE, SHUTDOWN, RoderOffer, client_handshake
from becket.adapters.roder.manifest import RoderManifest
from becket.adapters.roder.messages.inference import (
    STREAM_TURN,
    TURN_OPERATION,
    StreamTurnParams,
    TurnFailed,
)
from becket.adapters.roder.messages.operations import OperationKind
from becket.adapters.roder.messages.services import ToolProvider, filter_services
from becket.adapters.roder.messages.subagents import (
    DISPATCH_OPERATION,
    SUBAGENTS_CANCEL,
    SUBAGENTS_DISPATCH,
)
from becket.adapters.roder.messages.tasks import (
    TASK_OPERATION,
    TASKS_CANCEL,
    TASKS_EXECUTE,
)
from becket.adapters.roder.messages.tools import TOOLS_CALL, ToolCallParams, ToolCallResult
from becket.adapters.roder.provider_event_mapping import PROVIDER_TURN, to_final_events, to_inference_event
from becket.adapters.roder.provider_request_mapping import to_inference_request, to_provider_request
from becket.adapters.roder.rust_debug import format_text
from becket.adapters.roder.served_manifest import ServedManifest
from becket.contract.commands import COMMAND_INVOKE
from becket.contract.json_narrowing import is_object
from becket.contract.providers import PROVIDER_COMPLETE, PROVIDER_STREAM, ProviderEvent, ProviderRequest, ProviderResult
from becket.contract.tools import TOOL_CALL, ToolCall, format_tool_result
from becket.dialects.link_state import LinkState, WireNotification, WireRequest
from becket.dialects.mapping import ContractMapping, MethodMapping
from becket.errors import InvalidParams, NotDeclared, RpcError, ToolFailed
from becket.methods.descriptors import Method

__all__ = ["MAPPING"]

THREAD_ID: Final = "becket"  # this host has one conversation
TOOL_FAILED: Final = "tool_execution_failed"


# -- tools


def encode_tool_call(call: ToolCall, state: LinkState) -> WireRequest:
    offer: RoderOffer = state.extra
    if call.name not in offer.tools:
        raise NotDeclared(state.extension, "tool", call.name, [*offer.tools])
    provider, tool = offer.tools[call.name]
    number = next(state.sequence)
    params = ToolCallParams(
        provider_id=provider,
        tool_name=tool,
        call_id=f"call-{number}",
        thread_id=THREAD_ID,
        turn_id=f"turn-{number}",
        arguments=call.input,
    )
    return WireRequest(TOOLS_CALL, params)


def decode_tool_result(result: ToolCallResult, wire_request: WireRequest, _: LinkState) -> Any:
    """Returns the text if there is no data; otherwise an object with both. Raises `ToolFailed` for a failed tool."""
    if result.is_error:
        raise ToolFailed(wire_request.params.tool_name, result.content, result.data, method=TOOLS_CALL.name)
    return result.content if result.data is None else {"content": result.content, "data": result.data}


def decode_tool_call(wire_request: WireRequest, state: LinkState) -> ToolCall:
    params: ToolCallParams = wire_request.params
    served: ServedManifest | RoderOffer | None = state.extra
    if served is not None and params.tool_name not in list_tool_names(params.provider_id, served.manifest):
        text = f"there is no tool {format_text(params.tool_name)} of {format_text(params.provider_id)} here"
        raise InvalidParams([("/toolName", text)])
    if not is_object(params.arguments):
        raise InvalidParams([("/arguments", "they are no object")])
    return ToolCall(params.tool_name, params.arguments)


def list_tool_names(provider: str, manifest: RoderManifest) -> list[str]:
    providers = filter_services(manifest.provides, ToolProvider)
    return [tool.name for one in providers if one.id == provider for tool in one.tools]


def encode_tool_result(result: Any, *_: object) -> ToolCallResult:
    data = result
    if isinstance(result, str) or (is_object(result) and result.keys() == {"content"}):
        data = None
    elif is_object(result) and result.keys() == {"content", "data"}:
        data = result["data"]
    return ToolCallResult(content=format_tool_result(result), is_error=False, data=data)


def encode_tool_error(error: RpcError, *_: object) -> ToolCallResult:
    failure = {"kind": TOOL_FAILED, "message": error.message}
    return ToolCallResult(content=error.message, is_error=True, data={"error": failure})


TOOL_CALL_MAPPING: Final = MethodMapping(
    encode_request=encode_tool_call,
    decode_result=decode_tool_result,
    wire_methods=lambda _: (TOOLS_CALL,),
    decode_request=decode_tool_call,
    encode_result=encode_tool_result,
    encode_failure=encode_tool_error,
)


# -- providers


def encode_turn(request: ProviderRequest, state: LinkState) -> WireRequest:
    offer: RoderOffer = state.extra
    key = request.provider_id, request.model_id
    if key not in offer.models:
        raise NotDeclared(state.extension, "model", ":".join(key), [":".join(known) for known in offer.models])
    engine, model = offer.models[key]
    number = next(state.sequence)
    params = StreamTurnParams(
        engine_id=engine,
        stream_id=f"stream-{number}",
        thread_id=THREAD_ID,
        turn_id=f"turn-{number}",
        request=to_inference_request(request, engine, model),
    )
    return WireRequest(PROVIDER_TURN, params)


def decode_turn(wire_request: WireRequest, state: LinkState) -> ProviderRequest:
    params: StreamTurnParams = wire_request.params
    return to_provider_request(params.request, params.engine_id, state.extension)


def encode_turn_event(event: ProviderEvent, wire_request: WireRequest, state: LinkState) -> WireNotification | None:
    served: ServedManifest = state.extra
    served.sent_event_types.setdefault(wire_request.params.stream_id, set()).add(type(event))
    inference_event = to_inference_event(event)
    return None if inference_event is None else TURN_OPERATION.build_notification(inference_event, wire_request)


def encode_turn_end(
    result: ProviderResult, error: RpcError | None, wire_request: WireRequest, state: LinkState
) -> Iterator[WireNotification]:
    served: ServedManifest = state.extra
    sent = served.sent_event_types.pop(wire_request.params.stream_id, set())
    events = to_final_events(result, sent) if error is None else [TurnFailed(error.message)]
    return (TURN_OPERATION.build_notification(event, wire_request) for event in events)


PROVIDER_STREAM_MAPPING: Final = MethodMapping(
    encode_request=encode_turn,
    wire_methods=lambda _: (STREAM_TURN,),
    decode_request=decode_turn,
    encode_event=encode_turn_event,
    encode_ack=TURN_OPERATION.encode_ack,
    encode_end_events=encode_turn_end,
    correlation_key=TURN_OPERATION.get_id,
)
PROVIDER_COMPLETE_MAPPING: Final = MethodMapping(
    encode_request=encode_turn, wire_methods=lambda _: (), decode_request=decode_turn
)
"""The host joins the streamed parts of a completion, because Roder has only streamed turns."""


# -- methods outside the contract: acknowledgement, end event and cancellation are sent for the author


def build_operation_mapping(
    method: Method[Any, Any], kind: OperationKind, *, cancelled_as: Method[Any, Any] | None = None
) -> MethodMapping:
    return MethodMapping(
        encode_request=lambda params, _: WireRequest(method, params),
        wire_methods=lambda _: (method,),
        decode_request=lambda wire_request, _: wire_request.params,
        encode_ack=kind.encode_ack,
        encode_end_events=kind.encode_end,
        cancel_method=cancelled_as,
        correlation_key=kind.get_id,
    )


OPERATION_MAPPINGS: Final = {
    STREAM_TURN.name: build_operation_mapping(STREAM_TURN, TURN_OPERATION),
    TASKS_EXECUTE.name: build_operation_mapping(TASKS_EXECUTE, TASK_OPERATION, cancelled_as=TASKS_CANCEL),
    SUBAGENTS_DISPATCH.name: build_operation_mapping(
        SUBAGENTS_DISPATCH, DISPATCH_OPERATION, cancelled_as=SUBAGENTS_CANCEL
    ),
}


MAPPING: Final = ContractMapping(
    dialect="roder",
    client_handshake=client_handshake,
    server_handshake=SERVER_HANDSHAKE,
    methods={
        TOOL_CALL.name: TOOL_CALL_MAPPING,
        PROVIDER_COMPLETE.name: PROVIDER_COMPLETE_MAPPING,
        PROVIDER_STREAM.name: PROVIDER_STREAM_MAPPING,
        COMMAND_INVOKE.name: COMMAND_MAPPING,
        **OPERATION_MAPPINGS,
    },
    encode_shutdown=lambda _: WireRequest(SHUTDOWN, {}),
)
