"""Commands of the contract, which are tasks of Roder."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import Raw

from becket.adapters.roder import TASKS_CANCEL, TASKS_EXECUTE, CancelTaskParams, ExecuteTaskParams
from becket.adapters.roder.command_mapping import (
    COMMAND_MAPPING as COMMAND,
    COMMAND_STREAM,
    CommandRunDone,
    decode_command_event,
    parse_args,
)
from becket.contract.commands import CommandDone, CommandEvent, CommandInvoke, ErrorText, SystemText, Table, Text
from becket.contract.tasks import TaskEnded, TaskKind, TaskLogged, TaskStarted, TaskUpdated
from becket.dialects.link_state import LinkState, WireRequest
from becket.errors import RequestCancelled, RpcError

RUN = ExecuteTaskParams(executor_id="tidy", execution_id="e-1", task_id="k", input={"args": ["desk"]})
STATE = LinkState("demo")


def text_of(value: object) -> str:
    return msgspec.json.encode(value).decode()


def notifications_of(given: Any) -> list[tuple[str, str]]:
    return [(notification.method, text_of(notification.params)) for notification in given]


def test_a_command_is_a_task_whose_executor_has_its_name() -> None:
    request = COMMAND.encode_request(CommandInvoke("tidy", ("desk", "shelf"), "run-1"), STATE)

    assert request.method is COMMAND_STREAM
    assert text_of(request.params) == (
        '{"executorId":"tidy","executionId":"run-1","taskId":"run-1","input":{"args":["desk","shelf"]}}'
    )


@pytest.mark.parametrize(
    ("event", "messages"),
    [
        ({"type": "output", "stream": "stdout", "chunk": "a"}, Text("a")),
        ({"type": "output", "stream": "stderr", "chunk": "a"}, ErrorText("a")),
        ({"type": "output", "stream": "log", "chunk": "a"}, SystemText("a")),
        ({"type": "completed", "result": {"exit_code": 3, "payload": [1]}}, CommandRunDone([1])),
        ({"type": "failed", "error": "e"}, CommandRunDone(None, "e")),
    ],
)
def test_the_events_of_a_task_are_output_of_a_command(event: dict[str, Any], messages: CommandEvent) -> None:
    raw = Raw(msgspec.json.encode({"executionId": "e-1", "event": event}))

    assert decode_command_event(raw) == messages


def gathered(*events: CommandEvent) -> Any:
    assert COMMAND_STREAM.gather is not None
    run = COMMAND_STREAM.gather(RUN)
    run.on_response(Raw(b'{"executionId":"e-1"}'))
    assert [run.on_event(event) for event in events] == [False] * (len(events) - 1) + [True]
    return run


def test_the_result_of_a_command_is_the_payload_of_its_task() -> None:
    assert gathered(Text("a"), CommandRunDone({"n": 1})).result() == {"n": 1}


def test_a_command_that_failed_raises_its_message() -> None:
    with pytest.raises(RpcError) as caught:
        gathered(CommandRunDone(None, "e")).result()
    assert caught.value.message == "e"


def test_the_acknowledgement_of_another_run_is_refused() -> None:
    assert COMMAND_STREAM.gather is not None
    with pytest.raises(ValueError, match='acknowledged execution "e-2" but "e-1" was requested'):
        COMMAND_STREAM.gather(RUN).on_response(Raw(b'{"executionId":"e-2"}'))


def test_a_task_is_handled_as_a_command() -> None:
    assert [*COMMAND.wire_methods(STATE)] == [TASKS_EXECUTE]
    assert COMMAND.decode_request(WireRequest(TASKS_EXECUTE, RUN), STATE) == CommandInvoke("tidy", ("desk",), "e-1")


@pytest.mark.parametrize(
    ("given", "args"),
    [
        ({"args": ["a", "b"]}, ("a", "b")),
        (["a", "b"], ("a", "b")),
        ("a b", ("a b",)),
        ({}, ()),
        (None, ()),
        ({"args": [1]}, ('{"args":[1]}',)),
        ({"prompt": "x"}, ('{"prompt":"x"}',)),
        ([1], ("[1]",)),
    ],
)
def test_any_input_of_a_task_becomes_arguments(given: object, args: tuple[str, ...]) -> None:
    assert parse_args(given) == args


@pytest.mark.parametrize(
    ("event", "output"),
    [
        (Text("a"), ("stdout", "a")),
        (ErrorText("a"), ("stderr", "a")),
        (SystemText("a"), ("log", "a")),
        (Table(("h", "i"), (("a", "b"), ("c",))), ("stdout", "h\ti\na\tb\nc")),
        (TaskStarted("t", "Tidying", TaskKind.GENERIC), ("log", "Tidying: started")),
        (TaskUpdated("t", 1, 2, "desk"), ("log", "1/2 desk")),
        (TaskUpdated("t", None, None, "desk"), ("log", "desk")),
        (TaskUpdated("t", 1), ("log", "1")),
        (TaskLogged("t", "line"), ("log", "line")),
        (TaskEnded("t"), ("log", "done")),
        (TaskEnded("t", "broke"), ("log", "failed: broke")),
    ],
)
def test_the_output_of_a_command_is_sent_as_that_of_a_task(event: CommandEvent, output: tuple[str, str]) -> None:
    assert COMMAND.encode_event is not None

    received = COMMAND.encode_event(event, WireRequest(TASKS_EXECUTE, RUN), STATE)

    event_text = f'{{"type":"output","stream":"{output[0]}","chunk":{text_of(output[1])}}}'
    assert notifications_of([received]) == [("tasks/event", f'{{"executionId":"e-1","event":{event_text}}}')]


def test_the_end_of_a_command_reports_that_it_is_done() -> None:
    assert COMMAND.encode_event is not None
    assert COMMAND.encode_end_events is not None
    assert COMMAND.encode_ack is not None
    request = WireRequest(TASKS_EXECUTE, RUN)

    assert COMMAND.encode_event(CommandDone(), request, STATE) is None
    assert text_of(COMMAND.encode_ack(request, LinkState("demo", extra=object()))) == '{"executionId":"e-1"}'
    assert notifications_of(COMMAND.encode_end_events({"n": 1}, None, request, STATE)) == [
        ("tasks/event", '{"executionId":"e-1","event":{"type":"completed","result":{"payload":{"n":1}}}}')
    ]
    assert notifications_of(COMMAND.encode_end_events(None, RequestCancelled(), request, STATE)) == [
        ("tasks/event", '{"executionId":"e-1","event":{"type":"failed","error":"cancelled"}}')
    ]


def test_a_command_is_cancelled_by_the_id_of_its_run() -> None:
    cancel = CancelTaskParams(executor_id="tidy", execution_id="e-1")

    assert COMMAND.cancel_method is TASKS_CANCEL
    assert COMMAND.correlation_key(RUN) == COMMAND.correlation_key(cancel) == "e-1"
