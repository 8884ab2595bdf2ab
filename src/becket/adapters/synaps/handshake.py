"""synaps client and server handshake: the contract's `initialize` without becket's additions."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec.structs import replace

from becket.adapters.synaps.manifest import Plugin
from becket.contract.handshake import INITIALIZE, PROTOCOL_VERSION, Initialize, Initialized, build_initialize
from becket.contract.handshake_checks import parse_initialized
from becket.contract.json_narrowing import is_object
from becket.dialects.handshake import ClientHandshake, HandshakeContext, HandshakeResult, ServerHandshake
from becket.dialects.link_state import LinkState, WireRequest
from becket.errors import InvalidParams, Meaning, RpcError
from becket.methods.descriptors import Method
from becket.permissions.grants import Grants
from becket.permissions.names import PERMISSIONS

__all__ = ["SERVER_HANDSHAKE", "client_handshake", "find_plugin_id"]


def client_handshake(context: HandshakeContext) -> ClientHandshake:
    """Initializes the extension and returns its validated declaration."""
    root = context.cwd if context.root is None else context.root
    params = build_initialize(find_plugin_id(context), root, context.config)
    raw = yield WireRequest(INITIALIZE, params)
    initialized = parse_initialized(
        context.extension,
        raw,
        grants=Grants(context.grants),
        config=context.config,
        known=PERMISSIONS | context.grants,
        reads_hooks=False,  # they are declared in the manifest
    )
    return HandshakeResult(capabilities=initialized.capabilities)


def find_plugin_id(known: HandshakeContext | LinkState) -> str:
    """Returns the extension's own id: the name of its folder, which may not be a valid id in this host."""
    plugin = known.extra
    return plugin.id if isinstance(plugin, Plugin) and plugin.id else known.extension


def decode_initialize(params: Any, state: LinkState) -> Initialize:
    version = params.get("extension_protocol_version") if is_object(params) else None
    if isinstance(version, int) and version != PROTOCOL_VERSION:
        text = f"{state.extension} speaks version {PROTOCOL_VERSION} of the extension protocol, not {version}"
        raise RpcError(Meaning.INCOMPATIBLE, text)
    try:
        return replace(msgspec.convert(params, Initialize), host=None, features=())
    except msgspec.ValidationError as error:
        from becket.conversion.problems import find_problems

        raise InvalidParams(find_problems(params, Initialize)) from error


def encode_initialize_result(initialized: Initialized, state: LinkState) -> Initialized:
    return Initialized(initialized.protocol_version, initialized.capabilities)


RAW_INITIALIZE: Final[Method[Any, Any]] = Method(INITIALIZE.name, Any, Any)  # the version is checked first
SERVER_HANDSHAKE: Final = ServerHandshake(
    initialize_method=RAW_INITIALIZE, decode_params=decode_initialize, encode_result=encode_initialize_result
)
