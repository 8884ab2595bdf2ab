"""Commands of the contract as tasks of Roder: the executor has the command's name, and the input is `{"args": [...]}`.

What a command puts out are pieces of the task's output; what it tells of tasks of its own are lines of the log.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw

from becket.contract.commands import CommandDone, CommandEvent, ErrorText, Invoke, SystemText, Table, Text
from becket.contract.shapes import is_array, is_object
from becket.contract.tasks import TaskEnded, TaskLogged, TaskStarted, TaskUpdated
from becket.dialects.phrases import Phrase, Saying, Scene, Tale
from becket.dialects.roder.acknowledged import FAILED, LONGEST_WAIT
from becket.dialects.roder.tasks import (
    EXECUTION,
    TASKS_CANCEL,
    TASKS_EVENT,
    TASKS_EXECUTE,
    ExecuteParams,
    TaskCompleted,
    TaskEvent,
    TaskEventParams,
    TaskFailed,
    TaskOutput,
    TaskOutputStream,
    TaskResult,
    cancel_execution,
    read_task_event,
)
from becket.errors import RpcError
from becket.methods.streams import EventReader, Stream

__all__ = ["COMMAND_PHRASE", "COMMAND_RUN", "RunDone", "read_args", "read_command_event", "run_tale"]


# -- the host runs one


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
        EXECUTION.check(answer, self._call)

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
        TASKS_EVENT.name: EventReader(read_command_event, (Text, ErrorText, SystemText, CommandDone), EXECUTION.belongs)
    },
    gather=GatheredRun,
    cancel=cancel_execution,
    idle_timeout=LONGEST_WAIT,
    direction="to-extension",
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


# -- the extension is asked to


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


def tell_of_command(event: CommandEvent, saying: Saying, _: Scene) -> Tale | None:
    output = to_output(event)
    return None if output is None else run_tale(output, saying)


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
    return [run_tale(event, saying)]


def run_tale(event: TaskEvent, saying: Saying) -> Tale:
    params: ExecuteParams = saying.params
    return Tale(TASKS_EVENT.name, TaskEventParams(params.execution_id, event))


COMMAND_PHRASE: Final = Phrase(
    say=say_command,
    heard_as=lambda _: (TASKS_EXECUTE,),
    hear=hear_command,
    tell=tell_of_command,
    acknowledge=EXECUTION.acknowledge,
    end=end_command,
    cancelled_as=TASKS_CANCEL,
    key_of=EXECUTION.id_of,
)
