"""What an extension says to a host of this system, and what it makes of one that it cannot serve."""

from __future__ import annotations

import msgspec
import pytest
from msgspec import Raw

from becket.contract.handshake import Capabilities, HostInfo, Initialize, Initialized
from becket.dialects.handshakes import Introduction
from becket.dialects.phrases import Saying, Scene
from becket.dialects.synaps.handshake import WELCOME, greet
from becket.dialects.synaps.manifest import Plugin, PluginExtension
from becket.errors import InvalidParams, Meaning, RpcError

SCENE = Scene("demo")
WORDS = {
    "synaps_version": "0.1.0",
    "extension_protocol_version": 1,
    "plugin_id": "demo",
    "plugin_root": None,
    "config": {"a": [1]},
}


def test_a_host_says_five_things_and_no_more() -> None:
    introduction = Introduction(extension="demo", host=HostInfo("becket", "1"), cwd="/here", config={"a": 1})
    greeting = greet(introduction)
    said = next(greeting)
    assert isinstance(said, Saying)
    assert msgspec.to_builtins(said.params) == WORDS | {"plugin_root": "/here", "config": {"a": 1}}
    with pytest.raises(StopIteration) as done:
        greeting.send(Raw(b'{"protocol_version":1,"capabilities":[]}'))
    assert done.value.value.declared == Capabilities()


def test_permissions_of_the_hosts_own_may_be_declared_where_they_are_granted() -> None:
    introduction = Introduction(extension="demo", host=HostInfo("becket", "1"), grants=frozenset({"lamp.switch"}))
    greeting = greet(introduction)
    next(greeting)
    with pytest.raises(StopIteration):
        greeting.send(
            Raw(
                b'{"protocol_version":1,"capabilities":{"capabilities":[{"kind":"k","name":"n","permissions":["lamp.switch"]}]}}'
            )
        )


def test_an_extension_is_told_the_name_of_its_folder_whatever_the_host_calls_it() -> None:
    plugin = Plugin(id="MyDemo", extension=PluginExtension(runtime="process", command="python3"))
    said = next(greet(Introduction(extension="mydemo", host=HostInfo("becket", "1"), particulars=plugin)))
    assert said.params.plugin_id == "MyDemo"


def test_an_extension_hears_what_the_contract_would_have_said() -> None:
    heard = WELCOME.read({**WORDS, "features": ["cancel"], "unknown": 1}, SCENE)
    assert heard == Initialize(
        synaps_version="0.1.0", extension_protocol_version=1, plugin_id="demo", plugin_root=None, config={"a": [1]}
    )


def test_an_extension_answers_without_features() -> None:
    answer = WELCOME.reply(Initialized(1, Capabilities(), ("cancel",)), SCENE)
    assert msgspec.json.encode(answer) == b'{"protocol_version":1,"capabilities":{}}'


def test_a_host_of_another_version_is_refused() -> None:
    with pytest.raises(RpcError) as refused:
        WELCOME.read(WORDS | {"extension_protocol_version": 2}, SCENE)
    assert refused.value.meaning is Meaning.INCOMPATIBLE


@pytest.mark.parametrize("given", [None, [], {"plugin_id": 5}])
def test_words_that_cannot_be_understood_are_refused(given: object) -> None:
    with pytest.raises(InvalidParams):
        WELCOME.read(given, SCENE)
