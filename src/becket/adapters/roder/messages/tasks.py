"""Roder task messages: spec, execute, events and cancellation.

A run is acknowledged with its id; the last event is `completed` or `failed`. It can be cancelled.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Final, TypeAlias

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from becket.adapters.roder.messages.operations import MAX_IDLE, OperationKind
from becket.methods.descriptors import Method, Notification
from becket.methods.streams import CancelReason, EventReader, Stream

__all__ = [
    "TASKS_CANCEL",
    "TASKS_EVENT",
    "TASKS_EXECUTE",
    "TASKS_SPEC",
    "TASK_OPERATION",
    "CancelTaskParams",
    "ExecuteTaskAck",
    "ExecuteTaskParams",
    "RoderTaskEvent",
    "TaskCompleted",
    "TaskEventParams",
    "TaskFailed",
    "TaskOutput",
    "TaskOutputStream",
    "TaskResult",
    "TaskSpec",
    "TaskSpecParams",
    "TaskSpecResult",
    "build_task_cancel",
    "decode_task_event",
]


# -- specification


class TaskSpec(Struct, frozen=True, kw_only=True):
    """Description of an executor, with the JSON Schema of its input."""

    kind: str
    description: str
    input_schema: Any
    default_timeout_seconds: Annotated[int, Meta(ge=0)] | UnsetType | None = UNSET
    metadata: Any = None


class TaskSpecParams(Struct, frozen=True, rename="camel"):
    """Params of `tasks/spec`."""

    executor_id: str


class TaskSpecResult(Struct, frozen=True):
    """Result of `tasks/spec`."""

    spec: TaskSpec


TASKS_SPEC: Final = Method(
    "tasks/spec",
    TaskSpecParams,
    TaskSpecResult,
    timeout=30.0,
    direction="to-extension",
    summary="Returns the specification of an executor.",
)


# -- execution


class ExecuteTaskParams(Struct, frozen=True, kw_only=True, rename="camel"):
    """Params of a run, whose events have the execution id."""

    executor_id: str
    execution_id: str
    task_id: str
    thread_id: str | UnsetType | None = UNSET
    turn_id: str | UnsetType | None = UNSET
    workspace_root: str | UnsetType | None = UNSET
    input: Any


class ExecuteTaskAck(Struct, frozen=True, rename="camel"):
    """Acknowledgement of a run, with the given id."""

    execution_id: str


class CancelTaskParams(Struct, frozen=True, kw_only=True, rename="camel"):
    """Params of the cancellation of a run."""

    executor_id: str
    execution_id: str
    reason: str | UnsetType | None = UNSET


TASKS_CANCEL: Final[Method[CancelTaskParams, Any]] = Method(
    "tasks/cancel",
    CancelTaskParams,
    Any,
    timeout=30.0,
    direction="to-extension",
    summary="Cancels a run of an executor.",
)


# -- events


class TaskOutputStream(StrEnum):
    """Stream of a part of output."""

    STDOUT = "stdout"
    STDERR = "stderr"
    LOG = "log"


class TaskResult(Struct, frozen=True, kw_only=True):
    """The result of a run."""

    exit_code: Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)] | UnsetType | None = UNSET
    payload: Any = None


class TaskOutput(Struct, frozen=True, tag_field="type", tag="output"):
    """A part of output."""

    stream: TaskOutputStream
    chunk: str


class TaskCompleted(Struct, frozen=True, tag_field="type", tag="completed"):
    """The last event of a successful run."""

    result: TaskResult


class TaskFailed(Struct, frozen=True, tag_field="type", tag="failed"):
    """The last event of a failed run."""

    error: str


RoderTaskEvent: TypeAlias = TaskOutput | TaskCompleted | TaskFailed


class TaskEventParams(Struct, frozen=True, rename="camel"):
    """Params of an event notification: the event and the id of its run."""

    execution_id: str
    event: RoderTaskEvent


TASKS_EVENT: Final = Notification(
    "tasks/event", TaskEventParams, direction="to-host", summary="The output of a run, and its end."
)


TASK_OPERATION: Final = OperationKind(
    name="execution",
    ack_type=ExecuteTaskAck,
    get_id=lambda params: params.execution_id,
    event=TASKS_EVENT,
    completed=TaskCompleted,
    failed=TaskFailed,
    explain=lambda call, event: f"task executor {call.executor_id} failed: {event.error}",
    complete=TaskCompleted,
    get_result=lambda event: event.result,
)


def decode_task_event(raw: Raw) -> RoderTaskEvent:
    """Returns the event; raises `msgspec.ValidationError` for one that is malformed."""
    return msgspec.json.decode(raw, type=TaskEventParams).event


def build_task_cancel(call: ExecuteTaskParams, _: CancelReason) -> tuple[Method[Any, Any], CancelTaskParams]:
    """Returns the params that cancel a run."""
    reason = "task cancelled by host"
    return TASKS_CANCEL, CancelTaskParams(executor_id=call.executor_id, execution_id=call.execution_id, reason=reason)


TASKS_EXECUTE: Final[Stream[ExecuteTaskParams, TaskResult, RoderTaskEvent]] = Stream(
    "tasks/execute",
    ExecuteTaskParams,
    TaskResult,
    events={
        TASKS_EVENT.name: EventReader(
            decode_task_event, (TaskOutput, TaskCompleted, TaskFailed), TASK_OPERATION.is_event_of
        )
    },
    gather=TASK_OPERATION.collect,
    cancel=build_task_cancel,
    idle_timeout=MAX_IDLE,
    direction="to-extension",
    summary="Runs a task; its output comes as events.",
)
