"""The handshake and the shutdown of nexo, for host and extension."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import Raw

from becket.adapters.nexo import NEXO, TOOLS_LIST, NexoExtra, NexoManifest, to_tools
from becket.adapters.nexo.handshake import clean_reason
from becket.contract.handshake import Capabilities, HostInfo, Initialized
from becket.contract.hooks import HookKind
from becket.contract.tools import Tool
from becket.dialects.handshake import HandshakeContext, HandshakeResult
from becket.dialects.link_state import LinkState, WireRequest
from becket.errors import HandshakeFailed, InvalidParams

assert NEXO.load_mapping is not None
MAPPING = NEXO.load_mapping()
HOST = HostInfo("ana", "0.1.0")


def shake_hands(response: bytes, extra: Any = None) -> tuple[WireRequest, HandshakeResult]:
    """Returns the first request of a host, and what it reads from the response."""
    steps = MAPPING.client_handshake(HandshakeContext(extension="weather", host=HOST, extra=extra))
    output = next(steps)
    assert isinstance(output, WireRequest)
    with pytest.raises(StopIteration) as stop:
        steps.send(Raw(response))
    handshake_result: HandshakeResult = stop.value.value
    return output, handshake_result


def test_a_host_sends_its_version_and_the_id_of_the_extension() -> None:
    output, _ = shake_hands(b"{}")

    assert output.method.name == "initialize"
    assert msgspec.to_builtins(output.params) == {"agent_version": "0.1.0", "extension_id": "weather"}


def test_the_offers_of_an_extension_are_mapped_to_the_contract() -> None:
    manifest = NexoManifest(pollers=("rain",), passthrough=True)
    _, handshake_result = shake_hands(
        b'{"server_version":"w-1","tools":[{"name":"get","description":"d","input_schema":{"type":"object"}}],'
        b'"hooks":["before_message"]}',
        manifest,
    )

    assert handshake_result.capabilities == Capabilities((Tool("get", "d", {"type": "object"}),))
    assert handshake_result.hooks == (HookKind.BEFORE_MESSAGE,)
    assert handshake_result.info is not None
    assert handshake_result.info.build.version == "w-1"
    assert handshake_result.extra == NexoExtra(agent_id="ana", server_version="w-1", manifest=manifest)


@pytest.mark.parametrize(
    "response", [b"{}", b"null", b'{"name":"p","version":"1","capabilities":{"pollers":["x"]},"extra":[1]}']
)
def test_every_member_of_the_response_may_be_left_out(response: bytes) -> None:
    _, handshake_result = shake_hands(response)

    assert handshake_result.capabilities == Capabilities()
    assert handshake_result.info is None


def test_unknown_hooks_are_skipped_with_a_note() -> None:
    _, handshake_result = shake_hands(b'{"hooks":["on_sunrise","after_tool_call"]}')

    assert handshake_result.hooks == (HookKind.AFTER_TOOL_CALL,)
    [note] = handshake_result.warnings
    assert "on_sunrise" in note


def test_a_tool_needs_nothing_but_a_name() -> None:
    _, handshake_result = shake_hands(b'{"tools":[{"name":"get"}]}')

    assert handshake_result.capabilities.tools == (Tool("get", "", {}),)


@pytest.mark.parametrize("response", [b'{"tools":{}}', b'{"tools":[{}]}', b'"ready"', b'{"server_version":"\xff"}'])
def test_a_response_that_cannot_be_read_fails_the_handshake(response: bytes) -> None:
    steps = MAPPING.client_handshake(HandshakeContext(extension="weather", host=HOST))
    next(steps)

    with pytest.raises(HandshakeFailed) as caught:
        steps.send(Raw(response))

    assert caught.value.extension == "weather"
    assert "undecodable" in caught.value.because


# -- as an extension


def test_the_id_of_an_extension_is_sent_to_it() -> None:
    read = MAPPING.server_handshake.decode_params(
        {"agent_version": "0.1.0", "extension_id": "rain", "more": 1}, LinkState("weather")
    )

    assert read.plugin_id == "rain"
    assert read.host is not None
    assert read.host.version == "0.1.0"
    assert read.config == {}


def test_a_host_that_sends_no_members_is_served() -> None:
    assert MAPPING.server_handshake.decode_params(None, LinkState("weather")).plugin_id == "weather"


def test_a_first_message_of_another_shape_is_refused() -> None:
    with pytest.raises(InvalidParams) as caught:
        MAPPING.server_handshake.decode_params({"agent_version": 1}, LinkState("weather"))

    assert caught.value.problems[0][0] == "/agent_version"


def test_the_response_names_tools_and_hooks_and_the_version_of_the_extension() -> None:
    declared = Capabilities((Tool("get", "d", {"type": "object"}),))
    state = LinkState(
        "weather", declared, version="1.2.0", hooks=(HookKind.ON_MESSAGE_COMPLETE, HookKind.ON_COMPACTION)
    )

    reply = msgspec.json.encode(MAPPING.server_handshake.encode_result(Initialized(1, declared), state))

    assert msgspec.json.decode(reply) == {
        "server_version": "1.2.0",
        "tools": [{"name": "get", "description": "d", "input_schema": {"type": "object"}}],
        "hooks": ["after_message"],
    }


def test_the_tools_can_be_requested_once_more() -> None:
    state = LinkState("weather", Capabilities((Tool("get", "d", {}),)))

    response = msgspec.json.encode(MAPPING.server_handshake.handlers["tools/list"]({}, state))

    assert msgspec.json.decode(response) == {"tools": [{"name": "get", "description": "d", "input_schema": {}}]}


@pytest.mark.parametrize("response", [b'{"tools":[{"name":"get"}]}', b'[{"name":"get"}]'])
def test_a_list_of_tools_may_be_bare(response: bytes) -> None:
    listed = msgspec.json.decode(response, type=TOOLS_LIST.result)

    assert to_tools(listed) == (Tool("get", "", {}),)


# -- shutdown


def test_shutdown_has_a_reason() -> None:
    assert MAPPING.encode_shutdown is not None
    output = MAPPING.encode_shutdown(LinkState("weather"))

    assert output.method.name == "shutdown"
    assert msgspec.to_builtins(output.params) == {"reason": "client shutdown"}


def test_shutdown_has_the_given_reason() -> None:
    assert MAPPING.encode_shutdown is not None
    output = MAPPING.encode_shutdown(LinkState("weather", shutdown_reason="reload\x1b[31m"))

    assert output.params.reason == "reload[31m"


def test_a_reason_is_short_and_free_of_control_characters() -> None:
    assert clean_reason("a\x00b\x1bc\x7fd\x9fe\nf") == "abcdef"
    assert len(clean_reason("x" * 500)) == 200
