"""Hello and PluginInfo: contents, and which peers are refused."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import Raw

from becket.adapters.cigen import CIGEN, CigenHello, CigenSettings, PluginInfo
from becket.adapters.cigen.mapping import MAPPING
from becket.contract.handshake import Capabilities, DeclaredCapability, HostInfo, Initialized
from becket.dialects.handshake import HandshakeContext, HandshakeResult
from becket.dialects.link_state import LinkState, WireRequest
from becket.errors import HandshakeFailed, InvalidParams, Meaning, NotSupported, RpcError, VersionMismatch

CONTEXT = HandshakeContext(
    extension="cigen-provider-x", host=HostInfo("becket", "0.2.0"), environment={"HOME": "/root"}
)


def shake_hands(context: HandshakeContext, info: PluginInfo) -> tuple[WireRequest, HandshakeResult]:
    """Returns the request of the core, and the outcome of the plugin's response."""
    handshake = MAPPING.client_handshake(context)
    request = next(handshake)
    assert isinstance(request, WireRequest)
    with pytest.raises(StopIteration) as stopped:
        handshake.send(Raw(msgspec.json.encode(info)))
    return request, stopped.value.value


# -- the core


def test_the_core_sends_its_protocol_its_version_and_the_variables_of_the_process() -> None:
    request, _ = shake_hands(CONTEXT, PluginInfo("provider/x", "1.0.0", 1))

    assert request.method.name == "hello"
    assert request.params == CigenHello(1, "0.2.0", {"HOME": "/root"})


@pytest.mark.parametrize(
    ("extra", "env"),
    [(CigenSettings(sends_environment=False), {}), (CigenSettings(), {"HOME": "/root"}), ("other", {"HOME": "/root"})],
)
def test_a_host_may_withhold_the_variables(extra: Any, env: dict[str, str]) -> None:
    context = msgspec.structs.replace(CONTEXT, extra=extra)

    assert shake_hands(context, PluginInfo("provider/x", "1.0.0", 1))[0].params.env == env


def test_the_capabilities_of_a_plugin_have_their_declared_kind() -> None:
    info = PluginInfo("provider/x", "1.0.0", 1, ("provider:x", "cache:native", "fast", ":odd", "odd:", " "))
    _, result = shake_hands(CONTEXT, info)

    assert [(one.kind, one.name) for one in result.capabilities.capabilities] == [
        ("provider", "x"),
        ("cache", "native"),
        ("cigen", "fast"),
        ("cigen", ":odd"),
        ("cigen", "odd:"),
    ]
    assert result.extra == info
    assert result.info is not None
    assert result.info.build is not None
    assert (result.info.build.backend, result.info.build.version) == ("provider/x", "1.0.0")


@pytest.mark.parametrize("protocol", [0, 2])
def test_the_core_refuses_a_plugin_of_another_protocol(protocol: int) -> None:
    handshake = MAPPING.client_handshake(CONTEXT)
    next(handshake)

    with pytest.raises(VersionMismatch) as caught:
        handshake.send(Raw(msgspec.json.encode(PluginInfo("provider/x", protocol=protocol))))
    assert (caught.value.given, caught.value.supported) == (protocol, 1)
    assert f"Protocol version mismatch: core=1, plugin={protocol}" in str(caught.value)


def test_the_core_refuses_a_plugin_without_a_name() -> None:
    handshake = MAPPING.client_handshake(CONTEXT)
    next(handshake)

    with pytest.raises(HandshakeFailed, match="no name"):
        handshake.send(Raw(b'{"protocol":1}'))


# -- the plugin


def test_a_hello_becomes_the_initialize_request_of_the_contract() -> None:
    read = MAPPING.server_handshake.decode_params(
        {"core_protocol": 1, "core_version": "0.2.0", "env": {"A": "b"}}, LinkState("notes")
    )

    assert read.plugin_id == "notes"
    assert read.config == {"env": {"A": "b"}}
    assert read.host == HostInfo("cigen", "0.2.0")


def test_a_plugin_refuses_a_core_of_another_protocol() -> None:
    with pytest.raises(RpcError) as caught:
        MAPPING.server_handshake.decode_params({"core_protocol": 2}, LinkState("notes"))
    assert caught.value.meaning is Meaning.INCOMPATIBLE
    assert caught.value.message == "Protocol version mismatch: core=2, plugin=1"


def test_a_plugin_refuses_an_invalid_hello() -> None:
    with pytest.raises(InvalidParams):
        MAPPING.server_handshake.decode_params({"core_protocol": "1"}, LinkState("notes"))


def reply(*capabilities: DeclaredCapability) -> PluginInfo:
    initialized = Initialized(1, Capabilities(capabilities=capabilities))
    info = MAPPING.server_handshake.encode_result(initialized, LinkState("notes", version="1.2.0"))
    assert isinstance(info, PluginInfo)
    return info


def test_a_plugin_is_named_after_what_it_provides() -> None:
    about = {"requires": ["lang:*"], "conflicts_with": ["provider:*"], "metadata": {"a": "b"}}
    info = reply(
        DeclaredCapability("cache", "native"),
        DeclaredCapability("provider", "github", params=about),
        DeclaredCapability("cigen", "fast"),
    )

    assert info == PluginInfo(
        "provider/github",
        "1.2.0",
        1,
        ("cache:native", "provider:github", "fast"),
        ("lang:*",),
        ("provider:*",),
        {"a": "b"},
    )


def test_a_plugin_that_declares_nothing_is_named_after_its_extension() -> None:
    assert reply() == PluginInfo("provider/notes", "1.2.0", 1)


# -- the rest of the contract


@pytest.mark.parametrize("method", ["tool.call", "provider.complete", "command.invoke", "hook.handle", "memory.append"])
def test_the_rest_of_the_contract_is_not_supported(method: str) -> None:
    assert CIGEN.load_mapping is not None
    with pytest.raises(NotSupported, match="cigen"):
        CIGEN.load_mapping().get_method(method)
