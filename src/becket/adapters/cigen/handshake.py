"""cigen client and server handshake: what a plugin is, in one message each way."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Struct

from becket.adapters.cigen.messages import CigenHello, PluginInfo
from becket.adapters.cigen.methods import CIGEN_PROTOCOL_VERSION, HELLO
from becket.contract.handshake import (
    PROTOCOL_VERSION,
    Capabilities,
    DeclaredCapability,
    HostInfo,
    Initialize,
    Initialized,
)
from becket.contract.info import BuildInfo, ExtensionInfo
from becket.contract.json_narrowing import is_object
from becket.dialects.handshake import ClientHandshake, HandshakeContext, HandshakeResult, ServerHandshake
from becket.dialects.mapping import LinkState, WireRequest
from becket.errors import HandshakeFailed, InvalidParams, Meaning, RpcError, VersionMismatch

__all__ = ["SERVER_HANDSHAKE", "CigenSettings", "client_handshake"]

PROVIDER_KIND: Final = "provider"
DEFAULT_KIND: Final = "cigen"  # the kind of a capability that names none


class CigenSettings(Struct, frozen=True, kw_only=True):
    """What a host decides for one plugin: whether the first message tells it the variables of its process."""

    sends_environment: bool = True


# -- the core


def client_handshake(introduction: HandshakeContext) -> ClientHandshake:
    """Says hello and returns what the plugin is."""
    settings = introduction.extra
    tells = settings.sends_environment if isinstance(settings, CigenSettings) else True
    env = dict(introduction.environment) if tells else {}
    raw = yield WireRequest(HELLO, CigenHello(CIGEN_PROTOCOL_VERSION, introduction.host.version, env))
    info = msgspec.json.decode(raw, type=PluginInfo)
    if info.protocol != CIGEN_PROTOCOL_VERSION:
        because = describe_mismatch(CIGEN_PROTOCOL_VERSION, info.protocol)
        raise VersionMismatch(introduction.extension, because, given=info.protocol, supported=CIGEN_PROTOCOL_VERSION)
    if not info.name:
        raise HandshakeFailed(introduction.extension, "the plugin has no name")
    return HandshakeResult(
        capabilities=Capabilities(
            capabilities=tuple(parse_capability(text) for text in info.capabilities if text.strip())
        ),
        info=ExtensionInfo(build=BuildInfo(info.name, version=info.version)),
        extra=info,
        version=info.version or None,
        plugin=msgspec.json.decode(msgspec.json.encode(info)),
    )


def describe_mismatch(core: int, plugin: int) -> str:
    return f"Protocol version mismatch: core={core}, plugin={plugin}"


def parse_capability(text: str) -> DeclaredCapability:
    """Returns `provider:github` as a capability of its own kind."""
    kind, separator, name = text.partition(":")
    if separator and kind.strip() and name.strip():
        return DeclaredCapability(kind, name)
    return DeclaredCapability(DEFAULT_KIND, text)


# -- the plugin


def decode_hello(given: Any, state: LinkState) -> Initialize:
    """Returns what the core said as the contract would have it; its variables are the configuration's `env`.

    Raises:
        RpcError: it speaks another protocol.
    """
    try:
        hello = msgspec.convert(given, CigenHello)
    except msgspec.ValidationError as error:
        raise InvalidParams([("", str(error))]) from error
    if hello.core_protocol != CIGEN_PROTOCOL_VERSION:
        raise RpcError(Meaning.INCOMPATIBLE, describe_mismatch(hello.core_protocol, CIGEN_PROTOCOL_VERSION))
    return Initialize(
        extension_protocol_version=PROTOCOL_VERSION,
        plugin_id=state.extension,
        plugin_root=None,
        config={"env": hello.env},
        host=HostInfo("cigen", hello.core_version),
    )


def encode_plugin_info(initialized: Initialized, state: LinkState) -> PluginInfo:
    """Returns what an extension declares as a plugin says it.

    A declared capability of the kind `provider` gives the name, and in its params what else the plugin says of itself:
    `requires`, `conflicts_with` and `metadata`."""
    declared = initialized.capabilities.capabilities
    provider = next(
        (one for one in declared if one.kind == PROVIDER_KIND), DeclaredCapability(PROVIDER_KIND, state.extension)
    )
    more: dict[str, Any] = provider.params if is_object(provider.params) else {}
    return PluginInfo(
        f"{PROVIDER_KIND}/{provider.name}",
        state.version,
        CIGEN_PROTOCOL_VERSION,
        tuple(one.name if one.kind == DEFAULT_KIND else f"{one.kind}:{one.name}" for one in declared),
        tuple(more.get("requires", ())),
        tuple(more.get("conflicts_with", ())),
        dict(more.get("metadata", {})),
    )


SERVER_HANDSHAKE: Final = ServerHandshake(
    initialize_method=HELLO, decode_params=decode_hello, encode_result=encode_plugin_info
)
