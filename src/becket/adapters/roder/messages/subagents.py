"""Roder subagent messages: definitions, dispatch, events and cancellation.

A dispatch is acknowledged with its id; the last event is `completed` or `failed`. It can be cancelled.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Final, TypeAlias

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from becket.adapters.roder.messages.inference import TokenUsage
from becket.adapters.roder.messages.operations import MAX_IDLE, OperationKind
from becket.methods.descriptors import Method, Notification
from becket.methods.streams import CancelReason, EventReader, Stream

__all__ = [
    "DISPATCH_OPERATION",
    "DISPATCH_TIMEOUT",
    "SUBAGENTS_CANCEL",
    "SUBAGENTS_DEFINITIONS",
    "SUBAGENTS_DISPATCH",
    "SUBAGENTS_EVENT",
    "CancelDispatchParams",
    "DispatchAck",
    "DispatchParams",
    "ListDefinitionsParams",
    "ListDefinitionsResult",
    "SubagentCompleted",
    "SubagentDefinition",
    "SubagentEvent",
    "SubagentEventParams",
    "SubagentExitReason",
    "SubagentFailed",
    "SubagentLane",
    "SubagentPermissionMode",
    "SubagentRequest",
    "SubagentResult",
    "SubagentStatus",
    "get_dispatch_timeout",
]

DISPATCH_TIMEOUT: Final = MAX_IDLE  # for the whole dispatch; remote agents take long, and a request may set less

Count = Annotated[int, Meta(ge=0)]


# -- definitions


class SubagentPermissionMode(StrEnum):
    """What an agent may do without consent."""

    READ_ONLY = "read_only"
    DEFAULT = "default"
    AUTO_EDIT = "auto_edit"


class SubagentDefinition(Struct, frozen=True, kw_only=True):
    """A type of agent."""

    agent_type: str
    description: str
    tools: tuple[str, ...]
    model: str | None = None
    system_prompt: str | None = None
    permission_mode: SubagentPermissionMode
    max_turns: Count | None = None
    max_result_chars: Count | None = None


class ListDefinitionsParams(Struct, frozen=True, rename="camel"):
    """Params of the request for a dispatcher's agents."""

    dispatcher_id: str


class ListDefinitionsResult(Struct, frozen=True):
    """The agents of a dispatcher."""

    definitions: tuple[SubagentDefinition, ...]


SUBAGENTS_DEFINITIONS: Final = Method(
    "subagents/definitions",
    ListDefinitionsParams,
    ListDefinitionsResult,
    timeout=30.0,
    direction="to-extension",
    summary="Returns the agents of a dispatcher.",
)


# -- dispatch


class SubagentLane(StrEnum):
    """Kind of a task."""

    SCOUT = "scout"
    EDITOR = "editor"
    REVIEWER = "reviewer"
    RUNNER = "runner"


class SubagentRequest(Struct, frozen=True, kw_only=True):
    """A task for an agent."""

    description: str
    prompt: str
    subagent_type: str | None = None
    model: str | None = None
    provider: str | UnsetType | None = UNSET
    tools: tuple[str, ...] | None = None
    lane: SubagentLane | UnsetType | None = UNSET
    max_concurrent: Count | UnsetType | None = UNSET
    allowed_tools: tuple[str, ...] | UnsetType | None = UNSET
    parent_deadline_seconds: Count | UnsetType | None = UNSET
    inputs: Any = UNSET
    timeout_seconds: Count | None = None


class DispatchParams(Struct, frozen=True, kw_only=True, rename="camel"):
    """Params of a dispatch, whose events have the dispatch id."""

    dispatcher_id: str
    dispatch_id: str
    parent_thread_id: str
    parent_turn_id: str
    request: SubagentRequest


def get_dispatch_timeout(params: DispatchParams) -> float:
    """Returns the timeout of a dispatch in seconds: that of its request, or half an hour.

    `peer.stream(SUBAGENTS_DISPATCH, params, timeout=dispatch_timeout(params))` cancels it then."""
    seconds = params.request.timeout_seconds
    return DISPATCH_TIMEOUT if seconds is None else float(seconds)


class DispatchAck(Struct, frozen=True, rename="camel"):
    """Acknowledgement of a dispatch, with the given id."""

    dispatch_id: str


class CancelDispatchParams(Struct, frozen=True, kw_only=True, rename="camel"):
    """Params of the cancellation of a dispatch."""

    dispatcher_id: str
    dispatch_id: str
    reason: str | UnsetType | None = UNSET


SUBAGENTS_CANCEL: Final[Method[CancelDispatchParams, Any]] = Method(
    "subagents/cancel",
    CancelDispatchParams,
    Any,
    timeout=30.0,
    direction="to-extension",
    summary="Cancels a task of a dispatcher.",
)


# -- events


class SubagentExitReason(StrEnum):
    """Why an agent has ended."""

    COMPLETED = "completed"
    MAX_TURNS = "max_turns"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    FAILED = "failed"


class SubagentResult(Struct, frozen=True, kw_only=True):
    """The result of an agent."""

    thread_id: str
    turn_id: str
    agent_type: str
    model: str | None = None
    final_message: str
    usage: TokenUsage | None = None
    exit_reason: SubagentExitReason
    transcript: Any = UNSET
    metadata: Any = None


class SubagentStatus(Struct, frozen=True, tag_field="type", tag="status"):
    """Progress of a dispatch."""

    status: str
    detail: str | UnsetType | None = UNSET


class SubagentCompleted(Struct, frozen=True, tag_field="type", tag="completed"):
    """The last event of a successful dispatch."""

    result: SubagentResult


class SubagentFailed(Struct, frozen=True, tag_field="type", tag="failed"):
    """The last event of a failed dispatch."""

    error: str


SubagentEvent: TypeAlias = SubagentStatus | SubagentCompleted | SubagentFailed


class SubagentEventParams(Struct, frozen=True, rename="camel"):
    """Params of an event notification: the event and the id of its dispatch."""

    dispatch_id: str
    event: SubagentEvent


SUBAGENTS_EVENT: Final = Notification(
    "subagents/event", SubagentEventParams, direction="to-host", summary="The progress of a task."
)


DISPATCH_OPERATION: Final = OperationKind(
    name="dispatch",
    ack_type=DispatchAck,
    get_id=lambda params: params.dispatch_id,
    event=SUBAGENTS_EVENT,
    completed=SubagentCompleted,
    failed=SubagentFailed,
    explain=lambda call, event: f"subagent dispatcher {call.dispatcher_id} failed: {event.error}",
    complete=SubagentCompleted,
    get_result=lambda event: event.result,
)


def decode_subagent_event(raw: Raw) -> SubagentEvent:
    """Returns the event; raises `msgspec.ValidationError` for one that is malformed."""
    return msgspec.json.decode(raw, type=SubagentEventParams).event


CANCEL_REASONS: Final = {
    CancelReason.TIMED_OUT: "dispatch timed out",
    CancelReason.LEFT: "dispatch cancelled by host",
    CancelReason.FAILED: "dispatch cancelled by host",
}


def build_dispatch_cancel(call: DispatchParams, reason: CancelReason) -> tuple[Method[Any, Any], CancelDispatchParams]:
    """Returns the params that cancel a dispatch."""
    params = CancelDispatchParams(
        dispatcher_id=call.dispatcher_id, dispatch_id=call.dispatch_id, reason=CANCEL_REASONS[reason]
    )
    return SUBAGENTS_CANCEL, params


SUBAGENTS_DISPATCH: Final[Stream[DispatchParams, SubagentResult, SubagentEvent]] = Stream(
    "subagents/dispatch",
    DispatchParams,
    SubagentResult,
    events={
        SUBAGENTS_EVENT.name: EventReader(
            decode_subagent_event, (SubagentStatus, SubagentCompleted, SubagentFailed), DISPATCH_OPERATION.is_event_of
        )
    },
    gather=DISPATCH_OPERATION.collect,
    cancel=build_dispatch_cancel,
    timeout=DISPATCH_TIMEOUT,
    idle_timeout=DISPATCH_TIMEOUT,
    direction="to-extension",
    summary="Runs a task by an agent; its progress comes as events.",
)
