"""Pollers: the messages of a tick, its failures, and the tools of a kind."""

from __future__ import annotations

import msgspec
import pytest

from becket.adapters.nexo import (
    POLL_LIST_TOOLS,
    POLL_TICK,
    POLL_TOOL_CALL,
    BadJobConfig,
    Delivery,
    PermanentFailure,
    PollFailure,
    PollTickParams,
    PollTickResult,
    PollToolCallParams,
    TransientFailure,
    classify_failure,
    decode_cursor,
    decode_poller_tools,
    encode_cursor,
)
from becket.contract.tools import Tool
from becket.errors import ERROR_CODES, CallTimeout, RemoteError, RpcError


def test_a_tick_is_sent_with_all_its_members() -> None:
    tick = PollTickParams("rain", "job-1", "ana", None, {"city": "Bogotá"}, "2026-05-04T10:00:00+00:00")

    assert POLL_TICK.name == "poll_tick"
    assert msgspec.to_builtins(tick) == {
        "kind": "rain",
        "job_id": "job-1",
        "agent_id": "ana",
        "cursor": None,
        "config": {"city": "Bogotá"},
        "now": "2026-05-04T10:00:00+00:00",
    }


def test_every_member_of_the_result_of_a_tick_may_be_omitted() -> None:
    found = msgspec.json.decode(
        b'{"items_seen":3,"deliver":[{"channel":"telegram","recipient":"1","payload":{"text":"x"}}],"extra":1}',
        type=PollTickResult,
    )

    assert found == PollTickResult(items_seen=3, deliver=(Delivery("telegram", "1", {"text": "x"}),))
    assert msgspec.json.decode(b"{}", type=PollTickResult) == PollTickResult()


@pytest.mark.parametrize("cursor", [b"", b"7", b"\xff\xfe\x00", b"a longer one"])
def test_a_cursor_is_returned_unchanged(cursor: bytes) -> None:
    assert "=" not in encode_cursor(cursor)
    assert decode_cursor(encode_cursor(cursor)) == cursor


@pytest.mark.parametrize(
    ("cursor", "read"), [(None, None), ("Nw==", b"7"), ("Nw", b"7"), ("x", None), ("é", None), ("__8", b"\xff\xff")]
)
def test_a_cursor_that_cannot_be_decoded_counts_as_absent(cursor: str | None, read: bytes | None) -> None:
    assert decode_cursor(cursor) == read


@pytest.mark.parametrize(
    ("error", "code"),
    [(TransientFailure("503"), -32001), (PermanentFailure("revoked"), -32002), (BadJobConfig("no city"), -32602)],
)
def test_a_poller_fails_with_the_number_of_its_kind(error: RpcError, code: int) -> None:
    assert (error.code if error.meaning is None else ERROR_CODES[error.meaning]) == code


@pytest.mark.parametrize(
    ("code", "fault"),
    [
        (-32001, PollFailure.TRANSIENT),
        (-32002, PollFailure.PERMANENT),
        (-32602, PollFailure.CONFIG),
        (-32603, PollFailure.TRANSIENT),
        (7, PollFailure.TRANSIENT),
    ],
)
def test_the_error_number_determines_what_the_host_does(code: int, fault: PollFailure) -> None:
    assert classify_failure(RemoteError(method="poll_tick", code=code, message="x")) is fault


def test_a_missing_response_is_a_transient_failure() -> None:
    assert classify_failure(CallTimeout("poll_tick", 30)) is PollFailure.TRANSIENT


def test_tools_of_a_poller_are_read_and_invalid_ones_are_skipped() -> None:
    response = (
        b'[{"name":"status","parameters":{"type":"object"}},{"description":"?"},7,{"name":"x","description":"d"}]'
    )

    assert decode_poller_tools(response) == (Tool("status", "", {"type": "object"}), Tool("x", "d", {}))


@pytest.mark.parametrize("response", [b"{}", b"null", b"7", b"\xff", b"["])
def test_a_value_that_is_not_a_list_has_no_tools(response: bytes) -> None:
    assert decode_poller_tools(response) == ()


def test_a_tool_of_a_poller_is_called_by_its_kind_and_name() -> None:
    assert (POLL_LIST_TOOLS.name, POLL_TOOL_CALL.name) == ("poll_list_tools", "poll_tool_call")
    assert msgspec.to_builtins(PollToolCallParams("rain", "status", {"id": "job-1"})) == {
        "kind": "rain",
        "tool_name": "status",
        "args": {"id": "job-1"},
    }
