"""Agents, tasks, tools and events of Roder as they are sent; how work is gathered and cancelled."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import Raw
from msgspec.structs import replace

from becket.adapters.roder import (
    SUBAGENTS_CANCEL,
    SUBAGENTS_DISPATCH,
    TASKS_CANCEL,
    TASKS_EXECUTE,
    CancelDispatchParams,
    CancelTaskParams,
    DispatchParams,
    EventEnvelope,
    EventsHandleParams,
    EventSource,
    ExecuteTaskParams,
    ExtensionEventBuffer,
    RoderExtensionEvent,
    SubagentCompleted,
    SubagentDefinition,
    SubagentExitReason,
    SubagentFailed,
    SubagentLane,
    SubagentPermissionMode,
    SubagentRequest,
    SubagentResult,
    SubagentStatus,
    TaskCompleted,
    TaskFailed,
    TaskOutput,
    TaskOutputStream,
    TaskResult,
    TaskSpec,
    ToolCallParams,
    ToolCallResult,
    get_dispatch_timeout,
)
from becket.adapters.roder.messages.subagents import DISPATCH_OPERATION as DISPATCHES, decode_subagent_event
from becket.adapters.roder.messages.tasks import TASK_OPERATION as RUNS, decode_task_event
from becket.errors import RpcError
from becket.methods.streams import CancelReason

DISPATCH = DispatchParams(
    dispatcher_id="d",
    dispatch_id="d-1",
    parent_thread_id="t",
    parent_turn_id="u",
    request=SubagentRequest(description="Help", prompt="sweep"),
)
RUN = ExecuteTaskParams(executor_id="x", execution_id="e-1", task_id="k", input={"a": 1})
RESULT = SubagentResult(
    thread_id="t", turn_id="u", agent_type="helper", final_message="done", exit_reason=SubagentExitReason.MAX_TURNS
)
RESULT_TEXT = (
    '{"thread_id":"t","turn_id":"u","agent_type":"helper","model":null,"final_message":"done","usage":null,'
    '"exit_reason":"max_turns","metadata":null}'
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (
            DISPATCH,
            '{"dispatcherId":"d","dispatchId":"d-1","parentThreadId":"t","parentTurnId":"u","request":'
            '{"description":"Help","prompt":"sweep","subagent_type":null,"model":null,"tools":null,'
            '"timeout_seconds":null}}',
        ),
        (
            SubagentRequest(description="d", prompt="p", lane=SubagentLane.SCOUT, inputs={"a": 1}, timeout_seconds=600),
            '{"description":"d","prompt":"p","subagent_type":null,"model":null,"tools":null,"lane":"scout",'
            '"inputs":{"a":1},"timeout_seconds":600}',
        ),
        (
            SubagentDefinition(
                agent_type="a", description="d", tools=("t",), permission_mode=SubagentPermissionMode.AUTO_EDIT
            ),
            '{"agent_type":"a","description":"d","tools":["t"],"model":null,"system_prompt":null,'
            '"permission_mode":"auto_edit","max_turns":null,"max_result_chars":null}',
        ),
        (RESULT, RESULT_TEXT),
        (CancelDispatchParams(dispatcher_id="d", dispatch_id="d-1"), '{"dispatcherId":"d","dispatchId":"d-1"}'),
        (RUN, '{"executorId":"x","executionId":"e-1","taskId":"k","input":{"a":1}}'),
        (
            ExecuteTaskParams(
                executor_id="x", execution_id="e", task_id="k", thread_id="t", workspace_root="/w", input=None
            ),
            '{"executorId":"x","executionId":"e","taskId":"k","threadId":"t","workspaceRoot":"/w","input":null}',
        ),
        (
            TaskSpec(kind="k", description="d", input_schema={}, default_timeout_seconds=9),
            '{"kind":"k","description":"d","input_schema":{},"default_timeout_seconds":9,"metadata":null}',
        ),
        (TaskResult(payload=[1]), '{"payload":[1]}'),
        (TaskResult(exit_code=3), '{"exit_code":3,"payload":null}'),
        (
            ToolCallParams(provider_id="p", tool_name="n", call_id="c", thread_id="t", turn_id="u", arguments={"a": 1}),
            '{"providerId":"p","toolName":"n","callId":"c","threadId":"t","turnId":"u","arguments":{"a":1}}',
        ),
        (ToolCallResult(content="c", is_error=False), '{"content":"c","isError":false}'),
        (ToolCallResult(content="c", is_error=True, data=1), '{"content":"c","isError":true,"data":1}'),
        (
            RoderExtensionEvent(extension_id="x", event_kind="x.y", schema_version=1, payload={}),
            '{"extensionId":"x","eventKind":"x.y","schemaVersion":1,"payload":{}}',
        ),
        (
            EventsHandleParams(
                EventEnvelope(
                    event_id="v",
                    seq=1,
                    timestamp="2026-01-01T00:00:00Z",
                    source=EventSource.CORE,
                    kind="turn.started",
                    event={"TurnStarted": {}},
                )
            ),
            '{"envelope":{"event_id":"v","seq":1,"timestamp":"2026-01-01T00:00:00Z","source":"Core",'
            '"kind":"turn.started","thread_id":null,"turn_id":null,"event":{"TurnStarted":{}}}}',
        ),
    ],
)
def test_messages_have_the_member_names_of_roder_and_omit_the_same_members(value: Any, text: str) -> None:
    assert msgspec.json.encode(value).decode() == text
    assert msgspec.json.decode(text, type=type(value)) == value


def test_the_result_of_a_tool_must_have_an_error_flag() -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(b'{"content":"c"}', type=ToolCallResult)


# -- events of work


@pytest.mark.parametrize(
    ("text", "event"),
    [
        ('{"type":"status","status":"RUNNING"}', SubagentStatus("RUNNING")),
        ('{"type":"status","status":"RUNNING","detail":"d"}', SubagentStatus("RUNNING", "d")),
        (f'{{"type":"completed","result":{RESULT_TEXT}}}', SubagentCompleted(RESULT)),
        ('{"type":"failed","error":"e"}', SubagentFailed("e")),
    ],
)
def test_an_event_of_a_dispatch_is_read(text: str, event: object) -> None:
    raw = Raw(f'{{"dispatchId":"d-1","event":{text}}}'.encode())

    assert DISPATCHES.is_event_of(raw, DISPATCH)
    assert decode_subagent_event(raw) == event


@pytest.mark.parametrize(
    ("text", "event"),
    [
        ('{"type":"output","stream":"stderr","chunk":"c"}', TaskOutput(TaskOutputStream.STDERR, "c")),
        ('{"type":"completed","result":{}}', TaskCompleted(TaskResult())),
        ('{"type":"failed","error":"e"}', TaskFailed("e")),
    ],
)
def test_an_event_of_a_run_is_read(text: str, event: object) -> None:
    raw = Raw(f'{{"executionId":"e-1","event":{text}}}'.encode())

    assert RUNS.is_event_of(raw, RUN)
    assert decode_task_event(raw) == event


@pytest.mark.parametrize("raw", [Raw(b'{"dispatchId":"d-2","executionId":"e-2"}'), Raw(b"{}"), Raw(b"1")])
def test_events_of_other_work_are_ignored(raw: Raw) -> None:
    assert not DISPATCHES.is_event_of(raw, DISPATCH)
    assert not RUNS.is_event_of(raw, RUN)


@pytest.mark.parametrize("read", [decode_subagent_event, decode_task_event])
def test_an_event_of_an_unknown_type_cannot_be_read(read: Any) -> None:
    with pytest.raises(msgspec.ValidationError):
        read(Raw(b'{"dispatchId":"d","executionId":"e","event":{"type":"surprise"}}'))


# -- gathering


def test_a_dispatch_ends_with_the_result_of_the_agent() -> None:
    assert SUBAGENTS_DISPATCH.gather is not None
    work = SUBAGENTS_DISPATCH.gather(DISPATCH)
    work.on_response(Raw(b'{"dispatchId":"d-1"}'))

    assert [work.on_event(event) for event in (SubagentStatus("RUNNING"), SubagentCompleted(RESULT))] == [False, True]
    assert work.result() == RESULT


def test_a_dispatch_that_failed_names_its_dispatcher() -> None:
    assert SUBAGENTS_DISPATCH.gather is not None
    work = SUBAGENTS_DISPATCH.gather(DISPATCH)

    assert work.on_event(SubagentFailed("broke"))
    with pytest.raises(RpcError) as caught:
        work.result()
    assert caught.value.message == "subagent dispatcher d failed: broke"


def test_a_run_ends_with_its_result() -> None:
    assert TASKS_EXECUTE.gather is not None
    work = TASKS_EXECUTE.gather(RUN)
    work.on_response(Raw(b'{"executionId":"e-1"}'))

    output = TaskOutput(TaskOutputStream.LOG, "x")
    assert [work.on_event(event) for event in (output, TaskCompleted(TaskResult(payload=1)))] == [False, True]
    assert work.result() == TaskResult(payload=1)


def test_a_run_that_failed_names_its_executor() -> None:
    assert TASKS_EXECUTE.gather is not None
    work = TASKS_EXECUTE.gather(RUN)

    assert work.on_event(TaskFailed("broke"))
    with pytest.raises(RpcError) as caught:
        work.result()
    assert caught.value.message == "task executor x failed: broke"


@pytest.mark.parametrize(
    ("stream", "call", "what"), [(SUBAGENTS_DISPATCH, DISPATCH, "dispatch"), (TASKS_EXECUTE, RUN, "execution")]
)
def test_the_acknowledgement_of_other_work_is_refused(stream: Any, call: Any, what: str) -> None:
    with pytest.raises(ValueError, match=f'acknowledged {what} "other" but'):
        stream.gather(call).on_response(Raw(b'{"dispatchId":"other","executionId":"other"}'))


# -- cancelling


@pytest.mark.parametrize(
    ("why", "reason"),
    [
        (CancelReason.TIMED_OUT, "dispatch timed out"),
        (CancelReason.LEFT, "dispatch cancelled by host"),
        (CancelReason.FAILED, "dispatch cancelled by host"),
    ],
)
def test_an_abandoned_dispatch_is_cancelled_with_the_reason(why: CancelReason, reason: str) -> None:
    assert SUBAGENTS_DISPATCH.cancel is not None
    method, params = SUBAGENTS_DISPATCH.cancel(DISPATCH, why)

    assert method is SUBAGENTS_CANCEL
    assert params == CancelDispatchParams(dispatcher_id="d", dispatch_id="d-1", reason=reason)


@pytest.mark.parametrize("why", CancelReason)
def test_an_abandoned_run_is_cancelled_by_its_host(why: CancelReason) -> None:
    assert TASKS_EXECUTE.cancel is not None
    method, params = TASKS_EXECUTE.cancel(RUN, why)

    assert method is TASKS_CANCEL
    assert params == CancelTaskParams(executor_id="x", execution_id="e-1", reason="task cancelled by host")


def test_a_dispatch_may_take_half_an_hour_or_the_time_of_its_request() -> None:
    hurried = replace(DISPATCH, request=replace(DISPATCH.request, timeout_seconds=5))

    assert SUBAGENTS_DISPATCH.timeout == get_dispatch_timeout(DISPATCH) == 1800.0
    assert get_dispatch_timeout(hurried) == 5.0


# -- events of extensions


def own_event(number: int) -> RoderExtensionEvent:
    return RoderExtensionEvent(extension_id="x", event_kind="k", schema_version=1, payload=number)


def test_the_first_256_events_are_stored_until_they_are_requested() -> None:
    kept = ExtensionEventBuffer()
    for number in range(300):
        kept.add(own_event(number))

    assert [event.payload for event in kept.drain()] == [*range(256)]
    assert kept.dropped == 44


def test_there_is_room_again_after_a_request() -> None:
    kept = ExtensionEventBuffer(most=1)
    kept.add(own_event(1))
    kept.drain()
    kept.add(own_event(2))

    assert kept.drain() == [own_event(2)]
    assert kept.drain() == []
