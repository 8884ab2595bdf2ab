"""How the contract is said to an extension of Roder, and by one: tools, providers, commands and the end.

Tools are `tools/call`, a provider's answer is `inference/streamTurn`, and a command is a task whose executor has its
name and whose input is `{"args": [...]}`. There is no word for hooks, memory or configuration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw

from becket.contract.commands import (
    COMMAND_INVOKE,
    CommandDone,
    CommandEvent,
    ErrorText,
    Invoke,
    SystemText,
    Table,
    Text,
)
from becket.contract.providers import PROVIDER_COMPLETE, PROVIDER_STREAM, ProviderEvent, ProviderRequest, ProviderResult
from becket.contract.shapes import is_array, is_object
from becket.contract.tasks import TaskEnded, TaskLogged, TaskStarted, TaskUpdated
from becket.contract.tools import TOOL_CALL, ToolCall, tool_text
from becket.dialects.phrases import Phrase, Saying, Scene, Tale
from becket.dialects.roder.conversation import (
    PROVIDER_TURN,
    to_event,
    to_provider_request,
    to_request,
    to_result_events,
)
from becket.dialects.roder.handshake import SHUTDOWN, WELCOME, Offer, greet
from becket.dialects.roder.inference import (
    FAILED,
    INFERENCE_EVENT,
    LONGEST_WAIT,
    STREAM_TURN,
    Completed,
    Failed,
    InferenceEvent,
    InferenceEventParams,
    StreamTurn,
    StreamTurnAck,
    TaggedEvent,
    check_acknowledged,
)
from becket.dialects.roder.manifest import RoderManifest
from becket.dialects.roder.own_manifest import OwnSide
from becket.dialects.roder.services import ToolProvider, services_of
from becket.dialects.roder.shown import show_text
from becket.dialects.roder.subagents import (
    SUBAGENTS_CANCEL,
    SUBAGENTS_DISPATCH,
    SUBAGENTS_EVENT,
    DispatchAck,
    DispatchCancel,
    DispatchParams,
    SubagentCompleted,
    SubagentEventParams,
    SubagentFailed,
    SubagentResult,
)
from becket.dialects.roder.tasks import (
    TASKS_CANCEL,
    TASKS_EVENT,
    TASKS_EXECUTE,
    ExecuteAck,
    ExecuteCancel,
    ExecuteParams,
    TaskCompleted,
    TaskEvent,
    TaskEventParams,
    TaskFailed,
    TaskOutput,
    TaskOutputStream,
    TaskResult,
    cancel_execution,
    is_for_execution,
    read_task_event,
)
from becket.dialects.roder.tools import TOOLS_CALL, ToolCallParams, ToolCallResult
from becket.dialects.speech import Speech
from becket.errors import InvalidParams, NotDeclared, RpcError, ToolFailed
from becket.methods.descriptors import Direction, EventReader, Method, Stream

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


def acknowledge_turn(saying: Saying, _: Scene) -> StreamTurnAck:
    return StreamTurnAck(saying.params.stream_id)


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


def turn_of(params: StreamTurn) -> str:
    return params.stream_id


STREAM_PHRASE: Final = Phrase(
    say=say_turn,
    heard_as=lambda _: (STREAM_TURN,),
    hear=hear_turn,
    tell=tell_of_turn,
    acknowledge=acknowledge_turn,
    end=end_turn,
    key_of=turn_of,
)
COMPLETE_PHRASE: Final = Phrase(say=say_turn, heard_as=lambda _: (), hear=hear_turn)
"""Of an answer whole, the host puts it together; an extension is always asked for its pieces."""


# -- commands


def read_command_event(raw: Raw) -> CommandEvent:
    """Returns output as the contract has it, and the end of the run."""
    event = read_task_event(raw)
    if isinstance(event, TaskOutput):
        return OUTPUTS[event.stream](event.chunk)
    if isinstance(event, TaskCompleted):
        return RunDone(event.result.payload)
    return RunDone(None, event.error)


OUTPUTS: Final[Mapping[TaskOutputStream, Callable[[str], CommandEvent]]] = {
    TaskOutputStream.STDOUT: Text,
    TaskOutputStream.STDERR: ErrorText,
    TaskOutputStream.LOG: SystemText,
}


class RunDone(CommandDone, frozen=True):
    """The run is over. What it came to is told by the event itself here, and by the result there."""

    payload: Any = None
    error: str | None = None


class GatheredRun:
    """Waits for the end of a command."""

    def __init__(self, call: ExecuteParams) -> None:
        self._call = call
        self._last = RunDone()

    def acknowledge(self, answer: Raw, /) -> None:
        """Takes the executor's word that it has begun."""
        given = msgspec.json.decode(answer, type=ExecuteAck).execution_id
        check_acknowledged("execution", given, self._call.execution_id)

    def take(self, event: CommandEvent, /) -> bool:
        """Takes an event, and returns whether it is the last one."""
        if isinstance(event, RunDone):
            self._last = event
            return True
        return False

    def result(self) -> Any:
        """Returns what the command came to."""
        if self._last.error is not None:
            raise RpcError(FAILED, self._last.error)
        return self._last.payload


COMMAND_RUN: Final[Stream[ExecuteParams, Any, CommandEvent]] = Stream(
    TASKS_EXECUTE.name,
    ExecuteParams,
    Any,
    events={
        TASKS_EVENT.name: EventReader(read_command_event, (Text, ErrorText, SystemText, CommandDone), is_for_execution)
    },
    gather=GatheredRun,
    cancel=cancel_execution,
    idle_timeout=LONGEST_WAIT,
    direction=Direction.TO_EXTENSION,
    summary=TASKS_EXECUTE.summary,
)
"""`TASKS_EXECUTE` with the events of the contract."""


def say_command(invoke: Invoke, _: Scene) -> Saying:
    params = ExecuteParams(
        executor_id=invoke.command,
        execution_id=invoke.request_id,
        task_id=invoke.request_id,
        input={"args": list(invoke.args)},
    )
    return Saying(COMMAND_RUN, params)


def hear_command(saying: Saying, _: Scene) -> Invoke:
    params: ExecuteParams = saying.params
    return Invoke(params.executor_id, read_args(params.input), params.execution_id)


def read_args(given: Any) -> tuple[str, ...]:
    """Returns the arguments of a command; whatever else a host gives is one argument, as JSON."""
    args = given.get("args") if is_object(given) else given
    if is_array(args) and all(isinstance(one, str) for one in args):
        return tuple(args)
    if isinstance(given, str):
        return (given,)
    return (msgspec.json.encode(given).decode(),) if given else ()


def acknowledge_command(saying: Saying, _: Scene) -> ExecuteAck:
    return ExecuteAck(saying.params.execution_id)


def tell_of_command(event: CommandEvent, saying: Saying, _: Scene) -> Tale | None:
    output = to_output(event)
    return None if output is None else command_tale(output, saying)


def to_output(event: CommandEvent) -> TaskOutput | None:
    """Returns output as Roder has it: tasks are lines of its log."""
    match event:
        case Text(content):
            return TaskOutput(TaskOutputStream.STDOUT, content)
        case ErrorText(content):
            return TaskOutput(TaskOutputStream.STDERR, content)
        case SystemText(content):
            return TaskOutput(TaskOutputStream.LOG, content)
        case Table(headers, rows):
            return TaskOutput(TaskOutputStream.STDOUT, "\n".join("\t".join(row) for row in (headers, *rows)))
        case TaskStarted():
            return TaskOutput(TaskOutputStream.LOG, f"{event.label}: started")
        case TaskUpdated():
            return TaskOutput(TaskOutputStream.LOG, describe_update(event))
        case TaskLogged():
            return TaskOutput(TaskOutputStream.LOG, event.line)
        case TaskEnded():
            return TaskOutput(TaskOutputStream.LOG, "done" if not event.error else f"failed: {event.error}")
        case _:
            return None


def describe_update(update: TaskUpdated) -> str:
    far = "" if update.current is None else str(update.current)
    far += "" if update.total is None else f"/{update.total}"
    return " ".join(part for part in (far, update.message) if part)


def end_command(result: Any, error: RpcError | None, saying: Saying, _: Scene) -> list[Tale]:
    event = TaskCompleted(TaskResult(payload=result)) if error is None else TaskFailed(error.message)
    return [command_tale(event, saying)]


def command_tale(event: TaskEvent, saying: Saying) -> Tale:
    params: ExecuteParams = saying.params
    return Tale(TASKS_EVENT.name, TaskEventParams(params.execution_id, event))


def execution_of(params: ExecuteParams | ExecuteCancel) -> str:
    return params.execution_id


COMMAND_PHRASE: Final = Phrase(
    say=say_command,
    heard_as=lambda _: (TASKS_EXECUTE,),
    hear=hear_command,
    tell=tell_of_command,
    acknowledge=acknowledge_command,
    end=end_command,
    cancelled_as=TASKS_CANCEL,
    key_of=execution_of,
)


# -- what the contract has no word for: acknowledged, ended and cancelled for the author, who returns the result


def own_phrase(
    method: Method[Any, Any],
    acknowledge: Callable[[Saying, Scene], Any],
    end: Callable[[Any, RpcError | None, Saying, Scene], Iterable[Tale]],
    *,
    key_of: Callable[[Any], str],
    cancelled_as: Method[Any, Any] | None = None,
) -> Phrase:
    return Phrase(
        say=lambda params, _: Saying(method, params),
        heard_as=lambda _: (method,),
        hear=lambda saying, _: saying.params,
        acknowledge=acknowledge,
        end=end,
        cancelled_as=cancelled_as,
        key_of=key_of,
    )


def end_own_turn(result: Completed, error: RpcError | None, saying: Saying, _: Scene) -> list[Tale]:
    return [turn_tale(result if error is None else Failed(error.message), saying)]


def end_execution(result: TaskResult, error: RpcError | None, saying: Saying, _: Scene) -> list[Tale]:
    return [command_tale(TaskCompleted(result) if error is None else TaskFailed(error.message), saying)]


def acknowledge_dispatch(saying: Saying, _: Scene) -> DispatchAck:
    return DispatchAck(saying.params.dispatch_id)


def end_dispatch(result: SubagentResult, error: RpcError | None, saying: Saying, _: Scene) -> list[Tale]:
    event = SubagentCompleted(result) if error is None else SubagentFailed(error.message)
    return [Tale(SUBAGENTS_EVENT.name, SubagentEventParams(saying.params.dispatch_id, event))]


def dispatch_of(params: DispatchParams | DispatchCancel) -> str:
    return params.dispatch_id


OWN_PHRASES: Final = {
    STREAM_TURN.name: own_phrase(STREAM_TURN, acknowledge_turn, end_own_turn, key_of=turn_of),
    TASKS_EXECUTE.name: own_phrase(
        TASKS_EXECUTE, acknowledge_command, end_execution, cancelled_as=TASKS_CANCEL, key_of=execution_of
    ),
    SUBAGENTS_DISPATCH.name: own_phrase(
        SUBAGENTS_DISPATCH,
        acknowledge_dispatch,
        end_dispatch,
        cancelled_as=SUBAGENTS_CANCEL,
        key_of=dispatch_of,
    ),
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
