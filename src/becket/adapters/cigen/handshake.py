"""cigen client and server handshake: one message in each direction."""

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
from becket.dialects.link_state import LinkState, WireRequest
from becket.errors import HandshakeFailed, InvalidParams, Meaning, RpcError, VersionMismatch

__all__ = ["SERVER_HANDSHAKE", "CigenSettings", "client_handshake"]

PROVIDER_KIND: Final = "provider"
DEFAULT_KIND: Final = "cigen"  # kind of a capability without a prefix


class CigenSettings(Struct, frozen=True, kw_only=True):
    """Host settings of one plugin: whether the first message has the variables of its process."""

    sends_environment: bool = True


# -- the core


def client_handshake(context: HandshakeContext) -> ClientHandshake:
    """Sends `hello` and returns the plugin's info."""
    settings = context.extra
    sends_environment = settings.sends_environment if isinstance(settings, CigenSettings) else True
    env = dict(context.environment) if sends_environment else {}
    raw = yield WireRequest(HELLO, CigenHello(CIGEN_PROTOCOL_VERSION, context.host.version, env))
    info = msgspec.json.decode(raw, type=PluginInfo)
    if info.protocol != CIGEN_PROTOCOL_VERSION:
        because = describe_mismatch(CIGEN_PROTOCOL_VERSION, info.protocol)
        raise VersionMismatch(context.extension, because, given=info.protocol, supported=CIGEN_PROTOCOL_VERSION)
    if not info.name:
        raise HandshakeFailed(context.extension, "the plugin has no name")
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
    """Returns the capability of a text such as `provider:github`."""
    kind, separator, name = text.partition(":")
    if separator and kind.strip() and name.strip():
        return DeclaredCapability(kind, name)
    return DeclaredCapability(DEFAULT_KIND, text)


# -- the plugin


def decode_hello(params: Any, state: LinkState) -> Initialize:
    """Returns the core's params for the contract; its variables become `env` of the configuration.

    Raises:
        RpcError: it uses another version.
    """
    try:
        hello = msgspec.convert(params, CigenHello)
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
    """Returns the plugin info of an extension.

    A declared capability of the kind `provider` has the name, and in its params `requires`, `conflicts_with` and
    `metadata`."""
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
