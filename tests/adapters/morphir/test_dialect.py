"""The lines of Morphir, written and read."""

from __future__ import annotations

from typing import Any

import pytest

from becket.adapters.morphir import MORPHIR
from becket.errors import Meaning, MethodNotFound, RemoteError, RpcError
from becket.framing.content_length import ContentLength
from becket.framing.framing import SkippedFrame
from becket.framing.json_lines import JsonLines
from becket.jsonrpc.calls import InboundRequest, OutboundCall
from becket.jsonrpc.connection import Connection
from becket.jsonrpc.messages import NotificationMessage
from becket.limits import DEFAULT_LIMITS


class Waits:
    """Stands for the caller of a pending call."""

    def done(self) -> bool:
        return False

    def set_result(self, result: None, /) -> None: ...


def call(method: str) -> OutboundCall:
    return OutboundCall(method, Waits())


@pytest.fixture
def host() -> Connection:
    return MORPHIR.build_connection(DEFAULT_LIMITS)


@pytest.fixture
def extension() -> Connection:
    return MORPHIR.for_extension().build_connection(DEFAULT_LIMITS)


def answer(host: Connection, line: bytes) -> OutboundCall:
    """Sends a request and returns the call with this response, whose id is 0."""
    requested = call("transform")
    host.open_call(requested, b"{}")
    host.receive(line + b"\n")
    return requested


# -- out


def test_ids_begin_with_zero_and_there_is_no_version(host: Connection) -> None:
    assert host.open_call(call("initialize"), b'{"a":1}') == b'{"id":0,"method":"initialize","params":{"a":1}}\n'
    assert host.open_call(call("capabilities"), None) == b'{"id":1,"method":"capabilities","params":null}\n'
    assert host.open_call(call("transform"), b"{}") == b'{"id":2,"method":"transform","params":{}}\n'


@pytest.mark.parametrize("params", [b"5", b'"text"', b"true", b"[1]"])
def test_params_may_be_anything(host: Connection, params: bytes) -> None:
    assert host.open_call(call("echo"), params) == b'{"id":0,"method":"echo","params":%b}\n' % params


def test_an_extension_responds_with_a_result_or_a_text_and_notifies_without_an_id(extension: Connection) -> None:
    first, second = extension.receive(b'{"id":2,"method":"a","params":{}}\n{"id":3,"method":"b"}\n')
    assert isinstance(first, InboundRequest)
    assert isinstance(second, InboundRequest)

    assert extension.respond(first, b"null") == b'{"id":2,"result":null}\n'
    assert extension.reject(second, RpcError(Meaning.INVALID_PARAMS, "no `ir`")) == b'{"id":3,"error":"no `ir`"}\n'
    assert extension.encode_notification("log", b"[1]") == b'{"method":"log","params":[1]}\n'


def test_an_unknown_method_is_reported_with_the_usual_message(extension: Connection) -> None:
    (request,) = extension.receive(b'{"id":2,"method":"fly","params":{}}\n')
    assert isinstance(request, InboundRequest)

    assert extension.reject(request, MethodNotFound("fly")) == b'{"id":2,"error":"Unknown method: fly"}\n'


def test_a_failure_names_the_incident_in_the_log(extension: Connection) -> None:
    (request,) = extension.receive(b'{"id":2,"method":"fly","params":{}}\n')
    assert isinstance(request, InboundRequest)

    error = RpcError(Meaning.INTERNAL, "internal error", {"incident": "5f"})
    assert extension.reject(request, error) == b'{"id":2,"error":"internal error, incident 5f"}\n'


# -- in


@pytest.mark.parametrize(
    ("line", "result"),
    [
        (b'{"id":0,"result":{"a":[1]}}', b'{"a":[1]}'),
        (b'{ "id": 0, "result": "x" }', b'"x"'),
        (b'{"result":1,"id":0}', b"1"),
        (b'{"id":0,"result":null}', b"null"),
        (b'{"id":0}', b"null"),  # programs that leave out what is null
        (b'{"id":0,"result":1,"error":null}', b"1"),
        (b'{"id":0,"result":1,"error":null,"more":{}}', b"1"),
        (b'{"jsonrpc":"2.0","id":0,"result":1}', b"1"),
    ],
)
def test_a_result_comes_in_many_forms(host: Connection, line: bytes, result: bytes) -> None:
    responded = answer(host, line)

    assert responded.error is None
    assert responded.result is not None
    assert bytes(responded.result) == result


@pytest.mark.parametrize(
    ("error", "text", "meaning"),
    [
        (b'"Invalid IR"', "Invalid IR", None),
        (b'""', "", None),
        (b'"Unknown method: transform"', "Unknown method: transform", Meaning.UNKNOWN_METHOD),
        (b'"Method not found: x"', "Method not found: x", Meaning.UNKNOWN_METHOD),
        (b'{"code":-32602,"message":"no"}', "no", None),
        (b"{}", "unknown error", None),
        (b"17", "unknown error", None),
    ],
)
def test_an_error_is_a_text(host: Connection, error: bytes, text: str, meaning: Meaning | None) -> None:
    for line in (b'{"id":0,"error":%b}', b'{"id":0,"result":1,"error":%b}'):
        link = MORPHIR.build_connection(DEFAULT_LIMITS)
        failed = answer(link, line % error).error

        assert isinstance(failed, RemoteError)
        assert (failed.message, failed.meaning) == (text, meaning)


def test_responses_in_another_order_go_to_their_own_calls(host: Connection) -> None:
    first, second = call("a"), call("b")
    host.open_call(first, b"{}")
    host.open_call(second, b"{}")

    assert host.receive(b'{"id":1,"result":"b"}\n{"id":0,"result":"a"}\n') == [second, first]


@pytest.mark.parametrize(
    "line",
    [
        b"Loading...",
        b"{broken",
        b"[1,2]",
        b"17",
        b'{"result":1}',
        b'{"id":{},"result":1}',
        b'{"id":7,"method":"ask","params":{}}',  # extensions send their host no requests
        b"\xff\xfe",
    ],
)
def test_an_invalid_message_is_counted_and_skipped(host: Connection, line: bytes) -> None:
    (oddity,) = host.receive(line + b"\n")

    assert isinstance(oddity, SkippedFrame)
    assert host.invalid_messages == 1
    assert (host.violation, host.data_to_send()) == (None, b"")
    assert answer(host, b'{"id":0,"result":1}').result is not None


def test_a_line_that_is_too_long_is_dropped_and_so_are_others() -> None:
    limits = DEFAULT_LIMITS.but(**MORPHIR.host_defaults.limits)
    host = MORPHIR.build_connection(limits)
    for _ in range(3):
        host.receive(b"x" * (limits.frame + 2))
        host.receive(b"x" * limits.frame + b"\n")

    assert host.violation is None
    assert answer(host, b'{"id":0,"result":1}').result is not None


def test_a_flood_of_invalid_messages_does_not_fill_the_log(host: Connection) -> None:
    oddities = host.receive(b"noise\n" * 1_000)

    assert host.invalid_messages == 1_000
    assert len(oddities) == 10
    assert host.violation is None


def test_responses_without_a_request_are_counted(host: Connection) -> None:
    assert host.receive(b'{"id":99,"result":1}\n' * 500) == []
    assert (host.stray_responses, host.violation) == (500, None)


def test_a_line_without_an_id_is_a_notification(host: Connection) -> None:
    line = b'{"method":"log","params":{"level":"info","message":"Processing..."}}\n'

    assert [type(event) for event in host.receive(line)] == [NotificationMessage]


def test_an_extension_passes_over_lines_that_it_cannot_read(extension: Connection) -> None:
    events: list[Any] = extension.receive(b'{oops\n{"id":1,"method":"capabilities","params":{}}\n')

    assert isinstance(events[1], InboundRequest)
    assert extension.data_to_send() == b""


# -- detection


@pytest.mark.parametrize(
    ("frame", "framing", "is_morphir"),
    [
        (b'{"id":0,"method":"initialize","params":{}}', JsonLines, True),
        (b'{"id":2,"method":"capabilities"}', JsonLines, True),
        (b'{"jsonrpc":"2.0","id":0,"method":"initialize"}', JsonLines, False),
        (b'{"id":"0","method":"initialize"}', JsonLines, False),
        (b'{"id":0,"method":"initialize"}', ContentLength, False),
        (b'{"id":0,"result":1}', JsonLines, False),
        (b'{"id":0,"method":"\xff"}', JsonLines, False),
        (b"{oops", JsonLines, False),
    ],
)
def test_a_host_is_detected_by_the_missing_version_of_its_first_line(
    frame: bytes, framing: type, is_morphir: bool
) -> None:
    assert MORPHIR.matches_first_frame is not None
    assert MORPHIR.matches_first_frame(frame, framing) is is_morphir
