"""The first exchange of cigen, from both sides: Hello and PluginInfo. Each side refuses another protocol than its own.

Of the contract there is nothing to say besides: what a plugin does is `plan` and `generate`.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Struct

from becket.contract.handshake import (
    PROTOCOL_VERSION,
    Capabilities,
    DeclaredCapability,
    HostInfo,
    Initialize,
    Initialized,
)
from becket.contract.info import BuildInfo, ExtensionInfo
from becket.contract.shapes import is_object
from becket.dialects.cigen.messages import Hello, PluginInfo
from becket.dialects.cigen.words import HELLO, PROTOCOL
from becket.dialects.handshakes import Greeted, Greeting, Introduction, Welcome
from becket.dialects.phrases import Saying, Scene
from becket.dialects.speech import Speech
from becket.errors import HandshakeFailed, InvalidParams, Meaning, RpcError, VersionMismatch

__all__ = ["SPEECH", "CigenSettings"]

PROVIDER: Final = "provider"
PLAIN: Final = "cigen"  # the kind of a capability that names none


class CigenSettings(Struct, frozen=True, kw_only=True):
    """What a host decides for one plugin: whether the first message tells it the variables of its process."""

    tells_environment: bool = True


# -- the core


def greet(introduction: Introduction) -> Greeting:
    """Says hello and returns what the plugin is."""
    settings = introduction.particulars
    tells = settings.tells_environment if isinstance(settings, CigenSettings) else True
    env = dict(introduction.environment) if tells else {}
    raw = yield Saying(HELLO, Hello(PROTOCOL, introduction.host.version, env))
    info = msgspec.json.decode(raw, type=PluginInfo)
    if info.protocol != PROTOCOL:
        because = describe_mismatch(PROTOCOL, info.protocol)
        raise VersionMismatch(introduction.extension, because, given=info.protocol, supported=PROTOCOL)
    if not info.name:
        raise HandshakeFailed(introduction.extension, "the plugin has no name")
    return Greeted(
        declared=Capabilities(capabilities=tuple(read_capability(text) for text in info.capabilities if text.strip())),
        about=ExtensionInfo(build=BuildInfo(info.name, version=info.version)),
        particulars=info,
        version=info.version or None,
        plugin=msgspec.json.decode(msgspec.json.encode(info)),
    )


def describe_mismatch(core: int, plugin: int) -> str:
    return f"Protocol version mismatch: core={core}, plugin={plugin}"


def read_capability(text: str) -> DeclaredCapability:
    """Returns `provider:github` as a capability of its own kind."""
    kind, separator, name = text.partition(":")
    if separator and kind.strip() and name.strip():
        return DeclaredCapability(kind, name)
    return DeclaredCapability(PLAIN, text)


# -- the plugin


def read_hello(given: Any, scene: Scene) -> Initialize:
    """Returns what the core said as the contract would have it; its variables are the configuration's `env`.

    Raises:
        RpcError: it speaks another protocol.
    """
    try:
        hello = msgspec.convert(given, Hello)
    except msgspec.ValidationError as error:
        raise InvalidParams([("", str(error))]) from error
    if hello.core_protocol != PROTOCOL:
        raise RpcError(Meaning.INCOMPATIBLE, describe_mismatch(hello.core_protocol, PROTOCOL))
    return Initialize(
        extension_protocol_version=PROTOCOL_VERSION,
        plugin_id=scene.extension,
        plugin_root=None,
        config={"env": hello.env},
        host=HostInfo("cigen", hello.core_version),
    )


def tell_of_itself(initialized: Initialized, scene: Scene) -> PluginInfo:
    """Returns what an extension declares as a plugin says it.

    A declared capability of the kind `provider` gives the name, and in its params what else the plugin says of itself:
    `requires`, `conflicts_with` and `metadata`."""
    declared = initialized.capabilities.capabilities
    provider = next((one for one in declared if one.kind == PROVIDER), DeclaredCapability(PROVIDER, scene.extension))
    more: dict[str, Any] = provider.params if is_object(provider.params) else {}
    return PluginInfo(
        f"{PROVIDER}/{provider.name}",
        scene.version,
        PROTOCOL,
        tuple(one.name if one.kind == PLAIN else f"{one.kind}:{one.name}" for one in declared),
        tuple(more.get("requires", ())),
        tuple(more.get("conflicts_with", ())),
        dict(more.get("metadata", {})),
    )


SPEECH: Final = Speech(
    dialect="cigen",
    greet=greet,
    welcome=Welcome(opening=HELLO, read=read_hello, reply=tell_of_itself),
)
