"""How the contract is said to an extension of Roder, and by one: tools, providers, commands and the end.

Tools are `tools/call`, a provider's answer is `inference/streamTurn`, and a command is a task. There is no word for
hooks, memory or configuration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from becket.contract.commands import COMMAND_INVOKE
from becket.contract.providers import PROVIDER_COMPLETE, PROVIDER_STREAM, ProviderEvent, ProviderRequest, ProviderResult
from becket.contract.shapes import is_object
from becket.contract.tools import TOOL_CALL, ToolCall, tool_text
from becket.dialects.phrases import Phrase, Saying, Scene, Tale
from becket.dialects.roder.acknowledged import Address
from becket.dialects.roder.answers import PROVIDER_TURN, to_event, to_result_events
from becket.dialects.roder.commands import COMMAND_PHRASE, run_tale
from becket.dialects.roder.conversation import to_provider_request, to_request
from becket.dialects.roder.handshake import SHUTDOWN, WELCOME, Offer, greet
from becket.dialects.roder.inference import (
    INFERENCE_EVENT,
    STREAM_TURN,
    TURN,
    Completed,
    Failed,
    InferenceEvent,
    InferenceEventParams,
    StreamTurn,
    TaggedEvent,
)
from becket.dialects.roder.manifest import RoderManifest
from becket.dialects.roder.own_manifest import OwnSide
from becket.dialects.roder.services import ToolProvider, services_of
from becket.dialects.roder.shown import show_text
from becket.dialects.roder.subagents import (
    DISPATCH,
    SUBAGENTS_CANCEL,
    SUBAGENTS_DISPATCH,
    SUBAGENTS_EVENT,
    SubagentCompleted,
    SubagentEventParams,
    SubagentFailed,
    SubagentResult,
)
from becket.dialects.roder.tasks import EXECUTION, TASKS_CANCEL, TASKS_EXECUTE, TaskCompleted, TaskFailed, TaskResult
from becket.dialects.roder.tools import TOOLS_CALL, ToolCallParams, ToolCallResult
from becket.dialects.speech import Speech
from becket.errors import InvalidParams, NotDeclared, RpcError, ToolFailed
from becket.methods.descriptors import Method

__all__ = ["SPEECH"]

THREAD: Final = "becket"  # this host has one conversation
TOOL_FAILED: Final = "tool_execution_failed"


# -- tools


def say_tool_call(call: ToolCall, scene: Scene) -> Saying:
    offer: Offer = scene.particulars
    if call.name not in offer.tools:
        raise NotDeclared(scene.extension, "tool", call.name, [*offer.tools])
    provider, tool = offer.tools[call.name]
    number = next(scene.numbers)
    params = ToolCallParams(
        provider_id=provider,
        tool_name=tool,
        call_id=f"call-{number}",
        thread_id=THREAD,
        turn_id=f"turn-{number}",
        arguments=call.input,
    )
    return Saying(TOOLS_CALL, params)


def read_tool_result(result: ToolCallResult, saying: Saying, _: Scene) -> Any:
    """Returns the text alone where there is nothing else; raises for a tool that has failed."""
    if result.is_error:
        raise ToolFailed(saying.params.tool_name, result.content, result.data, method=TOOLS_CALL.name)
    return result.content if result.data is None else {"content": result.content, "data": result.data}


def hear_tool_call(saying: Saying, scene: Scene) -> ToolCall:
    params: ToolCallParams = saying.params
    side: OwnSide | Offer | None = scene.particulars
    if side is not None and params.tool_name not in tools_of(params.provider_id, side.manifest):
        text = f"there is no tool {show_text(params.tool_name)} of {show_text(params.provider_id)} here"
        raise InvalidParams([("/toolName", text)])
    if not is_object(params.arguments):
        raise InvalidParams([("/arguments", "they are no object")])
    return ToolCall(params.tool_name, params.arguments)


def tools_of(provider: str, manifest: RoderManifest) -> list[str]:
    providers = services_of(manifest.provides, ToolProvider)
    return [tool.name for one in providers if one.id == provider for tool in one.tools]


def answer_tool_call(result: Any, *_: object) -> ToolCallResult:
    data = result
    if isinstance(result, str) or (is_object(result) and result.keys() == {"content"}):
        data = None
    elif is_object(result) and result.keys() == {"content", "data"}:
        data = result["data"]
    return ToolCallResult(content=tool_text(result), is_error=False, data=data)


def fail_tool_call(error: RpcError, *_: object) -> ToolCallResult:
    told = {"kind": TOOL_FAILED, "message": error.message}
    return ToolCallResult(content=error.message, is_error=True, data={"error": told})


TOOL_PHRASE: Final = Phrase(
    say=say_tool_call,
    read=read_tool_result,
    heard_as=lambda _: (TOOLS_CALL,),
    hear=hear_tool_call,
    answer=answer_tool_call,
    fail=fail_tool_call,
)


# -- providers


def say_turn(request: ProviderRequest, scene: Scene) -> Saying:
    offer: Offer = scene.particulars
    asked = request.provider_id, request.model_id
    if asked not in offer.models:
        raise NotDeclared(scene.extension, "model", ":".join(asked), [":".join(known) for known in offer.models])
    engine, model = offer.models[asked]
    number = next(scene.numbers)
    params = StreamTurn(
        engine_id=engine,
        stream_id=f"stream-{number}",
        thread_id=THREAD,
        turn_id=f"turn-{number}",
        request=to_request(request, engine, model),
    )
    return Saying(PROVIDER_TURN, params)


def hear_turn(saying: Saying, scene: Scene) -> ProviderRequest:
    params: StreamTurn = saying.params
    return to_provider_request(params.request, params.engine_id, scene.extension)


def tell_of_turn(event: ProviderEvent, saying: Saying, scene: Scene) -> Tale | None:
    side: OwnSide = scene.particulars
    side.told.setdefault(saying.params.stream_id, set()).add(type(event))
    told = to_event(event)
    return None if told is None else turn_tale(told, saying)


def end_turn(result: ProviderResult, error: RpcError | None, saying: Saying, scene: Scene) -> Iterator[Tale]:
    side: OwnSide = scene.particulars
    told = side.told.pop(saying.params.stream_id, set())
    events = to_result_events(result, told) if error is None else [Failed(error.message)]
    return (turn_tale(event, saying) for event in events)


def turn_tale(event: InferenceEvent, saying: Saying) -> Tale:
    params: StreamTurn = saying.params
    return Tale(INFERENCE_EVENT.name, InferenceEventParams(params.stream_id, TaggedEvent.of(event)))


STREAM_PHRASE: Final = Phrase(
    say=say_turn,
    heard_as=lambda _: (STREAM_TURN,),
    hear=hear_turn,
    tell=tell_of_turn,
    acknowledge=TURN.acknowledge,
    end=end_turn,
    key_of=TURN.id_of,
)
COMPLETE_PHRASE: Final = Phrase(say=say_turn, heard_as=lambda _: (), hear=hear_turn)
"""Of an answer whole, the host puts it together; an extension is always asked for its pieces."""


# -- what the contract has no word for: acknowledged, ended and cancelled for the author, who returns the result


def own_phrase(
    method: Method[Any, Any],
    address: Address,
    end: Callable[[Any, RpcError | None, Saying, Scene], Iterable[Tale]],
    *,
    cancelled_as: Method[Any, Any] | None = None,
) -> Phrase:
    return Phrase(
        say=lambda params, _: Saying(method, params),
        heard_as=lambda _: (method,),
        hear=lambda saying, _: saying.params,
        acknowledge=address.acknowledge,
        end=end,
        cancelled_as=cancelled_as,
        key_of=address.id_of,
    )


def end_own_turn(result: Completed, error: RpcError | None, saying: Saying, _: Scene) -> list[Tale]:
    return [turn_tale(result if error is None else Failed(error.message), saying)]


def end_execution(result: TaskResult, error: RpcError | None, saying: Saying, _: Scene) -> list[Tale]:
    return [run_tale(TaskCompleted(result) if error is None else TaskFailed(error.message), saying)]


def end_dispatch(result: SubagentResult, error: RpcError | None, saying: Saying, _: Scene) -> list[Tale]:
    event = SubagentCompleted(result) if error is None else SubagentFailed(error.message)
    return [Tale(SUBAGENTS_EVENT.name, SubagentEventParams(saying.params.dispatch_id, event))]


OWN_PHRASES: Final = {
    STREAM_TURN.name: own_phrase(STREAM_TURN, TURN, end_own_turn),
    TASKS_EXECUTE.name: own_phrase(TASKS_EXECUTE, EXECUTION, end_execution, cancelled_as=TASKS_CANCEL),
    SUBAGENTS_DISPATCH.name: own_phrase(SUBAGENTS_DISPATCH, DISPATCH, end_dispatch, cancelled_as=SUBAGENTS_CANCEL),
}


SPEECH: Final = Speech(
    dialect="roder",
    greet=greet,
    welcome=WELCOME,
    phrases={
        TOOL_CALL.name: TOOL_PHRASE,
        PROVIDER_COMPLETE.name: COMPLETE_PHRASE,
        PROVIDER_STREAM.name: STREAM_PHRASE,
        COMMAND_INVOKE.name: COMMAND_PHRASE,
        **OWN_PHRASES,
    },
    goodbye=lambda _: Saying(SHUTDOWN, {}),
)
