"""The Morphir mapping of the contract, in both directions."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import Raw

from becket.adapters.morphir import (
    CAPABILITIES,
    HEALTH_CHECK,
    MORPHIR,
    MorphirCapability,
    MorphirHealth,
    MorphirHealthStatus,
    MorphirSettings,
)
from becket.adapters.morphir.mapping import MAPPING
from becket.contract.handshake import Capabilities, HostInfo, Initialized
from becket.contract.info import CapabilityInfo, ExtensionInfo
from becket.contract.log import LogLevel, LogRecord
from becket.contract.tools import Tool, ToolCall
from becket.dialects.handshake import HandshakeContext, HandshakeResult
from becket.dialects.link_state import LinkState, WireNotification, WireRequest
from becket.errors import HandshakeFailed, InvalidParams, NotSupported, RemoteError, RpcError
from becket.methods.descriptors import Method

CONTEXT = HandshakeContext(extension="v", host=HostInfo("becket", "0.1.0"), config={"depth": 2})
TOOLS = Capabilities((Tool("transform", "Transforms.", {"type": "object"}),))


def shake_hands(response: bytes, context: HandshakeContext = CONTEXT) -> tuple[list[WireRequest], HandshakeResult]:
    """Returns the requests of the host, and the outcome of this response to the request for capabilities."""
    handshake = MAPPING.client_handshake(context)
    requests = [next(handshake), handshake.send(Raw(b'{"status":"ready"}'))]
    with pytest.raises(StopIteration) as stopped:
        handshake.send(Raw(response))
    return [request for request in requests if isinstance(request, WireRequest)], stopped.value.value


# -- the handshake


def test_the_host_sends_the_configuration_and_requests_the_capabilities() -> None:
    requests, result = shake_hands(b"[]")

    assert [(request.method.name, request.params) for request in requests] == [
        ("initialize", {"depth": 2}),
        ("capabilities", None),
    ]
    assert result.capabilities == Capabilities()


def test_operator_settings_override_the_list() -> None:
    settings = MorphirSettings(config={"depth": 1, "style": "dense"})
    requests, _ = shake_hands(b"[]", msgspec.structs.replace(CONTEXT, extra=settings))

    assert requests[0].params == {"depth": 2, "style": "dense"}


def test_a_capability_is_a_tool_and_its_schema_that_of_the_input() -> None:
    schema = {"type": "object", "required": ["ir"]}
    listed = [
        {"name": "transform", "description": "Transforms.", "params_schema": schema, "return_schema": {}},
        {"name": "echo", "description": " "},
        {"name": "any", "description": "d", "params_schema": True, "more": 1},
    ]
    _, result = shake_hands(msgspec.json.encode(listed))

    assert result.capabilities.tools == (
        Tool("transform", "Transforms.", schema),
        Tool("echo", "echo", {"type": "object"}),
        Tool("any", "d", {"type": "object"}),
    )
    assert result.extra[0] == MorphirCapability("transform", "Transforms.", schema, {})
    assert result.warnings == ()
    assert result.allows_invalid_schemas


@pytest.mark.parametrize("name", ["", "a b", "a:b", "x" * 65, "rpc.x", "initialize", "capabilities", "health_check"])
def test_a_capability_whose_name_no_tool_can_have_is_skipped_with_a_note(name: str) -> None:
    listed = [{"name": name, "description": "d"}, {"name": "echo", "description": "d"}]
    _, result = shake_hands(msgspec.json.encode(listed))

    assert [tool.name for tool in result.capabilities.tools] == ["echo"]
    (note,) = result.warnings
    assert note.startswith(f"the capability `{name}` cannot be a tool: ")


def test_the_first_of_two_capabilities_of_one_name_counts() -> None:
    _, result = shake_hands(b'[{"name":"a","description":"1"},{"name":"a","description":"2"}]')

    assert [tool.description for tool in result.capabilities.tools] == ["1"]
    assert len(result.warnings) == 1


@pytest.mark.parametrize("response", [b"null", b"{}", b'["transform"]', b'[{"name":"a"}]'])
def test_an_invalid_list_of_capabilities_is_refused(response: bytes) -> None:
    handshake = MAPPING.client_handshake(CONTEXT)
    next(handshake)
    handshake.send(Raw(b"null"))

    with pytest.raises(HandshakeFailed, match="no list of capabilities"):
        handshake.send(Raw(response))


def test_an_extension_that_fails_to_initialize_is_refused_with_its_own_message() -> None:
    handshake = MAPPING.client_handshake(CONTEXT)
    next(handshake)

    with pytest.raises(HandshakeFailed, match="Initialization failed: no such style"):
        handshake.throw(RemoteError(method="initialize", code=0, message="no such style"))


@pytest.mark.parametrize(
    ("given", "config"),
    [
        ({"depth": 2}, {"depth": 2}),
        ({"config": {"depth": 2}}, {"depth": 2}),
        ({"config": {"depth": 2}, "protocol_version": "1.0", "extension_version": "2.1.0"}, {"depth": 2}),
        ({"config": None}, {}),
        ({"config": {"depth": 2}, "style": "dense"}, {"config": {"depth": 2}, "style": "dense"}),
        ({}, {}),
        (None, {}),
    ],
)
def test_an_extension_takes_the_configuration_itself_or_wrapped(given: Any, config: dict[str, Any]) -> None:
    read = MAPPING.server_handshake.decode_params(given, LinkState("v"))

    assert (read.plugin_id, read.config) == ("v", config)


@pytest.mark.parametrize("given", [17, [1], "text", {"config": [1]}])
def test_an_extension_refuses_a_configuration_that_is_not_an_object(given: Any) -> None:
    with pytest.raises(InvalidParams):
        MAPPING.server_handshake.decode_params(given, LinkState("v"))


def test_an_extension_is_ready_and_lists_its_tools_as_capabilities() -> None:
    tools = (*TOOLS.tools, Tool("capabilities", "Not this one.", {}))
    state = LinkState("v", Capabilities(tools))

    assert MAPPING.server_handshake.encode_result(Initialized(1), state) == {"status": "ready"}
    listed = MAPPING.server_handshake.handlers["capabilities"]({}, state)
    assert msgspec.to_builtins(listed) == [
        {"name": "transform", "description": "Transforms.", "params_schema": {"type": "object"}}
    ]


# -- tools


def test_a_tool_is_called_by_its_own_name() -> None:
    method_mapping = MAPPING.get_method("tool.call")
    request = method_mapping.encode_request(ToolCall("transform", {"ir": {}}), LinkState("v", TOOLS))

    assert (request.method.name, request.params) == ("transform", {"ir": {}})
    assert method_mapping.decode_request(request, LinkState("v", TOOLS)) == ToolCall("transform", {"ir": {}})


def test_a_tool_is_served_under_its_name_unless_the_author_has_that_method() -> None:
    method_mapping = MAPPING.get_method("tool.call")

    assert [method.name for method in method_mapping.wire_methods(LinkState("v", TOOLS))] == ["transform"]
    assert [*method_mapping.wire_methods(LinkState("v", TOOLS, own_methods=frozenset({"transform"})))] == []


def test_absent_params_are_an_empty_input_and_other_values_than_objects_are_refused() -> None:
    method_mapping = MAPPING.get_method("tool.call")
    method: Method[Any, Any] = Method("transform", Any, Any)

    assert method_mapping.decode_request(WireRequest(method), LinkState("v", TOOLS)) == ToolCall("transform", {})
    with pytest.raises(InvalidParams):
        method_mapping.decode_request(WireRequest(method, [1]), LinkState("v", TOOLS))


def test_problems_of_an_input_are_reported_with_their_pointer_in_the_params() -> None:
    fail = MAPPING.get_method("tool.call").encode_failure
    assert fail is not None
    request = WireRequest(Method[Any, Any]("transform", Any, Any), {})

    with pytest.raises(InvalidParams) as caught:
        fail(InvalidParams([("/input/ir", "is missing")]), request, LinkState("v"))
    assert caught.value.problems == (("/ir", "is missing"),)
    with pytest.raises(RpcError, match="no disk"):
        fail(RpcError(7, "no disk"), request, LinkState("v"))


# -- health


def test_the_info_of_an_extension_is_its_health() -> None:
    method_mapping, state = MAPPING.get_method("info.get"), LinkState("v")
    request = method_mapping.encode_request(None, state)

    assert request.method is HEALTH_CHECK
    assert method_mapping.decode_result(
        MorphirHealth(MorphirHealthStatus.DEGRADED, "slow"), request, state
    ).capabilities == (CapabilityInfo("health", "degraded", ("slow",)),)
    assert method_mapping.decode_result(MorphirHealth(MorphirHealthStatus.HEALTHY), request, state).capabilities == (
        CapabilityInfo("health", "healthy"),
    )


@pytest.mark.parametrize(
    ("received", "health"),
    [
        ((), MorphirHealth(MorphirHealthStatus.HEALTHY)),
        (
            (CapabilityInfo("ocr", "unhealthy"), CapabilityInfo("health", "odd")),
            MorphirHealth(MorphirHealthStatus.HEALTHY),
        ),
        (
            (CapabilityInfo("health", "degraded", ("slow", "old")),),
            MorphirHealth(MorphirHealthStatus.DEGRADED, "slow; old"),
        ),
        ((CapabilityInfo("health", "unhealthy"),), MorphirHealth(MorphirHealthStatus.UNHEALTHY)),
    ],
)
def test_an_extension_is_healthy_unless_its_info_reports_otherwise(received: Any, health: MorphirHealth) -> None:
    method_mapping, state = MAPPING.get_method("info.get"), LinkState("v")
    request = WireRequest(HEALTH_CHECK)

    assert [*method_mapping.wire_methods(state)] == [HEALTH_CHECK]
    assert method_mapping.decode_request(request, state) is None
    assert method_mapping.encode_result(ExtensionInfo(capabilities=received), request, state) == health


def test_an_author_may_serve_health() -> None:
    assert [*MAPPING.get_method("info.get").wire_methods(LinkState("v", own_methods=frozenset({"health_check"})))] == []


# -- the log


@pytest.mark.parametrize(
    ("level", "word"),
    [(LogLevel.DEBUG, "debug"), (LogLevel.INFO, "info"), (LogLevel.WARNING, "warn"), (LogLevel.CRITICAL, "error")],
)
def test_log_notifications_have_a_level_and_a_message(level: LogLevel, word: str) -> None:
    notification = MAPPING.notifications["$/log"].encode(LogRecord(level, "v", "m"), LinkState("v"))

    assert notification == WireNotification("log", {"level": word, "message": "m"})


@pytest.mark.parametrize(
    ("given", "level", "message"),
    [
        ({"level": "info", "message": "m"}, LogLevel.INFO, "m"),
        ({"level": "WARN", "message": "m"}, LogLevel.WARNING, "m"),
        ({"level": "trace", "message": "m"}, LogLevel.DEBUG, "m"),
        ({"level": "fatal", "message": "m"}, LogLevel.CRITICAL, "m"),
        ({"level": "loud", "message": {"a": 1}}, LogLevel.INFO, '{"a":1}'),
        ({"level": 3}, LogLevel.INFO, "null"),
        ("m", LogLevel.INFO, "m"),
        (None, LogLevel.INFO, "null"),
    ],
)
def test_every_log_notification_is_accepted(given: Any, level: LogLevel, message: str) -> None:
    messages = MAPPING.notifications["$/log"].decode(given, LinkState("v"))

    assert messages == LogRecord(level, "log", message)


# -- the rest


@pytest.mark.parametrize(
    "method", ["provider.complete", "command.invoke", "hook.handle", "memory.append", "config.get"]
)
def test_the_rest_of_the_contract_is_not_supported(method: str) -> None:
    assert MORPHIR.load_mapping is not None
    mapping = MORPHIR.load_mapping()

    with pytest.raises(NotSupported, match="morphir"):
        mapping.get_method(method)
    assert mapping.encode_shutdown is None
    assert CAPABILITIES.name in mapping.server_handshake.allowed_before_initialize
