"""Maps contract commands to Roder tasks.

Output of a command becomes output of the task; its own tasks become log lines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw

from becket.adapters.roder.messages.operations import MAX_IDLE, OPERATION_FAILED_CODE
from becket.adapters.roder.messages.tasks import (
    TASK_OPERATION,
    TASKS_CANCEL,
    TASKS_EVENT,
    TASKS_EXECUTE,
    ExecuteTaskParams,
    TaskCompleted,
    TaskOutput,
    TaskOutputStream,
    TaskResult,
    build_task_cancel,
    decode_task_event,
)
from becket.contract.commands import CommandDone, CommandEvent, CommandInvoke, ErrorText, SystemText, Table, Text
from becket.contract.json_narrowing import is_array, is_object
from becket.contract.tasks import TaskEnded, TaskLogged, TaskStarted, TaskUpdated
from becket.dialects.link_state import LinkState, WireNotification, WireRequest
from becket.dialects.mapping import MethodMapping
from becket.errors import RpcError
from becket.methods.streams import EventReader, Stream

__all__ = [
    "COMMAND_MAPPING",
    "COMMAND_STREAM",
    "CommandRunDone",
    "decode_command_event",
    "parse_args",
]


# -- host


def decode_command_event(raw: Raw) -> CommandEvent:
    """Returns an event of a task as one of the contract."""
    event = decode_task_event(raw)
    if isinstance(event, TaskOutput):
        return OUTPUT_EVENTS[event.stream](event.chunk)
    if isinstance(event, TaskCompleted):
        return CommandRunDone(event.result.payload)
    return CommandRunDone(None, event.error)


OUTPUT_EVENTS: Final[Mapping[TaskOutputStream, Callable[[str], CommandEvent]]] = {
    TaskOutputStream.STDOUT: Text,
    TaskOutputStream.STDERR: ErrorText,
    TaskOutputStream.LOG: SystemText,
}


class CommandRunDone(CommandDone, frozen=True):
    """End of a run. Roder sends the outcome with this event, the contract with the result."""

    payload: Any = None
    error: str | None = None


class CommandCollector:
    """Waits for the end of a command."""

    def __init__(self, call: ExecuteTaskParams) -> None:
        self._call = call
        self._last = CommandRunDone()

    def on_response(self, response: Raw, /) -> None:
        """Checks the executor's acknowledgement."""
        TASK_OPERATION.check_ack(response, self._call)

    def on_event(self, event: CommandEvent, /) -> bool:
        """Adds an event; returns whether it is the last one."""
        if isinstance(event, CommandRunDone):
            self._last = event
            return True
        return False

    def result(self) -> Any:
        """Returns the result of the command."""
        if self._last.error is not None:
            raise RpcError(OPERATION_FAILED_CODE, self._last.error)
        return self._last.payload


COMMAND_STREAM: Final[Stream[ExecuteTaskParams, Any, CommandEvent]] = Stream(
    TASKS_EXECUTE.name,
    ExecuteTaskParams,
    Any,
    events={
        TASKS_EVENT.name: EventReader(
            decode_command_event, (Text, ErrorText, SystemText, CommandDone), TASK_OPERATION.is_event_of
        )
    },
    gather=CommandCollector,
    cancel=build_task_cancel,
    idle_timeout=MAX_IDLE,
    direction="to-extension",
    summary=TASKS_EXECUTE.summary,
)
"""`TASKS_EXECUTE` with the events of the contract."""


def encode_command(invoke: CommandInvoke, _: LinkState) -> WireRequest:
    params = ExecuteTaskParams(
        executor_id=invoke.command,
        execution_id=invoke.request_id,
        task_id=invoke.request_id,
        input={"args": list(invoke.args)},
    )
    return WireRequest(COMMAND_STREAM, params)


# -- extension


def decode_command(request: WireRequest, _: LinkState) -> CommandInvoke:
    params: ExecuteTaskParams = request.params
    return CommandInvoke(params.executor_id, parse_args(params.input), params.execution_id)


def parse_args(input: Any) -> tuple[str, ...]:
    """Returns the arguments of a command; any other input becomes one argument, as JSON."""
    args = input.get("args") if is_object(input) else input
    if is_array(args) and all(isinstance(one, str) for one in args):
        return tuple(args)
    if isinstance(input, str):
        return (input,)
    return (msgspec.json.encode(input).decode(),) if input else ()


def encode_command_event(event: CommandEvent, request: WireRequest, _: LinkState) -> WireNotification | None:
    output = build_task_output(event)
    return None if output is None else TASK_OPERATION.build_notification(output, request)


def build_task_output(event: CommandEvent) -> TaskOutput | None:
    """Returns an event of the contract as one of Roder; tasks become log lines."""
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
            return TaskOutput(TaskOutputStream.LOG, format_update(event))
        case TaskLogged():
            return TaskOutput(TaskOutputStream.LOG, event.line)
        case TaskEnded():
            return TaskOutput(TaskOutputStream.LOG, "done" if not event.error else f"failed: {event.error}")
        case _:
            return None


def format_update(update: TaskUpdated) -> str:
    far = "" if update.current is None else str(update.current)
    far += "" if update.total is None else f"/{update.total}"
    return " ".join(part for part in (far, update.message) if part)


def encode_command_end(
    result: Any, error: RpcError | None, request: WireRequest, state: LinkState
) -> list[WireNotification]:
    return TASK_OPERATION.encode_end(TaskResult(payload=result), error, request, state)


COMMAND_MAPPING: Final = MethodMapping(
    encode_request=encode_command,
    wire_methods=lambda _: (TASKS_EXECUTE,),
    decode_request=decode_command,
    encode_event=encode_command_event,
    encode_ack=TASK_OPERATION.encode_ack,
    encode_end_events=encode_command_end,
    cancel_method=TASKS_CANCEL,
    correlation_key=TASK_OPERATION.get_id,
)
