"""The wire of nexo, byte for byte for host and extension, and its host defaults."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import Raw
from msgspec.structs import replace

from becket.adapters.nexo import NEXO, admin_method, to_capability, to_permission
from becket.adapters.nexo.admin import encode_error
from becket.contract.handshake import HostInfo
from becket.dialects.host_defaults import EnvironmentContext
from becket.errors import InvalidParams, Meaning, PermissionDenied, RemoteError
from becket.framing.content_length import ContentLength
from becket.framing.framing import SkippedFrame
from becket.framing.json_lines import JsonLines
from becket.host.breaker import BreakerPolicy
from becket.host.restart import Restart, RestartHistory, RestartPolicy, decide_restart
from becket.host.timeouts import DEFAULT_TIMEOUTS
from becket.jsonrpc.calls import InboundRequest, OutboundCall
from becket.jsonrpc.connection import Connection
from becket.jsonrpc.messages import Failure, Success
from becket.jsonrpc.wire_format import WireFormatCodec
from becket.limits import DEFAULT_LIMITS

assert NEXO.wire_format is not None
CODEC = WireFormatCodec(DEFAULT_LIMITS, NEXO.wire_format)
HELLO = b'{"jsonrpc":"2.0","method":"initialize","params":{"agent_version":"0.1.0","extension_id":"weather"},"id":0}'


class Waiter:
    """A caller that does nothing: the tests look at the responses."""

    def done(self) -> bool:
        return False

    def set_result(self, result: None, /) -> None:
        raise AssertionError("nobody waits")


def open_call(link: Connection, method: str = "tools/call", params: bytes | None = b"{}") -> tuple[OutboundCall, bytes]:
    call = OutboundCall(method, Waiter())
    return call, link.open_call(call, params)


@pytest.fixture
def host() -> Connection:
    """A host's end of a link."""
    return NEXO.build_connection(DEFAULT_LIMITS)


@pytest.fixture
def extension() -> Connection:
    """An extension's end of a link."""
    return NEXO.for_extension().build_connection(DEFAULT_LIMITS)


# -- the host's end


def test_ids_begin_with_zero_and_stand_last(host: Connection) -> None:
    _, first = open_call(host, "initialize", b'{"agent_version":"0.1.0","extension_id":"weather"}')
    _, second = open_call(host, "tools/list")

    assert first == HELLO + b"\n"
    assert second == b'{"jsonrpc":"2.0","method":"tools/list","params":{},"id":1}\n'


@pytest.mark.parametrize(
    ("response", "result"),
    [
        (b'{"jsonrpc":"2.0","id":0,"result":7}', b"7"),
        (b'{"jsonrpc":"2.0","id":0,"result":7}\r', b"7"),
        (b'{"id":0,"result":7}', b"7"),
        (b'{"jsonrpc":"2.0","id":0,"result":7,"error":null}', b"7"),
        (b'{"jsonrpc":"2.0","id":0,"result":7,"error":{"code":1,"message":"m"}}', b"7"),
        (b'{"jsonrpc":"2.0","id":0,"error":null}', b"null"),
        (b'{"jsonrpc":"2.0","id":0,"result":null}', b"null"),
        (b'{"jsonrpc":"2.0","id":0}', b"null"),
    ],
)
def test_a_result_wins_and_a_missing_one_is_null(response: bytes, result: bytes) -> None:
    [frame] = JsonLines().feed(response + b"\n")
    assert not isinstance(frame, SkippedFrame)

    assert CODEC.decode(frame) == Success(b"0", Raw(result))


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (b'{"code":-32602,"message":"no city","data":{"a":1}}', -32602, "no city"),
        (b'{"code":-32000,"message":""}', -32000, ""),
        (b'{"message":"m"}', 0, "m"),
    ],
)
def test_an_error_has_a_number_and_a_message(error: bytes, code: int, message: str) -> None:
    failure = CODEC.decode(b'{"jsonrpc":"2.0","id":0,"result":null,"error":%b}' % error)

    assert isinstance(failure, Failure)
    assert (failure.code, failure.message) == (code, message)


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(b"Loading model...", id="text"),
        pytest.param(b'{"jsonrpc":', id="half a message"),
        pytest.param(b"[]", id="a batch"),
        pytest.param(b"7", id="a number"),
        pytest.param(b'{"jsonrpc":"2.0","id":"7","result":1}', id="an answer by a text"),
        pytest.param(b'{"jsonrpc":"2.0","id":-1,"result":1}', id="a negative id"),
        pytest.param(b'{"jsonrpc":"2.0","id":99,"result":1}', id="an answer to nothing"),
        pytest.param(b'{"jsonrpc":"2.0","id":0,"method":"memory.append","params":{}}', id="a request by a number"),
        pytest.param(b'{"jsonrpc":"2.0","id":"x:1","method":"nexo/admin/reload"}', id="a request by another text"),
        pytest.param(b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}', id="a complaint"),
        pytest.param(b"\xff\xfe", id="no UTF-8"),
    ],
)
def test_an_invalid_line_is_skipped_and_gets_no_response(host: Connection, line: bytes) -> None:
    call, _ = open_call(host)

    events = host.receive(line + b"\n", 0.0)

    assert [event for event in events if not isinstance(event, SkippedFrame)] == []
    assert host.data_to_send() == b""
    assert host.violation is None
    host.receive(b'{"jsonrpc":"2.0","id":0,"result":1}\n', 0.0)
    assert call.result is not None


def test_a_line_beyond_the_limit_is_dropped_and_so_are_others_however_long() -> None:
    limits = DEFAULT_LIMITS.but(**NEXO.host_defaults.limits).but(frame=64)
    host = NEXO.build_connection(limits)
    call, _ = open_call(host)

    for size in (100, 100, DEFAULT_LIMITS.skipped_bytes + 1, 100):
        host.receive(b"x" * size, 0.0)
        host.receive(b"\n", 0.0)
    host.receive(b'{"jsonrpc":"2.0","id":0,"result":1}\n', 0.0)

    assert host.data_to_send() == b""
    assert call.result is not None


def test_requests_of_an_extension_are_recognised_by_their_ids_and_get_responses_under_these(host: Connection) -> None:
    [request] = host.receive(b'{"jsonrpc":"2.0","id":"app:01HX","method":"nexo/admin/agents/list"}\n', 0.0)

    assert isinstance(request, InboundRequest)
    assert request.method == "nexo/admin/agents/list"
    assert host.respond(request, b'{"agents":[]}') == b'{"jsonrpc":"2.0","id":"app:01HX","result":{"agents":[]}}\n'


def test_a_capability_that_is_not_granted_is_refused_with_the_message_of_nexo(host: Connection) -> None:
    listing = admin_method("agents/list", "agents_crud")
    [request] = host.receive(b'{"jsonrpc":"2.0","id":"app:1","method":"nexo/admin/agents/list"}\n', 0.0)
    assert isinstance(request, InboundRequest)
    assert listing.requires is not None

    response = host.reject(request, PermissionDenied(listing.requires, method=listing.name, extension="creator"))

    assert msgspec.json.decode(response) == {
        "jsonrpc": "2.0",
        "id": "app:1",
        "error": {
            "code": -32004,
            "message": "capability_not_granted",
            "data": {"capability": "agents_crud", "microapp_id": "creator", "method": "nexo/admin/agents/list"},
        },
    }


# -- the extension's end


def test_requests_of_an_extension_have_ids_that_begin_with_app(extension: Connection) -> None:
    call, requested = open_call(extension, "nexo/admin/agents/list")

    assert requested == b'{"jsonrpc":"2.0","id":"app:1","method":"nexo/admin/agents/list","params":{}}\n'
    extension.receive(b'{"jsonrpc":"2.0","id":"app:1","result":{"agents":[]}}\n', 0.0)
    assert call.result is not None


def test_an_extension_gets_permission_denied_for_a_missing_capability(extension: Connection) -> None:
    call, _ = open_call(extension, "nexo/admin/agents/list")

    extension.receive(b'{"jsonrpc":"2.0","id":"app:1","error":{"code":-32004,"message":"capability_not_granted"}}\n', 0)

    assert isinstance(call.error, RemoteError)
    assert call.error.meaning is Meaning.PERMISSION_DENIED


def test_an_extension_responds_under_the_number_of_the_request(extension: Connection) -> None:
    [request] = extension.receive(HELLO + b"\n", 0.0)

    assert isinstance(request, InboundRequest)
    assert extension.respond(request, b"{}") == b'{"jsonrpc":"2.0","id":0,"result":{}}\n'


def test_an_id_may_come_again_once_it_got_a_response(extension: Connection) -> None:
    [first] = extension.receive(HELLO + b"\n", 0.0)
    assert isinstance(first, InboundRequest)
    extension.respond(first, b"{}")

    [last] = extension.receive(b'{"jsonrpc":"2.0","method":"shutdown","params":{"reason":"r"},"id":0}\n', 0.0)

    assert isinstance(last, InboundRequest)
    assert last.method == "shutdown"


# -- administration


def test_a_capability_is_a_permission_with_a_name_of_its_own() -> None:
    assert to_permission("agents_crud") == "nexo.agents_crud"
    assert to_capability("nexo.agents_crud") == "agents_crud"


@pytest.mark.parametrize(("path", "capability"), [("", "agents_crud"), ("agents/list", "")])
def test_a_method_of_administration_has_a_path_and_a_capability(path: str, capability: str) -> None:
    with pytest.raises(ValueError, match="capability"):
        admin_method(path, capability)


def test_other_errors_are_unchanged() -> None:
    error = InvalidParams([("/x", "is missing")])

    assert encode_error(error) is error


# -- detection


@pytest.mark.parametrize(
    ("frame", "framing", "is_nexo"),
    [
        (HELLO, JsonLines, True),
        (HELLO, ContentLength, False),
        (
            b'{"jsonrpc":"2.0","method":"tools/list","params":{"agent_version":"1","extension_id":"x"}}',
            JsonLines,
            False,
        ),
        (b'{"jsonrpc":"2.0","method":"initialize","params":{"protocolVersion":"2025-06-18"},"id":0}', JsonLines, False),
        (b'{"method":"initialize"}', JsonLines, False),
        (b"not JSON", JsonLines, False),
        (b'{"method":"\xff"}', JsonLines, False),
    ],
)
def test_a_host_is_detected_by_its_first_message(frame: bytes, framing: type, is_nexo: bool) -> None:
    assert NEXO.matches_first_frame is not None
    assert NEXO.matches_first_frame(frame, framing) is is_nexo


# -- around the wire


def test_the_host_defaults_of_nexo_apply_to_limits_timeouts_and_the_breaker() -> None:
    defaults = NEXO.host_defaults

    assert DEFAULT_LIMITS.but(**defaults.limits).but(**defaults.host_limits).call_timeout == 30
    assert replace(DEFAULT_TIMEOUTS, **defaults.timeouts).tool == 30
    policy: Any = replace(BreakerPolicy(), **defaults.breaker)
    assert (policy.failures, policy.open_for, policy.longest_open, policy.successes) == (5, 10, 120, 2)


def test_harmful_behaviour_is_off_by_default() -> None:
    assert not NEXO.host_defaults.kills_before_shutdown
    assert not NEXO.host_defaults.breaker["trips_on_application_errors"]


def test_restarts_come_after_one_second_and_twice_as_long_each_time_and_five_times_at_most() -> None:
    policy: Any = replace(RestartPolicy(), **NEXO.host_defaults.restart)
    history, now, delays = RestartHistory(), 0.0, []
    while isinstance(decision := decide_restart(policy, history, now=now, random=lambda: 0.5), Restart):
        delays.append(decision.delay)
        now += decision.delay
        history = decision.history

    assert delays == [1, 2, 4, 8, 16]


@pytest.mark.parametrize(
    ("data", "variables", "root"),
    [
        pytest.param("/data/weather", {}, "/data/weather/state", id="where the host keeps data"),
        pytest.param("/data/weather", {"NEXO_HOME": "/n"}, "/n/extensions/weather/state", id="where it is told"),
        pytest.param(None, {"NEXO_HOME": "/n"}, "/n/extensions/weather/state", id="where it is told alone"),
    ],
)
def test_a_program_gets_its_id_and_its_state_directory(data: str | None, variables: dict[str, str], root: str) -> None:
    assert NEXO.host_defaults.build_variables is not None
    context = EnvironmentContext("weather", HostInfo("ana", "0.1.0"), data, variables)

    assert NEXO.host_defaults.build_variables(context) == {
        "AGENT_VERSION": "0.1.0",
        "AGENT_EXTENSION_ID": "weather",
        "NEXO_EXTENSION_STATE_ROOT": root,
    }
    assert NEXO.host_defaults.directory_variables == ("NEXO_EXTENSION_STATE_ROOT",)


def test_nothing_is_created_in_the_home_of_a_user_whose_host_has_no_data_directory() -> None:
    assert NEXO.host_defaults.build_variables is not None
    context = EnvironmentContext("weather", HostInfo("ana", "0.1.0"), None, {"HOME": "/home/ana"})

    assert [*NEXO.host_defaults.build_variables(context)] == ["AGENT_VERSION", "AGENT_EXTENSION_ID"]
