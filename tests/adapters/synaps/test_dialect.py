"""The wire of synaps: its frames, its errors, and its host defaults."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from becket.adapters.synaps import SYNAPS
from becket.adapters.synaps.dialect import encode_error, find_meaning
from becket.dialects import find_dialect
from becket.errors import (
    Busy,
    InvalidParams,
    Meaning,
    MethodNotFound,
    PermissionDenied,
    RemoteError,
    RpcError,
    StoreError,
)
from becket.host.restart import GiveUp, Restart, RestartHistory, RestartPolicy, decide_restart
from becket.host.timeouts import DEFAULT_TIMEOUTS
from becket.jsonrpc.calls import InboundRequest, OutboundCall
from becket.jsonrpc.connection import Connection
from becket.limits import DEFAULT_LIMITS


class Waiter:
    """A caller that does nothing: the tests look at the responses."""

    def done(self) -> bool:
        return False

    def set_result(self, result: None, /) -> None:
        raise AssertionError("nobody waits")


@pytest.fixture
def host() -> Connection:
    """A host's end of a link."""
    return SYNAPS.build_connection(DEFAULT_LIMITS)


@pytest.fixture
def extension() -> Connection:
    """An extension's end of a link."""
    return SYNAPS.for_extension().build_connection(DEFAULT_LIMITS)


def open_call(link: Connection, method: str = "tool.call", params: bytes | None = b"{}") -> tuple[OutboundCall, bytes]:
    call = OutboundCall(method, Waiter())
    return call, link.open_call(call, params)


def framed(body: str | bytes, header: str = "Content-Length: {}\r\n\r\n") -> bytes:
    data = body if isinstance(body, bytes) else body.encode()
    return header.format(len(data)).encode() + data


# -- frames


def test_the_dialect_is_found_by_its_name() -> None:
    assert find_dialect("synaps") is SYNAPS


def test_a_host_writes_its_requests_to_the_byte(host: Connection) -> None:
    _, first = open_call(host, "initialize", '{"plugin_id":"ä"}'.encode())
    body = '{"jsonrpc":"2.0","method":"initialize","params":{"plugin_id":"ä"},"id":1}'
    assert first == f"Content-Length: {len(body) + 1}\r\n\r\n{body}".encode()
    _, second = open_call(host, "info.get", None)
    assert second == framed('{"jsonrpc":"2.0","method":"info.get","params":null,"id":2}')


@pytest.mark.parametrize(
    "header",
    [
        "Content-Length: {}\n\n",
        "content-length:{}\r\n\r\n",
        "  CONTENT-LENGTH :  {}  \r\nContent-Type: x\r\nno colon at all\r\n\r\n",
        "Content-Length: 7\r\nContent-Length: {}\r\n\r\n",
    ],
)
def test_headers_are_read_leniently(host: Connection, header: str) -> None:
    call, _ = open_call(host)
    assert host.receive(framed('{"jsonrpc":"2.0","id":1,"result":5}', header)) == [call]


@pytest.mark.parametrize(
    "data",
    [
        b"\r\nContent-Length: 2\r\n\r\n{}",
        b"Content-Type: x\r\n\r\n{}",
        b"Content-Length: two\r\n\r\n{}",
        b"Content-Length: 4194305\r\n\r\n",
        b"X: " + b"y" * 1024,
        b"X: \xff\r\n",
        framed("nothing"),
    ],
    ids=["blank line", "no length", "no number", "large body", "long line", "no UTF-8", "no JSON"],
)
def test_a_bad_frame_ends_the_link(host: Connection, data: bytes) -> None:
    host.receive(data)
    assert host.violation is not None


def test_a_truncated_frame_is_reported(host: Connection) -> None:
    host.receive(b"Content-Length: 10\r\n\r\n{")
    assert host.receive_eof() is not None


# -- errors


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (MethodNotFound("x"), -32601, "method not found: x"),
        (PermissionDenied("memory.write"), -32602, "permission denied: memory.write required"),
        (InvalidParams([("/a", "first"), ("/b", "second")]), -32602, "first"),
        (InvalidParams([]), -32602, "invalid params: "),
        (StoreError(Meaning.DISK_FULL, "1a2b"), -32000, "storage failure, incident 1a2b"),
        (Busy("requests", 3), -32000, "busy: requests, the limit is 3"),
        (RpcError(Meaning.INTERNAL, "internal error", {"incident": "1a2b"}), -32000, "internal error"),
    ],
)
def test_a_host_has_three_error_numbers_and_its_own_messages(
    host: Connection, error: RpcError, code: int, message: str
) -> None:
    (request,) = host.receive(framed('{"jsonrpc":"2.0","id":7,"method":"m","params":{}}'))
    assert isinstance(request, InboundRequest)
    response = msgspec.json.decode(host.reject(request, error).partition(b"\r\n\r\n")[2])
    assert response == {"jsonrpc": "2.0", "id": 7, "error": {"code": code, "message": message}}


def test_a_custom_error_number_is_preserved() -> None:
    error = RpcError(12, "no", {"a": 1})
    assert encode_error(error) is error


def test_an_extension_reports_all_problems(extension: Connection) -> None:
    (request,) = extension.receive(framed('{"jsonrpc":"2.0","method":"m","params":null,"id":7}'))
    assert isinstance(request, InboundRequest)
    response = extension.reject(request, InvalidParams([("/a", "first"), ("/b", "second")]))
    assert b'"message":"invalid params: /a: first; /b: second"' in response


@pytest.mark.parametrize(
    ("code", "message", "meaning"),
    [
        (-32602, "permission denied: memory.write required", Meaning.PERMISSION_DENIED),
        (-32602, "missing or invalid 'key' parameter", Meaning.INVALID_PARAMS),
        (-32601, "method not found: x", Meaning.UNKNOWN_METHOD),
        (-32000, "disk on fire", Meaning.INTERNAL),
        (-32603, "oops", Meaning.INTERNAL),
        (7, "no license", None),
    ],
)
def test_the_number_and_the_text_of_an_error_determine_its_meaning(
    code: int, message: str, meaning: Meaning | None, extension: Connection
) -> None:
    assert find_meaning(code, message) is meaning
    call, _ = open_call(extension, "memory.append")
    error = {"code": code, "message": message}
    extension.receive(framed(msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "error": error})))
    assert isinstance(call.error, RemoteError)
    assert call.error.meaning is meaning


# -- host defaults


def test_hosts_send_one_request_at_a_time_with_the_timeouts_of_synaps() -> None:
    defaults = SYNAPS.host_defaults
    limits = replace(DEFAULT_LIMITS, **defaults.limits, **defaults.host_limits)
    timeouts = replace(DEFAULT_TIMEOUTS, **defaults.timeouts)
    assert limits.outbound_calls == 1
    assert limits.frame == 4 * 1024 * 1024
    assert (timeouts.tool, timeouts.complete, timeouts.total, timeouts.hook) == (120, 30, 30, 5)
    assert (timeouts.info, timeouts.editor, timeouts.shutdown) == (5, 5, 0.5)
    assert defaults.inherited_variables == ("PATH", "HOME", "LANG", "TERM", "XDG_RUNTIME_DIR")
    assert defaults.runs_in_root


def test_harmful_behaviour_is_off_by_default() -> None:
    assert SYNAPS.host_defaults.host_limits["handshake"] > SYNAPS.host_defaults.restart_limits["handshake"] == 10
    assert not SYNAPS.host_defaults.restarts_on_tool_errors
    assert not SYNAPS.host_defaults.kills_before_shutdown


def test_a_program_is_started_three_times_more_each_after_twice_the_delay() -> None:
    policy = replace(RestartPolicy(), **SYNAPS.host_defaults.restart)
    history: Any = RestartHistory()
    delays: list[float] = []
    while True:
        decision = decide_restart(policy, history, now=0.0, random=lambda: 0.5)
        if isinstance(decision, GiveUp):
            break
        assert isinstance(decision, Restart)
        delays.append(decision.delay)
        history = decision.history
    assert delays == [0.25, 0.5, 1.0]
    assert decision.because == "exceeded restart limit (3)"
