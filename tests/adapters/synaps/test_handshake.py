"""The handshake of an extension with a synaps host, and which hosts it refuses."""

from __future__ import annotations

import msgspec
import pytest
from msgspec import Raw

from becket.adapters.synaps.handshake import SERVER_HANDSHAKE, client_handshake
from becket.adapters.synaps.manifest import Plugin, PluginExtension
from becket.contract.handshake import Capabilities, HostInfo, Initialize, Initialized
from becket.dialects.handshake import HandshakeContext
from becket.dialects.link_state import LinkState, WireRequest
from becket.errors import InvalidParams, Meaning, RpcError

STATE = LinkState("demo")
FIRST_MESSAGE = {
    "synaps_version": "0.1.0",
    "extension_protocol_version": 1,
    "plugin_id": "demo",
    "plugin_root": None,
    "config": {"a": [1]},
}


def test_a_host_sends_five_members_and_no_more() -> None:
    context = HandshakeContext(extension="demo", host=HostInfo("becket", "1"), cwd="/here", config={"a": 1})
    handshake = client_handshake(context)
    output = next(handshake)
    assert isinstance(output, WireRequest)
    assert msgspec.to_builtins(output.params) == FIRST_MESSAGE | {"plugin_root": "/here", "config": {"a": 1}}
    with pytest.raises(StopIteration) as done:
        handshake.send(Raw(b'{"protocol_version":1,"capabilities":[]}'))
    assert done.value.value.capabilities == Capabilities()


def test_permissions_of_the_hosts_own_may_be_declared_where_they_are_granted() -> None:
    context = HandshakeContext(extension="demo", host=HostInfo("becket", "1"), grants=frozenset({"lamp.switch"}))
    handshake = client_handshake(context)
    next(handshake)
    with pytest.raises(StopIteration):
        handshake.send(
            Raw(
                b'{"protocol_version":1,"capabilities":{"capabilities":[{"kind":"k","name":"n","permissions":["lamp.switch"]}]}}'
            )
        )


def test_an_extension_gets_the_name_of_its_folder_whatever_id_the_host_uses() -> None:
    plugin = Plugin(id="MyDemo", extension=PluginExtension(runtime="process", command="python3"))
    output = next(client_handshake(HandshakeContext(extension="mydemo", host=HostInfo("becket", "1"), extra=plugin)))
    assert output.params.plugin_id == "MyDemo"


def test_an_extension_gets_the_handshake_of_the_contract() -> None:
    received = SERVER_HANDSHAKE.decode_params({**FIRST_MESSAGE, "features": ["cancel"], "unknown": 1}, STATE)
    assert received == Initialize(
        synaps_version="0.1.0", extension_protocol_version=1, plugin_id="demo", plugin_root=None, config={"a": [1]}
    )


def test_an_extension_responds_without_features() -> None:
    response = SERVER_HANDSHAKE.encode_result(Initialized(1, Capabilities(), ("cancel",)), STATE)
    assert msgspec.json.encode(response) == b'{"protocol_version":1,"capabilities":{}}'


def test_a_host_of_another_version_is_refused() -> None:
    with pytest.raises(RpcError) as refused:
        SERVER_HANDSHAKE.decode_params(FIRST_MESSAGE | {"extension_protocol_version": 2}, STATE)
    assert refused.value.meaning is Meaning.INCOMPATIBLE


@pytest.mark.parametrize("given", [None, [], {"plugin_id": 5}])
def test_a_first_message_that_cannot_be_decoded_is_refused(given: object) -> None:
    with pytest.raises(InvalidParams):
        SERVER_HANDSHAKE.decode_params(given, STATE)
