"""Commands: the wire form, lenient decoding of output, and its assignment to a run."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import Raw, ValidationError

from becket.contract.commands import (
    COMMAND_INVOKE,
    COMMAND_OUTPUT,
    CommandDone,
    CommandInvoke,
    CommandOutputEvent,
    CommandOutputParams,
    ErrorText,
    SystemText,
    Table,
    Text,
    decode_command_output,
    decode_command_output_params,
)
from becket.contract.tasks import TASK_READERS


def raw(value: Any) -> Raw:
    return Raw(value if isinstance(value, bytes) else msgspec.json.encode(value))


def test_an_invocation_is_encoded_as_in_the_contract() -> None:
    invoke = CommandInvoke("reindex", ("--all",), "r1")

    assert msgspec.json.encode(invoke) == b'{"command":"reindex","args":["--all"],"request_id":"r1"}'


EVENTS = [
    (Text("hello"), b'{"kind":"text","content":"hello"}'),
    (SystemText(""), b'{"kind":"system","content":""}'),
    (ErrorText("oops"), b'{"kind":"error","content":"oops"}'),
    (
        Table(("id", "size"), (("tiny", "75 MB"), ("base",))),
        b'{"kind":"table","headers":["id","size"],"rows":[["tiny","75 MB"],["base"]]}',
    ),
    (CommandDone(), b'{"kind":"done"}'),
]


@pytest.mark.parametrize(("event", "wire"), EVENTS)
def test_encoded_messages_decode_to_the_same(event: CommandOutputEvent, wire: bytes) -> None:
    params = b'{"request_id":"r1","event":' + wire + b"}"

    assert msgspec.json.encode(CommandOutputParams("r1", event)) == params
    assert decode_command_output(Raw(params)) == event
    assert decode_command_output_params(Raw(params)) == CommandOutputParams("r1", event)


@pytest.mark.parametrize(("event", "wire"), EVENTS)
def test_the_event_may_stand_beside_the_request_id(event: CommandOutputEvent, wire: bytes) -> None:
    params = Raw(b'{"request_id":"r1",' + wire[1:])

    assert decode_command_output(params) == event
    assert decode_command_output_params(params) == CommandOutputParams("r1", event)


def test_unknown_members_are_ignored() -> None:
    nested = {"request_id": "r", "kind": "weird", "other": 1, "event": {"kind": "text", "content": "x", "more": 1}}

    assert decode_command_output(raw(nested)) == Text("x")
    assert decode_command_output(raw({"request_id": "r", "kind": "text", "content": "x", "other": 1})) == Text("x")


@pytest.mark.parametrize(
    ("params", "problem"),
    [
        ([], "command.output params must be a JSON object"),
        ({"event": {"kind": "done"}}, "command.output missing request_id"),
        ({"request_id": 7, "event": {"kind": "done"}}, "command.output missing request_id"),
        ({"request_id": "", "event": {"kind": "done"}}, "command.output request_id must be non-empty"),
        ({"request_id": "r", "event": None, "kind": "done"}, "command.output event must be a JSON object"),
        ({"request_id": "r", "event": {}}, "command.output event missing 'kind'"),
        ({"request_id": "r"}, "command.output event missing 'kind'"),
        ({"request_id": "r", "event": {"kind": "weird"}}, "unknown command.output event kind: weird"),
        ({"request_id": "r", "event": {"kind": "text"}}, "command.output text event missing 'content'"),
        ({"request_id": "r", "kind": "system", "content": 1}, "command.output system event missing 'content'"),
        ({"request_id": "r", "kind": "error"}, "command.output error event missing 'content'"),
        ({"request_id": "r", "kind": "error", "content": ""}, "command.output error content must be non-empty"),
        ({"request_id": "r", "kind": "table", "rows": []}, "command.output table missing 'headers' array"),
        (
            {"request_id": "r", "kind": "table", "headers": [1], "rows": []},
            "command.output table header must be string",
        ),
        ({"request_id": "r", "kind": "table", "headers": []}, "command.output table missing 'rows' array"),
        ({"request_id": "r", "kind": "table", "headers": [], "rows": [1]}, "command.output table row must be array"),
        (
            {"request_id": "r", "event": {"kind": "table", "headers": [], "rows": [["a"], [1]]}},
            "command.output table cell must be string",
        ),
    ],
)
def test_malformed_messages_are_refused_with_the_reason(params: Any, problem: str) -> None:
    with pytest.raises(ValidationError) as caught:
        decode_command_output(raw(params))

    assert str(caught.value) == problem


def test_output_of_another_run_is_distinguished() -> None:
    reader = COMMAND_INVOKE.events[COMMAND_OUTPUT.name]
    call = CommandInvoke("reindex", (), "r1")

    assert reader.belongs is not None
    assert reader.belongs(raw({"request_id": "r1", "event": {"kind": "done"}}), call)
    assert reader.belongs(raw({"kind": "done", "request_id": "r1"}), call)
    assert reader.belongs(raw({"request_id": "r1", "event": "malformed"}), call)
    assert not reader.belongs(raw({"request_id": "r2", "event": {"kind": "done"}}), call)


@pytest.mark.parametrize(
    "params", [{"event": {"kind": "done"}}, {"request_id": ""}, {"request_id": 7}, [], b'{"\xff":1}']
)
def test_output_that_names_no_run_is_counted_by_each_run(params: Any) -> None:
    reader = COMMAND_INVOKE.events[COMMAND_OUTPUT.name]

    assert reader.belongs is not None
    assert reader.belongs(raw(params), CommandInvoke("reindex", (), "r1"))
    with pytest.raises(ValidationError):
        reader.decode(raw(params))


def test_task_events_reach_every_subscriber() -> None:
    assert {name: COMMAND_INVOKE.events[name] for name in TASK_READERS} == dict(TASK_READERS)
    assert all(reader.belongs is None for reader in TASK_READERS.values())


def test_a_command_may_run_without_limit_while_it_sends_output() -> None:
    assert (COMMAND_INVOKE.timeout, COMMAND_INVOKE.idle_timeout) == (None, 60.0)
