"""The Roder mapping of the contract, for host and extension."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from becket.adapters.roder import (
    SHUTDOWN,
    STREAM_TURN,
    SUBAGENTS_CANCEL,
    SUBAGENTS_DISPATCH,
    TASKS_EXECUTE,
    TOOLS_CALL,
    CancelDispatchParams,
    DispatchParams,
    EventFilter,
    ExecuteTaskParams,
    InferenceRequest,
    LoadedManifest,
    ModelSelection,
    RoderManifest,
    StreamTurnParams,
    SubagentExitReason,
    SubagentRequest,
    SubagentResult,
    TaskResult,
    ToolCallParams,
    ToolCallResult,
    ToolProvider,
    ToolSpec,
    TurnCompleted,
)
from becket.adapters.roder.handshake import RoderOffer
from becket.adapters.roder.mapping import MAPPING
from becket.adapters.roder.served_manifest import ServedManifest
from becket.contract.providers import ProviderDone, ProviderFailed, ProviderRequest, ProviderResult, TextDelta, user
from becket.contract.tools import ToolCall
from becket.dialects.link_state import LinkState, WireRequest
from becket.errors import InvalidParams, NotDeclared, NotSupported, RpcError, ToolFailed

TOOL = MAPPING.methods["tool.call"]
COMPLETE = MAPPING.methods["provider.complete"]
STREAM = MAPPING.methods["provider.stream"]
MANIFEST = RoderManifest(
    id="demo",
    name="D",
    version="1",
    api_version="*",
    provides=(ToolProvider("t", (ToolSpec("count it", "d", {}),)), ToolProvider("u", (ToolSpec("other", "d", {}),))),
)
REQUEST = ProviderRequest("local", "sage-7b", "demo:local:sage-7b", (user("hi"),))
TURN = StreamTurnParams(
    engine_id="e", stream_id="s-1", thread_id="t", turn_id="u", request=InferenceRequest(model=ModelSelection("e", "m"))
)
RUN = ExecuteTaskParams(executor_id="tidy", execution_id="e-1", task_id="k", input={"args": ["desk"]})
DISPATCH = DispatchParams(
    dispatcher_id="d",
    dispatch_id="d-1",
    parent_thread_id="t",
    parent_turn_id="u",
    request=SubagentRequest(description="d", prompt="p"),
)


def host_state() -> LinkState:
    offer = RoderOffer(
        manifest=MANIFEST,
        event_filter=EventFilter(),
        tools={"count-it": ("t", "count it")},
        models={("local", "sage-7b"): ("Local", "sage:7b")},
    )
    return LinkState("demo", extra=offer)


def extension_state() -> LinkState:
    return LinkState("demo", extra=ServedManifest(LoadedManifest.from_bytes(MANIFEST, b"")))


def text_of(value: object) -> str:
    return msgspec.json.encode(value).decode()


def notifications_of(given: Any) -> list[tuple[str, str]]:
    return [(notification.method, text_of(notification.params)) for notification in given]


# -- tools


def test_a_tool_is_called_by_the_names_that_the_manifest_has() -> None:
    wire_request = TOOL.encode_request(ToolCall("count-it", {"text": "a"}), host_state())

    assert wire_request.method is TOOLS_CALL
    assert text_of(wire_request.params) == (
        '{"providerId":"t","toolName":"count it","callId":"call-1","threadId":"becket","turnId":"turn-1",'
        '"arguments":{"text":"a"}}'
    )


def test_services_that_the_extension_does_not_offer_are_not_called() -> None:
    with pytest.raises(NotDeclared, match="count-it"):
        TOOL.encode_request(ToolCall("other", {}), host_state())
    with pytest.raises(NotDeclared, match="local:sage-7b"):
        STREAM.encode_request(ProviderRequest("local", "other", "demo:local:other", ()), host_state())


def test_each_call_has_an_id_of_its_own() -> None:
    state = host_state()

    assert [TOOL.encode_request(ToolCall("count-it", {}), state).params.call_id for _ in range(2)] == [
        "call-1",
        "call-2",
    ]


@pytest.mark.parametrize(
    ("data", "result"), [(None, "3 words"), ({"words": 3}, {"content": "3 words", "data": {"words": 3}})]
)
def test_the_text_of_a_tool_is_its_result_with_its_data_where_it_has_some(data: Any, result: object) -> None:
    response = ToolCallResult(content="3 words", is_error=False, data=data)

    assert TOOL.decode_result(response, called(), host_state()) == result


def test_a_tool_that_failed_is_an_error() -> None:
    with pytest.raises(ToolFailed) as caught:
        TOOL.decode_result(ToolCallResult(content="no", is_error=True, data=[1]), called(), host_state())

    assert (caught.value.tool, caught.value.message, caught.value.data) == ("count it", "no", [1])


def called(provider: str = "t", tool: str = "count it", arguments: object = None) -> WireRequest:
    given = {"a": 1} if arguments is None else arguments
    params = ToolCallParams(
        provider_id=provider, tool_name=tool, call_id="c", thread_id="x", turn_id="y", arguments=given
    )
    return WireRequest(TOOLS_CALL, params)


def test_a_call_is_decoded_as_in_the_contract() -> None:
    assert [*TOOL.wire_methods(extension_state())] == [TOOLS_CALL]
    assert TOOL.decode_request(called(), extension_state()) == ToolCall("count it", {"a": 1})
    assert TOOL.decode_request(called("any", "any"), LinkState("demo")) == ToolCall(
        "any", {"a": 1}
    )  # before the handshake


@pytest.mark.parametrize("wire_request", [called("u"), called("nobody"), called(tool="other"), called(arguments=[1])])
def test_a_call_of_a_missing_tool_is_refused(wire_request: WireRequest) -> None:
    with pytest.raises(InvalidParams):
        TOOL.decode_request(wire_request, extension_state())


@pytest.mark.parametrize(
    ("result", "response"),
    [
        ("text", '{"content":"text","isError":false}'),
        ({"content": "text"}, '{"content":"text","isError":false}'),
        ({"content": "text", "data": [1]}, '{"content":"text","isError":false,"data":[1]}'),
        ({"n": 1}, '{"content":"{\\"n\\":1}","isError":false,"data":{"n":1}}'),
        (7, '{"content":"7","isError":false,"data":7}'),
        (None, '{"content":"null","isError":false}'),
    ],
)
def test_any_result_of_a_tool_is_text_and_data(result: object, response: str) -> None:
    assert text_of(TOOL.encode_result(result, called(), extension_state())) == response


def test_a_tool_that_fails_gets_a_response_and_not_refused() -> None:
    assert TOOL.encode_failure is not None

    assert text_of(TOOL.encode_failure(RpcError(4, "no"), called(), extension_state())) == (
        '{"content":"no","isError":true,"data":{"error":{"kind":"tool_execution_failed","message":"no"}}}'
    )


# -- providers


@pytest.mark.parametrize("method_mapping", [COMPLETE, STREAM])
def test_a_model_is_called_by_the_names_of_roder(method_mapping: Any) -> None:
    wire_request = method_mapping.encode_request(REQUEST, host_state())

    assert wire_request.method.name == "inference/streamTurn"
    assert (wire_request.params.engine_id, wire_request.params.stream_id, wire_request.params.turn_id) == (
        "Local",
        "stream-1",
        "turn-1",
    )
    assert wire_request.params.request.model == ModelSelection("Local", "sage:7b")


def test_only_deltas_are_requested_from_an_extension() -> None:
    assert [*STREAM.wire_methods(extension_state())] == [STREAM_TURN]
    assert [*COMPLETE.wire_methods(extension_state())] == []
    assert STREAM.decode_request(WireRequest(STREAM_TURN, TURN), extension_state()).provider_id == "e"


def test_a_response_is_acknowledged_streamed_and_ended() -> None:
    state, wire_request = extension_state(), WireRequest(STREAM_TURN, TURN)
    assert STREAM.encode_ack is not None
    assert STREAM.encode_event is not None
    assert STREAM.encode_end_events is not None

    assert text_of(STREAM.encode_ack(wire_request, state)) == '{"streamId":"s-1"}'
    assert STREAM.encode_event(ProviderDone(), wire_request, state) is None
    part = STREAM.encode_event(TextDelta("he"), wire_request, state)
    assert notifications_of([part]) == [
        ("inference/event", '{"streamId":"s-1","event":{"MessageDelta":{"text":"he"}}}')
    ]
    assert notifications_of(STREAM.encode_end_events(ProviderResult.of_text("he"), None, wire_request, state)) == [
        (
            "inference/event",
            '{"streamId":"s-1","event":{"Completed":{"stop_reason":null,"provider_response_id":null}}}',
        )
    ]
    assert state.extra.sent_event_types == {}


def test_a_response_that_fails_ends_with_the_reason() -> None:
    assert STREAM.encode_end_events is not None

    ended = notifications_of(
        STREAM.encode_end_events(None, RpcError(1, "asleep"), WireRequest(STREAM_TURN, TURN), extension_state())
    )

    assert ended == [("inference/event", '{"streamId":"s-1","event":{"Failed":{"message":"asleep"}}}')]


def test_an_error_that_the_response_continues_after_does_not_end_it() -> None:
    assert STREAM.encode_event is not None

    [(_, params)] = notifications_of(
        [STREAM.encode_event(ProviderFailed("slow"), WireRequest(STREAM_TURN, TURN), extension_state())]
    )

    assert params == '{"streamId":"s-1","event":{"ProviderMetadata":{"error":{"message":"slow"}}}}'


# -- methods of the author


def test_a_dispatch_is_acknowledged_and_ended_for_its_author() -> None:
    method_mapping = MAPPING.methods["subagents/dispatch"]
    wire_request = method_mapping.encode_request(DISPATCH, extension_state())
    result = SubagentResult(
        thread_id="t", turn_id="u", agent_type="a", final_message="m", exit_reason=SubagentExitReason.COMPLETED
    )
    assert method_mapping.encode_ack is not None
    assert method_mapping.encode_end_events is not None

    assert [*method_mapping.wire_methods(extension_state())] == [SUBAGENTS_DISPATCH]
    assert method_mapping.decode_request(wire_request, extension_state()) is DISPATCH
    assert text_of(method_mapping.encode_ack(wire_request, extension_state())) == '{"dispatchId":"d-1"}'
    [(name, params)] = notifications_of(method_mapping.encode_end_events(result, None, wire_request, extension_state()))
    assert name == "subagents/event"
    assert params.startswith('{"dispatchId":"d-1","event":{"type":"completed","result":{')
    assert notifications_of(
        method_mapping.encode_end_events(None, RpcError(1, "broke"), wire_request, extension_state())
    ) == [("subagents/event", '{"dispatchId":"d-1","event":{"type":"failed","error":"broke"}}')]
    assert method_mapping.cancel_method is SUBAGENTS_CANCEL
    assert method_mapping.correlation_key(
        CancelDispatchParams(dispatcher_id="d", dispatch_id="d-1")
    ) == method_mapping.correlation_key(DISPATCH)


def test_a_custom_task_and_a_custom_turn_end_with_their_results() -> None:
    task, turn = MAPPING.methods["tasks/execute"], MAPPING.methods["inference/streamTurn"]
    assert task.encode_end_events is not None
    assert turn.encode_end_events is not None
    run, requested = WireRequest(TASKS_EXECUTE, RUN), WireRequest(STREAM_TURN, TURN)

    assert notifications_of(task.encode_end_events(TaskResult(exit_code=3), None, run, extension_state())) == [
        ("tasks/event", '{"executionId":"e-1","event":{"type":"completed","result":{"exit_code":3,"payload":null}}}')
    ]
    assert notifications_of(task.encode_end_events(None, RpcError(1, "no"), run, extension_state())) == [
        ("tasks/event", '{"executionId":"e-1","event":{"type":"failed","error":"no"}}')
    ]
    [(_, ended)] = notifications_of(turn.encode_end_events(TurnCompleted("stop"), None, requested, extension_state()))
    assert '"stop_reason":"stop"' in ended
    [(_, failed)] = notifications_of(turn.encode_end_events(None, RpcError(1, "no"), requested, extension_state()))
    assert failed == '{"streamId":"s-1","event":{"Failed":{"message":"no"}}}'
    assert turn.correlation_key(TURN) == "s-1"


# -- the rest


def test_shutdown_is_a_request_with_empty_params() -> None:
    assert MAPPING.encode_shutdown is not None
    wire_request = MAPPING.encode_shutdown(extension_state())

    assert (wire_request.method, wire_request.params) == (SHUTDOWN, {})


@pytest.mark.parametrize("method", ["hook.handle", "memory.append", "config.get", "info.get", "settings.editor.open"])
def test_calls_that_roder_lacks_are_not_supported(method: str) -> None:
    with pytest.raises(NotSupported, match="roder"):
        MAPPING.get_method(method)
