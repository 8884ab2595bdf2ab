"""The position of a cigen frame in the exchange determines its kind, for host and plugin."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from becket.adapters.cigen import CIGEN
from becket.adapters.cigen.codec import CigenCodec
from becket.adapters.cigen.messages import Level, PlanResult
from becket.errors import (
    BadFrame,
    ConnectionLost,
    DisconnectReason,
    LocalProtocolError,
    Meaning,
    NotSupported,
    RpcError,
    Unencodable,
)
from becket.framing.framing import SkippedFrame
from becket.framing.json_lines import JsonLines
from becket.framing.length_prefixed import LengthPrefixed
from becket.jsonrpc.calls import InboundRequest, OutboundCall
from becket.jsonrpc.connection import Connection
from becket.jsonrpc.messages import Invalid, Request, Success
from becket.limits import DEFAULT_LIMITS

HELLO = bytes.fromhex("08011205302e322e30")


class Waits:
    """Stands for the caller of a pending call."""

    def done(self) -> bool:
        return False

    def set_result(self, result: None, /) -> None: ...


def call(method: str) -> OutboundCall:
    return OutboundCall(method, Waits())


def send_request(core: Connection, method: str, params: bytes | None = None) -> bytes:
    """Returns the body of the frame of this request."""
    return core.open_call(call(method), params)[4:]


def framed(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


@pytest.fixture
def core() -> Connection:
    return CIGEN.build_connection(DEFAULT_LIMITS)


@pytest.fixture
def plugin() -> Connection:
    return CIGEN.build_connection(DEFAULT_LIMITS)


def converse(
    core: Connection, plugin: Connection, method: str, result: bytes = b"{}"
) -> tuple[InboundRequest, OutboundCall]:
    """Sends a request and a response; returns both as they were received."""
    (request,) = plugin.receive(core.open_call(call(method), b"{}"))
    assert isinstance(request, InboundRequest)
    (responded,) = core.receive(plugin.respond(request, result))
    assert isinstance(responded, OutboundCall)
    return request, responded


# -- both peers


def test_after_the_hello_plan_and_generate_take_turns(core: Connection, plugin: Connection) -> None:
    received = [
        converse(core, plugin, method)[0].method for method in ("hello", "plan", "generate", "plan", "generate", "plan")
    ]

    assert received == ["hello", "plan", "generate", "plan", "generate", "plan"]


def test_params_and_results_are_json_above_the_codec(core: Connection, plugin: Connection) -> None:
    converse(core, plugin, "hello", b'{"name":"provider/x","protocol":1}')
    (request,) = plugin.receive(core.open_call(call("plan"), b'{"facts":{"a":"b"}}'))
    assert isinstance(request, InboundRequest)
    (responded,) = core.receive(plugin.respond(request, b'{"resources":[{"id":"job:a","type":"job"}]}'))

    assert request.params is not None
    assert bytes(request.params) == b'{"facts":{"a":"b"}}'
    assert isinstance(responded, OutboundCall)
    assert responded.result is not None
    assert bytes(responded.result) == b'{"resources":[{"id":"job:a","type":"job"}]}'


def test_absent_params_are_sent_as_a_message_of_defaults(core: Connection) -> None:
    assert send_request(core, "hello") == b""


def test_a_frame_of_no_bytes_is_a_request_like_any_other(plugin: Connection) -> None:
    (request,) = plugin.receive(b"\0\0\0\0")

    assert isinstance(request, InboundRequest)
    assert (request.method, bytes(request.params or b"")) == ("hello", b"{}")


def test_an_error_is_a_result_with_a_diagnostic(core: Connection, plugin: Connection) -> None:
    converse(core, plugin, "hello")
    for method, error, code in (
        ("plan", RpcError(Meaning.INTERNAL, "it failed", {"incident": "5f"}), "INTERNAL"),
        ("generate", RpcError(42, "no disk"), "42"),
    ):
        (request,) = plugin.receive(core.open_call(call(method), b"{}"))
        assert isinstance(request, InboundRequest)
        (responded,) = core.receive(plugin.reject(request, error))

        assert isinstance(responded, OutboundCall)
        (diagnostic,) = msgspec.json.decode(responded.result or b"", type=PlanResult, strict=True).diagnostics
        assert (diagnostic.level, diagnostic.code, diagnostic.message) == (Level.ERROR, code, error.message)
        assert diagnostic.title == f"{method} failed"
        assert diagnostic.fix_hint == ("incident 5f" if error.data else "")


def test_an_error_in_the_handshake_is_sent_as_a_plugin_that_every_core_refuses(plugin: Connection) -> None:
    (request,) = plugin.receive(framed(HELLO))
    assert isinstance(request, InboundRequest)

    assert plugin.reject(request, RpcError(Meaning.INCOMPATIBLE, "no")) == b"\0\0\0\0"


def test_a_response_of_the_wrong_kind_is_refused_and_can_still_be_an_error(
    core: Connection, plugin: Connection
) -> None:
    converse(core, plugin, "hello")
    (request,) = plugin.receive(core.open_call(call("plan"), b"{}"))
    assert isinstance(request, InboundRequest)

    with pytest.raises(Unencodable):
        plugin.respond(request, b'{"fragments":[]}')
    (responded,) = core.receive(plugin.reject(request, RpcError(Meaning.INTERNAL, "it failed")))

    assert isinstance(responded, OutboundCall)
    assert b"it failed" in bytes(responded.result or b"")


def test_an_oversize_response_becomes_a_diagnostic() -> None:
    small = DEFAULT_LIMITS.but(frame=200)
    core, plugin = CIGEN.build_connection(small), CIGEN.build_connection(small)
    converse(core, plugin, "hello")
    (request,) = plugin.receive(core.open_call(call("plan"), b"{}"))
    assert isinstance(request, InboundRequest)

    large = msgspec.json.encode({"resources": [{"id": "x" * 300}]})
    (responded,) = core.receive(plugin.respond(request, large))

    assert isinstance(responded, OutboundCall)
    assert b'"TOO_LARGE"' in bytes(responded.result or b"")


def test_the_response_to_an_abandoned_call_is_dropped_and_the_next_request_is_sent(
    core: Connection, plugin: Connection
) -> None:
    converse(core, plugin, "hello")
    late = call("plan")
    (request,) = plugin.receive(core.open_call(late, b"{}"))
    assert isinstance(request, InboundRequest)
    assert core.cancel_call(late) == b""

    assert core.receive(plugin.respond(request, b"{}")) == []
    assert converse(core, plugin, "generate")[0].method == "generate"


# -- what is refused here


def test_generate_before_plan_is_refused_with_the_expected_request(core: Connection, plugin: Connection) -> None:
    converse(core, plugin, "hello")

    with pytest.raises(LocalProtocolError, match=r"`generate` cannot be called now.* `plan` is next"):
        send_request(core, "generate")
    assert converse(core, plugin, "plan")[0].method == "plan"


def test_a_second_call_before_the_response_is_refused(core: Connection) -> None:
    send_request(core, "hello")

    with pytest.raises(LocalProtocolError, match="`plan` must wait: `hello` has no response yet"):
        send_request(core, "plan")


@pytest.mark.parametrize("method", ["detect", "validate", "preflight", "tool.call"])
def test_messages_that_the_protocol_lacks_are_not_supported(core: Connection, plugin: Connection, method: str) -> None:
    converse(core, plugin, "hello")

    with pytest.raises(NotSupported, match=method):
        send_request(core, method)
    assert converse(core, plugin, "plan")[0].method == "plan"


def test_a_plugin_sends_no_requests_and_there_are_no_notifications(core: Connection, plugin: Connection) -> None:
    plugin.receive(framed(HELLO))

    with pytest.raises(NotSupported, match="cannot call its core"):
        send_request(plugin, "plan")
    with pytest.raises(NotSupported, match="notifications"):
        core.encode_notification("log", None)
    with pytest.raises(NotSupported, match="batch"):
        core.open_batch([(call("hello"), b"{}")], [])


def test_a_request_that_is_too_large_is_never_sent() -> None:
    core = CIGEN.build_connection(DEFAULT_LIMITS.but(frame=10))

    with pytest.raises(LocalProtocolError, match="too large: 102 bytes"):
        send_request(core, "hello", msgspec.json.encode({"core_version": "x" * 100}))
    assert send_request(core, "hello") == b""


# -- what ends the link


@pytest.mark.parametrize("frame", [b"\x0a\x05x", b"\xff"])
def test_a_response_that_is_not_protobuf_ends_the_link(core: Connection, frame: bytes) -> None:
    send_request(core, "hello")

    assert core.receive(framed(frame)) == []
    assert "not a valid PluginInfo" in str(core.violation)


def test_a_request_that_is_not_protobuf_ends_the_link_without_a_response(plugin: Connection) -> None:
    assert plugin.receive(framed(b"\x0a\x05x")) == []
    assert "not a valid Hello" in str(plugin.violation)
    assert plugin.data_to_send() == b""


def test_a_response_without_a_request_ends_the_link(core: Connection, plugin: Connection) -> None:
    converse(core, plugin, "hello")

    assert core.receive(b"\0\0\0\0") == []
    assert "a message after the PluginInfo" in str(core.violation)


def test_a_request_before_the_response_to_the_last_ends_the_link(plugin: Connection) -> None:
    (request,) = plugin.receive(framed(HELLO) + framed(b""))

    assert isinstance(request, InboundRequest)
    assert "before the PluginInfo: there is one request at a time" in str(plugin.violation)


def test_a_length_beyond_the_limit_is_refused_before_memory_is_allocated() -> None:
    limits = DEFAULT_LIMITS.but(**CIGEN.host_defaults.limits)
    core = CIGEN.build_connection(limits)

    assert limits.frame == 10 * 1024 * 1024
    core.receive((limits.frame + 1).to_bytes(4, "big"))
    assert "10485761 bytes, the limit is 10485760" in str(core.violation)


@pytest.mark.parametrize(("cut", "problem"), [(b"\0\0", "truncated length"), (b"\0\0\0\x05ab", "truncated body")])
def test_a_truncated_frame_at_the_end_is_named(core: Connection, cut: bytes, problem: str) -> None:
    core.receive(cut)

    assert problem in str(core.receive_eof())


def test_no_request_is_sent_on_a_link_that_has_ended(core: Connection) -> None:
    core.close(ConnectionLost(DisconnectReason.LOCAL_CLOSE))

    with pytest.raises(ConnectionLost):
        send_request(core, "hello")


# -- the codec alone


class Taken:
    """An inbox that stores its items."""

    def __init__(self) -> None:
        self.messages: list[Any] = []

    def on_message(self, message: Any) -> None:
        self.messages.append(message)


def test_a_dropped_frame_is_passed_on_unchanged() -> None:
    inbox: Any = Taken()
    dropped = SkippedFrame(BadFrame("noise"))

    assert CigenCodec().decode_frames(iter([dropped, HELLO]), inbox)
    assert inbox.messages[0] is dropped
    assert isinstance(inbox.messages[1], Request)


def test_frames_are_distinguished_without_a_connection() -> None:
    core = CigenCodec()
    core.encode_request(b"7", "hello", b"{}")

    assert isinstance(core.decode(bytearray(b"")), Success)
    assert isinstance(core.decode(b""), Invalid)


def test_a_core_is_detected_by_its_framing() -> None:
    assert CIGEN.matches_first_frame is not None
    assert CIGEN.matches_first_frame(HELLO, LengthPrefixed)
    assert not CIGEN.matches_first_frame(HELLO, JsonLines)
